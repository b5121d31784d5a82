import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fill, makeRoot } from './parts.ts';

const never = new AbortController().signal;

describe('F-06 name search', () => {
  test('finds by letters in order, the nearest first', async () => {
    const { root } = makeRoot({
      'bridge/files/beneath.ts': '',
      'bridge/gate/bench.ts': '',
      'docs/beneath/other.md': '',
      'x.txt': '',
    });
    const { matches, truncated } = await root.search('beneath', 10, never);
    expect(matches[0]).toEqual({ path: 'docs/beneath', type: 'directory' });
    expect(matches.map(({ path }) => path)).toContain('bridge/files/beneath.ts');
    expect((await root.search('bfb', 10, never)).matches[0]?.path).toBe('bridge/files/beneath.ts');
    expect((await root.search('zzz', 10, never)).matches).toEqual([]);
    expect(truncated).toBe(false);
  });

  test('skips packages, secrets, ignored names and what lies behind links', async () => {
    const { root, path, outside } = makeRoot({
      '.gitignore': '# built\ndist/\n*.log\n!keep.log\n**/deep/[ab]\n',
      'node_modules/p/hit.js': '',
      '.git/hit': '',
      'dist/hit.js': '',
      'src/hit.js': '',
      'src/hit.log': '',
      'src/a.hit.log': '',
    });
    fill(outside, { 'hit.js': '' });
    symlinkSync(outside, join(path, 'linked'));
    expect((await root.search('hit', 10, never)).matches.map((match) => match.path)).toEqual(['src/hit.js']);
  });

  test('an ignore file speaks for its own folder only', async () => {
    const { root } = makeRoot({ 'a/.gitignore': 'gen\n', 'a/gen/hit': '', 'b/gen/hit': '' });
    expect((await root.search('hit', 10, never)).matches.map((match) => match.path)).toEqual(['b/gen/hit']);
  });

  test('says when there are more matches than were asked for', async () => {
    const { root } = makeRoot({ a1: '', a2: '', a3: '' });
    expect(await root.search('a', 2, never)).toEqual({
      matches: [
        { path: 'a1', type: 'file' },
        { path: 'a2', type: 'file' },
      ],
      truncated: true,
    });
  });

  test('stops when it is cancelled, and lets others run meanwhile', async () => {
    const { root, path } = makeRoot();
    for (let folder = 0; folder < 1000; folder += 1)
      mkdirSync(join(path, `d${folder % 40}/e${folder}`), { recursive: true });
    const abort = new AbortController();
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
      if (turns === 2) abort.abort();
    }, 1);
    const stopped = root.search('e', 10, abort.signal);
    await expect(stopped).rejects.toMatchObject({ code: 'cancelled' });
    clearInterval(timer);
    expect(turns).toBe(2);
  });
});

describe('the commit a repository is at', () => {
  const git = (path: string, ...argv: string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...argv], { cwd: path, encoding: 'utf8' }).trim();

  test('is read from a branch, packed references and a detached head; an unborn branch has none', () => {
    const { root, path } = makeRoot({ f: 'x' });
    expect(root.gitHead()).toBeNull();
    git(path, 'init', '-q');
    expect(root.gitHead()).toBeNull();
    git(path, 'add', 'f');
    git(path, 'commit', '-q', '-m', 'one');
    const head = git(path, 'rev-parse', 'HEAD');
    expect(root.gitHead()).toBe(head);
    git(path, 'pack-refs', '--all');
    expect(root.gitHead()).toBe(head);
    git(path, 'checkout', '-q', '--detach');
    expect(root.gitHead()).toBe(head);
  });

  test('a linked or crafted .git gives none', () => {
    const { root, path, outside } = makeRoot();
    git(outside, 'init', '-q');
    symlinkSync(join(outside, '.git'), join(path, '.git'));
    expect(root.gitHead()).toBeNull();
    const second = makeRoot({ '.git/HEAD': 'ref: refs/../../f\n', f: 'a'.repeat(40) });
    expect(second.root.gitHead()).toBeNull();
  });
});
