/** One folder of a workspace as the tree lists it: pages of one frozen list, asked for where somebody looks (F-02). */
import { limits } from '#protocol/limits.ts';
import type { FileEntry } from '#protocol/methods/workspace.ts';
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';

/** A place of the list: not asked for yet, or gone since the list was made. */
type Place = FileEntry | undefined | null;

export class Folder {
  entries = $state.raw<readonly Place[]>([]);
  truncated = $state(false);
  /** Nothing is known of it yet. */
  loading = $state(true);
  failure = $state.raw<Failure | null>(null);
  #cursor: string | null = null;
  #asked = new Set<number>();
  #generation = 0;
  #app: App;
  readonly workspaceId: string;
  readonly path: string;

  constructor(app: App, workspaceId: string, path: string) {
    this.#app = app;
    this.workspaceId = workspaceId;
    this.path = path;
  }

  /** Lists anew; what is shown stays until the answer is there. */
  async reload(): Promise<void> {
    const generation = (this.#generation += 1);
    const { workspaceId, path } = this;
    const outcome = await this.#app.call('files.list', { workspaceId, path });
    if (generation !== this.#generation) return;
    this.loading = false;
    this.failure = outcome.ok ? null : outcome.failure;
    if (!outcome.ok) return;
    const { entries, total, cursor, truncated } = outcome.value;
    this.#cursor = cursor;
    this.#asked = new Set([0]);
    this.truncated = truncated;
    // What was known stays until it is looked at again: nothing flickers while something else changes.
    this.entries = placed(
      Array.from({ length: total }, (_, place) => this.entries[place]),
      0,
      entries,
    );
  }

  /** Sees to it that the places from `first` to `last` are known. */
  need(first: number, last: number): void {
    const size = limits.directoryPage;
    for (let page = Math.floor(first / size); page * size <= last && page * size < this.entries.length; page += 1)
      if (!this.#asked.has(page)) void this.#page(page);
  }

  async #page(page: number): Promise<void> {
    if (this.#cursor === null) return;
    this.#asked.add(page);
    const generation = this.#generation;
    const { workspaceId, path } = this;
    const from = page * limits.directoryPage;
    const outcome = await this.#app.call('files.list', { workspaceId, path, cursor: this.#cursor, from });
    if (generation !== this.#generation) return;
    // A listing lives five minutes on the bridge; afterwards it begins anew.
    if (!outcome.ok && outcome.failure.code === 'unknown_cursor') return this.reload();
    if (outcome.ok) this.entries = placed([...this.entries], from, outcome.value.entries);
    else this.#asked.delete(page);
  }
}

/** Entries that went since the list was made leave places behind. */
const placed = (places: Place[], from: number, entries: readonly FileEntry[]): Place[] => {
  const end = Math.min(places.length, from + limits.directoryPage);
  for (let place = from; place < end; place += 1) places[place] = entries[place - from] ?? null;
  return places;
};
