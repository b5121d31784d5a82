import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inThisThread } from '#protocol/guess.ts';
import { createReceiptReader, verifyAll, verifyAllAhead } from '../../bridge/approvals/reader.ts';
import { openLedgerReadOnly } from '../../bridge/ledger/ledger.ts';
import { checkLog } from '../../web/workers/verify-checks.ts';
import { webPlatform } from '../../web/workers/verify-platform.ts';
import { bridgeId, installationKey, usual } from './history.ts';
import { temporary } from './parts.ts';
import { stage, type Stage } from './stage.ts';
import { changedDatabase, forgeries } from './tamper.ts';

let directory: ReturnType<typeof temporary>;
let honest: Stage;
let count = 0;
const fresh = (): string => {
  const path = join(directory.path, `copy-${String((count += 1))}`);
  mkdirSync(path);
  return path;
};
beforeAll(async () => {
  directory = temporary();
  honest = await stage(join(directory.path, 'honest'), usual());
});
afterAll(() => directory.remove());

type Change = (db: DatabaseSync) => void;
const { publicKeySpki: key, publicKeyPem: publicKey } = installationKey;
const platform = webPlatform();

/** What each pair of verifiers finds: the one that checks signatures beside the rest, and the one that goes in order. */
const found = async (change: Change) => {
  const ledger = openLedgerReadOnly(changedDatabase(honest, fresh(), change));
  try {
    const { read } = ledger;
    const reader = createReceiptReader(read, () => key, bridgeId);
    const known = { bridgeId, publicKey, checkpoint: null };
    const shown = { publicKey, checkpoint: honest.checkpoint.note, rotations: [] };
    const inPage = async (hold: Parameters<typeof checkLog>[5]) => {
      const page = async (afterSeq: number) => reader.page({ afterSeq, limit: 3 });
      return { ...(await checkLog(platform, known, shown, page, () => undefined, hold)), ms: 0 };
    };
    return {
      aside: await verifyAllAhead(read, key, bridgeId),
      inOrder: verifyAll(read, key, bridgeId),
      pageAside: await inPage(inThisThread(platform)),
      pageInOrder: await inPage(async () => false),
    };
  } finally {
    await ledger.close();
  }
};

const seq = fc.integer({ min: 1, max: 7 });
const flip =
  (table: string, column: string, where: string, at: number): Change =>
  (db) => {
    const row = db.prepare(`SELECT ${column} AS bytes FROM ${table} WHERE ${where}`).get() as
      { bytes: Uint8Array } | undefined;
    if (row === undefined) return; // an earlier change took it away
    const bytes = Uint8Array.from(row.bytes);
    const place = at % bytes.length;
    bytes[place] = (bytes[place] ?? 0) ^ 1;
    db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${where}`).run(bytes);
  };
const change: fc.Arbitrary<Change> = fc.oneof(
  fc
    .tuple(fc.constantFrom('payload', 'signature'), seq, fc.nat())
    .map(([column, n, at]) => flip('receipt', column, `seq = ${String(n)}`, at)),
  fc.tuple(seq, fc.nat(31)).map(([n, at]) => flip('logNode', 'hashes', `seq = ${String(n)}`, at)),
  fc
    .tuple(seq, fc.nat())
    .map(([n, at]) =>
      flip('action', 'bytes', `sha256 = (SELECT actionSha256 FROM receipt WHERE seq = ${String(n)})`, at),
    ),
  seq.map(
    (n): Change =>
      (db) =>
        db.exec(`DELETE FROM receipt WHERE seq = ${String(n)}`),
  ),
  seq.map(
    (n): Change =>
      (db) =>
        db.exec(`UPDATE receipt SET keyId = 'SHA256:another' WHERE seq = ${String(n)}`),
  ),
  fc.tuple(seq, seq).map(
    ([a, b]): Change =>
      (db) =>
        db.exec(
          `UPDATE receipt SET seq = -1 WHERE seq = ${String(a)}; UPDATE receipt SET seq = ${String(a)} WHERE seq = ${String(b)}; UPDATE receipt SET seq = ${String(b)} WHERE seq = -1`,
        ),
  ),
);

describe('signatures checked beside the rest (R-24, T46)', () => {
  it('lead to the same findings in the same order, whatever was changed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 4 }), async (changes) => {
        const { aside, inOrder, pageAside, pageInOrder } = await found((db) => {
          for (const each of changes) each(db);
        });
        expect(aside).toEqual(inOrder);
        expect(pageAside).toEqual(pageInOrder);
      }),
      { numRuns: 60 },
    );
  });

  it.each(forgeries.filter((one) => one.database !== undefined))('as in order: $what', async ({ database }) => {
    const { aside, inOrder, pageAside, pageInOrder } = await found(database ?? (() => undefined));
    expect(aside).toEqual(inOrder);
    expect(pageAside).toEqual(pageInOrder);
  });

  it('refuse a signature alone that does not hold', async () => {
    const { aside, pageAside } = await found(flip('receipt', 'signature', 'seq = 6', 9));
    expect(aside.problems[0]).toMatchObject({ seq: 6, check: 'signature' });
    expect(pageAside.problems[0]).toMatchObject({ seq: 6, check: 'signature' });
    expect([aside.ok, pageAside.ok]).toEqual([false, false]);
  });
});
