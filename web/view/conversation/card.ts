/** What a card is given; the same in a conversation and in the inbox. */
import type { EventData, Outcome as Effect } from '#protocol/events.ts';
import type { ApprovalState } from '#protocol/methods/approval.ts';
import type { RuleDraft } from '#protocol/policy.ts';
import type { ReceiptRef } from '#protocol/view.ts';
import type { Outcome } from '#lib/state/contract.ts';

export type CardApproval = Pick<
  EventData<'approval.requested'>,
  | 'approvalId'
  | 'digest'
  | 'kind'
  | 'facts'
  | 'words'
  | 'options'
  | 'rule'
  | 'because'
  | 'enforcement'
  | 'containment'
  | 'expiresAt'
  | 'actionBytes'
>;
export interface CardAnswer {
  readonly value: 'allow' | 'deny';
  readonly optionId: string;
  readonly note?: string;
  readonly remember?: boolean;
  /** The rule as it was shown. */
  readonly rule?: RuleDraft;
}
/** Resolves with the bridge's own answer, never before. */
export type Decide = (answer: CardAnswer) => Promise<Outcome<{ receiptId: string }>>;
export type { ApprovalState, Effect, ReceiptRef };
