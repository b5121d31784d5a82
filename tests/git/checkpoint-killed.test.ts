import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { verifyAll } from '../../bridge/approvals/reader.ts';
import { filesOf, gitProgram, openStage, temporary, write } from './checkpoint-stage.ts';

let directory: ReturnType<typeof temporary>;
beforeEach(() => (directory = temporary()));
afterEach(() => directory.remove());

const recordUntilKilled = async (afterMs: number): Promise<void> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'checkpoint-child.ts'), directory.path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), exit]);
  await new Promise((done) => setTimeout(done, afterMs));
  child.kill('SIGKILL');
  expect(await exit, 'it works until it is killed').toEqual([null, 'SIGKILL']);
};

it('F-23, D-32: killed at any moment, every checkpoint of the log is whole and every restore has an end', async () => {
  write(join(directory.path, 'workspace'), 'd0/f0', 'first');
  for (let run = 0; run < 6; run += 1) await recordUntilKilled((run * 137) % 500);
  const stage = await openStage(directory.path);
  try {
    const rows = stage.ledger.read.fileCheckpoints(stage.conversationId);
    expect(rows.length).toBeGreaterThanOrEqual(6);
    const store = join(stage.stores, stage.conversationId, 'store.git');
    const trees = rows.filter(({ pruned }) => !pruned).map(({ tree }) => tree);
    // Reads every object that the trees reach; ends with an error where one is missing.
    execFileSync(gitProgram, ['--git-dir', store, 'rev-list', '--objects', '--quiet', '--stdin'], {
      input: trees.join('\n'),
    });
    expect(stage.ledger.read.openRestores()).toEqual([]);
    const restores = stage.ledger.read.receipts({ limit: 10_000 }).filter(({ kind }) => kind === 'restore');
    expect(restores.length).toBeGreaterThan(0);
    expect(restores.length % 2).toBe(0);
    expect(stage.events('restored')).toHaveLength(restores.length / 2);
    expect(verifyAll(stage.ledger.read, stage.key.publicKeySpki, stage.ledger.bridgeId).problems).toEqual([]);
    const first = rows[0]?.checkpointId ?? '';
    await stage.restore(first);
    expect(filesOf(stage.folder)).toEqual({ 'd0/f0': 'first' });
  } finally {
    await stage.close();
  }
});
