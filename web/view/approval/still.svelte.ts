/** Whether the card has lain still long enough, and what is said of a press that decided nothing. */
import { limits } from '#protocol/limits.ts';

/** Long enough to read a line; a second press comes sooner. */
const saidMs = 5000;

export class Stillness {
  /** Stands for the time that has passed; a press asks `movedMs` itself. */
  settled = $state(false);
  said = $state('');
  movedMs = performance.now();
  #settle: ReturnType<typeof setTimeout> | undefined;
  #hush: ReturnType<typeof setTimeout> | undefined;

  moved(): void {
    this.movedMs = performance.now();
    this.settled = false;
    clearTimeout(this.#settle);
    this.#settle = setTimeout(() => (this.settled = true), limits.cardInertMs);
  }

  say(sentence: string): void {
    this.said = sentence;
    clearTimeout(this.#hush);
    this.#hush = setTimeout(() => (this.said = ''), saidMs);
  }

  stop(): void {
    clearTimeout(this.#settle);
    clearTimeout(this.#hush);
  }
}
