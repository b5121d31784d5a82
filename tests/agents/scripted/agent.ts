/**
 * A scripted ACP agent for tests: `node agent.ts [SCRIPT]`, a real program over stdin and stdout that behaves as badly
 * as it is told. Writes its own JSON-RPC, so that it can also send what no library would.
 *
 * SCRIPT (JSON, or the variable SCRIPTED_AGENT) says how it starts:
 *   initializeDelayMs: 3000           answers initialize late (case 7)
 *   initializeError: {code, message, data?}  answers it with an error (case 76)
 *   protocolVersion: 2                answers with another version
 *   garbageLines: 20, hugeLineBytes: 10000000, tinyLines: 1000000, binaryLine: true   before anything else (case 76)
 *   exitAtOnce: 0                     exits with this code before it answers
 *   exitOn: 'session/resume'          exits with code 1 when this method is called (case 23)
 *   closeStdout: true                 closes its output and lives on (bubblewrap or the supervisor keep the pipe open)
 *   authRequired: true                session/new answers -32000 until `authenticate` was called
 *   capabilities: {...}               agentCapabilities; default: load and resume
 *   authMethods: [...]
 *   modes: {currentModeId, availableModes}, configOptions: [...], models: {...}   of session/new, load and resume
 *   modeSticks: false                 accepts session/set_mode and then says that it is in another mode
 *   takeUp: 'not_found' | 'replay'    what load and resume do; default: they succeed. `replay` sends history on load,
 *                                     `replay_late` after the answer
 *   ignoreTerm: true                  ignores SIGTERM and the end of stdin
 *
 * PROMPT: directives are done in order; text without any is answered `You said: …`.
 *   [[say TEXT]] [[think TEXT]] [[stream N MS]] [[wait MS]] [[plan]] [[usage]] [[commands]] [[title TEXT]] [[image]] [[mode ID]]
 *   [[tool ID TITLE]] [[done ID]] [[fail ID]]   a tool call and its end
 *   [[tools N BYTES]]                 N tool calls with that much output each
 *   [[permission ID]]                 asks about a tool call (announced or not); says `ID: <option id or cancelled>`
 *   [[permissions N]]                 N at once, on calls p1…pN (case 13); says each as it is answered
 *   [[permission-kind ID KIND]]       offers one option `odd` of this kind beside the usual ones
 *   [[permission-null ID]]            options are null
 *   [[edit PATH TEXT]] [[shell COMMAND]]   asks, then does it itself when allowed, as a cooperative agent does
 *   [[switch MS FIRST => SECOND]]     asks about the command FIRST and makes it SECOND that long after it asked (T35)
 *   [[sneak PATH TEXT]]               writes a file without a word to anybody
 *   [[fs-write PATH TEXT]] [[fs-read PATH]] [[run COMMAND]]   through the client's fs and terminal; says what came back
 *   [[call METHOD JSON]]              sends any request, says the answer
 *   [[malformed]]                     a tool_call without title and with a numeric kind (case 9)
 *   [[raw JSON]]                      this line, with {{session}} filled in
 *   [[garbage N]] [[huge BYTES]] [[binary]]   lines that are not ACP
 *   [[grandchild TOKEN]]              forks one that ignores SIGTERM in a session of its own (case 74); TOKEN is its last argument
 *   [[escape TOKEN]]                  forks one that also cleaned its environment
 *   [[env]] [[ls PATH]] [[params]]    what it can see, and what session/new, load or resume was called with, as JSON
 *   [[ignore-cancel]] [[close-stdin]] [[exit CODE]] [[kill SIGNAL]] [[stderr TEXT]]
 *   [[late MS TEXT]]                  an update that long after the prompt's result
 * and how the turn ends, default end_turn:
 *   [[stop REASON]] [[error CODE MESSAGE]] [[never]] [[silent]]
 */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

type Json = Record<string, unknown>;
interface Script {
  initializeDelayMs?: number;
  initializeError?: { code: number; message: string; data?: Json };
  protocolVersion?: number;
  garbageLines?: number;
  hugeLineBytes?: number;
  tinyLines?: number;
  binaryLine?: boolean;
  exitAtOnce?: number;
  exitOn?: string;
  closeStdout?: boolean;
  authRequired?: boolean;
  capabilities?: Json;
  authMethods?: Json[];
  modes?: { currentModeId: string; availableModes: Json[] };
  configOptions?: Json[];
  models?: Json;
  modeSticks?: boolean;
  takeUp?: 'not_found' | 'replay' | 'replay_late';
  ignoreTerm?: boolean;
}
interface Turn {
  readonly id: unknown;
  readonly sessionId: string;
  readonly cancel: AbortController;
  ignoreCancel: boolean;
}
class AnsweredError extends Error {
  readonly code: number;
  readonly data: Json | undefined;
  constructor(code: number, message: string, data?: Json) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

const script = JSON.parse(process.argv[2] ?? process.env['SCRIPTED_AGENT'] ?? '{}') as Script;
if (script.ignoreTerm === true) process.on('SIGTERM', () => undefined);
if (script.exitAtOnce !== undefined) process.exit(script.exitAtOnce);

const write = (text: string): Promise<void> => new Promise((done) => process.stdout.write(text, () => done()));
const send = (message: Json): Promise<void> => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
process.stdout.on('error', () => script.closeStdout !== true && process.exit(0)); // the client is gone

const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
let asked = 0;
const ask = (method: string, params: Json): Promise<unknown> => {
  asked += 1;
  const id = asked;
  const answer = new Promise<unknown>((resolveAnswer, reject) => waiting.set(id, { resolve: resolveAnswer, reject }));
  void send({ id, method, params });
  return answer;
};
const update = (sessionId: string, fields: Json): Promise<void> =>
  send({ method: 'session/update', params: { sessionId, update: fields } });
const say = (sessionId: string, text: string): Promise<void> =>
  update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });

const usual = [
  { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
  { optionId: 'always', name: 'Always allow', kind: 'allow_always' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
];
const permission = async (turn: Turn, id: string, options: unknown = usual, toolCall: Json = {}): Promise<string> => {
  const answer = (await ask('session/request_permission', {
    sessionId: turn.sessionId,
    toolCall: { toolCallId: id, ...toolCall },
    options,
  })) as { outcome: { outcome: string; optionId?: string } };
  return answer.outcome.optionId ?? answer.outcome.outcome;
};
const tell = async (turn: Turn, id: string, answer: Promise<string>): Promise<void> =>
  say(turn.sessionId, `${id}: ${await answer}\n`);

/** A process that outlives us unless the whole tree is ended; resolves once it is ready to ignore SIGTERM. */
const forkStubborn = async (token: string, env: NodeJS.ProcessEnv | undefined): Promise<void> => {
  const code = `process.on('SIGTERM', () => undefined); setInterval(() => undefined, 1000); process.send?.('ready'); process.disconnect?.()`;
  const child = spawn(process.execPath, ['-e', code, token], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    ...(env === undefined ? {} : { env }),
  });
  await new Promise((ready) => child.once('message', ready));
  child.unref();
};

type End = { stopReason: string } | { error: { code: number; message: string } } | null;
/** Does one directive. What it returns, unless undefined, is how the turn ends. */
const directives: Record<string, (turn: Turn, rest: string, words: string[]) => Promise<End | void> | End> = {
  say: (turn, rest) => say(turn.sessionId, rest),
  think: (turn, rest) =>
    update(turn.sessionId, { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: rest } }),
  stream: async (turn, _rest, [count = '10', ms = '10']) => {
    for (let number = 1; number <= Number(count); number += 1) {
      await sleep(Number(ms), undefined, turn.ignoreCancel ? {} : { signal: turn.cancel.signal });
      await say(turn.sessionId, `c${number} `);
    }
  },
  wait: (turn, rest) => sleep(Number(rest), undefined, turn.ignoreCancel ? {} : { signal: turn.cancel.signal }),
  plan: (turn) =>
    update(turn.sessionId, {
      sessionUpdate: 'plan',
      entries: [
        { content: 'first', priority: 'high', status: 'in_progress' },
        { content: 'second', priority: 'low', status: 'pending' },
      ],
    }),
  usage: (turn) =>
    write(
      `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${turn.sessionId}","update":{"sessionUpdate":"usage_update","used":1200,"size":200000,"cost":{"amount":0.10,"currency":"USD"}}}}\n`,
    ),
  commands: (turn) =>
    update(turn.sessionId, {
      sessionUpdate: 'available_commands_update',
      availableCommands: [{ name: 'go', description: 'Goes', input: { hint: 'where' } }],
    }),
  title: (turn, rest) => update(turn.sessionId, { sessionUpdate: 'session_info_update', title: rest }),
  image: (turn) =>
    update(turn.sessionId, {
      sessionUpdate: 'agent_message_chunk',
      content: { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' },
    }),
  mode: (turn, rest) => update(turn.sessionId, { sessionUpdate: 'current_mode_update', currentModeId: rest }),
  tool: (turn, _rest, [id, ...title]) =>
    update(turn.sessionId, {
      sessionUpdate: 'tool_call',
      toolCallId: id,
      title: title.join(' '),
      kind: 'execute',
      status: 'in_progress',
      rawInput: { command: title.join(' ') },
    }),
  done: (turn, rest) =>
    update(turn.sessionId, { sessionUpdate: 'tool_call_update', toolCallId: rest, status: 'completed' }),
  fail: (turn, rest) =>
    update(turn.sessionId, { sessionUpdate: 'tool_call_update', toolCallId: rest, status: 'failed' }),
  tools: async (turn, _rest, [count = '1', bytes = '100']) => {
    for (let number = 1; number <= Number(count); number += 1) {
      await update(turn.sessionId, {
        sessionUpdate: 'tool_call',
        toolCallId: `t${number}`,
        title: `Tool ${number}`,
        kind: 'execute',
        status: 'in_progress',
      });
      const text = 'x'.repeat(Number(bytes));
      await update(turn.sessionId, {
        sessionUpdate: 'tool_call_update',
        toolCallId: `t${number}`,
        status: 'completed',
        content: [{ type: 'content', content: { type: 'text', text } }],
      });
    }
  },
  permission: (turn, rest) =>
    tell(
      turn,
      rest,
      permission(turn, rest, usual, { title: `Do ${rest}`, kind: 'execute', rawInput: { command: `do ${rest}` } }),
    ),
  permissions: async (turn, rest) => {
    const ids = Array.from({ length: Number(rest) }, (_, index) => `p${index + 1}`);
    for (const id of ids)
      await update(turn.sessionId, {
        sessionUpdate: 'tool_call',
        toolCallId: id,
        title: `Call ${id}`,
        kind: 'edit',
        status: 'pending',
        rawInput: { id },
      });
    await Promise.all(ids.map((id) => tell(turn, id, permission(turn, id))));
  },
  'permission-kind': (turn, _rest, [id = 'x', kind = 'odd']) =>
    tell(
      turn,
      id,
      permission(turn, id, [{ optionId: 'odd', name: 'Something else', kind }, ...usual], { title: 'Odd' }),
    ),
  'permission-null': (turn, rest) => tell(turn, rest, permission(turn, rest, null, { title: 'No options' })),
  edit: async (turn, _rest, [path = '', ...words]) => {
    const id = `edit-${asked + 1}`;
    const newText = words.join(' ');
    const file = resolve(path);
    await update(turn.sessionId, {
      sessionUpdate: 'tool_call',
      toolCallId: id,
      title: `Edit ${path}`,
      kind: 'edit',
      status: 'pending',
      locations: [{ path: file }],
      rawInput: { path: file, content: newText },
      content: [{ type: 'diff', path: file, oldText: null, newText }],
    });
    const allowed = (await permission(turn, id)) === 'yes';
    if (allowed) writeFileSync(file, newText);
    await update(turn.sessionId, {
      sessionUpdate: 'tool_call_update',
      toolCallId: id,
      status: allowed ? 'completed' : 'failed',
    });
    await say(turn.sessionId, allowed ? `wrote ${path}\n` : `did not write ${path}\n`);
  },
  switch: async (turn, rest) => {
    const [, ms = '0', first = '', second = ''] = /^(\d+) (.*) => (.*)$/.exec(rest) ?? [];
    const id = `switch-${asked + 1}`;
    const call = (fields: Json): Promise<void> => update(turn.sessionId, { toolCallId: id, ...fields });
    const input = (command: string): Json => ({ rawInput: { command } });
    await call({ sessionUpdate: 'tool_call', title: first, kind: 'execute', status: 'pending', ...input(first) });
    const answer = permission(turn, id);
    await sleep(Number(ms));
    await call({ sessionUpdate: 'tool_call_update', ...input(second) });
    await tell(turn, id, answer);
  },
  sneak: (_turn, _rest, [path = '', ...words]) => {
    mkdirSync(dirname(resolve(path)), { recursive: true });
    writeFileSync(resolve(path), words.join(' '));
    return Promise.resolve();
  },
  shell: async (turn, rest) => {
    const id = `shell-${asked + 1}`;
    await update(turn.sessionId, {
      sessionUpdate: 'tool_call',
      toolCallId: id,
      title: rest,
      kind: 'execute',
      status: 'pending',
      rawInput: { command: rest },
    });
    const allowed = (await permission(turn, id)) === 'yes';
    const output = allowed ? await runShell(rest) : '';
    await update(turn.sessionId, {
      sessionUpdate: 'tool_call_update',
      toolCallId: id,
      status: allowed ? 'completed' : 'failed',
      content: [{ type: 'content', content: { type: 'text', text: output } }],
      rawOutput: { output },
    });
    await say(turn.sessionId, allowed ? `ran ${rest}\n` : `did not run ${rest}\n`);
  },
  'fs-write': (turn, _rest, [path = '', ...words]) =>
    tellCall(turn, 'fs/write_text_file', { path: resolve(path), content: words.join(' ') }),
  'fs-read': (turn, rest) => tellCall(turn, 'fs/read_text_file', { path: resolve(rest) }),
  run: (turn, _rest, [command = 'true', ...args]) => tellCall(turn, 'terminal/create', { command, args }),
  call: (turn, _rest, [method = 'x/y', ...json]) => tellCall(turn, method, JSON.parse(json.join(' ') || '{}') as Json),
  malformed: (turn) =>
    update(turn.sessionId, { sessionUpdate: 'tool_call', toolCallId: 'bad', options: null, kind: 7 }),
  raw: (turn, rest) => write(`${rest.replaceAll('{{session}}', turn.sessionId)}\n`),
  garbage: (_turn, rest) => write('this is not JSON\n'.repeat(Number(rest))),
  huge: (_turn, rest) => writeHuge(Number(rest)),
  binary: () =>
    new Promise<void>((done) => process.stdout.write(Buffer.from([0x7b, 0xff, 0xfe, 0x7d, 0x0a]), () => done())),
  grandchild: (_turn, rest) => forkStubborn(rest, undefined),
  escape: (_turn, rest) => forkStubborn(rest, { PATH: process.env['PATH'] }),
  env: (turn) => say(turn.sessionId, JSON.stringify(process.env)),
  params: (turn) => say(turn.sessionId, JSON.stringify(openedWith)),
  ls: (turn, rest) => say(turn.sessionId, JSON.stringify(readdirSync(rest))),
  'ignore-cancel': (turn) => {
    turn.ignoreCancel = true;
    return Promise.resolve();
  },
  'close-stdin': () => {
    process.stdin.destroy();
    return Promise.resolve();
  },
  exit: (_turn, rest) => process.exit(Number(rest)),
  kill: (_turn, rest) => {
    process.kill(process.pid, rest as NodeJS.Signals);
    return sleep(10_000);
  },
  stderr: (_turn, rest) => new Promise<void>((done) => process.stderr.write(`${rest}\n`, () => done())),
  late: (turn, _rest, [ms = '10', ...words]) => {
    setTimeout(() => void say(turn.sessionId, words.join(' ')), Number(ms));
    return Promise.resolve();
  },
  stop: (_turn, rest) => ({ stopReason: rest }),
  error: (_turn, _rest, [code = '-32603', ...words]) => ({ error: { code: Number(code), message: words.join(' ') } }),
  never: () => new Promise<void>(() => undefined),
  silent: () => ({ stopReason: 'end_turn' }),
};

const runShell = (command: string): Promise<string> =>
  new Promise((done) => {
    const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.once('close', () => done(output));
  });

const writeHuge = async (bytes: number): Promise<void> => {
  const block = 'x'.repeat(65_536);
  for (let left = bytes; left > 0; left -= block.length) await write(block.slice(0, Math.min(left, block.length)));
  await write('\n');
};

async function tellCall(turn: Turn, method: string, params: Json): Promise<void> {
  try {
    await say(
      turn.sessionId,
      `${method}: ${JSON.stringify(await ask(method, { sessionId: turn.sessionId, ...params }))}\n`,
    );
  } catch (error) {
    await say(
      turn.sessionId,
      `${method}: error ${error instanceof AnsweredError ? error.code : ''} ${(error as Error).message}\n`,
    );
  }
}

const takeTurn = async (turn: Turn, prompt: string): Promise<End> => {
  const found = [...prompt.matchAll(/\[\[([a-z-]+) ?([\s\S]*?)\]\](?!\])/g)];
  if (found.length === 0) await say(turn.sessionId, `You said: ${prompt}`);
  try {
    for (const [, name = '', rest = ''] of found) {
      const directive = directives[name];
      if (directive === undefined) return { error: { code: -32602, message: `unknown directive ${name}` } };
      const work = Promise.resolve(directive(turn, rest, rest.split(' ')));
      const cancelled = new Promise<never>((_, reject) =>
        turn.cancel.signal.addEventListener('abort', () => !turn.ignoreCancel && reject(turn.cancel.signal.reason), {
          once: true,
        }),
      );
      const end = await Promise.race([work, cancelled]);
      if (end !== undefined) return end;
    }
    return { stopReason: 'end_turn' };
  } catch (error) {
    if (turn.cancel.signal.aborted) return { stopReason: 'cancelled' };
    return { error: { code: -32603, message: String(error) } };
  }
};

let sessions = 0;
let openedWith: Json = {};
let signedIn = false;
let turn: Turn | null = null;
const sessionState = (): Json => ({
  ...(script.modes === undefined ? {} : { modes: script.modes }),
  ...(script.configOptions === undefined ? {} : { configOptions: script.configOptions }),
  ...(script.models === undefined ? {} : { models: script.models }),
});

const takeUp = async (method: string, sessionId: string): Promise<Json> => {
  if (script.takeUp === 'not_found') throw new AnsweredError(-32002, 'session not found');
  const replay = async (): Promise<void> => {
    await update(sessionId, { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: 'what was asked' } });
    await update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'what was said' } });
    await update(sessionId, {
      sessionUpdate: 'tool_call',
      toolCallId: 'old',
      title: 'What was done',
      status: 'completed',
    });
  };
  if (script.takeUp === 'replay' && method === 'session/load') await replay();
  if (script.takeUp === 'replay_late') void sleep(50).then(replay);
  return sessionState();
};

const methods: Record<string, (params: Json, id: unknown) => Promise<unknown>> = {
  initialize: async () => {
    if (script.initializeDelayMs !== undefined) await sleep(script.initializeDelayMs);
    if (script.initializeError !== undefined)
      throw new AnsweredError(script.initializeError.code, script.initializeError.message, script.initializeError.data);
    return {
      protocolVersion: script.protocolVersion ?? 1,
      agentInfo: { name: 'scripted', title: 'Scripted agent', version: '0.0.1' },
      agentCapabilities: script.capabilities ?? {
        loadSession: true,
        sessionCapabilities: { resume: {} },
        promptCapabilities: { image: true, embeddedContext: true },
      },
      authMethods: script.authMethods ?? [],
    };
  },
  authenticate: async () => {
    signedIn = true;
    return {};
  },
  'session/new': async () => {
    if (script.authRequired === true && !signedIn) throw new AnsweredError(-32000, 'Authentication required');
    sessions += 1;
    return { sessionId: `scripted-${process.pid}-${sessions}`, ...sessionState() };
  },
  'session/load': (params) => takeUp('session/load', String(params['sessionId'])),
  'session/resume': (params) => takeUp('session/resume', String(params['sessionId'])),
  'session/set_mode': async (params) => {
    if (script.modeSticks === false)
      await update(String(params['sessionId']), { sessionUpdate: 'current_mode_update', currentModeId: 'elsewhere' });
    return {};
  },
  'session/set_config_option': async (params) => {
    const options = (script.configOptions ?? []).map((option) =>
      option['id'] === params['configId'] ? { ...option, currentValue: params['value'] } : option,
    );
    script.configOptions = options;
    return { configOptions: options };
  },
  'session/prompt': async (params, id) => {
    const sessionId = String(params['sessionId']);
    turn = { id, sessionId, cancel: new AbortController(), ignoreCancel: false };
    const text = (params['prompt'] as Json[])
      .map((block) => (block['type'] === 'text' ? block['text'] : `<${String(block['type'])}>`))
      .join(' ');
    const end = await takeTurn(turn, text);
    if (end !== null && 'error' in end) throw new AnsweredError(end.error.code, end.error.message);
    return end;
  },
};

const serve = async (message: Json): Promise<void> => {
  const { id, method, params } = message as { id?: unknown; method: string; params?: Json };
  if (method === script.exitOn) process.exit(1);
  if (/^session\/(?:new|load|resume)$/.test(method)) openedWith = params ?? {};
  if (method === 'session/cancel') return turn?.cancel.abort();
  const handler = methods[method];
  if (id === undefined) return;
  if (handler === undefined) return send({ id, error: { code: -32601, message: `no ${method}` } });
  try {
    await send({ id, result: await handler(params ?? {}, id) });
  } catch (error) {
    await send({
      id,
      error: {
        code: error instanceof AnsweredError ? error.code : -32603,
        message: (error as Error).message,
        ...(error instanceof AnsweredError && error.data !== undefined ? { data: error.data } : {}),
      },
    });
  }
};

const take = (line: string): void => {
  const message = JSON.parse(line) as Json;
  if (typeof message['method'] === 'string') return void serve(message);
  const answer = waiting.get(Number(message['id']));
  waiting.delete(Number(message['id']));
  const error = message['error'] as { code: number; message: string } | undefined;
  if (error === undefined) answer?.resolve(message['result']);
  else answer?.reject(new AnsweredError(error.code, error.message));
};

const main = async (): Promise<void> => {
  if (script.garbageLines !== undefined) await write('this is not JSON\n'.repeat(script.garbageLines));
  if (script.hugeLineBytes !== undefined) await writeHuge(script.hugeLineBytes);
  if (script.tinyLines !== undefined)
    for (let left = script.tinyLines; left > 0; left -= 10_000) await write('x\n'.repeat(Math.min(left, 10_000)));
  if (script.binaryLine === true) await directives['binary']?.({} as Turn, '', []);
  if (script.closeStdout === true) closeSync(1);
  const lines = createInterface({ input: process.stdin });
  lines.on('line', take);
  if (script.ignoreTerm === true || script.closeStdout === true) setInterval(() => undefined, 1000);
  else lines.on('close', () => process.exit(0));
};
void main();
