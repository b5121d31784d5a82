/**
 * What is still to be drawn, in order: pieces of at most 64 KiB, the next one only when the one before was drawn, so
 * that a flood leaves the page free in between; and what was drawn is told, so that the program waits for a slow page.
 */
import { limits } from '#protocol/limits.ts';

export interface DrawParts {
  /** Calls back once the bytes are parsed. */
  readonly write: (bytes: Uint8Array, drawn: () => void) => void;
  /** Bytes drawn in all since the replay. */
  readonly ack: (bytes: number) => void;
  /** The page's other work comes first. */
  readonly yield: (then: () => void) => void;
}
type Item =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly counts: boolean }
  | { readonly kind: 'step'; readonly step: () => void };

const pieceBytes = 64 * 1024;
/** Half of what the bridge waits for at most. */
const ackBytes = limits.terminalAckBytes / 2;

export class DrawQueue {
  readonly #parts: DrawParts;
  #items: Item[] = [];
  #isBusy = false;
  #drawn = 0;
  #acked = 0;
  /** Raised by a new replay: what was written before it counts no more. */
  #round = 0;

  constructor(parts: DrawParts) {
    this.#parts = parts;
  }

  get waiting(): number {
    return this.#items.reduce((sum, item) => sum + (item.kind === 'bytes' ? item.bytes.length : 0), 0);
  }

  push(bytes: Uint8Array): void {
    this.#add(bytes, true);
    this.#next();
  }

  /** Runs `step` where it stands among the bytes. */
  step(step: () => void): void {
    this.#items.push({ kind: 'step', step });
    this.#next();
  }

  /** Everything not drawn yet is dropped; counting begins behind the replay. */
  replay(bytes: Uint8Array, before: () => void, after: () => void): void {
    this.#round += 1;
    this.#drawn = 0;
    this.#acked = 0;
    this.#items = [{ kind: 'step', step: before }];
    this.#add(bytes, false);
    this.#items.push({ kind: 'step', step: after });
    this.#next();
  }

  #add(bytes: Uint8Array, counts: boolean): void {
    for (let at = 0; at < bytes.length; at += pieceBytes)
      this.#items.push({ kind: 'bytes', bytes: bytes.subarray(at, at + pieceBytes), counts });
  }

  #next(): void {
    while (!this.#isBusy) {
      const item = this.#items.shift();
      if (item === undefined) return;
      if (item.kind === 'step') {
        item.step();
        continue;
      }
      this.#isBusy = true;
      const round = this.#round;
      this.#parts.write(item.bytes, () => {
        if (item.counts && round === this.#round) this.#count(item.bytes.length);
        const free = (): void => {
          this.#isBusy = false;
          this.#next();
        };
        // A key's echo is drawn at once; only a flood has to give way.
        if (item.bytes.length < pieceBytes) free();
        else this.#parts.yield(free);
      });
    }
  }

  #count(bytes: number): void {
    this.#drawn += bytes;
    if (this.#drawn - this.#acked < ackBytes) return;
    this.#acked = this.#drawn;
    this.#parts.ack(this.#drawn);
  }
}
