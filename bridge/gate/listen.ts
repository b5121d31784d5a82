/**
 * node:http on 127.0.0.1, hardened (L-10, L-13). Every request, upgrade and protocol error passes `judge` or is refused
 * here; nothing thrown behind it reaches Node. Connections are counted by ourselves. Called by `gate.ts`.
 */
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { limits } from '#protocol/limits.ts';
import type { LogLine } from './attachment.ts';
import { bareAnswer, noStore, plain, type Headers } from './headers.ts';
import { judge, type Ground, type Verdict } from './judge.ts';

// As an import it would be read through a facade that loads all of undici: 60 ms of every start (measured, Node 24.21).
const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http');

export type Allowed = Exclude<Verdict, { kind: 'refuse' }>;
export interface ListenDeps {
  readonly port: number;
  /** Asked for every head: the segment may be rotated. */
  readonly ground: () => Ground;
  readonly headers: Headers;
  readonly log: (line: LogLine) => void;
  /** Must answer. A rejection is answered 500 and logged. */
  readonly answer: (allowed: Allowed, request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** An upgrade to the app's socket; call `keep` to hold the connection, or return a status to refuse with. */
  readonly upgrade: (allowed: Allowed, request: IncomingMessage, socket: Duplex, head: Buffer) => number | null;
}

/** How much a connection may claim its place: nothing judged yet or idle, being served, proven by a session. */
type Standing = 0 | 1 | 2;

/** At most `limits.connections`: the one with the least claim, oldest first, yields to a newcomer. */
export class Connections {
  readonly #standing = new Map<Socket, Standing>();

  admit(socket: Socket): void {
    if (this.#standing.size >= limits.connections) this.#evict();
    if (this.#standing.size >= limits.connections) return void socket.destroy();
    this.#standing.set(socket, 0);
    socket.once('close', () => this.#standing.delete(socket));
  }

  /** Re-inserting makes it the youngest of its standing. */
  rank(socket: Socket, standing: Standing): void {
    if (!this.#standing.delete(socket)) return;
    this.#standing.set(socket, standing);
  }

  get size(): number {
    return this.#standing.size;
  }

  destroyAll(): void {
    for (const socket of this.#standing.keys()) socket.destroy();
  }

  #evict(): void {
    for (const standing of [0, 1]) {
      for (const [socket, has] of this.#standing) {
        if (has !== standing) continue;
        this.#standing.delete(socket);
        socket.destroy();
        return;
      }
    }
  }
}

export interface Listener {
  readonly server: Server;
  readonly port: number;
  readonly connections: Connections;
}

const statusOfProtocolError = (code: unknown): number =>
  code === 'HPE_HEADER_OVERFLOW' ? 431 : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;

/** Answers and closes. No body of the request is read. */
export const refuseRequest = (response: ServerResponse, status: number, headers: Headers): void => {
  const body = `${STATUS_CODES[status] ?? 'Refused'}\n`;
  response
    .writeHead(status, { ...headers, ...plain, 'Content-Length': Buffer.byteLength(body), Connection: 'close' })
    .end(body);
};

/** The same on a socket that has left HTTP's handling, and the end of it. */
export const endBare = (socket: Duplex, status: number, headers: Headers): void => {
  socket.on('error', () => socket.destroy());
  if (socket.writable) socket.end(bareAnswer(status, headers), () => socket.destroy());
  else socket.destroy();
};

/** @throws the listen error, EADDRINUSE among them; nothing is left open then. */
export const listenHttp = async (deps: ListenDeps): Promise<Listener> => {
  const connections = new Connections();
  const server = createServer({
    headersTimeout: limits.headersMs,
    requestTimeout: limits.httpRequestMs,
    connectionsCheckingInterval: limits.headersMs / 2, // it wakes a bridge at rest
    keepAliveTimeout: limits.headersMs,
    maxHeaderSize: limits.headBytes,
    insecureHTTPParser: false,
    // An absent Host is ours to answer, with our status and headers.
    requireHostHeader: false,
  });
  server.maxHeadersCount = 0; // Node would drop the surplus in silence; the judge counts and the size bounds
  server.timeout = limits.httpRequestMs; // silence in the middle of an answer

  const judged = (request: IncomingMessage, isUpgrade: boolean): Verdict => {
    const { method = '', url = '', httpVersion, rawHeaders } = request;
    const verdict = judge({ method, url, httpVersion, rawHeaders, upgrade: isUpgrade }, deps.ground());
    if (verdict.kind === 'refuse') deps.log({ event: 'refused', reason: verdict.reason, status: verdict.status });
    else connections.rank(request.socket, verdict.kind === 'base' ? 2 : 1);
    return verdict;
  };
  const failed = (error: unknown): void =>
    deps.log({ event: 'internal', where: 'http', name: error instanceof Error ? error.name : typeof error });

  const answering = new WeakSet<Duplex>();
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    answering.add(request.socket);
    response.on('error', () => undefined); // the peer left; 'close' is what counts
    response.once('close', () => {
      answering.delete(request.socket);
      connections.rank(request.socket, 0);
    });
    const verdict = judged(request, false);
    if (verdict.kind === 'refuse') return refuseRequest(response, verdict.status, deps.headers);
    deps.answer(verdict, request, response).catch((error: unknown) => {
      failed(error);
      if (response.headersSent) response.destroy();
      else refuseRequest(response, 500, { ...deps.headers, ...noStore });
    });
  };
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => socket.destroy());
    try {
      const verdict = judged(request, true);
      const status = verdict.kind === 'refuse' ? verdict.status : deps.upgrade(verdict, request, socket, head);
      if (status !== null) endBare(socket, status, deps.headers);
    } catch (error) {
      failed(error);
      endBare(socket, 500, deps.headers);
    }
  };

  server.on('connection', (socket) => connections.admit(socket));
  server.on('request', onRequest);
  server.on('checkContinue', onRequest); // 100 is written when a body is really wanted
  server.on('checkExpectation', onRequest); // refused by the judge
  server.on('upgrade', onUpgrade);
  server.on('connect', (request, socket) => {
    judged(request, false);
    endBare(socket, 405, deps.headers);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const status = statusOfProtocolError(error.code);
    deps.log({ event: 'refused', reason: 'protocol', status, code: String(error.code ?? '').slice(0, 64) });
    // Junk behind a request that is being answered: a second answer on the same connection would be taken for ours.
    if (answering.has(socket)) (socket as Socket).destroySoon();
    else endBare(socket, status, deps.headers);
  });

  server.listen({ host: '127.0.0.1', port: deps.port, exclusive: true });
  await once(server, 'listening');
  server.on('error', failed);
  return { server, port: (server.address() as AddressInfo).port, connections };
};

/** The body of a judged request, at most `maxBytes`; null when it was longer or broke off. */
export const readBody = async (
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
): Promise<Buffer | null> => {
  if (request.headers.expect !== undefined) response.writeContinue();
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of request as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > maxBytes) return null;
      parts.push(part);
    }
  } catch {
    return null; // broke off; there is nobody left to answer
  }
  return Buffer.concat(parts, bytes);
};
