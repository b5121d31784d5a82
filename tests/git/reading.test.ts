import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { methods } from '#protocol/methods.ts';
import type { ChangeEntry } from '#protocol/methods/git.ts';
import {
  codeOf,
  fill,
  idOf,
  linesOf,
  makeFolder,
  makeRepository,
  openRoom,
  plainEnv,
  repositoryAt,
  signal,
} from './parts.ts';

const staged = { kind: 'staged' } as const;
const unstaged = { kind: 'unstaged' } as const;
const states = (entries: readonly ChangeEntry[]): Record<string, string> =>
  Object.fromEntries(entries.map(({ name, state }) => [name, state]));
const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');

describe('case 51', () => {
  test('names that need quoting are each listed with their content', async () => {
    const repository = makeRepository();
    repository.commit('first', { kept: 'x\n' });
    const names = ['文档/é.txt', 'a"b.txt', 'tab\tname', 'new\nline'];
    repository.write({ kept: 'y\n', ...Object.fromEntries(names.map((name) => [name, `in ${name.length}\n`])) });
    const room = openRoom(repository.path);
    const entries = await room.changes(unstaged);
    expect(entries.map(({ id }) => id).sort()).toEqual(['kept', ...names].map((name) => idOf(name)).sort());
    for (const name of names) {
      expect(linesOf(await room.diff(unstaged, idOf(name)))).toEqual([`+in ${name.length}`]);
      expect(entries.find(({ id }) => id === idOf(name))).toMatchObject({ path: name, state: 'untracked' });
    }
    expect(linesOf(await room.diff(unstaged, idOf('kept')))).toEqual(['-x', '+y']);
  });
});

describe.each(['sha1', 'sha256'])('case 53 with %s', (format) => {
  test('before the first commit both edits are shown', async () => {
    const repository = makeRepository(`--object-format=${format}`);
    repository.write({ a: 'staged\n' });
    repository.git('add', 'a');
    repository.write({ a: 'staged\nedited\n' });
    const room = openRoom(repository.path);
    const status = await room.status();
    expect(status).toMatchObject({ head: { kind: 'branch', name: 'main', commit: null }, objectFormat: format });
    expect([states(status.staged), states(status.unstaged)]).toEqual([{ a: 'added' }, { a: 'modified' }]);
    expect(linesOf(await room.diff(staged, idOf('a')))).toEqual(['+staged']);
    expect(linesOf(await room.diff(unstaged, idOf('a')))).toEqual([' staged', '+edited']);
    expect(await room.git.log(room.root, { workspaceId: '' }, signal)).toEqual({ commits: [], more: false });
  });

  test('history, its first commit and a later one are read', async () => {
    const repository = makeRepository(`--object-format=${format}`);
    const first = repository.commit('first\n\nbody', { a: '1\n' });
    const second = repository.commit('second', { a: '2\n', b: '1\n' });
    const room = openRoom(repository.path);
    const { commits, more } = await room.git.log(room.root, { workspaceId: '', limit: 1 }, signal);
    expect([commits.map(({ commit }) => commit), more]).toEqual([[second], true]);
    const of = (path: string) => room.git.log(room.root, { workspaceId: '', path }, signal);
    expect((await of('b')).commits.map(({ subject }) => subject)).toEqual(['second']);
    const shown = await room.git.show(room.root, { workspaceId: '', commit: first }, signal);
    expect(shown).toMatchObject({ info: { author: 'Ada', parents: [], subject: 'first' }, message: 'first\n\nbody\n' });
    expect(states(shown.entries)).toEqual({ a: 'added' });
    expect(linesOf(await room.diff({ kind: 'commit', commit: second }, idOf('a')))).toEqual(['-1', '+2']);
    for (const commit of ['0'.repeat(first.length), repository.git('rev-parse', 'HEAD^{tree}').trim()])
      expect(await codeOf(() => room.git.show(room.root, { workspaceId: '', commit }, signal))).toBe('not_found');
  });
});

describe('F-21 status', () => {
  test('staged, unstaged and untracked are apart; ignored files are left out, as git does', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n', b: '1\n', gone: '1\n', '.gitignore': '*.log\n' });
    writeFileSync(join(repository.path, '.git/info/exclude'), 'private/\n');
    repository.write({ a: '2\n', 'x.log': '', 'private/x': '', 'deep/new': '' });
    repository.git('add', 'a');
    repository.write({ a: '3\n', b: '2\n' });
    rmSync(join(repository.path, 'gone'));
    const status = await openRoom(repository.path).status();
    expect(states(status.staged)).toEqual({ a: 'modified' });
    expect(states(status.unstaged)).toEqual({ a: 'modified', b: 'modified', gone: 'deleted', 'deep/new': 'untracked' });
    expect(methods['git.status'].result.safeParse(status).success).toBe(true);
  });

  test('a change right after the index was written is seen, also through the copy', async () => {
    const repository = makeRepository();
    for (let at = 0; at < 5; at += 1) {
      repository.commit('one', { racy: 'aaaa\n' });
      const room = openRoom(repository.path);
      repository.write({ racy: 'bbbb\n' });
      expect(states((await room.status()).unstaged)).toEqual({ racy: 'modified' });
    }
  });

  test('the index and HEAD are looked at anew when they changed', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n' });
    const room = openRoom(repository.path);
    expect((await room.status()).staged).toEqual([]);
    repository.write({ a: '2\n' });
    repository.git('add', 'a');
    expect(states((await room.status()).staged)).toEqual({ a: 'modified' });
    const second = repository.commit('second');
    expect(await room.status()).toMatchObject({ head: { commit: second }, staged: [], unstaged: [] });
    repository.git('pack-refs', '--all');
    expect(await room.status()).toMatchObject({ head: { commit: second } });
    repository.git('checkout', '-q', '--detach');
    expect(await room.status()).toMatchObject({ head: { kind: 'detached', commit: second } });
  });

  test('renames carry where they came from and how alike they are', async () => {
    const repository = makeRepository();
    const text = Array.from({ length: 50 }, (_, at) => `line ${at}\n`);
    repository.commit('first', { old: text.join('') });
    renameSync(join(repository.path, 'old'), join(repository.path, 'new'));
    repository.write({ new: text.toSpliced(3, 1).join('') });
    repository.git('add', '-A');
    const room = openRoom(repository.path);
    const [entry] = (await room.status()).staged;
    expect(entry).toMatchObject({ name: 'new', state: 'renamed', from: { name: 'old', id: idOf('old') } });
    expect(entry?.from?.similarity).toBeGreaterThan(90);
    const diff = await room.diff(staged, idOf('new'), { fromId: idOf('old') });
    expect(linesOf(diff).filter((line) => !line.startsWith(' '))).toEqual(['-line 3']);
    expect(diff.content).toMatchObject({ kind: 'text', lines: { old: 50, new: 49 } });
    expect((await room.changes(staged))[0]).toMatchObject({ state: 'renamed', added: 0, removed: 1 });
  });

  test('ahead and behind are counted from the references', async () => {
    const repository = makeRepository();
    repository.commit('first');
    const other = join(repository.base, 'other');
    repository.git('clone', '-q', repository.path, other);
    repository.commit('theirs');
    const clone = repositoryAt(other, repository.base);
    clone.commit('mine');
    clone.commit('mine too');
    clone.git('fetch', '-q');
    const { head } = await openRoom(other).status();
    expect(head).toMatchObject({ name: 'main', upstream: { name: 'origin/main', ahead: 2, behind: 1 } });
  });

  test('conflicts are named, and show what we had against what stands there', async () => {
    const repository = makeRepository();
    repository.commit('base', { both: 'base\n', ours: 'base\n' });
    repository.git('checkout', '-q', '-b', 'side');
    repository.commit('side', { both: 'side\n' });
    repository.git('rm', '-q', 'ours');
    repository.commit('side');
    repository.git('checkout', '-q', 'main');
    repository.commit('main', { both: 'main\n', ours: 'main\n' });
    expect(() => repository.git('merge', '-q', 'side')).toThrow();
    const room = openRoom(repository.path);
    const status = await room.status();
    expect(status.underWay).toBe('merge');
    expect(status.unstaged.map(({ name, conflict }) => [name, conflict])).toEqual([
      ['both', 'both_modified'],
      ['ours', 'deleted_by_them'],
    ]);
    expect(linesOf(await room.diff(unstaged, idOf('both')))).toEqual([
      ...['+<<<<<<< HEAD', ' main', '+=======', '+side', '+>>>>>>> side'],
    ]);
    // As ours, so it says how ours differs from the base.
    expect(linesOf(await room.diff(unstaged, idOf('ours')))).toEqual(['-base', '+main']);
    expect(await room.changes(staged)).toEqual([]);
    expect((await room.changes(unstaged)).map(({ name, added }) => [name, added])).toEqual([
      ['both', 4],
      ['ours', 0],
    ]);
  });

  test('a conflict that only they have, and one that is gone, are compared with what there is', async () => {
    const repository = makeRepository();
    repository.commit('base', { mine: 'base\n' });
    repository.git('checkout', '-q', '-b', 'side');
    repository.commit('side', { mine: 'side\n' });
    repository.git('checkout', '-q', 'main');
    repository.git('rm', '-q', 'mine');
    repository.commit('main');
    expect(() => repository.git('merge', '-q', 'side')).toThrow();
    const room = openRoom(repository.path);
    expect((await room.status()).unstaged.map(({ conflict }) => conflict)).toEqual(['deleted_by_us']);
    repository.write({ mine: 'resolved\n' });
    expect(linesOf(await room.diff(unstaged, idOf('mine')))).toEqual(['-side', '+resolved']);
    rmSync(join(repository.path, 'mine'));
    expect(linesOf(await room.diff(unstaged, idOf('mine')))).toEqual(['-side']);
  });

  test('a workspace inside of a repository sees what lies in it', async () => {
    const repository = makeRepository();
    repository.commit('first', { 'app/a': '1\n', 'lib/a': '1\n' });
    repository.write({ 'app/a': '2\n', 'app/b': '', 'lib/a': '2\n', top: '' });
    const room = openRoom(join(repository.path, 'app'));
    const status = await room.status();
    expect(status.topLevel).toBe('above');
    expect(status.unstaged.map(({ name, path }) => [name, path])).toEqual([
      ['a', 'a'],
      ['b', 'b'],
    ]);
    expect(linesOf(await room.diff(unstaged, idOf('app/a')))).toEqual(['-1', '+2']);
    expect((await room.changes(unstaged)).map(({ name }) => name)).toEqual(['a', 'b']);
    const log = await room.git.log(room.root, { workspaceId: '', path: 'b' }, signal);
    expect(log.commits).toEqual([]);
    // What lies beside the workspace has no difference here.
    expect(await codeOf(() => room.diff(unstaged, idOf('lib/a')))).toBe('not_found');
    expect(await codeOf(() => room.side(unstaged, idOf('lib/a'), 'new'))).toBe('not_found');
  });

  test('a sparse checkout hides nothing and invents nothing', async () => {
    const repository = makeRepository();
    repository.commit('first', { 'in/a': '1\n', 'out/a': '1\n', top: '1\n' });
    for (const cone of [
      ['--cone', '--no-sparse-index'],
      ['--cone', '--sparse-index'],
    ]) {
      repository.git('sparse-checkout', 'set', ...cone, 'in');
      repository.write({ 'in/a': '2\n' });
      const status = await openRoom(repository.path).status();
      expect([status.sparse, states(status.unstaged), status.staged]).toEqual([true, { 'in/a': 'modified' }, []]);
    }
  });

  test('a shallow clone has its history, and the first commit of it is compared', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n' });
    const second = repository.commit('second', { a: '2\n' });
    const path = join(repository.base, 'shallow');
    repository.git('clone', '-q', '--depth=1', `file://${repository.path}`, path);
    const room = openRoom(path);
    const { commits } = await room.git.log(room.root, { workspaceId: '' }, signal);
    expect(commits.map(({ commit }) => commit)).toEqual([second]);
    expect(linesOf(await room.diff({ kind: 'commit', commit: second }, idOf('a')))).toEqual(['+2']);
  });

  test('what is kept in a way that is not read is named', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n', 'a link to': '1\n' });
    const room = openRoom(repository.path);
    repository.git('update-index', '--split-index');
    await expect(room.status()).rejects.toThrow('split into two files');
    repository.git('update-index', '--no-split-index');
    expect(await codeOf(() => room.status())).toBe('done');
    repository.git('config', 'core.repositoryFormatVersion', '1');
    repository.git('config', 'extensions.refStorage', 'files');
    expect(await codeOf(() => room.status())).toBe('done');
    mkdirSync(join(repository.path, '.git/reftable'));
    await expect(room.status()).rejects.toThrow('reftable');
    rmSync(join(repository.path, '.git/reftable'), { recursive: true });
    writeFileSync(join(repository.path, '.git/config'), '[extensions]\n\tnoSuchThing = true\n');
    await expect(room.status()).rejects.toThrow('extension of git');
    expect(await codeOf(() => openRoom(makeFolder()).status())).toBe('not_git_repository');
  });
});

describe('F-21 an index that hides', () => {
  test.each([['2'], ['4']])('files that are marked as not to be compared are counted, version %s', async (version) => {
    const repository = makeRepository();
    const names = ['a', 'b', 'folder/c', 'folder/deep', 'link'];
    repository.commit('first', Object.fromEntries(names.map((name) => [name, '1\n'])));
    repository.git('update-index', '--index-version', version);
    const room = openRoom(repository.path);
    expect((await room.status()).notes).toEqual([]);
    repository.git('update-index', '--assume-unchanged', 'a', 'folder/c');
    repository.write({ a: '2\n', b: '2\n', 'folder/c': '2\n', 'folder/deep': '2\n' });
    expect(states((await room.status()).unstaged)).toEqual({ b: 'modified', 'folder/deep': 'modified' });
    expect((await room.status()).notes).toEqual([expect.stringContaining('2 files are marked in the index')]);
    repository.git('update-index', '--skip-worktree', 'b');
    expect((await room.status()).notes).toEqual([expect.stringContaining('3 files are marked in the index')]);
    expect((await room.git.changes(room.root, unstaged, signal)).notes).toHaveLength(1);
  });
});

describe('F-21 damage', () => {
  test.each([
    ['an index that is none', '.git/index', 'x'.repeat(100)],
    ['an index cut off', '.git/index', 'DIRC'],
    ['an index that promises more than it holds', '.git/index', `DIRC\0\0\0\x02\0\xff\xff\xff${'\0'.repeat(500)}`],
    ['a configuration beyond its bound', '.git/config', '# x\n'.repeat(400_000)],
    ['a configuration that is none', '.git/config', '[core\n'],
    ['a HEAD that is none', '.git/HEAD', 'ref: refs/../../x\n'],
    ['a HEAD that names nothing of git', '.git/HEAD', '../../etc/passwd\n'],
  ])('%s is named, and nothing is shown', async (_, path, content) => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n' });
    const room = openRoom(repository.path);
    expect(await codeOf(() => room.status())).toBe('done');
    repository.write({ [path]: content });
    expect(await codeOf(() => room.status())).toBe('unsupported_git_state');
    expect(await codeOf(() => room.changes(unstaged))).toBe('unsupported_git_state');
  });

  test('an object that is missing is named, and the rest is still shown', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: 'lost\n', b: '1\n' });
    const blob = repository.git('rev-parse', 'HEAD:a').trim();
    rmSync(join(repository.path, '.git/objects', blob.slice(0, 2), blob.slice(2)));
    repository.write({ a: '2\n', b: '3\n' });
    const room = openRoom(repository.path);
    expect(states((await room.status()).unstaged)).toEqual({ a: 'modified', b: 'modified' });
    expect(await codeOf(() => room.diff(unstaged, idOf('a')))).toBe('unsupported_git_state');
    expect(linesOf(await room.diff(unstaged, idOf('b')))).toEqual(['-1', '+3']);
    const { entries, notes } = await room.git.changes(room.root, unstaged, signal);
    expect([states(entries), notes.join(' ')]).toEqual([
      { a: 'modified', b: 'modified' },
      expect.stringContaining('could not be counted'),
    ]);
    repository.git('add', 'a', 'b');
    expect(states(await room.changes(staged))).toEqual({ a: 'modified', b: 'modified' });
  });

  test('what one git run said is never repeated to who asked', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n' });
    repository.write({ '.git/index': `${'secret-name '.repeat(20)}` });
    const failed = await openRoom(repository.path)
      .status()
      .catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'unsupported_git_state' });
    expect(String(failed)).not.toMatch(/fatal|secret|\/tmp/);
  });
});

describe('F-22 differences', () => {
  test('CRLF alone is said, and mixed ends are told from the whole files', async () => {
    const repository = makeRepository();
    repository.git('config', 'core.autocrlf', 'false');
    repository.commit('first', { ends: 'a\nb\n', mixed: 'a\nb\nc\n' });
    repository.write({ ends: 'a\r\nb\r\n', mixed: 'a\nb\r\nc\n' });
    const room = openRoom(repository.path);
    expect((await room.diff(unstaged, idOf('ends'))).content).toMatchObject({
      ...{ kind: 'text', onlyEol: true, eol: { old: 'lf', new: 'crlf' } },
    });
    expect((await room.diff(unstaged, idOf('mixed'))).content).toMatchObject({
      ...{ onlyEol: true, eol: { old: 'lf', new: 'mixed' }, lines: { old: 3, new: 3 } },
    });
  });

  test('core.autocrlf of the repository counts, so that nothing is made up', async () => {
    const repository = makeRepository();
    repository.git('config', 'core.autocrlf', 'true');
    repository.commit('first', { text: 'a\r\nb\r\n' });
    repository.write({ text: 'a\r\nc\r\n' });
    const room = openRoom(repository.path);
    expect(linesOf(await room.diff(unstaged, idOf('text')))).toEqual([' a', '-b', '+c']);
  });

  test('binary, image, symbolic link, mode and type are each their own kind', async () => {
    const repository = makeRepository();
    symlinkSync('old target', join(repository.path, 'link'));
    repository.commit('first', { bin: 'a\0b', pic: png, mode: 'x\n', type: 'x\n' });
    rmSync(join(repository.path, 'link'));
    symlinkSync('new target', join(repository.path, 'link'));
    rmSync(join(repository.path, 'type'));
    symlinkSync('somewhere', join(repository.path, 'type'));
    symlinkSync('/etc/passwd', join(repository.path, 'fresh'));
    chmodSync(join(repository.path, 'mode'), 0o755);
    repository.write({ bin: 'a\0bc', pic: Buffer.concat([png, png]), 'new.bin': '\0' });
    const room = openRoom(repository.path);
    const content = async (name: string) => (await room.diff(unstaged, idOf(name))).content;
    expect(await content('bin')).toEqual({ kind: 'binary', oldBytes: 3, newBytes: 4 });
    expect(await content('new.bin')).toEqual({ kind: 'binary', oldBytes: null, newBytes: 1 });
    expect(await content('pic')).toEqual({ kind: 'image', mime: 'image/png', oldBytes: 16, newBytes: 32 });
    expect(await content('link')).toEqual({ kind: 'symlink', oldTarget: 'old target', newTarget: 'new target' });
    expect(await content('type')).toEqual({ kind: 'symlink', oldTarget: null, newTarget: 'somewhere' });
    expect(await content('fresh')).toEqual({ kind: 'symlink', oldTarget: null, newTarget: '/etc/passwd' });
    expect(await content('mode')).toEqual({ kind: 'mode' });
    expect((await room.diff(unstaged, idOf('mode'))).entry.modes).toEqual({ old: '100644', new: '100755' });
    expect(states((await room.status()).unstaged)).toMatchObject({ type: 'type_changed', mode: 'modified' });
    const side = await room.side(unstaged, idOf('pic'), 'new');
    expect(side).toMatchObject({ kind: 'image', mime: 'image/png' });
    expect(await room.side(unstaged, idOf('pic'), 'old')).toMatchObject({
      dataUrl: `data:image/png;base64,${png.toString('base64')}`,
    });
    expect(await codeOf(() => room.side(unstaged, idOf('bin'), 'new'))).toBe('unsupported_file_type');
    expect(await codeOf(() => room.side(unstaged, idOf('link'), 'new'))).toBe('unsupported_file_type');
  });

  test('a submodule shows its commits, and a repository among the files is one entry', async () => {
    const repository = makeRepository();
    const inner = repositoryAt(join(repository.base, 'inner'), repository.base);
    mkdirSync(inner.path);
    inner.git('init', '-q', '--initial-branch=main');
    const one = inner.commit('one', { a: '1\n' });
    repository.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner.path, 'module');
    repository.commit('first');
    const two = repositoryAt(join(repository.path, 'module'), repository.base).commit('two', { a: '2\n' });
    repository.git('init', '-q', 'nested');
    repositoryAt(join(repository.path, 'nested'), repository.base).commit('x', { a: '' });
    const room = openRoom(repository.path);
    const status = await room.status();
    const found = status.unstaged.map(({ name, what, state, submodule }) => [
      name,
      what,
      state,
      submodule?.commitChanged,
    ]);
    expect(found).toEqual([
      ['module', 'submodule', 'modified', true],
      ['nested', 'submodule', 'untracked', undefined],
    ]);
    expect(status.notes).toEqual([]);
    const { content } = await room.diff(unstaged, idOf('module'));
    expect(content).toEqual({ kind: 'submodule', oldCommit: one, newCommit: two });
    expect((await room.diff(unstaged, idOf('nested'))).content.kind).toBe('submodule');
    // The submodule itself is a workspace, too: its git directory names it.
    expect(await openRoom(join(repository.path, 'module')).status()).toMatchObject({ head: { commit: two } });
  });

  test('what changed inside of a submodule is told, its commit unchanged', async () => {
    const repository = makeRepository();
    const inner = repositoryAt(join(repository.base, 'inner'), repository.base);
    mkdirSync(inner.path);
    inner.git('init', '-q', '--initial-branch=main');
    const commit = inner.commit('one', { a: '1\n' });
    for (const name of ['clean', 'edited', 'more'])
      repository.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner.path, name);
    repository.commit('first');
    repository.write({ 'edited/a': '2\n', 'more/new': '', 'more/a': '2\n' });
    const room = openRoom(repository.path);
    const { unstaged: list } = await room.status();
    expect(list.map(({ name, submodule }) => [name, submodule])).toEqual([
      ['edited', { commitChanged: false, modified: true, untracked: false }],
      ['more', { commitChanged: false, modified: true, untracked: true }],
    ]);
    const { content } = await room.diff(unstaged, idOf('edited'));
    expect(content).toEqual({ kind: 'submodule', oldCommit: commit, newCommit: commit });
    expect((await room.changes(unstaged)).map(({ name }) => name)).toEqual(['edited', 'more']);
    // One that cannot be looked into is named; what .gitmodules says of other places is no submodule.
    writeFileSync(join(repository.path, 'edited/.git'), 'gitdir: /\n');
    repository.write({ '.gitmodules': '[submodule "x"]\n\tpath = ../inner\n[submodule "y"]\n\tpath = edited\n' });
    expect((await room.status()).notes).toEqual(['The submodule edited could not be looked into.']);
  });

  test('LFS pointers in the folder are labelled, not compared', async () => {
    const repository = makeRepository();
    repository.commit('first', {
      '.gitattributes': '*.psd filter=lfs diff=lfs merge=lfs -text\n',
      'a.psd': 'pointer\n',
    });
    repository.write({ 'a.psd': 'picture\n', 'b.psd': 'picture\n' });
    const room = openRoom(repository.path);
    for (const name of ['a.psd', 'b.psd'])
      expect((await room.diff(unstaged, idOf(name))).content).toEqual({ kind: 'filtered', filter: 'lfs' });
    expect((await room.status()).notes.join(' ')).toContain('1 file goes through a program');
  });

  test('secrets stay closed, also under another name', async () => {
    const repository = makeRepository();
    repository.commit('first', { '.env': 'KEY=old\n', id_rsa: 'old\n' });
    repository.write({ '.env': 'KEY=new\n', 'deep/.env.local': 'KEY=x\n' });
    execFileSync('ln', ['.env', 'harmless'], { cwd: repository.path });
    const room = openRoom(repository.path);
    for (const name of ['.env', 'deep/.env.local', 'harmless']) {
      const diff = await room.diff(unstaged, idOf(name), { large: true });
      expect([name, diff.entry.secret, diff.content]).toEqual([name, true, { kind: 'secret' }]);
      expect(await codeOf(() => room.side(unstaged, idOf(name), 'new'))).toBe('path_denied');
    }
    expect(await codeOf(() => room.side(unstaged, idOf('.env'), 'old'))).toBe('path_denied');
    const secrets = (await room.status()).unstaged.filter(({ secret }) => secret).map(({ name }) => name);
    expect(secrets.sort()).toEqual(['.env', 'deep/.env.local']);
  });

  test('bytes that are not UTF-8 are replaced and said; a missing last line feed is shown', async () => {
    const repository = makeRepository();
    repository.commit('first', { latin: Buffer.from('caf\xe9\n', 'latin1'), end: 'a\nb\n' });
    repository.write({ latin: Buffer.from('th\xe9\n', 'latin1'), end: 'a\nb' });
    const room = openRoom(repository.path);
    const latin = await room.diff(unstaged, idOf('latin'));
    expect([linesOf(latin), latin.content]).toMatchObject([['-caf\ufffd', '+th\ufffd'], { replaced: true }]);
    const end = await room.diff(unstaged, idOf('end'));
    expect(linesOf(end)).toEqual([' a', '-b', '+b', '\\ No newline at end of file']);
    expect(end.content).toMatchObject({ replaced: false, onlyEol: true });
  });

  test('a large difference waits to be asked for; what is too large is refused', async () => {
    const repository = makeRepository();
    const many = (count: number, word: string): string =>
      Array.from({ length: count }, (_, at) => `${word} ${at}\n`).join('');
    repository.commit('first', { some: many(1000, 'a'), much: many(4000, 'a'), wide: 'a\n' });
    repository.write({ some: many(1000, 'b'), much: many(4000, 'b'), wide: `${'é'.repeat(9000)}\n` });
    const room = openRoom(repository.path);
    const { content } = await room.diff(unstaged, idOf('some'));
    expect(content).toEqual({ kind: 'large', lines: 2000, bytes: many(1000, 'b').length });
    expect(linesOf(await room.diff(unstaged, idOf('some'), { large: true }))).toHaveLength(2000);
    expect(await codeOf(() => room.diff(unstaged, idOf('much'), { large: true }))).toBe('content_too_large');
    const wide = linesOf(await room.diff(unstaged, idOf('wide')));
    expect([wide[1]?.length, wide[1]?.endsWith('é…')]).toEqual([limits.diffLineUnits, true]);
  });

  test('what would not fit a frame once written as JSON waits as well, and lines of a side come in part', async () => {
    const repository = makeRepository();
    // Each of these characters is six on the wire.
    const hostile = `${'\x01'.repeat(200)}\n`.repeat(1000);
    repository.commit('first', { a: 'x\n' });
    repository.write({ a: hostile });
    const room = openRoom(repository.path);
    expect((await room.diff(unstaged, idOf('a'))).content).toMatchObject({ kind: 'large', lines: 1001 });
    expect(await codeOf(() => room.diff(unstaged, idOf('a'), { large: true }))).toBe('content_too_large');
    const side = await room.side(unstaged, idOf('a'), 'new');
    expect(JSON.stringify(side).length).toBeLessThan(limits.frameBytes);
    expect(side).toMatchObject({ kind: 'text', total: 1000 });
  });

  test('lines around a change and of each side are given as asked for', async () => {
    const repository = makeRepository();
    const text = Array.from({ length: 100 }, (_, at) => `${at + 1}\n`);
    repository.commit('first', { a: text.join('') });
    repository.write({ a: text.with(49, 'fifty\n').join('') });
    const room = openRoom(repository.path);
    const { content } = await room.diff(unstaged, idOf('a'), { context: 1 });
    expect(content).toMatchObject({
      hunks: [{ oldStart: 49, oldLines: 3, newStart: 49, newLines: 3, lines: [' 49', '-50', '+fifty', ' 51'] }],
    });
    expect(await room.side(unstaged, idOf('a'), 'old', { firstLine: 50, lines: 2 })).toEqual({
      ...{ kind: 'text', firstLine: 50, lines: ['50', '51'], total: 100 },
    });
    expect(await room.side(unstaged, idOf('a'), 'new', { firstLine: 50, lines: 1 })).toMatchObject({
      lines: ['fifty'],
    });
    expect(await codeOf(() => room.side(unstaged, idOf('b'), 'new'))).toBe('not_found');
    expect(await codeOf(() => room.diff(staged, idOf('a')))).toBe('not_found');
  });

  test('the revision tells when the file is another', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n' });
    repository.write({ a: '2\n' });
    const room = openRoom(repository.path);
    const before = (await room.diff(unstaged, idOf('a'))).revision;
    expect((await room.diff(unstaged, idOf('a'))).revision).toBe(before);
    repository.write({ a: '3\n' });
    expect((await room.diff(unstaged, idOf('a'))).revision).not.toBe(before);
  });

  test('pairs of trees come from whoever keeps them', async () => {
    const repository = makeRepository();
    const [from, to] = [repository.commit('one', { a: '1\n' }), repository.commit('two', { a: '2\n', '.env': 'x\n' })];
    const pairOf = () => Promise.resolve({ gitDirectory: join(repository.path, '.git'), from, to });
    const room = openRoom(repository.path, { pairOf });
    const turn = { kind: 'turn', conversationId: 'c', turnId: 't' } as const;
    expect(states(await room.changes(turn))).toEqual({ a: 'modified', '.env': 'added' });
    expect(linesOf(await room.diff(turn, idOf('a')))).toEqual(['-1', '+2']);
    expect((await room.diff(turn, idOf('.env'))).content).toEqual({ kind: 'secret' });
    expect(await room.side(turn, idOf('a'), 'old')).toMatchObject({ lines: ['1'] });
    expect(await codeOf(() => openRoom(repository.path).changes(turn))).toBe('checkpoint_unavailable');
  });

  test('every answer is what the protocol says', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n', pic: png, bin: '\0' });
    repository.write({ a: '2\n', pic: Buffer.concat([png, png]), bin: '\0\0', new: 'x' });
    const room = openRoom(repository.path);
    const changes = await room.git.changes(room.root, unstaged, signal);
    expect(methods['git.changes'].result.safeParse(changes).success).toBe(true);
    for (const { id } of changes.entries) {
      const diff = await room.diff(unstaged, id);
      expect(methods['git.diff'].result.safeParse(diff).error).toBeUndefined();
    }
    const log = await room.git.log(room.root, { workspaceId: '' }, signal);
    expect(methods['git.log'].result.safeParse(log).success).toBe(true);
  });

  test('a repository of another user above the workspace is not taken for its own', async () => {
    const base = makeFolder();
    execFileSync('git', ['init', '-q', base], { env: plainEnv(base) });
    fill(base, { 'work/a': '1\n' });
    expect(await openRoom(join(base, 'work')).status()).toMatchObject({ topLevel: 'above' });
    if (process.getuid?.() !== 0) return;
    execFileSync('chown', ['-R', '12345', join(base, '.git')]);
    expect(await codeOf(() => openRoom(join(base, 'work')).status())).toBe('not_git_repository');
  });
});
