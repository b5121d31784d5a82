/**
 * Clears away the events and search words of deleted conversations, a slice per commit with a pause between, so that
 * deleting 60 MB holds nobody up. What a stop interrupts goes on at the next start. Owned by ledger.ts.
 */
import { setTimeout } from 'node:timers/promises';
import { limits } from '#protocol/limits.ts';
import type { Commits } from './commits.ts';
import { metaNames } from './schema.ts';
import type { Statements } from './statements.ts';

const { merging } = metaNames;

export class Sweep {
  readonly #sql: Statements;
  readonly #commits: Commits;
  readonly #failed: (error: unknown) => void;
  #isRunning = false;
  #isStopped = false;

  constructor(sql: Statements, commits: Commits, failed: (error: unknown) => void) {
    this.#sql = sql;
    this.#commits = commits;
    this.#failed = failed;
  }

  /** Goes on until nothing is left; does nothing when nothing is, or when it runs already. */
  start(): void {
    if (this.#isRunning || this.#isStopped) return;
    this.#isRunning = true;
    this.#run()
      .catch(this.#failed)
      .finally(() => (this.#isRunning = false));
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #run(): Promise<void> {
    while (this.#hasWork()) {
      await setTimeout(limits.sweepPauseMs, undefined, { ref: false });
      if (this.#isStopped || this.#commits.readOnly) return;
      await this.#commits.commit(() => this.#slice());
    }
  }

  #hasWork(): boolean {
    if (this.#isStopped) return false;
    return (
      this.#sql.get('SELECT 1 FROM deletion UNION ALL SELECT 1 FROM meta WHERE name = ? LIMIT 1', merging) !== null
    );
  }

  #slice(): void {
    const deleted = this.#sql.get<{ stream: string }>('SELECT stream FROM deletion LIMIT 1');
    if (deleted === null) return this.#mergeSlice();
    if (this.#eventSlice(deleted.stream) > 0) return;
    this.#sql.run('DELETE FROM deletion WHERE stream = ?', deleted.stream);
    this.#sql.run('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)', merging, 'begin');
  }

  /** @returns how many events went */
  #eventSlice(stream: string): number {
    const rows = this.#sql.all<{ place: number; bytes: number }>(
      'SELECT place, bytes FROM event WHERE stream = ? ORDER BY seq DESC LIMIT ?',
      stream,
      limits.sweepEvents,
    );
    let bytes = 0;
    let done = 0;
    for (const row of rows) {
      if (bytes > limits.sweepBytes) break;
      // The index must be given exactly the words it was given before, so they go first.
      this.#sql.run(
        "INSERT INTO search (search, rowid, words) SELECT 'delete', place, words FROM searchable WHERE place = ?",
        row.place,
      );
      this.#sql.run('DELETE FROM event WHERE place = ?', row.place);
      bytes += row.bytes;
      done += 1;
    }
    return done;
  }

  /** FTS5 only marks words as deleted; they leave the file when its segments are merged (its documentation, "merge"). */
  #mergeSlice(): void {
    const total = (): number => this.#sql.get<{ total: number }>('SELECT total_changes() AS total')?.total ?? 0;
    const isFirst = this.#sql.get('SELECT 1 FROM meta WHERE name = ? AND value = ?', merging, 'begin') !== null;
    if (isFirst) this.#sql.run('UPDATE meta SET value = ? WHERE name = ?', 'continue', merging);
    const before = total();
    this.#sql.run(
      "INSERT INTO search (search, rank) VALUES ('merge', ?)",
      isFirst ? -limits.sweepIndexPages : limits.sweepIndexPages,
    );
    if (!isFirst && total() - before < 2) this.#sql.run('DELETE FROM meta WHERE name = ?', merging);
  }
}
