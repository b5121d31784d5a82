import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { putCheckpoint } from '../../bridge/approvals/checkpoints.ts';
import { exportReceipts } from '../../bridge/approvals/export.ts';
import { verifyFile, verifyFolder } from '../../bridge/approvals/folder.ts';
import { openReceiptKey, type ReceiptKey } from '../../bridge/approvals/keys.ts';
import {
  cli,
  commandRequest,
  conversationId,
  openPage,
  openRoom,
  temporary,
  writeRequest,
  type Room,
} from './parts.ts';
import { needs, openssl, sigstore, sshKeygen } from './strangers.ts';

let directory: ReturnType<typeof temporary>;
let room: Room;
let first: ReceiptKey;
const folder = (name: string): string => join(directory.path, name);
const page = openPage();

const act = async (content: string, value: 'allow' | 'deny'): Promise<void> => {
  const asking = room.desk.ask(content === 'command' ? commandRequest() : writeRequest(content));
  const [record] = await room.waiting(1);
  await room.decide(record!, value, page);
  const verdict = await asking;
  if (value === 'allow') await room.desk.outcome(verdict.approvalId, 'ok', { startedAt: 1, endedAt: 2 });
};
const exported = async (name: string): Promise<string> => {
  const checkpoint = await room.ledger.commit((tx) => putCheckpoint(tx, room.seal.checkpoint, Date.now(), 'here'));
  exportReceipts(room.ledger.read, conversationId, folder(name), { key: room.seal.key, checkpoint });
  return folder(name);
};
const numbers = (path: string): number[] =>
  readdirSync(path)
    .filter((name) => name.endsWith('.dsse.json'))
    .map((name) => Number.parseInt(name, 10))
    .sort((a, b) => a - b);
const origin = (path: string): string => readFileSync(join(path, 'checkpoint'), 'utf8').split('\n')[0]!;

beforeAll(async () => {
  directory = temporary();
  room = await openRoom(directory.path);
  first = room.key;
  await act('a', 'allow');
  await act('command', 'allow');
  await act('b', 'deny');
  await exported('before');
  await room.ledger.commit((tx) => room.seal.rotate(tx, cli, openReceiptKey(folder('next'))));
  await act('c', 'allow');
  await exported('after');
});
afterAll(async () => {
  await room.close();
  directory.remove();
});

describe('an export, checked by tools of others (R-23, R-25)', () => {
  it('openssl accepts each receipt', (context) => {
    needs(context, 'openssl');
    const path = folder('before');
    expect(numbers(path)).toEqual([2, 3, 4, 5, 6, 7]);
    for (const n of numbers(path)) expect([n, openssl(path, n, join(path, 'public.pem'))]).toEqual([n, true]);
  });
  it('sigstore accepts each receipt, its place in the log and the checkpoint, offline', () => {
    const path = folder('before');
    for (const n of numbers(path)) expect([n, sigstore(path, n, path)]).toEqual([n, true]);
  });
  it('ssh-keygen accepts the checkpoint', (context) => {
    needs(context, 'ssh-keygen');
    expect(sshKeygen(folder('before'), folder('before'), origin(folder('before')))).toBe(true);
  });
  it('the tlog-proof leads from the leaf to the root, folded by hand', () => {
    const path = folder('before');
    const hash = (...parts: Uint8Array[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest();
    for (const n of numbers(path)) {
      const [head, index, ...rest] = readFileSync(join(path, `${String(n)}.tlog-proof`), 'utf8').split('\n');
      const end = rest.indexOf('');
      const [, size, root] = rest.slice(end + 1);
      expect([head, index]).toEqual(['c2sp.org/tlog-proof@v1', `index ${String(n - 1)}`]);
      const bundle = JSON.parse(readFileSync(join(path, `${String(n)}.sigstore.json`), 'utf8')) as {
        verificationMaterial: { tlogEntries: { canonicalizedBody: string }[] };
      };
      const body = Buffer.from(bundle.verificationMaterial.tlogEntries[0]!.canonicalizedBody, 'base64');
      let [at, last] = [n - 1, Number(size) - 1];
      let found = hash(Buffer.from([0]), body);
      for (const line of rest.slice(0, end)) {
        const other = Buffer.from(line, 'base64');
        const isRight = at % 2 === 1 || at === last;
        found = isRight ? hash(Buffer.from([1]), other, found) : hash(Buffer.from([1]), found, other);
        while (isRight && at % 2 === 0 && at > 0) [at, last] = [at >> 1, last >> 1];
        [at, last] = [at >> 1, last >> 1];
      }
      expect([n, found.toString('base64')]).toEqual([n, root]);
    }
  });
  it('and ours agrees', () => {
    const report = verifyFolder(folder('before'), first.publicKeySpki);
    expect(report).toMatchObject({ ok: true, exit: 0, problems: [], notes: [] });
  });
});

describe('an export after a change of keys (R-26)', () => {
  it('holds the change, and every key that is needed', () => {
    const path = folder('after');
    expect(numbers(path)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    const pems = readdirSync(path).filter((name) => name.endsWith('.pem'));
    expect(pems).toEqual(['public.8.pem', 'public.pem']);
    expect(readFileSync(join(path, 'public.8.pem'), 'utf8')).toBe(first.publicKeyPem);
    expect(readFileSync(join(path, 'public.pem'), 'utf8')).toBe(room.seal.publicKeyPem);
  });
  it('openssl accepts each receipt with the key of its time, and with no other', (context) => {
    needs(context, 'openssl');
    const path = folder('after');
    for (const n of [7, 8, 9, 10]) {
      expect([n, openssl(path, n, join(path, 'public.8.pem'))]).toEqual([n, n <= 8]);
      expect([n, openssl(path, n, join(path, 'public.pem'))]).toEqual([n, n > 8]);
    }
  });
  it('sigstore accepts the new receipts under the trusted root with both keys', () => {
    for (const n of [9, 10, 11]) expect([n, sigstore(folder('after'), n, folder('after'))]).toEqual([n, true]);
    expect(sigstore(folder('after'), 7, folder('after'))).toBe(false); // it is given the newest key
  });
  it('ssh-keygen accepts the checkpoint', (context) => {
    needs(context, 'ssh-keygen');
    expect(sshKeygen(folder('after'), folder('after'), origin(folder('after')))).toBe(true);
  });
  it('ours reaches either key from the other, as a folder and as a file', () => {
    for (const { publicKeySpki } of [first, room.seal.key]) {
      expect(verifyFolder(folder('after'), publicKeySpki)).toMatchObject({ ok: true, exit: 0, problems: [] });
      for (const n of [2, 8, 9]) {
        const report = verifyFile(join(folder('after'), `${String(n)}.dsse.json`), publicKeySpki);
        expect([n, report.problems]).toEqual([n, []]);
      }
    }
  });
  it('without the change itself, the receipts of the other key are strangers', () => {
    const path = folder('after');
    for (const n of [8, 9]) rmSync(join(path, `${String(n)}.dsse.json`));
    const { exit, problems } = verifyFolder(path, first.publicKeySpki);
    expect(exit).toBe(1);
    expect(problems.filter(({ check }) => check === 'signature').map(({ seq }) => seq)).toEqual([10, 11]);
  });
});
