/** A list that lives on the bridge: loaded on demand, loaded again when it is told that something changed. */
import type { Failure, Outcome } from './contract.ts';

export interface Listed<T> {
  readonly items: readonly T[];
  /** Older ones are on the bridge. */
  readonly more: boolean;
}

/** The first `pages` pages as one list; `ask` is given the last of what came before. */
export const inPages = async <T>(
  pages: number,
  ask: (last: T | undefined) => Promise<Outcome<Listed<T>>>,
): Promise<Outcome<Listed<T>>> => {
  const items: T[] = [];
  for (let page = 1; ; page += 1) {
    const answer = await ask(items.at(-1));
    if (!answer.ok) return answer;
    items.push(...answer.value.items);
    const more = answer.value.more && answer.value.items.length > 0;
    if (!more || page >= pages) return { ok: true, value: { items, more } };
  }
};

export class Listing<T> {
  #load: (pages: number) => Promise<Outcome<Listed<T>>>;
  #pages = 1;
  #running: Promise<void> | null = null;
  #again = false;
  #wanted = false;

  /** What was last heard; kept while a newer answer is on its way. */
  items = $state.raw<readonly T[]>([]);
  loaded = $state(false);
  /** Older ones can be asked for. */
  more = $state(false);
  failure = $state.raw<Failure | null>(null);

  constructor(load: (pages: number) => Promise<Outcome<Listed<T>>>) {
    this.#load = load;
  }

  /** Loads now. Calls that come while one is under way share a single one after it. */
  reload(): Promise<void> {
    this.#wanted = true;
    if (this.#running !== null) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Loads again only what some view has asked for before. */
  invalidate(): void {
    if (this.#wanted) void this.reload();
  }

  /** For a view that shows this list: loads it the first time. */
  want(): void {
    if (!this.#wanted) void this.reload();
  }

  /** Loads one page more. */
  older(): Promise<void> {
    this.#pages += 1;
    return this.reload();
  }

  /** Shows `items` from somewhere else, such as the offline copy, until the bridge answers. */
  seed(items: readonly T[]): void {
    if (!this.loaded) this.items = items;
  }

  /** Forgets what was heard: the session behind it was revoked. */
  clear(): void {
    this.items = [];
    this.loaded = false;
    this.more = false;
    this.#pages = 1;
    this.failure = null;
  }

  async #run(): Promise<void> {
    do {
      this.#again = false;
      const answer = await this.#load(this.#pages);
      if (answer.ok) {
        this.items = answer.value.items;
        this.more = answer.value.more;
        this.loaded = true;
        this.failure = null;
      } else this.failure = answer.failure;
    } while (this.#again);
  }
}
