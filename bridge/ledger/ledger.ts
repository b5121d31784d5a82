/**
 * The ledger of one installation: one writer, its feed, its blobs, its reader. Composed here; every rule lives in the
 * file named for it. Opened by main under the state lock, and by tests.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { blobPath, checkUpload, hasBlobRoom, ownBlob, removeUnowned, stageBlob, sweepBlobs } from './blobs.ts';
import { Commits } from './commits.ts';
import type { Blobs, Ledger, Reads } from './contract.ts';
import { Drafts } from './drafts.ts';
import { LedgerFeed } from './feed.ts';
import { ledgerPath, openReader, openWriter, type Opened } from './file.ts';
import { Questions } from './questions.ts';
import { makeReads } from './reads.ts';
import { metaNames } from './schema.ts';
import { Statements } from './statements.ts';
import { Sweep } from './sweep.ts';
import { bridgeStream, makeTx } from './tx.ts';

export interface LedgerOptions {
  /** Holds ledger.db; must exist and be private. */
  readonly directory: string;
  /** Holds the blob files; must exist and be private. */
  readonly blobs: string;
  /** Already open; this ledger closes it. */
  readonly opened?: Opened | undefined;
  /** Cap of one conversation's retained transcript; limits.transcriptBytes unless configured. */
  readonly transcriptBytes?: number;
  /** Most pages (4 KiB) the file may have; unbounded unless given. */
  readonly maxPages?: number;
  readonly now?: () => number;
  readonly random?: (bytes: number) => Uint8Array;
  /** Told why writing ended. Never given content. */
  readonly log?: (message: string, error: unknown) => void;
}

/** @throws Refusal storage_refused: newer, foreign or damaged; the file is left as it was */
export const openLedger = (options: LedgerOptions): Ledger => {
  const path = ledgerPath(options.directory);
  const { db, fresh } = options.opened ?? openWriter(path, options.maxPages);
  const sql = new Statements(db);
  const reads = makeReads(sql);
  const now = options.now ?? Date.now;
  const log = options.log ?? (() => undefined);
  const uncleanStop = !fresh && reads.meta(metaNames.clean) === '0';
  db.exec('BEGIN IMMEDIATE');
  const { bridgeId, lineage } = firstWrites(sql, reads, now);
  db.exec('COMMIT');
  if (uncleanStop) sweepBlobs(options.blobs, sql);

  let hasFailed = false;
  const drafts = new Drafts(() => commits.saveDrafts());
  drafts.load(sql);
  const commits: Commits = new Commits(db, {
    begun: () => drafts.save(sql),
    rolledBack: (work) => removeUnowned(options.blobs, sql, work.written),
    failed: (error) => {
      hasFailed = true;
      log('The storage failed; the bridge is read-only from here on.', error);
    },
    effectFailed: (error) => log('A commit stands, but what follows it failed.', error),
  });
  const feed = new LedgerFeed({
    sql,
    lineage,
    drafts,
    settle: () => commits.settle(),
    isReadOnly: () => commits.readOnly,
  });
  const random = options.random ?? randomBytes;
  const sweep = new Sweep(sql, commits, (error) => log('A deleted conversation could not be cleared away.', error));
  const transcriptBytes = options.transcriptBytes ?? limits.transcriptBytes;
  const parts = {
    sql,
    reads,
    drafts,
    feed,
    blobs: options.blobs,
    deleted: () => sweep.start(),
    transcriptBytes,
    now,
    random,
  };
  commits.use(makeTx(parts, commits.current));
  sweep.start();
  const questions = new Questions(path);
  let closing: Promise<void> | null = null;

  const close = async (): Promise<void> => {
    sweep.stop();
    drafts.close();
    commits.saveDrafts();
    commits.end();
    feed.close();
    await questions.close();
    if (!hasFailed) {
      sql.run('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)', metaNames.clean, '1');
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    }
    db.close();
  };

  return {
    bridgeId,
    lineage,
    get readOnly() {
      return commits.readOnly;
    },
    read: reads,
    feed,
    blobs: makeBlobs(options.blobs, sql, commits),
    commit: (work) => commits.commit(work),
    history: (conversationId, where, limit) => {
      const known = sql.get('SELECT 1 FROM stream WHERE stream = ?', conversationId) !== null;
      return known
        ? questions.history(conversationId, where, limit)
        : Promise.reject(new Refusal('unknown_conversation'));
    },
    search: (query, filter) => questions.search(query, filter),
    scan: (conversationId) => questions.scan(conversationId),
    quickCheck: async () => {
      const problems = await questions.quickCheck();
      if (problems.length > 0) commits.fail(new Error(`quick_check: ${problems[0] ?? ''}`));
      return problems;
    },
    uncleanStop,
    close: () => (closing ??= close()),
  };
};

/** Ids on the first start; from here until an orderly end the state counts as unclean. */
const firstWrites = (sql: Statements, reads: Reads, now: () => number): { bridgeId: string; lineage: string } => {
  const put = (name: string, value: string): string => {
    sql.run('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)', name, value);
    return value;
  };
  sql.run('INSERT OR IGNORE INTO stream (stream, updatedAt) VALUES (?, ?)', bridgeStream, now());
  const bridgeId = reads.meta(metaNames.bridgeId) ?? put(metaNames.bridgeId, randomUUID());
  const lineage = reads.meta(metaNames.lineage) ?? put(metaNames.lineage, randomUUID());
  put(metaNames.clean, '0');
  put(metaNames.openedAt, String(now()));
  return { bridgeId, lineage };
};

const makeBlobs = (directory: string, sql: Statements, commits: Commits): Blobs => ({
  put: async (conversationId, bytes, about) => {
    const checked = checkUpload(bytes, about);
    if (commits.readOnly) throw new Refusal('read_only');
    const staged = await stageBlob(directory, bytes).catch((error: unknown) => Promise.reject(commits.judge(error)));
    const ref = { sha256: staged.sha256, bytes: bytes.length, ...checked };
    try {
      await commits.commit((tx) => {
        if (tx.conversation(conversationId) === null) throw new Refusal('unknown_conversation');
        if (!hasBlobRoom(sql, conversationId, [ref]))
          throw new Refusal('content_too_large', { details: { maxBytes: limits.conversationBlobBytes } });
        staged.settle();
        commits.current().written.push(ref.sha256);
        ownBlob(sql, conversationId, ref);
      });
      return ref;
    } finally {
      await staged.discard();
    }
  },
  read: (conversationId, sha256) => {
    const row = sql.get<{ bytes: number; mime: string; name: string | null }>(
      'SELECT bytes, mime, name FROM blobOwner WHERE conversationId = ? AND sha256 = ?',
      conversationId,
      sha256,
    );
    return row === null ? null : { path: blobPath(directory, sha256), ...row };
  },
});

/** The ledger when no bridge runs, for the CLI: the same reads on connections that cannot write. */
export interface ReadOnlyLedger extends Pick<Ledger, 'history' | 'search' | 'scan' | 'quickCheck'> {
  readonly read: Reads;
  /** From the next read on `read` sees one state of the database, whatever a running bridge adds. */
  freeze(): void;
  close(): Promise<void>;
}

/** @param directory as for openLedger @throws Refusal storage_refused: nothing there, newer, foreign or damaged */
export const openLedgerReadOnly = (directory: string): ReadOnlyLedger => {
  const path = ledgerPath(directory);
  const db = openReader(path);
  const sql = new Statements(db);
  const questions = new Questions(path);
  return {
    read: makeReads(sql),
    freeze: () => db.exec('BEGIN'),
    history: (conversationId, where, limit) => {
      const known = sql.get('SELECT 1 FROM stream WHERE stream = ?', conversationId) !== null;
      return known
        ? questions.history(conversationId, where, limit)
        : Promise.reject(new Refusal('unknown_conversation'));
    },
    search: (query, filter) => questions.search(query, filter),
    scan: (conversationId) => questions.scan(conversationId),
    quickCheck: () => questions.quickCheck(),
    close: async () => {
      await questions.close();
      db.close();
    },
  };
};
