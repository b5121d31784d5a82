/**
 * Sessions and the installation's path segment (L-02, L-03), kept in the ledger. Only the hash of a cookie is stored.
 * The segment is a secret: it is never logged or shown. Called by `gate.ts`.
 */
import { createHash, createPublicKey, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import type { SessionSummary } from '#protocol/methods/connection.ts';
import { limits } from '#protocol/limits.ts';
import type { SessionRow, Tx } from '../ledger/contract.ts';
import { cookieName } from './judge.ts';

/** What becomes of sessions, for the receipt in the same transaction. */
export type SessionNews =
  | {
      readonly what: 'created';
      readonly sessionId: string;
      readonly keyId: string;
      readonly client: string;
      readonly at: number;
    }
  | {
      readonly what: 'revoked';
      readonly sessionIds: readonly string[];
      readonly why: 'logout' | 'operator' | 'port_taken' | 'rotated' | 'replaced';
      readonly at: number;
    };

export interface SessionLedger {
  readonly read: {
    meta(name: string): string | null;
    sessions(): SessionRow[];
    sessionByCookie(cookieSha256: string): SessionRow | null;
  };
  commit<T>(work: (tx: Tx) => T): Promise<T>;
}
export interface SessionsDeps {
  readonly ledger: SessionLedger;
  readonly now: () => number;
  readonly onSession: (tx: Tx, news: SessionNews) => void;
}
export type Found =
  { readonly state: 'live'; readonly row: SessionRow } | { readonly state: 'unknown' | 'expired' | 'revoked' };

const sha256 = (value: string | Uint8Array): string => createHash('sha256').update(value).digest('hex');
const segmentName = 'segment';
const newSegment = (): string => randomBytes(limits.segmentBytes).toString('base64url');

/** DER of an Ed25519 public key exactly as Node itself would write it, or null. */
export const ed25519Spki = (encoded: string): Uint8Array | null => {
  const bytes = Buffer.from(encoded, 'base64url');
  try {
    const key = createPublicKey({ key: bytes, format: 'der', type: 'spki' });
    const again = key.export({ format: 'der', type: 'spki' });
    return key.asymmetricKeyType === 'ed25519' && bytes.equals(again) ? new Uint8Array(again) : null;
  } catch {
    return null; // not a key: the caller refuses it
  }
};

export class Sessions {
  readonly #deps: SessionsDeps;
  #segment: string;
  #port = 0;

  private constructor(deps: SessionsDeps, segment: string) {
    this.#deps = deps;
    this.#segment = segment;
  }

  /** Reads the segment of this installation, or makes it. */
  static async open(deps: SessionsDeps): Promise<Sessions> {
    const kept = deps.ledger.read.meta(segmentName);
    if (kept !== null) return new Sessions(deps, kept);
    const segment = newSegment();
    await deps.ledger.commit((tx) => tx.setMeta(segmentName, segment));
    return new Sessions(deps, segment);
  }

  /** Sessions are valid only on the port they were made on. */
  listensOn(port: number): void {
    this.#port = port;
  }

  get base(): string {
    return `/b/${this.#segment}/`;
  }

  /** The first live session among the candidates; otherwise what is known of the best of them. */
  find(cookies: readonly string[]): Found {
    let best: Found = { state: 'unknown' };
    for (const cookie of cookies) {
      const hash = sha256(cookie);
      const row = this.#deps.ledger.read.sessionByCookie(hash);
      if (row === null || !timingSafeEqual(Buffer.from(row.cookieSha256), Buffer.from(hash))) continue;
      const state = this.#stateOf(row);
      if (state === 'live') return { state, row };
      if (best.state === 'unknown') best = { state };
    }
    return best;
  }

  /** Whether it still is; asked again while a socket stays open. */
  isLive(sessionId: string): boolean {
    return this.#deps.ledger.read
      .sessions()
      .some((row) => row.sessionId === sessionId && this.#stateOf(row) === 'live');
  }

  #stateOf(row: SessionRow): 'live' | 'unknown' | 'expired' | 'revoked' {
    const now = this.#deps.now();
    if (row.revoked) return 'revoked';
    if (row.port !== this.#port) return 'unknown';
    return now < row.expiresAt && now < row.seenAt + limits.sessionIdleMs ? 'live' : 'expired';
  }

  /** Notes that the session is in use; durable at most once in `sessionTouchMs`. */
  async touch(sessionId: string): Promise<void> {
    const now = this.#deps.now();
    const row = this.#deps.ledger.read.sessions().find((one) => one.sessionId === sessionId);
    if (row === undefined || now - row.seenAt < limits.sessionTouchMs) return;
    await this.#deps.ledger.commit((tx) => tx.touchSession(sessionId, now));
  }

  /** Always a new session, whatever cookie came along. Beyond the bound the longest unseen one ends. */
  async mint(publicKeySpki: Uint8Array, client: string): Promise<{ row: SessionRow; cookie: string }> {
    const cookie = randomBytes(limits.cookieBytes).toString('base64url');
    const at = this.#deps.now();
    // The form every receipt names keys in; the page and the verifier compute the same.
    const keyId = `SHA256:${createHash('sha256').update(publicKeySpki).digest('base64url')}`;
    const row: SessionRow = {
      sessionId: randomUUID(),
      cookieSha256: sha256(cookie),
      publicKeySpki,
      keyId,
      client,
      port: this.#port,
      createdAt: at,
      seenAt: at,
      expiresAt: at + limits.sessionAbsoluteMs,
      revoked: false,
    };
    await this.#deps.ledger.commit((tx) => {
      const live = tx
        .sessions()
        .filter((one) => !one.revoked)
        .sort((a, b) => b.seenAt - a.seenAt);
      const ended = live.slice(limits.sessions - 1).map((one) => one.sessionId);
      for (const sessionId of ended) tx.revokeSessions(sessionId);
      if (ended.length > 0) this.#deps.onSession(tx, { what: 'revoked', sessionIds: ended, why: 'replaced', at });
      tx.putSession(row);
      this.#deps.onSession(tx, { what: 'created', sessionId: row.sessionId, keyId, client, at });
    });
    return { row, cookie };
  }

  /** One, or all. Resolves with the ids that were live, once that is durable. */
  async revoke(sessionId: string | null, why: 'logout' | 'operator'): Promise<readonly string[]> {
    return this.#deps.ledger.commit((tx) => this.#revokeIn(tx, sessionId, why));
  }

  /** Drops every session and changes the segment: whoever saw the old ones learns nothing more (L-03). */
  async rotate(why: 'port_taken' | 'rotated'): Promise<readonly string[]> {
    const segment = newSegment();
    const ended = await this.#deps.ledger.commit((tx) => {
      tx.setMeta(segmentName, segment);
      return this.#revokeIn(tx, null, why);
    });
    this.#segment = segment;
    return ended;
  }

  #revokeIn(
    tx: Tx,
    sessionId: string | null,
    why: 'logout' | 'operator' | 'port_taken' | 'rotated',
  ): readonly string[] {
    const rows = tx.sessions().filter((row) => !row.revoked && (sessionId === null || row.sessionId === sessionId));
    const sessionIds = rows.map((row) => row.sessionId);
    if (sessionIds.length === 0) return sessionIds;
    tx.revokeSessions(sessionId);
    this.#deps.onSession(tx, { what: 'revoked', sessionIds, why, at: this.#deps.now() });
    return sessionIds;
  }

  list(current: string | null): SessionSummary[] {
    return this.#deps.ledger.read
      .sessions()
      .filter((row) => this.#stateOf(row) === 'live')
      .sort((a, b) => b.seenAt - a.seenAt)
      .slice(0, limits.sessions)
      .map(({ sessionId, client, createdAt, seenAt, expiresAt }) => ({
        sessionId,
        client,
        createdAt,
        seenAt,
        expiresAt,
        current: sessionId === current,
      }));
  }

  setCookie(value: string): string {
    return `${cookieName}=${value}; HttpOnly; SameSite=Strict; Path=${this.base}; Max-Age=${Math.floor(limits.sessionAbsoluteMs / 1000)}`;
  }

  expireCookie(): string {
    return `${cookieName}=; HttpOnly; SameSite=Strict; Path=${this.base}; Max-Age=0`;
  }
}
