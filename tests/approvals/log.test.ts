import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '#protocol/actor.ts';
import { limits } from '#protocol/limits.ts';
import { checkpointLine, checkpointsIn, openCheckpoint, rootOf, verifyConsistency } from '#protocol/log.ts';
import { fromBase64, openEnvelope, receiptOrigin, toHex } from '#protocol/receipts.ts';
import { inSync } from '#protocol/steps.ts';
import { verifySync, type SealedReceipt } from '#protocol/verify.ts';
import { contradictionIn, knownCheckpoints, openCheckpoints } from '../../bridge/approvals/checkpoints.ts';
import { adoptNextKey, createNextKey, openReceiptKey, type ReceiptKey } from '../../bridge/approvals/keys.ts';
import {
  createReceiptReader,
  keyringIn,
  nodePlatform,
  rotationsOf,
  sealedOf,
  verifyAll,
  verifyAllAhead,
} from '../../bridge/approvals/reader.ts';
import { createRotation } from '../../bridge/approvals/rotation.ts';
import { createSeal, type DeskSeal } from '../../bridge/approvals/seal.ts';
import { openLedger } from '../../bridge/ledger/ledger.ts';
import { temporary } from './parts.ts';

const operator: Actor = { kind: 'cli', attachmentId: randomUUID(), pid: 1, operator: true, tty: true };
const nothingStored = (): undefined => undefined;

/** A state as main opens it: key, ledger, genesis, checkpoints. */
const open = async (directory: string) => {
  mkdirSync(join(directory, 'blobs'), { recursive: true, mode: 0o700 });
  const said: string[] = [];
  const ledger = openLedger({ directory, blobs: join(directory, 'blobs') });
  const keys = join(directory, 'keys');
  const seal = createSeal({
    key: openReceiptKey(keys, ledger.read.lastReceipt()?.keyId ?? null),
    bridge: { version: '0.1.0', assetDigest: 'checkout', bootId: randomUUID() },
    bridgeId: ledger.bridgeId,
    now: Date.now,
    monotonic: () => performance.now(),
  });
  await ledger.commit((tx) => seal.genesis(tx));
  const now = Date.now;
  const checkpoints = await openCheckpoints({ ledger, seal, directory, now, log: (line) => void said.push(line) });
  return {
    directory,
    keys,
    ledger,
    seal,
    checkpoints,
    said,
    rotate: createRotation(ledger, seal, keys),
    reader: createReceiptReader(ledger.read, () => seal.key.publicKeySpki, ledger.bridgeId),
    /** `n` receipts, some in one transaction. */
    add: async (n: number) => {
      for (let left = n; left > 0; left -= 7)
        await ledger.commit((tx) => {
          for (let each = Math.min(left, 7); each > 0; each -= 1) addOne(seal, tx);
        });
    },
    all: (checks = knownCheckpoints(ledger.read, directory)) =>
      verifyAll(ledger.read, seal.key.publicKeySpki, ledger.bridgeId, checks),
    close: () => ledger.close(),
  };
};
const addOne = (seal: DeskSeal, tx: Parameters<DeskSeal['sign']>[0]) =>
  seal.sign(tx, { kind: 'recovery', actor: null, detail: { of: 'test' }, sentence: 'Recovered.' });
type State = Awaited<ReturnType<typeof open>>;

let directory: ReturnType<typeof temporary>;
let state: State;
const reopen = async (): Promise<void> => {
  await state.close();
  state = await open(directory.path);
};
/** Straight into the file, with the guards taken off, as someone with the file can. */
const tamper = async (...statements: string[]): Promise<void> => {
  await state.close();
  const db = new DatabaseSync(join(directory.path, 'ledger.db'));
  db.exec('PRAGMA foreign_keys = OFF');
  const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all();
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${String(name)}`);
  for (const statement of statements) db.exec(statement);
  for (const { sql } of triggers) db.exec(String(sql));
  db.close();
};
const rootHere = ({ ledger }: State, size: number): string =>
  toHex(inSync(rootOf(nodePlatform, size, ledger.read.logNode)));
const checks = (found: { problems: readonly { check: string }[] }): string[] =>
  found.problems.map((each) => each.check);

beforeEach(async () => {
  directory = temporary();
  state = await open(directory.path);
});
afterEach(async () => {
  await state.close();
  directory.remove();
});

describe('the log of an installation (R-23)', () => {
  it('grows by one leaf with each receipt, in its transaction, and is signed at boot', async () => {
    await state.add(20);
    await expect(
      state.ledger.commit((tx) => {
        addOne(state.seal, tx);
        throw new Error('undone');
      }),
    ).rejects.toThrow('undone');
    expect(state.ledger.read.logSize()).toBe(21);
    expect(state.ledger.read.checkpoints().map((row) => row.size)).toEqual([1]);
    await reopen();
    expect(state.ledger.read.checkpoints().map((row) => row.size)).toEqual([1, 21]);
    expect(readFileSync(join(directory.path, 'checkpoint'), 'utf8')).toBe(state.ledger.read.lastCheckpoint(21)?.note);
    expect(state.all()).toMatchObject({ ok: true, receipts: 21, problems: [], notes: [], incomplete: false });
    await reopen();
    expect(state.ledger.read.checkpoints()).toHaveLength(2); // nothing grew: nothing is signed
  });

  it('is signed unasked every so many receipts', async () => {
    await state.add(limits.checkpointReceipts);
    expect(state.ledger.read.checkpoints().map((row) => row.size)).toEqual([1, limits.checkpointReceipts]);
    state.checkpoints.publish();
    expect(readFileSync(join(directory.path, 'checkpoint'), 'utf8')).toContain(`\n${limits.checkpointReceipts}\n`);
  });

  it('takes in receipts that are older than it', async () => {
    await state.add(12);
    const root = rootHere(state, 13);
    await tamper('DELETE FROM logNode WHERE seq > 4', 'DELETE FROM checkpoint');
    state = await open(directory.path);
    expect(rootHere(state, 13)).toBe(root);
    expect(state.all()).toMatchObject({ ok: true, receipts: 13 });
  });

  it('cannot be rewritten by a bug of ours', async () => {
    await state.add(3);
    const db = new DatabaseSync(join(directory.path, 'ledger.db'));
    try {
      for (const statement of [
        'UPDATE logNode SET hashes = zeroblob(32) WHERE seq = 2',
        'DELETE FROM logNode WHERE seq = 4',
        'INSERT INTO logNode VALUES (9, zeroblob(32))',
        'UPDATE checkpoint SET size = 2',
        'DELETE FROM checkpoint',
      ])
        expect(() => db.exec(statement)).toThrow(/append-only|gaps|never/);
    } finally {
      db.close();
    }
  });

  it('hands out proofs that lead to its checkpoint, and pages that verify elsewhere', async () => {
    await state.add(30);
    const first = await state.checkpoints.sign('here');
    await state.add(9);
    await state.checkpoints.cover();
    const { ledger, reader, seal } = state;
    const origin = receiptOrigin(ledger.bridgeId);
    const row = ledger.read.receipts({ limit: 20 })[15]!;
    const proof = reader.proof(row.receiptId);
    const head = inSync(openCheckpoint(nodePlatform, proof.checkpoint, origin, [seal.key.publicKeySpki]))!;
    expect(head.size).toBe(40);
    expect(proof.publicKey).toBe(seal.key.publicKeyPem);
    const hashes = reader.consistency({ fromSize: first.size, toSize: 40 }).hashes.map((hash) => fromBase64(hash)!);
    expect(inSync(verifyConsistency(nodePlatform, first, head, hashes))).toBe(true);
    expect(() => reader.consistency({ fromSize: 3, toSize: 41 })).toThrow('does not exist');

    const sealed = (view: typeof proof.receipt): SealedReceipt => ({
      ...openEnvelope(view.envelope)!,
      action: view.action === null ? null : Buffer.from(view.action),
      actionDeleted: view.actionDeleted,
    });
    const inclusion = { ...proof.inclusion, hashes: proof.inclusion.hashes.map((hash) => fromBase64(hash)!) };
    const checkpoints = [
      { note: proof.checkpoint, place: 'the bridge' },
      { note: first.note, place: 'here', consistency: hashes },
    ];
    const request = { publicKeySpki: seal.key.publicKeySpki, scope: 'some', bridgeId: ledger.bridgeId } as const;
    const given = [...proof.basis.map(sealed), { ...sealed(proof.receipt), inclusion }];
    const found = verifySync(nodePlatform, { ...request, checkpoints }, given);
    expect(found).toMatchObject({ ok: true, incomplete: false });
    expect(found.last.map((line) => line.check)).toEqual(
      'signature schema canonical record subject sequence chain inclusion checkpoint consistency key'.split(' '),
    );
    const without = checkpoints.map(({ note, place }) => ({ note, place }));
    expect(verifySync(nodePlatform, { ...request, checkpoints: without }, given)).toMatchObject({
      ok: true,
      incomplete: true,
    });
    const moved = [{ ...sealed(proof.receipt), inclusion: { ...inclusion, index: inclusion.index - 1 } }];
    expect(checks(verifySync(nodePlatform, { ...request, checkpoints }, moved))).toEqual(['inclusion']);
    const bent = [{ ...sealed(proof.receipt), inclusion: { ...inclusion, hashes: [...inclusion.hashes].reverse() } }];
    expect(checks(verifySync(nodePlatform, { ...request, checkpoints }, bent))).toEqual(['inclusion']);
    const fork = [{ ...checkpoints[1]!, consistency: hashes.slice(1) }, checkpoints[0]!];
    expect(checks(verifySync(nodePlatform, { ...request, checkpoints: fork }, given))).toEqual(['consistency']);

    const pages: SealedReceipt[] = [];
    for (let more = true; more;) {
      const page = reader.page({ afterSeq: pages.length, limit: 17 });
      pages.push(...page.receipts.map(sealed));
      more = page.more;
    }
    expect(verifySync(nodePlatform, { ...request, scope: 'all', checkpoints }, pages)).toMatchObject({
      ok: true,
      receipts: 40,
    });
    expect(reader.verify(row.receiptId)).toMatchObject({ ok: true });
    expect(reader.verify(row.receiptId).checks.map((line) => line.check)).toContain('leaf');
  });

  it('puts a checkpoint into one line, and finds checkpoints in any text', async () => {
    const { note } = await state.checkpoints.sign('here');
    await state.add(3);
    const later = await state.checkpoints.sign('here');
    expect(checkpointsIn(`Dear all,\n${checkpointLine(note)}\n\nbye`)).toEqual([note]);
    expect(checkpointsIn(`${note}\n${later.note}\n`)).toEqual([note, later.note]);
    expect(checkpointsIn('nothing here')).toEqual([]);
  });
});

describe('a history that was changed', () => {
  const kept = async () => {
    await state.add(10);
    const anchor = await state.checkpoints.sign('here');
    await state.add(10);
    return { note: anchor.note, place: 'a mail' };
  };

  it('shows cut off receipts against a checkpoint kept elsewhere (T47)', async () => {
    const anchor = await kept();
    await tamper(
      'DELETE FROM receipt WHERE seq > 8',
      'DELETE FROM logNode WHERE seq > 8',
      'DELETE FROM checkpoint WHERE size > 8',
    );
    writeFileSync(join(directory.path, 'checkpoint'), '');
    renameSync(join(directory.path, 'checkpoint'), join(directory.path, 'gone'));
    state = await open(directory.path);
    expect(state.all()).toMatchObject({ ok: true, receipts: 8 }); // by itself it is whole …
    const found = state.all([...state.ledger.read.checkpoints(), anchor]); // … against what was kept it is not
    expect(found.problems).toMatchObject([{ seq: 9, check: 'checkpoint' }]);
    expect(found.problems[0]?.sentence).toContain('over 11 receipts is known (a mail), but only 8 are here');
  });

  it('notices an older database put back, at the next start and from then on (T47)', async () => {
    await state.add(5);
    await state.close();
    const file = join(directory.path, 'ledger.db');
    copyFileSync(file, `${file}.old`);
    state = await open(directory.path);
    await state.add(30);
    await reopen();
    const evidence = readFileSync(join(directory.path, 'checkpoint'), 'utf8');
    await state.close();
    renameSync(`${file}.old`, file);
    for (const rest of ['-wal', '-shm']) expect(existsSync(file + rest)).toBe(false);

    state = await open(directory.path);
    expect(state.said.join()).toContain('The database holds 6 receipts, but 36 were signed before');
    expect(state.checkpoints.noticed).toBe(state.said[0]);
    expect(checks(state.all())).toEqual(['checkpoint']);
    await state.add(40); // grown beyond it: now it is another history
    await state.checkpoints.sign('here');
    expect(readFileSync(join(directory.path, 'checkpoint'), 'utf8')).toBe(evidence);
    expect(state.all().problems).toMatchObject([{ seq: 7, check: 'consistency' }]);
    renameSync(join(directory.path, 'checkpoint'), join(directory.path, 'gone'));
    await reopen();
    expect(checks(state.all())).toEqual(['consistency']); // kept in the database, too
  });

  it('says so when the file beside the database is of another log', async () => {
    await state.close();
    const other = temporary();
    const stranger = await open(other.path);
    await stranger.close();
    copyFileSync(join(other.path, 'checkpoint'), join(directory.path, 'checkpoint'));
    other.remove();
    state = await open(directory.path);
    expect(state.said.join()).toContain('of another log');
    const { read, bridgeId } = state.ledger;
    expect(contradictionIn(read, state.seal.key.publicKeySpki, bridgeId, directory.path)?.row).toBeNull();
    expect(checks(state.all())).toEqual(['checkpoint']);
  });

  it('shows two histories of one size (T48)', async () => {
    await state.add(5);
    await state.close();
    const file = join(directory.path, 'ledger.db');
    copyFileSync(file, `${file}.fork`);
    state = await open(directory.path);
    await state.add(10);
    const one = await state.checkpoints.sign('here');
    await state.close();
    renameSync(`${file}.fork`, file);
    renameSync(join(directory.path, 'checkpoint'), join(directory.path, 'gone'));
    state = await open(directory.path);
    await state.add(10);
    const two = await state.checkpoints.sign('here');
    expect(two.size).toBe(one.size);
    expect(toHex(two.root)).not.toBe(toHex(one.root));
    expect(state.all()).toMatchObject({ ok: true });
    const found = state.all([...state.ledger.read.checkpoints(), { note: one.note, place: 'a ticket' }]);
    expect(found.problems).toMatchObject([{ seq: 7, check: 'consistency' }]);
    expect(found.problems[0]?.sentence).toContain('Receipts 7 to 16');
  });

  it.each([
    [
      'a receipt replaced by another validly signed one',
      'UPDATE receipt SET payload = (SELECT payload FROM receipt WHERE seq = 6), signature = (SELECT signature FROM receipt WHERE seq = 6) WHERE seq = 5',
      ['consistency', 'record', 'leaf'],
    ],
    ['a bent leaf', 'UPDATE logNode SET hashes = zeroblob(32) WHERE seq = 5', ['leaf']],
    [
      'a checkpoint of a forger',
      "UPDATE checkpoint SET note = replace(note, 'countersign.local', 'countersign.locaI')",
      ['checkpoint'],
    ],
    [
      'a checkpoint over more',
      "UPDATE checkpoint SET note = replace(note, char(10) || '11' || char(10), char(10) || '12' || char(10))",
      ['checkpoint'],
    ],
    [
      'one receipt twice (T49)',
      'UPDATE receipt SET seq = -1 WHERE seq = 5; INSERT INTO receipt SELECT 5, receiptId || 0, kind, conversationId, approvalId, at, payload, signature, keyId, actionSha256, value, outcome, "by", sentence FROM receipt WHERE seq = 4; DELETE FROM receipt WHERE seq = -1',
      ['sequence', 'record'],
    ],
  ])('shows %s', async (_what, statement, expected) => {
    await kept();
    await tamper(statement);
    const ledger = openLedger({ directory: directory.path, blobs: join(directory.path, 'blobs') });
    const key = openReceiptKey(state.keys);
    const found = verifyAll(ledger.read, key.publicKeySpki, ledger.bridgeId);
    const ahead = await verifyAllAhead(ledger.read, key.publicKeySpki, ledger.bridgeId);
    await ledger.close();
    state = await open(directory.path);
    expect(found.ok).toBe(false);
    expect(checks(found)).toEqual(expect.arrayContaining(expected));
    expect(ahead).toEqual(found);
  });
});

describe('a change of the signing key (R-26)', () => {
  const signers = (): (string | undefined)[] => [...state.ledger.read.allReceipts()].map((row) => row.keyId);

  it('is two receipts, one of each key; everything before and after verifies from any of the keys', async () => {
    await state.add(4);
    const [first] = [state.seal.key];
    await state.checkpoints.sign('here');
    await state.rotate(operator, nothingStored);
    const second = state.seal.key;
    await state.add(3);
    const answer = await state.rotate(operator, nothingStored);
    const third = state.seal.key;
    expect(answer.keyId).toBe(third.keyId);
    await state.checkpoints.cover();
    await state.add(2);
    expect(signers()).toEqual([
      ...Array<string>(6).fill(first.keyId),
      ...Array<string>(5).fill(second.keyId),
      ...Array<string>(3).fill(third.keyId),
    ]);
    const { read, bridgeId } = state.ledger;
    for (const key of [first, second, third])
      expect(verifyAll(read, key.publicKeySpki, bridgeId)).toMatchObject({ ok: true, receipts: 14, incomplete: false });
    expect(
      [...keyringIn(read, second.publicKeySpki).values()]
        .map(({ first: from, last }) => [from, last])
        .sort((a, b) => a[0]! - b[0]!),
    ).toEqual([
      [1, 6],
      [7, 11],
      [12, Number.MAX_SAFE_INTEGER],
    ]);
    await state.checkpoints.cover();
    for (const row of read.allReceipts())
      expect(state.reader.verify(row.receiptId).checks.filter((line) => !line.ok)).toEqual([]);
    const proof = state.reader.proof(answer.receiptId);
    expect(proof.publicKey).toBe(first.publicKeyPem);
    expect(proof.rotations).toHaveLength(4);
    expect(readFileSync(join(state.keys, 'receipt.pem'), 'utf8')).toBe(
      third.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    );
    expect(existsSync(join(state.keys, 'receipt.next.pem'))).toBe(false);
    await reopen();
    expect(state.seal.keyId).toBe(third.keyId);
    expect(state.all()).toMatchObject({ ok: true });
  });

  it('is for the operator at a terminal alone, and not at the same time twice', async () => {
    const page: Actor = {
      kind: 'browser',
      attachmentId: 'a',
      sessionId: randomUUID(),
      keyId: 'k',
      publicKeySpki: new Uint8Array(),
    };
    await expect(state.rotate(page, nothingStored)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(state.rotate({ ...operator, operator: false }, nothingStored)).rejects.toMatchObject({
      code: 'forbidden',
    });
    const [one, two] = await Promise.allSettled([
      state.rotate(operator, nothingStored),
      state.rotate(operator, nothingStored),
    ]);
    expect([one.status, two.status]).toEqual(['fulfilled', 'rejected']);
    expect(state.ledger.read.rotations()).toHaveLength(2);
  });

  it('leaves everything as it was when its transaction is undone', async () => {
    const former = state.seal.keyId;
    await expect(
      state.rotate(operator, () => {
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    await state.add(2);
    expect(new Set(signers())).toEqual(new Set([former]));
    expect(existsSync(join(state.keys, 'receipt.next.pem'))).toBe(false);
    expect(state.all()).toMatchObject({ ok: true });
  });

  it('a crash before the transaction: the former key stays, the new one is gone', async () => {
    const former = state.seal.keyId;
    createNextKey(state.keys);
    await reopen();
    expect(state.seal.keyId).toBe(former);
    expect(existsSync(join(state.keys, 'receipt.next.pem'))).toBe(false);
  });

  it('a crash after the transaction: the new key takes its place at the next start', async () => {
    const next = createNextKey(state.keys);
    await state.ledger.commit((tx) => state.seal.rotate(tx, operator, next));
    await reopen();
    expect(state.seal.keyId).toBe(next.keyId);
    expect(existsSync(join(state.keys, 'receipt.next.pem'))).toBe(false);
    await state.add(1);
    expect(state.all()).toMatchObject({ ok: true });
  });

  it('a crash after the new key took the name: nothing is left to do', async () => {
    const next = createNextKey(state.keys);
    await state.ledger.commit((tx) => state.seal.rotate(tx, operator, next));
    adoptNextKey(state.keys);
    await reopen();
    expect(state.seal.keyId).toBe(next.keyId);
  });

  it('a key put in the place of the former one without a receipt refuses the start', async () => {
    await state.close();
    createNextKey(state.keys);
    adoptNextKey(state.keys);
    await expect(open(directory.path)).rejects.toMatchObject({ code: 'unsafe_key' });
    directory.remove();
    state = await open(directory.path);
  });

  const signedWith = async (key: ReceiptKey): Promise<void> => {
    const honest = state.seal.key;
    state.seal.useKey(key);
    await state.add(1);
    state.seal.useKey(honest);
  };
  it('the former key signs nothing that counts afterwards', async () => {
    const former = state.seal.key;
    await state.rotate(operator, nothingStored);
    await state.add(1);
    await signedWith(former);
    expect(state.all().problems).toMatchObject([{ seq: 5, check: 'key' }]);
  });
  it('a key that no receipt leads to signs nothing at all', async () => {
    const other = temporary();
    await signedWith(openReceiptKey(join(other.path, 'keys')));
    other.remove();
    expect(state.all().problems).toMatchObject([{ seq: 2, check: 'signature' }]);
  });
  it('a change that only one of the keys signed is none', async () => {
    await state.rotate(operator, nothingStored);
    const { read } = state.ledger;
    const sealed = [...read.allReceipts()].map((row) => sealedOf(read, row));
    const { publicKeySpki } = state.seal.key;
    const request = { publicKeySpki, scope: 'all', rotations: rotationsOf(state.ledger.read) } as const;
    const found = verifySync(nodePlatform, request, sealed.slice(0, 2));
    expect(checks(found)).toEqual(['key']);
    const halved = verifySync(nodePlatform, request, [sealed[0]!, sealed[2]!]);
    expect(checks(halved)).toEqual(expect.arrayContaining(['sequence', 'key']));
  });
});
