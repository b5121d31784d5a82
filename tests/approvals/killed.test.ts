import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { verifyAll } from '../../bridge/approvals/reader.ts';
import { openRoom, temporary } from './parts.ts';

let directory: ReturnType<typeof temporary>;
beforeEach(() => (directory = temporary()));
afterEach(() => directory.remove());

const actUntilKilled = async (effects: string, afterMs: number): Promise<void> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'acting.ts'), directory.path, effects], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  await new Promise((done) => setTimeout(done, afterMs));
  child.kill('SIGKILL');
  await once(child, 'exit');
};

it(
  'T45, R-11: killed 20 times between decision and answer, no action ran without its durable receipt',
  { timeout: 120_000 },
  async () => {
    const effects = join(directory.path, 'effects');
    mkdirSync(effects);
    for (let run = 0; run < 20; run += 1) await actUntilKilled(effects, (run * 37) % 50);
    const room = await openRoom(directory.path);
    try {
      const ran = readdirSync(effects);
      expect(ran.length).toBeGreaterThanOrEqual(20);
      for (const approvalId of ran) {
        const record = room.ledger.read.approval(approvalId);
        expect(record?.state).toBe('allowed');
        expect(room.ledger.read.receipt(record?.receiptId ?? '')).toMatchObject({
          kind: 'decision',
          value: 'allow',
          approvalId,
        });
      }
      expect(verifyAll(room.ledger.read, room.key.publicKeySpki, room.ledger.bridgeId).problems).toEqual([]);
      // Recovery left nothing half done: no card waits, and every allowed action has an outcome, uncertain where nobody knows.
      expect(room.pending()).toEqual([]);
      const decided = room.ledger.read.approvals({ state: 'decided', limit: 100_000 });
      expect(decided.filter((record) => record.state === 'allowed' && record.outcome === null)).toEqual([]);
      expect(decided.some((record) => record.outcome === 'uncertain')).toBe(true);
    } finally {
      await room.close();
    }
  },
);
