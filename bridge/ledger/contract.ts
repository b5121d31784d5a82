/**
 * What the ledger gives the rooms. The ledger is the truth: if it is not appended it did not happen.
 * All SQL lives in bridge/ledger; rooms hold this interface, handed over by main.
 */
import type {
  AnyEvent,
  ActionKind,
  BlobRef,
  Event,
  EventDraft,
  Outcome,
  ReceiptKind,
  StopReason,
  WithdrawReason,
} from '#protocol/events.ts';
import type { ActivityFrame, Delivery, Draft } from '#protocol/frames.ts';
import type { RuleSource } from '#protocol/policy.ts';

export interface ConversationRow {
  readonly conversationId: string;
  readonly workspaceId: string;
  readonly workspacePath: string;
  readonly title: string;
  readonly agentId: string;
  readonly agentTitle: string;
  readonly createdAt: number;
  /** Kept by `append`. */
  readonly updatedAt: number;
  readonly lastSeq: number;
  readonly bytes: number;
  readonly full: boolean;
  readonly archived: boolean;
  /** The agent's own session id; never handed to another agent (G-11). */
  readonly sessionId: string | null;
  readonly lastStop: StopReason | null;
  /** Header state owned by conversations, as JSON text. */
  readonly header: string;
}

export type OperationState = 'running' | 'done' | 'failed' | 'uncertain';
export interface OperationRow {
  readonly key: string;
  readonly method: string;
  readonly paramsSha256: string;
  readonly state: OperationState;
  /** JSON text of the answer, or of the error's code. */
  readonly result: string | null;
  readonly acceptedAt: number;
}

export interface ReceiptRow {
  /** 1, 2, 3 … without a gap, over the whole installation. */
  readonly seq: number;
  readonly receiptId: string;
  readonly kind: ReceiptKind;
  readonly conversationId: string | null;
  readonly approvalId: string | null;
  readonly at: number;
  /** Exact bytes of the statement; never re-serialised. */
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
  readonly keyId: string;
  readonly actionSha256: string | null;
  readonly value: 'allow' | 'deny' | null;
  readonly outcome: Outcome | null;
  readonly by: string | null;
  readonly sentence: string;
}

export interface VerifyRow extends ReceiptRow {
  readonly action: Uint8Array | null;
  /** 1: its conversation was deleted, and the action with it. */
  readonly actionDeleted: number;
  /** As the log holds it; null where the receipt is older than the log. */
  readonly leaf: Uint8Array | null;
}

/** A signed state of the log that is kept. */
export interface CheckpointRow {
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
  /** C2SP signed note. */
  readonly note: string;
  readonly at: number;
  /** `here`, or where it was anchored: `git PATH`, `file PATH`, `line`. */
  readonly place: string;
}

export interface ApprovalRecord {
  readonly approvalId: string;
  readonly conversationId: string;
  readonly turnId: string | null;
  readonly toolCallId: string | null;
  readonly kind: ActionKind;
  readonly digest: string;
  readonly state: 'pending' | 'allowed' | 'denied' | 'withdrawn' | 'expired';
  readonly requestedAt: number;
  readonly requestedSeq: number;
  readonly expiresAt: number;
  readonly decidedAt: number | null;
  readonly receiptId: string | null;
  readonly reason: WithdrawReason | null;
  readonly by: 'operator' | 'rule' | 'cli' | null;
  readonly rule: string | null;
  readonly note: string | null;
  readonly outcome: Outcome | null;
  /** JSON text of the `approval.requested` data. */
  readonly request: string;
}

export interface RuleRow {
  readonly ruleId: string;
  readonly source: RuleSource;
  /** JSON text of the `RuleDraft`, as it was saved. */
  readonly draft: string;
  readonly sentence: string;
  readonly createdAt: number;
  readonly hits: number;
  /** Matches since this draft was saved, for `uses`. */
  readonly used: number;
  readonly lastHitAt: number | null;
  readonly enabled: boolean;
}

/** What allow rules stand on in a conversation. */
export interface GroundRow {
  readonly conversationId: string;
  /** Fingerprint of the trust accepted when it was first asked for; null where there was none. */
  readonly trust: string | null;
  /** Why allow rules pause for the rest of it. */
  readonly paused: string | null;
}

export interface SessionRow {
  readonly sessionId: string;
  /** sha256 of the cookie value; the value itself is never stored. */
  readonly cookieSha256: string;
  readonly publicKeySpki: Uint8Array;
  readonly keyId: string;
  readonly client: string;
  readonly port: number;
  readonly createdAt: number;
  readonly seenAt: number;
  readonly expiresAt: number;
  /** Kept until it would have expired, so that 410 can tell revoked from unknown. */
  readonly revoked: boolean;
}

export interface WorkspaceRow {
  readonly workspaceId: string;
  /** realpath. */
  readonly path: string;
  readonly dev: string;
  readonly ino: string;
  readonly practice: boolean;
  readonly openedAt: number;
  readonly forgotten: boolean;
}

export interface TrustRow {
  readonly workspaceId: string;
  readonly fingerprint: string;
  readonly acceptedAt: number;
  readonly receiptId: string;
  /** Who, why, and what was seen: the trust room's own JSON text. Null in rows of older versions. */
  readonly detail?: string | null;
}

/** Files as they were; the content is in the git room's private store of the conversation. */
export interface FileCheckpointRow {
  readonly checkpointId: string;
  readonly conversationId: string;
  readonly turnId: string | null;
  readonly why: 'before_turn' | 'after_turn' | 'before_restore';
  readonly at: number;
  readonly files: number;
  readonly bytes: number;
  readonly skipped: number;
  readonly tree: string;
  /** What keeps the tree in the store; several rows may share it. */
  readonly store: string;
  /** What a restore left, for the checkpoint made before it. */
  readonly afterTree: string | null;
  /** Receipt of a restore that began after this checkpoint and has not ended. */
  readonly restoring: string | null;
  readonly pruned: boolean;
}

/** The folder made for a child conversation. It stands before the folder does, and before the conversation. */
export interface WorktreeRow {
  readonly conversationId: string;
  readonly state: 'making' | 'ready' | 'removing' | 'removed';
  /** The git room's own JSON text. */
  readonly detail: string;
}

/** Small indexed reads on the writer's connection: see their own transaction, take well under a millisecond. */
export interface Reads {
  meta(name: string): string | null;
  conversation(conversationId: string): ConversationRow | null;
  conversations(filter: {
    workspaceId?: string | undefined;
    archived?: boolean | undefined;
    before?: number | undefined;
    limit: number;
  }): ConversationRow[];
  operation(key: string): OperationRow | null;
  runningOperations(): OperationRow[];
  lastReceipt(): ReceiptRow | null;
  receipt(receiptId: string): ReceiptRow | null;
  /** The decision or outcome receipts of an approval, in order. */
  receiptsOf(approvalId: string): ReceiptRow[];
  /** Newest first. */
  receipts(filter: {
    conversationId?: string | undefined;
    beforeSeq?: number | undefined;
    limit: number;
  }): ReceiptRow[];
  /** Every receipt in order, streamed. */
  allReceipts(): Iterable<ReceiptRow>;
  /** The receipts after `seq` in order, streamed, with all that verifying them needs. */
  toVerify(afterSeq: number): Iterable<VerifyRow>;
  /** Key rotation receipts in order. */
  rotations(): ReceiptRow[];
  /** How many receipts the log holds. */
  logSize(): number;
  /** A complete node of the log (protocol/log.ts `NodeReader`). */
  logNode(level: number, index: number): Uint8Array | null;
  /** By size, from the smallest. */
  checkpoints(): CheckpointRow[];
  /** The largest over at most so many receipts; of one size the oldest. */
  lastCheckpoint(maxSize: number): CheckpointRow | null;
  action(sha256: string): Uint8Array | null;
  approval(approvalId: string): ApprovalRecord | null;
  approvals(filter: {
    state: 'pending' | 'decided' | 'all';
    conversationId?: string | undefined;
    before?: number | undefined;
    /** With `before`: those of that very time whose id is lower come too. */
    beforeId?: string | undefined;
    limit: number;
  }): ApprovalRecord[];
  pendingApprovals(conversationId: string): number;
  /** In the order they were made. */
  rules(): RuleRow[];
  /** Matches of a rule later than `after`, as far as they are kept. */
  ruleHits(ruleId: string, after: number): number;
  ground(conversationId: string): GroundRow | null;
  sessions(): SessionRow[];
  sessionByCookie(cookieSha256: string): SessionRow | null;
  workspaces(): WorkspaceRow[];
  trust(workspaceId: string): TrustRow | null;
  agents(): { readonly agentId: string; readonly spec: string }[];
  view(conversationId: string): string | null;
  /** In the order they were made. */
  fileCheckpoints(conversationId: string): FileCheckpointRow[];
  /** Of restores that began and have not ended, for recovery. */
  openRestores(): FileCheckpointRow[];
  worktree(conversationId: string): WorktreeRow | null;
  worktrees(): WorktreeRow[];
  processes(): { readonly pid: number; readonly startTime: string; readonly marker: string }[];
  /** Turns with a start and no end, for recovery. */
  openTurns(): {
    readonly conversationId: string;
    readonly turnId: string;
    readonly startedAt: number;
    readonly startedSeq: number;
  }[];
  /** Conversations with a message still being written, for recovery. */
  openDrafts(): string[];
  /** Events with seq in (after, through], ascending; for small spans. */
  events(conversationId: string, after: number, through: number): AnyEvent[];
}

/** One atomic piece of work. Everything here is undone together when the work throws. */
export interface Tx extends Reads {
  /** Assigns id, seq and time, moves oversized text to blobs, checks the size bound. Returns the stored event, or null where the transcript is full and the event is of a kind the cap drops. */
  append(conversationId: string, draft: EventDraft): Event | null;
  /** Ends the streaming draft of the conversation as one `message` event (D-42). Null when there is none. */
  endDraft(conversationId: string, end?: { interrupted?: boolean }): Event | null;
  setMeta(name: string, value: string): void;
  putConversation(row: Omit<ConversationRow, 'updatedAt' | 'lastSeq' | 'bytes' | 'full'>): void;
  updateConversation(
    conversationId: string,
    change: Partial<Pick<ConversationRow, 'title' | 'archived' | 'sessionId' | 'lastStop' | 'header'>>,
  ): void;
  /** Leaves a tombstone: events, blobs and action bytes go, receipts stay. */
  deleteConversation(conversationId: string): void;
  acceptOperation(row: { key: string; method: string; paramsSha256: string }): void;
  finishOperation(key: string, state: Exclude<OperationState, 'running'>, result: string | null): void;
  putReceipt(row: ReceiptRow): void;
  /** The complete nodes that receipt `seq` adds to the log, lowest first. */
  putLogNodes(seq: number, hashes: readonly Uint8Array[]): void;
  /** Once for each size, root and place; later calls do nothing. */
  putCheckpoint(row: CheckpointRow): void;
  putAction(sha256: string, bytes: Uint8Array, conversationId: string | null): void;
  putApproval(row: ApprovalRecord): void;
  /** True when the approval was pending and is now resolved: the first answer wins. */
  resolveApproval(
    approvalId: string,
    change: Partial<Omit<ApprovalRecord, 'approvalId' | 'digest' | 'request'>> & {
      state: Exclude<ApprovalRecord['state'], 'pending'>;
    },
  ): boolean;
  setApprovalOutcome(approvalId: string, outcome: Outcome): void;
  /** Replaces a rule of that id with its history of matches. */
  putRule(row: RuleRow): void;
  changeRule(ruleId: string, change: { enabled: boolean } | 'remove'): boolean;
  /** Counts a match; `spanMs` keeps it for a limit, and drops what is older than that span. */
  hitRule(ruleId: string, at: number, spanMs: number | null): void;
  putGround(row: GroundRow): void;
  putSession(row: SessionRow): void;
  touchSession(sessionId: string, seenAt: number): void;
  /** One session, or all. Returns how many were live. */
  revokeSessions(sessionId: string | null): number;
  putWorkspace(row: WorkspaceRow): void;
  putTrust(row: TrustRow): void;
  removeTrust(workspaceId: string): void;
  putAgent(agentId: string, spec: string): void;
  removeAgent(agentId: string): boolean;
  putView(conversationId: string, state: string): void;
  putFileCheckpoint(row: FileCheckpointRow): void;
  changeFileCheckpoint(
    checkpointId: string,
    change: Partial<Pick<FileCheckpointRow, 'afterTree' | 'restoring' | 'pruned'>>,
  ): void;
  /** Replaces the one of that conversation. */
  putWorktree(row: WorktreeRow): void;
  removeWorktree(conversationId: string): void;
  putProcess(row: { pid: number; startTime: string; marker: string }): void;
  removeProcess(marker: string): void;
}

/** Where the ledger pushes to: one per attachment, made by the gate. */
export interface Sink {
  readonly attachmentId: string;
  /** `encoded` is one whole frame; `bytes` its UTF-8 size. Never throws; the gate bounds and closes. */
  deliver(encoded: string, bytes: number): void;
}

export interface Subscription {
  readonly boundarySeq: number;
  readonly resumed: boolean;
  readonly outline: number[];
  readonly events: AnyEvent[];
  readonly draft: Draft | null;
}

export interface Feed {
  /** From now on the sink receives `invalidate` and `presence` frames. */
  attach(sink: Sink): void;
  /** Ends every subscription of the attachment. */
  detach(attachmentId: string): void;
  /** Runs once when the attachment is detached; at once where it is already. */
  whenDetached(attachmentId: string, run: () => void): void;
  /**
   * Freezes the boundary, returns the newest page (or everything since `after`), buffers the tail (bounded; beyond it the
   * subscription ends and the sink gets a `snapshot_required` close) until `ack` reaches the boundary.
   * @throws Refusal unknown_conversation, snapshot_required
   */
  subscribe(conversationId: string, sink: Sink, after?: { lineage: string; seq: number }): Subscription;
  ack(conversationId: string, attachmentId: string, seq: number): boolean;
  unsubscribe(conversationId: string, attachmentId: string): boolean;
  subscribed(attachmentId: string): string[];
  /** Transient, never stored; encoded once for all. */
  activity(conversationId: string, turnId: string | null, frame: Exclude<ActivityFrame, { type: 'text' }>): void;
  /**
   * One streamed piece of a message: sent at once when the last frame is ≥ 16 ms old, else at that window's end;
   * grows the draft row (at most every 250 ms). A different message, role or part must be ended by `tx.endDraft` first.
   */
  text(
    conversationId: string,
    piece: { turnId: string | null; messageId: string; role: 'agent' | 'thought'; part: number; text: string },
  ): void;
  draft(conversationId: string): Draft | null;
  /** Tells everybody, or the one attachment it concerns. */
  invalidate(topic: Extract<Delivery, { kind: 'invalidate' }>['topic'], attachmentId?: string): void;
  broadcast(frame: Delivery): void;
}

export interface Blobs {
  /** Stores bytes as a 0600 file by sha256, owned by a conversation. @throws Refusal content_too_large, blob_unsupported */
  put(conversationId: string, bytes: Uint8Array, about: { mime: string; name?: string | undefined }): Promise<BlobRef>;
  /** Null when the conversation does not own it. */
  read(
    conversationId: string,
    sha256: string,
  ): { path: string; bytes: number; mime: string; name: string | null } | null;
}

export interface SearchHit {
  readonly conversationId: string;
  readonly title: string;
  readonly seq: number;
  readonly at: number;
  readonly type: string;
  readonly snippet: string;
}

export interface Ledger {
  readonly bridgeId: string;
  readonly lineage: string;
  /** Set when a write failed: nothing is accepted any more (L-24). */
  readonly readOnly: boolean;
  readonly read: Reads;
  readonly feed: Feed;
  readonly blobs: Blobs;
  /**
   * Queues one atomic work; works share a commit (≤ 5 ms or 64). Resolves after COMMIT, in order; events reach the feed
   * after COMMIT and before the promise resolves. A throwing work is rolled back alone. @throws Refusal read_only
   */
  commit<T>(work: (tx: Tx) => T): Promise<T>;
  /** Pages from the reader worker: contiguous, ascending, bounded by page bytes and events. */
  history(
    conversationId: string,
    where: { beforeSeq: number } | { aroundSeq: number },
    limit: number,
  ): Promise<{ events: AnyEvent[]; firstSeq: number; lastSeq: number }>;
  search(
    query: string,
    filter: { conversationId?: string | undefined; limit: number },
  ): Promise<{ hits: SearchHit[]; more: boolean }>;
  /** Every event in order, in bounded pages, from the reader worker; for export and handoff. */
  scan(conversationId: string): AsyncIterable<AnyEvent[]>;
  /** Runs in the reader worker after an unclean stop. Empty when all is well. */
  quickCheck(): Promise<string[]>;
  readonly uncleanStop: boolean;
  /** Checkpoint, mark clean, close. */
  close(): Promise<void>;
}
