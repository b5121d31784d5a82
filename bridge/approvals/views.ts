/** What a client sees of approvals, rules and receipts: stored rows joined with the titles and paths people know. */
import type { EventData } from '#protocol/events.ts';
import type { ApprovalState, ApprovalView } from '#protocol/methods/approval.ts';
import type { ReceiptSummary } from '#protocol/methods/receipt.ts';
import type { RuleDraft, RuleView } from '#protocol/policy.ts';
import type { ApprovalRecord, Reads, ReceiptRow, RuleRow } from '../ledger/contract.ts';

const statusOf = (record: ApprovalRecord): ApprovalState => {
  const at = record.decidedAt ?? record.requestedAt;
  if (record.state === 'pending') return { state: 'pending' };
  if (record.state === 'withdrawn') return { state: 'withdrawn', at, reason: record.reason ?? 'agent' };
  if (record.state === 'expired')
    return { state: 'expired', at, ...(record.receiptId === null ? {} : { receiptId: record.receiptId }) };
  return {
    state: record.state,
    at,
    by: record.by ?? 'operator',
    receiptId: record.receiptId ?? '',
    ...(record.rule === null ? {} : { rule: record.rule }),
    ...(record.note === null ? {} : { note: record.note }),
  };
};

export const approvalView = (read: Reads, record: ApprovalRecord): ApprovalView => {
  const request = JSON.parse(record.request) as EventData<'approval.requested'>;
  const conversation = read.conversation(record.conversationId);
  const { facts, words, options, rule, because, enforcement, containment, actionBytes } = request;
  return {
    approvalId: record.approvalId,
    conversationId: record.conversationId,
    conversationTitle: conversation?.title ?? '',
    workspaceId: conversation?.workspaceId ?? '',
    workspacePath: conversation?.workspacePath ?? '',
    agentId: conversation?.agentId ?? '',
    agentTitle: conversation?.agentTitle ?? '',
    kind: record.kind,
    digest: record.digest,
    actionBytes,
    facts,
    words,
    options,
    rule,
    enforcement,
    containment,
    requestedAt: record.requestedAt,
    expiresAt: record.expiresAt,
    seq: record.requestedSeq,
    status: statusOf(record),
    ...(because === undefined ? {} : { because }),
    ...(record.turnId === null ? {} : { turnId: record.turnId }),
    ...(record.toolCallId === null ? {} : { toolCallId: record.toolCallId }),
  };
};

export const ruleViews = (read: Reads, rows: readonly RuleRow[], draftOf: (row: RuleRow) => RuleDraft): RuleView[] => {
  const paths = new Map(read.workspaces().map((workspace) => [workspace.workspaceId, workspace.path]));
  return rows.map((row) => {
    const draft = draftOf(row);
    const { ruleId, source, enabled, sentence, createdAt, hits, lastHitAt } = row;
    const uses = draft.uses === null ? null : Math.max(draft.uses - row.used, 0);
    const workspacePath = draft.workspaceId === null ? '' : (paths.get(draft.workspaceId) ?? '');
    return { ...draft, uses, ruleId, source, enabled, sentence, workspacePath, createdAt, hits, lastHitAt };
  });
};

export const receiptSummary = (row: ReceiptRow): ReceiptSummary => ({
  receiptId: row.receiptId,
  seq: row.seq,
  kind: row.kind,
  conversationId: row.conversationId,
  approvalId: row.approvalId,
  at: row.at,
  sentence: row.sentence,
  value: row.value,
  outcome: row.outcome,
  by: row.by,
});
