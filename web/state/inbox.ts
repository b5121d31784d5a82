/** What waits, in order and by filter. Pure; used by the inbox and by the list of what was decided. */
import type { ActionKind, ApprovalFacts } from '#protocol/events.ts';
import type { ApprovalView } from '#protocol/methods/approval.ts';

export const riskLevels = ['stop', 'warn', 'note', 'none'] as const;
export type RiskLevel = (typeof riskLevels)[number];

/** The gravest of the risk notes; what cannot be inspected is never less than a warning. */
export const riskOf = (facts: Pick<ApprovalFacts, 'risks' | 'uninspectable'>): RiskLevel => {
  const levels = new Set<RiskLevel>(facts.risks.map((risk) => risk.level));
  if (facts.uninspectable) levels.add('warn');
  return riskLevels.find((level) => levels.has(level)) ?? 'none';
};

/** Empty: any. */
export interface InboxFilter {
  readonly kind: ActionKind | '';
  readonly agentId: string;
  readonly workspaceId: string;
  readonly risk: RiskLevel | '';
}
export const noFilter: InboxFilter = { kind: '', agentId: '', workspaceId: '', risk: '' };
export const isFiltered = (filter: InboxFilter): boolean => Object.values(filter).some((value) => value !== '');

export const passes = (approval: ApprovalView, filter: InboxFilter): boolean =>
  (filter.kind === '' || approval.kind === filter.kind) &&
  (filter.agentId === '' || approval.agentId === filter.agentId) &&
  (filter.workspaceId === '' || approval.workspaceId === filter.workspaceId) &&
  (filter.risk === '' || riskOf(approval.facts) === filter.risk);

/** Who waited longest comes first; ids settle what was asked in the same millisecond, so that rows keep their places. */
export const oldestFirst = (approvals: readonly ApprovalView[]): readonly ApprovalView[] =>
  [...approvals].sort((a, b) => a.requestedAt - b.requestedAt || (a.approvalId < b.approvalId ? -1 : 1));

/** Names to choose from, each once, by value. */
export const choices = <T>(items: readonly T[], of: (item: T) => readonly [value: string, name: string]) =>
  [...new Map(items.map(of))].sort(([, a], [, b]) => a.localeCompare(b));
