/** How many lines a change adds and removes, for the card. Pure; the app draws the diff itself. */
import { limits } from '#protocol/limits.ts';

const linesOf = (text: string): string[] => (text === '' ? [] : text.split(/(?<=\n)/));

/** Length of the shortest edit script (Myers 1986, greedy), or null beyond the bound. */
const editDistance = (from: readonly string[], to: readonly string[]): number | null => {
  const bound = Math.min(limits.diffEdits, from.length + to.length);
  const furthest = new Int32Array(2 * bound + 3);
  const at = (diagonal: number): number => furthest[diagonal + bound + 1] ?? 0;
  for (let edits = 0; edits <= bound; edits += 1) {
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const isDown = diagonal === -edits || (diagonal !== edits && at(diagonal - 1) < at(diagonal + 1));
      let x = isDown ? at(diagonal + 1) : at(diagonal - 1) + 1;
      while (x < from.length && x - diagonal < to.length && from[x] === to[x - diagonal]) x += 1;
      furthest[diagonal + bound + 1] = x;
      if (x >= from.length && x - diagonal >= to.length) return edits;
    }
  }
  return null;
};

/**
 * Lines added and removed by a shortest line diff; beyond `limits.diffEdits` edits the changed middle counts as
 * replaced whole, which is a true diff but not the shortest. `oldText` null: there was no file.
 */
export const countChanges = (oldText: string | null, newText: string): { added: number; removed: number } => {
  const from = linesOf(oldText ?? '');
  const to = linesOf(newText);
  let head = 0;
  while (head < from.length && head < to.length && from[head] === to[head]) head += 1;
  let tail = 0;
  while (tail < from.length - head && tail < to.length - head && from.at(-1 - tail) === to.at(-1 - tail)) tail += 1;
  const removed = from.length - head - tail;
  const added = to.length - head - tail;
  const edits = editDistance(from.slice(head, from.length - tail), to.slice(head, to.length - tail));
  if (edits === null) return { added, removed };
  return { added: (edits + added - removed) / 2, removed: (edits - added + removed) / 2 };
};
