/**
 * A token bucket: how fast a client may send (limits.inbound*). Pure but for its own two numbers; the same sums as the
 * gate's, begun a little lower, since frames that waited on the way arrive closer together than they were sent.
 */
export class Pace {
  readonly #perMs: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  /** `perWindow` in `windowMs` for ever, and at most `burst` at once. */
  constructor(bound: { perWindow: number; windowMs: number; burst: number }, now: number) {
    this.#perMs = bound.perWindow / bound.windowMs;
    this.#burst = Math.max(1, bound.burst);
    this.#tokens = this.#burst;
    this.#at = now;
  }

  /** Takes one token and returns 0, or returns the milliseconds to wait and takes none. */
  take(now: number): number {
    this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(0, now - this.#at) * this.#perMs);
    this.#at = now;
    if (this.#tokens < 1) return Math.ceil((1 - this.#tokens) / this.#perMs);
    this.#tokens -= 1;
    return 0;
  }
}
