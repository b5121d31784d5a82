/**
 * ACP over an agent's stdin and stdout. The SDK correlates requests, cancels and types what we serve; three things it
 * cannot do come before it: garbage lines are dropped and counted instead of answered, every raw frame is teed, and
 * `session/update` and `session/request_permission` are handed over unparsed, because the SDK's own schemas strip
 * unknown fields and answer an unknown option kind with an error. The exact text of a frame is found by the identity of
 * its params, so what an operator approves is what was received.
 * Used by running.ts. Throws nothing into the bridge: an agent that misbehaves ends up with `broken` and fails alone.
 */
import type { Readable, Writable } from 'node:stream';
import {
  client,
  PROTOCOL_VERSION,
  RequestError,
  type AnyMessage,
  type ReadTextFileRequest,
  type WriteTextFileRequest,
  type CreateTerminalRequest,
} from '@agentclientprotocol/sdk';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { textAt } from './jsontext.ts';
import { LineReader } from './lines.ts';
import { Ring } from './ring.ts';

/** Params of a frame as received, and the exact text of any member of them. */
export interface Received {
  readonly params: unknown;
  textAt(path: readonly string[]): string | undefined;
}

export interface TerminalId {
  readonly terminalId: string;
}

/** What is served to the agent. `files` and `terminals` are null where they were not advertised (G-25). */
export interface Serves {
  update(received: Received): void;
  permission(received: Received, signal: AbortSignal): Promise<unknown>;
  readonly files: {
    read(request: ReadTextFileRequest): Promise<{ content: string }>;
    write(request: WriteTextFileRequest, signal: AbortSignal): Promise<void>;
  } | null;
  readonly terminals: {
    create(request: CreateTerminalRequest, signal: AbortSignal): Promise<TerminalId>;
    output(request: TerminalId): Promise<{
      output: string;
      truncated: boolean;
      exitStatus: { exitCode: number | null; signal: string | null } | null;
    }>;
    waitForExit(request: TerminalId): Promise<{ exitCode: number | null; signal: string | null }>;
    kill(request: TerminalId): Promise<void>;
    release(request: TerminalId): Promise<void>;
  } | null;
  /** A request that was not advertised or is not known; it is answered -32601. */
  refused(method: string): void;
  /** A line that is not a JSON-RPC object. Called for the first of each kind; the rest are only counted. */
  garbage(why: 'not_json' | 'too_long' | 'not_utf8', head: string): void;
  /** The agent cannot be talked to any more; the caller ends it. One sentence. */
  broken(sentence: string): void;
}

export interface Connection {
  /** @throws RequestError as the agent answered; Refusal agent_protocol_error after `timeoutMs`, agent_gone when it closed. */
  request(method: string, params: unknown, options?: { timeoutMs?: number; what?: string }): Promise<unknown>;
  notify(method: string, params: unknown): void;
  readonly dropped: { lines: number; tooLong: number };
  /** Raw frames, newest last, each prefixed by `<` (from the agent) or `>`. */
  readonly frames: Ring;
  close(): void;
}

export { PROTOCOL_VERSION, RequestError };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The SDK answers what is neither with an error into the agent's stdin; such a line is garbage to us. */
const isMessage = (value: unknown): value is AnyMessage =>
  isObject(value) &&
  (typeof value['method'] === 'string' || ('id' in value && ('result' in value || 'error' in value)));

/**
 * The SDK parses every `session/update` by its own schema before any handler and throws away what it does not know.
 * Under a name of ours it is passed through, in order with everything else.
 */
const updateMethod = '_countersign/update';
const unparsed = (message: AnyMessage): AnyMessage =>
  'method' in message && message.method === 'session/update' ? { ...message, method: updateMethod } : message;

/** Public sentences cross to the agent; causes do not. `not_found` keeps its own code, agents look for it. */
const toRequestError = (error: unknown): unknown => {
  if (!(error instanceof Refusal)) return error;
  return new RequestError(error.code === 'not_found' ? -32002 : -32603, error.message, { code: error.code });
};
const serve = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw toRequestError(error);
  }
};

interface Incoming {
  readonly messages: ReadableStream<AnyMessage>;
  received(params: unknown): Received;
}

const readMessages = (
  stdout: Readable,
  serves: Serves,
  frames: Ring,
  dropped: { lines: number; tooLong: number },
): Incoming => {
  // By identity: the SDK passes the params object through to handlers whose parser returns what it is given.
  const lineOf = new WeakMap<object, string>();
  const told = new Set<string>();
  let tooMany = false;
  let closed = false;
  const drop = (why: 'not_json' | 'too_long' | 'not_utf8', head: string): void => {
    dropped.lines += 1;
    if (why === 'too_long') dropped.tooLong += 1;
    if (!told.has(why)) serves.garbage(why, head);
    told.add(why);
    if (dropped.lines <= limits.agentGarbageLines || tooMany) return;
    tooMany = true;
    serves.broken(`The agent wrote more than ${limits.agentGarbageLines} lines that are not ACP.`);
  };
  const messages = new ReadableStream<AnyMessage>(
    {
      start: (controller) => {
        const reader = new LineReader(
          {
            dropped: drop,
            line: (text) => {
              if (tooMany) return;
              let value: unknown;
              try {
                value = JSON.parse(text);
              } catch {
                return drop('not_json', text.slice(0, 256));
              }
              if (!isMessage(value)) return drop('not_json', text.slice(0, 256));
              frames.push(`< ${text}`);
              if ('params' in value && isObject(value.params)) lineOf.set(value.params, text);
              if (!closed) controller.enqueue(unparsed(value));
            },
          },
          limits.agentLineBytes,
        );
        stdout.on('data', (chunk: Buffer) => {
          if (tooMany) return;
          reader.push(chunk);
          if (!closed && (controller.desiredSize ?? 0) <= 0) stdout.pause();
        });
        stdout.on('error', () => undefined); // 'close' follows
        stdout.once('close', () => {
          reader.end();
          if (!closed) controller.close();
          closed = true;
        });
      },
      pull: () => void stdout.resume(),
      // The SDK has let go; what still comes is read and dropped, so that the agent does not block on a full pipe.
      cancel: () => {
        closed = true;
        stdout.resume();
      },
    },
    { highWaterMark: 64 },
  );
  return {
    messages,
    received: (params) => {
      const line = isObject(params) ? lineOf.get(params) : undefined;
      return { params, textAt: (path) => (line === undefined ? undefined : textAt(line, ['params', ...path])) };
    },
  };
};

const writeMessages = (stdin: Writable, serves: Serves, frames: Ring): WritableStream<AnyMessage> =>
  new WritableStream<AnyMessage>({
    write: (message) => {
      const text = JSON.stringify(message);
      frames.push(`> ${text}`);
      if (stdin.destroyed || stdin.writableEnded) return;
      // An agent that asks and asks but never reads must not grow the bridge.
      if (stdin.writableLength > limits.agentLineBytes) serves.broken('The agent does not read what it is sent.');
      else stdin.write(`${text}\n`);
    },
  });

const whole = (params: unknown): unknown => params;

/** Speaks over the two streams until stdout closes. */
export const connect = (wire: { stdin: Writable; stdout: Readable }, serves: Serves): Connection => {
  const frames = new Ring(limits.agentTeeBytes);
  const dropped = { lines: 0, tooLong: 0 };
  const incoming = readMessages(wire.stdout, serves, frames, dropped);
  const refuse = (method: string): never => {
    serves.refused(method);
    throw RequestError.methodNotFound(method);
  };
  const { files, terminals } = serves;
  const app = client({ name: 'countersign' })
    .onNotification(updateMethod, whole, ({ params }) => serves.update(incoming.received(params)))
    .onRequest('session/request_permission', whole, ({ params, signal }) =>
      serve(() => serves.permission(incoming.received(params), signal)),
    )
    .onNotification('*', () => undefined) // unknown ones stay in the tee
    .onRequest('*', ({ method }) => refuse(method));
  if (files !== null) {
    app.onRequest('fs/read_text_file', ({ params }) => serve(() => files.read(params)));
    app.onRequest('fs/write_text_file', ({ params, signal }) =>
      serve(async () => (await files.write(params, signal), {})),
    );
  }
  if (terminals !== null) {
    app.onRequest('terminal/create', ({ params, signal }) => serve(() => terminals.create(params, signal)));
    app.onRequest('terminal/output', ({ params }) => serve(() => terminals.output(params)));
    app.onRequest('terminal/wait_for_exit', ({ params }) => serve(() => terminals.waitForExit(params)));
    app.onRequest('terminal/kill', ({ params }) => serve(async () => (await terminals.kill(params), {})));
    app.onRequest('terminal/release', ({ params }) => serve(async () => (await terminals.release(params), {})));
  }
  const connection = app.connect({ readable: incoming.messages, writable: writeMessages(wire.stdin, serves, frames) });

  return {
    dropped,
    frames,
    close: () => connection.close(),
    notify: (method, params) => void connection.agent.notify(method, params).catch(() => undefined), // closed: the exit tells it
    request: async (method, params, options = {}) => {
      const { timeoutMs, what } = options;
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        if (timeoutMs === undefined) return;
        const sentence = `The agent did not answer within ${Math.round(timeoutMs / 1000)} s while ${what ?? method} was awaited.`;
        timer = setTimeout(() => reject(new Refusal('agent_protocol_error', { message: sentence })), timeoutMs);
      });
      try {
        return await Promise.race([connection.agent.request<unknown>(method, params), late]);
      } catch (error) {
        if (error instanceof RequestError || error instanceof Refusal) throw error;
        throw new Refusal('agent_gone', { cause: error });
      } finally {
        clearTimeout(timer);
      }
    },
  };
};
