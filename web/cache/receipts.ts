/** Receipts in the offline copy, each with everything needed to check it without the bridge. Bounded; oldest kept go first. */
import { limits } from '#protocol/limits.ts';
import type { Answer } from '#protocol/methods.ts';
import type { CopyDatabase } from './database.ts';

export type ReceiptProof = Answer<'receipt.proof'>;
export interface KeptReceipt {
  readonly receiptId: string;
  /** Empty where it belongs to none: an index skips null. */
  readonly conversationId: string;
  readonly keptAt: number;
  readonly proof: ReceiptProof;
}

export class KeptReceipts {
  #database: Promise<CopyDatabase>;
  /** Whether things of this conversation may be kept. */
  #may: (conversationId: string | null) => boolean;

  constructor(database: Promise<CopyDatabase>, may: (conversationId: string | null) => boolean) {
    this.#database = database;
    this.#may = may;
  }

  /** Keeps one that was verified. False when it may not be kept, is too large, or the browser gives no room. */
  async put(verified: ReceiptProof, keptAt: number): Promise<boolean> {
    const { receiptId, conversationId } = verified.summary;
    // What stands around it may be of another conversation, whose actions must not outlive it here.
    const proof = { ...verified, basis: verified.basis.map((other) => ({ ...other, action: null })) };
    if (!this.#may(conversationId) || JSON.stringify(proof).length > limits.offlineReceiptBytes) return false;
    const transaction = (await this.#database).transaction('receipts', 'readwrite');
    try {
      await transaction.store.put({ receiptId, conversationId: conversationId ?? '', keptAt, proof });
      let over = (await transaction.store.count()) - limits.offlineReceipts;
      let cursor = await transaction.store.index('keptAt').openCursor();
      for (; over > 0 && cursor !== null; over -= 1) {
        await cursor.delete();
        cursor = await cursor.continue();
      }
      await transaction.done;
      return true;
    } catch (error) {
      if (error instanceof DOMException && error.name === 'QuotaExceededError') return false;
      throw error;
    }
  }

  async get(receiptId: string): Promise<KeptReceipt | null> {
    return (await (await this.#database).get('receipts', receiptId)) ?? null;
  }

  /** Newest first, by their place in the log. */
  async list(): Promise<readonly KeptReceipt[]> {
    const all = await (await this.#database).getAll('receipts');
    return all.sort((a, b) => b.proof.summary.seq - a.proof.summary.seq);
  }

  async count(): Promise<number> {
    return (await this.#database).count('receipts');
  }

  /** Those of one conversation go with it. */
  async remove(conversationId: string): Promise<void> {
    const transaction = (await this.#database).transaction('receipts', 'readwrite');
    for (const key of await transaction.store.index('conversationId').getAllKeys(conversationId))
      void transaction.store.delete(key);
    await transaction.done;
  }

  async clear(): Promise<void> {
    await (await this.#database).clear('receipts');
  }
}
