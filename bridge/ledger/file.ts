/**
 * Opens the database file: ours, of a version we know, with the pragmas durability and safety rest on.
 * A newer, foreign or corrupt file is refused in words and left exactly as it was (L-24).
 * Called by ledger.ts (the one writer, and readers without a bridge) and by reader.ts.
 */
import { closeSync, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { applicationId, migrate, migrations } from './schema.ts';

export const ledgerPath = (directory: string): string => join(directory, 'ledger.db');

const magic = 'SQLite format 3\0';
const refused = (message: string, cause?: unknown): Refusal => new Refusal('storage_refused', { message, cause });

/** `fresh` when there is nothing in the file yet, also after a crash between its making and its first table. */
const checkHeader = (path: string): 'fresh' | 'database' => {
  const handle = openSync(path, 'r');
  try {
    if (fstatSync(handle).size === 0) return 'fresh';
    const head = Buffer.alloc(magic.length);
    readSync(handle, head, 0, head.length, 0);
    if (head.toString('latin1') !== magic)
      throw refused(`${path} is not a Countersign ledger. Move it away, or name another state directory with --state.`);
    return 'database';
  } finally {
    closeSync(handle);
  }
};

const checkFile = (path: string): void => {
  const facts = lstatSync(path);
  const mine = process.getuid === undefined || facts.uid === process.getuid();
  if (!facts.isFile() || !mine)
    throw refused(`${path} must be a regular file of your own. Move it away and start again.`);
  if ((facts.mode & 0o077) !== 0) throw refused(`${path} can be read by others. Run: chmod 600 '${path}'`);
};

/** Reads whose file it is and of which version, on a connection that cannot write. */
const checkVersion = (path: string): 'fresh' | 'known' => {
  let db: DatabaseSync | null = null;
  try {
    db = new DatabaseSync(path, { readOnly: true, timeout: limits.busyMs });
    const id = db.prepare('PRAGMA application_id').get()?.['application_id'];
    const version = Number(db.prepare('PRAGMA user_version').get()?.['user_version']);
    const tables = Number(db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get()?.['tables']);
    if (id === 0 && version === 0 && tables === 0) return 'fresh';
    if (id !== applicationId)
      throw refused(`${path} belongs to another program. Move it away, or name another state directory with --state.`);
    if (version > migrations.length) {
      throw refused(
        `${path} was written by a newer version of Countersign. Update Countersign, or name another state directory with --state.`,
      );
    }
    return 'known';
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw refused(
      `${path} is damaged and was left as it is. Put a backup in its place, or name another state directory with --state.`,
      error,
    );
  } finally {
    db?.close();
  }
};

/** The writer's connection; `fresh` when there was nothing in the file. */
export interface Opened {
  readonly db: DatabaseSync;
  readonly fresh: boolean;
}

/** @throws Refusal storage_refused */
export const openWriter = (path: string, maxPages?: number): Opened => {
  // 'a' makes the file 0600 before SQLite sees it; its -wal and -shm take the same mode.
  closeSync(openSync(path, 'a', 0o600));
  checkFile(path);
  const fresh = checkHeader(path) === 'fresh' || checkVersion(path) === 'fresh';
  const db = new DatabaseSync(path, { timeout: limits.busyMs, defensive: true, enableForeignKeyConstraints: true });
  try {
    db.exec(`
      PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1;
      PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA recursive_triggers = ON;
      PRAGMA temp_store = MEMORY;
      PRAGMA secure_delete = ON; PRAGMA journal_size_limit = ${limits.journalBytes};
    `);
    migrate(db);
    if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`);
  } catch (error) {
    db.close();
    throw refused(
      `${path} could not be opened: ${error instanceof Error ? error.message : 'unknown reason'}. It was left as it is.`,
      error,
    );
  }
  return { db, fresh };
};

/** A connection that cannot write, for long reads. @throws Refusal storage_refused */
export const openReader = (path: string): DatabaseSync => {
  if (checkVersion(path) === 'fresh') throw refused(`${path} holds nothing yet.`);
  const db = new DatabaseSync(path, { readOnly: true, timeout: limits.busyMs, defensive: true });
  if (Number(db.prepare('PRAGMA user_version').get()?.['user_version']) < migrations.length) {
    db.close();
    throw refused(`${path} was last used by an older version of Countersign. Start the bridge once, then ask again.`);
  }
  db.exec('PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA query_only = ON;');
  return db;
};
