/**
 * Two texts as the rows of a unified diff: line numbers, word marks inside changed pairs, unchanged stretches folded.
 * Pure, and bounded in time and rows. Never drops a byte in silence: what is not shown is counted, in a fold or in `left`.
 */
import { limits } from '#protocol/limits.ts';
import { diffWordsWithSpace, structuredPatch } from 'diff';

export interface Part {
  readonly text: string;
  readonly changed: boolean;
}
export type DiffRow =
  | { readonly kind: 'same'; readonly oldLine: number; readonly newLine: number; readonly text: string }
  | { readonly kind: 'removed'; readonly oldLine: number; readonly parts: readonly Part[] }
  | { readonly kind: 'added'; readonly newLine: number; readonly parts: readonly Part[] }
  /** `lines` unchanged ones from `oldLine` and `newLine` on. */
  | { readonly kind: 'fold'; readonly oldLine: number; readonly newLine: number; readonly lines: number }
  /** The file does not end with a line end on this side. */
  | { readonly kind: 'noEnd'; readonly side: 'old' | 'new' | 'both' };

export interface DiffView {
  readonly rows: readonly DiffRow[];
  readonly added: number;
  readonly removed: number;
  /** The texts differ too much to be matched in time: everything old, then everything new. */
  readonly coarse: boolean;
  /** Nothing but spaces, tabs and line ends differs. */
  readonly spacing: boolean;
  /** Lines beyond what a page can hold, in no row. */
  readonly left: number;
}

const contextLines = 3;
/** Matching is cut off here and the change shown whole; the page must stay alive. */
const matchMs = 400;
/** Pairs longer than this, blocks with more pairs, or lines further apart get no word marks. */
const wordUnits = 1000;
const wordPairs = 200;
const wordEdits = 200;
/** More lines of one text are neither matched nor made into rows. */
const maxLines = 50_000;

const lines = (text: string): string[] => {
  if (text === '') return [];
  const parts = text.split('\n', maxLines + 1);
  if (parts.length <= maxLines && parts.at(-1) === '') parts.pop();
  return parts.slice(0, maxLines);
};
/** Lines `lines` leaves out. */
const leftOf = (text: string): number => {
  let count = text === '' || text.endsWith('\n') ? 0 : 1;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return Math.max(0, count - maxLines);
};

/** Blanks at the end of a line that comes or goes are part of the change, and are marked as such. */
export const plainParts = (text: string): readonly Part[] => {
  const end = text.trimEnd().length;
  const blanks = text.slice(end);
  if (!/^[ \t]+$/.test(blanks)) return [{ text, changed: false }];
  const marked = { text: blanks, changed: true };
  return end === 0 ? [marked] : [{ text: text.slice(0, end), changed: false }, marked];
};

/** Stretches of a changed part: blanks that could be taken for others, or for none, apart from the rest. */
export const blanksOf = (text: string): { readonly text: string; readonly blank: boolean }[] =>
  text
    .split(/(^[ \t]+|[ \t]+$|\t[ \t]*| {2,})/)
    .filter((part) => part !== '')
    .map((part) => ({ text: part, blank: /^[ \t]+$/.test(part) }));

/** Word marks of a line and the one in its place; null where they have too little in common. */
export const wordMarks = (oldText: string, newText: string): { old: readonly Part[]; new: readonly Part[] } | null => {
  if (oldText.length > wordUnits || newText.length > wordUnits) return null;
  const changes = diffWordsWithSpace(oldText, newText, { maxEditLength: wordEdits });
  if (changes === undefined) return null;
  const same = changes
    .filter((change) => !change.added && !change.removed)
    .reduce((sum, change) => sum + change.value.trim().length, 0);
  // Lines with nothing in common are two lines, not one changed one.
  if (same * 4 < Math.max(oldText.trim().length, newText.trim().length)) return null;
  const side = (gone: 'added' | 'removed'): Part[] =>
    changes
      .filter((change) => !change[gone])
      .map((change) => ({ text: change.value, changed: change.added || change.removed }));
  return { old: side('added'), new: side('removed') };
};

interface Numbers {
  oldLine: number;
  newLine: number;
}

const changeRows = (removed: readonly string[], added: readonly string[], at: Numbers): DiffRow[] => {
  const pairs = Math.min(removed.length, added.length);
  const marked =
    pairs > wordPairs
      ? []
      : Array.from({ length: pairs }, (_, index) => wordMarks(removed[index] ?? '', added[index] ?? ''));
  const out: DiffRow[] = [];
  removed.forEach((text, index) =>
    out.push({ kind: 'removed', oldLine: at.oldLine + index, parts: marked[index]?.old ?? plainParts(text) }),
  );
  added.forEach((text, index) =>
    out.push({ kind: 'added', newLine: at.newLine + index, parts: marked[index]?.new ?? plainParts(text) }),
  );
  at.oldLine += removed.length;
  at.newLine += added.length;
  return out;
};

const coarse = (oldLines: readonly string[], newLines: readonly string[], left: number): DiffView => {
  const rows = changeRows(oldLines, newLines, { oldLine: 1, newLine: 1 });
  return { rows, added: newLines.length, removed: oldLines.length, coarse: true, spacing: false, left };
};

/** Both texts without any blank or line end. */
const inked = (text: string): string => text.replace(/\s+/g, '');

const endRows = (oldText: string | null, newText: string): DiffRow[] => {
  const open = (text: string | null): boolean => text !== null && text !== '' && !text.endsWith('\n');
  if (!open(oldText) && !open(newText)) return [];
  return [{ kind: 'noEnd', side: open(oldText) === open(newText) ? 'both' : open(newText) ? 'new' : 'old' }];
};

/** `oldText` null: a new file. */
export const diffRows = (oldText: string | null, newText: string): DiffView => {
  const oldLines = lines(oldText ?? '');
  const newLines = lines(newText);
  const left = leftOf(oldText ?? '') + leftOf(newText);
  if (left > 0) return coarse(oldLines, newLines, left);
  // Ends of file are told apart by `endRows`; here only lines are matched.
  const close = (all: readonly string[]): string => (all.length === 0 ? '' : `${all.join('\n')}\n`);
  const patch = structuredPatch('', '', close(oldLines), close(newLines), undefined, undefined, {
    context: contextLines,
    timeout: matchMs,
  });
  if (patch === undefined) return coarse(oldLines, newLines, 0);
  const rows: DiffRow[] = [];
  const at: Numbers = { oldLine: 1, newLine: 1 };
  const fold = (until: number): void => {
    const count = until - at.oldLine;
    if (count > 0) rows.push({ kind: 'fold', oldLine: at.oldLine, newLine: at.newLine, lines: count });
    at.oldLine += Math.max(0, count);
    at.newLine += Math.max(0, count);
  };
  let added = 0;
  let removed = 0;
  for (const hunk of patch.hunks) {
    fold(hunk.oldStart);
    let gone: string[] = [];
    let come: string[] = [];
    const flush = (): void => {
      rows.push(...changeRows(gone, come, at));
      added += come.length;
      removed += gone.length;
      gone = [];
      come = [];
    };
    for (const line of hunk.lines) {
      const text = line.slice(1);
      if (line.startsWith('-')) {
        if (come.length > 0) flush();
        gone.push(text);
      } else if (line.startsWith('+')) come.push(text);
      else if (line.startsWith(' ')) {
        flush();
        rows.push({ kind: 'same', oldLine: at.oldLine, newLine: at.newLine, text });
        at.oldLine += 1;
        at.newLine += 1;
      }
    }
    flush();
  }
  fold(oldLines.length + 1);
  const spacing = oldText !== null && oldText !== newText && inked(oldText) === inked(newText);
  return { rows: [...rows, ...endRows(oldText, newText)], added, removed, coarse: false, spacing, left: 0 };
};

/** Every line ends with CR LF, and no CR stands alone; there is at least one. */
export const isCrlf = (text: string): boolean => text.includes('\r\n') && !/(?<!\r)\n|\r(?!\n)/.test(text);

/** A line so long that only its beginning is drawn at first. */
export const isLong = (row: DiffRow): boolean =>
  ('text' in row && row.text.length > limits.outputUnits) ||
  ('parts' in row && row.parts.some((part) => part.text.length > limits.outputUnits));

/** The lines behind a fold, when it is opened. */
export const foldRows = (newText: string, fold: Extract<DiffRow, { kind: 'fold' }>): DiffRow[] =>
  lines(newText)
    .slice(fold.newLine - 1, fold.newLine - 1 + fold.lines)
    .map((text, index) => ({ kind: 'same', oldLine: fold.oldLine + index, newLine: fold.newLine + index, text }));

/** Rows a copy or a reader gets: `+ text`, `- text`, `  text`. */
export const rowLine = (row: DiffRow): string => {
  if (row.kind === 'same') return `  ${row.text}`;
  if (row.kind === 'fold') return `@@ ${row.lines} unchanged lines @@`;
  if (row.kind === 'noEnd') return '\\ No newline at end of file';
  return `${row.kind === 'added' ? '+' : '-'} ${row.parts.map((part) => part.text).join('')}`;
};
