/**
 * What one transaction writes when an approval is made, resolved or followed by an outcome: its row, its event and its
 * receipt together. The rule not to break: no state changes here without its event, and none is allowed or denied
 * without its receipt. Called by the desk inside `ledger.commit`; nothing here waits or notifies.
 */
import type { Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import type { EventData, Outcome, RuleOffer, WithdrawReason } from '#protocol/events.ts';
import type { RuleDraft } from '#protocol/policy.ts';
import type { ReceiptPredicate } from '#protocol/receipts.ts';
import type { ReceiptRow, Tx } from '../ledger/contract.ts';
import type { ApprovalRequest, Desk } from './contract.ts';
import { covers } from './policy/matching.ts';
import type { PolicyRequest } from './policy/request.ts';
import { generation, rulesDigest, saveRule, signRuleChange } from './policy/rules.ts';
import { ruleSentence, type RuleNames } from './policy/sentences.ts';
import type { DeskSeal } from './seal.ts';

type Decision = NonNullable<ReceiptPredicate['decision']>;

/** An approval as it was made; the same for as long as it waits. */
export interface Card {
  readonly approvalId: string;
  readonly request: ApprovalRequest;
  readonly digest: string;
  readonly actionBytes: number;
  readonly requestedAt: number;
  readonly expiresAt: number;
  readonly rule: RuleOffer | null;
  /** What the rules look at; trust and pause as they were when it was asked. */
  readonly policy: PolicyRequest;
}

/** A decision about to be signed: who, what, and by which rule. */
export interface Ruling {
  readonly value: 'allow' | 'deny';
  readonly optionId: string;
  readonly by: Decision['by'];
  readonly session: string | null;
  readonly proof: Decision['proof'];
  /** For the receipt: a rule's id, `cli --allow all`, `expired`. */
  readonly rule: string | null;
  /** For people: the rule's id, and why. */
  readonly ruleSentence?: string | undefined;
  readonly policyOutcome: 'allow' | 'reject' | 'ask';
  readonly note?: string | undefined;
  readonly remember: boolean;
  /** The rule to save instead of the first one offered. */
  readonly rememberAs?: RuleDraft | undefined;
}
export const ruleBase = { by: 'rule', session: null, proof: { by: 'rule' }, remember: false } as const;

/** Allowed decisions without an outcome, as a JSON list: what a restart must call uncertain. */
const unfinishedName = 'approvals.unfinished';
const unfinished = (tx: Pick<Tx, 'meta'>): string[] => JSON.parse(tx.meta(unfinishedName) ?? '[]') as string[];

const outcomeWords = {
  ok: 'Done',
  failed: 'Failed',
  cancelled: 'Cancelled',
  uncertain: 'Not known whether it happened',
} as const;
const sentenceOf = (word: string, headline: string): string =>
  `${word}: ${headline.charAt(0).toLowerCase()}${headline.slice(1)}`;
const turnOf = (turnId: string | null): { turnId?: string } => (turnId === null ? {} : { turnId });

/** The names a request brings along: its agent and workspace. */
export const requestNames = ({ agent, workspace }: ApprovalRequest): RuleNames => ({
  agent: (agentId) => (agentId === agent.id ? agent.name : null),
  workspace: (workspaceId) => (workspaceId === workspace.id ? workspace.path : null),
});

const appended = <T>(event: T | null): T => {
  if (event === null) throw new Refusal('internal_error', { cause: new Error('an approval event was dropped') });
  return event;
};

const appendReceipt = (tx: Tx, row: ReceiptRow, turnId: string | null): void => {
  if (row.conversationId === null) return;
  const data: EventData<'receipt'> = {
    receiptId: row.receiptId,
    receiptSeq: row.seq,
    kind: row.kind,
    sentence: row.sentence,
    ...(row.approvalId === null ? {} : { approvalId: row.approvalId }),
    ...(row.outcome === null ? {} : { outcome: row.outcome }),
  };
  appended(tx.append(row.conversationId, { type: 'receipt', data, ...turnOf(turnId) }));
};

/** `because`: why it is asked or decided, by the bridge. */
export const putRequested = (tx: Tx, card: Card, action: Uint8Array, because: string): void => {
  const { request, approvalId, digest, actionBytes, rule, requestedAt, expiresAt } = card;
  const { conversationId, turnId, toolCallId, kind, facts, words } = request;
  const { enforcement, containment } = request.agent;
  const told = toolCallId === null ? {} : { toolCallId };
  const data: EventData<'approval.requested'> = {
    approvalId,
    kind,
    digest,
    actionBytes,
    facts,
    words,
    options: [...request.options],
    rule,
    because,
    expiresAt,
    enforcement,
    containment,
    ...told,
  };
  const event = appended(tx.append(conversationId, { type: 'approval.requested', data, ...turnOf(turnId) }));
  tx.putAction(digest, action, conversationId);
  tx.putApproval({
    approvalId,
    conversationId,
    turnId,
    toolCallId,
    kind,
    digest,
    state: 'pending',
    requestedAt,
    requestedSeq: event.seq,
    expiresAt,
    decidedAt: null,
    receiptId: null,
    reason: null,
    by: null,
    rule: null,
    note: null,
    outcome: null,
    request: JSON.stringify(event.data), // as stored: large texts are blobs by now
  });
};

/** The rule of an "always": the offered first scope, or the one that was chosen. It must be about this very request. */
const remember = (tx: Tx, seal: DeskSeal, card: Card, ruling: Ruling, actor: Actor | null, now: number): void => {
  const { request } = card;
  const chosen = ruling.rememberAs ?? card.rule?.scopes[0]?.draft;
  if (chosen === undefined)
    throw new Refusal('decision_not_offered', { message: 'No rule can be saved for this action.' });
  const draft: RuleDraft = { ...chosen, effect: ruling.value === 'allow' ? 'allow' : 'reject' };
  if (!covers(draft, card.policy))
    throw new Refusal('decision_not_offered', { message: 'This rule would not be about this action.' });
  const names = requestNames(request);
  const exact = { kind: request.kind, headline: request.facts.headline };
  try {
    const row = saveRule(tx, draft, 'remembered', ruleSentence(draft, names, exact), now);
    appendReceipt(tx, signRuleChange(tx, seal, actor, 'saved', [row], request.conversationId), request.turnId);
  } catch (error) {
    if (error instanceof Refusal && error.code === 'invalid_rule')
      throw new Refusal('decision_not_offered', { message: error.message });
    throw error;
  }
};

const signRuling = (tx: Tx, seal: DeskSeal, card: Card, ruling: Ruling, word: string): ReceiptRow => {
  const { approvalId, request, requestedAt, digest, actionBytes, expiresAt } = card;
  const { value, optionId, by, session, remember: remembered, proof, rule, policyOutcome, note } = ruling;
  return seal.decision(tx, {
    approvalId,
    request,
    requestedAt,
    digest,
    actionBytes,
    note,
    policy: { version: generation(tx), digest: rulesDigest(tx), rule, outcome: policyOutcome },
    decision: { value, option: optionId, by, session, remembered, expiresAt, proof },
    sentence: sentenceOf(word, request.facts.headline),
  });
};

/** A decision: state, event, receipt, and the remembered rule with its own. Null where another was first; then undo it all. */
export const putDecision = (
  tx: Tx,
  seal: DeskSeal,
  card: Card,
  ruling: Ruling,
  actor: Actor | null,
): ReceiptRow | null => {
  const { approvalId, digest, request } = card;
  const { value, optionId, by, note } = ruling;
  const rule = ruling.ruleSentence ?? ruling.rule;
  const row = signRuling(tx, seal, card, ruling, value === 'allow' ? 'Allowed' : 'Denied');
  const state = value === 'allow' ? 'allowed' : 'denied';
  const change = { state, decidedAt: row.at, receiptId: row.receiptId, by, rule, note: note ?? null } as const;
  if (!tx.resolveApproval(approvalId, change)) return null;
  const data: EventData<'approval.decided'> = {
    approvalId,
    digest,
    value,
    optionId,
    by,
    receiptId: row.receiptId,
    ...(rule === null ? {} : { rule }),
    ...(note === undefined ? {} : { note }),
    ...(ruling.remember ? { remembered: true } : {}),
  };
  appended(tx.append(request.conversationId, { type: 'approval.decided', data, ...turnOf(request.turnId) }));
  appendReceipt(tx, row, request.turnId);
  if (ruling.remember) remember(tx, seal, card, ruling, actor, row.at);
  if (value === 'allow') tx.setMeta(unfinishedName, JSON.stringify([...unfinished(tx), approvalId]));
  return row;
};

/** Time ran out: a signed denial. False where it was resolved before. */
export const putExpiry = (tx: Tx, seal: DeskSeal, card: Card, denyOption: string): boolean => {
  const { approvalId, request } = card;
  if (tx.approval(approvalId)?.state !== 'pending') return false;
  const row = signRuling(
    tx,
    seal,
    card,
    { ...ruleBase, value: 'deny', optionId: denyOption, rule: 'expired', policyOutcome: 'ask' },
    'Expired',
  );
  tx.resolveApproval(approvalId, { state: 'expired', decidedAt: row.at, receiptId: row.receiptId, by: 'rule' });
  const data = { approvalId, receiptId: row.receiptId };
  appended(tx.append(request.conversationId, { type: 'approval.expired', data, ...turnOf(request.turnId) }));
  appendReceipt(tx, row, request.turnId);
  return true;
};

/** False where it was resolved before. */
export const putWithdrawal = (
  tx: Tx,
  what: { readonly approvalId: string; readonly conversationId: string; readonly turnId: string | null },
  reason: WithdrawReason,
  now: number,
): boolean => {
  const { approvalId, conversationId, turnId } = what;
  if (!tx.resolveApproval(approvalId, { state: 'withdrawn', decidedAt: now, reason })) return false;
  appended(tx.append(conversationId, { type: 'approval.withdrawn', data: { approvalId, reason }, ...turnOf(turnId) }));
  return true;
};

/** What came of an allowed action, once. False where there is nothing to say it of, or it was said. */
export const putOutcome = (
  tx: Tx,
  seal: DeskSeal,
  approvalId: string,
  outcome: Outcome,
  result: Parameters<Desk['outcome']>[2],
): boolean => {
  const record = tx.approval(approvalId);
  if (record === null || record.state !== 'allowed' || record.outcome !== null || record.receiptId === null)
    return false;
  const decision = tx.receipt(record.receiptId);
  if (decision === null) throw new Refusal('integrity_error');
  const { startedAt, endedAt, resultSha256 = null } = result;
  const said = `${outcomeWords[outcome]}: ${decision.sentence.replace(/^Allowed: /, '')}`;
  const sentence = result.sentence === undefined ? said : `${said} (${result.sentence})`;
  const row = seal.outcome(tx, { decision, outcome, resultSha256, startedAt, endedAt, sentence });
  tx.setApprovalOutcome(approvalId, outcome);
  tx.setMeta(unfinishedName, JSON.stringify(unfinished(tx).filter((id) => id !== approvalId)));
  appendReceipt(tx, row, record.turnId);
  return true;
};

/** At boot: whatever waited is withdrawn, whatever was allowed and not finished is uncertain. */
export const recoverApprovals = (tx: Tx, seal: DeskSeal, now: number): void => {
  for (
    let pending = tx.approvals({ state: 'pending', limit: 100 });
    pending.length > 0;
    pending = tx.approvals({ state: 'pending', limit: 100 })
  ) {
    for (const record of pending) putWithdrawal(tx, record, 'bridge_restarted', now);
  }
  for (const approvalId of unfinished(tx)) {
    putOutcome(tx, seal, approvalId, 'uncertain', {
      startedAt: tx.approval(approvalId)?.decidedAt ?? now,
      endedAt: now,
    });
  }
  tx.setMeta(unfinishedName, '[]');
};
