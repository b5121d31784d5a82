/** An index of a few entries of another: what git reads of it is what it would read of the whole (F-22). */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { indexOf, readIndex } from '../../bridge/git/index-file.ts';
import { idOf, makeRepository, openRoom, plainEnv, type Repository } from './parts.ts';

/** Stage, object, name and what was seen of each file, of the entries with one of these names. */
const told = (repository: Repository, index: string, names: readonly string[]): string => {
  const all = execFileSync('git', ['ls-files', '--stage', '--debug'], {
    cwd: repository.path,
    env: { ...plainEnv(repository.base), GIT_INDEX_FILE: index },
  }).toString('utf8');
  const entries = all.split(/(?=^\d{6} )/m);
  return entries.filter((entry) => names.some((name) => entry.split('\n')[0]?.endsWith(`\t${name}`))).join('');
};

const names = ['a', 'a-b', 'a.b', 'a/b', 'a/b.c/d', 'ab', 'ä/ö', '.gitattributes', 'a/.gitattributes', 'z'];
const make = (format: string, version: string): Repository => {
  const repository = makeRepository('--object-format', format);
  const files = names.filter((name) => name !== 'a').map((name): [string, string] => [name, `${name}\n`]);
  repository.commit('first', Object.fromEntries(files));
  repository.git('config', 'core.quotePath', 'false');
  repository.git('update-index', '--index-version', version);
  // Extended flags, from version 3 on.
  if (version !== '2') {
    repository.write({ meant: 'to be added\n' });
    repository.git('add', '--intent-to-add', 'meant');
  }
  return repository;
};

describe.each([
  ['sha1', '2'],
  ['sha1', '3'],
  ['sha256', '2'],
  ['sha256', '3'],
])('with %s and version %s', (format, version) => {
  const oidBytes = format === 'sha1' ? 20 : 32;

  test('it holds every entry of a name, alone and with others, as the whole does', () => {
    const repository = make(format, version);
    const whole = join(repository.path, '.git/index');
    const bytes = readFileSync(whole);
    const { entries } = readIndex(bytes, oidBytes);
    if (entries === null) throw new Error('an index of this version can be taken apart');
    const small = join(repository.base, 'small');
    const read = (from: number, to: number): Buffer => bytes.subarray(from, to);
    for (const name of [...names.slice(1), ...(version === '2' ? [] : ['meant'])])
      for (const others of [
        [],
        ['.gitattributes', 'a/.gitattributes', 'not/there'].filter((other) => other !== name),
      ]) {
        const made = indexOf(
          entries,
          read,
          Buffer.from(name),
          others.map((other) => Buffer.from(other)),
        );
        writeFileSync(small, made ?? '');
        expect(told(repository, small, [name, ...others])).toBe(told(repository, whole, [name, ...others]));
        expect(readIndex(made ?? Buffer.alloc(0), oidBytes).entries?.starts.length).toBe(
          2 + others.filter((other) => names.includes(other)).length,
        );
      }
    // A folder, a part of a name, and what is not there.
    for (const name of ['a', 'a/', 'a/b.c', 'zz', '']) expect(indexOf(entries, read, Buffer.from(name), [])).toBeNull();
  });
});

test('a conflict has all its stages in it', () => {
  const repository = makeRepository();
  repository.commit('first', { a: 'one\n', b: 'two\n' });
  repository.git('checkout', '-q', '-b', 'side');
  repository.commit('side', { a: 'side\n' });
  repository.git('checkout', '-q', '-');
  repository.commit('main', { a: 'main\n' });
  expect(() => repository.git('merge', '-q', 'side')).toThrow();
  const bytes = readFileSync(join(repository.path, '.git/index'));
  const { entries } = readIndex(bytes, 20);
  const made = entries && indexOf(entries, (from, to) => bytes.subarray(from, to), Buffer.from('a'), []);
  expect(made?.readUInt32BE(8)).toBe(3);
});

test('entries that need others to be read are not taken out', () => {
  const repository = make('sha1', '4');
  expect(readIndex(readFileSync(join(repository.path, '.git/index')), 20).entries).toBeNull();
});

test('a count that the file has no room for is damage', () => {
  const repository = make('sha1', '2');
  const bytes = Buffer.from(readFileSync(join(repository.path, '.git/index')));
  bytes.writeUInt32BE(0xffffffff, 8);
  expect(() => readIndex(bytes, 20)).toThrow('damaged');
});

test('the difference of one file is made of it, with the attributes that only the index has', async () => {
  const repository = makeRepository();
  repository.commit('first', { '.gitattributes': '*.txt text eol=crlf\n', 'a/b.txt': 'one\r\ntwo\r\n', c: 'c\n' });
  rmSync(join(repository.path, '.gitattributes'));
  repository.write({ 'a/b.txt': 'one\r\nchanged\r\n' });
  const indexes: (string | undefined)[] = [];
  const room = openRoom(repository.path, { seen: (args, index) => void (args[0] === 'diff' && indexes.push(index)) });
  const { content } = await room.diff({ kind: 'unstaged' }, idOf('a/b.txt'));
  expect(indexes).toEqual([expect.stringMatching(/\/index-[-0-9a-f]+$/)]);
  expect(existsSync(indexes[0] ?? '')).toBe(false);
  // Git's own answer, of the whole index.
  const plain = repository.git('diff', '--', 'a/b.txt');
  expect(plain.match(/^[-+][^-+].*$/gm)).toEqual(['-two', '+changed']);
  const lines = content.kind === 'text' ? content.hunks.flatMap((hunk) => hunk.lines) : [];
  expect(lines.filter((line) => !line.startsWith(' '))).toEqual(['-two', '+changed']);
});
