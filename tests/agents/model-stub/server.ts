/**
 * A model for real agents without network or account: one loopback server for four APIs, driven by directives in the
 * prompt (see script.ts). It keeps what it was asked, so that a test can say what the agent told its model.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { chat } from './chat.ts';
import { recordOf, type Format } from './format.ts';
import { gemini } from './gemini.ts';
import { messages } from './messages.ts';
import { responses } from './responses.ts';
import { decide, words, type Answer, type Asked } from './script.ts';

export interface Seen {
  readonly path: string;
  /** Which API, or null for a request that is none of them. */
  readonly format: string | null;
  readonly asked: Asked | null;
  readonly answer: Answer | null;
}
export interface ModelStub {
  /** `http://127.0.0.1:PORT`, without a slash at its end. */
  readonly url: string;
  readonly seen: readonly Seen[];
  close(): Promise<void>;
}

const formats: readonly Format[] = [gemini, chat, responses, messages];
/** What agents ask before they work: a health check, and which models there are. */
const models = {
  object: 'list',
  data: ['mock-model', 'gpt-5.5'].map((id) => ({ id, object: 'model', type: 'model', display_name: id })),
};
const maxBodyBytes = 32 * 1024 * 1024;
const slowPauseMs = 50;

export const startModelStub = async (): Promise<ModelStub> => {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    answerTo(request, response, seen).catch((error: unknown) =>
      response.destroy(error instanceof Error ? error : undefined),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen, close };
};

const answerTo = async (request: IncomingMessage, response: ServerResponse, seen: Seen[]): Promise<void> => {
  const { pathname: path } = new URL(request.url ?? '/', 'http://stub');
  const format = formats.find((each) => each.matches(request.method ?? '', path));
  const body = recordOf(await readJson(request));
  if (format === undefined) {
    seen.push({ path, format: null, asked: null, answer: null });
    if (path === '/v1/models') return json(response, 200, models);
    return json(response, request.method === 'HEAD' ? 200 : 404, {
      error: { message: 'not found', type: 'not_found' },
    });
  }
  const asked = format.ask(body);
  const answer = decide(asked);
  seen.push({ path, format: format.name, asked, answer });
  if (answer.kind === 'error')
    return json(response, answer.status, {
      error: { code: answer.status, message: 'as the prompt asked', type: 'api_error', status: 'INTERNAL' },
    });
  if (answer.kind !== 'slow' && !format.isStream(path, body)) return json(response, 200, format.document(answer, body));
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.write(format.open(body));
  if (answer.kind === 'slow') return speakSlowly(response, format);
  for (const word of words(answer.text)) response.write(format.word(word));
  response.end(format.close(answer));
};

const speakSlowly = async (response: ServerResponse, format: Format): Promise<void> => {
  let gone = false;
  response.once('close', () => {
    gone = true;
  });
  for (let word = 1; !gone; word += 1) {
    response.write(format.word(`${word} `));
    await pause(slowPauseMs, undefined, { ref: false });
  }
};

const json = (response: ServerResponse, status: number, value: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
};

const readJson = async (request: IncomingMessage): Promise<unknown> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxBodyBytes) throw new Error('a request beyond 32 MiB');
    pieces.push(piece);
  }
  const text = Buffer.concat(pieces).toString('utf8');
  return text === '' ? {} : JSON.parse(text);
};
