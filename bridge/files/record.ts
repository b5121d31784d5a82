/**
 * Looks at many files, for a checkpoint or a survey: their states without opening them, and the bytes of some of them.
 * The rule not to break: what the walk or the secret policy refuses has no bytes here either. Called by root.ts.
 */
import { isUtf8 } from 'node:buffer';
import { lstatSync, readlinkSync, type BigIntStats } from 'node:fs';
import { Refusal } from '#protocol/errors.ts';
import { objectOf, parsePath, systemCode, type Beneath, type Directory, type Leaf } from './beneath.ts';
import type { FileState, Recorder } from './contract.ts';
import { readAt } from './lines.ts';
import { resolve } from './list.ts';
import { readWhole, steady } from './read.ts';
import { revisionOf } from './revision.ts';
import { isSecretPath } from './secrets.ts';

/** `isSecretObject` is asked only of files with more than one name. */
export const createRecorder = (beneath: Beneath, isSecretObject: (object: string) => boolean): Recorder => {
  const isHidden = (stat: BigIntStats): boolean => stat.isFile() && stat.nlink > 1n && isSecretObject(objectOf(stat));

  const stateOf = (directory: Directory, name: string): FileState | null => {
    if (isSecretPath([name])) return { kind: 'secret' };
    const stat = lstatSync(directory.at(name), { bigint: true, throwIfNoEntry: false });
    if (stat === undefined) return null;
    const revision = revisionOf(stat);
    const changedAt = Number((stat.mtimeNs > stat.ctimeNs ? stat.mtimeNs : stat.ctimeNs) / 1_000_000n);
    if (stat.isSymbolicLink())
      return { kind: 'symlink', revision, changedAt, target: readlinkSync(directory.at(name), { encoding: 'buffer' }) };
    if (!stat.isFile()) return { kind: stat.isDirectory() ? 'folder' : 'other' };
    if (isHidden(stat)) return { kind: 'secret' };
    return { kind: 'file', revision, changedAt, bytes: Number(stat.size), executable: (stat.mode & 0o100n) !== 0n };
  };
  const stateOrNone = (directory: Directory, name: string): FileState | null => {
    try {
      return stateOf(directory, name);
    } catch (error) {
      const code = systemCode(error);
      if (code === 'ENOENT' || code === 'EINVAL') return null; // replaced between two looks
      if (code === null) throw error;
      return { kind: 'unreadable' };
    }
  };
  const open = <T>(path: string, use: (leaf: Leaf) => T): T => {
    const segments = parsePath(path);
    if (isSecretPath(segments)) throw new Refusal('path_denied');
    return beneath.leaf(segments, (leaf) => {
      if (isHidden(leaf.stat)) throw new Refusal('path_denied');
      return use(leaf);
    });
  };

  return {
    states: (folder, names) => {
      const segments = parsePath(folder);
      // Asked once for the folder, with a harmless name, and then of each name alone.
      if (isSecretPath([...segments, 'x'])) return names.map(() => ({ kind: 'secret' }));
      try {
        return beneath.directory(segments, (directory) => names.map((name) => stateOrNone(directory, name)));
      } catch (error) {
        if (!(error instanceof Refusal) || error.code === 'workspace_unavailable') throw error;
        const isGone = error.code === 'not_found' || error.code === 'not_a_directory';
        return names.map(() => (isGone ? null : { kind: 'unreadable' }));
      }
    },
    read: (path, maxBytes) => open(path, (leaf) => readWhole(leaf, maxBytes)),
    head: (path, maxBytes) =>
      open(path, (leaf) => steady(leaf, (fd, size) => readAt(fd, 0, Math.min(size, maxBytes))).value),
    isSafeLink: (path, target) => {
      if (!isUtf8(target)) return false;
      const leads = resolve(beneath.path, parsePath(path).slice(0, -1), target.toString('utf8'));
      return leads !== null && !isSecretPath(leads);
    },
  };
};
