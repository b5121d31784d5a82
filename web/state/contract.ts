/**
 * What the views hold: rune classes behind these interfaces. Getters out, verbs in; a view writes no fact.
 * Implemented in web/state; used by web/view and web/routes.
 */
import type { BlobRef } from '#protocol/events.ts';
import type { ErrorCode } from '#protocol/errors.ts';
import type { ApprovalView } from '#protocol/methods/approval.ts';
import type { RuleDraft } from '#protocol/policy.ts';
import type { ReceiptSummary } from '#protocol/methods/receipt.ts';
import type { ConversationSummary, PromptPart } from '#protocol/methods/conversation.ts';
import type { ActivityFrame } from '#protocol/frames.ts';
import type { ApprovalRow, BlockView, MessageRow } from '#protocol/view.ts';

/** D-53. */
export type ConnectionState =
  'connecting' | 'loading' | 'live' | 'reconnecting' | 'offline' | 'signed_out' | 'incompatible';

/** A block of the outline: loaded (whole or in part) or a place to load. */
export interface BlockSlot {
  readonly firstSeq: number;
  /** Of the next block, or lastSeq + 1. */
  readonly endSeq: number;
  readonly view: BlockView | null;
}

/** What a verb that failed says; already in plain words. */
export interface Failure {
  readonly code: ErrorCode | 'offline';
  readonly message: string;
}
export type Outcome<T = void> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: Failure };

/** A prompt on its way: shown until the stored row with the same key replaces it (case 2). */
export interface Sending {
  readonly key: string;
  readonly text: string;
  readonly attachments: readonly BlobRef[];
  readonly state: 'sending' | 'uncertain' | 'failed';
  readonly failure?: Failure | undefined;
}

export interface ConversationState {
  readonly id: string;
  /** Null until loaded. */
  readonly summary: ConversationSummary | null;
  readonly loading: boolean;
  readonly failure: Failure | null;
  /** From the offline copy; nothing can be changed. `since` is when it was last in step. */
  readonly offline: { readonly since: number } | null;
  /** Ascending. */
  readonly blocks: readonly BlockSlot[];
  /** The message being written, drawn after the last block's entries. */
  readonly live: MessageRow | null;
  readonly sending: readonly Sending[];
  readonly status: Extract<ActivityFrame, { type: 'status' }> | null;
  /** Output so far of a running agent terminal, by terminal id. */
  terminalOutput(terminalId: string): string;
  /** Pending cards of this conversation, in order. */
  readonly pending: readonly ApprovalRow[];
  /** Why the composer and the cards cannot act, in plain words; null when they can. */
  readonly blocked: string | null;

  /** Loads the block around `seq`; resolves when its view is in. */
  load(seq: number): Promise<void>;
  /** Marks an event for highlight and scrolls to it (U-12). */
  reveal(seq: number): void;
  readonly revealed: number | null;

  send(
    content: readonly PromptPart[],
    delivery: 'prompt' | 'queue',
  ): Promise<Outcome<{ turnId?: string | undefined; queueId?: string | undefined }>>;
  retry(sendingKey: string): Promise<void>;
  discard(sendingKey: string): void;
  stop(): Promise<Outcome>;
  decide(
    approval: Pick<ApprovalRow, 'approvalId'> & { digest: string },
    answer: {
      value: 'allow' | 'deny';
      optionId: string;
      note?: string;
      /** Saves `rule` along with it, or the first offered scope where none is given. */
      remember?: boolean;
      rule?: RuleDraft;
    },
  ): Promise<Outcome<{ receiptId: string }>>;
  setMode(modeId: string): Promise<Outcome>;
  setModel(modelId: string): Promise<Outcome>;
  setOption(optionId: string, value: string): Promise<Outcome>;
  rename(title: string): Promise<Outcome>;
  archive(archived: boolean): Promise<Outcome>;
  remove(): Promise<Outcome>;
  closeAgent(): Promise<Outcome>;
  restart(): Promise<Outcome>;
  removeQueued(queueId: string): Promise<Outcome>;
  resumeQueue(): Promise<Outcome>;
  upload(file: Blob, name: string): Promise<Outcome<BlobRef>>;
  /** An object URL of an image blob of this conversation; revoke it when done. */
  blobUrl(blob: BlobRef): Promise<Outcome<string>>;
  blobText(blob: BlobRef): Promise<Outcome<string>>;
  receipts(): Promise<Outcome<readonly ReceiptSummary[]>>;
  /** File names for @ mentions. */
  searchFiles(query: string): Promise<readonly { path: string; type: 'file' | 'directory' }[]>;

  /** Composer text, kept across reload and offline. */
  draft: string;
  readonly draftAttachments: readonly BlobRef[];
  setDraftAttachments(attachments: readonly BlobRef[]): void;
}

export type { ApprovalView };
