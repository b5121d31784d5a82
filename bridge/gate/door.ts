/**
 * What happens after a verdict, over HTTP: the launch exchange, and the few routes under base.
 * Nothing here looks at Host, Origin or size again; `judge` did. Called by `gate.ts`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { base64url, z } from '#protocol/schema.ts';
import type { Blobs, ConversationRow, Feed } from '../ledger/contract.ts';
import type { LogLine } from './attachment.ts';
import { answerJson, answerRefusal, BlobDoor } from './blobs.ts';
import { noStore, type Headers } from './headers.ts';
import type { LaunchTokens } from './launch.ts';
import { readBody, refuseRequest, type Allowed } from './listen.ts';
import { ed25519Spki, type SessionLedger, type Sessions } from './sessions.ts';
import type { Tickets } from './tickets.ts';

export interface GateLedger extends SessionLedger {
  readonly bridgeId: string;
  readonly lineage: string;
  readonly read: SessionLedger['read'] & {
    conversation(conversationId: string): Pick<ConversationRow, 'conversationId'> | null;
  };
  readonly blobs: Blobs;
}
const launchRequest = z.strictObject({ token: base64url(64), publicKey: base64url(128) });
const noContent = (response: ServerResponse, headers: Headers): void =>
  void response.writeHead(204, { ...headers, ...noStore }).end();

/** What the browser says it is: shown to the operator as inert text. */
const clientOf = (request: IncomingMessage): string =>
  (request.headers['user-agent'] ?? 'unknown').replace(/[^\x20-\x7e]/g, '').slice(0, 200);

const parseJson = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined; // refused by the schema
  }
};

export interface DoorParts {
  readonly ledger: Pick<GateLedger, 'bridgeId' | 'lineage' | 'read' | 'blobs'>;
  readonly feed: Pick<Feed, 'invalidate'>;
  readonly log: (line: LogLine) => void;
  readonly sessions: Sessions;
  readonly tokens: LaunchTokens;
  readonly tickets: Tickets;
  readonly headers: Headers;
  /** Ends the sockets of these sessions. */
  readonly retire: (sessionIds: readonly string[]) => void;
}

export class Door {
  readonly #parts: DoorParts;
  readonly #blobs: BlobDoor;

  constructor(parts: DoorParts) {
    this.#parts = parts;
    const { ledger, headers } = parts;
    this.#blobs = new BlobDoor({
      blobs: ledger.blobs,
      hasConversation: (id) => ledger.read.conversation(id) !== null,
      headers,
    });
  }

  /** Answers, or rejects with what is no Refusal. */
  async answer(allowed: Allowed, request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (allowed.kind === 'launch') await this.#launch(request, response);
      else if (allowed.kind === 'base') await this.#below(allowed, request, response);
      else throw new Error('answered before the door');
    } catch (error) {
      if (!(error instanceof Refusal) || response.headersSent) throw error;
      this.#parts.log({
        event: 'refused',
        reason: error.code,
        route: allowed.kind === 'base' ? allowed.route : allowed.kind,
      });
      answerRefusal(response, this.#parts.headers, error);
    }
  }

  async #launch(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request, response, limits.launchBodyBytes);
    const parsed = z.safeParse(launchRequest, body === null ? undefined : parseJson(body));
    const key = parsed.success ? ed25519Spki(parsed.data.publicKey) : null;
    if (!parsed.success || key === null) return this.#refuseLaunch(response, 400, 'launch_body');
    // Taken before anything is awaited: of a hundred at once, one finds it.
    if (!this.#parts.tokens.take(parsed.data.token))
      return this.#refuseLaunch(response, 401, this.#parts.tokens.isClosed ? 'launch_closed' : 'launch_token');
    const { row, cookie } = await this.#parts.sessions.mint(key, clientOf(request));
    this.#parts.log({ event: 'session', session: row.sessionId });
    this.#parts.feed.invalidate('sessions');
    response.setHeader('Set-Cookie', this.#parts.sessions.setCookie(cookie));
    answerJson(response, this.#parts.headers, 200, {
      base: this.#parts.sessions.base,
      bridgeId: this.#parts.ledger.bridgeId,
      lineage: this.#parts.ledger.lineage,
    });
  }

  #refuseLaunch(response: ServerResponse, status: 400 | 401, reason: string): void {
    this.#parts.log({ event: 'refused', reason, status });
    answerRefusal(response, this.#parts.headers, new Refusal(status === 400 ? 'bad_request' : 'unauthorized'), status);
  }

  async #below(
    allowed: Extract<Allowed, { kind: 'base' }>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const found = this.#parts.sessions.find(allowed.cookies);
    if (found.state !== 'live') {
      const status = found.state === 'revoked' ? 410 : 401;
      this.#parts.log({ event: 'refused', reason: `session_${found.state}`, status, route: allowed.route });
      return refuseRequest(response, status, { ...this.#parts.headers, ...noStore });
    }
    const { sessionId } = found.row;
    if (allowed.route === 'session') {
      await this.#parts.sessions.touch(sessionId);
      return noContent(response, this.#parts.headers);
    }
    if (allowed.route === 'logout' || allowed.route === 'forget')
      return this.#end(allowed.route, sessionId, request, response);
    const ticket = request.headers['x-ticket'];
    if (typeof ticket !== 'string' || !this.#parts.tickets.take(ticket, sessionId, allowed.rest)) {
      this.#parts.log({ event: 'refused', reason: 'ticket', status: 401, route: allowed.route });
      return answerRefusal(response, this.#parts.headers, new Refusal('unauthorized'), 401);
    }
    if (allowed.route === 'blob.put') return this.#blobs.put(allowed.rest, request, response);
    return this.#blobs.get(allowed.rest, response);
  }

  async #end(
    route: 'logout' | 'forget',
    sessionId: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const body = await readBody(request, response, limits.postBodyBytes);
    if (!z.safeParse(z.strictObject({}), body === null ? undefined : parseJson(body)).success)
      throw new Refusal('bad_request');
    this.#parts.retire(await this.#parts.sessions.revoke(sessionId, 'logout'));
    response.setHeader('Set-Cookie', this.#parts.sessions.expireCookie());
    // Never "cookies": that would delete those of other local tools.
    if (route === 'forget') response.setHeader('Clear-Site-Data', '"storage"');
    noContent(response, this.#parts.headers);
  }
}
