/**
 * Where the lines of a file begin: every 1,000th is remembered while the file stays as it is, so that any place of a large
 * one is found without counting from its start. Only LF ends a line. Called by read.ts; one for each root.
 */
import { readSync } from 'node:fs';
import { limits } from '#protocol/limits.ts';

export type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1252';

/** Up to `bytes` from `at`; fewer where the file ends. */
export const readAt = (fd: number, at: number, bytes: number): Buffer => {
  const buffer = Buffer.allocUnsafe(bytes);
  let filled = 0;
  while (filled < bytes) {
    const got = readSync(fd, buffer, filled, bytes - filled, at + filled);
    if (got === 0) break;
    filled += got;
  }
  return buffer.subarray(0, filled);
};

/** Calls `look` with pieces of `from` to `end`, and where each begins. */
export const scan = (fd: number, from: number, end: number, look: (piece: Buffer, at: number) => void): void => {
  for (let at = from; at < end;) {
    const piece = readAt(fd, at, Math.min(limits.readBytes, end - at));
    if (piece.length === 0) return;
    look(piece, at);
    at += piece.length;
  }
};

/** Calls `found` with where each next line begins. Pieces are of even length, so no 16-bit unit is in two of them. */
const eachLine = (fd: number, from: number, end: number, encoding: Encoding, found: (next: number) => void): void => {
  const pair = encoding === 'utf-16le' ? 1 : encoding === 'utf-16be' ? -1 : 0;
  const behind = pair === 1 ? 2 : 1;
  scan(fd, from, end, (piece, base) => {
    for (let at = piece.indexOf(0x0a); at !== -1; at = piece.indexOf(0x0a, at + 1)) {
      const aligned = pair === 0 || (at % 2 === (pair === 1 ? 0 : 1) && piece[at + pair] === 0);
      if (aligned) found(base + at + behind);
    }
  });
};

export class LineIndex {
  /** Where line 1, 1001, 2001, … begin. */
  readonly #places: readonly number[];
  readonly #encoding: Encoding;
  readonly #end: number;
  /** Lines of the file; a last one without a break counts. Null where the file is larger than is looked through. */
  readonly total: number | null;

  constructor(fd: number, size: number, encoding: Encoding) {
    this.#encoding = encoding;
    this.#end = Math.min(size, limits.scanBytes);
    const places = [0];
    let [breaks, last] = [0, 0];
    eachLine(fd, 0, this.#end, encoding, (next) => {
      breaks += 1;
      last = next;
      if (breaks % limits.lineIndexStep === 0) places.push(next);
    });
    this.#places = places;
    this.total = size > limits.scanBytes ? null : breaks + (last < size ? 1 : 0);
  }

  /** The line, from 1, in which the byte at `offset` lies. */
  lineAt(fd: number, offset: number): number {
    let place = this.#places.length - 1;
    while (place > 0 && (this.#places[place] ?? 0) > offset) place -= 1;
    let line = place * limits.lineIndexStep + 1;
    eachLine(fd, this.#places[place] ?? 0, offset, this.#encoding, () => (line += 1));
    return line;
  }

  /** Where a line, from 1, begins; null beyond the last that was looked for. */
  offsetOf(fd: number, line: number): number | null {
    const place = Math.floor((line - 1) / limits.lineIndexStep);
    let offset = this.#places[place];
    if (offset === undefined) return null;
    let left = (line - 1) % limits.lineIndexStep;
    // Read in small steps: most lines are short, and the place is near.
    for (let from = offset; left > 0 && from < this.#end; from += limits.sniffBytes)
      eachLine(fd, from, Math.min(this.#end, from + limits.sniffBytes), this.#encoding, (next) => {
        if (left === 0) return;
        left -= 1;
        offset = next;
      });
    return left === 0 ? offset : null;
  }
}

/** The last few files that were looked through, by their revision. */
export class LineIndexes {
  readonly #kept = new Map<string, LineIndex>();

  of(fd: number, size: number, encoding: Encoding, revision: string): LineIndex {
    const key = `${encoding} ${revision}`;
    const index = this.#kept.get(key) ?? new LineIndex(fd, size, encoding);
    this.#kept.delete(key);
    this.#kept.set(key, index);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= limits.lineIndexes) break;
      this.#kept.delete(oldest);
    }
    return index;
  }
}
