/**
 * Content outside the database: one 0600 file per sha256, owned by conversations through `blobOwner` rows. A file is
 * durable before the transaction that names it commits, and goes after the one that drops its last owner.
 * Used by tx.ts (texts moved out of events) and ledger.ts (uploads).
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlobRef } from '#protocol/events.ts';
import { Refusal } from '#protocol/errors.ts';
import { sha256Pattern } from '#protocol/ids.ts';
import { limits } from '#protocol/limits.ts';
import type { Statements } from './statements.ts';

export const blobPath = (directory: string, sha256: string): string => join(directory, sha256);
/** A blob file could not be written: the storage fails, whatever the reason. */
export class StorageFailure extends Error {}
const failing = (error: unknown): never => {
  throw new StorageFailure('a blob could not be written', { cause: error });
};

const temporary = (directory: string): string => join(directory, `.${randomBytes(12).toString('hex')}.tmp`);

const syncDirectory = (directory: string): void => {
  const handle = openSync(directory, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

/** Puts a finished temporary file in its place; the content is the name, so an existing one is the same. */
const place = (directory: string, from: string, sha256: string): void => {
  renameSync(from, blobPath(directory, sha256));
  syncDirectory(directory);
};

/** Writes a blob at once, inside a transaction. @throws StorageFailure */
export const writeBlob = (directory: string, sha256: string, bytes: Uint8Array): void => {
  if (existsSync(blobPath(directory, sha256))) return;
  const path = temporary(directory);
  try {
    writeDurably(path, bytes);
    place(directory, path, sha256);
  } catch (error) {
    rmSync(path, { force: true });
    failing(error);
  }
};

const writeDurably = (path: string, bytes: Uint8Array): void => {
  const handle = openSync(path, 'wx', 0o600);
  try {
    for (let done = 0; done < bytes.length;) done += writeSync(handle, bytes, done);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

/** Writes an upload beside its place without holding the event loop. `settle` runs inside the owning transaction. @throws StorageFailure */
export const stageBlob = async (
  directory: string,
  bytes: Uint8Array,
): Promise<{ sha256: string; settle(): void; discard(): Promise<void> }> => {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const path = temporary(directory);
  try {
    await writeFile(path, bytes, { flag: 'wx', mode: 0o600, flush: true });
  } catch (error) {
    await rm(path, { force: true });
    return failing(error);
  }
  return {
    sha256,
    settle: () => {
      try {
        place(directory, path, sha256);
      } catch (error) {
        failing(error);
      }
    },
    discard: () => rm(path, { force: true }),
  };
};

/** Whether the conversation may own these as well. */
export const hasBlobRoom = (sql: Statements, conversationId: string, refs: readonly BlobRef[]): boolean => {
  if (refs.length === 0) return true;
  const total = sql.get<{ total: number }>(
    'SELECT coalesce(sum(bytes), 0) AS total FROM blobOwner WHERE conversationId = ?',
    conversationId,
  );
  return refs.reduce((bytes, ref) => bytes + ref.bytes, total?.total ?? 0) <= limits.conversationBlobBytes;
};

/** Records an owner, inside a transaction; the file must be durable by then. */
export const ownBlob = (sql: Statements, conversationId: string, ref: BlobRef): void => {
  sql.run(
    'INSERT OR IGNORE INTO blobOwner (conversationId, sha256, bytes, mime, name) VALUES (?, ?, ?, ?, ?)',
    conversationId,
    ref.sha256,
    ref.bytes,
    ref.mime,
    ref.name ?? null,
  );
};

/** Removes the files among `hashes` that nobody owns any more. Call outside a transaction, after its COMMIT. */
export const removeUnowned = (directory: string, sql: Statements, hashes: readonly string[]): void => {
  for (const sha256 of hashes) {
    if (sql.get('SELECT 1 FROM blobOwner WHERE sha256 = ? LIMIT 1', sha256) !== null) continue;
    if (existsSync(blobPath(directory, sha256))) unlinkSync(blobPath(directory, sha256));
  }
};

/** After an unclean stop: half-written files and files no row names. */
export const sweepBlobs = (directory: string, sql: Statements): void => {
  const names = readdirSync(directory);
  for (const name of names) if (name.endsWith('.tmp')) unlinkSync(join(directory, name));
  removeUnowned(
    directory,
    sql,
    names.filter((name) => sha256Pattern.test(name)),
  );
};

const ascii = (bytes: Uint8Array, from: number, to: number): string =>
  Buffer.from(bytes.subarray(from, to)).toString('latin1');
/** First bytes of the image kinds that are shown (D-60). */
const imageChecks: Readonly<Record<string, (bytes: Uint8Array) => boolean>> = {
  'image/png': (bytes) => ascii(bytes, 0, 8) === '\x89PNG\r\n\x1a\n',
  'image/jpeg': (bytes) => ascii(bytes, 0, 3) === '\xff\xd8\xff',
  'image/gif': (bytes) => /^GIF8[79]a$/.test(ascii(bytes, 0, 6)),
  'image/webp': (bytes) => ascii(bytes, 0, 4) === 'RIFF' && ascii(bytes, 8, 12) === 'WEBP',
};

/** The reference's mime, name checked. @throws Refusal content_too_large, blob_unsupported */
export const checkUpload = (
  bytes: Uint8Array,
  about: { mime: string; name?: string | undefined },
): { mime: string; name?: string } => {
  if (bytes.length > limits.blobBytes)
    throw new Refusal('content_too_large', { details: { maxBytes: limits.blobBytes } });
  const mime = (about.mime.split(';')[0] ?? '').trim().toLowerCase();
  if (!/^[a-z0-9.+-]+\/[a-z0-9.+-]+$/.test(mime) || mime.length > 128) throw new Refusal('blob_unsupported');
  if (mime.startsWith('image/') && imageChecks[mime]?.(bytes) !== true) throw new Refusal('blob_unsupported');
  if (about.name === undefined) return { mime };
  if (about.name.length > limits.nameBytes) throw new Refusal('blob_unsupported');
  return { mime, name: about.name };
};
