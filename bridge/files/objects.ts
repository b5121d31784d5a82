/**
 * Which objects (device and inode) are secret under some name, for a file that has more than one (T60): a hard link
 * `notes.txt` to `.env` is `.env`. Bounded; the rule not to break is that what cannot be established counts as secret.
 * Called by root.ts and record.ts, only when a file has more than one name.
 */
import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { objectOf, type Beneath, type Segments } from './beneath.ts';
import { namesOf } from './list.ts';
import { homeSecrets, isSecretPath } from './secrets.ts';

/** Tells of an object whether it bears a secret name in the workspace, below the home directory or in a private directory. */
export const secretObjects = (
  beneath: Beneath,
  home: string,
  privateDirectories: readonly string[],
): ((object: string) => boolean) => {
  const known = new Set(outside(home, privateDirectories).flatMap((path) => identity(path) ?? []));
  const isWhole = addSecretNames(beneath, known);
  return (object) => !isWhole || known.has(object);
};

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

/** Breadth-first over everything but packages; false when the tree is too large to be sure. */
const addSecretNames = (beneath: Beneath, known: Set<string>): boolean => {
  const queue: Segments[] = [[]];
  let seen = 0;
  for (const segments of queue) {
    const { entries, folders, objects } = level(beneath, segments);
    for (const object of objects) known.add(object);
    seen += entries;
    if (seen > limits.directoryEntries) return false;
    queue.push(...folders);
  }
  return true;
};

const level = (beneath: Beneath, segments: Segments): { entries: number; folders: Segments[]; objects: string[] } => {
  try {
    return beneath.directory(segments, (directory) => {
      const { names } = namesOf(directory);
      const plain = names.flatMap(({ text, folder }) =>
        text === null ? [] : [{ path: [...segments, text], text, folder }],
      );
      const objects = plain
        .filter(({ path, folder }) => !folder && isSecretPath(path))
        .flatMap(({ text }) => identity(directory.at(text)) ?? []);
      const folders = plain
        .filter(({ text, folder }) => folder && text !== 'node_modules' && text !== 'objects')
        .map(({ path }) => path);
      return { entries: names.length, folders, objects };
    });
  } catch (error) {
    if (error instanceof Refusal && error.code !== 'workspace_unavailable')
      return { entries: 0, folders: [], objects: [] };
    throw error;
  }
};
