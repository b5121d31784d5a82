/**
 * Absolute paths the operator names: what they canonically are, and the folder picker. Operator only: these verbs follow
 * links and look anywhere but into the bridge's private directories. Called by workspaces.ts, never for an agent.
 */
import { opendirSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { asRefusal } from './beneath.ts';
import type { Workspaces } from './contract.ts';

/** proc, sysfs, devpts, debugfs, tracefs, cgroup, cgroup2: reading there has effects or no end. */
const systemTypes = new Set([0x9fa0, 0x62656572, 0x1cd1, 0x64626720, 0x74726163, 0x27e0eb, 0x63677270]);

/**
 * The realpath of a directory the operator typed: absolute, or from `~`.
 * @throws Refusal invalid_path, not_found, not_a_directory, path_denied
 */
export const canonicalFolder = (typed: string, privateDirectories: readonly string[]): string => {
  const path = typed === '~' || typed.startsWith('~/') ? join(homedir(), typed.slice(1)) : typed;
  if (!path.startsWith('/') || path.includes('\0') || Buffer.byteLength(path) > limits.pathBytes)
    throw new Refusal('invalid_path');
  try {
    const real = realpathSync.native(path);
    if (!statSync(real).isDirectory()) throw new Refusal('not_a_directory');
    if (isWithin(real, privateDirectories)) throw new Refusal('path_denied');
    if (systemTypes.has(statfsSync(real).type)) {
      throw new Refusal('path_denied', { message: 'System file systems are not opened as a workspace.' });
    }
    return real;
  } catch (error) {
    throw asRefusal(error);
  }
};

/** Equal to one of the directories or below it. */
export const isWithin = (path: string, directories: readonly string[]): boolean =>
  directories.some((directory) => path === directory || path.startsWith(`${directory}/`));

/** Folders of a folder by name, links to folders included. @throws Refusal as canonicalFolder */
export const browseFolder = (
  typed: string,
  privateDirectories: readonly string[],
): ReturnType<Workspaces['browse']> => {
  const path = canonicalFolder(typed === '' ? '~' : typed, privateDirectories);
  const { names, truncated } = folderNames(path);
  const entries = names.map((name) => ({
    name,
    path: join(path, name),
    repository: isThere(join(path, name, '.git')),
  }));
  return { path, parent: path === '/' ? null : dirname(path), entries, truncated };
};

const folderNames = (path: string): { names: string[]; truncated: boolean } => {
  const names: string[] = [];
  const stream = openFolder(path);
  let seen = 0;
  try {
    for (let entry = stream.readSync(); entry !== null; entry = stream.readSync()) {
      seen += 1;
      if (seen > limits.directoryEntries) break;
      // A name that is not UTF-8 came out substituted and would not open.
      const isFolder = entry.isDirectory() || (entry.isSymbolicLink() && isFolderAt(join(path, entry.name)));
      if (isFolder && !entry.name.includes('\ufffd')) names.push(entry.name);
    }
  } finally {
    stream.closeSync();
  }
  names.sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  return {
    names: names.slice(0, limits.browseEntries),
    truncated: seen > limits.directoryEntries || names.length > limits.browseEntries,
  };
};

const openFolder = (path: string): ReturnType<typeof opendirSync> => {
  try {
    return opendirSync(path);
  } catch (error) {
    throw asRefusal(error);
  }
};

// Unreadable, dangling and looping links are simply no folders to open.
const isFolderAt = (path: string): boolean => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
};
const isThere = (path: string): boolean => {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
};

/** For people: the last component, or the path where there is none. */
export const nameOfFolder = (path: string): string => basename(path) || path;
