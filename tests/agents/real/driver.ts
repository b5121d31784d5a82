/**
 * The least ACP client there can be, on raw JSON lines: it shows what an agent itself sends, without our connection or
 * the SDK in between. Permissions are answered by kind, each on record.
 */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Prepared } from './prepare.ts';

type Json = Record<string, unknown>;
export type Choice = 'allow_once' | 'reject_once';

export interface Driver {
  readonly updates: readonly Json[];
  readonly permissions: readonly Json[];
  request(method: string, params: Json): Promise<Json>;
  notify(method: string, params: Json): void;
  /** How permissions are answered from here on; null leaves them open until `cancelled`. */
  answer(choice: Choice | null): void;
  /** Resolves with the first update for which `wanted` holds, past or to come. */
  seen(wanted: (update: Json) => boolean): Promise<Json>;
  /** All text the agent said so far. */
  text(): string;
  stop(): Promise<void>;
}

const record = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});

export const drive = (agent: Prepared, cwd: string): Driver => {
  // Its own group, so that what it starts ends with it.
  const child = spawn(agent.command, [...agent.args], { cwd, env: { ...agent.env }, stdio: 'pipe', detached: true });
  const updates: Json[] = [];
  const permissions: Json[] = [];
  const open = new Map<number, { resolve: (value: Json) => void; reject: (error: Error) => void }>();
  const waiting: { wanted: (update: Json) => boolean; resolve: (update: Json) => void }[] = [];
  let [lastId, choice, errors]: [number, Choice | null, string] = [0, 'reject_once', ''];

  const send = (message: Json): void => void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const permit = (message: Json): void => {
    const params = record(message['params']);
    permissions.push(params);
    const options = params['options'] as Json[];
    const option = options.find(({ kind }) => kind === choice);
    if (choice !== null)
      send({
        id: message['id'],
        result: {
          outcome:
            option === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: option['optionId'] },
        },
      });
  };
  const take = (message: Json): void => {
    if (message['method'] === 'session/update') {
      const update = record(record(message['params'])['update']);
      updates.push(update);
      for (const each of waiting.splice(0)) {
        if (each.wanted(update)) each.resolve(update);
        else waiting.push(each);
      }
    } else if (message['method'] === 'session/request_permission') permit(message);
    else if (message['method'] !== undefined && message['id'] !== undefined)
      send({ id: message['id'], error: { code: -32601, message: 'not offered' } });
    else if (typeof message['id'] === 'number') {
      const request = open.get(message['id']);
      open.delete(message['id']);
      if ('error' in message) request?.reject(new Error(JSON.stringify(message['error'])));
      else request?.resolve(record(message['result']));
    }
  };
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('{')) take(record(JSON.parse(line)));
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-4000)));
  child.once('exit', () => {
    for (const { reject } of open.values()) reject(new Error(`the agent is gone: ${errors}`));
  });

  return {
    updates,
    permissions,
    request: (method, params) =>
      new Promise((resolve, reject) => {
        open.set((lastId += 1), { resolve, reject });
        send({ id: lastId, method, params });
      }),
    notify: (method, params) => send({ method, params }),
    answer: (next) => {
      choice = next;
    },
    seen: (wanted) => {
      const past = updates.find(wanted);
      return past === undefined ? new Promise((resolve) => waiting.push({ wanted, resolve })) : Promise.resolve(past);
    },
    text: () =>
      updates
        .flatMap((each) =>
          each['sessionUpdate'] === 'agent_message_chunk' ? [String(record(each['content'])['text'] ?? '')] : [],
        )
        .join(''),
    stop: () => end(child),
  };
};

const end = async (child: ChildProcessWithoutNullStreams): Promise<void> => {
  if (child.pid === undefined) return;
  const gone = child.exitCode !== null || child.signalCode !== null ? Promise.resolve() : once(child, 'exit');
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
  await gone;
};
