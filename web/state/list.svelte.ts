/** A list that lives on the bridge: loaded on demand, loaded again when it is told that something changed. */
import type { Failure, Outcome } from './contract.ts';

export class Listing<T> {
  #load: () => Promise<Outcome<readonly T[]>>;
  #running: Promise<void> | null = null;
  #again = false;
  #wanted = false;

  /** What was last heard; kept while a newer answer is on its way. */
  items = $state.raw<readonly T[]>([]);
  loaded = $state(false);
  failure = $state.raw<Failure | null>(null);

  constructor(load: () => Promise<Outcome<readonly T[]>>) {
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

  /** Shows `items` from somewhere else, such as the offline copy, until the bridge answers. */
  seed(items: readonly T[]): void {
    if (!this.loaded) this.items = items;
  }

  /** Forgets what was heard: the session behind it was revoked. */
  clear(): void {
    this.items = [];
    this.loaded = false;
    this.failure = null;
  }

  async #run(): Promise<void> {
    do {
      this.#again = false;
      const answer = await this.#load();
      if (answer.ok) {
        this.items = answer.value;
        this.loaded = true;
        this.failure = null;
      } else this.failure = answer.failure;
    } while (this.#again);
  }
}
