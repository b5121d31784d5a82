import { execFileSync } from 'node:child_process';
import { linkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { fileEntry } from '#protocol/methods/workspace.ts';
import { z } from '#protocol/schema.ts';
import { codeOf, fill, makeRoot } from './parts.ts';

describe('F-02 listing', () => {
  test('lists one level, folders first, names sorted without regard to case', () => {
    const { root } = makeRoot({ 'b.txt': '12345', 'A.txt': '', 'z/inner': '', 'c/': '' });
    const { entries, total, truncated, cursor } = root.list('');
    expect(entries.map(({ name, type, bytes }) => [name, type, type === 'file' ? bytes : 0])).toEqual([
      ['c', 'directory', 0],
      ['z', 'directory', 0],
      ['A.txt', 'file', 0],
      ['b.txt', 'file', 5],
    ]);
    expect([total, truncated, cursor]).toEqual([4, false, null]);
    expect(root.list('z').entries.map(({ path }) => path)).toEqual(['z/inner']);
  });

  test('pages by 200 over one frozen list of names', () => {
    const { root, path } = makeRoot();
    for (let file = 0; file < 450; file += 1) writeFileSync(join(path, `f${String(file).padStart(3, '0')}`), '');
    const first = root.list('');
    writeFileSync(join(path, 'a-later'), '');
    const second = root.list('', first.cursor ?? '');
    const third = root.list('', second.cursor ?? '');
    const names = [first, second, third].flatMap(({ entries }) => entries.map(({ name }) => name));
    expect([first.entries.length, second.entries.length, third.entries.length]).toEqual([200, 200, 50]);
    expect(names).toEqual([...names].sort());
    expect(new Set(names).size).toBe(450);
    expect([first.total, third.cursor]).toEqual([450, null]);
  });

  test('any place of a list is reached at once with its cursor', () => {
    const { root, path } = makeRoot();
    for (let file = 0; file < 700; file += 1) writeFileSync(join(path, `f${String(file).padStart(3, '0')}`), '');
    const cursor = root.list('').cursor ?? '';
    expect(root.list('', cursor, 650).entries.map(({ name }) => name)).toEqual(
      Array.from({ length: 50 }, (_, at) => `f${650 + at}`),
    );
    expect(root.list('', cursor, 0).entries[0]?.name).toBe('f000');
    expect(root.list('', cursor, 9999).entries).toEqual([]);
    expect(root.list('', cursor).entries[0]?.name).toBe('f200');
  });

  test('says what ignore files name, also from above and for what lies in it', () => {
    const { root } = makeRoot({
      '.gitignore': 'dist/\n*.log\n',
      'a/.ignore': 'gen\n!keep.log\n',
      'a/gen': '',
      'a/keep.log': '',
      'a/x.log': '',
      'dist/f': '',
      f: '',
    });
    const ignored = (path: string): string[] =>
      root.list(path).entries.flatMap((entry) => (entry.ignored === true ? [entry.name] : []));
    expect(ignored('')).toEqual(['dist']);
    expect(ignored('a')).toEqual(['gen', 'x.log']);
    expect(ignored('dist')).toEqual(['f']);
  });

  test('a cursor ends after five minutes, is of one path, and can be asked again', () => {
    let now = 1_000_000;
    const { root, path } = makeRoot({ 'other/': '' }, [], () => now);
    for (let file = 0; file < 201; file += 1) writeFileSync(join(path, `f${file}`), '');
    const cursor = root.list('').cursor ?? '';
    expect(root.list('', cursor).entries).toEqual(root.list('', cursor).entries);
    expect(codeOf(() => root.list('other', cursor))).toBe('unknown_cursor');
    expect(codeOf(() => root.list('', 'of nowhere'))).toBe('unknown_cursor');
    now += limits.directoryCursorMs;
    expect(codeOf(() => root.list('', cursor))).toBe('unknown_cursor');
  });

  test('describes links without following them', () => {
    const { root, path, outside } = makeRoot({ 'real/f': '' });
    fill(outside, { f: '' });
    const targets = {
      in: 'real/f',
      inFolder: './real',
      out: outside,
      up: '../outside/f',
      gone: 'nothing',
      chainIn: 'in',
      chainOut: 'out',
      self: 'self',
      through: 'out/f',
      root: '.',
    };
    for (const [name, target] of Object.entries(targets)) symlinkSync(target, join(path, name));
    const places = Object.fromEntries(
      root
        .list('')
        .entries.flatMap(({ name, link, type }) =>
          link === undefined ? [] : [[name, [type, link.target, link.place]]],
        ),
    );
    const places2 = Object.fromEntries(
      Object.entries(targets).map(([name, target]) => [
        name,
        [
          'symlink',
          target,
          { in: 'inside', inFolder: 'inside', chainIn: 'inside', root: 'inside', gone: 'missing' }[name] ?? 'outside',
        ],
      ]),
    );
    expect(places).toEqual(places2);
  });

  test('a name that is not UTF-8 is listed escaped, without a path, never substituted', () => {
    const { root, path } = makeRoot();
    writeFileSync(Buffer.concat([Buffer.from(`${path}/caf`), Buffer.from([0xe9, 0xff])]), 'x');
    const [entry] = root.list('').entries;
    expect(entry).toMatchObject({ name: 'caf\\xe9\\xff', path: null, type: 'file', bytes: 1 });
  });

  test('control and bidirectional characters are escaped for display and exact in the path', () => {
    const { root } = makeRoot({ 'a\u202etxt.exe': '', 'b\u001b[2J': '', 'c\nd': '' });
    expect(root.list('').entries.map(({ name, path }) => [name, path])).toEqual([
      ['a\\u{202e}txt.exe', 'a\u202etxt.exe'],
      ['b\\x1b[2J', 'b\u001b[2J'],
      ['c\\x0ad', 'c\nd'],
    ]);
  });

  test('every entry fits the wire, the longest and oddest names too', () => {
    const { root, path } = makeRoot();
    writeFileSync(Buffer.concat([Buffer.from(`${path}/`), Buffer.alloc(255, 0xff)]), '');
    writeFileSync(join(path, '\u0001'.repeat(255)), '');
    writeFileSync(join(path, '\u0085'.repeat(127)), '');
    writeFileSync(join(path, 'back\\slash'), '');
    const { entries } = root.list('');
    expect(entries).toHaveLength(4);
    expect(z.array(fileEntry).safeParse(entries).success).toBe(true);
    expect(entries.find(({ name }) => name === 'back\\slash')?.path).toBeNull();
  });

  test('T58 a file with several names is shown as shared', () => {
    const { root, path, outside } = makeRoot({ alone: '' });
    fill(outside, { f: 'x' });
    linkSync(join(outside, 'f'), join(path, 'linked'));
    expect(root.list('').entries.map(({ name, shared }) => [name, shared])).toEqual([
      ['alone', undefined],
      ['linked', true],
    ]);
  });

  test('says when a folder has more entries than are looked at', () => {
    const { root, path } = makeRoot({ 'big/': '' });
    execFileSync('sh', ['-c', `seq ${limits.directoryEntries + 1} | xargs touch`], { cwd: join(path, 'big') });
    const { total, truncated } = root.list('big');
    expect([total, truncated]).toEqual([limits.directoryEntries, true]);
  });
});
