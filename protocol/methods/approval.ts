/** approval.*, policy.*, receipt.*: decisions, remembered rules, and the signed record of both. */
import {
  actionKinds,
  approvalFacts,
  approvalOption,
  containments,
  enforcements,
  outcomes,
  receiptKinds,
  ruleOffer,
  withdrawReasons,
} from '../events.ts';
import { limits } from '../limits.ts';
import { base64url, count, list, name, sha256, text, time, uuid, z } from '../schema.ts';
import type { Method } from './method.ts';

export const approvalState = z.discriminatedUnion('state', [
  z.strictObject({ state: z.literal('pending') }),
  z.strictObject({
    state: z.enum(['allowed', 'denied']),
    by: z.enum(['operator', 'rule', 'cli']),
    at: time,
    receiptId: uuid,
    rule: z.optional(text(1000)),
    note: z.optional(text(limits.noteUnits)),
  }),
  z.strictObject({ state: z.literal('withdrawn'), at: time, reason: z.enum(withdrawReasons) }),
  z.strictObject({ state: z.literal('expired'), at: time, receiptId: z.optional(uuid) }),
]);
export type ApprovalState = z.infer<typeof approvalState>;

export const approvalView = z.strictObject({
  approvalId: uuid,
  conversationId: name(64),
  conversationTitle: text(limits.titleUnits),
  workspaceId: uuid,
  workspacePath: text(limits.pathBytes),
  turnId: z.optional(uuid),
  toolCallId: z.optional(name(128)),
  agentId: text(100),
  agentTitle: text(200),
  kind: z.enum(actionKinds),
  digest: sha256,
  actionBytes: count,
  facts: approvalFacts,
  words: z.strictObject({ title: z.optional(text(2000)), description: z.optional(text(16_000)) }),
  options: list(approvalOption, 50),
  rule: z.nullable(ruleOffer),
  enforcement: z.enum(enforcements),
  containment: z.enum(containments),
  requestedAt: time,
  expiresAt: time,
  /** Seq of its approval.requested event, for a link. */
  seq: count,
  status: approvalState,
});
export type ApprovalView = z.infer<typeof approvalView>;

export const ruleView = z.strictObject({
  ruleId: uuid,
  effect: z.enum(['allow', 'reject']),
  kind: z.enum(actionKinds),
  agentId: text(100),
  workspaceId: uuid,
  workspacePath: text(limits.pathBytes),
  match: sha256,
  sentence: text(1000),
  createdAt: time,
  hits: count,
  lastHitAt: z.nullable(time),
  enabled: z.boolean(),
});
export type RuleView = z.infer<typeof ruleView>;

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

export const approvalMethods = {
  'approval.decide': {
    params: z.strictObject({
      approvalId: uuid,
      /** Of the action as displayed; another digest is refused (principle 3). */
      digest: sha256,
      optionId: text(500),
      value: z.enum(['allow', 'deny']),
      note: z.optional(text(limits.noteUnits)),
      /** Save the offered exact rule along with an allow, or a reject of the same with a deny. */
      remember: z.optional(z.boolean()),
      /** Signature by the page key over `decisionProofText`; absent on the private socket. */
      proof: z.optional(z.strictObject({ keyId: text(100), sig: base64url(128) })),
      /** CLI without a tty: `--yes` was given, written in the receipt. */
      yes: z.optional(z.boolean()),
    }),
    result: z.strictObject({ receiptId: uuid, receiptSeq: count }),
    capability: 'approval.decide',
    mutates: true,
    errors: [
      'unknown_approval',
      'approval_already_decided',
      'approval_expired',
      'approval_withdrawn',
      'digest_mismatch',
      'decision_not_offered',
      'invalid_proof',
      'stale_policy',
    ],
  },
  'approval.get': {
    params: z.strictObject({ approvalId: uuid }),
    result: approvalView,
    capability: 'approval.read',
    mutates: false,
    errors: ['unknown_approval'],
  },
  'approval.list': {
    params: z.strictObject({
      state: z.enum(['pending', 'decided', 'all']),
      conversationId: z.optional(name(64)),
      before: z.optional(time),
      limit: z.optional(count),
    }),
    result: z.strictObject({ approvals: list(approvalView, 100), more: z.boolean() }),
    capability: 'approval.read',
    mutates: false,
    errors: [],
  },
  /** Removes a rule, or turns it off and on; a policy receipt each time. */
  'policy.forget': {
    params: z.strictObject({ ruleId: uuid, change: z.enum(['remove', 'disable', 'enable']) }),
    result: z.strictObject({ receiptId: uuid }),
    capability: 'policy',
    mutates: true,
    errors: ['unknown_rule'],
  },
  'policy.get': {
    params: z.strictObject({}),
    result: z.strictObject({ generation: count, digest: sha256, rules: list(ruleView, limits.rules) }),
    capability: 'policy',
    mutates: false,
    errors: [],
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
  'receipt.verify': {
    params: z.strictObject({ receiptId: uuid }),
    result: z.strictObject({ ok: z.boolean(), checks: list(verifyCheck, 32), commands: list(text(1000), 8) }),
    capability: 'receipt.read',
    mutates: false,
    errors: ['unknown_receipt'],
  },
} as const satisfies Record<string, Method>;

/** What the page key signs to decide. `noteSha256` is of the note's UTF-8, of the empty string without one. */
export const decisionProofPrefix = 'countersign/decision/v1\n';
export interface DecisionProof {
  readonly approval: string;
  readonly digest: string;
  readonly option: string;
  readonly value: 'allow' | 'deny';
  readonly noteSha256: string;
}
