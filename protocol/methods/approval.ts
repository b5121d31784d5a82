/** approval.*: what waits for a decision, and deciding it. */
import {
  actionKinds,
  approvalFacts,
  approvalOption,
  containments,
  enforcements,
  ruleOffer,
  withdrawReasons,
} from '../events.ts';
import { limits } from '../limits.ts';
import { base64url, count, list, name, sha256, text, time, uuid, z } from '../schema.ts';
import { ruleDraft } from '../policy.ts';
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
  because: z.optional(text(1000)),
  enforcement: z.enum(enforcements),
  containment: z.enum(containments),
  requestedAt: time,
  expiresAt: time,
  /** Seq of its approval.requested event, for a link. */
  seq: count,
  status: approvalState,
});
export type ApprovalView = z.infer<typeof approvalView>;

export const approvalMethods = {
  'approval.decide': {
    params: z.strictObject({
      approvalId: uuid,
      /** Of the action as displayed; another digest is refused (principle 3). */
      digest: sha256,
      optionId: text(500),
      value: z.enum(['allow', 'deny']),
      note: z.optional(text(limits.noteUnits)),
      /** Save the first offered scope along with an allow, or a reject of the same with a deny. */
      remember: z.optional(z.boolean()),
      /** With `remember`: another scope than the offered first one. It must match this very request. */
      rule: z.optional(ruleDraft),
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
      'not_trusted',
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
      /** With `before`: id of the last approval of the page before, since several may share a millisecond. */
      beforeId: z.optional(uuid),
      limit: z.optional(count),
    }),
    result: z.strictObject({ approvals: list(approvalView, 100), more: z.boolean() }),
    capability: 'approval.read',
    mutates: false,
    errors: [],
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
