import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { verifyAsync } from '#protocol/verify.ts';
import { putCheckpoint } from '../../bridge/approvals/checkpoints.ts';
import { exportReceipts } from '../../bridge/approvals/export.ts';
import { publicKeyOf, verifyFile, verifyFolder } from '../../bridge/approvals/folder.ts';
import { openReceiptKey } from '../../bridge/approvals/keys.ts';
import { createReceiptReader, nodePlatform, sealedOf, verifyAll } from '../../bridge/approvals/reader.ts';
import { commandRequest, conversationId, openPage, openRoom, temporary, writeRequest, type Room } from './parts.ts';

/** Genesis, session, and five decisions of which three are allowed and two have outcomes; a rule and its receipt. */
const fill = async (room: Room): Promise<void> => {
  const page = openPage();
  const asking = ['a', 'b', 'c'].map((content) => room.desk.ask(writeRequest(content)));
  asking.push(room.desk.ask(commandRequest()));
  const records = await room.waiting(4);
  await room.decide(records[0]!, 'allow', page, { note: 'fine' });
  await room.decide(records[1]!, 'deny', page);
  await room.decide(records[2]!, 'allow', page, { remember: true });
  await room.desk.outcome(records[0]!.approvalId, 'ok', { startedAt: 1, endedAt: 2, resultSha256: 'a'.repeat(64) });
  room.desk.standing(conversationId, { value: 'allow', rule: 'cli --allow all' });
  await room.desk.ask(writeRequest('d'));
  await room.decide(records[3]!, 'allow', page);
  await room.desk.outcome(records[3]!.approvalId, 'failed', { startedAt: 3, endedAt: 4 });
  await Promise.all(asking);
  await room.ledger.commit((tx) => putCheckpoint(tx, room.seal.checkpoint, Date.now(), 'here'));
};

let directory: ReturnType<typeof temporary>;
let room: Room;
let folder: string;

const flip = (bytes: Uint8Array, at: number): Buffer => {
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] ?? 0) ^ 0x01;
  return changed;
};
const numbers = (): number[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.dsse.json'))
    .map((name) => Number.parseInt(name, 10))
    .sort((a, b) => a - b);

const signing = () => ({
  key: room.key,
  checkpoint: room.ledger.read.lastCheckpoint(room.ledger.read.logSize())!,
});

describe('exported receipts', () => {
  beforeAll(async () => {
    directory = temporary();
    room = await openRoom(directory.path);
    await fill(room);
    folder = join(directory.path, 'out');
    exportReceipts(room.ledger.read, conversationId, folder, signing());
  });
  afterAll(async () => {
    await room.close();
    directory.remove();
  });

  it('hold every receipt of the conversation and the session key its decisions were signed with', () => {
    const own = room.ledger.read
      .receipts({ conversationId, limit: 100 })
      .map((row) => row.seq)
      .sort((a, b) => a - b);
    expect(own).toHaveLength(8);
    expect(numbers()).toEqual([2, ...own]);
    for (const n of numbers())
      for (const kind of ['pae', 'sig', 'action.json']) expect(readdirSync(folder)).toContain(`${String(n)}.${kind}`);
    expect(verifyFolder(folder, room.key.publicKeySpki)).toMatchObject({
      ok: true,
      receipts: 9,
      problems: [],
      exit: 0,
    });
  });

  it('are all accepted by openssl, and refused after one byte (acceptance 9)', () => {
    const openssl = (n: number, pae: string): number | null =>
      spawnSync(
        'openssl',
        ['pkeyutl', '-verify', '-pubin', '-inkey', 'public.pem', '-rawin', '-in', pae, '-sigfile', `${String(n)}.sig`],
        { cwd: folder, encoding: 'utf8' },
      ).status;
    for (const n of numbers()) expect(openssl(n, `${String(n)}.pae`)).toBe(0);
    writeFileSync(join(folder, 'changed'), flip(readFileSync(join(folder, '2.pae')), 60));
    expect(openssl(2, 'changed')).not.toBe(0);
    rmSync(join(folder, 'changed'));
  });

  it('name the action whose bytes openssl digests to the same sha256', () => {
    const [n] = numbers().slice(-1);
    const digest = execFileSync('openssl', ['dgst', '-sha256', '-r', join(folder, `${String(n)}.action.json`)], {
      encoding: 'utf8',
    }).slice(0, 64);
    const envelope = JSON.parse(readFileSync(join(folder, `${String(n)}.dsse.json`), 'utf8')) as { payload: string };
    expect(Buffer.from(envelope.payload, 'base64').toString()).toContain(digest);
  });

  it('are never written over something', () => {
    expect(() => exportReceipts(room.ledger.read, conversationId, folder, signing())).toThrow('not empty');
  });

  it.each(['dsse.json', 'pae', 'sig', 'action.json'])(
    'a byte changed anywhere in any N.%s names its record',
    (kind) => {
      for (const n of numbers()) {
        const path = join(folder, `${String(n)}.${kind}`);
        const original = readFileSync(path);
        const places = Array.from({ length: 5 }, (_, index) => Math.floor((index * (original.length - 1)) / 4));
        for (const at of places) {
          writeFileSync(path, flip(original, at));
          const report = verifyFolder(folder, room.key.publicKeySpki);
          expect(report.exit, `${String(n)}.${kind} at ${String(at)}`).toBe(1);
          expect(report.problems.map((problem) => problem.seq)).toContain(n);
        }
        writeFileSync(path, original);
      }
      expect(verifyFolder(folder, room.key.publicKeySpki).exit).toBe(0);
    },
  );

  it('swapped names, a dropped decision and a doubled record are named', () => {
    const swap = (a: number, b: number): void => {
      for (const kind of ['dsse.json', 'pae', 'sig', 'action.json']) {
        const [left, right] = [a, b].map((n) => readFileSync(join(folder, `${String(n)}.${kind}`)));
        writeFileSync(join(folder, `${String(a)}.${kind}`), right!);
        writeFileSync(join(folder, `${String(b)}.${kind}`), left!);
      }
    };
    swap(3, 4);
    expect(verifyFolder(folder, room.key.publicKeySpki).problems.map((problem) => problem.seq)).toEqual(
      expect.arrayContaining([3, 4]),
    );
    swap(3, 4);
    const path = join(folder, '3.dsse.json');
    const original = readFileSync(path);
    rmSync(path);
    const dropped = verifyFolder(folder, room.key.publicKeySpki);
    expect(dropped).toMatchObject({ exit: 1, problems: [{ check: 'pairing' }] });
    writeFileSync(path, original);
    writeFileSync(join(folder, '99.dsse.json'), original);
    expect(verifyFolder(folder, room.key.publicKeySpki).exit).toBe(1);
    rmSync(join(folder, '99.dsse.json'));
  });

  it('are judged by the given key alone, not by the one in the folder', () => {
    const other = openReceiptKey(join(directory.path, 'other'));
    expect(verifyFolder(folder, other.publicKeySpki)).toMatchObject({ ok: false, exit: 1 });
    const own = readFileSync(join(folder, 'public.pem'), 'utf8');
    expect(publicKeyOf(own)).toEqual(room.key.publicKeySpki);
    writeFileSync(join(folder, 'public.pem'), other.publicKeyPem);
    expect(verifyFolder(folder, room.key.publicKeySpki).problems).toMatchObject([{ check: 'key' }]);
    writeFileSync(join(folder, 'public.pem'), own);
  });

  it('exit 2 when something is not here, 3 when nothing can be read', () => {
    const path = join(folder, '4.action.json');
    const action = readFileSync(path);
    rmSync(path);
    expect(verifyFolder(folder, room.key.publicKeySpki)).toMatchObject({
      ok: true,
      exit: 2,
      notes: [{ seq: 4, check: 'subject' }],
    });
    writeFileSync(path, action);
    expect(verifyFolder(join(directory.path, 'nowhere'), room.key.publicKeySpki).exit).toBe(3);
    expect(verifyFolder(join(directory.path, 'blobs'), room.key.publicKeySpki).exit).toBe(3);
    expect(verifyFile(path, room.key.publicKeySpki).exit).toBe(3);
  });

  it('one file alone is checked as far as it goes', () => {
    expect(verifyFile(join(folder, '2.dsse.json'), room.key.publicKeySpki)).toMatchObject({
      ok: true,
      exit: 0,
      receipts: 1,
    });
    const outcome = room.ledger.read.receipts({ conversationId, limit: 100 }).find((row) => row.kind === 'outcome')!;
    expect(verifyFile(join(folder, `${String(outcome.seq)}.dsse.json`), room.key.publicKeySpki)).toMatchObject({
      ok: true,
      exit: 2,
    });
  });

  it('each receipt shows its checks, its envelope and the same commands', () => {
    const reader = createReceiptReader(room.ledger.read, () => room.key.publicKeySpki, room.ledger.bridgeId);
    for (const row of room.ledger.read.allReceipts()) {
      const { ok, checks, commands } = reader.verify(row.receiptId);
      expect({ ok, failed: checks.filter((line) => !line.ok) }).toEqual({ ok: true, failed: [] });
      expect(checks.map((line) => line.check).slice(0, 7)).toEqual([
        'signature',
        'schema',
        'canonical',
        'record',
        'subject',
        'sequence',
        'chain',
      ]);
      expect(commands[0]).toBe('bridge verify --all');
      expect(
        Buffer.from((JSON.parse(reader.get(row.receiptId).envelope) as { payload: string }).payload, 'base64'),
      ).toEqual(Buffer.from(row.payload));
    }
    expect(reader.list({ limit: 3 })).toMatchObject({ more: true, receipts: [{ seq: 10 }, { seq: 9 }, { seq: 8 }] });
    expect(() => reader.verify('nothing')).toThrow('does not exist');
  });

  it('an asynchronous platform comes to the same findings', async () => {
    const later = {
      ...nodePlatform,
      sha256: async (bytes: Uint8Array) => nodePlatform.sha256(bytes),
      verify: async (...given: Parameters<typeof nodePlatform.verify>) => nodePlatform.verify(...given),
    };
    const rows = [...room.ledger.read.allReceipts()].map((row) => sealedOf(room.ledger.read, row));
    const request = { publicKeySpki: room.key.publicKeySpki, scope: 'all' } as const;
    expect(await verifyAsync(later, request, rows)).toMatchObject({ ok: true, receipts: 10, problems: [] });
    rows[4] = { ...rows[4]!, signature: flip(rows[4]!.signature, 3) };
    expect((await verifyAsync(later, request, rows)).problems[0]).toMatchObject({ seq: 5, check: 'signature' });
  });
});

describe('the chain of an installation', () => {
  beforeEach(async () => {
    directory = temporary();
    room = await openRoom(directory.path);
    await fill(room);
  });
  afterEach(async () => {
    await room.close();
    directory.remove();
  });
  const all = () => verifyAll(room.ledger.read, room.key.publicKeySpki, room.ledger.bridgeId);
  const tamper = (statement: string): void => {
    const db = new DatabaseSync(join(directory.path, 'ledger.db'));
    db.exec('PRAGMA foreign_keys=OFF');
    for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all() as {
      name: string;
    }[])
      db.exec(`DROP TRIGGER ${name}`);
    db.exec(statement);
    db.close();
  };

  it('verifies as a whole, in exactly the words others script against', () => {
    const { ok, receipts, problems } = all();
    expect(JSON.stringify({ ok, receipts, problems })).toBe('{"ok":true,"receipts":10,"problems":[]}');
  });

  // A byte of the payload, of the signature, of the action; a column shown to people; the order; a row gone, a row twice.
  const middle = (column: string): string =>
    `UPDATE receipt SET ${column} = CAST(substr(${column}, 1, 20) || x'58' || substr(${column}, 22) AS BLOB) WHERE seq = 5`;
  it.each([
    ['payload', middle('payload'), 'signature'],
    ['signature', middle('signature'), 'signature'],
    ['key id', "UPDATE receipt SET keyId = 'SHA256:other' WHERE seq = 5", 'signature'],
    [
      'action',
      "UPDATE action SET bytes = CAST(bytes || x'20' AS BLOB) WHERE sha256 = (SELECT actionSha256 FROM receipt WHERE seq = 5)",
      'subject',
    ],
    ['action gone', 'DELETE FROM action WHERE sha256 = (SELECT actionSha256 FROM receipt WHERE seq = 5)', 'subject'],
    ['value', "UPDATE receipt SET value = 'deny' WHERE seq = 5", 'record'],
    ['who decided', 'UPDATE receipt SET "by" = \'rule\' WHERE seq = 5', 'record'],
    ['time', 'UPDATE receipt SET at = at + 1 WHERE seq = 5', 'record'],
    [
      'order',
      'UPDATE receipt SET seq = -5 WHERE seq = 5; UPDATE receipt SET seq = 5 WHERE seq = 6; UPDATE receipt SET seq = 6 WHERE seq = -5',
      'record',
    ],
    ['a gap', 'DELETE FROM receipt WHERE seq = 4', 'sequence'],
    ['the beginning gone', 'DELETE FROM receipt WHERE seq = 1', 'sequence'],
  ])('names the record where it was tampered with: %s (T46, T49)', (_what, statement, check) => {
    tamper(statement);
    const found = all();
    expect(found.ok).toBe(false);
    const seq = statement.includes('seq = 1') ? 2 : 5;
    expect(found.problems).toContainEqual(expect.objectContaining({ seq, check }));
  });

  it('a record replayed under a new number is named', () => {
    tamper(
      'INSERT INTO receipt SELECT 11, receiptId || \'x\', kind, conversationId, approvalId, at, payload, signature, keyId, actionSha256, value, outcome, "by", sentence FROM receipt WHERE seq = 5',
    );
    expect(all().problems).toContainEqual(expect.objectContaining({ seq: 5, check: 'sequence' }));
  });

  it('an action deleted with its conversation is said, not held against it', async () => {
    await room.ledger.commit((tx) => tx.deleteConversation(conversationId));
    const found = all();
    expect(found).toMatchObject({ ok: true, problems: [], incomplete: false });
    expect(found.notes.length).toBeGreaterThan(0);
    expect(found.notes[0]?.sentence).toBe('The action was deleted with its conversation.');
  });

  it('another key, or another installation, is not this record', () => {
    const other = openReceiptKey(join(directory.path, 'other'));
    expect(verifyAll(room.ledger.read, other.publicKeySpki).problems).toHaveLength(10);
    const elsewhere = verifyAll(room.ledger.read, room.key.publicKeySpki, 'another').problems;
    expect(elsewhere.map(({ check }) => check)).toEqual(['checkpoint', ...Array<string>(10).fill('sequence')]);
  });

  it('a start with another key than the receipts were signed by is refused', async () => {
    await room.close();
    rmSync(join(directory.path, 'keys'), { recursive: true });
    await expect(openRoom(directory.path)).rejects.toThrow('Restore the former');
    room = await openRoom(join(directory.path, 'blobs'));
  });
});
