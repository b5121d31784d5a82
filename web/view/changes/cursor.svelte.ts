/**
 * The line one stands on in a difference, the lines picked from there, and the comment that is being written about them.
 * Lines, not rows: they stay what they are when others unfold or both sides stand beside each other.
 */
import { lineOf, pickedBetween, sideOf, stepLine, type Item, type Picked } from './items.ts';
import { changeStarts, knownLines, type Row, type Side } from './rows.ts';

interface Place {
  readonly side: Side;
  readonly line: number;
}
/** What a comment is about, as it was when the writing began. */
export interface Quoting {
  readonly quoted: readonly string[];
  readonly revision: string;
}

export class Cursor {
  picked = $state.raw<Picked | null>(null);
  editor = $state.raw<Picked | null>(null);
  quoting: Quoting | null = null;
  #at = $state.raw<Place | null>(null);
  #anchor: Place | null = null;
  #items: () => readonly Item[];
  /** Row of the line; −1 where there is none. */
  readonly row = $derived(this.#rowOf(this.#at));

  constructor(items: () => readonly Item[]) {
    this.#items = items;
  }

  /** Stands on a row; false where the row is no line. */
  go(row: number): boolean {
    const place = this.#placeAt(row, null);
    if (place !== null) this.#at = place;
    return place !== null;
  }
  letGo(): void {
    this.#anchor = null;
    this.picked = null;
  }

  /** Goes `by` lines, taking those between along when `extend`; answers the row. */
  walk(by: number, extend: boolean): number {
    const to = stepLine(this.#items(), this.row, this.row < 0 ? Math.max(1, by) : by);
    if (!extend) this.letGo();
    else this.#anchor ??= this.#at;
    this.go(to);
    if (extend) this.pick(to);
    return to;
  }
  /** Row of the next or previous change; null past the last and the first. */
  change(step: 1 | -1): number | null {
    const { row } = this;
    const starts = changeStarts(this.#items());
    return (step === 1 ? starts.find((start) => start > row) : starts.findLast((start) => start < row)) ?? null;
  }

  /** A pointer came down on a number of `side`; `extend` goes on from where one was. */
  press(row: number, side: Side | null, extend: boolean): void {
    const place = this.#placeAt(row, side);
    if (place === null) return;
    this.#at = place;
    if (!extend || this.#anchor === null) this.#anchor = place;
    this.pick(row);
  }
  /** Picks from where the picking began to this row. */
  pick(row: number): void {
    const from = this.#rowOf(this.#anchor);
    this.picked = pickedBetween(this.#items(), from < 0 ? row : from, row, this.#anchor?.side ?? null);
  }
  isPicked(item: Item): boolean {
    const line = this.picked === null ? null : lineOf(item, this.picked.side);
    return this.picked !== null && line !== null && line >= this.picked.from && line <= this.picked.to;
  }

  /** Begins a comment on the picked lines, or on the one; false where there is none. */
  write(rows: readonly Row[], revision: string): boolean {
    const place = this.picked ?? (this.row < 0 ? null : pickedBetween(this.#items(), this.row, this.row, null));
    if (place === null) return false;
    const lines = knownLines(rows, place.side);
    const quoted = Array.from({ length: place.to - place.from + 1 }, (_, index) => lines.get(place.from + index) ?? '');
    this.quoting = { quoted, revision };
    this.picked = place;
    this.editor = place;
    return true;
  }
  close(): void {
    this.editor = null;
    this.quoting = null;
    this.letGo();
  }

  #rowOf(place: Place | null): number {
    return place === null ? -1 : this.#items().findIndex((item) => lineOf(item, place.side) === place.line);
  }
  #placeAt(row: number, wanted: Side | null): Place | null {
    const item = this.#items()[row];
    if (item === undefined) return null;
    const side = wanted !== null && lineOf(item, wanted) !== null ? wanted : sideOf(item);
    const line = side === null ? null : lineOf(item, side);
    return side === null || line === null ? null : { side, line };
  }
}
