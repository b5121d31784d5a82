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
  scrollToIndex(index: number, options?: { align?: 'start' | 'center' | 'end' | 'nearest'; smooth?: boolean; offset?: number }): void;
}

const endPx = 32;
const jumpPx = 300;
/** A card is measured and drawn within this. */
const bringMs = 700;

export class Follow {
  scroller = $state.raw<Scroller | undefined>();
  /** Beyond this the way back is offered. */
  away = $state(false);
  /** First and last row in view. */
  range = $state.raw<readonly [number, number]>([0, 0]);
  /** The end is kept in view. */
  private atEnd = true;
  private offset = 0;
  private bringing: { readonly key: string; readonly untilMs: number } | null = null;

  scrolled(offset: number): void {
    const scroller = this.scroller;
    if (scroller === undefined) return;
    const rest = scroller.getScrollSize() - scroller.getViewportSize() - offset;
    // Going up is a wish to read; only coming near the end on one's own takes it up again.
    if (offset < this.offset - 1 && rest > endPx) this.atEnd = false;
    else if (rest <= endPx) this.atEnd = true;
    this.offset = offset;
    this.away = rest > jumpPx;
    const range = [scroller.findItemIndex(offset), scroller.findItemIndex(offset + scroller.getViewportSize() - 1)] as const;
    if (range[0] !== this.range[0] || range[1] !== this.range[1]) this.range = range;
  }

  /** After rows or sizes changed. `hold`: something in view must not move, so the end is not chased (a waiting card). */
  settle(rows: readonly Row[], hold: boolean): void {
    const scroller = this.scroller;
    if (scroller === undefined || rows.length === 0) return;
    const card = this.bringing !== null && performance.now() < this.bringing.untilMs ? rows.findIndex((row) => row.key === this.bringing?.key) : -1;
    if (card !== -1 && scroller.getItemOffset(card) < scroller.getScrollSize() - scroller.getViewportSize()) scroller.scrollToIndex(card, { align: 'start' });
    else if (card !== -1) scroller.scrollToIndex(rows.length - 1, { align: 'end' });
    else if (this.atEnd && !hold) scroller.scrollToIndex(rows.length - 1, { align: 'end' });
    else this.scrolled(scroller.getScrollOffset());
  }

  /** A card that came: as the end of the list, but never with its beginning out of view. Held to while it is measured. */
  bring(rows: readonly Row[], index: number): void {
    const key = rows[index]?.key;
    if (key === undefined) return;
    this.bringing = { key, untilMs: performance.now() + bringMs };
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
 * How the list changed, seen from the first row in view: `shift` tells the virtual list that the change was above it.
 * Pure. `anchor` is the key of that row.
 */
export const changedAbove = (before: readonly Row[], after: readonly Row[], anchor: number): boolean => {
  const key = before[anchor]?.key;
  if (key === undefined || after[anchor]?.key === key) return false;
  const from = after.length - (before.length - anchor);
  return after[from]?.key === key;
};
