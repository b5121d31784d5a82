import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { diffRows, foldRows, rowLine, type DiffRow } from '../../web/view/conversation/diff.ts';

const words = (row: DiffRow | undefined) => (row !== undefined && 'parts' in row ? row.parts : []);

/** What the rows say the two texts are, folds opened. */
const rebuild = (newText: string, rows: readonly DiffRow[]): { old: string[]; new: string[] } => {
  const out = { old: [] as string[], new: [] as string[] };
  for (const row of rows.flatMap((one) => (one.kind === 'fold' ? foldRows(newText, one) : [one]))) {
    if (row.kind === 'same') {
      out.old.push(row.text);
      out.new.push(row.text);
    } else if (row.kind === 'removed')
      out.old.push(
        words(row)
          .map((part) => part.text)
          .join(''),
      );
    else if (row.kind === 'added')
      out.new.push(
        words(row)
          .map((part) => part.text)
          .join(''),
      );
  }
  return out;
};
const asLines = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));

describe('diff rows (F-05)', () => {
  it('marks the words that changed in a changed line', () => {
    const { rows, added, removed } = diffRows('a\nconst d = new Date(s)\nb\n', 'a\nconst d = parseISO(s)\nb\n');
    expect({ added, removed }).toEqual({ added: 1, removed: 1 });
    expect(rows.map((row) => row.kind)).toEqual(['same', 'removed', 'added', 'same']);
    expect(
      words(rows[2])
        .filter((part) => part.changed)
        .map((part) => part.text),
    ).toEqual(['parseISO']);
  });

  it('marks no words in lines that have nothing in common', () => {
    const { rows } = diffRows('alpha beta\n', 'one two three four\n');
    expect(rows.flatMap(words).some((part) => part.changed)).toBe(false);
  });

  it('folds unchanged lines and gives them back with their numbers', () => {
    const old = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`).join('\n') + '\n';
    const next = old.replace('line 20\n', 'line twenty\n');
    const { rows } = diffRows(old, next);
    expect(rows[0]).toEqual({ kind: 'fold', oldLine: 1, newLine: 1, lines: 16 });
    expect(rows.at(-1)).toEqual({ kind: 'fold', oldLine: 24, newLine: 24, lines: 17 });
    expect(foldRows(next, rows.at(-1) as Extract<DiffRow, { kind: 'fold' }>)[16]).toEqual({
      kind: 'same',
      oldLine: 40,
      newLine: 40,
      text: 'line 40',
    });
  });

  it('shows a new file as added and an emptied one as removed', () => {
    expect(diffRows(null, 'a\nb\n')).toMatchObject({
      added: 2,
      removed: 0,
      rows: [
        { kind: 'added', newLine: 1 },
        { kind: 'added', newLine: 2 },
      ],
    });
    expect(diffRows('a\nb\n', '')).toMatchObject({
      added: 0,
      removed: 2,
      rows: [
        { kind: 'removed', oldLine: 1 },
        { kind: 'removed', oldLine: 2 },
      ],
    });
    expect(diffRows(null, '').rows).toEqual([]);
  });

  it('says when only the last line end differs', () => {
    expect(diffRows('a\n', 'a').rows).toEqual([
      { kind: 'fold', oldLine: 1, newLine: 1, lines: 1 },
      { kind: 'noEnd', side: 'new' },
    ]);
    expect(diffRows('a', 'a\n').rows.at(-1)).toEqual({ kind: 'noEnd', side: 'old' });
  });

  it('writes rows as a plain diff for a reader', () => {
    expect(diffRows('a\nb\n', 'a\nc\n').rows.map(rowLine)).toEqual(['  a', '- b', '+ c']);
  });

  it('holds both texts whole, whatever changed', () => {
    const text = fc
      .array(
        fc.constantFrom(
          'a',
          'b',
          'c',
          '',
          'a long line of words',
          'a long line with words',
          '-x',
          '+y',
          ' z',
          '\\ No newline',
        ),
        { maxLength: 30 },
      )
      .map((lines) => (lines.length === 0 ? '' : `${lines.join('\n')}\n`));
    fc.assert(
      fc.property(text, text, (oldText, newText) => {
        const { rows, added, removed } = diffRows(oldText, newText);
        const back = rebuild(newText, rows);
        expect(back).toEqual({ old: asLines(oldText), new: asLines(newText) });
        expect(rows.filter((row) => row.kind === 'added')).toHaveLength(added);
        expect(rows.filter((row) => row.kind === 'removed')).toHaveLength(removed);
      }),
      { numRuns: 500 },
    );
  });

  it('numbers lines as they stand in each file', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 20 }),
        fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 20 }),
        (old, next) => {
          const newText = next.map((line) => `${line}\n`).join('');
          const rows = diffRows(old.map((line) => `${line}\n`).join(''), newText).rows.flatMap((row) =>
            row.kind === 'fold' ? foldRows(newText, row) : [row],
          );
          for (const row of rows) {
            if (row.kind === 'same')
              expect([old[row.oldLine - 1], next[row.newLine - 1]]).toEqual([row.text, row.text]);
            if (row.kind === 'removed') expect(old[row.oldLine - 1]).toBe(row.parts.map((part) => part.text).join(''));
            if (row.kind === 'added') expect(next[row.newLine - 1]).toBe(row.parts.map((part) => part.text).join(''));
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
