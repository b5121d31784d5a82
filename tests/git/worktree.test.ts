import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { verifyAll } from '../../bridge/approvals/reader.ts';
import { codeOf, filesOf, never, operator, temporary, uuid, write } from './checkpoint-stage.ts';
import { makeRepository, openStage, plainGit, type Stage } from './worktree-stage.ts';

let directory: ReturnType<typeof temporary>;
let stage: Stage;
const ten = Array.from({ length: 10 }, (_, at) => `line ${at}\n`);
const lines = (change: Record<number, string> = {}): string => ten.map((line, at) => change[at] ?? line).join('');
const repo = (): string => join(directory.path, 'repo');
const begin = async (files: Parameters<typeof makeRepository>[1]): Promise<void> => {
  makeRepository(repo(), files);
  stage = await openStage(directory.path);
};
const read = (folder: string, path: string): string => readFileSync(join(folder, path), 'utf8');
const writes = async (conversationId: string): Promise<string[]> =>
  (await stage.plan(conversationId)).writes.map(({ what, name, refused }) => `${refused ? 'refused' : what} ${name}`);

beforeEach(() => {
  directory = temporary();
});
afterEach(async () => {
  await stage.close();
  directory.remove();
});

describe('W-03 a worktree', () => {
  it('has the files of the last commit on a branch of its own, and not what is uncommitted', async () => {
    await begin({ 'a.txt': 'a\n', 'run.sh': { run: '#!/bin/sh\n' }, link: { link: 'a.txt' } });
    write(repo(), 'a.txt', 'uncommitted\n');
    write(repo(), 'new.txt', 'new\n');
    const { path } = await stage.make();
    const files = Object.entries(filesOf(path)).filter(([name]) => !name.startsWith('.git/'));
    expect(Object.fromEntries(files)).toEqual({ 'a.txt': 'a\n', 'run.sh': 'x #!/bin/sh\n', link: '-> a.txt' });
    expect(plainGit(path, 'status', '--porcelain=v2', '--branch')).toContain(
      '# branch.head countersign/try-another-way',
    );
    expect(plainGit(path, 'status', '--porcelain')).toBe('');
    expect(plainGit(path, 'rev-parse', 'HEAD')).toBe(plainGit(repo(), 'rev-parse', 'HEAD'));
  });

  it('can be committed in by plain git, with the name of the author that the parent names', async () => {
    await begin({ 'a.txt': 'a\n' });
    plainGit(repo(), 'config', 'user.name', 'Grace "the" Hopper');
    const { path } = await stage.make();
    expect(plainGit(path, 'config', 'user.name')).toBe('Grace "the" Hopper\n');
    write(path, 'a.txt', 'b\n');
    plainGit(path, 'commit', '-q', '-a', '-m', 'second');
    expect(plainGit(repo(), 'log', '--format=%s', '--all')).toBe('first\n');
  });

  it('is read by the git room, borrowing from the parent alone', async () => {
    await begin({ 'a.txt': 'a\n' });
    const { path, workspaceId } = await stage.make();
    write(path, 'a.txt', 'b\n');
    const status = await stage.git.status(stage.workspaces.root(workspaceId), never());
    expect(status.unstaged.map(({ name }) => name)).toEqual(['a.txt']);
    makeRepository(join(directory.path, 'other'), { 'secret.txt': 'x\n' });
    write(path, '.git/objects/info/alternates', `${join(directory.path, 'other', '.git', 'objects')}\n`);
    expect(await codeOf(stage.git.status(stage.workspaces.root(workspaceId), never()))).toBe('unsupported_git_state');
  });

  it('leaves the repository of the parent byte for byte as it was, from making to removing', async () => {
    await begin({ 'a.txt': lines(), 'b.txt': 'b\n' });
    const before = filesOf(join(repo(), '.git'));
    const { path, conversationId } = await stage.make();
    write(path, 'a.txt', lines({ 2: 'child\n' }));
    await stage.bring(conversationId);
    await stage.remove(conversationId);
    expect(filesOf(join(repo(), '.git'))).toEqual(before);
    expect(read(repo(), 'a.txt')).toBe(lines({ 2: 'child\n' }));
  });

  it('of a hostile repository is made, brought back and removed without running anything of it', async () => {
    const marker = join(directory.path, 'marker');
    const trap = `#!/bin/sh\necho "$0" >> '${marker}'\ncat\n`;
    await begin({ 'a.txt': 'a\n', '.gitattributes': '*.txt filter=trap diff=trap merge=trap\n' });
    const own = join(repo(), '.git');
    write(directory.path, 'trap.sh', { run: trap });
    for (const hook of ['post-checkout', 'post-index-change', 'reference-transaction', 'pre-commit'])
      write(own, `hooks/${hook}`, { run: trap });
    const program = join(directory.path, 'trap.sh');
    for (const key of ['core.fsmonitor', 'core.sshCommand', 'core.pager', 'diff.external', 'diff.trap.textconv'])
      plainGit(repo(), 'config', key, program);
    for (const key of ['filter.trap.smudge', 'filter.trap.clean', 'filter.trap.process', 'merge.trap.driver'])
      plainGit(repo(), 'config', key, program);
    plainGit(repo(), 'config', 'core.hooksPath', join(own, 'hooks'));
    plainGit(repo(), 'config', 'filter.trap.required', 'true');
    rmSync(marker, { force: true });
    const { path, conversationId, workspaceId } = await stage.make();
    expect(read(path, 'a.txt')).toBe('a\n');
    expect(read(path, '.git/config')).not.toContain('trap');
    expect(existsSync(join(path, '.git', 'hooks'))).toBe(false);
    write(path, 'a.txt', 'b\n');
    await stage.git.status(stage.workspaces.root(workspaceId), never());
    await stage.bring(conversationId);
    await stage.remove(conversationId);
    expect(read(repo(), 'a.txt')).toBe('b\n');
    write(repo(), 'new.txt', 'new\n');
    const along = await stage.make('Along', true);
    expect([read(along.path, 'a.txt'), read(along.path, 'new.txt')]).toEqual(['b\n', 'new\n']);
    expect(read(along.path, '.git/config')).not.toContain('trap');
    await stage.git.status(stage.workspaces.root(along.workspaceId), never());
    expect(existsSync(marker) ? readFileSync(marker, 'utf8') : '').toBe('');
    // It would have, for plain git.
    expect(() => plainGit(repo(), 'status')).toThrow();
    expect(existsSync(marker)).toBe(true);
  });

  it('is not made of a folder that is no repository, or that has no commit; nothing is left', async () => {
    stage = await openStage(directory.path);
    expect(await codeOf(stage.make())).toBe('not_git_repository');
    plainGit(repo(), 'init', '-q');
    expect(await codeOf(stage.make())).toBe('unsupported_git_state');
    expect(existsSync(stage.worktrees)).toBe(false);
    expect(stage.receipts()).toEqual([]);
  });

  it('that cannot be made whole leaves nothing but the receipts that say so', async () => {
    await begin({ 'a.txt': 'a\n' });
    write(directory.path, 'worktrees', 'a file stands where they would be');
    expect(await codeOf(stage.make())).not.toBe('done');
    expect(stage.receipts().map(({ sentence }) => sentence.split(' ')[0])).toEqual(['Began', 'The']);
    expect(stage.ledger.read.worktrees()).toEqual([]);
  });

  it('of a folder inside a repository opens that folder of it', async () => {
    makeRepository(repo(), { 'top.txt': 't\n' });
    plainGit(repo(), 'rm', '-q', 'top.txt');
    stage = await openStage(directory.path);
    makeRepository(join(directory.path, 'outer'), { 'in/a.txt': 'a\n', 'b.txt': 'b\n' });
    const inner = await stage.workspaces.open({ path: join(directory.path, 'outer', 'in') });
    const parentId = uuid();
    const row = { workspaceId: inner.workspaceId, workspacePath: inner.path, title: 'Inner', header: '{}' };
    await stage.ledger.commit((tx) =>
      tx.putConversation({
        ...row,
        ...{ conversationId: parentId, agentId: 'practice', agentTitle: 'Practice', createdAt: 1, archived: false },
        ...{ sessionId: null, lastStop: null },
      }),
    );
    const made = await stage.room.make(operator, { conversationId: uuid(), parentId, title: 'x' }, (_, where) => where);
    expect(readdirSync(made.path)).toEqual(['a.txt']);
  });
});

describe('W-03 bringing back', () => {
  it('writes, makes and removes what changed in the worktree, and can be undone', async () => {
    await begin({ 'a.txt': 'a\n', 'b.txt': 'b\n' });
    const { path, conversationId } = await stage.make();
    write(path, 'a.txt', 'a2\n');
    write(path, 'new/c.sh', { run: 'c\n' });
    rmSync(join(path, 'b.txt'));
    expect(await writes(conversationId)).toEqual(['write a.txt', 'remove b.txt', 'create new/c.sh']);
    const done = await stage.bring(conversationId);
    expect(done).toMatchObject({ written: 2, removed: 1 });
    expect(read(repo(), 'a.txt')).toBe('a2\n');
    expect(filesOf(join(repo(), 'new'))).toEqual({ 'c.sh': 'x c\n' });
    expect(existsSync(join(repo(), 'b.txt'))).toBe(false);
    expect(stage.events(stage.parentId, 'restored')).toMatchObject([
      { data: { checkpointId: null, fromConversationId: conversationId, outcome: 'ok', written: 2, removed: 1 } },
    ]);
    expect(await writes(conversationId)).toEqual([]);
    const undo = { conversationId: stage.parentId, checkpointId: done.undoCheckpointId ?? '' };
    const { digest } = await stage.checkpoints.plan(undo, never());
    await stage.checkpoints.restore(operator, { ...undo, digest }, () => undefined);
    expect(read(repo(), 'a.txt')).toBe('a\n');
    expect(await writes(conversationId)).toEqual(['write a.txt', 'remove b.txt', 'create new/c.sh']);
  });

  it('merges what both changed in different places, and refuses what meets', async () => {
    await begin({ 'merge.txt': lines(), 'meet.txt': lines(), 'same.txt': lines(), 'gone.txt': lines() });
    const { path, conversationId } = await stage.make();
    write(repo(), 'merge.txt', lines({ 1: 'parent\n' }));
    write(path, 'merge.txt', lines({ 8: 'child\n' }));
    for (const [folder, who] of [
      [repo(), 'parent'],
      [path, 'child'],
    ] as const)
      write(folder, 'meet.txt', lines({ 4: `${who}\n` }));
    for (const folder of [repo(), path]) write(folder, 'same.txt', lines({ 4: 'both\n' }));
    rmSync(join(repo(), 'gone.txt'));
    write(path, 'gone.txt', lines({ 0: 'child\n' }));
    expect(await writes(conversationId)).toEqual(['refused gone.txt', 'refused meet.txt', 'write merge.txt']);
    const { writes: planned } = await stage.plan(conversationId);
    expect(planned.find(({ name }) => name === 'merge.txt')?.movedOn).toMatch(/as well/);
    expect(await stage.bring(conversationId)).toMatchObject({ written: 1, removed: 0 });
    expect(read(repo(), 'merge.txt')).toBe(lines({ 1: 'parent\n', 8: 'child\n' }));
    expect(read(repo(), 'meet.txt')).toBe(lines({ 4: 'parent\n' }));
    expect(await writes(conversationId)).toEqual(['refused gone.txt', 'refused meet.txt']);
  });

  it('brings only the files asked for', async () => {
    await begin({ 'a.txt': 'a\n', 'b.txt': 'b\n' });
    const { path, conversationId } = await stage.make();
    for (const name of ['a.txt', 'b.txt']) write(path, name, 'child\n');
    const id = (await stage.plan(conversationId)).writes.find(({ name }) => name === 'b.txt')?.id ?? '';
    expect(await stage.bring(conversationId, [id])).toMatchObject({ written: 1 });
    expect([read(repo(), 'a.txt'), read(repo(), 'b.txt')]).toEqual(['a\n', 'child\n']);
    expect(await writes(conversationId)).toEqual(['write a.txt']);
  });

  it('of a file that the parent changed after it was brought is not asked for again until it changes here', async () => {
    await begin({ 'a.txt': lines() });
    const { path, conversationId } = await stage.make();
    write(path, 'a.txt', lines({ 4: 'child\n' }));
    await stage.bring(conversationId);
    write(repo(), 'a.txt', lines({ 4: 'operator\n' }));
    expect(await writes(conversationId)).toEqual([]);
    write(path, 'a.txt', lines({ 4: 'child\n', 9: 'more\n' }));
    await stage.bring(conversationId);
    expect(read(repo(), 'a.txt')).toBe(lines({ 4: 'operator\n', 9: 'more\n' }));
  });

  it('does nothing when a file moved since it was shown, and names it', async () => {
    await begin({ 'a.txt': 'a\n' });
    const { path, conversationId } = await stage.make();
    write(path, 'a.txt', 'child\n');
    const { digest } = await stage.plan(conversationId);
    write(path, 'a.txt', 'child again\n');
    const work = stage.room.bring(operator, { conversationId, digest }, () => undefined);
    await expect(work).rejects.toMatchObject({ code: 'worktree_moved', details: { paths: 'a.txt' } });
    expect(read(repo(), 'a.txt')).toBe('a\n');
  });

  it('never brings what is secret', async () => {
    await begin({ 'a.txt': 'a\n' });
    const { path, conversationId } = await stage.make();
    write(path, '.env', 'KEY=1\n');
    write(path, 'leads', { link: '/etc/passwd' });
    expect(await writes(conversationId)).toEqual(['refused leads']);
    expect(await codeOf(stage.bring(conversationId))).toBe('not_found');
    expect(existsSync(join(repo(), '.env'))).toBe(false);
  });

  it('is signed before and after, in the parent', async () => {
    await begin({ 'a.txt': 'a\n' });
    const { path, conversationId } = await stage.make();
    write(path, 'a.txt', 'child\n');
    await stage.bring(conversationId);
    await stage.remove(conversationId);
    expect(stage.receipts().map(({ sentence }) => sentence.split(' ').slice(0, 3).join(' '))).toEqual([
      'Began to make',
      'Made a worktree',
      'Began to bring',
      'Brought 1 file',
      'Began to remove',
      'Removed the worktree',
    ]);
    expect(verifyAll(stage.ledger.read, stage.key.publicKeySpki, stage.ledger.bridgeId).problems).toEqual([]);
  });
});

describe('W-03 removing', () => {
  it('asks when something was not brought back, and names it', async () => {
    await begin({ 'a.txt': 'a\n' });
    const { path, conversationId } = await stage.make();
    write(path, 'b.txt', 'child\n');
    const work = stage.remove(conversationId);
    await expect(work).rejects.toMatchObject({ code: 'worktree_unsaved', details: { paths: 'b.txt', count: 1 } });
    expect(existsSync(path)).toBe(true);
    expect(await stage.remove(conversationId, true)).toMatchObject({ unbrought: ['b.txt'] });
    expect(readdirSync(stage.worktrees)).toEqual([]);
    expect(stage.room.info(conversationId)).toMatchObject({ removed: true });
    expect(await codeOf(stage.plan(conversationId))).toBe('not_found');
    expect(stage.workspaces.list().map(({ name }) => name)).toEqual(['repo']);
  });

  it('goes with force also when the parent cannot be reached', async () => {
    await begin({ 'a.txt': 'a\n' });
    const { path, conversationId } = await stage.make();
    stage.workspaces.closeAll();
    rmSync(repo(), { recursive: true });
    expect(await codeOf(stage.remove(conversationId))).toMatch(/^workspace_/);
    await stage.remove(conversationId, true);
    expect(existsSync(path)).toBe(false);
  });

  it('holds its conversation and its parent until then', async () => {
    await begin({ 'a.txt': 'a\n' });
    const { conversationId } = await stage.make();
    expect([conversationId, stage.parentId].map((id) => stage.room.holds(id))).toEqual([true, true]);
    await stage.remove(conversationId);
    expect([conversationId, stage.parentId].map((id) => stage.room.holds(id))).toEqual([false, false]);
  });
});
