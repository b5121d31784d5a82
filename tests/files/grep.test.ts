import { spawnSync } from 'node:child_process';
import { linkSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { methods } from '#protocol/methods.ts';
import type { FoundLine } from '#protocol/methods/workspace.ts';
import { createLooks } from '../../bridge/files/looks.ts';
import type { Root, SearchPage } from '../../bridge/files/contract.ts';
import { linesWith, patternOf, type Wanted } from '../../bridge/files/pattern.ts';
import { openRoot } from '../../bridge/files/root.ts';
import { codeOf, fill, makeRoot } from './parts.ts';

const never = new AbortController().signal;
// As the bridge has it: only the first seeker compiles.
const cache = mkdtempSync(join(tmpdir(), 'countersign-files-cache-'));
enableCompileCache(cache);
afterAll(() => rmSync(cache, { recursive: true, force: true }));
const path = process.env['PATH'];
afterEach(() => {
  process.env['PATH'] = path;
});
const wanted = (query: string, more: Partial<Wanted> = {}): Wanted => ({
  query,
  ...{ regexp: false, matchCase: false, word: false, include: '' },
  ...more,
});

/** All pages of one search. */
const grep = async (root: Root, query: string, more: Partial<Wanted> = {}) => {
  const search = root.grep(wanted(query, more));
  const lines: FoundLine[] = [];
  for (;;) {
    const page = await search.next(never);
    lines.push(...page.lines);
    if (page.ended) return { ...page, lines };
  }
};
const placesOf = ({ lines }: Pick<SearchPage, 'lines'>): string[] =>
  lines.map(({ path, line }) => `${path}:${line}`).sort();

/** With the seeker's own walk, and guided by ripgrep where it is installed. */
const ways = ['walked', 'guided'] as const;
const hasRipgrep = spawnSync('rg', ['--version']).status === 0;
const take = (way: (typeof ways)[number], skip: (note: string) => never): void => {
  if (way === 'walked') process.env['PATH'] = '';
  else if (!hasRipgrep) skip('skipped, because ripgrep is not installed here');
};

describe.each(ways)('F-06 search in contents (%s)', (way) => {
  test('finds lines in text, with their numbers and where in them', async ({ skip }) => {
    take(way, skip);
    const { root } = makeRoot({
      'src/a.ts': 'one\nTwo two\r\n\nthree two\n',
      'b.md': 'two',
      '.hidden/c': 'two\n',
      'd.txt': 'nothing',
    });
    const found = await grep(root, 'two');
    expect(placesOf(found)).toEqual(['.hidden/c:1', 'b.md:1', 'src/a.ts:2', 'src/a.ts:4']);
    expect(found.lines.find(({ line }) => line === 2)).toEqual({
      path: 'src/a.ts',
      line: 2,
      text: 'Two two',
      from: 0,
      more: false,
      marks: [
        [0, 3],
        [4, 3],
      ],
    });
    expect(placesOf(await grep(root, 'two', { matchCase: true }))).toContain('src/a.ts:2');
    expect(placesOf(await grep(root, 'Two', { matchCase: true }))).toEqual(['src/a.ts:2']);
    expect(placesOf(await grep(root, 'wo', { word: true }))).toEqual([]);
    expect(placesOf(await grep(root, '^t.*o$', { regexp: true }))).toEqual([
      '.hidden/c:1',
      'b.md:1',
      'src/a.ts:2',
      'src/a.ts:4',
    ]);
    expect(placesOf(await grep(root, '(?<=three )two', { regexp: true }))).toEqual(['src/a.ts:4']);
    expect(placesOf(await grep(root, 'two', { include: '*.ts' }))).toEqual(['src/a.ts:2', 'src/a.ts:4']);
    expect(placesOf(await grep(root, 'two', { include: '!src' }))).toEqual(['.hidden/c:1', 'b.md:1']);
  });

  test('shows nothing secret, ignored, packaged, binary or behind a link; says how much it left out', async ({
    skip,
  }) => {
    take(way, skip);
    const { root, path, outside } = makeRoot({
      '.env': 'needle',
      'deep/id_rsa': 'needle',
      '.git/config': 'needle',
      '.gitignore': 'dist/\n*.log\n',
      'dist/x': 'needle',
      'a.log': 'needle',
      'node_modules/p/i.js': 'needle',
      binary: Buffer.from('needle\0'),
      latin: Buffer.from('needle caf\xe9', 'latin1'),
      plain: 'needle',
    });
    fill(outside, { f: 'needle' });
    symlinkSync(outside, join(path, 'linked'));
    symlinkSync(join(outside, 'f'), join(path, 'link'));
    linkSync(join(path, '.env'), join(path, 'notes.txt'));
    const found = await grep(root, 'needle');
    expect(placesOf(found)).toEqual(['plain:1']);
    if (way === 'walked') expect(found.skipped).toBe(6 - 1);
  });
});

describe('F-06 search in contents', () => {
  test('a pattern without an end is ended, and nothing else waits for it', async () => {
    process.env['PATH'] = '';
    const { root } = makeRoot({ evil: `${'a'.repeat(200)}!\n`, 'z/later': 'aab' });
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 20);
    const found = await grep(root, '(a+)+b$', { regexp: true });
    clearInterval(timer);
    expect(found.stopped).toBe('slow');
    expect(turns).toBeGreaterThan(50);
  });

  test('what is no pattern is refused before anything starts', () => {
    const { root } = makeRoot();
    for (const [query, regexp] of [
      ['', false],
      ['a\nb', false],
      ['(', true],
      ['\0', false],
    ] as const)
      expect(codeOf(() => root.grep(wanted(query, { regexp })))).toBe('invalid_pattern');
    expect(codeOf(() => root.grep(wanted('a\\-b', { regexp: true })).end())).toBe('done');
  });

  test('stops at its bound of lines and says so; pages are no larger than an answer', async () => {
    process.env['PATH'] = '';
    const { root } = makeRoot({
      f: 'x\n'.repeat(limits.grepLines + 100),
      long: `${'"\\'.repeat(5000)}x\n`.repeat(300),
    });
    const search = root.grep(wanted('x'));
    const counts: number[] = [];
    for (;;) {
      const { ended, stopped, ...page } = await search.next(never);
      counts.push(page.lines.length);
      const answer = { ...page, stopped, cursor: ended ? null : 'c' };
      const { ended: _, ...wire } = { ...answer, ended };
      expect(methods['files.grep'].result.safeParse(wire).success).toBe(true);
      expect(Buffer.byteLength(JSON.stringify(wire))).toBeLessThan(limits.frameBytes);
      if (!ended) continue;
      expect(stopped).toBe('lines');
      break;
    }
    expect(Math.max(...counts)).toBeLessThanOrEqual(limits.grepPage);
    expect(counts.reduce((sum, each) => sum + each)).toBe(limits.grepLines);
  });

  test('is cancelled by its signal, by the end of the root, and by end', async () => {
    process.env['PATH'] = '';
    const { root, path } = makeRoot({ evil: `${'a'.repeat(200)}!\n` });
    const abort = new AbortController();
    const first = root.grep(wanted('(a+)+b$', { regexp: true }));
    const waiting = first.next(abort.signal);
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
    const second = root.grep(wanted('(a+)+b$', { regexp: true }));
    const next = second.next(never);
    second.end();
    await expect(next).rejects.toMatchObject({ code: 'cancelled' });
    const other = openRoot({ workspaceId: root.workspaceId, path, privateDirectories: [] });
    const third = other.grep(wanted('(a+)+b$', { regexp: true }));
    const last = third.next(never);
    other.close();
    await expect(last).rejects.toMatchObject({ code: 'cancelled' });
  });

  test('an attachment has one search: another ends it, and so does its own end', async () => {
    process.env['PATH'] = '';
    const { root } = makeRoot({ evil: `${'a'.repeat(200)}!\n`, b: 'x' });
    const ends = new Map<string, () => void>();
    let made = 0;
    const looks = createLooks({
      random: () => `c${(made += 1)}`,
      changed: () => undefined,
      whenDetached: (attachmentId, run) => void ends.set(attachmentId, run),
    });
    const ask = (params: { query: string; cursor?: string }) =>
      looks.grep('a', root, { workspaceId: root.workspaceId, regexp: true, ...params }, never);
    const first = await ask({ query: '(a+)+b$' });
    expect(first.cursor).toBe('c1');
    const second = await ask({ query: '(a+)+b$' });
    await expect(ask({ query: '', cursor: first.cursor ?? '' })).rejects.toMatchObject({ code: 'unknown_cursor' });
    const waiting = ask({ query: '', cursor: second.cursor ?? '' });
    ends.get('a')?.();
    await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
    await expect(ask({ query: '', cursor: second.cursor ?? '' })).rejects.toMatchObject({ code: 'unknown_cursor' });
    expect((await ask({ query: 'x' })).cursor === null || made === 3).toBe(true);
  });

  test('nothing begins for an attachment that has ended', async () => {
    const { root } = makeRoot({ f: 'x' });
    const looks = createLooks({ random: () => 'c', changed: () => undefined, whenDetached: (_, run) => run() });
    const asked = looks.grep('a', root, { workspaceId: root.workspaceId, query: 'x' }, never);
    await expect(asked).rejects.toMatchObject({ code: 'cancelled' });
    expect(codeOf(() => looks.watch('a', root, [''], undefined))).toBe('cancelled');
  });

  test('a long line is shown around its first match, no character cut in two', () => {
    const text = `${'😀'.repeat(1000)}needle${'é'.repeat(1000)}needle`;
    const [hit] = [...linesWith(text, patternOf(wanted('needle')))];
    expect(hit?.more).toBe(true);
    expect(hit?.text.isWellFormed()).toBe(true);
    expect(hit?.text.length).toBeLessThanOrEqual(limits.grepLineUnits);
    expect(hit?.marks.map(([at, length]) => hit.text.slice(at, at + length))).toEqual(['needle']);
    expect(text.slice(hit?.from, (hit?.from ?? 0) + (hit?.text.length ?? 0))).toBe(hit?.text);
  });

  test('an answer comes while the search goes on', async () => {
    process.env['PATH'] = '';
    const { root, path } = makeRoot();
    for (let file = 0; file < 60; file += 1) writeFileSync(join(path, `f${file}`), `${'a'.repeat(20)}!\nneedle\n`);
    const search = root.grep(wanted('(a+)+b|needle', { regexp: true }));
    const pages: SearchPage[] = [];
    do pages.push(await search.next(never));
    while (pages.at(-1)?.ended === false);
    expect(pages.length).toBeGreaterThan(1);
    expect(pages.at(-1)).toMatchObject({ files: 60, skipped: 0, stopped: null });
    expect(pages.flatMap(({ lines }) => lines)).toHaveLength(60);
  });
});
