/**
 * Where the reader is in the list (U-03): at the end, which is then kept in view, or at a place, which then stays put
 * however the list grows. Touches the scroller through `Scroller` alone.
 */
import type { Row } from './rows.ts';

/** The part of the virtual list used here. */
export interface Scroller {
  getScrollOffset(): number;
  getScrollSize(): number;
  getViewportSize(): number;
  findItemIndex(offset: number): number;
  getItemOffset(index: number): number;
  getItemSize(index: number): number;
  scrollTo(offset: number): void;
  scrollToIndex(
    index: number,
    options?: { align?: 'start' | 'center' | 'end' | 'nearest'; smooth?: boolean; offset?: number },
  ): void;
}

const endPx = 32;
const jumpPx = 300;
/** What is brought into view is held there while it and what is around it load and are measured. */
const bringMs = { card: 700, revealed: 2000 } as const;

export class Follow {
  scroller = $state.raw<Scroller | undefined>();
  /** Beyond this the way back is offered. */
  away = $state(false);
  /** First and last row in view. */
  range = $state.raw<readonly [number, number]>([0, 0]);
  /** The end is kept in view. */
  private atEnd = true;
  private offset = 0;
  private bringing: { readonly key: string; readonly what: keyof typeof bringMs; readonly untilMs: number } | null =
    null;

  scrolled(offset: number): void {
    const scroller = this.scroller;
    if (scroller === undefined) return;
    const rest = scroller.getScrollSize() - scroller.getViewportSize() - offset;
    // Going up is a wish to read; only coming near the end on one's own takes it up again.
    if (offset < this.offset - 1 && rest > endPx) this.atEnd = false;
    else if (rest <= endPx) this.atEnd = true;
    this.offset = offset;
    this.away = rest > jumpPx;
    this.look(scroller, offset);
  }

  private look(scroller: Scroller, offset: number): void {
    const range = [
      scroller.findItemIndex(offset),
      scroller.findItemIndex(offset + scroller.getViewportSize() - 1),
    ] as const;
    if (range[0] !== this.range[0] || range[1] !== this.range[1]) this.range = range;
  }

  /** After rows or sizes changed. `hold`: something in view must not move, so the end is not chased (a waiting card). */
  settle(rows: readonly Row[], hold: boolean): void {
    const scroller = this.scroller;
    if (scroller === undefined || rows.length === 0) return;
    const { bringing } = this;
    const index =
      bringing !== null && performance.now() < bringing.untilMs
        ? rows.findIndex((row) => row.key === bringing.key)
        : -1;
    if (index !== -1 && bringing?.what === 'revealed') scroller.scrollToIndex(index, { align: 'center' });
    else if (index !== -1 && scroller.getItemOffset(index) < scroller.getScrollSize() - scroller.getViewportSize())
      scroller.scrollToIndex(index, { align: 'start' });
    else if (index !== -1) scroller.scrollToIndex(rows.length - 1, { align: 'end' });
    else if (this.atEnd && !hold) scroller.scrollToIndex(rows.length - 1, { align: 'end' });
    else this.scrolled(scroller.getScrollOffset());
    // What does not have to scroll tells of no scrolling: rows that fit are in view all the same.
    this.look(scroller, scroller.getScrollOffset());
  }

  /** A card that came stands at the end of the list, but never with its beginning out of view; what a link named, in the middle. */
  bring(rows: readonly Row[], index: number, what: keyof typeof bringMs): void {
    const key = rows[index]?.key;
    if (key === undefined) return;
    if (what === 'revealed') this.atEnd = false;
    this.bringing = { key, what, untilMs: performance.now() + bringMs[what] };
    this.settle(rows, false);
  }

  /** The reader took hold of the list. */
  release(): void {
    this.bringing = null;
  }

  get follows(): boolean {
    return this.atEnd;
  }

  jump(rows: readonly Row[]): void {
    this.atEnd = true;
    this.bringing = null;
    this.away = false;
    this.scroller?.scrollToIndex(rows.length - 1, { align: 'end' });
  }

  show(index: number, align: 'start' | 'center' | 'end' | 'nearest'): void {
    this.atEnd = false;
    this.bringing = null;
    this.scroller?.scrollToIndex(index, { align });
  }
}

/**
 * Whether the list changed above the reader, so that everything from the first row in view on keeps its distance from the
 * end. Pure. `range` is of the rows in view; a gap among them is what gets replaced, so a row that stays is looked for.
 */
export const changedAbove = (
  before: readonly Row[],
  after: readonly Row[],
  range: readonly [number, number],
): boolean => {
  for (let anchor = range[0]; anchor <= range[1]; anchor += 1) {
    const row = before[anchor];
    if (row === undefined) return false;
    if (row.kind === 'gap') continue;
    const from = after.length - (before.length - anchor);
    return after[anchor]?.key !== row.key && after[from]?.key === row.key;
  }
  return false;
};
