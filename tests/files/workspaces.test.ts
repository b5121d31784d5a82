import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { workspaceSummary } from '#protocol/methods/workspace.ts';
import { atEnd, codeOf, fill, makeFolder, openDescriptors } from './parts.ts';
import { openRegistry } from './registry.ts';

const make = (files: Readonly<Record<string, string>> = {}) => {
  const base = makeFolder();
  fill(base, {
    'template/sum.js': 'export const sum = 1;\n',
    'template/test/sum.test.js': 'test\n',
    'ws/': '',
    ...files,
  });
  const registry = openRegistry(base);
  atEnd(() => {
    registry.workspaces.closeAll();
    void registry.ledger.close();
  });
  return { base, path: join(base, 'ws'), ...registry };
};

/** Opens the workspace in another process. Resolves with its first line. */
const openElsewhere = async (base: string, path: string) => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'holder.ts'), base, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  atEnd(() => child.kill('SIGKILL'));
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return { child, line: line.trim() };
};

describe('W-01 one workspace by its real path', () => {
  test('slashes, dots and a linked folder all lead to the same', async () => {
    const { base, path, workspaces } = make();
    symlinkSync(path, join(base, 'link'));
    const first = await workspaces.open({ path });
    for (const other of [`/${path}//`, `${base}/./ws`, `${base}/x/../ws`, join(base, 'link')]) {
      if (other.includes('/x/')) mkdirSync(join(base, 'x'));
      const again = await workspaces.open({ path: other });
      expect([again.workspaceId, again.path]).toEqual([first.workspaceId, path]);
    }
    expect(workspaceSummary.safeParse(first).success).toBe(true);
    expect(workspaces.list().map((each) => each.workspaceId)).toEqual([first.workspaceId]);
    expect(workspaces.root(first.workspaceId).path).toBe(path);
  });

  test('what cannot be one is refused', async () => {
    const { base, workspaces } = make({ file: 'x' });
    const codes = {
      'relative/path': 'invalid_path',
      [join(base, 'nothing')]: 'not_found',
      [join(base, 'file')]: 'not_a_directory',
      [join(base, 'state/private')]: 'path_denied',
      [join(base, 'state/private/blobs')]: 'path_denied',
      '/proc/self': 'path_denied',
      'a\0b': 'invalid_path',
    };
    for (const [path, code] of Object.entries(codes))
      await expect(workspaces.open({ path })).rejects.toMatchObject({ code });
    expect(workspaces.list()).toEqual([]);
  });

  test('a replaced folder is changed until the operator opens it again', async () => {
    const { path, workspaces } = make();
    const { workspaceId } = await workspaces.open({ path });
    renameSync(path, `${path}.old`);
    mkdirSync(path);
    expect(codeOf(() => workspaces.root(workspaceId))).toBe('workspace_changed');
    expect(workspaces.list()[0]).toMatchObject({ problem: 'workspace_changed' });
    const again = await workspaces.open({ path });
    expect(again).toMatchObject({ workspaceId, problem: null, open: true });
    workspaces.root(workspaceId).check();
  });

  test('a folder replaced while the bridge was off is changed, too', async () => {
    const { path, workspaces } = make();
    const { workspaceId } = await workspaces.open({ path });
    await workspaces.close(workspaceId);
    expect(workspaces.root(workspaceId).path).toBe(path);
    await workspaces.close(workspaceId);
    renameSync(path, `${path}.old`);
    expect(codeOf(() => workspaces.root(workspaceId))).toBe('workspace_changed');
    mkdirSync(path);
    expect(codeOf(() => workspaces.root(workspaceId))).toBe('workspace_changed');
  });

  test('the recent list is durable, newest first, and forgets', async () => {
    const { base, path, workspaces, ledger } = make({ 'other/': '' });
    const first = await workspaces.open({ path });
    const second = await workspaces.open({ path: join(base, 'other') });
    expect(
      ledger.read
        .workspaces()
        .map((row) => row.path)
        .sort(),
    ).toEqual([join(base, 'other'), path]);
    await workspaces.forget(first.workspaceId);
    expect(workspaces.list().map((each) => each.workspaceId)).toEqual([second.workspaceId]);
    expect(codeOf(() => workspaces.root(first.workspaceId))).toBe('workspace_unknown');
    expect((await workspaces.open({ path })).workspaceId).toBe(first.workspaceId);
  });

  test('two opens at once make one workspace and leave no descriptor behind', async () => {
    const { path, workspaces } = make();
    await workspaces.open({ path }).then(({ workspaceId }) => workspaces.close(workspaceId));
    const before = openDescriptors();
    const both = await Promise.all([workspaces.open({ path }), workspaces.open({ path })]);
    expect(new Set(both.map(({ workspaceId }) => workspaceId)).size).toBe(1);
    workspaces.closeAll();
    expect(openDescriptors()).toBe(before);
  });
});

describe('W-02 lease', () => {
  test('a second bridge is refused and told who holds it; after its death the workspace is free', async () => {
    const { base, path, workspaces } = make();
    const { child, line } = await openElsewhere(base, path);
    expect(line).toBe('open');
    const refused = await workspaces.open({ path }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'workspace_leased', details: { pid: child.pid } });
    expect((refused as Error).message).toContain(String(child.pid));
    expect(workspaces.list()).toEqual([]);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await workspaces.open({ path })).toMatchObject({ open: true });
  });

  test('the first keeps it against another spelling, and gives it back on close', async () => {
    const { base, path, workspaces } = make();
    symlinkSync(path, join(base, 'link'));
    const { workspaceId } = await workspaces.open({ path });
    const { line } = await openElsewhere(base, join(base, 'link'));
    expect(line).toBe(`Another bridge (process ${process.pid}) is using this workspace.`);
    await workspaces.close(workspaceId);
    expect((await openElsewhere(base, path)).line).toBe('open');
    expect(codeOf(() => workspaces.root(workspaceId))).toBe('workspace_leased');
  });
});

describe('W-06 practice', () => {
  test('is copied once, kept, and put back whole by reset alone', async () => {
    const { base, workspaces } = make({ 'state/beside/f': 'kept' });
    const practice = join(base, 'state/practice');
    const { workspaceId, ...rest } = await workspaces.open({ practice: true });
    expect(rest).toMatchObject({ path: practice, practice: true, open: true });
    writeFileSync(join(practice, 'sum.js'), 'changed');
    writeFileSync(join(practice, 'extra'), '');
    expect((await workspaces.open({ practice: true })).workspaceId).toBe(workspaceId);
    expect(readFileSync(join(practice, 'sum.js'), 'utf8')).toBe('changed');
    expect(await workspaces.reset(workspaceId)).toMatchObject({
      workspaceId,
      practice: true,
      open: true,
      problem: null,
    });
    expect(readdirSync(practice, { recursive: true }).sort()).toEqual(['sum.js', 'test', 'test/sum.test.js']);
    expect(workspaces.root(workspaceId).readText('sum.js', 100)?.text).toBe('export const sum = 1;\n');
    expect(readdirSync(join(base, 'state')).sort()).toEqual(['beside', 'practice', 'private']);
  });

  test('reset is refused for others, through a link, and while another bridge has it', async () => {
    const { base, path, workspaces } = make({ 'precious/f': 'mine' });
    const plain = await workspaces.open({ path });
    await expect(workspaces.reset(plain.workspaceId)).rejects.toMatchObject({ code: 'forbidden' });
    const { workspaceId } = await workspaces.open({ practice: true });
    await workspaces.close(workspaceId);
    const { child } = await openElsewhere(base, join(base, 'state/practice'));
    await expect(workspaces.reset(workspaceId)).rejects.toMatchObject({ code: 'workspace_leased' });
    child.kill('SIGKILL');
    await once(child, 'exit');
    rmSync(join(base, 'state/practice'), { recursive: true });
    symlinkSync(join(base, 'precious'), join(base, 'state/practice'));
    await expect(workspaces.reset(workspaceId)).rejects.toMatchObject({ code: 'symlink_refused' });
    await expect(workspaces.open({ practice: true })).rejects.toMatchObject({ code: 'symlink_refused' });
    expect(readFileSync(join(base, 'precious/f'), 'utf8')).toBe('mine');
  });
});

describe('W-07 picking a folder', () => {
  test('shows folders only, links to folders included, and where repositories are', () => {
    const { base, workspaces } = make({ 'b/': '', 'A/.git/': '', file: '' });
    symlinkSync(join(base, 'b'), join(base, 'c'));
    symlinkSync('nothing', join(base, 'dangling'));
    const { entries, parent, path, truncated } = workspaces.browse(base);
    expect(entries.map(({ name, repository }) => [name, repository])).toEqual([
      ['A', true],
      ['b', false],
      ['c', false],
      ['leases', false],
      ['state', false],
      ['template', false],
      ['ws', false],
    ]);
    expect([path, truncated, join(parent ?? '', path.slice((parent ?? '').length))]).toEqual([base, false, base]);
    expect(codeOf(() => workspaces.browse(join(base, 'state/private')))).toBe('path_denied');
    expect(codeOf(() => workspaces.browse('not/absolute'))).toBe('invalid_path');
    expect(workspaces.browse('/').parent).toBeNull();
  });

  test('makes a new folder and opens it; a name that is a path, or taken, is refused', async () => {
    const { base, workspaces } = make();
    expect(await workspaces.create(base, 'Neu & schön')).toMatchObject({
      name: 'Neu & schön',
      path: join(base, 'Neu & schön'),
      open: true,
    });
    await expect(workspaces.create(base, 'Neu & schön')).rejects.toMatchObject({ code: 'already_exists' });
    for (const name of ['../x', 'a/b', '..', 'a\0'])
      await expect(workspaces.create(base, name)).rejects.toMatchObject({ code: 'invalid_path' });
    await expect(workspaces.create(join(base, 'state/private'), 'x')).rejects.toMatchObject({ code: 'path_denied' });
  });
});
