/**
 * Two texts as the rows of a unified diff: line numbers, word marks inside changed pairs, unchanged stretches folded.
 * Pure. Never drops a byte: what is not shown is counted in a fold.
 */
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
  | { readonly kind: 'noEnd'; readonly side: 'old' | 'new' };

export interface DiffView {
  readonly rows: readonly DiffRow[];
  readonly added: number;
  readonly removed: number;
  /** The texts differ too much to be matched in time: everything old, then everything new. */
  readonly coarse: boolean;
}

const contextLines = 3;
/** Matching is cut off here and the change shown whole; the page must stay alive. */
const matchMs = 400;
/** Pairs longer than this, or blocks with more pairs, get no word marks. */
const wordUnits = 1000;
const wordPairs = 200;

const lines = (text: string): string[] => {
  if (text === '') return [];
  const parts = text.split('\n');
  if (parts.at(-1) === '') parts.pop();
  return parts;
};

const plain = (text: string): readonly Part[] => [{ text, changed: false }];

const words = (oldText: string, newText: string): { old: readonly Part[]; new: readonly Part[] } | null => {
  if (oldText.length > wordUnits || newText.length > wordUnits) return null;
  const changes = diffWordsWithSpace(oldText, newText);
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
      : Array.from({ length: pairs }, (_, index) => words(removed[index] ?? '', added[index] ?? ''));
  const out: DiffRow[] = [];
  removed.forEach((text, index) =>
    out.push({ kind: 'removed', oldLine: at.oldLine + index, parts: marked[index]?.old ?? plain(text) }),
  );
  added.forEach((text, index) =>
    out.push({ kind: 'added', newLine: at.newLine + index, parts: marked[index]?.new ?? plain(text) }),
  );
  at.oldLine += removed.length;
  at.newLine += added.length;
  return out;
};

const coarse = (oldLines: readonly string[], newLines: readonly string[]): DiffView => {
  const rows = changeRows(oldLines, newLines, { oldLine: 1, newLine: 1 });
  return { rows, added: newLines.length, removed: oldLines.length, coarse: true };
};

const endRows = (oldText: string | null, newText: string): DiffRow[] => {
  const open = (text: string | null): boolean => text !== null && text !== '' && !text.endsWith('\n');
  if (open(oldText) === open(newText)) return [];
  return [{ kind: 'noEnd', side: open(newText) ? 'new' : 'old' }];
};

/** `oldText` null: a new file. */
export const diffRows = (oldText: string | null, newText: string): DiffView => {
  const oldLines = lines(oldText ?? '');
  const newLines = lines(newText);
  // Ends of file are told apart by `endRows`; here only lines are matched.
  const close = (all: readonly string[]): string => (all.length === 0 ? '' : `${all.join('\n')}\n`);
  const patch = structuredPatch('', '', close(oldLines), close(newLines), undefined, undefined, {
    context: contextLines,
    timeout: matchMs,
  });
  if (patch === undefined) return coarse(oldLines, newLines);
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
  return { rows: [...rows, ...endRows(oldText, newText)], added, removed, coarse: false };
};

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
