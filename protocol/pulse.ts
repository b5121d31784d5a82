/**
 * Whether the other end is still there (D-50, D-53): beats while someone looks, and a question on demand. A socket can
 * be dead without a word; one that says nothing for long enough is ended here, and client.ts makes the next one.
 */
import type { Connection } from './connection.ts';
import type { Platform, Timer } from './platform.ts';
import { limits } from './limits.ts';

export class Pulse {
  readonly #platform: Platform;
  #connection: Connection | null = null;
  #beatMs = 0;
  #isVisible = false;
  #beat: Timer | null = null;
  readonly #waits = new Set<Timer>();

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  attach(connection: Connection, beatMs: number): void {
    this.#connection = connection;
    this.#beatMs = beatMs;
    this.#schedule();
  }

  detach(): void {
    this.#connection = null;
    this.#beat?.cancel();
    for (const wait of this.#waits) wait.cancel();
    this.#waits.clear();
  }

  /** Hidden pages do not beat: their timers are held to the minute anyway. */
  setVisible(visible: boolean): void {
    if (this.#isVisible === visible) return;
    this.#isVisible = visible;
    this.#schedule();
  }

  /** Asks now; silence for `patienceMs` ends the connection with `cause`. */
  ask(patienceMs: number, cause: 'replaced' | 'silent'): void {
    const connection = this.#connection;
    if (connection === null) return;
    const askedAt = this.#platform.now();
    let isAnswered = false; // the clock alone cannot tell: over loopback the answer comes within its tick
    connection.request('connection.ping', {}, undefined, () => {
      isAnswered = true;
    });
    const wait = this.#platform.timer(patienceMs, () => {
      this.#waits.delete(wait);
      // Anything heard since counts: the answer may be behind a long page.
      if (!isAnswered && connection.heardAt <= askedAt) connection.end(cause);
    });
    this.#waits.add(wait);
  }

  #schedule(): void {
    this.#beat?.cancel();
    this.#beat = null;
    if (!this.#isVisible || this.#connection === null) return;
    this.#beat = this.#platform.timer(this.#beatMs, () => {
      this.ask(limits.requestTimeoutMs, 'silent');
      this.#schedule();
    });
  }
}
