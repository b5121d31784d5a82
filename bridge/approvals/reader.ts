/**
 * Receipts read back: listed, shown as envelopes, and verified against the installation's own key.
 * Works on any `Reads`, also of a database opened read-only by the CLI. Signs and writes nothing.
 */
import { createHash } from 'node:crypto';
import { Refusal } from '#protocol/errors.ts';
import { envelopeText, statementSchema } from '#protocol/receipts.ts';
import { z } from '#protocol/schema.ts';
import { verifySync, type SealedReceipt, type Verification, type VerifyPlatform } from '#protocol/verify.ts';
import type { ReceiptRow, Reads } from '../ledger/contract.ts';
import type { ReceiptReader } from './contract.ts';
import { verifyEd25519 } from './keys.ts';
import { receiptSummary } from './views.ts';

export const nodePlatform: VerifyPlatform = {
  sha256: (bytes) => createHash('sha256').update(bytes).digest('hex'),
  verify: verifyEd25519,
  utf8: (text) => Buffer.from(text, 'utf8'),
  text: (bytes) => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
};

export const opensslCommand = (n: number | string): string =>
  `openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in ${String(n)}.pae -sigfile ${String(n)}.sig`;

export const sealedOf = (read: Reads, row: ReceiptRow): SealedReceipt => {
  const { seq, receiptId, kind, at, conversationId, approvalId, value, outcome, by, actionSha256 } = row;
  const action = actionSha256 === null ? null : read.action(actionSha256);
  return {
    payload: row.payload,
    signature: row.signature,
    keyId: row.keyId,
    action,
    actionDeleted: action === null && conversationId !== null && read.conversation(conversationId) === null,
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

const sealedAll = function* (read: Reads): Generator<SealedReceipt> {
  for (const row of read.allReceipts()) yield sealedOf(read, row);
};

/** Every receipt of the installation, as one chain. `publicKeySpki` is given, never read from the receipts. */
export const verifyAll = (read: Reads, publicKeySpki: Uint8Array, bridgeId?: string): Verification => {
  const { last: _, ...verification } = verifySync(
    nodePlatform,
    { publicKeySpki, scope: 'all', bridgeId },
    sealedAll(read),
  );
  return verification;
};

const known = (read: Reads, receiptId: string): ReceiptRow => {
  const row = read.receipt(receiptId);
  if (row === null) throw new Refusal('unknown_receipt');
  return row;
};

export const createReceiptReader = (
  read: Reads,
  key: { readonly publicKeySpki: Uint8Array },
  bridgeId?: string,
): ReceiptReader => ({
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
    const action = row.actionSha256 === null ? null : read.action(row.actionSha256);
    return {
      summary: receiptSummary(row),
      envelope: envelopeText(row),
      action: action === null ? null : Buffer.from(action).toString('utf8'),
    };
  },
  verify: (receiptId) => {
    const row = known(read, receiptId);
    const [before] = read.receipts({ beforeSeq: row.seq, limit: 1 });
    const basis = basisOf(read, row);
    const rows = inOrder([
      ...basis.flatMap((other) => basisOf(read, other)),
      ...basis,
      ...(before === undefined ? [] : [before]),
      row,
    ]);
    const { last } = verifySync(
      nodePlatform,
      { publicKeySpki: key.publicKeySpki, scope: 'some', bridgeId },
      rows.map((each) => sealedOf(read, each)),
    );
    const receipts =
      row.conversationId === null
        ? []
        : [
            `bridge conversations receipts ${row.conversationId} --out receipts`,
            opensslCommand(`receipts/${String(row.seq)}`).replace('public.pem', 'receipts/public.pem'),
          ];
    return { ok: last.every((line) => line.ok), checks: last, commands: ['bridge verify --all', ...receipts] };
  },
});
