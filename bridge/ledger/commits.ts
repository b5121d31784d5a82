/**
 * Group commit: works share a transaction (≤ 5 ms or 64), each in a savepoint of its own. The order is the rule:
 * transaction, then memory and feed, then the promise; nothing is acknowledged that a crash could take back.
 * A write that fails for the storage's sake ends all writing (L-24). Owned by ledger.ts.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { StorageFailure } from './blobs.ts';
import type { Tx } from './contract.ts';
import type { Work } from './tx.ts';

interface Pending {
  readonly work: (tx: Tx) => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}
type Outcome = { readonly value: unknown } | { readonly error: unknown };

export interface CommitHooks {
  /** Inside every transaction, before its works; returns the effect that follows COMMIT. */
  readonly begun: () => () => void;
  /** One work was undone. */
  readonly rolledBack: (work: Work) => void;
  /** Writing has ended, and why. */
  readonly failed: (error: unknown) => void;
  /** Something after a COMMIT went wrong; the COMMIT stands. */
  readonly effectFailed: (error: unknown) => void;
}

/** SQLite: READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB. */
const storageErrors = new Set([8, 10, 11, 13, 14, 26]);
const isStorageFailure = (error: unknown): boolean => {
  if (error instanceof StorageFailure) return true;
  const errcode = error instanceof Error && 'errcode' in error ? error.errcode : null;
  return typeof errcode === 'number' && storageErrors.has(errcode & 0xff);
};

export class Commits {
  readonly #db: DatabaseSync;
  readonly #hooks: CommitHooks;
  readonly #mark: StatementSync;
  readonly #keep: StatementSync;
  #tx: Tx | null = null;
  #queue: Pending[] = [];
  #work: Work | null = null;
  #timeout: NodeJS.Timeout | null = null;
  #immediate: NodeJS.Immediate | null = null;
  #draftsDue = false;
  #committedAt = -Infinity;
  #readOnly = false;

  constructor(db: DatabaseSync, hooks: CommitHooks) {
    this.#db = db;
    this.#hooks = hooks;
    this.#mark = db.prepare('SAVEPOINT work');
    this.#keep = db.prepare('RELEASE work');
  }

  use(tx: Tx): void {
    this.#tx = tx;
  }

  get readOnly(): boolean {
    return this.#readOnly;
  }

  /** The running work. @throws when a `tx` is used outside of one */
  readonly current = (): Work => {
    if (this.#work === null) throw new Error('a transaction is only open inside its work');
    return this.#work;
  };

  commit<T>(work: (tx: Tx) => T): Promise<T> {
    if (this.#readOnly) return Promise.reject(new Refusal('read_only'));
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as Pending['resolve'], reject });
      this.#schedule();
    });
  }

  /** Drafts have waited long enough: commit even when nothing else asks. */
  saveDrafts(): void {
    if (this.#readOnly) return;
    this.#draftsDue = true;
    this.#schedule();
  }

  /** Runs everything queued, now. */
  settle(): void {
    if (this.#work !== null) throw new Error('a work cannot wait for other works');
    while (this.#queue.length > 0 || this.#draftsDue) this.#flush();
  }

  /** The error as a caller may see it; a failure of the storage ends all writing. */
  judge(error: unknown): unknown {
    if (!isStorageFailure(error)) return error;
    this.fail(error);
    return new Refusal('read_only', { cause: error });
  }

  /** Ends all writing; nothing that was acknowledged is touched. */
  fail(error: unknown): void {
    if (this.#readOnly) return;
    this.#readOnly = true;
    this.#hooks.failed(error);
    for (const pending of this.#queue.splice(0)) pending.reject(new Refusal('read_only', { cause: error }));
  }

  /** The ledger closes: nothing more is taken. */
  end(): void {
    this.settle();
    this.#readOnly = true;
  }

  #schedule(): void {
    if (this.#immediate !== null) return;
    const waitMs =
      this.#queue.length >= limits.commitWorks ? 0 : this.#committedAt + limits.commitDelayMs - performance.now();
    if (waitMs <= 0) {
      // The first work after a pause goes at once; those that follow closely share the next commit.
      this.#immediate = setImmediate(() => this.#flush());
      return;
    }
    this.#timeout ??= setTimeout(() => this.#flush(), Math.min(limits.commitDelayMs, waitMs));
  }

  #unschedule(): void {
    if (this.#timeout !== null) clearTimeout(this.#timeout);
    if (this.#immediate !== null) clearImmediate(this.#immediate);
    this.#timeout = null;
    this.#immediate = null;
  }

  #flush(): void {
    this.#unschedule();
    this.#draftsDue = false;
    const batch = this.#queue.splice(0, limits.commitWorks);
    const done = this.#readOnly ? null : this.#transact(batch);
    if (done === null) {
      for (const pending of batch) pending.reject(new Refusal('read_only'));
      return;
    }
    this.#committedAt = performance.now();
    for (const effect of done.effects) this.#run(effect);
    batch.forEach((pending, index) => {
      const outcome = done.outcomes[index];
      if (outcome !== undefined && 'value' in outcome) pending.resolve(outcome.value as never);
      else pending.reject(outcome?.error);
    });
    if (this.#queue.length > 0) this.#schedule();
  }

  /** What is committed stays acknowledged, whatever its effect meets (a blob file that cannot be removed). */
  #run(effect: () => void): void {
    try {
      effect();
    } catch (error) {
      this.#hooks.effectFailed(error);
    }
  }

  /** Null when the storage failed; then nothing of the batch happened. */
  #transact(batch: readonly Pending[]): { outcomes: Outcome[]; effects: (() => void)[] } | null {
    const ended = new Set<string>();
    try {
      this.#db.exec('BEGIN IMMEDIATE');
      const effects = [this.#hooks.begun()];
      const outcomes = batch.map((pending) => this.#savepoint(pending.work, ended, effects));
      this.#db.exec('COMMIT');
      return { outcomes, effects };
    } catch (error) {
      this.#work = null;
      // SQLite may have rolled back by itself. What cannot even be rolled back is undone by the next start.
      if (this.#db.isTransaction) this.#rollback();
      this.fail(error);
      return null;
    }
  }

  #rollback(): void {
    try {
      this.#db.exec('ROLLBACK');
    } catch (error) {
      this.#hooks.effectFailed(error);
    }
  }

  #savepoint(run: (tx: Tx) => unknown, ended: Set<string>, effects: (() => void)[]): Outcome {
    const work: Work = { effects: [], ended: new Set(ended), written: [] };
    this.#mark.run();
    this.#work = work;
    try {
      if (this.#tx === null) throw new Error('no transaction is set');
      const value = run(this.#tx);
      if (value instanceof Promise) throw new Error('a work must not wait for anything');
      this.#work = null;
      this.#keep.run();
      for (const conversationId of work.ended) ended.add(conversationId);
      effects.push(...work.effects);
      return { value };
    } catch (error) {
      this.#work = null;
      if (isStorageFailure(error) || !this.#db.isTransaction) throw error;
      this.#db.exec('ROLLBACK TO work; RELEASE work');
      this.#hooks.rolledBack(work);
      return { error };
    }
  }
}
