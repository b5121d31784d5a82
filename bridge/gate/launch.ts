/**
 * Launch tokens (L-01, L-02): made by the operator's terminal alone, one use, 60 s by the monotonic clock. Only hashes
 * are kept, in memory; they do not outlive the process. Called by `gate.ts`.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { limits } from '#protocol/limits.ts';

/** Tokens alive at once: a terminal makes one at a time, a minute holds few. */
const aliveAtOnce = 16;

const digest = (token: string): Buffer => createHash('sha256').update(token).digest();

export class LaunchTokens {
  readonly #monotonic: () => number;
  #alive: { readonly hash: Buffer; readonly until: number }[] = [];
  #wrong = 0;

  /** `monotonic` in milliseconds; a wall clock could be set back and revive a token. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** A new token, base64url; only the caller ever holds it. Opens the exchange again after too many wrong ones. */
  mint(): string {
    const token = randomBytes(limits.launchTokenBytes).toString('base64url');
    this.#wrong = 0;
    this.#alive = [
      ...this.#alive.slice(1 - aliveAtOnce),
      { hash: digest(token), until: this.#monotonic() + limits.launchTokenMs },
    ];
    return token;
  }

  /** True exactly once per token: it is gone before the caller can await anything. */
  take(token: string): boolean {
    const now = this.#monotonic();
    this.#alive = this.#alive.filter((one) => one.until > now);
    if (this.isClosed) return false;
    const hash = digest(token);
    const left = this.#alive.filter((one) => !timingSafeEqual(one.hash, hash));
    const isRight = left.length < this.#alive.length;
    this.#alive = left;
    if (!isRight) this.#wrong += 1;
    if (this.isClosed) this.#alive = [];
    return isRight;
  }

  get isClosed(): boolean {
    return this.#wrong >= limits.launchFailures;
  }
}
