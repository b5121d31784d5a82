/**
 * Which objects (device and inode) are secret under some name, for a file that has more than one (T60): a hard link
 * `notes.txt` to `.env` is `.env`. Bounded; the rule not to break is that what cannot be established counts as secret.
 * Called by root.ts only when an opened file has more than one name.
 */
import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { objectOf, type Beneath, type Segments } from './beneath.ts';
import { namesOf } from './list.ts';
import { homeSecrets, isSecretPath } from './secrets.ts';

/** Whether `object` bears a secret name in the workspace, below the home directory or in a private directory. */
export const isSecretObject = (
  beneath: Beneath,
  object: string,
  home: string,
  privateDirectories: readonly string[],
): boolean =>
  outside(home, privateDirectories).some((path) => identity(path) === object) || bearsSecretName(beneath, object);

const identity = (path: string): string | null => {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : objectOf(stat);
};

// These are the bridge's own and the operator's directories: plain paths are right here, no workspace name is opened.
const outside = (home: string, privateDirectories: readonly string[]): string[] => [
  ...homeSecrets.files.map((name) => join(home, name)),
  ...homeSecrets.directories.flatMap((name) => children(join(home, name))),
  ...privateDirectories.flatMap((directory) => children(directory, true)),
];

const children = (directory: string, deep = false): string[] => {
  try {
    return readdirSync(directory, { recursive: deep, encoding: 'utf8' })
      .slice(0, limits.directoryEntries)
      .map((name) => join(directory, name));
  } catch {
    return []; // not there, or not ours to read and then not ours to link either
  }
};

/** Breadth-first over everything but packages; true also when the tree is too large to be sure. */
const bearsSecretName = (beneath: Beneath, object: string): boolean => {
  const queue: Segments[] = [[]];
  let seen = 0;
  for (const segments of queue) {
    const verdict = level(beneath, segments, object);
    seen += verdict.entries;
    if (verdict.secret || seen > limits.directoryEntries) return true;
    queue.push(...verdict.folders);
  }
  return false;
};

const level = (
  beneath: Beneath,
  segments: Segments,
  object: string,
): { secret: boolean; entries: number; folders: Segments[] } => {
  try {
    return beneath.directory(segments, (directory) => {
      const { names } = namesOf(directory);
      const plain = names.flatMap(({ text, folder }) =>
        text === null ? [] : [{ path: [...segments, text], text, folder }],
      );
      const secret = plain.some(
        ({ path, text, folder }) => !folder && isSecretPath(path) && identity(directory.at(text)) === object,
      );
      const folders = plain
        .filter(({ text, folder }) => folder && text !== 'node_modules' && text !== 'objects')
        .map(({ path }) => path);
      return { secret, entries: names.length, folders };
    });
  } catch (error) {
    if (error instanceof Refusal && error.code !== 'workspace_unavailable')
      return { secret: false, entries: 0, folders: [] };
    throw error;
  }
};
