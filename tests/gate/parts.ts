/** Real listeners, sockets and files around a gate; the ledger alone is a small object in memory. */
import { createHash, generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto';
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { WebSocket } from 'ws';
import { Refusal } from '#protocol/errors.ts';
import { socketProofText } from '#protocol/frames.ts';
import { wire } from '#protocol/wire.ts';
import type { Call } from '../../bridge/gate/contract.ts';
import type { LogLine } from '../../bridge/gate/attachment.ts';
import { startGate, type Gate, type GateDeps, type GateLedger } from '../../bridge/gate/gate.ts';
import type { SessionNews } from '../../bridge/gate/sessions.ts';
import type { SessionRow, Sink, Tx } from '../../bridge/ledger/contract.ts';
import type { Terminals } from '../../bridge/terminals/contract.ts';

export const shell =
  '<!doctype html><html><body><script>window.boot = 1;</script><script type="module" src="/_app/immutable/start.js"></script></body></html>';

const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

/** A tiny built app with its table; `change` edits the table before it is written. */
export const buildAssets = async (
  directory: string,
  change: (table: Record<string, unknown>) => void = () => undefined,
): Promise<void> => {
  const sources: Record<string, [string, string]> = {
    '/index.html': [shell, 'text/html; charset=utf-8'],
    '/_app/immutable/start.js': ['export const started = true;\n'.repeat(40), 'text/javascript; charset=utf-8'],
    '/service-worker.js': ['self.skipWaiting;\n', 'text/javascript; charset=utf-8'],
    '/manifest.webmanifest': ['{"start_url":"/"}\n', 'application/manifest+json'],
  };
  const files: Record<string, unknown> = {};
  for (const [path, [text, type]] of Object.entries(sources)) {
    const bytes = Buffer.from(text);
    const br = brotliCompressSync(bytes);
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), bytes);
    await writeFile(join(directory, `${path}.br`), br);
    files[path] = { sha256: sha256(bytes), bytes: bytes.length, type, br: { sha256: sha256(br), bytes: br.length } };
  }
  const table = { wire, revision: 'test', routes: ['/', '/c/[id]', '/rules'], files };
  change(table);
  await writeFile(join(directory, 'assets.json'), JSON.stringify(table));
};

export interface MemoryLedger extends GateLedger {
  readonly rows: Map<string, SessionRow>;
  readonly kept: Map<string, string>;
}

/** What the gate uses of a ledger. One object may serve several gates after one another, as a state directory would. */
export const memoryLedger = (directory: string): MemoryLedger => {
  const rows = new Map<string, SessionRow>();
  const kept = new Map<string, string>();
  const blobs = new Map<string, { path: string; bytes: number; mime: string; name: string | null }>();
  const read = {
    meta: (name: string) => kept.get(name) ?? null,
    sessions: () => [...rows.values()],
    sessionByCookie: (hash: string) => [...rows.values()].find((row) => row.cookieSha256 === hash) ?? null,
    conversation: (conversationId: string) => (conversationId === 'c1' ? { conversationId } : null),
  };
  const tx = {
    ...read,
    setMeta: (name: string, value: string) => void kept.set(name, value),
    putSession: (row: SessionRow) => void rows.set(row.sessionId, row),
    touchSession: (sessionId: string, seenAt: number) => {
      const row = rows.get(sessionId);
      if (row !== undefined) rows.set(sessionId, { ...row, seenAt });
    },
    revokeSessions: (sessionId: string | null) => {
      const live = [...rows.values()].filter(
        (row) => !row.revoked && (sessionId === null || row.sessionId === sessionId),
      );
      for (const row of live) rows.set(row.sessionId, { ...row, revoked: true });
      return live.length;
    },
  } as unknown as Tx;
  return {
    rows,
    kept,
    bridgeId: 'bridge-1',
    lineage: 'lineage-1',
    read,
    async commit(work) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      return work(tx);
    },
    blobs: {
      async put(conversationId, bytes, about) {
        const hash = sha256(bytes);
        const path = join(directory, hash);
        writeFileSync(path, bytes, { mode: 0o600 });
        blobs.set(`${conversationId}/${hash}`, {
          path,
          bytes: bytes.length,
          mime: about.mime,
          name: about.name ?? null,
        });
        return {
          sha256: hash,
          bytes: bytes.length,
          mime: about.mime,
          ...(about.name === undefined ? {} : { name: about.name }),
        };
      },
      read: (conversationId, hash) => blobs.get(`${conversationId}/${hash}`) ?? null,
    },
  };
};

export class Ground {
  directory = '';
  ledger!: MemoryLedger;
  gate!: Gate;
  readonly lines: LogLine[] = [];
  readonly news: SessionNews[] = [];
  readonly sinks = new Map<string, Sink>();
  readonly calls: Call[] = [];
  acks: unknown[] = [];
  wall = Date.now();
  clock = 0;
  inside = new Set<number>();
  /** What the terminals answer; replaced by tests. */
  attachTerminal: Terminals['attach'] = () => Promise.resolve(null);
  /** What the rooms answer; replaced by tests. */
  dispatch: (call: Call) => Promise<Record<string, unknown>> = (call) =>
    call.method === 'conversation.list'
      ? Promise.resolve({ conversations: [], more: false })
      : Promise.reject(new Refusal('forbidden'));
  readonly #ending: (() => void)[] = [];

  async prepare(): Promise<this> {
    this.directory = await mkdtemp(join(tmpdir(), 'gate-'));
    this.ledger = memoryLedger(this.directory);
    await buildAssets(join(this.directory, 'build'));
    return this;
  }

  deps(change: Partial<GateDeps> = {}): GateDeps {
    return {
      port: 0,
      controlSocketPath: join(this.directory, 'control.sock'),
      peersDirectory: join(this.directory, 'peers'),
      assetsDirectory: join(this.directory, 'build'),
      ledger: this.ledger,
      dispatch: (call) => {
        this.calls.push(call);
        return this.dispatch(call);
      },
      feed: {
        attach: (sink) => void this.sinks.set(sink.attachmentId, sink),
        detach: (id) => void this.sinks.delete(id),
        ack: (sub, attachmentId, seq) => {
          this.acks.push([sub, attachmentId, seq]);
          return sub === 'c1';
        },
        broadcast: (frame) => {
          const encoded = JSON.stringify(frame);
          for (const sink of this.sinks.values()) sink.deliver(encoded, Buffer.byteLength(encoded));
        },
        subscribed: () => ['c1'],
        invalidate: () => undefined,
      },
      terminals: { attach: (...asked) => this.attachTerminal(...asked) },
      onSession: (_tx, news) => void this.news.push(news),
      insideAgent: (pid) => this.inside.has(pid),
      bootId: randomUUID(),
      log: (line) => void this.lines.push(line),
      now: () => this.wall,
      monotonic: () => this.clock,
      checkAnswers: true,
      ...change,
    };
  }

  async start(change: Partial<GateDeps> = {}): Promise<Gate> {
    this.gate = await startGate(this.deps(change));
    return this.gate;
  }

  onEnd(run: () => void): void {
    this.#ending.push(run);
  }

  async end(): Promise<void> {
    for (const run of this.#ending) run();
    await this.gate?.close();
    await rm(this.directory, { recursive: true, force: true });
  }

  get token(): string {
    return new URL(this.gate.launchUrl().url).hash.slice('#launch='.length);
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One request over a fresh connection, with exactly the headers given beside Host and Content-Length. */
export const ask = (
  gate: Gate,
  method: string,
  path: string,
  options: { headers?: Record<string, string | string[]>; body?: string | Buffer } = {},
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const body = options.body;
    const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
    const sent = httpRequest(
      { host: '127.0.0.1', port: gate.port, method, path, agent: false, headers: { ...length, ...options.headers } },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(parts).toString('utf8'),
          }),
        );
        response.on('error', reject);
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });

/** Bytes in, all bytes out until the bridge closes. */
export const raw = (port: number, bytes: string | Buffer, endAfterMs = 2000): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const parts: Buffer[] = [];
    const done = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(Buffer.concat(parts).toString('latin1'));
    };
    const timer = setTimeout(done, endAfterMs);
    socket.on('data', (part: Buffer) => parts.push(part));
    socket.on('error', done);
    socket.on('close', done);
    socket.write(bytes);
  });

export const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);

export interface PageKey {
  readonly privateKey: KeyObject;
  readonly publicKey: string;
}
export const pageKey = (): PageKey => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return { privateKey, publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64url') };
};

export interface SignedIn {
  readonly key: PageKey;
  readonly base: string;
  /** `cs=…` as the browser sends it. */
  readonly cookie: string;
  readonly setCookie: string;
}

export const exchange = (
  gate: Gate,
  token: string,
  publicKey: string,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  ask(gate, 'POST', '/launch', {
    headers: { Origin: gate.origin, 'Content-Type': 'application/json', 'User-Agent': 'Test browser', ...headers },
    body: JSON.stringify({ token, publicKey }),
  });

export const signIn = async (ground: Ground): Promise<SignedIn> => {
  const key = pageKey();
  const answer = await exchange(ground.gate, ground.token, key.publicKey);
  if (answer.status !== 200) throw new Error(`launch answered ${answer.status}`);
  const setCookie = answer.headers['set-cookie']?.[0] ?? '';
  return {
    key,
    base: (JSON.parse(answer.body) as { base: string }).base,
    cookie: setCookie.split(';')[0] ?? '',
    setCookie,
  };
};

export interface Frame {
  readonly kind: string;
  readonly id?: number;
  readonly method?: string;
  readonly result?: Record<string, unknown>;
  readonly error?: { code: string; message: string; retryable: boolean; details?: Record<string, unknown> };
  readonly [name: string]: unknown;
}

/** A client by hand, over either transport: frames in order, and how it ended. */
export class Client {
  readonly frames: Frame[] = [];
  readonly #send: (text: string) => void;
  readonly end: () => void;
  closed: { code: number; reason: string } | null = null;
  #wake: (() => void)[] = [];
  #id = 0;

  constructor(send: (text: string) => void, end: () => void) {
    this.#send = send;
    this.end = end;
  }

  got(text: string): void {
    this.frames.push(JSON.parse(text) as Frame);
    this.#stir();
  }
  ended(code: number, reason: string): void {
    this.closed = { code, reason };
    this.#stir();
  }
  #stir(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  send(frame: unknown): void {
    this.#send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  }
  async until<T>(look: () => T | undefined | null | false): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined && found !== null && found !== false) return found;
      if (this.closed !== null) throw new Error(`closed ${this.closed.code} ${this.closed.reason}`);
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }
  async close(): Promise<{ code: number; reason: string }> {
    while (this.closed === null) await new Promise<void>((resolve) => this.#wake.push(resolve));
    return this.closed;
  }
  async hello(): Promise<{ bootId: string; nonce: string; wire: number }> {
    return (await this.until(() => this.frames.find((frame) => frame.kind === 'hello'))) as unknown as {
      bootId: string;
      nonce: string;
      wire: number;
    };
  }
  async answer(id: number): Promise<Frame> {
    return this.until(() =>
      this.frames.find((frame) => frame.id === id && (frame.kind === 'result' || frame.kind === 'error')),
    );
  }
  call(method: string, params: Record<string, unknown> = {}, key?: string): Promise<Frame> {
    this.#id += 1;
    this.send({ kind: 'request', id: this.#id, method, params, ...(key === undefined ? {} : { key }) });
    return this.answer(this.#id);
  }
}

export const openSocket = async (
  ground: Ground,
  who: { base: string; cookie: string },
  headers: Record<string, string> = {},
): Promise<{ client: Client; socket: WebSocket }> => {
  const socket = new WebSocket(`ws://127.0.0.1:${ground.gate.port}${who.base}socket`, {
    headers: { Origin: ground.gate.origin, Cookie: who.cookie, ...headers },
    perMessageDeflate: false,
  });
  const client = new Client(
    (text) => socket.send(text),
    () => socket.close(),
  );
  socket.on('message', (data) => client.got(String(data)));
  socket.on('close', (code, reason) => client.ended(code, String(reason)));
  ground.onEnd(() => socket.terminate());
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
    socket.once('unexpected-response', (_request, response) => reject(new Error(`status ${response.statusCode}`)));
  });
  socket.on('error', () => undefined);
  return { client, socket };
};

export const initializeParams = (proof: Record<string, unknown> = {}): Record<string, unknown> => ({
  wire,
  client: { kind: 'app', version: 'test', instanceId: randomUUID() },
  capabilities: [],
  ...proof,
});

export const proofOf = (ground: Ground, who: SignedIn, hello: { bootId: string; nonce: string }): string =>
  sign(
    null,
    Buffer.from(
      socketProofText({
        origin: ground.gate.origin,
        path: `${who.base}socket`,
        bootId: hello.bootId,
        nonce: hello.nonce,
      }),
    ),
    who.key.privateKey,
  ).toString('base64url');

/** A page that signed in and proved possession. */
export const attach = async (
  ground: Ground,
  who: SignedIn,
): Promise<{ client: Client; socket: WebSocket; result: Record<string, unknown> }> => {
  const { client, socket } = await openSocket(ground, who);
  const proof = proofOf(ground, who, await client.hello());
  const answer = await client.call('connection.initialize', initializeParams({ proof }));
  if (answer.result === undefined) throw new Error(answer.error?.code);
  return { client, socket, result: answer.result };
};

export const openControl = async (ground: Ground): Promise<{ client: Client; socket: Socket }> => {
  const socket = connect(join(ground.directory, 'control.sock'));
  const client = new Client(
    (text) => socket.write(`${text}\n`),
    () => socket.end(),
  );
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) client.got(line);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => client.ended(0, ''));
  ground.onEnd(() => socket.destroy());
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  return { client, socket };
};

export const sourceOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
