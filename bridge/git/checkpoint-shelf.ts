/**
 * The stores of all conversations on the disk: the order of work in each, its last scan, what is cleared away when. The
 * rule not to break: first the log says that a checkpoint is gone, then the disk forgets it. Called by checkpoints.ts.
 */
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Root } from '../files/contract.ts';
import type { FileCheckpointRow, Ledger } from '../ledger/contract.ts';
import type { Plan } from './checkpoint-plan.ts';
import { loadScan, saveScan, scanFiles, type Scan } from './checkpoint-scan.ts';
import { CheckpointStore } from './checkpoint-store.ts';
import type { RunGit } from './contract.ts';

export interface ShelfParts {
  readonly ledger: Pick<Ledger, 'commit' | 'read'>;
  readonly run: RunGit;
  /** Where the stores are; below the state's private directory. */
  readonly directory: string;
  readonly now: () => number;
  readonly log: (message: string, error: unknown) => void;
  /** Quiet after which a store is tidied, ms. */
  readonly tidyMs?: number;
}

/** One conversation's store and what is known of it. */
export interface Place {
  readonly conversationId: string;
  readonly store: CheckpointStore;
  readonly scanFile: string;
  /** Undefined: not loaded. */
  scan: Scan | null | undefined;
  work: Promise<unknown>;
  /** Why no checkpoints are made, as it was said. */
  absent: string | null;
  /** Written since it was tidied; null: not counted yet. */
  packs: number | null;
  /** Trees that were handed out to be read, and when. */
  readonly lent: Map<string, number>;
  /** Plans as they were shown, by digest, to say what moved since. */
  readonly shown: Map<string, Plan>;
  timer: NodeJS.Timeout | null;
}

/** What a worktree began with, and what of it was brought back: kept as long as the store. */
export const pinned = ['base', 'brought'] as const;

export class Shelf {
  readonly #parts: ShelfParts;
  readonly #places = new Map<string, Place>();

  constructor(parts: ShelfParts) {
    this.#parts = parts;
  }

  place(conversationId: string): Place {
    const known = this.#places.get(conversationId);
    if (known !== undefined) return known;
    const path = this.#path(conversationId);
    const made: Place = {
      conversationId,
      store: new CheckpointStore(join(path, 'store.git'), this.#parts.run),
      scanFile: join(path, 'scan.json'),
      scan: undefined,
      work: Promise.resolve(),
      absent: null,
      packs: null,
      lent: new Map(),
      shown: new Map(),
      timer: null,
    };
    this.#places.set(conversationId, made);
    return made;
  }

  #path(conversationId: string): string {
    return join(this.#parts.directory, conversationId);
  }

  /** In order: two scans of one store would each take the other's files for its own. Afterwards, when quiet, it is tidied. */
  inOrder<T>(conversationId: string, work: (place: Place) => Promise<T>): Promise<T> {
    const place = this.place(conversationId);
    if (place.timer !== null) clearTimeout(place.timer);
    place.timer = setTimeout(() => {
      void this.#queue(place, () => this.#settle(place)).catch((error: unknown) => {
        this.#parts.log('a checkpoint store was not tidied', error);
      });
    }, this.#parts.tidyMs ?? limits.checkpointTidyMs);
    place.timer.unref();
    return this.#queue(place, () => work(place));
  }

  #queue<T>(place: Place, work: () => Promise<T>): Promise<T> {
    const done = place.work.then(work);
    // What became of it is told to who asked; the next one begins either way.
    place.work = done.catch(() => undefined);
    return done;
  }

  /** The files as they are; a new tree is kept under `keep`. Inside `inOrder` only. @throws Refusal as `scanFiles` */
  async scan(place: Place, root: Root, keep: string, signal: AbortSignal): Promise<Scan> {
    const { store, scanFile } = place;
    await store.prepare();
    place.packs ??= await packsOf(store.directory);
    place.scan ??= await loadScan(scanFile);
    const scan = await this.#scan(place, root, keep, signal);
    if (scan.keep === keep) place.packs += 1;
    place.scan = scan;
    return scan;
  }

  async #scan(place: Place, root: Root, keep: string, signal: AbortSignal): Promise<Scan> {
    const { now } = this.#parts;
    const { store, scan: previous = null } = place;
    try {
      return await scanFiles({ store, root, previous, keep }, now, signal);
    } catch (error) {
      // The last scan may name a tree that the store does not hold any more: then everything is read again.
      if (previous === null || !(error instanceof Refusal) || error.code !== 'unsupported_git_state') throw error;
      return scanFiles({ store, root, previous: null, keep }, now, signal);
    }
  }

  async #settle(place: Place): Promise<void> {
    if (place.scan === undefined || place.scan === null) return;
    await saveScan(place.scanFile, place.scan);
    const tooMany = this.#live(place).slice(0, -limits.checkpoints);
    if (tooMany.length > 0 || (place.packs ?? 0) >= limits.checkpointPacks) await this.#prune(place, tooMany);
    for (let rows = this.#live(place); rows.length > 2; rows = this.#live(place)) {
      if ((await place.store.bytes()) <= limits.checkpointStoreBytes) break;
      await this.#prune(place, rows.slice(0, Math.ceil(rows.length / 4)));
    }
    // Loaded again when it is needed: a conversation at rest keeps nothing in memory.
    place.scan = undefined;
  }

  #live(place: Place): FileCheckpointRow[] {
    return this.#parts.ledger.read.fileCheckpoints(place.conversationId).filter((row) => !row.pruned);
  }

  async #prune(place: Place, rows: readonly FileCheckpointRow[]): Promise<void> {
    const { ledger, now } = this.#parts;
    await ledger.commit((tx) => {
      for (const { checkpointId } of rows) tx.changeFileCheckpoint(checkpointId, { pruned: true });
    });
    for (const [keep, at] of place.lent) if (at < now() - limits.checkpointLentMs) place.lent.delete(keep);
    const kept = [
      // A restore's own end is kept under the name of the checkpoint before it.
      ...this.#live(place).flatMap(({ store, checkpointId }) => [store, checkpointId]),
      ...place.lent.keys(),
      ...pinned,
      ...(place.scan === undefined || place.scan === null ? [] : [place.scan.keep]),
    ];
    await place.store.tidy(new Set(kept), new AbortController().signal);
    place.packs = 0;
  }

  /** Its store goes, after what is under way. */
  forget(conversationId: string): Promise<void> {
    const place = this.place(conversationId);
    return this.#queue(place, async () => {
      if (place.timer !== null) clearTimeout(place.timer);
      this.#places.delete(conversationId);
      await rm(this.#path(conversationId), { recursive: true, force: true });
    });
  }

  /** Stores of conversations that were deleted just before an end. */
  async sweep(): Promise<void> {
    const { directory, ledger } = this.#parts;
    for (const conversationId of existsSync(directory) ? await readdir(directory) : [])
      if (ledger.read.conversation(conversationId) === null) await this.forget(conversationId);
  }

  /** Waits for what is under way, and keeps what is known for the next start. */
  async close(): Promise<void> {
    const places = [...this.#places.values()];
    for (const { timer } of places) if (timer !== null) clearTimeout(timer);
    await Promise.all(places.map(({ work }) => work));
    for (const { scan, scanFile } of places) if (scan !== undefined && scan !== null) await saveScan(scanFile, scan);
  }
}

const packsOf = async (directory: string): Promise<number> =>
  (await readdir(join(directory, 'objects', 'pack'))).filter((name) => name.endsWith('.pack')).length;
