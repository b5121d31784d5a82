/** What the app does with its offline copy: write in batches, read, bound, forget. */
import type { AnyEvent } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import type { WorkspaceSummary } from '#protocol/methods/workspace.ts';
import type { ReviewComment } from '#lib/state/review.svelte.ts';
import { copyName, openCopy, rangeOf, type CopyDatabase, type CopyMeta } from './database.ts';
import { KeptReceipts } from './receipts.ts';

/** Events wait this long for others before they are written together. */
const batchMs = 400;

export interface CopySize {
  readonly bytes: number;
  readonly conversations: number;
}

interface Pending {
  events: AnyEvent[];
  summary?: ConversationSummary;
  outline?: readonly number[];
}

export interface CopyOptions {
  readonly now: () => number;
  /** Told when old conversations had to go because the browser gave no more room. */
  readonly onQuota: () => void;
  readonly maxBytes?: number;
  /** This browser never kept anything of this installation: nobody need wait for a database that is being made. */
  readonly isNew?: boolean;
}

export class OfflineCopy {
  readonly name: string;
  readonly receipts: KeptReceipts;
  #database: Promise<CopyDatabase>;
  #options: CopyOptions;
  #pending = new Map<string, Pending>();
  #workspaces: readonly WorkspaceSummary[] | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #writing: Promise<void> = Promise.resolve();
  #skip = new Set<string>();
  #cleared = 0;
  #isNew: boolean;
  /** Turned off in Settings: nothing more is written; what is there stays readable. */
  keep = true;

  constructor(bridgeId: string, lineage: string, options: CopyOptions) {
    this.name = copyName(bridgeId, lineage);
    this.#options = options;
    this.#isNew = options.isNew === true;
    this.#database = openCopy(this.name);
    this.receipts = new KeptReceipts(
      this.#database,
      (conversationId) => this.keep && !this.#skip.has(conversationId ?? ''),
    );
    void this.list().then((all) =>
      all.filter((meta) => meta.doNotKeep).forEach((meta) => this.#skip.add(meta.conversationId)),
    );
  }

  /** Keeps what was just received; written with others in one transaction a moment later. */
  put(
    conversationId: string,
    part: { events?: readonly AnyEvent[]; summary?: ConversationSummary; outline?: readonly number[] },
  ): void {
    if (!this.keep || this.#skip.has(conversationId)) return;
    const pending = this.#pending.get(conversationId) ?? { events: [] };
    if (part.events !== undefined) pending.events.push(...part.events);
    if (part.summary !== undefined) pending.summary = part.summary;
    if (part.outline !== undefined) pending.outline = part.outline;
    this.#pending.set(conversationId, pending);
    this.#timer ??= setTimeout(() => void this.flush(), batchMs);
  }

  putWorkspaces(workspaces: readonly WorkspaceSummary[]): void {
    if (!this.keep) return;
    this.#workspaces = workspaces;
    this.#timer ??= setTimeout(() => void this.flush(), batchMs);
  }

  /** Writes what waits. Safe to call at any time; calls follow one another. */
  flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const batch = this.#pending;
    this.#pending = new Map();
    const workspaces = this.#workspaces;
    this.#workspaces = null;
    const cleared = this.#cleared;
    this.#writing = this.#writing
      .then(() => (cleared === this.#cleared ? this.#write(batch, workspaces) : undefined))
      .catch((cause: unknown) => {
        // Deleted by another tab, or refused by the browser: the app works on without a copy.
        this.keep = false;
        console.warn('offline copy: nothing more is kept', cause);
      });
    return this.#writing;
  }

  async #write(batch: Map<string, Pending>, workspaces: readonly WorkspaceSummary[] | null): Promise<void> {
    this.#isNew = false;
    for (let attempt = 0; attempt < 4; attempt += 1) {
      try {
        await this.#store(batch, workspaces);
        await this.#bound();
        return;
      } catch (error) {
        if (!(error instanceof DOMException) || error.name !== 'QuotaExceededError') throw error;
        this.#options.onQuota();
        if (!(await this.#evictOldest())) return;
      }
    }
  }

  async #store(batch: Map<string, Pending>, workspaces: readonly WorkspaceSummary[] | null): Promise<void> {
    const database = await this.#database;
    const transaction = database.transaction(['events', 'meta', 'facts'], 'readwrite');
    const [events, metas, facts] = [
      transaction.objectStore('events'),
      transaction.objectStore('meta'),
      transaction.objectStore('facts'),
    ];
    for (const [conversationId, pending] of batch) {
      const before = await metas.get(conversationId);
      let bytes = before?.bytes ?? 0;
      let lastSeq = before?.lastSeq ?? 0;
      for (const event of pending.events) {
        const key: [string, number] = [conversationId, event.seq];
        if ((await events.getKey(key)) === undefined) bytes += JSON.stringify(event).length;
        void events.put(event, key);
        lastSeq = Math.max(lastSeq, event.seq);
      }
      const now = this.#options.now();
      void metas.put({
        conversationId,
        summary: pending.summary ?? before?.summary ?? null,
        outline: pending.outline ?? before?.outline ?? [],
        lastSeq,
        bytes,
        openedAt: before?.openedAt ?? now,
        syncedAt: now,
        doNotKeep: before?.doNotKeep ?? false,
      });
    }
    const known = await facts.get('all');
    void facts.put({ syncedAt: this.#options.now(), workspaces: workspaces ?? known?.workspaces ?? [] }, 'all');
    await transaction.done;
  }

  /** Least recently opened conversations go first, until the copy is within its bound. */
  async #bound(): Promise<void> {
    const maxBytes = this.#options.maxBytes ?? limits.offlineBytes;
    while ((await this.size()).bytes > maxBytes) if (!(await this.#evictOldest())) return;
  }

  async #evictOldest(): Promise<boolean> {
    const oldest = (await this.list()).filter((meta) => meta.bytes > 0).sort((a, b) => a.openedAt - b.openedAt)[0];
    if (oldest === undefined) return false;
    await this.#erase(oldest.conversationId, { ...oldest, bytes: 0, lastSeq: 0, outline: [] });
    return true;
  }

  async #erase(conversationId: string, left: CopyMeta | null): Promise<void> {
    const transaction = (await this.#database).transaction(['events', 'meta'], 'readwrite');
    void transaction.objectStore('events').delete(rangeOf(conversationId));
    if (left === null) void transaction.objectStore('meta').delete(conversationId);
    else void transaction.objectStore('meta').put(left);
    await transaction.done;
  }

  /** Newest activity first. */
  async list(): Promise<readonly CopyMeta[]> {
    const all = await (await this.#database).getAll('meta');
    return all.sort((a, b) => (b.summary?.updatedAt ?? 0) - (a.summary?.updatedAt ?? 0));
  }

  async meta(conversationId: string): Promise<CopyMeta | null> {
    if (this.#isNew) return null;
    return (await (await this.#database).get('meta', conversationId)) ?? null;
  }

  async workspaces(): Promise<{ readonly syncedAt: number; readonly workspaces: readonly WorkspaceSummary[] } | null> {
    return (await (await this.#database).get('facts', 'all')) ?? null;
  }

  /** Events from `firstSeq` to `lastSeq` that are kept, ascending; there may be gaps. */
  async events(conversationId: string, firstSeq: number, lastSeq: number): Promise<readonly AnyEvent[]> {
    return (await this.#database).getAll('events', rangeOf(conversationId, firstSeq, lastSeq));
  }

  /** Called when a conversation is opened, so that it is the last to be evicted. */
  async touch(conversationId: string): Promise<void> {
    const transaction = (await this.#database).transaction('meta', 'readwrite');
    const meta = await transaction.store.get(conversationId);
    if (meta !== undefined) void transaction.store.put({ ...meta, openedAt: this.#options.now() });
    await transaction.done;
  }

  async review(conversationId: string): Promise<readonly ReviewComment[]> {
    if (this.#isNew) return [];
    return (await (await this.#database).get('reviews', conversationId)) ?? [];
  }

  /** Not bound to `keep`: what the operator wrote and has not sent is nowhere else. */
  putReview(conversationId: string, comments: readonly ReviewComment[]): void {
    this.#writing = this.#writing
      .then(async () => {
        const database = await this.#database;
        this.#isNew = false;
        if (comments.length === 0) await database.delete('reviews', conversationId);
        else await database.put('reviews', comments, conversationId);
      })
      .catch((cause: unknown) => console.warn('offline copy: review comments are not kept', cause));
  }

  isKept(conversationId: string): boolean {
    return !this.#skip.has(conversationId);
  }

  /** Per-conversation choice; turning it off erases what is kept. */
  async setKept(conversationId: string, kept: boolean): Promise<void> {
    await this.flush();
    if (kept) {
      this.#skip.delete(conversationId);
      await this.#erase(conversationId, null);
      return;
    }
    this.#skip.add(conversationId);
    this.#pending.delete(conversationId);
    await this.receipts.remove(conversationId);
    const at = this.#options.now();
    await this.#erase(conversationId, {
      conversationId,
      summary: null,
      outline: [],
      lastSeq: 0,
      bytes: 0,
      openedAt: at,
      syncedAt: at,
      doNotKeep: true,
    });
  }

  /** A conversation deleted on the bridge is purged here too. */
  async remove(conversationId: string): Promise<void> {
    this.#pending.delete(conversationId);
    await this.#writing;
    await this.receipts.remove(conversationId);
    await (await this.#database).delete('reviews', conversationId);
    await this.#erase(conversationId, null);
  }

  async clear(): Promise<void> {
    this.#pending.clear();
    this.#cleared += 1;
    await this.#writing;
    await this.receipts.clear();
    const transaction = (await this.#database).transaction(['events', 'meta', 'facts'], 'readwrite');
    void transaction.objectStore('events').clear();
    void transaction.objectStore('facts').clear();
    for (const meta of await transaction.objectStore('meta').getAll()) {
      if (!meta.doNotKeep) void transaction.objectStore('meta').delete(meta.conversationId);
    }
    await transaction.done;
  }

  async size(): Promise<CopySize> {
    const all = await this.list();
    return {
      bytes: all.reduce((sum, meta) => sum + meta.bytes, 0),
      conversations: all.filter((meta) => meta.bytes > 0).length,
    };
  }

  async close(): Promise<void> {
    await this.flush();
    (await this.#database).close();
  }
}
