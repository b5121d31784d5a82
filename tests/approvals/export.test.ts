import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleText, openBundle } from '#protocol/bundle.ts';
import { receiptOrigin } from '#protocol/receipts.ts';
import { inSync } from '#protocol/steps.ts';
import { exportReceipts, receiptForm } from '../../bridge/approvals/export.ts';
import { verifyFile, verifyFolder } from '../../bridge/approvals/folder.ts';
import { nodePlatform } from '../../bridge/approvals/reader.ts';
import { sshSignature, verifySshSignature } from '../../bridge/approvals/sshsig.ts';
import { openLedgerReadOnly } from '../../bridge/ledger/ledger.ts';
import { bridge, Bridge, temporary as stateDirectory, type Ran } from '../bridge/process.ts';
import { conversationId, installationKey, otherKey, usual } from './history.ts';
import { temporary } from './parts.ts';
import { stage, type Stage } from './stage.ts';

let directory: ReturnType<typeof temporary>;
let made: Stage;
let count = 0;
const copy = (): string => {
  const folder = join(directory.path, `copy-${String((count += 1))}`);
  cpSync(made.folder, folder, { recursive: true });
  return folder;
};
const key = installationKey.publicKeySpki;
beforeAll(async () => {
  directory = temporary();
  made = await stage(join(directory.path, 'made'), usual());
});
afterAll(() => directory.remove());

const flipped = (bytes: Buffer, at: number): Buffer => {
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
};
const places = (length: number): number[] => Array.from({ length: 7 }, (_, n) => Math.floor((n * (length - 1)) / 6));

describe('the folder of an export (R-24)', () => {
  it('holds for each receipt all that checks it, and beside them what they share', () => {
    const of = (n: number) =>
      ['action.json', 'dsse.json', 'pae', 'sig', 'sigstore.json', 'tlog-proof'].map((kind) => `${n}.${kind}`);
    const shared = ['allowed_signers', 'checkpoint', 'checkpoint.sshsig', 'public.pem', 'trusted_root.json'];
    expect(readdirSync(made.folder).sort()).toEqual([...[2, 3, 4, 5, 6, 7].flatMap(of), ...shared]);
    expect(verifyFolder(made.folder, key)).toMatchObject({ ok: true, exit: 0, receipts: 6, problems: [], notes: [] });
  });

  it.each(['sigstore.json', 'tlog-proof'])('a byte changed in N.%s names its record', (kind) => {
    const folder = copy();
    for (const n of [2, 5, 7]) {
      const path = join(folder, `${n}.${kind}`);
      const original = readFileSync(path);
      for (const at of places(original.length)) {
        writeFileSync(path, flipped(original, at));
        const { exit, problems } = verifyFolder(folder, key);
        expect([n, at, exit, problems.some(({ seq }) => seq === n)]).toEqual([n, at, 1, true]);
      }
      writeFileSync(path, original);
    }
  });

  it.each(['allowed_signers', 'checkpoint', 'checkpoint.sshsig', 'public.pem', 'trusted_root.json'])(
    'a byte changed in %s is refused',
    (name) => {
      const folder = copy();
      const original = readFileSync(join(folder, name));
      for (const at of places(original.length)) {
        writeFileSync(join(folder, name), flipped(original, at));
        expect([at, verifyFolder(folder, key).exit]).toEqual([at, 1]);
      }
    },
  );

  it('a bundle that says more, or the same in other words, is not what the envelope holds', () => {
    const folder = copy();
    const path = join(folder, '5.sigstore.json');
    const bundle = JSON.parse(readFileSync(path, 'utf8')) as object;
    for (const text of [JSON.stringify({ ...bundle, trusted: true }), JSON.stringify(bundle, null, 1)]) {
      writeFileSync(path, text);
      const sentence = '5.sigstore.json is not what the envelope holds.';
      expect(verifyFolder(folder, key).problems).toEqual([
        expect.objectContaining({ seq: 5, check: 'files', sentence }),
      ]);
      expect(verifyFile(path, key).problems).toEqual([expect.objectContaining({ check: 'files', sentence })]);
    }
  });

  it('what is missing is named, and the folder is incomplete, not wrong', () => {
    const folder = copy();
    for (const name of readdirSync(made.folder)) {
      rmSync(join(folder, name));
      const { exit, notes } = verifyFolder(folder, key);
      cpSync(join(made.folder, name), join(folder, name));
      const isNeeded = ['2.dsse.json', '3.dsse.json', '5.dsse.json'].includes(name); // others are judged by these
      if (name === '3.dsse.json' || name === '5.dsse.json') expect([name, exit]).toEqual([name, 1]);
      else expect([name, exit]).toEqual([name, 2]);
      if (!isNeeded) expect([name, notes.length > 0]).toEqual([name, true]);
    }
  });

  it('an export from before there was a log is incomplete, and its signatures are still checked', () => {
    const folder = copy();
    const before = /\.(dsse\.json|pae|sig|action\.json)$|^public\.pem$/;
    for (const name of readdirSync(folder)) if (!before.test(name)) rmSync(join(folder, name));
    expect(verifyFolder(folder, key)).toMatchObject({ ok: true, exit: 2, problems: [] });
    writeFileSync(join(folder, '5.sig'), flipped(readFileSync(join(folder, '5.sig')), 9));
    expect(verifyFolder(folder, key).exit).toBe(1);
  });

  it('a checkpoint kept elsewhere of the same size must be the same', () => {
    const kept = (note: string) => verifyFolder(made.folder, key, { checkpoints: [{ note, place: 'kept' }] });
    expect(kept(made.checkpoint.note).exit).toBe(0);
    expect(kept(made.checkpoint.note.replace('\n7\n', '\n6\n')).problems).toMatchObject([{ check: 'checkpoint' }]);
  });

  it('holds only what its checkpoint covers', async () => {
    const ledger = openLedgerReadOnly(made.directory);
    const early = join(directory.path, 'early');
    const shorter = await stage(join(directory.path, 'shorter'), usual().slice(0, 5));
    const written = exportReceipts(ledger.read, conversationId, early, {
      key: installationKey,
      checkpoint: shorter.checkpoint,
    });
    await ledger.close();
    expect(written.map(({ n }) => n)).toEqual([2, 3, 4, 5]);
    expect(verifyFolder(early, key)).toMatchObject({ ok: true, exit: 0 });
  });

  it('is not made from a checkpoint of another log', async () => {
    const ledger = openLedgerReadOnly(made.directory);
    const other = await stage(join(directory.path, 'other'), usual(otherKey), { key: otherKey });
    const signing = { key: installationKey, checkpoint: other.checkpoint };
    const row = ledger.read.lastReceipt()!;
    expect(() => receiptForm(ledger.read, row, 'bundle', signing)).toThrow('not of this log');
    await ledger.close();
  });
});

describe('the forms of a receipt', () => {
  it('a bundle opens to what it was made of, and junk does not open', () => {
    const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
    const placed = fc.record({
      payload: fc.uint8Array({ minLength: 1, maxLength: 200 }),
      signature: bytes(64),
      keyId: fc.string({ maxLength: 100 }).filter((text) => text.isWellFormed()),
      place: fc.record({
        index: fc.nat(),
        size: fc.nat(),
        root: bytes(32),
        hashes: fc.array(bytes(32), { maxLength: 20 }),
        checkpoint: fc.string({ maxLength: 200 }).filter((text) => text.isWellFormed()),
      }),
    });
    const by = { origin: receiptOrigin('x'), signer: key, logKey: key };
    fc.assert(
      fc.property(placed, (given) => {
        expect(openBundle(inSync(bundleText(nodePlatform, given, by)))).toEqual(given);
      }),
      { numRuns: 50 },
    );
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (junk) => openBundle(junk) === null));
  });

  it('an SSHSIG is good for its message, its key and its spelling only', () => {
    const message = Buffer.from('a\n');
    const armoured = sshSignature(message, installationKey);
    expect(verifySshSignature(message, key, armoured)).toBe(true);
    expect(verifySshSignature(Buffer.from('b\n'), key, armoured)).toBe(false);
    expect(verifySshSignature(message, otherKey.publicKeySpki, armoured)).toBe(false);
    for (const changed of [
      armoured.replaceAll('\n', '\r\n'),
      `${armoured}\n`,
      armoured.trimEnd(),
      armoured.replace('\n', '\n\n'),
      armoured.replace('SSH', 'SSL'),
      '',
    ])
      expect(verifySshSignature(message, key, changed)).toBe(false);
  });
});

describe('receipts at the terminal (R-23)', () => {
  const state = stateDirectory('receipts');
  const on = (...args: string[]): Promise<Ran> => bridge([...args, '--state', state.path]);
  const out = (name: string): string => join(state.path, name);
  const verified = (path: string): Promise<Ran> => on('verify', path, '--json');
  beforeAll(async () => {
    const directory = join(state.path, 'private');
    mkdirSync(join(directory, 'keys'), { recursive: true, mode: 0o700 });
    chmodSync(state.path, 0o700);
    const pem = installationKey.privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(join(directory, 'keys', 'receipt.pem'), pem, { mode: 0o600 });
    await stage(directory, usual());
  });
  afterAll(() => state.remove());

  it('are listed and shown, by number and by id', async () => {
    const listed = JSON.parse((await on('receipts', '--json')).stdout) as {
      receipts: { seq: number; receiptId: string }[];
    };
    expect(listed.receipts.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    const { receiptId } = listed.receipts[2]!;
    const shown = await Promise.all(['3', receiptId].map((name) => on('receipts', 'show', name, '--json')));
    expect(shown[0]!.stdout).toBe(shown[1]!.stdout);
    const statement = { predicate: { receipt: { seq: 3 }, decision: { value: 'allow' } } };
    expect(JSON.parse(shown[0]!.stdout)).toMatchObject({ seq: 3, receiptId, statement });
    expect(await on('receipts', 'show', '999')).toMatchObject({ code: 1, stderr: 'This receipt does not exist.\n' });
  });

  it('are exported one by one in each form, with and without a running bridge, never over a file', async () => {
    const running = await new Bridge(state.path).start();
    try {
      expect(await on('receipts', 'export', '2', '--format', 'bundle', '--out', out('2.bundle'))).toMatchObject({
        code: 0,
        stderr: '',
      });
      const folder = await on('conversations', 'receipts', conversationId, '--out', out('beside'), '--json');
      expect(folder).toMatchObject({ code: 0, stderr: '' });
    } finally {
      await running.stop();
    }
    expect(await verified(out('beside'))).toMatchObject({ code: 0 });
    expect(JSON.parse((await verified(out('2.bundle'))).stdout)).toMatchObject({ ok: true, receipts: 1, problems: [] });
    expect(await on('receipts', 'export', '2', '--out', out('2.bundle'))).toMatchObject({ code: 1 });
    expect(await on('receipts', 'export', '2', '--format', 'pdf')).toMatchObject({ code: 2 });
    const proof = await on('receipts', 'export', '2', '--format', 'tlog-proof');
    expect(proof.stdout.split('\n').slice(0, 2)).toEqual(['c2sp.org/tlog-proof@v1', 'index 1']);
  });

  it('a folder exported after a change of keys is good for the key of either time', async () => {
    writeFileSync(out('former.pem'), readFileSync(join(out('beside'), 'public.pem')));
    expect(await on('keys', 'rotate')).toMatchObject({ code: 0, stderr: '' });
    expect(await on('conversations', 'receipts', conversationId, '--out', out('after'))).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(await verified(out('after'))).toMatchObject({ code: 0 });
    expect(await on('verify', out('after'), '--key', out('former.pem'))).toMatchObject({ code: 0 });
    expect(await verified(out('beside'))).toMatchObject({ code: 0 }); // made before: only this installation knows the change
    expect(await on('verify', out('beside'), '--key', join(out('after'), 'public.pem'))).toMatchObject({ code: 1 });
  });
});
