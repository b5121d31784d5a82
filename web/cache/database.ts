/**
 * The offline copy (U-22, U-23): events and summaries of conversations seen, in a database of its own for each
 * installation and lineage, so that a restored or foreign bridge never mixes with what was kept before.
 */
import type { AnyEvent } from '#protocol/events.ts';
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import type { WorkspaceSummary } from '#protocol/methods/workspace.ts';
import { openDB, type DBSchema, type IDBPDatabase } from 'idb';
import type { ReviewComment } from '#lib/state/review.svelte.ts';
import type { KeptReceipt } from './receipts.ts';

export interface CopyMeta {
  readonly conversationId: string;
  /** Null while nothing but the wish not to be kept is known. */
  readonly summary: ConversationSummary | null;
  /** First seqs of the blocks, as the bridge last told. */
  readonly outline: readonly number[];
  /** Highest seq kept; a resume asks for what came after it. */
  readonly lastSeq: number;
  /** Approximate size of the kept events. */
  readonly bytes: number;
  readonly openedAt: number;
  /** When it was last in step with the bridge. */
  readonly syncedAt: number;
  readonly doNotKeep: boolean;
}

export interface CopySchema extends DBSchema {
  events: { key: [conversationId: string, seq: number]; value: AnyEvent };
  meta: { key: string; value: CopyMeta };
  /** Lists and times of the whole installation. */
  facts: { key: string; value: { readonly syncedAt: number; readonly workspaces: readonly WorkspaceSummary[] } };
  /** Review comments not sent yet, by conversation: the operator's own words, whatever else is kept. */
  reviews: { key: string; value: readonly ReviewComment[] };
  receipts: { key: string; value: KeptReceipt; indexes: { conversationId: string; keptAt: number } };
}
export type CopyDatabase = IDBPDatabase<CopySchema>;

const prefix = 'countersign.copy.';
export const copyName = (bridgeId: string, lineage: string): string => `${prefix}${bridgeId}.${lineage}`;

export const openCopy = (name: string): Promise<CopyDatabase> =>
  openDB<CopySchema>(name, 3, {
    upgrade(database, from) {
      if (from < 1) {
        database.createObjectStore('events');
        database.createObjectStore('meta', { keyPath: 'conversationId' });
        database.createObjectStore('facts');
      }
      if (from < 2) {
        const receipts = database.createObjectStore('receipts', { keyPath: 'receiptId' });
        receipts.createIndex('conversationId', 'conversationId');
        receipts.createIndex('keptAt', 'keptAt');
      }
      database.createObjectStore('reviews');
    },
    // Another tab deletes the copy, or comes with a newer form of it: let it.
    blocking: (_current, _blocked, event) => (event.target as IDBDatabase | null)?.close(),
  });

/** All seqs of one conversation, or those from `first` to `last`, both included. */
export const rangeOf = (conversationId: string, first = 0, last = Number.MAX_SAFE_INTEGER): IDBKeyRange =>
  IDBKeyRange.bound([conversationId, first], [conversationId, last]);

/** Deletes every offline copy this browser holds except `keep`. */
export const deleteCopies = async (keep: string | null = null): Promise<void> => {
  const names = (await indexedDB.databases()).map((database) => database.name ?? '');
  await Promise.all(names.filter((name) => name.startsWith(prefix) && name !== keep).map(deleteOne));
};

const deleteOne = (name: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = () => resolve();
    // Other tabs close their handle on `versionchange`; the deletion then goes on by itself.
    request.onblocked = () => resolve();
    request.onerror = () => reject(request.error ?? new Error('The offline copy could not be deleted.'));
  });
