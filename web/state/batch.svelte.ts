/**
 * One press for several cards: each is decided by a request of its own, bound to its own digest and signed by itself, one
 * after the other, and each has its own line of what came of it. What was not seen whole is not allowed along.
 */
import type { ApprovalView } from '#protocol/methods/approval.ts';
import type { Outcome } from './contract.ts';
import type { Shown } from './triage.svelte.ts';

export type BatchValue = 'allow' | 'deny';
export interface BatchHooks {
  /** This very action still waits. */
  isWaiting(one: Shown): boolean;
  isSeen(one: Shown): boolean;
  /** The option that means `value` for one time, or null when none was offered. */
  optionFor(approval: ApprovalView, value: BatchValue): string | null;
  decide(
    shown: { approvalId: string; digest: string },
    answer: { value: BatchValue; optionId: string },
  ): Promise<Outcome<{ receiptId: string }>>;
}
export interface BatchLine {
  readonly approval: ApprovalView;
  /** `left`: it went or changed before it was sent. `stopped`: not sent, on request. */
  readonly state: 'waiting' | 'sending' | 'done' | 'refused' | 'left' | 'stopped';
  /** Why it was refused, in plain words. */
  readonly message: string;
  readonly receiptId: string | null;
}
export type LookReason = 'unseen' | 'noOption';

export class Batch {
  readonly value: BatchValue;
  /** Null until it was confirmed. */
  lines = $state.raw<readonly BatchLine[] | null>(null);
  running = $state(false);
  #asked: readonly ApprovalView[];
  #hooks: BatchHooks;
  #stopped = false;

  constructor(value: BatchValue, selected: readonly ApprovalView[], hooks: BatchHooks) {
    this.value = value;
    this.#asked = selected;
    this.#hooks = hooks;
  }

  readonly #waiting = $derived.by(() => this.#asked.filter((one) => this.#hooks.isWaiting(one)));
  /** What would be decided now. */
  readonly take = $derived.by(() => this.#waiting.filter((one) => this.#whyNot(one) === null));
  /** Left out until a person looks at them. */
  readonly look = $derived.by(() =>
    this.#waiting.flatMap((approval) => {
      const why = this.#whyNot(approval);
      return why === null ? [] : [{ approval, why }];
    }),
  );
  /** Selected ones that were answered, withdrawn or changed since. */
  readonly gone = $derived.by(() => this.#asked.length - this.#waiting.length);

  /** Decides what `take` holds at this moment. Resolves when each has its line. */
  async run(): Promise<void> {
    const approvals = this.take;
    if (this.lines !== null || approvals.length === 0) return;
    this.lines = approvals.map((approval) => ({ approval, state: 'waiting', message: '', receiptId: null }));
    this.running = true;
    for (const [index, approval] of approvals.entries()) {
      if (this.#stopped) this.#line(index, { state: 'stopped' });
      else await this.#one(index, approval);
    }
    this.running = false;
  }

  /** Sends no further ones; those sent stay decided. */
  stop(): void {
    this.#stopped = true;
  }

  async #one(index: number, approval: ApprovalView): Promise<void> {
    const { approvalId, digest } = approval;
    const optionId = this.#hooks.optionFor(approval, this.value);
    if (optionId === null || !this.#hooks.isWaiting(approval)) return this.#line(index, { state: 'left' });
    this.#line(index, { state: 'sending' });
    const answered = await this.#hooks.decide({ approvalId, digest }, { value: this.value, optionId });
    if (answered.ok) this.#line(index, { state: 'done', receiptId: answered.value.receiptId });
    else this.#line(index, { state: 'refused', message: answered.failure.message });
  }

  #line(index: number, change: Partial<BatchLine>): void {
    this.lines = (this.lines ?? []).map((line, at) => (at === index ? { ...line, ...change } : line));
  }

  #whyNot(approval: ApprovalView): LookReason | null {
    if (this.#hooks.optionFor(approval, this.value) === null) return 'noOption';
    return this.value === 'allow' && !this.#hooks.isSeen(approval) ? 'unseen' : null;
  }
}
