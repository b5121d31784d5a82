/** One folder of a workspace as the dock lists it: a page at a time (F-02). */
import type { FileEntry } from '#protocol/methods/workspace.ts';
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';

export class Folder {
  entries = $state.raw<readonly FileEntry[]>([]);
  total = $state(0);
  truncated = $state(false);
  loading = $state(true);
  failure = $state.raw<Failure | null>(null);
  #cursor = $state<string | null>(null);
  #app: App;
  readonly workspaceId: string;
  readonly path: string;

  constructor(app: App, workspaceId: string, path: string) {
    this.#app = app;
    this.workspaceId = workspaceId;
    this.path = path;
    void this.more();
  }

  get left(): number {
    return this.#cursor === null ? 0 : this.total - this.entries.length;
  }

  async more(): Promise<void> {
    this.loading = true;
    const { workspaceId, path } = this;
    const outcome = await this.#app.call('files.list', {
      workspaceId,
      path,
      ...(this.#cursor === null ? {} : { cursor: this.#cursor }),
    });
    this.loading = false;
    // A listing lives five minutes on the bridge; afterwards it begins anew.
    if (!outcome.ok && outcome.failure.code === 'unknown_cursor') {
      this.#cursor = null;
      this.entries = [];
      return this.more();
    }
    this.failure = outcome.ok ? null : outcome.failure;
    if (!outcome.ok) return;
    this.entries = [...this.entries, ...outcome.value.entries];
    this.#cursor = outcome.value.cursor;
    this.total = outcome.value.total;
    this.truncated = outcome.value.truncated;
  }
}
