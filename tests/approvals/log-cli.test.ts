import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkpointsIn } from '#protocol/log.ts';
import { Bridge, bridge, temporary, type Ran } from '../bridge/process.ts';

const state = temporary('anchor');
const other = temporary('anchor-to');
const at = (name: string): string => join(other.path, name);
const on = (...args: string[]): Promise<Ran> => bridge([...args, '--state', state.path]);
const said = <T>({ stdout }: Ran): T => JSON.parse(stdout) as T;
const git = (...args: string[]): string =>
  execFileSync('git', ['-C', at('repository'), '-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], {
    encoding: 'utf8',
  });

/** A repository that would run something at every chance it is given. */
const hostile = (): string => {
  const [repository, marker] = [at('repository'), at('marker')];
  mkdirSync(repository);
  git('init', '-q');
  git('commit', '-q', '--allow-empty', '-m', 'first');
  const hooks = join(repository, '.git', 'hooks');
  const program = `#!/bin/sh\necho ran >> ${marker}\n`;
  mkdirSync(hooks, { recursive: true });
  for (const hook of ['reference-transaction', 'pre-commit', 'post-commit', 'post-index-change', 'commit-msg']) {
    writeFileSync(join(hooks, hook), program);
    chmodSync(join(hooks, hook), 0o755);
  }
  const run = at('run');
  writeFileSync(run, program);
  chmodSync(run, 0o755);
  for (const name of ['core.fsmonitor', 'core.editor', 'core.pager', 'gpg.program', 'core.sshCommand'])
    git('config', name, run);
  git('config', 'core.hooksPath', hooks);
  git('config', 'commit.gpgSign', 'true');
  return marker;
};

describe('anchors and keys from the command line (R-26)', () => {
  let running: Bridge | null = null;
  beforeAll(() => void hostile());
  afterAll(async () => {
    await running?.stop();
    state.remove();
    other.remove();
  });

  it('anchors without a running bridge: a line, a file, a git note, and nothing of the repository runs', async () => {
    const line = await on('anchor', '--line');
    expect(line).toMatchObject({ code: 0, stderr: '' });
    writeFileSync(at('line'), line.stdout);
    expect(await on('anchor', '--file', at('file'))).toMatchObject({ code: 0, stderr: '' });
    const noted = await on('anchor', '--git', at('repository'), '--json');
    expect(noted).toMatchObject({ code: 0, stderr: '' });
    expect(existsSync(at('marker'))).toBe(false);
    const note = git('notes', '--ref=countersign', 'show', 'HEAD');
    git('notes', '--ref=control', 'add', '-m', 'x', 'HEAD');
    expect(existsSync(at('marker'))).toBe(true); // the same repository without our care
    writeFileSync(at('note'), note);
    expect(checkpointsIn(note)).toEqual([said<{ checkpoint: string }>(noted).checkpoint]);
  });

  it('the log still continues what was anchored, after a running bridge signed more and changed its key', async () => {
    running = await new Bridge(state.path).start();
    const before = said<{ keys: { keyId: string }[] }>(await on('keys', '--json'));
    const rotated = said<{ keyId: string; receiptId: string }>(await on('keys', 'rotate', '--json'));
    const after = said<{ keys: { keyId: string; lastReceipt: number | null }[] }>(await on('keys', 'show', '--json'));
    expect(before.keys).toHaveLength(1);
    expect(after.keys.map((key) => key.keyId)).toEqual([before.keys[0]?.keyId, rotated.keyId]);
    expect(after.keys[1]?.lastReceipt).toBeNull();
    expect(await on('anchor', '--file', at('file'))).toMatchObject({ code: 0, stderr: '' });
    expect(checkpointsIn(readFileSync(at('file'), 'utf8'))).toHaveLength(2);
    const kept = ['line', 'file', 'note'].flatMap((name) => ['--checkpoint', at(name)]);
    for (const _ of ['with a bridge', 'without']) {
      const found = await on('verify', '--all', '--json', ...kept);
      expect(found).toMatchObject({ code: 0, stderr: '' });
      expect(said(found)).toMatchObject({ ok: true, problems: [] });
      await running.stop();
    }
    running = null;
  });

  it('a checkpoint of another installation, or none, is not passed over', async () => {
    const elsewhere = temporary('anchor-other');
    const line = await bridge(['anchor', '--line', '--state', elsewhere.path]);
    elsewhere.remove();
    writeFileSync(at('other'), line.stdout);
    const found = await on('verify', '--all', '--json', '--checkpoint', at('other'));
    expect(found.code).toBe(1);
    expect(said(found)).toMatchObject({ ok: false, problems: [{ check: 'checkpoint' }] });
    writeFileSync(at('nothing'), 'nothing');
    expect((await on('verify', '--all', '--checkpoint', at('nothing'))).code).toBe(3);
    expect((await on('verify', '--all', '--checkpoint', at('missing'))).code).toBe(3);
  });

  it('asks for one place, and says why git could not', async () => {
    expect((await on('anchor')).code).toBe(2);
    expect((await on('anchor', '--line', '--file', at('file'))).code).toBe(2);
    expect((await on('keys', 'burn')).code).toBe(2);
    const failed = await on('anchor', '--git', other.path);
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain('not a git repository');
  });

  it('doctor and verify notice an older database (T47)', async () => {
    const file = join(state.path, 'private', 'checkpoint');
    const honest = readFileSync(file, 'utf8');
    const size = Number(honest.split('\n')[1]);
    expect((await on('doctor', '--json')).stdout).toContain(`${size} receipts, continues what was signed`);
    writeFileSync(file, honest.replace(`\n${size}\n`, `\n${size + 1}\n`));
    expect((await on('doctor', '--json')).stdout).toContain('of another log, or not signed by its key');
    expect((await on('verify', '--all')).code).toBe(1);
    const started = await new Bridge(state.path).start();
    expect(started.log).toContain('of another log, or not signed by its key');
    await started.stop();
    writeFileSync(file, honest);
    expect((await on('verify', '--all')).code).toBe(0);
  });
});
