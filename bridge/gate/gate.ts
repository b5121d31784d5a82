/**
 * The gate put together: verified assets, sessions, the HTTP listener, the app's socket and the control socket.
 * It reaches the rooms only through `dispatch` and `feed`, handed in by main, which alone calls this.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { rmSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { closeCodes, Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { SessionSummary } from '#protocol/methods/connection.ts';
import { base64url, z } from '#protocol/schema.ts';
import type { Blobs, ConversationRow, Feed, SessionRow, Tx } from '../ledger/contract.ts';
import { loadAssets, type Assets } from './assets.ts';
import { serveAttachment, type AttachmentDeps, type LogLine, type Who } from './attachment.ts';
import { answerJson, answerRefusal, BlobDoor } from './blobs.ts';
import type { Dispatch } from './contract.ts';
import { lineChannel, listenControl } from './control.ts';
import { noStore, securityHeaders, type Headers } from './headers.ts';
import { holderOf, PortTaken } from './holder.ts';
import { originOf } from './judge.ts';
import { LaunchTokens } from './launch.ts';
import { listenHttp, readBody, refuseRequest, type Allowed, type Listener } from './listen.ts';
import { Roster } from './roster.ts';
import { ed25519Spki, Sessions, type SessionLedger, type SessionNews } from './sessions.ts';
import { makeSocketServer, socketChannel } from './socket.ts';
import { Tickets } from './tickets.ts';

export interface GateLedger extends SessionLedger {
  readonly bridgeId: string;
  readonly lineage: string;
  readonly read: SessionLedger['read'] & { conversation(conversationId: string): Pick<ConversationRow, 'conversationId'> | null };
  readonly blobs: Blobs;
}
export interface GateDeps {
  /** 0 takes a free one. */
  readonly port: number;
  readonly controlSocketPath: string;
  /** `<runtime>/peers`: where control clients prove their pid. Made 0700 when absent. */
  readonly peersDirectory: string;
  /** The built app, with its `assets.json`. */
  readonly assetsDirectory: string;
  readonly ledger: GateLedger;
  readonly dispatch: Dispatch;
  readonly feed: Pick<Feed, 'attach' | 'detach' | 'ack' | 'broadcast' | 'subscribed' | 'invalidate'>;
  /** Runs in the transaction that stores it: sign the session's receipt there. */
  readonly onSession: (tx: Tx, news: SessionNews) => void;
  readonly insideAgent: (pid: number) => boolean;
  readonly bootId: string;
  readonly log: (line: LogLine) => void;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
  /** Milliseconds that only grow; `performance.now` when absent. */
  readonly monotonic?: (() => number) | undefined;
  readonly checkAnswers?: boolean | undefined;
  readonly timing?: AttachmentDeps['timing'];
}
export interface Gate {
  readonly port: number;
  readonly origin: string;
  /** Source revision the app was built from. */
  readonly revision: string;
  readonly attachments: number;
  /** What `serveAttachment` needs for one more, in-process client. */
  readonly attachmentDeps: AttachmentDeps;
  /** A new one-use URL, 60 s. */
  launchUrl(): { readonly url: string; readonly expiresAt: number };
  /** `current` marks the session that asks. */
  sessions(current?: string): SessionSummary[];
  /** One session, or all; their sockets end with 1008 after the answers on their way. Resolves with how many were live. */
  revoke(sessionId: string | null): Promise<number>;
  /** All sessions and the path segment. */
  rotate(): Promise<number>;
  /** Tells every client 1001, closes both listeners, removes the control socket. Idempotent. */
  close(): Promise<void>;
}

const launchRequest = z.strictObject({ token: base64url(64), publicKey: base64url(128) });
const noContent = (response: ServerResponse, headers: Headers): void => void response.writeHead(204, { ...headers, ...noStore }).end();

/** What the browser says it is: shown to the operator as inert text. */
const clientOf = (request: IncomingMessage): string => (request.headers['user-agent'] ?? 'unknown').replace(/[^\x20-\x7e]/g, '').slice(0, 200);

const parseJson = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined; // refused by the schema
  }
};

/** The HTTP half: what happens after a verdict. */
class Door {
  readonly #deps: GateDeps;
  readonly #assets: Assets;
  readonly #sessions: Sessions;
  readonly #tokens: LaunchTokens;
  readonly #tickets: Tickets;
  readonly #headers: Headers;
  readonly #blobs: BlobDoor;
  readonly #retire: (sessionIds: readonly string[]) => void;

  constructor(parts: { deps: GateDeps; assets: Assets; sessions: Sessions; tokens: LaunchTokens; tickets: Tickets; headers: Headers; retire: (sessionIds: readonly string[]) => void }) {
    this.#deps = parts.deps;
    this.#assets = parts.assets;
    this.#sessions = parts.sessions;
    this.#tokens = parts.tokens;
    this.#tickets = parts.tickets;
    this.#headers = parts.headers;
    this.#retire = parts.retire;
    const { ledger } = parts.deps;
    this.#blobs = new BlobDoor({ blobs: ledger.blobs, hasConversation: (id) => ledger.read.conversation(id) !== null, headers: parts.headers });
  }

  async answer(allowed: Allowed, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (allowed.kind === 'up') return noContent(response, this.#headers);
    if (allowed.kind === 'asset') return this.#asset(allowed.url, request, response);
    try {
      if (allowed.kind === 'launch') await this.#launch(request, response);
      else await this.#below(allowed, request, response);
    } catch (error) {
      if (!(error instanceof Refusal) || response.headersSent) throw error;
      this.#deps.log({ event: 'refused', reason: error.code, route: allowed.kind === 'base' ? allowed.route : allowed.kind });
      answerRefusal(response, this.#headers, error);
    }
  }

  #asset(url: string, request: IncomingMessage, response: ServerResponse): void {
    const encodings = String(request.headers['accept-encoding'] ?? '').split(',');
    const br = encodings.some((one) => one.trim().split(';')[0] === 'br');
    const answer = this.#assets.answer(url, { br, tag: request.headers['if-none-match'] });
    if (answer.status === 404) this.#deps.log({ event: 'refused', reason: 'path', status: 404 });
    response.writeHead(answer.status, { ...this.#headers, ...answer.headers, ...(answer.status === 304 ? {} : { 'Content-Length': Buffer.byteLength(answer.body) }) }).end(answer.body);
  }

  async #launch(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request, response, limits.launchBodyBytes);
    const parsed = z.safeParse(launchRequest, body === null ? undefined : parseJson(body));
    const key = parsed.success ? ed25519Spki(parsed.data.publicKey) : null;
    if (!parsed.success || key === null) return this.#refuseLaunch(response, 400, 'launch_body');
    // Taken before anything is awaited: of a hundred at once, one finds it.
    if (!this.#tokens.take(parsed.data.token)) return this.#refuseLaunch(response, 401, this.#tokens.isClosed ? 'launch_closed' : 'launch_token');
    const { row, cookie } = await this.#sessions.mint(key, clientOf(request));
    this.#deps.log({ event: 'session', session: row.sessionId });
    this.#deps.feed.invalidate('sessions');
    response.setHeader('Set-Cookie', this.#sessions.setCookie(cookie));
    answerJson(response, this.#headers, 200, { base: this.#sessions.base, bridgeId: this.#deps.ledger.bridgeId, lineage: this.#deps.ledger.lineage });
  }

  #refuseLaunch(response: ServerResponse, status: 400 | 401, reason: string): void {
    this.#deps.log({ event: 'refused', reason, status });
    answerRefusal(response, this.#headers, new Refusal(status === 400 ? 'bad_request' : 'unauthorized'), status);
  }

  async #below(allowed: Extract<Allowed, { kind: 'base' }>, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const found = this.#sessions.find(allowed.cookies);
    if (found.state !== 'live') {
      const status = found.state === 'revoked' ? 410 : 401;
      this.#deps.log({ event: 'refused', reason: `session_${found.state}`, status, route: allowed.route });
      return refuseRequest(response, status, { ...this.#headers, ...noStore });
    }
    const { sessionId } = found.row;
    if (allowed.route === 'session') {
      await this.#sessions.touch(sessionId);
      return noContent(response, this.#headers);
    }
    if (allowed.route === 'logout' || allowed.route === 'forget') return this.#end(allowed.route, sessionId, request, response);
    const ticket = request.headers['x-ticket'];
    if (typeof ticket !== 'string' || !this.#tickets.take(ticket, sessionId, allowed.rest)) {
      this.#deps.log({ event: 'refused', reason: 'ticket', status: 401, route: allowed.route });
      return answerRefusal(response, this.#headers, new Refusal('unauthorized'), 401);
    }
    if (allowed.route === 'blob.put') return this.#blobs.put(allowed.rest, request, response);
    return this.#blobs.get(allowed.rest, response);
  }

  async #end(route: 'logout' | 'forget', sessionId: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request, response, limits.postBodyBytes);
    if (!z.safeParse(z.strictObject({}), body === null ? undefined : parseJson(body)).success) throw new Refusal('bad_request');
    this.#retire(await this.#sessions.revoke(sessionId, 'logout'));
    response.setHeader('Set-Cookie', this.#sessions.expireCookie());
    // Never "cookies": that would delete those of other local tools.
    if (route === 'forget') response.setHeader('Clear-Site-Data', '"storage"');
    noContent(response, this.#headers);
  }
}

const openListener = async (deps: GateDeps, sessions: Sessions, parts: Omit<Parameters<typeof listenHttp>[0], 'port' | 'log'>): Promise<Listener> => {
  try {
    return await listenHttp({ ...parts, port: deps.port, log: deps.log });
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'EADDRINUSE') throw error;
    // Whoever held our origin may have been given cookie and path by a page of ours (L-03).
    await sessions.rotate('port_taken');
    throw new PortTaken(deps.port, holderOf(deps.port));
  }
};

/**
 * Verifies the app, listens on 127.0.0.1 and on the control socket. The caller holds the lock of this state.
 * @throws AssetsUnusable, PortTaken (all sessions dropped, segment rotated), or the system's error
 */
export const startGate = async (deps: GateDeps): Promise<Gate> => {
  const monotonic = deps.monotonic ?? ((): number => performance.now());
  const assets = await loadAssets(deps.assetsDirectory);
  const sessions = await Sessions.open(deps);
  const headers = securityHeaders(assets.scriptHashes);
  const tokens = new LaunchTokens(monotonic);
  const tickets = new Tickets(monotonic);
  const roster = new Roster(deps.feed);
  const { bridgeId, lineage } = deps.ledger;
  const { bootId, dispatch, feed, log, now, checkAnswers, timing } = deps;
  const attachmentDeps: AttachmentDeps = { bridgeId, lineage, bootId, dispatch, feed, roster, log, now, checkAnswers, timing };
  const sockets = makeSocketServer();
  const open = new Set<{ destroy(): void }>();
  const retire = (sessionIds: readonly string[]): void => {
    for (const one of roster.all()) if (one.sessionId !== null && sessionIds.includes(one.sessionId)) one.retire(closeCodes.signedOut, 'signed out');
    feed.invalidate('sessions');
  };
  const door = new Door({ deps, assets, sessions, tokens, tickets, headers, retire });
  let port = deps.port;

  const browserOf = (row: SessionRow): Who => ({
    kind: 'browser',
    sessionId: row.sessionId,
    keyId: row.keyId,
    publicKeySpki: row.publicKeySpki,
    origin: originOf(port),
    path: `${sessions.base}socket`,
    isLive: () => {
      const isLive = sessions.isLive(row.sessionId);
      if (isLive) sessions.touch(row.sessionId).catch(() => log({ event: 'session_not_touched', session: row.sessionId }));
      return isLive;
    },
    // A page may name the path with or without our secret prefix.
    ticket: (path) => tickets.create(row.sessionId, path.startsWith(sessions.base) ? path.slice(sessions.base.length) : path),
  });
  const upgrade = (allowed: Allowed, request: IncomingMessage, socket: Duplex, head: Buffer): number | null => {
    if (allowed.kind !== 'base') return 404;
    const found = sessions.find(allowed.cookies);
    if (found.state !== 'live') {
      log({ event: 'refused', reason: `session_${found.state}`, route: 'socket' });
      return found.state === 'revoked' ? 410 : 401;
    }
    let isUpgraded = false;
    const onBad = (_error: Error, bad: Duplex): void => {
      if (bad !== socket) return;
      log({ event: 'refused', reason: 'websocket_head', status: 400, route: 'socket' });
      isUpgraded = false;
    };
    sockets.once('wsClientError', onBad);
    sockets.handleUpgrade(request, socket, head, (ws) => {
      isUpgraded = true;
      open.add(socket);
      socket.once('close', () => open.delete(socket));
      serveAttachment(socketChannel(ws), browserOf(found.row), attachmentDeps);
    });
    sockets.off('wsClientError', onBad);
    return isUpgraded ? null : 400;
  };
  sockets.on('headers', (lines) => lines.push(...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)));

  const listener = await openListener(deps, sessions, {
    ground: () => ({ port, base: sessions.base }),
    headers,
    answer: (allowed, request, response) => door.answer(allowed, request, response),
    upgrade,
  });
  port = listener.port;
  sessions.listensOn(port);
  const serveControl = (socket: Socket): void => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    serveAttachment(lineChannel(socket), { kind: 'control', peersDirectory: deps.peersDirectory, insideAgent: deps.insideAgent }, attachmentDeps);
  };
  let control: Server;
  try {
    control = await listenControl(deps.controlSocketPath, deps.peersDirectory, serveControl);
  } catch (error) {
    listener.server.close();
    throw error;
  }
  log({ event: 'listening', port, revision: assets.revision });

  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    const ended = [listener.server, control].map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
    rmSync(deps.controlSocketPath, { force: true });
    for (const one of roster.all()) one.close(closeCodes.stopping, 'the bridge is stopping');
    const cutOff = setTimeout(() => {
      for (const socket of open) socket.destroy();
      listener.connections.destroyAll();
    }, limits.retireMs);
    listener.server.closeIdleConnections();
    await Promise.all(ended);
    clearTimeout(cutOff);
    log({ event: 'closed', port });
  };
  return {
    port,
    origin: originOf(port),
    revision: assets.revision,
    get attachments() {
      return roster.size;
    },
    attachmentDeps,
    launchUrl: () => ({ url: `${originOf(port)}/#launch=${tokens.mint()}`, expiresAt: now() + limits.launchTokenMs }),
    sessions: (current) => sessions.list(current ?? null),
    async revoke(sessionId) {
      const ended = await sessions.revoke(sessionId, 'operator');
      retire(ended);
      return ended.length;
    },
    async rotate() {
      const ended = await sessions.rotate('rotated');
      retire(ended);
      return ended.length;
    },
    close: () => (closing ??= close()),
  };
};
