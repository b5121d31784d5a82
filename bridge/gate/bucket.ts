/** Token bucket over a monotonic clock: `perWindow` in `windowMs` on average, `burst` at once. Pure but for its state. */
export class Bucket {
  readonly #perMs: number;
  readonly #burst: number;
  #left: number;
  #at: number;

  constructor(rate: { perWindow: number; windowMs: number; burst: number }, now: number) {
    this.#perMs = rate.perWindow / rate.windowMs;
    this.#burst = rate.burst;
    this.#left = rate.burst;
    this.#at = now;
  }

  /** Takes one if there is one. `now` in milliseconds, never smaller than before. */
  take(now: number): boolean {
    this.#left = Math.min(this.#burst, this.#left + (now - this.#at) * this.#perMs);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }

  /** Takes `cost`, also when it is not there. Returns the milliseconds until the debt is paid: 0 when there is none. */
  owe(now: number, cost: number): number {
    this.#left = Math.min(this.#burst, this.#left + (now - this.#at) * this.#perMs) - cost;
    this.#at = now;
    return Math.max(0, -this.#left / this.#perMs);
  }
}
