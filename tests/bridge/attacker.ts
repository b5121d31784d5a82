/**
 * What an agent that turned on us would try, run by a scripted agent from inside its containment: `node attacker.ts
 * PLAN`. PLAN is a file {directories, origin, main, state, approval, routes, report}; what came of it goes to `report`.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { wire } from '#protocol/wire.ts';
import { connectControl } from '../../bridge/cli/control.ts';
import type { Directories } from '../../bridge/ledger/paths.ts';

export interface Plan {
  readonly directories: Directories;
  readonly origin: string;
  /** Of the bridge. */
  readonly pid: number;
  readonly main: string;
  readonly approval: { readonly approvalId: string; readonly digest: string };
  readonly report: string;
  /** How many base paths are guessed. */
  readonly guesses: number;
}
export interface Report {
  /** Whatever could be read below the bridge's own directories. */
  readonly files: string[];
  readonly socket: string;
  /** Method → code, or what it answered. */
  readonly control: Record<string, string>;
  /** What the socket said to a claim about who we are. */
  readonly claims: { readonly honest: string; readonly none: string; readonly init: string; readonly bridge: string };
  readonly cli: Record<string, { code: number | null; stdout: string; stderr: string }>;
  /** Answers of HTTP by "METHOD path": status. */
  readonly http: Record<string, number>;
  /** Bodies and headers of every answer, whole. */
  readonly heard: string;
  readonly statuses: number[];
  /** Environment and arguments of every process that can be seen, as one text; descriptors of our own line. */
  readonly processes: string;
  readonly descriptors: Record<string, string[]>;
}

const plan = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as Plan;

const readable = (directory: string): string[] => {
  try {
    return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) return readable(path);
      if (!entry.isFile()) return [path];
      readFileSync(path);
      return [path];
    });
  } catch {
    return []; // not there, or not for us
  }
};

const reach = (path: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve('connected');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
  });

const askControl = async (): Promise<Record<string, string>> => {
  const answers: Record<string, string> = {};
  const control = await connectControl(plan.directories).catch((error: unknown) => {
    answers['connect'] = error instanceof Error ? error.message : String(error);
    return null;
  });
  if (control === null) return answers;
  const { client } = control;
  const { approvalId, digest } = plan.approval;
  const tries: Record<string, () => Promise<unknown>> = {
    'approval.decide': () =>
      client.change('approval.decide', { approvalId, digest, optionId: 'yes', value: 'allow', yes: true }),
    'bridge.launch': () => client.call('bridge.launch', {}),
    'bridge.revoke': () => client.change('bridge.revoke', { sessionId: null }),
    'bridge.info': () => client.call('bridge.info', {}),
    'conversation.list': () => client.call('conversation.list', {}),
    'bridge.stop': () => client.call('bridge.stop', {}),
  };
  for (const [method, ask] of Object.entries(tries)) {
    answers[method] = await ask().then(
      (answer) => `answered ${JSON.stringify(answer)}`,
      (error: unknown) => (error instanceof Refusal ? error.code : String(error)),
    );
  }
  control.close();
  return answers;
};

/** Frame by frame, as no client of ours would: `pid` is what it claims to be. Everything heard, until it is quiet. */
const claim = (pid: number | null): Promise<string> =>
  new Promise((resolve) => {
    let heard = '';
    const socket = connect(plan.directories.controlSocket);
    const end = (): void => {
      socket.destroy();
      resolve(heard);
    };
    const send = (id: number, method: string, params: object, key?: string): void =>
      void socket.write(
        `${JSON.stringify({ kind: 'request', id, method, params, ...(key === undefined ? {} : { key }) })}\n`,
      );
    socket.on('error', end);
    socket.on('close', end);
    socket.on('data', (chunk: Buffer) => {
      const isFirst = heard === '';
      heard += chunk.toString();
      if (heard.includes('"id":3')) end();
      if (!isFirst) return;
      const client = { kind: 'cli', version: '1', instanceId: randomUUID() };
      send(1, 'connection.initialize', { wire, client, capabilities: [], ...(pid === null ? {} : { peer: { pid } }) });
      const { approvalId, digest } = plan.approval;
      send(2, 'approval.decide', { approvalId, digest, optionId: 'yes', value: 'allow', yes: true }, randomUUID());
      send(3, 'bridge.launch', {});
    });
  });

const runCli = (): Report['cli'] => {
  const { state } = plan.directories;
  const tries = {
    allow: ['approvals', 'allow', plan.approval.approvalId, '--yes'],
    open: ['open'],
    revoke: ['revoke', '--all'],
    stop: ['stop'],
  };
  return Object.fromEntries(
    Object.entries(tries).map(([name, args]) => {
      const ran = spawnSync(process.execPath, [plan.main, ...args, '--state', state], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      return [name, { code: ran.status, stdout: ran.stdout, stderr: ran.stderr }];
    }),
  );
};

const http = async (): Promise<Pick<Report, 'http' | 'heard' | 'statuses'>> => {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const answers: Record<string, number> = {};
  const statuses: number[] = [];
  let heard = '';
  const ask = (method: string, path: string, body?: string): Promise<number> =>
    new Promise((resolve) => {
      const headers = {
        Origin: plan.origin,
        'Content-Type': 'application/json',
        ...(body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
      };
      const cookie = { Cookie: `cs=${randomBytes(32).toString('base64url')}` };
      const sent = request(
        `${plan.origin}${path}`,
        { method, agent, headers: { ...headers, ...cookie } },
        (response) => {
          heard += JSON.stringify(response.headers);
          response.on('data', (part: Buffer) => (heard += part.toString('latin1')));
          response.on('end', () => resolve(response.statusCode ?? 0));
          response.on('error', () => resolve(-1));
        },
      );
      sent.on('error', () => resolve(-1));
      sent.end(body);
    });
  const note = async (method: string, path: string, body?: string): Promise<void> => {
    answers[`${method} ${path}`] = await ask(method, path, body);
  };
  for (const path of [
    '/up',
    '/session',
    '/socket',
    '/blob',
    '/logout',
    '/forget',
    '/b/',
    '/b',
    '/api',
    '/assets.json',
    '/.well-known/',
    '/launch',
    '/../private/ledger.db',
    '/%2e%2e/private/ledger.db',
  ])
    await note('GET', path);
  const publicKey = randomBytes(44).toString('base64url');
  await note('POST', '/launch', JSON.stringify({ token: '', publicKey }));
  await note('POST', '/logout', '{}');
  await note('POST', '/', '{}');
  await note('PUT', '/blob?conversation=x', '{}');
  for (let guess = 0; guess < 40; guess += 1)
    statuses.push(
      await ask('POST', '/launch', JSON.stringify({ token: randomBytes(32).toString('base64url'), publicKey })),
    );
  const guessed = async (share: number): Promise<void> => {
    for (let guess = 0; guess < share; guess += 1)
      statuses.push(await ask('GET', `/b/${randomBytes(16).toString('base64url')}/session`));
  };
  await Promise.all(Array.from({ length: 4 }, () => guessed(plan.guesses / 4)));
  agent.destroy();
  return { http: answers, statuses, heard };
};

const pids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
const ofProcess = (pid: number, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
};
const parentOf = (pid: number): number => Number(/^PPid:\s+(\d+)$/m.exec(ofProcess(pid, 'status'))?.[1] ?? 0);

/** From us up to the agent that ran the command, and what it holds open. */
const line = (): Record<string, string[]> => {
  const found: Record<string, string[]> = {};
  for (let pid = process.ppid; pid > 1; pid = parentOf(pid)) {
    const name = ofProcess(pid, 'cmdline')
      .split('\0')
      .find((word) => word.endsWith('scripted/agent.ts'));
    if (name === undefined) continue;
    const held = readdirSync(`/proc/${pid}/fd`).filter(
      (fd) => statSync(`/proc/${pid}/fd/${fd}`, { throwIfNoEntry: false }) !== undefined,
    );
    found[String(pid)] = held.map((fd) => `${fd} ${readlinkSync(`/proc/${pid}/fd/${fd}`)}`);
    break;
  }
  return found;
};

const { directories } = plan;
const report: Report = {
  files: [directories.private, directories.runtime].flatMap(readable),
  socket: await reach(directories.controlSocket),
  control: await askControl(),
  claims: {
    honest: await claim(process.pid),
    none: await claim(null),
    init: await claim(1),
    bridge: await claim(plan.pid),
  },
  cli: runCli(),
  ...(await http()),
  processes: pids()
    .map((pid) => `${ofProcess(pid, 'cmdline')}\n${ofProcess(pid, 'environ')}`)
    .join('\n'),
  descriptors: line(),
};
writeFileSync(plan.report, JSON.stringify(report));
