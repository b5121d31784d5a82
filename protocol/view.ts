/**
 * What a client shows: the view of one block of events, as made by `projectBlock`, and the small live state beside it.
 * No words for people here beyond what events carry; the app's catalogue names things.
 */
import type {
  BlobRef,
  CardDiff,
  EventData,
  Outcome,
  PlanEntry,
  ReceiptKind,
  StopReason,
  ToolContent,
  ToolKind,
  ToolStatus,
} from './events.ts';
import type { ApprovalState } from './methods/approval.ts';

interface Row {
  /** Unique and stable in its block: `message:<role>:<id>:<first part>`, `tool:<id>`, `approval:<id>`, `plan`, else `seq:<n>`. */
  readonly key: string;
  /** Of the first event that made the row. */
  readonly seq: number;
  readonly at: number;
}

export interface MessageRow extends Row {
  readonly kind: 'message';
  readonly role: 'user' | 'agent' | 'thought';
  readonly messageId: string;
  readonly text: string;
  readonly blob?: BlobRef | undefined;
  readonly attachments: readonly BlobRef[];
  readonly interrupted: boolean;
  /** Still being written; only rows made from a draft. */
  readonly streaming: boolean;
  /** Key of the operation that stored it: replaces the prompt on its way that carries the same key (case 2). */
  readonly operationId?: string | undefined;
}

export interface ToolRow extends Row {
  readonly kind: 'tool';
  readonly toolCallId: string;
  /** The agent's words. */
  readonly title: string;
  readonly toolKind: ToolKind;
  readonly status: ToolStatus;
  readonly locations: readonly { readonly path: string; readonly line?: number | undefined }[];
  readonly rawInput?: string | undefined;
  readonly rawInputBlob?: BlobRef | undefined;
  readonly rawOutput?: string | undefined;
  readonly rawOutputBlob?: BlobRef | undefined;
  readonly content: readonly ToolContent[];
  readonly endedAt?: number | undefined;
  readonly approvalIds: readonly string[];
}

export interface ReceiptRef {
  readonly receiptId: string;
  readonly receiptSeq: number;
  readonly kind: ReceiptKind;
  readonly outcome?: Outcome | undefined;
}

export interface ApprovalRow extends Row {
  readonly kind: 'approval';
  readonly approvalId: string;
  readonly request: EventData<'approval.requested'>;
  readonly status: ApprovalState;
  /** What came of an allowed action; only from outcome events joined by exact id. */
  readonly outcome: Outcome | null;
  readonly receipts: readonly ReceiptRef[];
}

export interface PlanRow extends Row {
  readonly kind: 'plan';
  readonly entries: readonly PlanEntry[];
}

/** Anything said by the bridge: errors with their mend, exits, limits, refused calls, unreadable events. */
export interface NoticeRow extends Row {
  readonly kind: 'notice';
  readonly level: 'info' | 'warn' | 'error';
  readonly code: string;
  readonly sentence: string;
  readonly mend?: string | undefined;
  readonly mendCommand?: string | undefined;
  readonly raw?: string | undefined;
  /** Of files that were put back. */
  readonly restored?: { readonly undoCheckpointId: string | null; readonly receiptId: string } | undefined;
}

/** A line across the transcript: what the agent no longer knows. */
export interface DividerRow extends Row {
  readonly kind: 'divider';
  readonly code: 'context_lost' | 'resumed';
  readonly sentence: string;
}

/** An event of a type or shape this version does not know, kept whole. */
export interface UnknownRow extends Row {
  readonly kind: 'unknown';
  readonly type: string;
  readonly json: string;
}

export type Entry = MessageRow | ToolRow | ApprovalRow | PlanRow | NoticeRow | DividerRow | UnknownRow;

export interface BlockView {
  /** First seq of the block as the outline has it. */
  readonly firstSeq: number;
  /** Highest seq projected. */
  readonly lastSeq: number;
  /** Every event of the block from its first one is in; false while an older page is missing. */
  readonly complete: boolean;
  readonly turnId: string | null;
  readonly startedAt: number;
  /** Null while the turn runs. */
  readonly ended: {
    readonly at: number;
    readonly stopReason: StopReason;
    readonly durationMs: number;
    readonly sentence?: string | undefined;
    readonly changedPaths: readonly string[];
  } | null;
  readonly usage: EventData<'usage'> | null;
  /** The files before this turn, where they were recorded. */
  readonly checkpointId?: string | undefined;
  readonly receipts: readonly ReceiptRef[];
  readonly entries: readonly Entry[];
}

export type { CardDiff };
