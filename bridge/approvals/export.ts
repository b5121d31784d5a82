/**
 * Receipts as files that tools not written here can check: for each the DSSE envelope, the signed bytes, the raw
 * signature, the action, a Sigstore bundle and a tlog-proof, numbered by their place in the chain; beside them the keys
 * and a signed checkpoint. Called by the CLI; folder.ts reads it back.
 */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Place } from '#protocol/bundle.ts';
import { Refusal } from '#protocol/errors.ts';
import { inclusionProof } from '#protocol/log.ts';
import { receiptOrigin } from '#protocol/receipts.ts';
import { inSync } from '#protocol/steps.ts';
import type { CheckpointRow, Reads, ReceiptRow } from '../ledger/contract.ts';
import { keyFiles, keysOf, receiptFiles, signerOf, type Files } from './forms.ts';
import type { ReceiptKey } from './keys.ts';
import { basisOf, inOrder, keyringIn, nodePlatform } from './reader.ts';
import { sshSignature } from './sshsig.ts';

const receiptsOfConversation = (read: Reads, conversationId: string): ReceiptRow[] => {
  const rows: ReceiptRow[] = [];
  for (let beforeSeq: number | undefined; ; beforeSeq = rows.at(-1)?.seq) {
    const page = read.receipts({ conversationId, beforeSeq, limit: 200 });
    if (page.length === 0) return rows;
    rows.push(...page);
  }
};

/** A key that signs and a signed state of the log that covers what is exported. */
export interface Signing {
  readonly key: ReceiptKey;
  readonly checkpoint: Pick<CheckpointRow, 'size' | 'root' | 'note'>;
}

const originOf = (read: Reads): string => receiptOrigin(read.meta('ledger.bridgeId') ?? '');

/** What all receipts of one export share. @throws Refusal integrity_error when the checkpoint is by none of its keys */
const prepare = (read: Reads, { key, checkpoint }: Signing) => {
  const rotations = read.rotations();
  const keys = keysOf(keyringIn(read, key.publicKeySpki), rotations);
  const origin = originOf(read);
  const logKey = signerOf(checkpoint.note, origin, keys);
  if (logKey === null) throw new Refusal('integrity_error', { message: 'The checkpoint is not of this log.' });
  const placeOf = ({ seq }: ReceiptRow): Place => {
    const index = seq - 1;
    const hashes = inSync(inclusionProof(nodePlatform, index, checkpoint.size, read.logNode));
    return { index, size: checkpoint.size, root: checkpoint.root, hashes, checkpoint: checkpoint.note };
  };
  const filesOf = (row: ReceiptRow): Files => {
    const signer = keys.find(({ keyId }) => keyId === row.keyId);
    if (signer === undefined) throw new Refusal('integrity_error', { message: 'A receipt is by an unknown key.' });
    const by = { origin, signer: signer.publicKeySpki, logKey: logKey.publicKeySpki };
    return receiptFiles({ ...row, place: placeOf(row) }, by);
  };
  return { rotations, keys, origin, filesOf };
};

/**
 * Writes the receipts of a conversation, those with the page keys its decisions were signed with, and every change of the
 * signing key, into `folder` (made when absent, otherwise empty). Returns what was written, in order.
 * @throws Refusal already_exists when the folder holds something
 */
export const exportReceipts = (
  read: Reads,
  conversationId: string,
  folder: string,
  signing: Signing,
): { n: number; receiptId: string }[] => {
  const { rotations, keys, origin, filesOf } = prepare(read, signing);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (readdirSync(folder).length > 0)
    throw new Refusal('already_exists', { message: `${folder} is not empty. Name a new folder.` });
  const write = (files: Files, prefix = ''): void => {
    for (const [name, data] of Object.entries(files))
      writeFileSync(join(folder, `${prefix}${name}`), data, { flag: 'wx', mode: 0o600 });
  };
  const own = receiptsOfConversation(read, conversationId);
  // What was signed since the checkpoint is for the next export: no proof of it is there yet.
  const rows = inOrder([...own, ...own.flatMap((row) => basisOf(read, row)), ...rotations]).filter(
    ({ seq }) => seq <= signing.checkpoint.size,
  );
  for (const row of rows) {
    const action = row.actionSha256 === null ? null : read.action(row.actionSha256);
    write({ ...filesOf(row), ...(action === null ? {} : { 'action.json': action }) }, `${String(row.seq)}.`);
  }
  const { checkpoint, key } = signing;
  const twin = sshSignature(Buffer.from(checkpoint.note), key);
  write({ ...keyFiles(origin, keys), checkpoint: checkpoint.note, 'checkpoint.sshsig': twin });
  return rows.map((row) => ({ n: row.seq, receiptId: row.receiptId }));
};

/** One receipt by itself. A bundle holds all of it but the action; a tlog-proof goes beside the envelope. */
export type ReceiptForm = 'envelope' | 'bundle' | 'tlog-proof';
const formNames = { envelope: 'dsse.json', bundle: 'sigstore.json', 'tlog-proof': 'tlog-proof' } as const;
/** @throws Refusal integrity_error */
export const receiptForm = (read: Reads, row: ReceiptRow, form: ReceiptForm, signing: Signing): string =>
  String(prepare(read, signing).filesOf(row)[formNames[form]]);
