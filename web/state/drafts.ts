/** What is being written in each conversation: this browser's own, kept across reload and offline (U-04). */
import { blobRef, type BlobRef } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import { z } from '#protocol/schema.ts';

const prefix = 'countersign.draft.';
const stored = z.strictObject({ text: z.string(), attachments: z.array(blobRef), at: z.number() });
export interface Draft {
  readonly text: string;
  readonly attachments: readonly BlobRef[];
}
const none: Draft = { text: '', attachments: [] };

export const readDraft = (storage: Storage, conversationId: string): Draft => {
  try {
    const parsed = z.safeParse(stored, JSON.parse(storage.getItem(prefix + conversationId) ?? 'null'));
    return parsed.success
      ? { text: parsed.data.text, attachments: parsed.data.attachments.slice(0, limits.promptBlobs) }
      : none;
  } catch {
    // Storage refused or damaged: there is no draft then.
    return none;
  }
};

/** False when the browser did not keep it (no room, no storage). */
export const writeDraft = (storage: Storage, conversationId: string, draft: Draft, at: number): boolean => {
  try {
    if (draft.text === '' && draft.attachments.length === 0) storage.removeItem(prefix + conversationId);
    else storage.setItem(prefix + conversationId, JSON.stringify({ ...draft, at }));
    return true;
  } catch {
    return false;
  }
};
