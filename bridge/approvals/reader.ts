/**
 * Receipts read back: listed, shown as envelopes, and verified against the installation's own key.
 * Works on any `Reads`, also of a database opened read-only by the CLI. Signs and writes nothing.
 */
import { hash } from 'node:crypto';
import { Refusal } from '#protocol/errors.ts';
import { guessed } from '#protocol/guess.ts';
import { keyringOf, type Keyring } from '#protocol/keyring.ts';
import { limits } from '#protocol/limits.ts';
import { consistencyProof, inclusionProof } from '#protocol/log.ts';
import type { Answer, Params } from '#protocol/methods.ts';
import type { SealedView } from '#protocol/methods/receipt.ts';
import { envelopeText, statementSchema, toBase64 } from '#protocol/receipts.ts';
import { z } from '#protocol/schema.ts';
import { inSync } from '#protocol/steps.ts';
import {
  verifyAsync,
  verifySync,
  type KnownCheckpoint,
  type SealedReceipt,
  type Verification,
  type VerifyPlatform,
} from '#protocol/verify.ts';
import type { CheckpointRow, ReceiptRow, Reads, VerifyRow } from '../ledger/contract.ts';
import { signaturesAside } from './aside.ts';
import type { ReceiptReader } from './contract.ts';
import { pemOf } from './keys.ts';
import { verifyEd25519 } from './signature.ts';
import { receiptSummary } from './views.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
export const nodePlatform = {
  sha256: (bytes) => hash('sha256', bytes, 'buffer'),
  verify: verifyEd25519,
  utf8: (text) => Buffer.from(text, 'utf8'),
  text: (bytes) => decoder.decode(bytes),
  base64: (bytes) => bufferOf(bytes).toString('base64'),
} satisfies VerifyPlatform & { sha256(bytes: Uint8Array): Uint8Array };

export const opensslCommand = (n: number | string): string =>
  `openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in ${String(n)}.pae -sigfile ${String(n)}.sig`;

export const sealedOf = (read: Reads, row: ReceiptRow): SealedReceipt => {
  const { conversationId, actionSha256 } = row;
  const action = actionSha256 === null ? null : read.action(actionSha256);
  const actionDeleted = action === null && conversationId !== null && read.conversation(conversationId) === null;
  return sealed({ ...row, action, actionDeleted: Number(actionDeleted), leaf: read.logNode(0, row.seq - 1) });
};

const sealed = (row: VerifyRow): SealedReceipt => {
  const { seq, receiptId, kind, at, conversationId, approvalId, value, outcome, by, actionSha256 } = row;
  return {
    payload: row.payload,
    signature: row.signature,
    keyId: row.keyId,
    action: row.action,
    actionDeleted: row.actionDeleted === 1,
    leaf: row.leaf,
    stored: { seq, receiptId, kind, at, conversationId, approvalId, value, outcome, by, actionSha256 },
  };
};

/** Receipts that others are checked with: the session's key for a decision, the decision for an outcome. Null where there is none. */
export const basisOf = (read: Reads, row: ReceiptRow): ReceiptRow[] => {
  const statement = z.safeParse(statementSchema, parsed(row.payload));
  if (!statement.success) return [];
  const { decision, outcome } = statement.data.predicate;
  const sessionReceipt =
    decision === null || decision.session === null ? null : read.meta(`receipts.session.${decision.session}`);
  const ids = [sessionReceipt, outcome === null ? null : outcome.decision.id];
  return ids.flatMap((id) => (id === null ? [] : [read.receipt(id)])).filter((basis) => basis !== null);
};

const parsed = (payload: Uint8Array): unknown => {
  try {
    return JSON.parse(Buffer.from(payload).toString('utf8'));
  } catch {
    return null; // a damaged receipt has no basis; verifying it names the damage
  }
};

/** Each row once, in the order of the chain. */
export const inOrder = (rows: readonly ReceiptRow[]): ReceiptRow[] =>
  [...new Map(rows.map((row) => [row.receiptId, row])).values()].sort((a, b) => a.seq - b.seq);

/** The rotation receipts, by which a verifier reaches keys before and after the one it is given. */
export const rotationsOf = (read: Reads): SealedReceipt[] => read.rotations().map((row) => sealedOf(read, row));

/** Every key of the installation, from the given one. */
export const keyringIn = (read: Reads, publicKeySpki: Uint8Array): Keyring =>
  inSync(keyringOf(nodePlatform, publicKeySpki, rotationsOf(read)));

const sealedAll = function* (read: Reads): Generator<SealedReceipt> {
  for (const row of read.toVerify(0)) yield sealed(row);
};

/**
 * Every receipt of the installation, as one chain, against every known checkpoint (`knownCheckpoints`, and those kept
 * elsewhere). `publicKeySpki` is given, never read from the receipts.
 */
export const verifyAll = (
  read: Reads,
  publicKeySpki: Uint8Array,
  bridgeId?: string,
  checkpoints: readonly KnownCheckpoint[] = read.checkpoints(),
): Verification => {
  const request = { publicKeySpki, scope: 'all', bridgeId, rotations: rotationsOf(read), checkpoints } as const;
  const { last: _, ...verification } = verifySync(nodePlatform, request, sealedAll(read));
  return verification;
};

/** The same answer with the signatures checked on another thread, beside the rest: half the time for thousands. */
export const verifyAllAhead = async (...given: Parameters<typeof verifyAll>): Promise<Verification> => {
  const [read, publicKeySpki, bridgeId, checkpoints = read.checkpoints()] = given;
  const request = { publicKeySpki, scope: 'all', bridgeId, rotations: rotationsOf(read), checkpoints } as const;
  const aside = signaturesAside(read.logSize());
  try {
    const { last: _, ...verification } = await guessed(nodePlatform, aside.hold, (by) =>
      verifyAsync(by, request, sealedAll(read)),
    );
    return verification;
  } finally {
    aside.end();
  }
};

const known = (read: Reads, receiptId: string): ReceiptRow => {
  const row = read.receipt(receiptId);
  if (row === null) throw new Refusal('unknown_receipt');
  return row;
};

/** What a receipt is checked with, in order, without itself: session, decision, the receipt before it. */
const before = (read: Reads, row: ReceiptRow): ReceiptRow[] => {
  const [former] = read.receipts({ beforeSeq: row.seq, limit: 1 });
  const basis = basisOf(read, row);
  return inOrder([
    ...basis.flatMap((other) => basisOf(read, other)),
    ...basis,
    ...(former === undefined ? [] : [former]),
  ]);
};

/** Where a receipt is in the newest signed log that holds it; null when none does yet. */
export const placeOf = (read: Reads, seq: number): { checkpoint: CheckpointRow; inclusion: Inclusion } | null => {
  const checkpoint = read.lastCheckpoint(read.logSize());
  if (checkpoint === null || checkpoint.size < seq) return null;
  const index = seq - 1;
  const hashes = inSync(inclusionProof(nodePlatform, index, checkpoint.size, read.logNode));
  return { checkpoint, inclusion: { index, size: checkpoint.size, hashes } };
};
type Inclusion = NonNullable<SealedReceipt['inclusion']>;

/** The known checkpoints up to `size`, each with the proof that the log of `size` continues it. */
const proven = (read: Reads, size: number): KnownCheckpoint[] =>
  read
    .checkpoints()
    .filter((row) => row.size <= size)
    .map((row) => ({ ...row, consistency: inSync(consistencyProof(nodePlatform, row.size, size, read.logNode)) }));

/** The same memory, not a copy. */
const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** As it goes over the wire; `actionUnits` is what is left for the action's text. */
const sealedView = (row: VerifyRow, actionUnits: number): SealedView => {
  const text = row.action === null ? null : bufferOf(row.action).toString('utf8');
  const fits =
    text !== null && (actionUnits === Number.POSITIVE_INFINITY || JSON.stringify(text).length <= actionUnits);
  return {
    seq: row.seq,
    envelope: envelopeText(row, nodePlatform.base64),
    action: fits ? text : null,
    actionDeleted: row.actionDeleted === 1,
  };
};
const viewOf = (read: Reads, row: ReceiptRow, actionUnits: number): SealedView => {
  const { action, actionDeleted } = sealedOf(read, row);
  return sealedView({ ...row, action, actionDeleted: Number(actionDeleted), leaf: null }, actionUnits);
};
const unitsOf = (view: SealedView): number => JSON.stringify(view).length;
/** At least the bytes of `view` in a frame: base64 is what it is, and around it stands no more than this. */
const mostBytes = ({ envelope, action }: SealedView, { keyId }: VerifyRow): number =>
  256 + envelope.length + 6 * keyId.length + (action === null ? 0 : Buffer.byteLength(JSON.stringify(action)));

const page: (read: Reads, params: Params<'receipt.page'>) => Answer<'receipt.page'> = (read, params) => {
  const limit = Math.min(Math.max(params.limit ?? limits.pageEvents, 1), limits.pageEvents);
  const receipts: SealedView[] = [];
  let bytes = 0;
  for (const row of read.toVerify(params.afterSeq)) {
    const view = sealedView(row, Number.POSITIVE_INFINITY);
    bytes += mostBytes(view, row);
    if (receipts.length > 0 && (receipts.length === limit || bytes > limits.pageBytes)) return { receipts, more: true };
    receipts.push(view);
  }
  return { receipts, more: false };
};

const proof = (
  read: Reads,
  publicKeySpki: Uint8Array,
  bridgeId: string,
  receiptId: string,
): Answer<'receipt.proof'> => {
  const row = known(read, receiptId);
  const place = placeOf(read, row.seq);
  if (place === null) throw new Refusal('read_only', { message: 'No signed checkpoint holds this receipt yet.' });
  const receipt = viewOf(read, row, Number.POSITIVE_INFINITY);
  let left = limits.pageBytes - unitsOf(receipt);
  // The same action, or one nobody asked about, is left out where the frame would not hold it.
  const basis = before(read, row).map((each) => {
    const view = viewOf(read, each, left / 2);
    left -= unitsOf(view);
    return view;
  });
  const first = [...keyringIn(read, publicKeySpki).values()].sort((a, b) => a.first - b.first)[0];
  return {
    summary: receiptSummary(row),
    receipt,
    basis,
    rotations: read.rotations().map((each) => viewOf(read, each, Number.POSITIVE_INFINITY)),
    publicKey: pemOf(first?.publicKeySpki ?? publicKeySpki),
    bridgeId,
    inclusion: { ...place.inclusion, hashes: place.inclusion.hashes.map((each) => toBase64(each)) },
    checkpoint: place.checkpoint.note,
  };
};

/** Checks one receipt with those it depends on, its place in the log, and every known checkpoint. */
const verify = (
  read: Reads,
  publicKeySpki: Uint8Array,
  bridgeId: string,
  receiptId: string,
): Answer<'receipt.verify'> => {
  const row = known(read, receiptId);
  const place = placeOf(read, row.seq);
  const { last } = verifySync(
    nodePlatform,
    {
      publicKeySpki,
      scope: 'some',
      bridgeId,
      rotations: rotationsOf(read),
      checkpoints: place === null ? [] : proven(read, place.checkpoint.size),
    },
    [
      ...before(read, row).map((each) => sealedOf(read, each)),
      { ...sealedOf(read, row), ...(place === null ? {} : { inclusion: place.inclusion }) },
    ],
  );
  const exported =
    row.conversationId === null
      ? []
      : [
          `bridge conversations receipts ${row.conversationId} --out receipts`,
          opensslCommand(`receipts/${String(row.seq)}`).replace('public.pem', 'receipts/public.pem'),
        ];
  return { ok: last.every((line) => line.ok), checks: [...last], commands: ['bridge verify --all', ...exported] };
};

/** @param publicKey SPKI of the installation's key, as it is at the time of a call */
export const createReceiptReader = (read: Reads, publicKey: () => Uint8Array, bridgeId: string): ReceiptReader => ({
  list: (params) => {
    const limit = Math.min(Math.max(params.limit ?? 200, 1), 200);
    const rows = read.receipts({
      conversationId: params.conversationId,
      beforeSeq: params.beforeSeq,
      limit: limit + 1,
    });
    return { receipts: rows.slice(0, limit).map(receiptSummary), more: rows.length > limit };
  },
  get: (receiptId) => {
    const row = known(read, receiptId);
    const { envelope, action } = viewOf(read, row, Number.POSITIVE_INFINITY);
    return { summary: receiptSummary(row), envelope, action };
  },
  page: (params) => page(read, params),
  proof: (receiptId) => proof(read, publicKey(), bridgeId, receiptId),
  verify: (receiptId) => verify(read, publicKey(), bridgeId, receiptId),
  consistency: ({ fromSize, toSize }) => {
    if (fromSize > toSize || toSize > read.logSize()) throw new Refusal('unknown_receipt');
    const hashes = inSync(consistencyProof(nodePlatform, fromSize, toSize, read.logNode));
    return { hashes: hashes.map((each) => toBase64(each)) };
  },
});
