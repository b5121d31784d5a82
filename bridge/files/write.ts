/**
 * Replaces or makes one file, atomically (F-05, T61): temporary file in the same directory by descriptor, fsync, rename,
 * fsync of the directory. The rule not to break: nothing is written through a link, and nothing over a state of the file
 * that the caller has not seen. Bytes are written exactly as given. Called by root.ts, for agents and for restores.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  writeSync,
  type BigIntStats,
} from 'node:fs';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { isName, systemCode, type Beneath, type Directory, type Segments } from './beneath.ts';
import type { EntryContent } from './contract.ts';
import { revisionOf } from './revision.ts';

/**
 * `expect` is the revision the caller has seen, or null where it saw no file; then missing parent folders are made.
 * @throws Refusal file_changed, content_too_large, symlink_refused, not_a_file, unsupported_file_type, and as the walk
 */
export const writeFile = (
  beneath: Beneath,
  segments: Segments,
  bytes: Uint8Array,
  expect: string | null,
  mayReplace: (stat: BigIntStats) => void,
): { revision: string; sha256: string } => {
  const name = segments.at(-1);
  if (name === undefined || !isName(name)) throw new Refusal('not_a_file');
  if (bytes.length > limits.writeBytes) throw new Refusal('content_too_large');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const replace = (directory: Directory) => {
    const before = existing(directory, name, expect);
    if (before !== null) mayReplace(before);
    return withTemporary(directory, bytes, before, (temporary, fd) => {
      // Looked at again as late as can be: what remains is the time between two system calls.
      existing(directory, name, expect);
      putName(directory, temporary, name, expect);
      syncDirectory(directory);
      return { revision: revisionOf(fstatSync(fd, { bigint: true })), sha256 };
    });
  };
  return beneath.directory(segments.slice(0, -1), replace, expect === null);
};

/**
 * Makes the entry at the path this file or link, over the file or link the caller has seen at it. What a link leads to is
 * for the caller to judge; it is not looked at. Returns the new revision.
 * @throws Refusal as `writeFile`; content_too_large above `limits.checkpointFileBytes`
 */
export const putEntry = (
  beneath: Beneath,
  segments: Segments,
  content: EntryContent,
  expect: string | null,
  mayReplace: (stat: BigIntStats) => void,
): string => {
  const name = segments.at(-1);
  if (name === undefined || !isName(name)) throw new Refusal('not_a_file');
  if (content.kind === 'file' && content.bytes.length > limits.checkpointFileBytes)
    throw new Refusal('content_too_large');
  const replace = (directory: Directory): string => {
    const before = existing(directory, name, expect, true);
    if (before !== null) mayReplace(before);
    if (content.kind === 'symlink') return putLink(directory, name, content.target, expect);
    const put = (temporary: string, fd: number): string => {
      existing(directory, name, expect, true);
      putName(directory, temporary, name, expect);
      syncDirectory(directory);
      return revisionOf(fstatSync(fd, { bigint: true }));
    };
    return withTemporary(directory, content.bytes, before, put, content.executable);
  };
  return beneath.directory(segments.slice(0, -1), replace, expect === null);
};

const putLink = (directory: Directory, name: string, target: Buffer, expect: string | null): string => {
  if (expect === null) symlinkSync(target, directory.at(name));
  else {
    const temporary = temporaryName();
    symlinkSync(target, directory.at(temporary));
    try {
      existing(directory, name, expect, true);
      renameSync(directory.at(temporary), directory.at(name));
    } catch (error) {
      removeIfThere(directory.at(temporary));
      throw error;
    }
  }
  syncDirectory(directory);
  return revisionOf(lstatSync(directory.at(name), { bigint: true }));
};

/**
 * Removes the file or link the caller has seen, and the folders above it that are empty then.
 * @throws Refusal file_changed, not_a_file, unsupported_file_type, and as the walk
 */
export const removeEntry = (beneath: Beneath, segments: Segments, expect: string): void => {
  const name = segments.at(-1);
  if (name === undefined) throw new Refusal('not_a_file');
  beneath.directory(segments.slice(0, -1), (directory) => {
    existing(directory, name, expect, true);
    unlinkSync(directory.at(name));
    syncDirectory(directory);
  });
  for (let depth = segments.length - 1; depth > 0; depth -= 1) {
    const folder = segments[depth - 1] ?? '';
    if (!beneath.directory(segments.slice(0, depth - 1), (above) => removeIfEmpty(above.at(folder)))) return;
  }
};

const removeIfEmpty = (path: string): boolean => {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'ENOENT', 'EBUSY'].includes(systemCode(error) ?? '')) return false;
    throw error;
  }
};

/** The file as it is, when that is what the caller has seen; also the link itself where that may be replaced. */
const existing = (directory: Directory, name: string, expect: string | null, mayBeLink = false): BigIntStats | null => {
  const stat = lstatSync(directory.at(name), { bigint: true, throwIfNoEntry: false });
  if (stat === undefined) {
    if (expect !== null) throw new Refusal('file_changed');
    return null;
  }
  if (stat.isSymbolicLink() && !mayBeLink) throw new Refusal('symlink_refused');
  if (stat.isDirectory()) throw new Refusal('not_a_file');
  if (!stat.isFile() && !stat.isSymbolicLink()) throw new Refusal('unsupported_file_type');
  if (revisionOf(stat) !== expect) throw new Refusal('file_changed');
  return stat;
};

const temporaryName = (): string => `.${randomBytes(12).toString('hex')}.tmp`;

const withTemporary = <T>(
  directory: Directory,
  bytes: Uint8Array,
  before: BigIntStats | null,
  use: (temporary: string, fd: number) => T,
  executable?: boolean,
): T => {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const temporary = temporaryName();
  const fd = openSync(directory.at(temporary), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
    dress(fd, before, executable);
    fsyncSync(fd);
    const result = use(temporary, fd);
    closeSync(fd);
    return result;
  } catch (error) {
    closeSync(fd);
    removeIfThere(directory.at(temporary));
    throw error;
  }
};

/** Owner and mode of what is replaced. Set-id bits are dropped, as the kernel does when a file is written to. */
const dress = (fd: number, before: BigIntStats | null, executable?: boolean): void => {
  const replaced = before?.isFile() === true ? before : null; // the mode of a link says nothing
  if (replaced !== null && process.geteuid?.() === 0) fchownSync(fd, Number(replaced.uid), Number(replaced.gid));
  const mode = replaced === null ? 0o666 & ~process.umask() : Number(replaced.mode & 0o777n);
  fchmodSync(fd, executable === undefined ? mode : executable ? mode | ((mode & 0o444) >> 2) : mode & ~0o111);
};

const putName = (directory: Directory, temporary: string, name: string, expect: string | null): void => {
  if (expect !== null) return renameSync(directory.at(temporary), directory.at(name));
  try {
    // A link never replaces: two writers of a new file cannot both win.
    linkSync(directory.at(temporary), directory.at(name));
    unlinkSync(directory.at(temporary));
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw new Refusal('file_changed', { cause: error });
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(systemCode(error) ?? '')) throw error;
    renameSync(directory.at(temporary), directory.at(name)); // a disk without hard links
  }
};

const syncDirectory = (directory: Directory): void => {
  // The walked descriptor is O_PATH, which cannot be synced.
  const fd = openSync(directory.at('.'), constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
};

const removeIfThere = (path: string): void => {
  try {
    unlinkSync(path);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
  }
};
