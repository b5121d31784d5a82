import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inThisThread, type Signed } from '#protocol/guess.ts';
import { limits } from '#protocol/limits.ts';
import { signaturesAside } from '../../bridge/approvals/aside.ts';
import { createReceiptReader, verifyAll, verifyAllAhead } from '../../bridge/approvals/reader.ts';
import { openLedgerReadOnly } from '../../bridge/ledger/ledger.ts';
import { checkLog } from '../../web/workers/verify-checks.ts';
import { webPlatform } from '../../web/workers/verify-platform.ts';
import { bridgeId, installationKey, long, pageKey, signedBy, usual } from './history.ts';
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

  it('lead to the same with a thread, wherever in a long log one was changed', async () => {
    const log = await stage(join(directory.path, 'long'), long(limits.verifyWindow + 20));
    const count = limits.verifyWindow + 27;
    for (const place of [null, 3, limits.verifyBatch, count]) {
      const change = place === null ? () => undefined : flip('receipt', 'signature', `seq = ${place}`, 9);
      const ledger = openLedgerReadOnly(changedDatabase(log, fresh(), change));
      const aside = await verifyAllAhead(ledger.read, key, bridgeId);
      expect(aside).toEqual(verifyAll(ledger.read, key, bridgeId));
      await ledger.close();
      expect(aside).toMatchObject({ receipts: count, ok: place === null });
      expect(aside.problems[0]?.seq ?? null).toBe(place);
    }
  });
});

describe('the thread that checks signatures', () => {
  const message = (n: number): Uint8Array => new Uint8Array(Buffer.from(`message ${n}`));
  const good = (n: number): Signed => {
    const key = n % 2 === 0 ? installationKey : pageKey;
    return [key.publicKeySpki, message(n), signedBy(key.privateKey, message(n))];
  };
  const batch = (from: number): Signed[] => Array.from({ length: limits.verifyBatch }, (_, at) => good(from + at));

  it('answers for each of many batches asked at once, on whichever thread it was checked', async () => {
    const { hold, end } = signaturesAside(limits.verifyWindow);
    const wrong = [4, 17];
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => {
        const asked = batch(at * limits.verifyBatch);
        return hold(
          wrong.includes(at) ? asked.with(5, [pageKey.publicKeySpki, message(0), new Uint8Array(64)]) : asked,
        );
      }),
    );
    end();
    expect(answers).toEqual(answers.map((_, at) => !wrong.includes(at)));
  });

  it.each<[string, Signed]>([
    ['a key that is none', [new Uint8Array(44), message(0), new Uint8Array(64)]],
    ['no key', [new Uint8Array(), message(0), new Uint8Array(64)]],
    ['no signature', [installationKey.publicKeySpki, message(0), new Uint8Array()]],
    ['another message', [installationKey.publicKeySpki, message(2), good(0)[2]]],
    ['another key', [pageKey.publicKeySpki, message(0), good(0)[2]]],
  ])('says no to %s, and goes on', async (_what, signed) => {
    const { hold, end } = signaturesAside(limits.verifyWindow);
    expect(await hold([good(0), signed])).toBe(false);
    expect(await hold(batch(0))).toBe(true);
    end();
  });

  it('never takes what it did not check for good', async () => {
    const { hold, end } = signaturesAside(limits.verifyWindow);
    const asked = hold(batch(0));
    end();
    await expect(asked).rejects.toThrow('ended');
  });
});
