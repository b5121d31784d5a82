/** receipt.*, log.*: the signed record, what stands around each receipt in the log, and verifying it elsewhere. */
import { outcomes, receiptKinds } from '../events.ts';
import { limits } from '../limits.ts';
import { count, list, name, text, time, uuid, z } from '../schema.ts';
import type { Method } from './method.ts';

export const receiptSummary = z.strictObject({
  receiptId: uuid,
  seq: count,
  kind: z.enum(receiptKinds),
  conversationId: z.nullable(name(64)),
  approvalId: z.nullable(uuid),
  at: time,
  /** "Allowed: write src/date.ts", by the bridge. */
  sentence: text(500),
  value: z.nullable(z.enum(['allow', 'deny'])),
  outcome: z.nullable(z.enum(outcomes)),
  by: z.nullable(text(40)),
});
export type ReceiptSummary = z.infer<typeof receiptSummary>;

/** One line of a verification: what was checked and what came of it. */
export const verifyCheck = z.strictObject({ check: text(64), ok: z.boolean(), sentence: text(500) });
export const verifyProblem = z.strictObject({
  receiptId: z.nullable(text(100)),
  seq: z.nullable(count),
  check: text(64),
  sentence: text(500),
});
export type VerifyProblem = z.infer<typeof verifyProblem>;

/** A receipt as bytes: what a verifier needs of it. */
export const sealedView = z.strictObject({
  seq: count,
  /** The DSSE envelope, exactly as stored. */
  envelope: text(limits.eventBytes),
  /** Canonical action bytes as text; null after the conversation was deleted. */
  action: z.nullable(text(limits.actionBytes)),
  actionDeleted: z.boolean(),
});
export type SealedView = z.infer<typeof sealedView>;

/** base64 of 32 bytes. */
const hash = text(44);

export const receiptMethods = {
  /** Signs the log as it is now, and keeps the checkpoint among those later ones must agree with. */
  'log.checkpoint': {
    params: z.strictObject({
      /** That the checkpoint over `size` receipts was written elsewhere: it is kept under that place, too. */
      anchored: z.optional(z.strictObject({ size: count, place: name(200) })),
    }),
    /** C2SP signed note; `size` receipts under it. */
    result: z.strictObject({ size: count, root: hash, checkpoint: text(limits.checkpointUnits) }),
    capability: 'receipt.read',
    mutates: false,
    errors: [],
  },
  /** RFC 6962 consistency proof: that the first `fromSize` receipts are still the first of `toSize`. */
  'log.consistency': {
    params: z.strictObject({ fromSize: count, toSize: count }),
    result: z.strictObject({ hashes: list(hash, 64) }),
    capability: 'receipt.read',
    mutates: false,
    errors: ['unknown_receipt'],
  },
  'receipt.get': {
    params: z.strictObject({ receiptId: uuid }),
    result: z.strictObject({
      summary: receiptSummary,
      /** The DSSE envelope, exactly as stored. */
      envelope: text(limits.eventBytes),
      /** Canonical action bytes as text; null after the conversation was deleted. */
      action: z.nullable(text(limits.actionBytes)),
    }),
    capability: 'receipt.read',
    mutates: false,
    errors: ['unknown_receipt'],
  },
  'receipt.list': {
    params: z.strictObject({
      conversationId: z.optional(name(64)),
      beforeSeq: z.optional(count),
      limit: z.optional(count),
    }),
    result: z.strictObject({ receipts: list(receiptSummary, 200), more: z.boolean() }),
    capability: 'receipt.read',
    mutates: false,
    errors: [],
  },
  /** Receipts in order, as many as fit a page, for verifying the whole log elsewhere. */
  'receipt.page': {
    params: z.strictObject({ afterSeq: count, limit: z.optional(count) }),
    result: z.strictObject({ receipts: list(sealedView, 500), more: z.boolean() }),
    capability: 'receipt.read',
    mutates: false,
    errors: [],
  },
  /** One receipt with everything that is needed to check it without the bridge. */
  'receipt.proof': {
    params: z.strictObject({ receiptId: uuid }),
    result: z.strictObject({
      summary: receiptSummary,
      receipt: sealedView,
      /** In order: the session's key receipt, the decision an outcome follows from, the receipt before it. */
      basis: list(sealedView, 8),
      /** Key rotation receipts up to now, in order. */
      rotations: list(sealedView, 100),
      /** SPKI, PEM: of the first key of this installation. Pin it; do not trust it because it came along. */
      publicKey: text(500),
      bridgeId: uuid,
      inclusion: z.strictObject({ index: count, size: count, hashes: list(hash, 64) }),
      checkpoint: text(limits.checkpointUnits),
    }),
    capability: 'receipt.read',
    mutates: false,
    errors: ['unknown_receipt'],
  },
  /** A new signing key, signed by the former one. The operator at a terminal only. */
  'receipt.rotate': {
    params: z.strictObject({}),
    result: z.strictObject({ keyId: text(100), receiptId: uuid }),
    capability: 'receipt.read',
    mutates: true,
    errors: [],
  },
  'receipt.verify': {
    params: z.strictObject({ receiptId: uuid }),
    result: z.strictObject({ ok: z.boolean(), checks: list(verifyCheck, 32), commands: list(text(1000), 8) }),
    capability: 'receipt.read',
    mutates: false,
    errors: ['unknown_receipt'],
  },
} as const satisfies Record<string, Method>;
