/** What was decided, with the receipts that say so and what came of it: joined by the exact id of the approval. */
import type { ActionKind, Outcome as Effect } from '#protocol/events.ts';
import type { ApprovalState, ApprovalView } from '#protocol/methods/approval.ts';
import type { ReceiptSummary } from '#protocol/methods/receipt.ts';
import type { App } from './app.svelte.ts';
import type { Outcome } from './contract.ts';
import { Listing, type Listed } from './list.svelte.ts';

export type DecidedState = Exclude<ApprovalState['state'], 'pending'>;
export type DecidedBy = 'operator' | 'rule' | 'cli';
/** Empty: any. */
export interface DecisionFilter {
  readonly state: DecidedState | '';
  readonly by: DecidedBy | '';
  readonly agentId: string;
  readonly kind: ActionKind | '';
  /** Not older than this, ms; 0 is any time. */
  readonly withinMs: number;
  readonly text: string;
}
export const anyDecision: DecisionFilter = { state: '', by: '', agentId: '', kind: '', withinMs: 0, text: '' };

export const byOf = ({ status }: ApprovalView): DecidedBy | null => ('by' in status ? status.by : null);
export const decidedAt = ({ status, requestedAt }: ApprovalView): number => ('at' in status ? status.at : requestedAt);

const wordsOf = (one: ApprovalView): string =>
  [
    one.facts.headline,
    one.facts.commandText ?? '',
    ...(one.facts.argv ?? []),
    ...one.facts.paths.map((each) => each.path),
    one.conversationTitle,
    one.agentTitle,
    one.workspacePath,
    ...('note' in one.status ? [one.status.note ?? ''] : []),
    ...('rule' in one.status ? [one.status.rule ?? ''] : []),
  ]
    .join('\n')
    .toLowerCase();

export const isFound = (one: ApprovalView, filter: DecisionFilter, now: number): boolean =>
  (filter.state === '' || one.status.state === filter.state) &&
  (filter.by === '' || byOf(one) === filter.by) &&
  (filter.agentId === '' || one.agentId === filter.agentId) &&
  (filter.kind === '' || one.kind === filter.kind) &&
  (filter.withinMs === 0 || now - decidedAt(one) <= filter.withinMs) &&
  filter.text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => wordsOf(one).includes(word));

export const outcomeOf = (receipts: readonly ReceiptSummary[]): Effect | null =>
  receipts.find((receipt) => receipt.kind === 'outcome')?.outcome ?? null;

const pageReceipts = 200;
/** Receipts looked through for one list of decisions; beyond it older rows name their own receipt alone. */
const maxPages = 50;

export class Decisions {
  #app: Pick<App, 'call'>;
  #since = Infinity;
  readonly #receipts = new Listing<ReceiptSummary>(() => this.#load());

  constructor(app: Pick<App, 'call'>) {
    this.#app = app;
  }

  readonly #byApproval = $derived.by(() =>
    Map.groupBy(this.#receipts.items, (receipt: ReceiptSummary) => receipt.approvalId),
  );

  /** Oldest first; empty until they are loaded. */
  receiptsOf(approvalId: string): readonly ReceiptSummary[] {
    return this.#byApproval.get(approvalId) ?? [];
  }
  get loaded(): boolean {
    return this.#receipts.loaded;
  }

  /** Loads the receipts of these, newest page first, back to when the oldest of them was asked. */
  cover(approvals: readonly ApprovalView[]): void {
    if (approvals.length === 0) return;
    this.#since = Math.min(...approvals.map((one) => one.requestedAt));
    void this.#receipts.reload();
  }

  async #load(): Promise<Outcome<Listed<ReceiptSummary>>> {
    const items: ReceiptSummary[] = [];
    for (let page = 0; page < maxPages; page += 1) {
      const last = items.at(-1);
      const answer = await this.#app.call('receipt.list', {
        limit: pageReceipts,
        ...(last === undefined ? {} : { beforeSeq: last.seq }),
      });
      if (!answer.ok) return answer;
      items.push(...answer.value.receipts);
      const oldest = answer.value.receipts.at(-1);
      if (oldest === undefined || !answer.value.more || oldest.at < this.#since) break;
    }
    return { ok: true, value: { items: items.reverse(), more: false } };
  }
}
