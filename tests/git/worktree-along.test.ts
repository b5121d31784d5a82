import fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { z } from '#protocol/schema.ts';
import { verifyAll } from '../../bridge/approvals/reader.ts';
import { codeOf, filesOf, never, temporary, write, type Content } from './checkpoint-stage.ts';
import { makeRepository, openStage, plainGit, type Stage } from './worktree-stage.ts';

let directory: ReturnType<typeof temporary>;
let stage: Stage | null;
const repo = (): string => join(directory.path, 'repo');
const begin = async (files: Parameters<typeof makeRepository>[1], whileMaking?: () => void): Promise<Stage> => {
  makeRepository(repo(), files);
  stage = await openStage(directory.path, whileMaking);
  return stage;
};
const without = (folder: string, ...left: (string | RegExp)[]): Record<string, string> =>
  Object.fromEntries(
    Object.entries(filesOf(folder)).filter(
      ([name]) => !/(^|\/)\.git(\/|$)/.test(name) && !left.some((each) => name === each || new RegExp(each).test(name)),
    ),
  );
/** The sentence of the last receipt and what its signature covers beside. */
const last = (of: Stage): { sentence: string; detail: Record<string, string> } => {
  const row = of.receipts().at(-1);
  const action = of.ledger.read.action(row?.actionSha256 ?? '');
  if (row === undefined || action === null) throw new Error('no receipt');
  const read = z.object({ detail: z.record(z.string(), z.string()) });
  return { sentence: row.sentence, ...z.parse(read, JSON.parse(Buffer.from(action).toString())) };
};

beforeEach(() => {
  directory = temporary();
  stage = null;
});
afterEach(async () => {
  await stage?.close();
  directory.remove();
});

describe('W-03 a worktree with what is uncommitted', () => {
  it('has every kind of change as the folder has it, all of it uncommitted', async () => {
    const link = { link: 'changed.txt' };
    const first = { 'changed.txt': 'one\n', 'gone.txt': 'gone\n', 'old.txt': 'renamed\n'.repeat(9), 'mode.sh': 'm\n' };
    const more = { 'staged.txt': 's\n', 'folder/in.txt': 'in\n', 'kind.txt': 'file\n', 'lead/x': 'x\n', target: link };
    const { make, git, workspaces, plan } = await begin({
      ...first,
      ...more,
      'same.txt': 'same\n',
      '.gitignore': '*.log\n',
    });
    write(repo(), 'changed.txt', 'two\n');
    rmSync(join(repo(), 'gone.txt'));
    plainGit(repo(), 'mv', 'old.txt', 'new.txt');
    chmodSync(join(repo(), 'mode.sh'), 0o755);
    write(repo(), 'staged.txt', 'staged\n');
    plainGit(repo(), 'add', 'staged.txt');
    write(repo(), 'staged.txt', 'staged, then changed\n');
    write(repo(), 'same.txt', 'staged, then put back\n');
    plainGit(repo(), 'add', 'same.txt');
    write(repo(), 'same.txt', 'same\n');
    rmSync(join(repo(), 'folder'), { recursive: true });
    write(repo(), 'folder', 'a file where a folder was\n');
    plainGit(repo(), 'add', '-A', 'folder');
    rmSync(join(repo(), 'kind.txt'));
    write(repo(), 'kind.txt/deep/er', 'a folder where a file was\n');
    rmSync(join(repo(), 'lead'), { recursive: true });
    write(repo(), 'lead', { link: 'kind.txt' });
    rmSync(join(repo(), 'target'));
    write(repo(), 'target', { link: 'kind.txt/deep/er' });
    write(repo(), 'intended.txt', 'intended\n');
    plainGit(repo(), 'add', '-N', 'intended.txt');
    write(repo(), 'ü "q"\n.txt', 'odd\n');
    write(repo(), 'ignored.log', 'ignored\n');
    const before = filesOf(repo());

    const { path, workspaceId, conversationId } = await make('Along', true);
    expect(without(path)).toEqual(without(repo(), 'ignored.log'));
    expect(filesOf(repo())).toEqual(before);
    const status = await git.status(workspaces.root(workspaceId), never());
    expect(status.staged).toEqual([]);
    const inChild = plainGit(path, 'status', '--porcelain', '--untracked-files=all', '--no-renames').split('\n').sort();
    plainGit(repo(), 'reset', '-q');
    const inParent = plainGit(repo(), 'status', '--porcelain', '--untracked-files=all', '--no-renames');
    expect(inChild).toEqual(inParent.split('\n').sort());
    expect((await plan(conversationId)).writes).toEqual([]);
  });

  it('is not meant unless it is asked for', async () => {
    const { make } = await begin({ 'a.txt': 'a\n' });
    write(repo(), 'a.txt', 'b\n');
    const { path } = await make();
    expect(without(path)).toEqual({ 'a.txt': 'a\n' });
  });

  it('names and leaves out what is secret, too large, a link that leads out, a repository within', async () => {
    const { make, ledger, key } = await begin({
      'a.txt': 'a\n',
      '.env': 'KEY=1\n',
      'big.bin': 'small\n',
      'pin.txt': 'p\n',
    });
    makeRepository(join(directory.path, 'inner'), { 'deep.txt': 'deep\n' });
    plainGit(repo(), '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', '../inner', 'module');
    plainGit(repo(), 'commit', '-q', '-m', 'module');
    write(repo(), '.env', 'KEY=2\n');
    write(repo(), 'id_rsa', 'key\n');
    linkSync(join(repo(), 'id_rsa'), join(repo(), 'harmless.txt'));
    truncateSync(join(repo(), 'big.bin'), limits.checkpointFileBytes + 1);
    write(repo(), 'out', { link: '/etc/passwd' });
    write(repo(), 'by-full-path', { link: join(repo(), 'a.txt') });
    write(repo(), 'module/deep.txt', 'changed\n');
    makeRepository(join(repo(), 'nested'), { 'n.txt': 'n\n' });
    rmSync(join(repo(), 'pin.txt'));
    execFileSync('mkfifo', [join(repo(), 'pin.txt')]);
    writeFileSync(Buffer.concat([Buffer.from(`${repo()}/odd-`), Buffer.from([0xff])]), 'not UTF-8\n');
    write(repo(), 'back\\slash', 'b\n');
    write(repo(), 'new.txt', 'new\n');

    const { path, conversationId } = await make('Along', true);
    const expected = { 'a.txt': 'a\n', '.env': 'KEY=1\n', 'big.bin': 'small\n', 'new.txt': 'new\n' };
    expect(without(path, '.gitmodules')).toMatchObject(expected);
    expect(Object.keys(without(path)).sort()).toEqual([...Object.keys(expected), '.gitmodules', 'pin.txt'].sort());
    const { sentence, detail } = last(stage as Stage);
    expect(sentence).toContain('with the uncommitted changes of 1 file; left out: ');
    for (const part of ['3 kept secret', '1 too large', '2 a link that leads out', '2 in a repository of its own'])
      expect(sentence).toContain(part);
    const [notice] = (stage as Stage).events(conversationId, 'notice');
    expect(notice?.data).toMatchObject({
      code: 'taken_along',
      sentence: expect.stringContaining('1 too large (big.bin)'),
    });
    expect(detail['leftOut']?.split('\n').sort()).toEqual([
      'large big.bin',
      'link by-full-path',
      'link out',
      'name back\\slash',
      'name odd-\\xff',
      'repository module',
      'repository nested',
      'secret .env',
      'secret harmless.txt',
      'secret id_rsa',
      'unreadable pin.txt',
    ]);
    expect(verifyAll(ledger.read, key.publicKeySpki, ledger.bridgeId).problems).toEqual([]);
  });

  it('leaves out what an index names in the repository itself, or beside the folder', async () => {
    const { make } = await begin({ 'a.txt': 'a\n' });
    const oid = plainGit(repo(), 'rev-parse', 'HEAD:a.txt').trim();
    write(repo(), '.git/hooks/post-checkout', { run: '#!/bin/sh\n' });
    write(repo(), '.Git/hooks/pre-commit', { run: '#!/bin/sh\n' });
    // Git itself refuses to stage such a name, so the bytes of one that it takes are changed.
    plainGit(repo(), 'update-index', '--add', '--cacheinfo', `100644,${oid},.gix/hooks/post-checkout`);
    const index = join(repo(), '.git', 'index');
    const bytes = readFileSync(index);
    bytes.write('.git', bytes.indexOf('.gix'), 'latin1');
    createHash('sha1')
      .update(bytes.subarray(0, -20))
      .digest()
      .copy(bytes, bytes.length - 20);
    writeFileSync(index, bytes);
    const { path } = await make('Along', true);
    expect(existsSync(join(path, '.git', 'hooks'))).toBe(false);
    expect(existsSync(join(path, '.Git'))).toBe(false);
    expect(last(stage as Stage).sentence).toContain('kept secret');
  });

  it('keeps what stands in the way and may not be removed, and says so', async () => {
    const { make } = await begin({ 'd/.env': 'KEY=1\n', 'd/f': 'f\n' });
    rmSync(join(repo(), 'd'), { recursive: true });
    write(repo(), 'd', 'a file now\n');
    const { path } = await make('Along', true);
    expect(without(path)).toEqual({ 'd/.env': 'KEY=1\n' });
    expect(last(stage as Stage).sentence).toContain('1 kept secret, 1 with something left out in its place');
  });

  it('takes a file in conflict with its marks', async () => {
    const { make } = await begin({ 'a.txt': 'a\n' });
    plainGit(repo(), 'checkout', '-q', '-b', 'side');
    write(repo(), 'a.txt', 'side\n');
    plainGit(repo(), 'commit', '-q', '-a', '-m', 'side');
    plainGit(repo(), 'checkout', '-q', 'main');
    write(repo(), 'a.txt', 'main\n');
    plainGit(repo(), 'commit', '-q', '-a', '-m', 'main');
    expect(() => plainGit(repo(), 'merge', 'side')).toThrow();
    const { path } = await make('Along', true);
    expect(without(path)).toEqual(without(repo()));
    expect(without(path)['a.txt']).toContain('<<<<<<<');
  });

  it('of a folder inside a repository takes only what lies in that folder', async () => {
    makeRepository(directory.path, {
      'repo/a.txt': 'a\n',
      'b.txt': 'b\n',
      '.gitignore': 'private\npractice\nworktrees\n',
    });
    stage = await openStage(directory.path);
    for (const name of ['repo/a.txt', 'b.txt', 'repo/new.txt', 'beside.txt']) write(directory.path, name, 'changed\n');
    const { path } = await stage.make('Along', true);
    expect(without(path)).toEqual({ 'a.txt': 'changed\n', 'new.txt': 'changed\n' });
    const top = join(path, '..');
    expect(without(top)).toMatchObject({ 'b.txt': 'b\n' });
    expect(existsSync(join(top, 'beside.txt'))).toBe(false);
  });

  it('is not made of files that change meanwhile; nothing is left of it', async () => {
    const acts: (() => void)[] = [
      () => write(repo(), 'a.txt', 'three\n'),
      () => rmSync(join(repo(), 'a.txt')),
      () => write(repo(), 'gone.txt', 'here again\n'),
    ];
    const { make, ledger, worktrees, workspaces, receipts } = await begin({ 'a.txt': 'one\n', 'gone.txt': 'g\n' }, () =>
      acts[0]?.(),
    );
    for (; acts.length > 0; acts.shift()) {
      write(repo(), 'a.txt', 'two\n');
      rmSync(join(repo(), 'gone.txt'), { force: true });
      expect(await codeOf(make('Along', true))).toBe('repository_changed');
      expect(ledger.read.worktrees()).toEqual([]);
      expect(without(worktrees)).toEqual({});
      expect(workspaces.list().filter(({ open }) => open)).toHaveLength(1);
      expect(receipts().at(-1)?.sentence).toContain('nothing of it is left');
    }
    write(repo(), 'a.txt', 'two\n');
    rmSync(join(repo(), 'gone.txt'), { force: true });
    expect(without((await make('Along', true)).path)).toEqual({ 'a.txt': 'two\n' });
  });

  it('is refused before it begins where there is more than a checkpoint holds', async () => {
    const { make, receipts } = await begin({ 'a.txt': 'a\n' });
    for (let at = 0; at * limits.checkpointFileBytes <= limits.checkpointBytes; at += 1) {
      write(repo(), `big-${at}`, '');
      truncateSync(join(repo(), `big-${at}`), limits.checkpointFileBytes);
    }
    expect(await codeOf(make('Along', true))).toBe('checkpoint_too_large');
    expect(receipts()).toEqual([]);
  });

  it('brings back what the child did, merged with what the parent did since', async () => {
    const ten = Array.from({ length: 10 }, (_, at) => `line ${at}\n`);
    const lines = (change: Record<number, string> = {}): string => ten.map((line, at) => change[at] ?? line).join('');
    const { make, plan, bring } = await begin({ 'both.txt': lines(), 'child.txt': 'c\n', 'parent.txt': 'p\n' });
    for (const name of ['child.txt', 'parent.txt', 'new.txt']) write(repo(), name, 'uncommitted\n');
    write(repo(), 'both.txt', lines({ 4: 'uncommitted\n' }));
    const { path, conversationId } = await make('Along', true);
    write(repo(), 'both.txt', lines({ 1: 'parent\n', 4: 'uncommitted\n' }));
    write(repo(), 'parent.txt', 'parent\n');
    write(path, 'both.txt', lines({ 4: 'uncommitted\n', 8: 'child\n' }));
    write(path, 'child.txt', 'child\n');
    rmSync(join(path, 'new.txt'));
    const { writes } = await plan(conversationId);
    expect(writes.map(({ what, name }) => `${what} ${name}`)).toEqual([
      'write both.txt',
      'write child.txt',
      'remove new.txt',
    ]);
    await bring(conversationId);
    expect(without(repo())).toEqual({
      'both.txt': lines({ 1: 'parent\n', 4: 'uncommitted\n', 8: 'child\n' }),
      'child.txt': 'child\n',
      'parent.txt': 'parent\n',
    });
  });

  it('binds what it began with in its receipt', async () => {
    const { make, git, workspaces } = await begin({ 'a.txt': 'a\n' });
    write(repo(), 'a.txt', 'b\n');
    const { workspaceId, conversationId } = await make('Along', true);
    const of = { kind: 'worktree', conversationId } as const;
    expect((await git.changes(workspaces.root(workspaceId), of, never())).entries).toEqual([]);
    const pair = await (stage as Stage).room.pairOf(workspaces.root(workspaceId), conversationId, never());
    expect(last(stage as Stage).detail).toMatchObject({ base: pair.from, uncommitted: '1', leftOut: '' });
  });
});

/** No path is a folder of another: what stands in the way is tested above. */
const names = ['a', 'b.txt', 'd/x', 'd/e/z', 'ü "q"\n', 'run.sh', '.env', 'x.log'] as const;
const content: fc.Arbitrary<Content> = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.constantFrom('', '\r\n', '\ufeffx\n', 'same'),
  fc.constantFrom('a', 'b.txt').map((link) => ({ link })),
  fc.constant({ run: '#!/bin/sh\n' }),
);
const act = fc.record({
  name: fc.constantFrom(...names),
  to: fc.option(content, { nil: null, freq: 4 }),
  stage: fc.boolean(),
});

it('W-03: whatever was written, removed and staged, the worktree is the folder but for what is secret or ignored', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(act, { maxLength: 8 }),
      fc.array(act, { minLength: 1, maxLength: 12 }),
      async (first, then) => {
        const own = temporary();
        const folder = join(own.path, 'repo');
        mkdirSync(folder);
        const run = (acts: typeof then, mayStage: boolean): void => {
          for (const { name, to, stage: staged } of acts) {
            if (to === null) rmSync(join(folder, name), { force: true });
            else write(folder, name, to);
            if (mayStage && staged) plainGit(folder, 'add', '-A');
          }
        };
        run(first, false);
        makeRepository(folder, { '.gitignore': '*.log\n' });
        run(then, true);
        const child = await openStage(own.path);
        try {
          const { path, conversationId } = await child.make('Along', true);
          expect(without(path, '.env', 'x.log')).toEqual(without(folder, '.env', 'x.log'));
          expect((await child.plan(conversationId)).writes).toEqual([]);
        } finally {
          await child.close();
          own.remove();
        }
      },
    ),
    { numRuns: 8 },
  );
});
