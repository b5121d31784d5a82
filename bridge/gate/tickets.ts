/**
 * Tickets (D-01, L-04): one use, 10 s, for one path under base and one session. Made on a socket that proved
 * possession, so that a stolen cookie alone opens no blob. Called by `attachment.ts` and `blobs.ts`.
 */
import { createHash, randomBytes } from 'node:crypto';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';

/** As a browser would send it: it encodes what the page did not. Compared only, never opened. */
const asSent = (path: string): string => {
  const url = new URL(`http://127.0.0.1/${path}`);
  return url.pathname.slice(1) + url.search;
};
const digest = (ticket: string): string => createHash('sha256').update(ticket).digest('hex');

export class Tickets {
  readonly #monotonic: () => number;
  readonly #alive = new Map<string, { readonly sessionId: string; readonly path: string; readonly until: number }>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** `path` is below base and is compared whole, without its query when it was made without one. @throws Refusal rate_limited */
  create(sessionId: string, path: string): string {
    const now = this.#monotonic();
    for (const [hash, one] of this.#alive) if (one.until <= now) this.#alive.delete(hash);
    if (this.#alive.size >= limits.tickets) throw new Refusal('rate_limited');
    const ticket = randomBytes(limits.ticketBytes).toString('base64url');
    this.#alive.set(digest(ticket), { sessionId, path: asSent(path), until: now + limits.ticketMs });
    return ticket;
  }

  /** Uses it up, also when it does not fit. */
  take(ticket: string, sessionId: string, rest: string): boolean {
    const hash = digest(ticket);
    const one = this.#alive.get(hash);
    this.#alive.delete(hash);
    if (one === undefined || one.until <= this.#monotonic() || one.sessionId !== sessionId) return false;
    return one.path === asSent(one.path.includes('?') ? rest : (rest.split('?', 1)[0] ?? ''));
  }
}
