/**
 * The bounded queue of one attachment (D-47). At the bound the bridge stops reading from it; what does not drain below
 * half in time, or doubles meanwhile, is cut off and resumes from its cursor. No frame is ever dropped on its own.
 */
import { limits } from '#protocol/limits.ts';
import type { Channel } from './channel.ts';

export class Outbox {
  readonly #channel: Channel;
  readonly #drainMs: number;
  readonly #onSlow: () => void;
  /** Sizes of the frames in flight, oldest first; `#head` is the first not yet taken. */
  #sizes: number[] = [];
  #head = 0;
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(channel: Channel, drainMs: number, onSlow: () => void) {
    this.#channel = channel;
    this.#drainMs = drainMs;
    this.#onSlow = onSlow;
  }

  /** `bytes` is the UTF-8 size of `text`. Never throws. */
  push(text: string, bytes: number): void {
    if (this.#isClosed) return;
    this.#sizes.push(bytes);
    this.#bytes += bytes;
    if (this.#isAbove(2)) {
      this.#slow();
      return;
    }
    this.#channel.send(text, this.#sent);
    if (this.#timer === null && this.#isAbove(1)) {
      this.#channel.pause();
      this.#timer = setTimeout(() => this.#slow(), this.#drainMs);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#stopTimer();
    this.#sizes = [];
  }

  #isAbove(share: number): boolean {
    return this.#bytes >= limits.tailBytes * share || this.#sizes.length - this.#head >= limits.tailFrames * share;
  }

  readonly #sent = (): void => {
    if (this.#isClosed) return;
    this.#bytes -= this.#sizes[this.#head] ?? 0;
    this.#head += 1;
    if (this.#head > limits.tailFrames) {
      this.#sizes = this.#sizes.slice(this.#head);
      this.#head = 0;
    }
    if (this.#timer === null || this.#isAbove(0.5)) return;
    this.#stopTimer();
    this.#channel.resume();
  };

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #slow(): void {
    this.close();
    this.#onSlow();
  }
}
