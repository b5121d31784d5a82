/**
 * Putting files back (F-23), or bringing them back from a worktree (W-03): what would be done, which of it is chosen, what
 * came of it. What is sent is the digest of the
 * plan that is on the screen; where the folder moved meanwhile, nothing is written and the new plan is shown.
 */
import type { Answer } from '#protocol/methods.ts';
import type { PlannedWrite, WritePlan } from '#protocol/methods/git.ts';
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';

type Done = Answer<'checkpoint.restore'>;

/** What a person sees of a plan; two that look alike are the same to them. */
const seen = (writes: readonly PlannedWrite[]): string =>
  JSON.stringify(writes.map(({ id, what, bytes, movedOn, refused }) => [id, what, bytes, movedOn, refused]));

export class Restore {
  plan = $state.raw<WritePlan | null>(null);
  chosen = $state.raw<ReadonlySet<string>>(new Set());
  failure = $state.raw<Failure | null>(null);
  working = $state(false);
  /** The plan on the screen is a new one: the folder moved after the former was shown. */
  moved = $state(false);
  done = $state.raw<Done | null>(null);
  undone = $state(false);
  readonly #app: App;
  readonly #conversationId: string;
  #checkpointId: string;

  /** The conversation whose worktree it is brought from; null once it is undone, or where a checkpoint is put back. */
  #from: string | null;

  /** `conversationId` is the one whose folder is written into. */
  constructor(app: App, conversationId: string, source: { checkpointId: string } | { from: string }) {
    this.#app = app;
    this.#from = 'from' in source ? source.from : null;
    this.#conversationId = conversationId;
    this.#checkpointId = 'from' in source ? '' : source.checkpointId;
  }

  readonly possible = $derived(this.plan?.writes.filter(({ refused }) => refused === null) ?? []);

  async look(): Promise<void> {
    this.failure = null;
    const { plan, failure } = await this.#plan();
    this.failure = failure;
    if (plan === null) return;
    this.plan = plan;
    // What someone changed since is theirs: it goes only when they say so.
    this.chosen = new Set(this.possible.filter(({ movedOn }) => movedOn === null).map(({ id }) => id));
  }

  async #plan(ids?: string[]): Promise<{ plan: WritePlan | null; failure: Failure | null }> {
    const part = ids === undefined ? {} : { ids };
    const where = { conversationId: this.#conversationId, checkpointId: this.#checkpointId, ...part };
    const outcome = await (this.#from === null
      ? this.#app.call('checkpoint.plan', where)
      : this.#app.call('worktree.plan', { conversationId: this.#from, ...part }));
    return outcome.ok ? { plan: outcome.value, failure: null } : { plan: null, failure: outcome.failure };
  }

  toggle(id: string): void {
    const next = new Set(this.chosen);
    if (!next.delete(id)) next.add(id);
    this.chosen = next;
  }
  chooseAll(all: boolean): void {
    this.chosen = new Set(all ? this.possible.map(({ id }) => id) : []);
  }

  /** Does what is chosen. */
  async put(): Promise<void> {
    const { plan } = this;
    if (plan === null || this.working || this.chosen.size === 0) return;
    this.working = true;
    this.failure = null;
    this.moved = false;
    await this.#put(plan);
    this.working = false;
  }

  async #put(shown: WritePlan): Promise<void> {
    const isWhole = this.chosen.size === shown.writes.length;
    const ids = isWhole ? undefined : shown.writes.filter(({ id }) => this.chosen.has(id)).map(({ id }) => id);
    let { digest } = shown;
    if (ids !== undefined) {
      const part = await this.#plan(ids);
      if (part.plan === null) return this.#failed(part.failure);
      const wanted = shown.writes.filter(({ id }) => this.chosen.has(id));
      if (seen(part.plan.writes) !== seen(wanted)) return this.#stale();
      digest = part.plan.digest;
    }
    const chosen = { digest, ...(ids === undefined ? {} : { ids }) };
    const where = { conversationId: this.#conversationId, checkpointId: this.#checkpointId, ...chosen };
    const outcome = await (this.#from === null
      ? this.#app.call('checkpoint.restore', where)
      : this.#app.call('worktree.bring', { conversationId: this.#from, ...chosen }));
    if (outcome.ok) this.done = outcome.value;
    else if (outcome.failure.code === 'digest_mismatch') await this.#stale();
    else if (outcome.failure.code === 'worktree_moved') await this.#stale(outcome.failure);
    else this.#failed(outcome.failure);
  }

  #failed(failure: Failure | null): void {
    this.failure = failure;
  }
  async #stale(failure: Failure | null = null): Promise<void> {
    await this.look();
    this.moved = true;
    this.failure ??= failure;
  }

  /** Takes back what was just done; where someone changed a file meanwhile, it is shown and asked first. */
  async undo(): Promise<void> {
    const undoCheckpointId = this.done?.undoCheckpointId ?? null;
    if (undoCheckpointId === null || this.working) return;
    this.working = true;
    this.#checkpointId = undoCheckpointId;
    this.#from = null;
    this.done = null;
    await this.look();
    const isAsTheyWereLeft = this.possible.length > 0 && this.chosen.size === this.plan?.writes.length;
    if (this.plan !== null && isAsTheyWereLeft) {
      await this.#put(this.plan);
      this.undone = this.done !== null;
    }
    this.working = false;
  }
}
