/** Files found by letters of their names (F-06), the newest question only. */
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';

export interface NameMatch {
  readonly path: string;
  readonly type: 'file' | 'directory';
}
const settleMs = 90;
const most = 100;

export class Names {
  matches = $state.raw<readonly NameMatch[]>([]);
  truncated = $state(false);
  searching = $state(false);
  failure = $state.raw<Failure | null>(null);
  /** Place in `matches` the keyboard is at. */
  at = $state(0);
  #app: App;
  #workspaceId: string;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking: AbortController | null = null;

  constructor(app: App, workspaceId: string) {
    this.#app = app;
    this.#workspaceId = workspaceId;
  }

  find(query: string): void {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.searching = query.trim() !== '';
    if (this.searching) this.#timer = setTimeout(() => void this.#ask(query), settleMs);
    else this.matches = [];
  }

  move(step: number): void {
    this.at = Math.min(this.matches.length - 1, Math.max(0, this.at + step));
  }

  async #ask(query: string): Promise<void> {
    const asking = new AbortController();
    this.#asking = asking;
    const params = { workspaceId: this.#workspaceId, query, limit: most };
    const outcome = await this.#app.call('files.search', params, { signal: asking.signal });
    if (asking.signal.aborted) return;
    this.searching = false;
    this.at = 0;
    this.failure = outcome.ok ? null : outcome.failure;
    this.matches = outcome.ok ? outcome.value.matches : [];
    this.truncated = outcome.ok && outcome.value.truncated;
  }
}

/** Which letters of a path a query means: a run in the name where there is one, else the first that fit. */
export const lettersOf = (path: string, query: string): ReadonlySet<number> => {
  const text = path.toLowerCase();
  const wanted = query.toLowerCase().replaceAll(/\s+/g, '');
  const run = text.indexOf(wanted, text.lastIndexOf('/') + 1);
  if (run !== -1) return new Set(Array.from(wanted, (_, at) => run + at));
  const found = new Set<number>();
  let at = 0;
  for (const letter of wanted) {
    at = text.indexOf(letter, at);
    if (at === -1) break;
    found.add(at);
    at += letter.length;
  }
  return found;
};
