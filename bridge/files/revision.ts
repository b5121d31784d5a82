/** What tells one state of a file from another (F-03). Opaque to every caller; compared as text. Called by this room. */
import type { BigIntStats } from 'node:fs';

/** Device, inode, size, and both times in nanoseconds: ctime catches an edit that puts mtime back. At most 128 characters. */
export const revisionOf = (stat: BigIntStats): string =>
  `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;

export const typeOf = (
  stat: Pick<BigIntStats, 'isFile' | 'isDirectory' | 'isSymbolicLink'>,
): 'file' | 'directory' | 'symlink' | 'other' =>
  stat.isFile() ? 'file' : stat.isDirectory() ? 'directory' : stat.isSymbolicLink() ? 'symlink' : 'other';

/** Milliseconds since the epoch; a time before it is the epoch. */
export const modifiedAtOf = (stat: BigIntStats): number => Math.max(0, Number(stat.mtimeNs / 1_000_000n));
