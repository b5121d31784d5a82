import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blanksOf, diffRows, foldRows, isCrlf, rowLine, type DiffRow } from '../../web/view/conversation/diff.ts';

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

  it('says when both lack the last line end, and when only spacing differs', () => {
    expect(diffRows('a', 'b').rows.at(-1)).toEqual({ kind: 'noEnd', side: 'both' });
    expect(diffRows('a  b\n', 'a b \n').spacing).toBe(true);
    expect(diffRows('a\r\n', 'a\n').spacing).toBe(true);
    expect(diffRows('a b\n', 'a c\n').spacing).toBe(false);
    expect(diffRows('a\n', 'a\n').spacing).toBe(false);
    expect(diffRows(null, ' \n').spacing).toBe(false);
  });

  it('marks blanks at the end of a line that comes', () => {
    expect(words(diffRows(null, 'a \t\n').rows[0])).toEqual([
      { text: 'a', changed: false },
      { text: ' \t', changed: true },
    ]);
    expect(words(diffRows(null, '  \n').rows[0])).toEqual([{ text: '  ', changed: true }]);
  });

  it('tells blanks that could be mistaken from the rest, dropping none', () => {
    expect(blanksOf(' a b\tc  d ').map((part) => part.text)).toEqual([' ', 'a b', '\t', 'c', '  ', 'd', ' ']);
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(' ', '\t', 'a', '\r') }), (text) => {
        expect(
          blanksOf(text)
            .map((part) => part.text)
            .join(''),
        ).toBe(text);
      }),
    );
  });

  it('takes a text for CRLF only if every line end is one', () => {
    expect(['a\r\n', '\r\n\r\n', 'a\r\nb'].map(isCrlf)).toEqual([true, true, true]);
    expect(['a\n', '\na\r\n', 'a\r\nb\rc', 'a', ''].map(isCrlf)).toEqual([false, false, false, false, false]);
  });

  it('bounds its work and its rows, and counts what it leaves out', () => {
    const huge = diffRows('a\n'.repeat(120_000), 'b\n'.repeat(60_000));
    expect(huge.coarse).toBe(true);
    expect(huge.rows).toHaveLength(100_000);
    expect(huge.left).toBe(80_000);
    expect(diffRows('a\n', 'b\n').left).toBe(0);
    expect(diffRows(null, 'a\n'.repeat(50_000)).left).toBe(0);
    const far = diffRows(`${'x '.repeat(499)}\n`, `${'y '.repeat(499)}\n`);
    expect(far.rows.flatMap(words).some((part) => part.changed && part.text.includes('x'))).toBe(false);
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
