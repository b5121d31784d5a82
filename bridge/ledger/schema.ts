/**
 * The tables, as numbered migrations that are never edited: a change is a new one at the end. STRICT everywhere.
 * The log and the receipts are guarded by triggers, so that not even a bug of ours can rewrite them.
 * Run by file.ts on the writer's connection.
 */
import type { DatabaseSync } from 'node:sqlite';

/** Names in `meta` that are the ledger's own. */
export const metaNames = {
  bridgeId: 'ledger.bridgeId',
  lineage: 'ledger.lineage',
  /** '1' after an orderly end only. */
  clean: 'ledger.clean',
  /** When this start opened the log: what is older was written by an earlier one. */
  openedAt: 'ledger.openedAt',
  /** Words of deleted conversations may still stand in the search index. */
  merging: 'ledger.merging',
} as const;

/** Marks a file as ours (`PRAGMA application_id`): "Csgn". */
export const applicationId = 0x4373676e;

const first = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- A stream is a conversation or 'bridge'. updatedAt is unique, so that pages of the list neither skip nor repeat.
CREATE TABLE stream (
  stream TEXT PRIMARY KEY,
  lastSeq INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0,
  isFull INTEGER NOT NULL DEFAULT 0,
  updatedAt INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

CREATE TABLE conversation (
  conversationId TEXT PRIMARY KEY REFERENCES stream (stream),
  workspaceId TEXT NOT NULL,
  workspacePath TEXT NOT NULL,
  title TEXT NOT NULL,
  agentId TEXT NOT NULL,
  agentTitle TEXT NOT NULL,
  createdAt INTEGER NOT NULL,
  archived INTEGER NOT NULL,
  sessionId TEXT,
  lastStop TEXT,
  header TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tombstone (conversationId TEXT PRIMARY KEY, deletedAt INTEGER NOT NULL, lastSeq INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Events outlive their stream's row by the time it takes to sweep them. body is the exact JSON text of the whole event; bytes its UTF-8 size. block: a block of the outline begins here.
CREATE TABLE event (
  place INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  stream TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  block INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (stream, seq)
) STRICT;
CREATE INDEX eventBlock ON event (stream, seq) WHERE block = 1;

-- A deleted conversation whose events are still being cleared away (sweep.ts); its other rows are gone already.
CREATE TABLE deletion (stream TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TRIGGER eventImmutable BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER eventKept BEFORE DELETE ON event WHEN NOT EXISTS (SELECT 1 FROM deletion WHERE stream = OLD.stream)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER eventGapless BEFORE INSERT ON event
WHEN NEW.seq <> 1 + coalesce((SELECT max(seq) FROM event WHERE stream = NEW.stream), 0)
BEGIN SELECT RAISE(ABORT, 'the log has no gaps'); END;

CREATE TABLE turn (turnId TEXT PRIMARY KEY, conversationId TEXT NOT NULL REFERENCES stream (stream) ON DELETE CASCADE, startedAt INTEGER NOT NULL, startedSeq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX turnConversation ON turn (conversationId);

CREATE TABLE draft (
  conversationId TEXT PRIMARY KEY REFERENCES stream (stream) ON DELETE CASCADE,
  messageId TEXT NOT NULL,
  turnId TEXT,
  role TEXT NOT NULL,
  part INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- A draft grows by pieces: only what is new is written.
CREATE TABLE draftPiece (
  conversationId TEXT NOT NULL REFERENCES draft (conversationId) ON DELETE CASCADE,
  startUnits INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (conversationId, startUnits)
) STRICT;

CREATE TABLE operation (
  key TEXT PRIMARY KEY,
  method TEXT NOT NULL,
  paramsSha256 TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'uncertain')),
  result TEXT,
  acceptedAt INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX operationRunning ON operation (acceptedAt) WHERE state = 'running';

CREATE TABLE receipt (
  seq INTEGER PRIMARY KEY,
  receiptId TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  conversationId TEXT,
  approvalId TEXT,
  at INTEGER NOT NULL,
  payload BLOB NOT NULL,
  signature BLOB NOT NULL,
  keyId TEXT NOT NULL,
  actionSha256 TEXT,
  value TEXT,
  outcome TEXT,
  by TEXT,
  sentence TEXT NOT NULL
) STRICT;
CREATE INDEX receiptConversation ON receipt (conversationId, seq);
CREATE INDEX receiptApproval ON receipt (approvalId, seq) WHERE approvalId IS NOT NULL;
CREATE TRIGGER receiptImmutable BEFORE UPDATE ON receipt BEGIN SELECT RAISE(ABORT, 'receipts are never changed'); END;
CREATE TRIGGER receiptKept BEFORE DELETE ON receipt BEGIN SELECT RAISE(ABORT, 'receipts are never removed'); END;
CREATE TRIGGER receiptGapless BEFORE INSERT ON receipt WHEN NEW.seq <> 1 + coalesce((SELECT max(seq) FROM receipt), 0)
BEGIN SELECT RAISE(ABORT, 'receipts have no gaps'); END;

CREATE TABLE action (sha256 TEXT PRIMARY KEY, bytes BLOB NOT NULL, conversationId TEXT) STRICT;
CREATE INDEX actionConversation ON action (conversationId) WHERE conversationId IS NOT NULL;

CREATE TABLE approval (
  approvalId TEXT PRIMARY KEY,
  conversationId TEXT NOT NULL,
  turnId TEXT,
  toolCallId TEXT,
  kind TEXT NOT NULL,
  digest TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'allowed', 'denied', 'withdrawn', 'expired')),
  requestedAt INTEGER NOT NULL,
  requestedSeq INTEGER NOT NULL,
  expiresAt INTEGER NOT NULL,
  decidedAt INTEGER,
  receiptId TEXT,
  reason TEXT,
  by TEXT,
  rule TEXT,
  note TEXT,
  outcome TEXT,
  request TEXT NOT NULL
) STRICT;
CREATE INDEX approvalTime ON approval (requestedAt);
CREATE INDEX approvalConversation ON approval (conversationId, requestedAt);
CREATE INDEX approvalPending ON approval (conversationId) WHERE state = 'pending';

CREATE TABLE rule (
  ruleId TEXT PRIMARY KEY,
  effect TEXT NOT NULL CHECK (effect IN ('allow', 'reject')),
  kind TEXT NOT NULL,
  agentId TEXT NOT NULL,
  workspaceId TEXT NOT NULL,
  match TEXT NOT NULL,
  sentence TEXT NOT NULL,
  createdAt INTEGER NOT NULL,
  hits INTEGER NOT NULL,
  lastHitAt INTEGER,
  enabled INTEGER NOT NULL
) STRICT;

CREATE TABLE session (
  sessionId TEXT PRIMARY KEY,
  cookieSha256 TEXT NOT NULL UNIQUE,
  publicKeySpki BLOB NOT NULL,
  keyId TEXT NOT NULL,
  client TEXT NOT NULL,
  port INTEGER NOT NULL,
  createdAt INTEGER NOT NULL,
  seenAt INTEGER NOT NULL,
  expiresAt INTEGER NOT NULL,
  revoked INTEGER NOT NULL
) STRICT;

CREATE TABLE workspace (
  workspaceId TEXT PRIMARY KEY,
  path TEXT NOT NULL,
  dev TEXT NOT NULL,
  ino TEXT NOT NULL,
  practice INTEGER NOT NULL,
  openedAt INTEGER NOT NULL,
  forgotten INTEGER NOT NULL
) STRICT;

CREATE TABLE trust (workspaceId TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, acceptedAt INTEGER NOT NULL, receiptId TEXT NOT NULL) STRICT;
CREATE TABLE agent (agentId TEXT PRIMARY KEY, spec TEXT NOT NULL) STRICT;
CREATE TABLE view (conversationId TEXT PRIMARY KEY REFERENCES stream (stream) ON DELETE CASCADE, state TEXT NOT NULL) STRICT;
CREATE TABLE process (marker TEXT PRIMARY KEY, pid INTEGER NOT NULL, startTime TEXT NOT NULL) STRICT;

-- A blob's file lives as long as one conversation owns it.
CREATE TABLE blobOwner (
  conversationId TEXT NOT NULL REFERENCES stream (stream),
  sha256 TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  mime TEXT NOT NULL,
  name TEXT,
  PRIMARY KEY (conversationId, sha256)
) STRICT, WITHOUT ROWID;
CREATE INDEX blobOwnerSha256 ON blobOwner (sha256);

-- What search finds: words of messages, titles and paths of tool calls. U+0001 and U+0002 mark hits, so they are taken out.
CREATE VIEW searchable AS
SELECT place, stream, replace(replace(CASE type
  WHEN 'message' THEN json_extract(body, '$.data.text') || coalesce(' ' || json_extract(body, '$.data.blob.tail'), '')
  ELSE coalesce(json_extract(body, '$.data.title'), '') || coalesce(
    (SELECT group_concat(' ' || json_extract(location.value, '$.path'), '') FROM json_each(body, '$.data.locations') AS location), '')
  END, char(1), ' '), char(2), ' ') AS words
FROM event WHERE type IN ('message', 'tool.called', 'tool.updated');
CREATE VIRTUAL TABLE search USING fts5 (words, content = 'searchable', content_rowid = 'place', tokenize = 'unicode61');
`;

const log = `
-- The log over the receipts (RFC 6962): the complete nodes that each receipt adds, 32 bytes each, lowest first: its leaf, then every parent it is the last of.
CREATE TABLE logNode (seq INTEGER PRIMARY KEY REFERENCES receipt (seq), hashes BLOB NOT NULL CHECK (length(hashes) BETWEEN 32 AND 2048 AND length(hashes) % 32 = 0)) STRICT;
CREATE TRIGGER logNodeImmutable BEFORE UPDATE ON logNode BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER logNodeKept BEFORE DELETE ON logNode BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER logNodeGapless BEFORE INSERT ON logNode WHEN NEW.seq <> 1 + coalesce((SELECT max(seq) FROM logNode), 0)
BEGIN SELECT RAISE(ABORT, 'the log has no gaps'); END;

-- Signed states of the log, here and elsewhere (place): what later ones must agree with.
CREATE TABLE checkpoint (
  size INTEGER NOT NULL,
  root BLOB NOT NULL,
  note TEXT NOT NULL,
  at INTEGER NOT NULL,
  place TEXT NOT NULL,
  PRIMARY KEY (size, root, place)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER checkpointImmutable BEFORE UPDATE ON checkpoint BEGIN SELECT RAISE(ABORT, 'checkpoints are never changed'); END;
CREATE TRIGGER checkpointKept BEFORE DELETE ON checkpoint BEGIN SELECT RAISE(ABORT, 'checkpoints are never removed'); END;

CREATE INDEX receiptRotation ON receipt (seq) WHERE kind = 'key-rotation';
`;

/** Rules become data: the former exact ones are kept as such. */
const rulesAsData = `
ALTER TABLE rule RENAME TO exactRule;
-- draft is the rule as it was saved, JSON text; used counts its matches since then, hits for as long as there is history.
CREATE TABLE rule (
  ruleId TEXT PRIMARY KEY,
  source TEXT NOT NULL CHECK (source IN ('preset', 'remembered', 'operator')),
  draft TEXT NOT NULL,
  sentence TEXT NOT NULL,
  createdAt INTEGER NOT NULL,
  hits INTEGER NOT NULL,
  used INTEGER NOT NULL,
  lastHitAt INTEGER,
  enabled INTEGER NOT NULL
) STRICT;
INSERT INTO rule SELECT ruleId, 'remembered', json_object('effect', effect, 'agentId', agentId, 'workspaceId', workspaceId,
  'match', json_object('by', 'exact', 'digest', match), 'expiresAt', NULL, 'uses', NULL, 'limit', NULL),
  sentence, createdAt, hits, 0, lastHitAt, enabled FROM exactRule;
DROP TABLE exactRule;

-- The recent matches of a rule with a limit; older ones than its span are removed with each new one.
CREATE TABLE ruleHit (ruleId TEXT NOT NULL REFERENCES rule (ruleId) ON DELETE CASCADE, at INTEGER NOT NULL) STRICT;
CREATE INDEX ruleHitTime ON ruleHit (ruleId, at);

-- What allow rules stand on in a conversation: the accepted trust it began with, and why they pause for the rest of it.
CREATE TABLE ground (conversationId TEXT PRIMARY KEY, trust TEXT, paused TEXT) STRICT, WITHOUT ROWID;
`;

const checkpointsOfFiles = `
-- Files as they were, in the conversation's private store: store names what keeps the tree there, afterTree is what a restore left, restoring the receipt of one that has begun and not ended.
CREATE TABLE fileCheckpoint (
  checkpointId TEXT PRIMARY KEY,
  conversationId TEXT NOT NULL REFERENCES stream (stream) ON DELETE CASCADE,
  turnId TEXT,
  why TEXT NOT NULL CHECK (why IN ('before_turn', 'after_turn', 'before_restore')),
  at INTEGER NOT NULL,
  files INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  skipped INTEGER NOT NULL,
  tree TEXT NOT NULL,
  store TEXT NOT NULL,
  afterTree TEXT,
  restoring TEXT,
  pruned INTEGER NOT NULL
) STRICT;
CREATE INDEX fileCheckpointConversation ON fileCheckpoint (conversationId);
CREATE INDEX fileCheckpointRestoring ON fileCheckpoint (restoring) WHERE restoring IS NOT NULL;
`;

/** Who accepted, why, and what was seen then: JSON text, null for what was accepted before it was kept. */
const acceptances = `ALTER TABLE trust ADD COLUMN detail TEXT;`;

/** Folders made for child conversations; the row is there before the folder is, and detail is the git room's own JSON text. */
const worktrees = `
CREATE TABLE worktree (
  conversationId TEXT PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('making', 'ready', 'removing', 'removed')),
  detail TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`;

export const migrations: readonly string[] = [first, log, rulesAsData, checkpointsOfFiles, acceptances, worktrees];

/** Brings the tables up to this version, each step in its own transaction. The file must already be known to be ours. */
export const migrate = (db: DatabaseSync): void => {
  const done = db.prepare('PRAGMA user_version').get()?.['user_version'];
  for (const [index, text] of migrations.entries()) {
    if (index < Number(done)) continue;
    db.exec(
      `BEGIN IMMEDIATE; PRAGMA application_id = ${applicationId}; ${text} PRAGMA user_version = ${index + 1}; COMMIT;`,
    );
  }
};
