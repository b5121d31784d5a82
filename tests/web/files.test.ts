import { describe, expect, it } from 'vitest';
import { limits } from '../../protocol/limits.ts';
import type { FileEntry, FileRead, FoundLine } from '../../protocol/methods/workspace.ts';
import type { App } from '../../web/state/app.svelte.ts';
import type { Dock } from '../../web/state/dock.svelte.ts';
import { File } from '../../web/state/file.svelte.ts';
import { Grep } from '../../web/state/grep.svelte.ts';
import { lettersOf } from '../../web/state/names.svelte.ts';
import { Tree } from '../../web/state/tree.svelte.ts';

type Asked = Readonly<Record<string, unknown>>;
/** A bridge that answers from a table, and what it was asked. */
const appOf = (
  answers: Readonly<Record<string, (asked: Asked) => unknown>>,
): { app: App; asked: [string, Asked][] } => {
  const asked: [string, Asked][] = [];
  const call = (method: string, params: Asked): Promise<unknown> => {
    asked.push([method, params]);
    const value = answers[method]?.(params);
    return Promise.resolve(
      value === undefined
        ? { ok: false, failure: { code: 'file_changed', message: 'The file changed.' } }
        : { ok: true, value },
    );
  };
  return { app: { call, can: () => true, live: true } as unknown as App, asked };
};
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe('letters of a name that are marked (F-06)', () => {
  const marked = (path: string, query: string): string => [...lettersOf(path, query)].map((at) => path[at]).join('');
  it('are a run in the name where there is one, else the first that fit', () => {
    expect([...lettersOf('dates/src/date.ts', 'date')]).toEqual([10, 11, 12, 13]);
    expect([...lettersOf('src/date.ts', 'sd')]).toEqual([0, 4]);
    expect(marked('src/Deep/Parse.ts', 'DEEP parse')).toBe('DeepParse');
    expect(marked('src/date.ts', 'zz')).toBe('');
  });
});

describe('a file read where somebody looks (F-03)', () => {
  const lines = Array.from({ length: 9000 }, (_, at) => `line ${at + 1}`);
  const read = (first: number, revision = 'r1'): FileRead => {
    const page = lines.slice(first - 1, first - 1 + limits.readLines);
    return {
      ...{ path: 'f', revision, bytes: 1, modifiedAt: 0 },
      content: {
        kind: 'text',
        text: page.map((line) => `${line}\r\n`).join(''),
        ...{ encoding: 'utf-8', preview: false, bom: false, eol: 'crlf' },
        ...{ firstLine: first, lines: page.length, nextOffset: null, totalLines: lines.length },
      },
    };
  };
  it('asks for the line that is wanted, once, and keeps what it has', async () => {
    const { app, asked } = appOf({ 'files.read': ({ line = 1 }) => read(line as number) });
    const file = new File(app, 'w', 'f');
    await settled();
    expect([file.count, file.line(0), file.line(2000)]).toEqual([9000, 'line 1', undefined]);
    await file.need(7000, 7050);
    expect(file.line(7000)).toBe('line 7001');
    await file.need(7010, 7040);
    expect(asked.map(([, params]) => params['line'])).toEqual([undefined, 7001]);
    expect(file.range(7000, 7002)).toEqual(['line 7001', 'line 7002']);
    expect(file.range(6999, 7001)).toBeNull();
  });
  it('stays as it is when the file changed meanwhile, and says so', async () => {
    let now: FileRead | undefined = read(1);
    const { app } = appOf({ 'files.read': () => now, 'files.stat': () => ({ revision: 'r2' }) });
    const file = new File(app, 'w', 'f');
    await settled();
    now = undefined;
    await file.need(5000, 5001);
    expect([file.changed, file.failure, file.line(0)]).toEqual(['changed', null, 'line 1']);
    now = read(1, 'r2');
    await file.reload();
    await file.check();
    expect(file.changed).toBeNull();
  });
});

describe('lines found (F-06)', () => {
  const found = (path: string, line: number): FoundLine => ({
    path,
    line,
    text: 'x',
    from: 0,
    more: false,
    marks: [[0, 1]],
  });
  it('are grouped by file however they come in, and gone through round', async () => {
    const pages = [
      { lines: [found('a', 1), found('b', 2)], files: 2, bytes: 0, skipped: 0, cursor: 'c', stopped: null },
      { lines: [found('a', 9)], files: 3, bytes: 0, skipped: 1, cursor: null, stopped: 'lines' },
    ];
    const { app, asked } = appOf({ 'files.grep': () => pages.shift() });
    const grep = new Grep(app, 'w');
    grep.query = 'x';
    await grep.start();
    expect(asked.map(([, params]) => params['cursor'])).toEqual([undefined, 'c']);
    expect(grep.rows.map(({ id }) => id)).toEqual(['a', 'a\u00001', 'a\u00009', 'b', 'b\u00002']);
    expect([grep.state, grep.fileCount, grep.progress.stopped]).toEqual(['done', 2, 'lines']);
    expect([1, 1, 1, 1, -1].map((step) => grep.move(step)?.line)).toEqual([1, 9, 2, 1, 2]);
    expect(grep.number).toBe(3);
  });
});

describe('the tree (U-07)', () => {
  const entry = (path: string, type: FileEntry['type'] = 'file'): FileEntry => ({
    ...{ name: path.slice(path.lastIndexOf('/') + 1), path, type, bytes: 0, modifiedAt: 0, secret: false },
  });
  const folders: Readonly<Record<string, FileEntry[]>> = {
    '': [entry('src', 'directory'), entry('.env'), entry('README.md')],
    src: [entry('src/deep', 'directory'), entry('src/date.ts')],
    'src/deep': [],
  };
  const treeOf = async (expanded: string[]) => {
    const { app } = appOf({
      'files.list': ({ path }) => {
        const entries = folders[path as string] ?? [];
        return { entries, total: entries.length, cursor: null, truncated: false };
      },
    });
    const shown: string[] = [];
    const dock = {
      expanded,
      expand: (paths: string[]) => (dock.expanded = paths),
      showFile: (path: string) => shown.push(path),
    };
    const tree = new Tree(app, dock as unknown as Dock, 'w');
    tree.fill();
    await settled();
    return { tree, dock, shown };
  };
  it('shows what is in open folders in place, and says that one is empty', async () => {
    const { tree } = await treeOf(['src', 'src/deep', 'gone/below']);
    expect(tree.shown).toEqual(['', 'src', 'src/deep']);
    expect(tree.rows.map(({ id, depth, kind }) => [id, depth, kind])).toEqual([
      ['src', 1, 'entry'],
      ['src/deep', 2, 'entry'],
      ['src/deep/\0empty', 3, 'empty'],
      ['src/date.ts', 2, 'entry'],
      ['.env', 1, 'entry'],
      ['README.md', 1, 'entry'],
    ]);
  });
  it('goes by keys over rows that can be opened, and to a name by its letters', async () => {
    const { tree, shown } = await treeOf(['src', 'src/deep']);
    const keys = (...pressed: string[]): string | null => {
      for (const key of pressed) expect(tree.key(key, 10)).toBe(true);
      return tree.active;
    };
    expect(keys('ArrowDown', 'ArrowDown')).toBe('src/deep');
    expect(keys('ArrowDown')).toBe('src/date.ts');
    expect(keys('ArrowLeft')).toBe('src');
    expect(keys('End')).toBe('README.md');
    expect(keys('Enter')).toBe('README.md');
    expect(shown).toEqual(['README.md']);
    tree.startingWith('d');
    expect(tree.active).toBe('src/deep');
    tree.startingWith('da');
    expect(tree.active).toBe('src/date.ts');
    expect(tree.key('x', 10)).toBe(false);
  });
  it('a folder of many pages is asked for where somebody looks', async () => {
    const many = Array.from({ length: 1000 }, (_, at) => entry(`f${at}`));
    const { app, asked } = appOf({
      'files.list': ({ from = 0 }) => ({
        entries: many.slice(from as number, (from as number) + limits.directoryPage),
        ...{ total: 1000, cursor: 'c', truncated: false },
      }),
    });
    const dock = { expanded: [], expand: () => undefined } as unknown as Dock;
    const tree = new Tree(app, dock, 'w');
    tree.fill();
    await settled();
    expect(tree.rows.map(({ kind }) => kind).filter((kind) => kind === 'waiting')).toHaveLength(800);
    tree.need(650, 660);
    tree.need(655, 670);
    await settled();
    expect(tree.rows[650]).toMatchObject({ kind: 'entry', id: 'f650' });
    expect(asked.map(([, params]) => params['from'])).toEqual([undefined, 600]);
  });
});
