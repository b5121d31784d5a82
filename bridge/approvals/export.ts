/**
 * Receipts as files that tools not written here can check: for each the DSSE envelope, the signed bytes, the raw
 * signature and the action, numbered by their place in the chain, and the public key. And the way back: verifying such
 * a folder or file with a key that is given, since a folder's own public.pem proves nothing. Called by the CLI.
 */
import { createPublicKey } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { envelopeText, openEnvelope, payloadType, preAuthEncoding } from '#protocol/receipts.ts';
import { verifySync, type Finding, type SealedReceipt, type Verification } from '#protocol/verify.ts';
import type { Reads, ReceiptRow } from '../ledger/contract.ts';
import type { ReceiptKey } from './keys.ts';
import { basisOf, inOrder, nodePlatform } from './reader.ts';

type PublicKey = Pick<ReceiptKey, 'publicKeySpki' | 'publicKeyPem'>;

const receiptsOfConversation = (read: Reads, conversationId: string): ReceiptRow[] => {
  const rows: ReceiptRow[] = [];
  for (let beforeSeq: number | undefined; ; beforeSeq = rows.at(-1)?.seq) {
    const page = read.receipts({ conversationId, beforeSeq, limit: 200 });
    if (page.length === 0) return rows;
    rows.push(...page);
  }
};

/**
 * Writes the receipts of a conversation, and those with the page keys its decisions were signed with, into `folder`
 * (made when absent, otherwise empty). Returns what was written, in order.
 * @throws Refusal already_exists when the folder holds something
 */
export const exportReceipts = (
  read: Reads,
  conversationId: string,
  folder: string,
  key: PublicKey,
): { n: number; receiptId: string }[] => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (readdirSync(folder).length > 0)
    throw new Refusal('already_exists', { message: `${folder} is not empty. Name a new folder.` });
  const write = (name: string, data: string | Uint8Array): void =>
    writeFileSync(join(folder, name), data, { flag: 'wx', mode: 0o600 });
  const own = receiptsOfConversation(read, conversationId);
  const rows = inOrder([...own, ...own.flatMap((row) => basisOf(read, row))]);
  for (const row of rows) {
    const action = row.actionSha256 === null ? null : read.action(row.actionSha256);
    write(`${String(row.seq)}.dsse.json`, envelopeText(row));
    write(`${String(row.seq)}.pae`, preAuthEncoding(payloadType, row.payload, nodePlatform.utf8));
    write(`${String(row.seq)}.sig`, row.signature);
    if (action !== null) write(`${String(row.seq)}.action.json`, action);
  }
  write('public.pem', key.publicKeyPem);
  return rows.map((row) => ({ n: row.seq, receiptId: row.receiptId }));
};

/** 0 ok, 1 invalid, 2 incomplete, 3 unreadable. */
export type VerifyExit = 0 | 1 | 2 | 3;
export interface VerifyReport extends Verification {
  readonly exit: VerifyExit;
}
export const verifyExit = (verification: Verification): VerifyExit =>
  verification.ok ? (verification.incomplete ? 2 : 0) : 1;
const report = (verification: Verification): VerifyReport => ({ ...verification, exit: verifyExit(verification) });
const unreadable = (sentence: string): VerifyReport => ({
  ok: false,
  receipts: 0,
  problems: [{ receiptId: null, seq: null, check: 'read', sentence }],
  notes: [],
  incomplete: false,
  exit: 3,
});

/** SPKI bytes of a PEM public key given with --key; null where it is not an Ed25519 key. */
export const publicKeyOf = (pem: string): Uint8Array | null => {
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyType === 'ed25519' ? new Uint8Array(key.export({ type: 'spki', format: 'der' })) : null;
  } catch {
    return null;
  }
};

const bytesAt = (path: string): Uint8Array | null => {
  const stat = existsSync(path) ? lstatSync(path) : null;
  return stat === null || !stat.isFile() || stat.size > 4 * limits.eventBytes ? null : readFileSync(path);
};
const isSame = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

interface FromFiles {
  readonly sealed: SealedReceipt | null;
  readonly problems: Finding[];
  readonly missing: string[];
}

/** Receipt `n` of a folder: its envelope, and whether the files beside it are the very bytes it holds. */
const readNumbered = (folder: string, n: string): FromFiles => {
  const seq = /^\d{1,15}$/.test(n) ? Number(n) : null;
  const problem = (sentence: string): Finding => ({ receiptId: null, seq, check: 'files', sentence });
  const envelope = bytesAt(join(folder, `${n}.dsse.json`));
  const opened = envelope === null ? null : openEnvelope(Buffer.from(envelope).toString('utf8'));
  if (opened === null)
    return { sealed: null, problems: [problem(`${n}.dsse.json is not an envelope of this format.`)], missing: [] };
  const expected = {
    [`${n}.pae`]: preAuthEncoding(payloadType, opened.payload, nodePlatform.utf8),
    [`${n}.sig`]: opened.signature,
  };
  const files = Object.entries(expected).map(([name, bytes]) => ({ name, bytes, found: bytesAt(join(folder, name)) }));
  const differing = files.filter(({ bytes, found }) => found !== null && !isSame(bytes, found));
  return {
    sealed: {
      ...opened,
      action: bytesAt(join(folder, `${n}.action.json`)),
      ...(seq === null ? {} : { stored: { seq } }),
    },
    problems: differing.map(({ name }) => problem(`${name} is not what the envelope holds.`)),
    missing: files.filter(({ found }) => found === null).map(({ name }) => name),
  };
};

const together = (
  read: readonly FromFiles[],
  request: { readonly publicKeySpki: Uint8Array; readonly scope: 'some' | 'one' },
  more: readonly Finding[],
): VerifyReport => {
  const sealed = read.flatMap((each) => (each.sealed === null ? [] : [each.sealed]));
  const { last: _, ...verification } = verifySync(nodePlatform, request, sealed);
  const problems = [...more, ...read.flatMap((each) => each.problems), ...verification.problems];
  const missing = read.flatMap((each) => each.missing);
  const notes = [
    ...verification.notes,
    ...missing.map((name): Finding => ({
      receiptId: null,
      seq: null,
      check: 'files',
      sentence: `${name} is not here.`,
    })),
  ];
  return report({
    ok: problems.length === 0,
    receipts: read.length,
    problems,
    notes,
    incomplete: verification.incomplete || missing.length > 0,
  });
};

/** A folder made by `exportReceipts`. `publicKeySpki` is the installation's key or the one given with --key. */
export const verifyFolder = (folder: string, publicKeySpki: Uint8Array): VerifyReport => {
  if (!existsSync(folder) || !lstatSync(folder).isDirectory()) return unreadable(`${folder} is not a folder.`);
  const numbers = readdirSync(folder).flatMap((name) =>
    name.endsWith('.dsse.json') ? [basename(name, '.dsse.json')] : [],
  );
  if (numbers.length === 0) return unreadable(`${folder} holds no receipts.`);
  const own = bytesAt(join(folder, 'public.pem'));
  const ownKey = own === null ? null : publicKeyOf(Buffer.from(own).toString('utf8'));
  const isOther = own !== null && (ownKey === null || !isSame(ownKey, publicKeySpki));
  const other: Finding = {
    receiptId: null,
    seq: null,
    check: 'key',
    sentence: 'public.pem in this folder is not the given key.',
  };
  const ordered = numbers.sort((a, b) => Number(a) - Number(b));
  return together(
    ordered.map((n) => readNumbered(folder, n)),
    { publicKeySpki, scope: 'some' },
    isOther ? [other] : [],
  );
};

/** One `N.dsse.json`, with its action beside it when it is there. Whether it is in its place needs the folder or the state. */
export const verifyFile = (file: string, publicKeySpki: Uint8Array): VerifyReport => {
  const bytes = bytesAt(file);
  const opened = bytes === null ? null : openEnvelope(Buffer.from(bytes).toString('utf8'));
  if (opened === null) return unreadable(`${file} cannot be read as a receipt.`);
  const alone: FromFiles = { sealed: { ...opened, action: null }, problems: [], missing: [] };
  const read = file.endsWith('.dsse.json')
    ? { ...readNumbered(dirname(file), basename(file, '.dsse.json')), missing: [] }
    : alone;
  return together([read], { publicKeySpki, scope: 'one' }, []);
};
