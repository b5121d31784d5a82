/** A signed log as the bridge hands it out, from the record in tests/approvals/history.ts: proofs, pages, checkpoints. */
import {
  append,
  checkpointText,
  consistencyProof,
  inclusionProof,
  leafBody,
  leafHash,
  noteOf,
  rootOf,
} from '#protocol/log.ts';
import type { SealedView } from '#protocol/methods/receipt.ts';
import { envelopeText, receiptOrigin, toBase64 } from '#protocol/receipts.ts';
import { inSync } from '#protocol/steps.ts';
import type { ReceiptKey } from '../../bridge/approvals/keys.ts';
import { nodePlatform } from '../../bridge/approvals/reader.ts';
import { receiptSummary } from '../../bridge/approvals/views.ts';
import type { LogPage, ReceiptProof } from '../../web/workers/verify-contract.ts';
import { bridgeId, installationKey, signed, signedBy, usual, type Draft } from '../approvals/history.ts';

export interface Log {
  readonly size: number;
  /** The log as it was when it held `size` receipts, signed. */
  checkpoint(size?: number): string;
  consistency(from: number, to?: number): string[];
  proof(seq: number, size?: number): ReceiptProof;
  page(afterSeq: number): Promise<LogPage>;
  view(seq: number): SealedView;
}

/** `pageSize` small, so that several pages are asked for. */
export const logOf = (drafts: readonly Draft[] = usual(), key: ReceiptKey = installationKey, pageSize = 3): Log => {
  const rows = signed(drafts, { key });
  const origin = receiptOrigin(bridgeId);
  const nodes = new Map<string, Uint8Array>();
  const node = (level: number, index: number): Uint8Array | null => nodes.get(`${level}/${index}`) ?? null;
  for (const [index, row] of rows.entries()) {
    const body = leafBody(nodePlatform.sha256(row.payload), row.signature, key.publicKeySpki);
    const leaf = inSync(leafHash(nodePlatform, nodePlatform.utf8(body)));
    inSync(append(nodePlatform, index, leaf, node)).forEach((hash, level) =>
      nodes.set(`${level}/${Math.floor(index / 2 ** level)}`, hash),
    );
  }
  const view = (seq: number): SealedView => {
    const [row, draft] = [rows[seq - 1], drafts[seq - 1]];
    if (row === undefined || draft === undefined) throw new RangeError(`no receipt ${seq}`);
    return { seq, envelope: envelopeText(row), action: Buffer.from(draft.action).toString(), actionDeleted: false };
  };
  const checkpoint = (size = rows.length): string => {
    const text = checkpointText(origin, size, inSync(rootOf(nodePlatform, size, node)));
    const signature = signedBy(key.privateKey, nodePlatform.utf8(text));
    return inSync(noteOf(nodePlatform, text, origin, signature, key.publicKeySpki));
  };
  return {
    size: rows.length,
    checkpoint,
    consistency: (from, to = rows.length) =>
      inSync(consistencyProof(nodePlatform, from, to, node)).map((hash) => toBase64(hash)),
    view,
    proof: (seq, size = rows.length) => {
      const row = rows[seq - 1];
      if (row === undefined) throw new RangeError(`no receipt ${seq}`);
      const hashes = inSync(inclusionProof(nodePlatform, seq - 1, size, node)).map((hash) => toBase64(hash));
      return {
        summary: receiptSummary(row),
        receipt: view(seq),
        // The session's key, and the one before it.
        basis: [2, seq - 1].filter((one, index, all) => one > 0 && one < seq && all.indexOf(one) === index).map(view),
        rotations: [],
        publicKey: key.publicKeyPem,
        bridgeId,
        inclusion: { index: seq - 1, size, hashes },
        checkpoint: checkpoint(size),
      };
    },
    page: (afterSeq) => {
      const receipts = rows.slice(afterSeq, afterSeq + pageSize).map((row) => view(row.seq));
      return Promise.resolve({ receipts, more: afterSeq + pageSize < rows.length });
    },
  };
};
