/** What git says of the files of a workspace, for the letters beside their names. Never waited for. */
import type { ChangeEntry, GitStatus } from '#protocol/methods/git.ts';
import type { App } from './app.svelte.ts';

export type MarkState = ChangeEntry['state'];
/** At most so often: a status reads the whole tree. */
const restMs = 1500;

export class Marks {
  #files = $state.raw<ReadonlyMap<string, MarkState>>(new Map());
  readonly #folders = $derived.by(() => {
    const folders = new Set<string>();
    for (const path of this.#files.keys())
      for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) folders.add(path.slice(0, at));
    return folders;
  });
  #app: App;
  #workspaceId: string;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #askedAt = -Infinity;

  constructor(app: App, workspaceId: string) {
    this.#app = app;
    this.#workspaceId = workspaceId;
  }

  of(path: string | null): MarkState | null {
    if (path === null) return null;
    return this.#files.get(path) ?? this.#files.get(`${path}/`) ?? null;
  }
  /** Something below it changed. */
  within(path: string | null): boolean {
    return path !== null && this.#folders.has(path);
  }

  refresh(): void {
    if (this.#timer !== null || !this.#app.can('git')) return;
    const wait = Math.max(0, this.#askedAt + restMs - performance.now());
    this.#timer = setTimeout(() => void this.#ask(), wait);
  }
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #ask(): Promise<void> {
    const outcome = await this.#app.call('git.status', { workspaceId: this.#workspaceId });
    this.#askedAt = performance.now();
    this.#timer = null;
    // No repository, or one that cannot be read: there is nothing to mark, and the Changes panel says why.
    this.#files = outcome.ok ? statesOf(outcome.value) : new Map();
  }
}

const statesOf = ({ staged, unstaged }: GitStatus): ReadonlyMap<string, MarkState> =>
  new Map([...staged, ...unstaged].flatMap(({ path, state }) => (path === null ? [] : [[path, state] as const])));
