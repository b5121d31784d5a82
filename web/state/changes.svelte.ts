/** What changed in a workspace, as the Changes panel lists it: of the folder, a turn, a commit, or between checkpoints. */
import type { ChangeSource, CheckpointInfo, CommitInfo, GitStatus } from '#protocol/methods/git.ts';
import type { Answer } from '#protocol/methods.ts';
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';

type Listed = Answer<'git.changes'>;
const pageOfCommits = 30;

export class Changes {
  /** Of the folder against the repository; null until asked for, or where there is none. */
  status = $state.raw<GitStatus | null>(null);
  statusFailure = $state.raw<Failure | null>(null);
  /** Of every source but what is not committed. */
  listed = $state.raw<Listed | null>(null);
  listFailure = $state.raw<Failure | null>(null);
  /** Words of the commit that is looked at. */
  commit = $state.raw<{ readonly info: CommitInfo; readonly message: string } | null>(null);
  loading = $state(false);
  checkpoints = $state.raw<readonly CheckpointInfo[]>([]);
  /** Why no checkpoints are made; null where they are. */
  absent = $state<string | null>(null);
  commits = $state.raw<readonly CommitInfo[]>([]);
  moreCommits = $state(true);
  commitsFailure = $state.raw<Failure | null>(null);
  /** Rises with every list that came: what is open looks whether it is still as it was. */
  generation = $state(0);
  #app: App;
  #asked = 0;
  #statusAsked = false;
  readonly workspaceId: string;
  readonly conversationId: string | null;

  constructor(app: App, workspaceId: string, conversationId: string | null) {
    this.#app = app;
    this.workspaceId = workspaceId;
    this.conversationId = conversationId;
  }

  /** Asks anew. What was shown stays until the answer is in; `fresh` drops it, as it is of another source. */
  async load(of: ChangeSource | null, fresh: boolean): Promise<void> {
    const asked = (this.#asked += 1);
    if (fresh) {
      this.listed = null;
      this.listFailure = null;
      this.commit = null;
    }
    this.loading = true;
    const isFolder = of === null || of.kind === 'staged' || of.kind === 'unstaged';
    // The branch stands in the head whatever is listed; only what is not committed has to wait for it.
    const status = isFolder || !this.#statusAsked ? this.#loadStatus(asked) : null;
    if (isFolder) await status;
    else await this.#loadList(of, asked);
    if (asked !== this.#asked) return;
    this.loading = false;
    this.generation += 1;
  }

  async loadCheckpoints(): Promise<void> {
    if (this.conversationId === null) return;
    const outcome = await this.#app.call('checkpoint.list', { conversationId: this.conversationId });
    this.checkpoints = outcome.ok ? outcome.value.checkpoints : [];
    this.absent = outcome.ok ? outcome.value.absent : outcome.failure.message;
  }

  /** The next page of commits, newest first; `again` from the first. */
  async loadCommits(again: boolean): Promise<void> {
    const skip = again ? 0 : this.commits.length;
    const outcome = await this.#app.call('git.log', { workspaceId: this.workspaceId, skip, limit: pageOfCommits });
    this.commitsFailure = outcome.ok ? null : outcome.failure;
    if (!outcome.ok) return;
    this.commits = again ? outcome.value.commits : [...this.commits, ...outcome.value.commits];
    this.moreCommits = outcome.value.more;
  }

  async #loadStatus(asked: number): Promise<void> {
    this.#statusAsked = true;
    const outcome = await this.#app.call('git.status', { workspaceId: this.workspaceId });
    if (asked !== this.#asked) return;
    this.statusFailure = outcome.ok ? null : outcome.failure;
    this.status = outcome.ok ? outcome.value : null;
  }

  async #loadList(of: ChangeSource, asked: number): Promise<void> {
    const { workspaceId } = this;
    const shown = of.kind === 'commit' ? await this.#app.call('git.show', { workspaceId, commit: of.commit }) : null;
    const outcome = shown ?? (await this.#app.call('git.changes', { workspaceId, of }));
    if (asked !== this.#asked) return;
    this.listFailure = outcome.ok ? null : outcome.failure;
    this.listed = outcome.ok ? outcome.value : null;
    this.commit = shown?.ok === true ? shown.value : null;
  }
}
