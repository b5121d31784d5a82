/** Rows of a difference with the comments that stand under them. Pure. */
import type { ReviewComment } from '#lib/state/review.svelte.ts';
import type { Fold, Line, NoEnd, Pair, Side } from './rows.ts';

/** Lines of one side, picked for a comment. */
export interface Picked {
  readonly side: Side;
  readonly from: number;
  readonly to: number;
}
export type Item =
  | Line
  | Pair
  | Fold
  | NoEnd
  | { readonly kind: 'comment'; readonly comment: ReviewComment }
  | { readonly kind: 'editor'; readonly picked: Picked };

/** The line of `side` a row stands for; null where it has none. */
export const lineOf = (item: Item, side: Side): number | null => {
  if (item.kind === 'pair') return side === 'old' ? (item.old?.oldLine ?? null) : (item.new?.newLine ?? null);
  if (item.kind === 'same' || item.kind === 'removed' || item.kind === 'added')
    return side === 'old' ? item.oldLine : item.newLine;
  return null;
};
/** The side one speaks of when a row is picked as a whole: what is there now, if anything is. */
export const sideOf = (item: Item): Side | null =>
  lineOf(item, 'new') !== null ? 'new' : lineOf(item, 'old') !== null ? 'old' : null;

/** Each comment under its last line; those whose lines are in no row come first. */
export const withComments = (
  rows: readonly (Line | Pair | Fold | NoEnd)[],
  comments: readonly ReviewComment[],
  editor: Picked | null,
): Item[] => {
  if (comments.length === 0 && editor === null) return [...rows];
  const under = new Map<string, Item[]>();
  const put = (key: string, item: Item): void => void under.set(key, [...(under.get(key) ?? []), item]);
  for (const comment of comments)
    put(comment.state === 'stale' ? '' : `${comment.side}${comment.to}`, { kind: 'comment', comment });
  if (editor !== null) put(`${editor.side}${editor.to}`, { kind: 'editor', picked: editor });
  const out: Item[] = [];
  for (const row of rows) {
    out.push(row);
    for (const side of ['old', 'new'] as const) {
      const line = lineOf(row, side);
      const here = line === null ? undefined : under.get(`${side}${line}`);
      if (here === undefined) continue;
      out.push(...here);
      under.delete(`${side}${line}`);
    }
  }
  return [...[...under.values()].flat(), ...out];
};

/** Stable while a difference stays the same, so that the list keeps its place when lines unfold. */
export const itemKey = (item: Item): string => {
  switch (item.kind) {
    case 'comment':
      return `comment/${item.comment.id}`;
    case 'editor':
      return 'editor';
    case 'fold':
      return `fold/${item.newLine}`;
    case 'noEnd':
      return `end/${item.side}`;
    case 'pair':
      return `${item.old?.oldLine ?? ''}|${item.new?.newLine ?? ''}`;
    default:
      return `${item.oldLine ?? ''}/${item.newLine ?? ''}`;
  }
};

/** The line that is picked when the cursor goes `by` rows from `at`; stays at the ends. */
export const stepLine = (items: readonly Item[], at: number, by: number): number => {
  const direction = by < 0 ? -1 : 1;
  let left = Math.abs(by);
  let last = at;
  for (let index = at + direction; index >= 0 && index < items.length && left > 0; index += direction) {
    const item = items[index];
    if (item === undefined || sideOf(item) === null) continue;
    last = index;
    left -= 1;
  }
  return last;
};

/** Lines from one row to another, on the side of the first, or on its other side where the second has none there. */
export const pickedBetween = (
  items: readonly Item[],
  anchor: number,
  focus: number,
  wanted: Side | null,
): Picked | null => {
  const start = items[anchor];
  if (start === undefined) return null;
  const side = wanted !== null && lineOf(start, wanted) !== null ? wanted : sideOf(start);
  if (side === null) return null;
  const first = lineOf(start, side);
  if (first === null) return null;
  // From the far end towards the anchor, the first row that has a line on this side.
  const step = focus < anchor ? 1 : -1;
  let last = first;
  for (let index = focus; index !== anchor; index += step) {
    const item = items[index];
    const line = item === undefined ? null : lineOf(item, side);
    if (line === null) continue;
    last = line;
    break;
  }
  return { side, from: Math.min(first, last), to: Math.max(first, last) };
};
