import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { verifyAll } from '../../bridge/approvals/reader.ts';
import { filesOf, temporary, write } from './checkpoint-stage.ts';
import { makeRepository, openStage } from './worktree-stage.ts';

let directory: ReturnType<typeof temporary>;
beforeEach(() => (directory = temporary()));
afterEach(() => directory.remove());

const workUntilKilled = async (afterMs: number): Promise<void> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'worktree-child.ts'), directory.path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), exit]);
  await new Promise((done) => setTimeout(done, afterMs));
  child.kill('SIGKILL');
  expect(await exit, 'it works until it is killed').toEqual([null, 'SIGKILL']);
};

it('W-03, D-32: killed at any moment, each act has an end and no folder is left that nobody knows', async () => {
  const repo = join(directory.path, 'repo');
  makeRepository(repo, { 'd0/f0': 'first\n' });
  write(repo, 'd0/f0', 'changed\n');
  for (let file = 0; file < 20; file += 1) write(repo, `uncommitted/${file}`, `${file}\n`);
  const before = filesOf(join(repo, '.git'));
  for (let run = 0; run < 5; run += 1) await workUntilKilled(60 + ((run * 337) % 900));
  const stage = await openStage(directory.path);
  try {
    const rows = stage.ledger.read.worktrees();
    expect(rows.map(({ state }) => state).filter((state) => state === 'making' || state === 'removing')).toEqual([]);
    const ready = rows.filter(({ state }) => state === 'ready').map(({ conversationId }) => conversationId);
    expect(readdirSync(stage.worktrees).sort()).toEqual(ready.sort());
    expect(stage.ledger.read.openRestores()).toEqual([]);
    const receipts = stage.receipts();
    expect(receipts.length).toBeGreaterThan(0);
    expect(receipts.length % 2).toBe(0);
    expect(verifyAll(stage.ledger.read, stage.key.publicKeySpki, stage.ledger.bridgeId).problems).toEqual([]);
    expect(filesOf(join(repo, '.git'))).toEqual(before);
    const { path, conversationId } = await stage.make('After', true);
    expect(filesOf(path)).toMatchObject({ 'd0/f0': 'changed\n', 'uncommitted/19': '19\n' });
    write(path, 'after', 'after\n');
    await stage.bring(conversationId);
    expect(filesOf(repo)).toMatchObject({ after: 'after\n', 'd0/f0': 'changed\n', 'uncommitted/19': '19\n' });
  } finally {
    await stage.close();
  }
});
