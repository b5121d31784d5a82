import { structuredPatch } from 'diff';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ChangeEntry, ChangeSource, CheckpointInfo, GitStatus } from '#protocol/methods/git.ts';
import type { App } from '../../web/state/app.svelte.ts';
import { Changes } from '../../web/state/changes.svelte.ts';
import type { BlockSlot } from '../../web/state/contract.ts';
import { explained } from '../../web/view/changes/failure.ts';
import { listRows, nextEntry, statusGroups } from '../../web/view/changes/groups.ts';
import { itemKey, lineOf, pickedBetween, stepLine, withComments, type Item } from '../../web/view/changes/items.ts';
import { changeKey } from '../../web/view/changes/keys.ts';
import { sourceIn } from '../../web/view/changes/link.ts';
import {
  changeStarts,
  isLine,
  knownLines,
  pairs,
  partsOf,
  stretches,
  textRows,
  unfoldRange,
  type Fold,
  type Line,
  type Row,
  type TextDiff,
} from '../../web/view/changes/rows.ts';
import { entryTags, textTags } from '../../web/view/changes/tags.ts';
import { turnChoices } from '../../web/view/changes/turns.ts';

const uuid = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const entry = (name: string, change: Partial<ChangeEntry> = {}): ChangeEntry => ({
  id: Buffer.from(name).toString('base64url'),
  name,
  path: name,
  state: 'modified',
  what: 'file',
  secret: false,
  ...change,
});

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));
/** The difference of two texts as the bridge sends it. */
const difference = (oldText: string, newText: string, context = 3): TextDiff => ({
  kind: 'text',
  hunks: structuredPatch('', '', oldText, newText, undefined, undefined, { context }).hunks.map((hunk) => ({
    // The library numbers an empty side by the line after it, git by the line before.
    oldStart: hunk.oldLines === 0 ? hunk.oldStart - 1 : hunk.oldStart,
    oldLines: hunk.oldLines,
    newStart: hunk.newLines === 0 ? hunk.newStart - 1 : hunk.newStart,
    newLines: hunk.newLines,
    section: '',
    lines: hunk.lines,
  })),
  eol: { old: 'lf', new: 'lf' },
  onlyEol: false,
  replaced: false,
  lines: { old: linesOf(oldText).length, new: linesOf(newText).length },
});
const none: ReadonlyMap<number, string> = new Map();
const kinds = (rows: readonly { readonly kind: string }[]): string[] => rows.map((row) => row.kind);
const numbered = (count: number): string => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join('');
const changed = numbered(60).replace('line 30\n', 'line thirty\n');

describe('rows of a difference (F-22)', () => {
  it('numbers both sides and folds what is between, counted', () => {
    const rows = textRows(difference(numbered(60), changed), none);
    expect(rows[0]).toEqual({ kind: 'fold', oldLine: 1, newLine: 1, lines: 26, section: '' });
    expect(rows.at(-1)).toEqual({ kind: 'fold', oldLine: 34, newLine: 34, lines: 27, section: '' });
    expect(rows.filter(isLine).map((row) => [row.oldLine, row.newLine, row.text])).toEqual([
      [27, 27, 'line 27'],
      [28, 28, 'line 28'],
      [29, 29, 'line 29'],
      [30, null, 'line 30'],
      [null, 30, 'line thirty'],
      [31, 31, 'line 31'],
      [32, 32, 'line 32'],
      [33, 33, 'line 33'],
    ]);
  });

  it('shows fetched lines in their place and folds the rest on both sides of them', () => {
    const unfolded = new Map([
      [10, 'line 10'],
      [11, 'line 11'],
    ]);
    const rows = textRows(difference(numbered(60), changed), unfolded);
    expect(rows.slice(0, 4)).toEqual([
      { kind: 'fold', oldLine: 1, newLine: 1, lines: 9, section: '' },
      { kind: 'same', oldLine: 10, newLine: 10, text: 'line 10', other: null },
      { kind: 'same', oldLine: 11, newLine: 11, text: 'line 11', other: null },
      { kind: 'fold', oldLine: 12, newLine: 12, lines: 15, section: '' },
    ]);
  });

  it('asks for the next lines, the ones before the next change, or all', () => {
    const fold: Fold = { kind: 'fold', oldLine: 5, newLine: 8, lines: 50, section: '' };
    expect(unfoldRange(fold, 'down', 20)).toEqual({ firstLine: 8, lines: 20 });
    expect(unfoldRange(fold, 'up', 20)).toEqual({ firstLine: 38, lines: 20 });
    expect(unfoldRange(fold, 'all', 20)).toEqual({ firstLine: 8, lines: 50 });
    expect(unfoldRange({ ...fold, lines: 3 }, 'up', 20)).toEqual({ firstLine: 8, lines: 3 });
  });

  it('loses no line: rows and folds give back both texts', () => {
    const text = fc
      .array(fc.constantFrom('a', 'b', 'c', '', '  x'), { maxLength: 40 })
      .map((all) => all.map((one) => `${one}\n`).join(''));
    fc.assert(
      fc.property(text, text, fc.integer({ min: 0, max: 4 }), fc.boolean(), (oldText, newText, context, open) => {
        const content = difference(oldText, newText, context);
        if (content.hunks.length === 0) return;
        const [before, after] = [linesOf(oldText), linesOf(newText)];
        const unfolded = new Map(open ? after.map((line, index) => [index + 1, line] as const) : []);
        const rows = textRows(content, unfolded);
        expect(open && rows.some((row) => row.kind === 'fold')).toBe(false);
        for (const [side, lines] of [
          ['old', before],
          ['new', after],
        ] as const) {
          const shown = knownLines(rows, side);
          const folded = rows.flatMap((row) => (row.kind === 'fold' ? [row] : []));
          for (const row of folded)
            for (let index = 0; index < row.lines; index += 1) {
              const line = (side === 'old' ? row.oldLine : row.newLine) + index;
              expect(shown.has(line)).toBe(false);
              shown.set(line, lines[line - 1] ?? 'nothing there');
            }
          expect([...shown].sort(([a], [b]) => a - b)).toEqual(lines.map((line, index) => [index + 1, line]));
        }
        // Beside each other stand the same lines, none twice.
        const beside = pairs(rows).flatMap((row) => (row.kind === 'pair' ? [row] : []));
        expect(beside.flatMap((row) => row.old?.oldLine ?? [])).toEqual(
          rows.filter(isLine).flatMap((row) => row.oldLine ?? []),
        );
        expect(beside.flatMap((row) => row.new?.newLine ?? [])).toEqual(
          rows.filter(isLine).flatMap((row) => row.newLine ?? []),
        );
      }),
      { numRuns: 300 },
    );
  });

  it('shows a new file as added and a deleted one as removed, without folds', () => {
    expect(kinds(textRows(difference('', 'a\nb\n'), none))).toEqual(['added', 'added']);
    expect(kinds(textRows(difference('a\nb\n', ''), none))).toEqual(['removed', 'removed']);
  });

  it('says where the line end at the end is missing', () => {
    expect(textRows(difference('a\nb', 'a\nc\n'), none).at(-1)).toEqual({ kind: 'noEnd', side: 'old' });
    expect(textRows(difference('a\nb\n', 'a\nc'), none).at(-1)).toEqual({ kind: 'noEnd', side: 'new' });
    expect(textRows(difference('a\nb', 'a\nc'), none).at(-1)).toEqual({ kind: 'noEnd', side: 'both' });
    expect(textRows(difference('a\nb', 'c\nb'), none).at(-1)).toEqual({ kind: 'noEnd', side: 'both' });
  });

  it('leaves CR LF out of the lines where the whole side has it, and shows it where one line has', () => {
    const content = difference('a\r\nb\r\n', 'a\r\nc\r\n');
    const texts = (eol: TextDiff['eol']) =>
      textRows({ ...content, eol }, none)
        .filter(isLine)
        .map((row) => row.text);
    expect(texts({ old: 'crlf', new: 'crlf' })).toEqual(['a', 'b', 'c']);
    expect(texts({ old: 'crlf', new: 'mixed' })).toEqual(['a\r', 'b', 'c\r']);
  });

  it('puts what was removed beside what came in its place', () => {
    const rows = textRows(difference('a\nb\nc\n', 'a\nB\nC\nD\n'), none);
    expect(
      pairs(rows).map((row) => (row.kind === 'pair' ? [row.old?.text ?? null, row.new?.text ?? null] : row.kind)),
    ).toEqual([
      ['a', 'a'],
      ['b', 'B'],
      ['c', 'C'],
      [null, 'D'],
    ]);
  });

  it('marks the words that changed in lines that belong together', () => {
    const rows = textRows(difference('const d = new Date(s)\n', 'const d = parseISO(s)\n'), none) as Line[];
    const marks = rows.map((row) =>
      partsOf(row)
        .filter((part) => part.changed)
        .map((part) => part.text),
    );
    expect(marks[1]).toEqual(['parseISO']);
    expect(marks[0]?.join('')).toContain('new');
  });

  it('lays colours and word marks over each other without losing a character', () => {
    const parts = [
      { text: 'const d = ', changed: false },
      { text: 'parseISO', changed: true },
      { text: '(s)', changed: false },
    ];
    const runs = [
      ['keyword', 'const'],
      ['', ' d = parse'],
      ['function', 'ISO(s)'],
    ] as const;
    expect(stretches(parts, runs)).toEqual([
      { text: 'const', changed: false, kind: 'keyword' },
      { text: ' d = ', changed: false, kind: '' },
      { text: 'parse', changed: true, kind: '' },
      { text: 'ISO', changed: true, kind: 'function' },
      { text: '(s)', changed: false, kind: 'function' },
    ]);
    expect(stretches(parts, [['keyword', 'something else']]).map((one) => one.kind)).toEqual(['', '', '']);
    expect(
      stretches(parts, undefined)
        .map((one) => one.text)
        .join(''),
    ).toBe('const d = parseISO(s)');
  });

  it('begins a change once, however a comment stands in it', () => {
    const rows: Row[] = textRows(difference(numbered(60), changed.replace('line 50\n', '')), none);
    const starts = changeStarts(rows);
    expect(starts.map((index) => (rows[index] as Line).oldLine)).toEqual([30, 50]);
    const items = withComments(rows, [], { side: 'old', from: 30, to: 30 });
    expect(changeStarts(items)).toEqual([starts[0], (starts[1] ?? 0) + 1]);
    expect(changeStarts(pairs(rows))).toHaveLength(2);
  });
});

describe('walking and picking lines', () => {
  const rows = textRows(difference(numbered(60), changed), none);
  const at = (kind: Row['kind']): number => rows.findIndex((row) => row.kind === kind);

  it('steps over folds, stays at the ends', () => {
    const items: Item[] = withComments(rows, [], null);
    expect(stepLine(items, 0, 1)).toBe(1);
    expect(stepLine(items, 1, -1)).toBe(1);
    expect(stepLine(items, -1, 1)).toBe(1);
    expect(stepLine(items, items.length - 2, 5)).toBe(items.length - 2);
  });

  it('picks lines of one side only, in either direction', () => {
    const [gone, come] = [at('removed'), at('added')];
    expect(pickedBetween(rows, gone, gone, null)).toEqual({ side: 'old', from: 30, to: 30 });
    expect(pickedBetween(rows, come, come + 2, null)).toEqual({ side: 'new', from: 30, to: 32 });
    expect(pickedBetween(rows, come + 2, gone - 1, null)).toEqual({ side: 'new', from: 29, to: 32 });
    // What was removed has no line on the new side: the pick ends before it.
    expect(pickedBetween(rows, come + 2, gone, 'new')).toEqual({ side: 'new', from: 30, to: 32 });
    expect(pickedBetween(rows, 0, 0, null)).toBeNull();
  });

  it('gives every row a key of its own', () => {
    for (const all of [rows, pairs(rows)]) {
      const keys = (all as Item[]).map(itemKey);
      expect(new Set(keys).size).toBe(keys.length);
    }
  });

  it('finds a line of either side beside the other', () => {
    const both = pairs(rows).find((row) => row.kind === 'pair' && row.old !== row.new);
    expect(both === undefined ? [] : [lineOf(both, 'old'), lineOf(both, 'new')]).toEqual([30, 30]);
  });
});

describe('keys of the changes', () => {
  const press = (key: string, more: Partial<Parameters<typeof changeKey>[0]> = {}) =>
    changeKey({
      key,
      ctrlKey: false,
      metaKey: false,
      altKey: false,
      shiftKey: false,
      repeat: false,
      isComposing: false,
      keyCode: 0,
      ...more,
    });

  it.each([
    ['j', 'down'],
    ['ArrowUp', 'up'],
    ['n', 'nextChange'],
    ['p', 'previousChange'],
    ['o', 'file'],
    ['c', 'comment'],
    ['u', 'unified'],
    ['s', 'split'],
    ['?', 'help'],
    ['x', null],
    ['toString', null],
  ])('%s means %s', (key, act) => expect(press(key)).toBe(act));

  it('takes nothing with a modifier or from an input method, and repeats only moving (case 42)', () => {
    expect(press('c', { ctrlKey: true })).toBeNull();
    expect(press('j', { keyCode: 229 })).toBeNull();
    expect(press('c', { repeat: true })).toBeNull();
    expect(press('j', { repeat: true })).toBe('down');
    expect(press('ArrowDown', { shiftKey: true })).toBe('extendDown');
  });
});

describe('the list of changed files (F-21)', () => {
  const status: Pick<GitStatus, 'staged' | 'unstaged'> = {
    staged: [entry('a.ts'), entry('both.ts')],
    unstaged: [
      entry('both.ts'),
      entry('new.txt', { state: 'untracked' }),
      entry('fight.ts', { state: 'conflict', conflict: 'both_modified' }),
    ],
  };

  it('groups conflicts first, then staged, unstaged and untracked; each entry in exactly one', () => {
    expect(
      statusGroups(status).map((group) => [group.name, group.of.kind, group.entries.map((one) => one.name)]),
    ).toEqual([
      ['conflicts', 'unstaged', ['fight.ts']],
      ['staged', 'staged', ['a.ts', 'both.ts']],
      ['unstaged', 'unstaged', ['both.ts']],
      ['untracked', 'unstaged', ['new.txt']],
    ]);
    expect(statusGroups({ staged: [], unstaged: [] })).toEqual([]);
  });

  it('shows both edits of a file staged and then changed again (case 53)', () => {
    const rows = listRows(statusGroups(status), new Set());
    expect(rows.filter((row) => row.kind === 'entry' && row.entry.name === 'both.ts').map((row) => row.key)).toEqual([
      `staged/${entry('both.ts').id}`,
      `unstaged/${entry('both.ts').id}`,
    ]);
    expect(new Set(rows.map((row) => row.key)).size).toBe(rows.length);
  });

  it('folds a group to its heading and goes on over it', () => {
    const rows = listRows(statusGroups(status), new Set(['staged']));
    expect(rows.map((row) => row.kind)).toEqual(['group', 'entry', 'group', 'group', 'entry', 'group', 'entry']);
    expect(nextEntry(rows, 1, 1)).toBe(4);
    expect(nextEntry(rows, 6, 1)).toBe(-1);
    expect(nextEntry(rows, 1, -1)).toBe(-1);
  });

  it('says what is special in words', () => {
    expect(entryTags(entry('run.sh', { modes: { old: '100644', new: '100755' } }))).toEqual(['now executable']);
    expect(entryTags(entry('.env', { secret: true }))).toEqual(['kept secret']);
    expect(entryTags(entry('fight.ts', { conflict: 'deleted_by_them' }))).toEqual(['deleted there, changed here']);
    expect(
      entryTags(
        entry('sub', { what: 'submodule', submodule: { commitChanged: true, modified: false, untracked: true } }),
      ),
    ).toEqual(['submodule', 'other commit', 'untracked inside']);
    const text = difference('a\n', 'b\n');
    expect(textTags({ ...text, eol: { old: 'lf', new: 'crlf' }, onlyEol: true })).toEqual([
      'Nothing but the ends of the lines changed.',
      'Line ends changed: LF → CRLF',
    ]);
    expect(textTags(text)).toEqual([]);
  });

  it('has words and one act for every way git cannot answer', () => {
    for (const code of [
      'not_git_repository',
      'git_unavailable',
      'git_output_too_large',
      'git_timeout',
      'unsupported_git_state',
      'offline',
    ] as const) {
      const told = explained({ code, message: 'As the bridge says.' });
      expect(told.title).not.toBe('');
      expect(['retry', 'turn']).toContain(told.act);
    }
    expect(explained({ code: 'unsupported_git_state', message: 'It uses reftable.' }).hint).toContain(
      'It uses reftable.',
    );
  });
});

describe('turns to look at (F-23)', () => {
  const checkpoint = (
    n: number,
    why: CheckpointInfo['why'],
    turnId: string,
    change: Partial<CheckpointInfo> = {},
  ): CheckpointInfo => ({
    checkpointId: uuid(n),
    conversationId: uuid(1),
    turnId,
    why,
    at: n,
    files: 1,
    bytes: 1,
    skipped: 0,
    pruned: false,
    ...change,
  });
  const blocks = [
    { firstSeq: 1, endSeq: 9, view: { turnId: 't2', entries: [{ kind: 'message', role: 'user', text: 'Mend\n it' }] } },
  ] as unknown as BlockSlot[];

  it('lists each turn once, newest first, with what was asked; open ones and cleared ones are told apart', () => {
    const checkpoints = [
      checkpoint(5, 'before_turn', 't3'),
      checkpoint(4, 'after_turn', 't2'),
      checkpoint(3, 'before_turn', 't2'),
      checkpoint(2, 'after_turn', 't1'),
      checkpoint(1, 'before_turn', 't1', { pruned: true }),
    ];
    expect(turnChoices(checkpoints, blocks)).toEqual([
      { turnId: 't3', at: 5, asked: null, open: true },
      { turnId: 't2', at: 3, asked: 'Mend it', open: false },
    ]);
  });
});

describe('links to changes (U-12)', () => {
  const conversationId = uuid(1);
  it('names a source and nothing else', () => {
    expect(sourceIn('staged', conversationId)).toEqual({ kind: 'staged' });
    expect(sourceIn(`turn:${uuid(2)}`, conversationId)).toEqual({ kind: 'turn', conversationId, turnId: uuid(2) });
    expect(sourceIn(`checkpoints:${uuid(2)}`, conversationId)).toEqual({
      kind: 'checkpoints',
      conversationId,
      from: uuid(2),
      to: null,
    });
    expect(sourceIn(`commit:${'a'.repeat(40)}`, conversationId)).toEqual({ kind: 'commit', commit: 'a'.repeat(40) });
    for (const bad of ['', 'commit', 'commit:HEAD', 'turn:x', 'toString', '__proto__', 'constructor:a'])
      expect(sourceIn(bad, conversationId)).toBeUndefined();
  });
});

describe('the state of the panel', () => {
  const list: ChangeSource = { kind: 'turn', conversationId: uuid(1), turnId: uuid(2) };
  /** A bridge whose answers come when the test says. */
  const bridge = () => {
    const waiting: { method: string; params: unknown; answer: (value: unknown) => void }[] = [];
    const app = {
      call: (method: string, params: unknown) => new Promise((answer) => waiting.push({ method, params, answer })),
    } as unknown as App;
    return { app, waiting };
  };
  const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

  it('drops the answer of a source that is no longer looked at', async () => {
    const { app, waiting } = bridge();
    const changes = new Changes(app, uuid(9), uuid(1));
    void changes.load(list, true);
    void changes.load({ kind: 'commit', commit: 'b'.repeat(40) }, true);
    const answer = (method: string, value: unknown) =>
      waiting.find((one) => one.method === method)?.answer({ ok: true, value });
    answer('git.show', { info: { subject: 'later' }, message: 'm', entries: [], notes: [] });
    await settled();
    answer('git.changes', { entries: [entry('late.ts')], notes: [] });
    await settled();
    expect(changes.listed?.entries).toEqual([]);
    expect(changes.commit?.info.subject).toBe('later');
    expect(changes.loading).toBe(false);
  });

  it('shows what a turn changed also where there is no repository', async () => {
    const { app, waiting } = bridge();
    const changes = new Changes(app, uuid(9), uuid(1));
    void changes.load(list, true);
    waiting
      .find((one) => one.method === 'git.status')
      ?.answer({ ok: false, failure: { code: 'not_git_repository', message: 'no' } });
    waiting
      .find((one) => one.method === 'git.changes')
      ?.answer({ ok: true, value: { entries: [entry('a.ts')], notes: [] } });
    await settled();
    expect(changes.listed?.entries).toHaveLength(1);
    expect(changes.listFailure).toBeNull();
    expect(changes.statusFailure?.code).toBe('not_git_repository');
  });
});
