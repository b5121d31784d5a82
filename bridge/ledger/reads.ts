/**
 * The small indexed reads (`Reads`), on the connection they are given: each well under a millisecond.
 * Long reads go to the reader worker. Used by ledger.ts.
 */
import type { AnyEvent } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type {
  ApprovalRecord,
  CheckpointRow,
  ConversationRow,
  FileCheckpointRow,
  GroundRow,
  OperationRow,
  Reads,
  ReceiptRow,
  RuleRow,
  SessionRow,
  TrustRow,
  VerifyRow,
  WorkspaceRow,
  WorktreeRow,
} from './contract.ts';
import type { Statements, Value } from './statements.ts';

/** As SQLite has it: booleans are 0 and 1. */
type Stored<Row, Flags extends keyof Row> = Omit<Row, Flags> & { readonly [flag in Flags]: number };

/** `WHERE a AND b` of the conditions that are present. */
const where = (...conditions: (string | false)[]): string => {
  const present = conditions.filter((condition) => condition !== false);
  return present.length === 0 ? '' : `WHERE ${present.join(' AND ')}`;
};
const present = (...values: (Value | undefined)[]): Value[] => values.filter((value) => value !== undefined);

const fileCheckpoint = (row: Stored<FileCheckpointRow, 'pruned'>): FileCheckpointRow => ({
  ...row,
  pruned: row.pruned === 1,
});
const conversationColumns = `conversationId, workspaceId, workspacePath, title, agentId, agentTitle, createdAt,
  updatedAt, lastSeq, bytes, isFull AS "full", archived, sessionId, lastStop, header`;
const conversationRow = (row: Stored<ConversationRow, 'full' | 'archived'>): ConversationRow => ({
  ...row,
  full: row.full === 1,
  archived: row.archived === 1,
});

const toVerify = `SELECT receipt.*, action.bytes AS action, substr(logNode.hashes, 1, 32) AS leaf,
    action.bytes IS NULL AND receipt.conversationId IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM conversation WHERE conversationId = receipt.conversationId) AS actionDeleted
  FROM receipt LEFT JOIN action ON action.sha256 = receipt.actionSha256 LEFT JOIN logNode ON logNode.seq = receipt.seq
  WHERE receipt.seq > ? ORDER BY receipt.seq`;

export const makeReads = (sql: Statements): Reads => {
  const conversation: Reads['conversation'] = (conversationId) => {
    const row = sql.get<Stored<ConversationRow, 'full' | 'archived'>>(
      `SELECT ${conversationColumns} FROM conversation JOIN stream ON stream = conversationId WHERE conversationId = ?`,
      conversationId,
    );
    return row === null ? null : conversationRow(row);
  };

  // CROSS JOIN keeps the order of the loops: by time, stopping at the limit.
  const conversations: Reads['conversations'] = (filter) =>
    sql
      .all<Stored<ConversationRow, 'full' | 'archived'>>(
        `SELECT ${conversationColumns} FROM stream CROSS JOIN conversation ON conversationId = stream
         ${where(filter.workspaceId !== undefined && 'workspaceId = ?', filter.archived !== undefined && 'archived = ?', filter.before !== undefined && 'updatedAt < ?')}
         ORDER BY updatedAt DESC LIMIT ?`,
        ...present(
          filter.workspaceId,
          filter.archived === undefined ? undefined : Number(filter.archived),
          filter.before,
          filter.limit,
        ),
      )
      .map(conversationRow);

  const receipts: Reads['receipts'] = (filter) =>
    sql.all<ReceiptRow>(
      `SELECT * FROM receipt ${where(filter.conversationId !== undefined && 'conversationId = ?', filter.beforeSeq !== undefined && 'seq < ?')}
       ORDER BY seq DESC LIMIT ?`,
      ...present(filter.conversationId, filter.beforeSeq, filter.limit),
    );

  const states = { pending: "state = 'pending'", decided: "state <> 'pending'", all: false } as const;
  const approvals: Reads['approvals'] = (filter) =>
    sql.all<ApprovalRecord>(
      `SELECT * FROM approval ${where(states[filter.state], filter.conversationId !== undefined && 'conversationId = ?', filter.before !== undefined && (filter.beforeId === undefined ? 'requestedAt < ?' : '(requestedAt, approvalId) < (?, ?)'))}
       ORDER BY requestedAt DESC, approvalId DESC LIMIT ?`,
      ...present(
        filter.conversationId,
        filter.before,
        filter.before === undefined ? undefined : filter.beforeId,
        filter.limit,
      ),
    );

  const session = (row: Stored<SessionRow, 'revoked'>): SessionRow => ({ ...row, revoked: row.revoked === 1 });

  /** In pages, so that a commit between two rows never meets an open cursor. */
  const paged = function* <Row extends { readonly seq: number }>(
    page: (after: number, limit: number) => Row[],
    afterSeq = 0,
  ): Generator<Row> {
    for (let after = afterSeq; ;) {
      const rows = page(after, limits.pageReceipts);
      yield* rows;
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.seq;
    }
  };

  return {
    meta: (name) => sql.get<{ value: string }>('SELECT value FROM meta WHERE name = ?', name)?.value ?? null,
    conversation,
    conversations,
    operation: (key) => sql.get<OperationRow>('SELECT * FROM operation WHERE key = ?', key),
    runningOperations: () =>
      sql.all<OperationRow>("SELECT * FROM operation WHERE state = 'running' ORDER BY acceptedAt"),
    lastReceipt: () => sql.get<ReceiptRow>('SELECT * FROM receipt ORDER BY seq DESC LIMIT 1'),
    receipt: (receiptId) => sql.get<ReceiptRow>('SELECT * FROM receipt WHERE receiptId = ?', receiptId),
    receiptsOf: (approvalId) =>
      sql.all<ReceiptRow>('SELECT * FROM receipt WHERE approvalId = ? ORDER BY seq', approvalId),
    receipts,
    allReceipts: () =>
      paged((after, limit) =>
        sql.all<ReceiptRow>('SELECT * FROM receipt WHERE seq > ? ORDER BY seq LIMIT ?', after, limit),
      ),
    toVerify: (afterSeq) => paged((after, limit) => sql.bare<VerifyRow>(`${toVerify} LIMIT ?`, after, limit), afterSeq),
    rotations: () => sql.all<ReceiptRow>("SELECT * FROM receipt WHERE kind = 'key-rotation' ORDER BY seq"),
    logSize: () => sql.get<{ size: number }>('SELECT coalesce(max(seq), 0) AS size FROM logNode')?.size ?? 0,
    logNode: (level, index) => {
      const row = sql.get<{ hash: Uint8Array }>(
        'SELECT substr(hashes, ?, 32) AS hash FROM logNode WHERE seq = ?',
        level * 32 + 1,
        (index + 1) * 2 ** level,
      );
      return row?.hash.length === 32 ? row.hash : null;
    },
    checkpoints: () => sql.all<CheckpointRow>('SELECT * FROM checkpoint ORDER BY size, at'),
    lastCheckpoint: (maxSize) =>
      sql.get<CheckpointRow>('SELECT * FROM checkpoint WHERE size <= ? ORDER BY size DESC, at LIMIT 1', maxSize),
    action: (sha256) =>
      sql.get<{ bytes: Uint8Array }>('SELECT bytes FROM action WHERE sha256 = ?', sha256)?.bytes ?? null,
    approval: (approvalId) => sql.get<ApprovalRecord>('SELECT * FROM approval WHERE approvalId = ?', approvalId),
    approvals,
    pendingApprovals: (conversationId) =>
      sql.get<{ pending: number }>(
        "SELECT count(*) AS pending FROM approval WHERE conversationId = ? AND state = 'pending'",
        conversationId,
      )?.pending ?? 0,
    rules: () =>
      sql
        .all<Stored<RuleRow, 'enabled'>>('SELECT * FROM rule ORDER BY createdAt, rowid')
        .map((row) => ({ ...row, enabled: row.enabled === 1 })),
    ruleHits: (ruleId, after) =>
      sql.get<{ hits: number }>('SELECT count(*) AS hits FROM ruleHit WHERE ruleId = ? AND at > ?', ruleId, after)
        ?.hits ?? 0,
    ground: (conversationId) => sql.get<GroundRow>('SELECT * FROM ground WHERE conversationId = ?', conversationId),
    sessions: () => sql.all<Stored<SessionRow, 'revoked'>>('SELECT * FROM session ORDER BY createdAt').map(session),
    sessionByCookie: (cookieSha256) => {
      const row = sql.get<Stored<SessionRow, 'revoked'>>('SELECT * FROM session WHERE cookieSha256 = ?', cookieSha256);
      return row === null ? null : session(row);
    },
    workspaces: () =>
      sql
        .all<Stored<WorkspaceRow, 'practice' | 'forgotten'>>('SELECT * FROM workspace ORDER BY openedAt DESC')
        .map((row) => ({ ...row, practice: row.practice === 1, forgotten: row.forgotten === 1 })),
    trust: (workspaceId) => sql.get<TrustRow>('SELECT * FROM trust WHERE workspaceId = ?', workspaceId),
    agents: () => sql.all('SELECT agentId, spec FROM agent ORDER BY agentId'),
    view: (conversationId) =>
      sql.get<{ state: string }>('SELECT state FROM view WHERE conversationId = ?', conversationId)?.state ?? null,
    fileCheckpoints: (conversationId) =>
      sql
        .all<Stored<FileCheckpointRow, 'pruned'>>(
          'SELECT * FROM fileCheckpoint WHERE conversationId = ? ORDER BY rowid',
          conversationId,
        )
        .map(fileCheckpoint),
    openRestores: () =>
      sql
        .all<Stored<FileCheckpointRow, 'pruned'>>('SELECT * FROM fileCheckpoint WHERE restoring IS NOT NULL')
        .map(fileCheckpoint),
    worktree: (conversationId) =>
      sql.get<WorktreeRow>('SELECT * FROM worktree WHERE conversationId = ?', conversationId),
    worktrees: () => sql.all('SELECT * FROM worktree ORDER BY conversationId'),
    processes: () => sql.all('SELECT pid, startTime, marker FROM process ORDER BY marker'),
    openTurns: () => sql.all('SELECT conversationId, turnId, startedAt, startedSeq FROM turn ORDER BY startedAt'),
    openDrafts: () =>
      sql.all<{ conversationId: string }>('SELECT conversationId FROM draft').map((row) => row.conversationId),
    events: (conversationId, after, through) =>
      sql
        .all<{ body: string }>(
          'SELECT body FROM event WHERE stream = ? AND seq > ? AND seq <= ? AND EXISTS (SELECT 1 FROM stream WHERE stream.stream = event.stream) ORDER BY seq',
          conversationId,
          after,
          through,
        )
        .map((row) => JSON.parse(row.body) as AnyEvent),
  };
};
