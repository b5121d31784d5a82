/** The trust review of one workspace, as the bridge last told it. Made by the views that show it; one for each workspace. */
import type { TrustState } from '#protocol/methods/trust.ts';
import type { App } from './app.svelte.ts';
import type { Failure, Outcome } from './contract.ts';

export class WorkspaceTrust {
  readonly workspaceId: string;
  state = $state.raw<TrustState | null>(null);
  failure = $state.raw<Failure | null>(null);
  /** A review, acceptance or withdrawal that was asked for here is under way. */
  working = $state(false);
  readonly #app: App;

  constructor(app: App, workspaceId: string) {
    this.#app = app;
    this.workspaceId = workspaceId;
  }

  /** Asks the bridge; called again whenever trust may have changed. */
  async load(): Promise<void> {
    if (!this.#app.can('trust')) return;
    this.#take(await this.#app.call('trust.get', { workspaceId: this.workspaceId }));
  }

  review(): Promise<boolean> {
    return this.#work(() => this.#app.call('trust.review', { workspaceId: this.workspaceId }));
  }

  /** For exactly what is shown: its fingerprint goes along. */
  accept(note: string): Promise<boolean> {
    const fingerprint = this.state?.fingerprint ?? null;
    if (fingerprint === null) return Promise.resolve(false);
    const said = note.trim();
    return this.#work(() =>
      this.#app.call('trust.accept', {
        workspaceId: this.workspaceId,
        fingerprint,
        ...(said === '' ? {} : { note: said }),
      }),
    );
  }

  withdraw(): Promise<boolean> {
    return this.#work(() => this.#app.call('trust.withdraw', { workspaceId: this.workspaceId }));
  }

  async #work(ask: () => Promise<Outcome<TrustState>>): Promise<boolean> {
    this.working = true;
    const outcome = await ask();
    this.working = false;
    this.#take(outcome);
    // What was accepted is not what is there: show what is, beside the reason.
    if (!outcome.ok && outcome.failure.code === 'digest_mismatch') {
      const now = await this.#app.call('trust.get', { workspaceId: this.workspaceId });
      if (now.ok) this.state = now.value;
    }
    return outcome.ok;
  }

  #take(outcome: Outcome<TrustState>): void {
    this.failure = outcome.ok ? null : outcome.failure;
    if (outcome.ok) this.state = outcome.value;
  }
}
