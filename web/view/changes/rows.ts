/**
 * A difference as the bridge sends it, as the rows of a page: numbered lines, folds for what is not shown, old beside new.
 * Pure. No line is dropped: what is in no row is counted in a fold.
 */
import type { FileDiff } from '#protocol/methods/git.ts';
import { plainParts, wordMarks, type Part } from '../conversation/diff.ts';

export type TextDiff = Extract<FileDiff['content'], { kind: 'text' }>;
export type Side = 'old' | 'new';

export interface Line {
  readonly kind: 'same' | 'removed' | 'added';
  /** Null on a side that does not have it. */
  readonly oldLine: number | null;
  readonly newLine: number | null;
  readonly text: string;
  /** The line it takes the place of, or that takes its place. */
  readonly other: string | null;
}
/** `lines` unchanged ones from `oldLine` and `newLine` on; `section` names what the change below is in. */
export interface Fold {
  readonly kind: 'fold';
  readonly oldLine: number;
  readonly newLine: number;
  readonly lines: number;
  readonly section: string;
}
export interface NoEnd {
  readonly kind: 'noEnd';
  readonly side: Side | 'both';
}
export type Row = Line | Fold | NoEnd;
/** Old beside new. */
export interface Pair {
  readonly kind: 'pair';
  readonly old: Line | null;
  readonly new: Line | null;
}

export const isLine = (row: Row): row is Line => row.kind !== 'fold' && row.kind !== 'noEnd';

/** Pairs further into one block than this get no word marks: they are not about the same thing any more. */
const maxPairs = 200;

interface Place {
  old: number;
  new: number;
}

/** A CR LF at a line's end stands in the header for the whole file, not on every line. */
const endless = (text: string, ends: TextDiff['eol']['old']): string =>
  ends === 'crlf' && text.endsWith('\r') ? text.slice(0, -1) : text;

const hunkRows = (hunk: TextDiff['hunks'][number], at: Place, eol: TextDiff['eol']): Row[] => {
  const rows: Row[] = [];
  let gone: string[] = [];
  let come: string[] = [];
  const flush = (): void => {
    const pairs = Math.min(gone.length, come.length, maxPairs);
    const other = (list: readonly string[], index: number): string | null =>
      index < pairs ? (list[index] ?? null) : null;
    gone.forEach((text, index) =>
      rows.push({ kind: 'removed', oldLine: at.old + index, newLine: null, text, other: other(come, index) }),
    );
    come.forEach((text, index) =>
      rows.push({ kind: 'added', oldLine: null, newLine: at.new + index, text, other: other(gone, index) }),
    );
    at.old += gone.length;
    at.new += come.length;
    gone = [];
    come = [];
  };
  // "No line feed at the end" belongs to the line before it; it may stand between the old lines and the new ones.
  const ends: NoEnd['side'][] = [];
  let before = ' ';
  for (const line of hunk.lines) {
    const sign = line[0] ?? ' ';
    const text = line.slice(1);
    if (sign === '\\') ends.push(before === '-' ? 'old' : before === '+' ? 'new' : 'both');
    else if (sign === '-') {
      if (come.length > 0) flush();
      gone.push(endless(text, eol.old));
    } else if (sign === '+') come.push(endless(text, eol.new));
    else {
      flush();
      rows.push({ kind: 'same', oldLine: at.old, newLine: at.new, text: endless(text, eol.new), other: null });
      at.old += 1;
      at.new += 1;
    }
    before = sign;
  }
  flush();
  if (ends.includes('old') && ends.includes('new')) rows.push({ kind: 'noEnd', side: 'both' });
  else for (const side of ends) rows.push({ kind: 'noEnd', side });
  return rows;
};

/** Unchanged lines from `at` on: those that were unfolded as lines, the rest as folds. */
const gapRows = (at: Place, count: number, section: string, unfolded: ReadonlyMap<number, string>): Row[] => {
  const rows: Row[] = [];
  let folded = 0;
  const fold = (until: number): void => {
    if (folded > 0)
      rows.push({
        kind: 'fold',
        oldLine: at.old + until - folded,
        newLine: at.new + until - folded,
        lines: folded,
        section: until === count ? section : '',
      });
    folded = 0;
  };
  for (let index = 0; index < count; index += 1) {
    const text = unfolded.get(at.new + index);
    if (text === undefined) {
      folded += 1;
      continue;
    }
    fold(index);
    rows.push({ kind: 'same', oldLine: at.old + index, newLine: at.new + index, text, other: null });
  }
  fold(count);
  at.old += count;
  at.new += count;
  return rows;
};

/** `unfolded`: lines of the new side that were fetched since, by number. */
export const textRows = (content: TextDiff, unfolded: ReadonlyMap<number, string>): Row[] => {
  const at: Place = { old: 1, new: 1 };
  const rows: Row[] = [];
  for (const hunk of content.hunks) {
    // A side without lines is numbered by the line before it.
    const start = hunk.newLines === 0 ? hunk.newStart + 1 : hunk.newStart;
    rows.push(...gapRows(at, Math.max(0, start - at.new), hunk.section, unfolded), ...hunkRows(hunk, at, content.eol));
  }
  // The file's last lines come after the last change; without any change there is nothing to stand around.
  if (content.hunks.length > 0) rows.push(...gapRows(at, Math.max(0, content.lines.new - at.new + 1), '', unfolded));
  return rows;
};

/** The same rows for two columns: what was removed stands beside what was added in its place. */
export const pairs = (rows: readonly Row[]): (Pair | Fold | NoEnd)[] => {
  const out: (Pair | Fold | NoEnd)[] = [];
  let gone: Line[] = [];
  let come: Line[] = [];
  const flush = (): void => {
    for (let index = 0; index < Math.max(gone.length, come.length); index += 1)
      out.push({ kind: 'pair', old: gone[index] ?? null, new: come[index] ?? null });
    gone = [];
    come = [];
  };
  for (const row of rows) {
    if (row.kind === 'removed') {
      if (come.length > 0) flush();
      gone.push(row);
    } else if (row.kind === 'added') come.push(row);
    else {
      flush();
      out.push(isLine(row) ? { kind: 'pair', old: row, new: row } : row);
    }
  }
  flush();
  return out;
};

/** Where each change begins, as indices; a comment between its lines does not end it. */
export const changeStarts = (items: readonly { readonly kind: string }[]): number[] => {
  const starts: number[] = [];
  let inside = false;
  items.forEach((item, index) => {
    if (item.kind === 'comment' || item.kind === 'editor') return;
    const { old, new: now } = item as Partial<Pair>;
    const isChange = item.kind === 'pair' ? old !== now : item.kind === 'removed' || item.kind === 'added';
    if (isChange && !inside) starts.push(index);
    inside = isChange;
  });
  return starts;
};

/** What is known of one side's lines, by number: to find again what a comment is about. */
export const knownLines = (rows: readonly Row[], side: Side): Map<number, string> => {
  const lines = new Map<number, string>();
  for (const row of rows) {
    if (!isLine(row)) continue;
    const number = side === 'old' ? row.oldLine : row.newLine;
    if (number !== null) lines.set(number, row.text);
  }
  return lines;
};

/** Which lines a fold gives when asked for: the next few below what is above it, above what is below it, or all. */
export const unfoldRange = (
  fold: Fold,
  way: 'down' | 'up' | 'all',
  step: number,
): { readonly firstLine: number; readonly lines: number } => {
  const lines = way === 'all' ? fold.lines : Math.min(step, fold.lines);
  return { firstLine: way === 'up' ? fold.newLine + fold.lines - lines : fold.newLine, lines };
};

const marked = new WeakMap<Line, readonly Part[]>();
/** The words that changed; reckoned when the line is first drawn. */
export const partsOf = (line: Line): readonly Part[] => {
  if (line.kind === 'same') return [{ text: line.text, changed: false }];
  const known = marked.get(line);
  if (known !== undefined) return known;
  const both =
    line.other === null
      ? null
      : line.kind === 'removed'
        ? wordMarks(line.text, line.other)
        : wordMarks(line.other, line.text);
  const parts = both === null ? plainParts(line.text) : line.kind === 'removed' ? both.old : both.new;
  marked.set(line, parts);
  return parts;
};

export interface Stretch extends Part {
  /** Of the highlighter; empty for plain. */
  readonly kind: string;
}
/** Word marks and colours laid over each other. Colours of another text are left out. */
export const stretches = (
  parts: readonly Part[],
  runs: readonly (readonly [kind: string, text: string])[] | undefined,
): readonly Stretch[] => {
  const text = parts.map((part) => part.text).join('');
  if (runs === undefined || runs.map((run) => run[1]).join('') !== text)
    return parts.map((part) => ({ ...part, kind: '' }));
  const out: Stretch[] = [];
  let index = 0;
  let left = runs[0]?.[1].length ?? 0;
  for (const part of parts) {
    for (let at = 0; at < part.text.length;) {
      while (left === 0) left = runs[(index += 1)]?.[1].length ?? Infinity;
      const length = Math.min(left, part.text.length - at);
      out.push({ text: part.text.slice(at, at + length), changed: part.changed, kind: runs[index]?.[0] ?? '' });
      at += length;
      left -= length;
    }
  }
  return out;
};
