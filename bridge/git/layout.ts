/**
 * Where the repository of a workspace lies: beside its files, above it, or elsewhere for a linked work tree or a submodule.
 * The rule not to break: a `.git` file is followed only to a place that points back here, so that no folder shows what
 * another repository holds (T65). Reads by the walker; runs nothing. Called by repository.ts.
 */
import { lstatSync, readlinkSync, realpathSync, type BigIntStats, type Stats } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { Beneath, systemCode, type Leaf } from '../files/beneath.ts';
import { readWhole } from '../files/read.ts';
import { revisionOf } from '../files/revision.ts';

export const unsupported = (message: string, cause?: unknown): Refusal =>
  new Refusal('unsupported_git_state', { message, cause });

const unreachable = (error: unknown): unknown => {
  const codes = ['path_denied', 'content_too_large', 'symlink_refused', 'not_a_directory', 'not_found'];
  if (!(error instanceof Refusal) || !codes.includes(error.code)) return error;
  return unsupported("The repository's own files cannot be opened here.", error);
};

/** Files below one git directory, none through a link. The owner closes it. */
export class GitFiles {
  readonly path: string;
  readonly #beneath: Beneath;

  /** `path` is a realpath. @throws Refusal unsupported_git_state, workspace_unavailable */
  constructor(path: string) {
    this.path = path;
    try {
      this.#beneath = new Beneath(path, () => new Set());
    } catch (error) {
      throw unreachable(error);
    }
  }

  /** Null where there is no such file. @throws Refusal unsupported_git_state for a link or what is too large */
  read(path: string, maxBytes: number = limits.readBytes): Buffer | null {
    try {
      return this.content(path, maxBytes);
    } catch (error) {
      throw unreachable(error);
    }
  }

  /** The same of a file that is no part of git's own. @throws Refusal also path_denied, content_too_large */
  content(path: string, maxBytes: number): Buffer | null {
    return this.#leaf(path, (leaf) => readWhole(leaf, maxBytes).bytes);
  }

  /** What tells one state of a file from another; '-' where there is none. */
  revision(path: string): string {
    return this.#leaf(path, ({ stat }) => revisionOf(stat)) ?? '-';
  }

  stat(path: string): BigIntStats | null {
    return this.#leaf(path, ({ stat }) => stat);
  }

  /** Where a symbolic link says that it leads. */
  link(path: string): Buffer | null {
    return this.#leaf(path, ({ directory, name }) => readlinkSync(directory.at(name), { encoding: 'buffer' }));
  }

  has(path: string): boolean {
    return this.stat(path) !== null;
  }

  close(): void {
    this.#beneath.close();
  }

  #leaf<T>(path: string, use: (leaf: Leaf) => T): T | null {
    // Wider than the files room's grammar: git has names that it does not take. Never a step up.
    const segments = path.split('/');
    if (segments.length > limits.pathDepth || segments.some((name) => !isComponent(name))) return null;
    try {
      return this.#beneath.leaf(segments, use);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (['not_found', 'not_a_directory', 'invalid_path'].includes(error.code)) return null;
      if (error.code === 'file_changed') throw new Refusal('repository_changed', { cause: error });
      if (['symlink_refused', 'not_a_file', 'unsupported_file_type'].includes(error.code))
        throw unsupported('The repository keeps its own files behind links, which are not followed.', error);
      throw error;
    }
  }
}

const isComponent = (name: string): boolean => name !== '' && name !== '.' && name !== '..' && !name.includes('\0');

export interface Layout {
  /** Where the work tree begins; a realpath. */
  readonly top: string;
  /** The files of the work tree. */
  readonly tree: GitFiles;
  /** The workspace's place below it, with its slash; '' where they are one. */
  readonly prefix: string;
  /** HEAD and index are here. */
  readonly own: GitFiles;
  /** Objects, references and configuration are here; the same one where nothing is shared. */
  readonly common: GitFiles;
  /** Object stores of others that this one was made to borrow from. */
  readonly lends: readonly string[];
  /** A linked work tree. */
  readonly linked: boolean;
  /** A submodule names its work tree in its configuration; it must be this one. */
  readonly mustName: string | null;
  close(): void;
}

const statOf = (path: string): Stats | null => {
  try {
    return lstatSync(path);
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') return null;
    throw new Refusal('workspace_unavailable', { cause: error });
  }
};

/** `path` is the workspace's realpath. The caller closes what it gets. @throws Refusal not_git_repository, unsupported_git_state */
export const locate = (path: string, privateDirectories: readonly string[], lends: readonly string[] = []): Layout => {
  for (let top = path; ; top = dirname(top)) {
    const stat = statOf(join(top, '.git'));
    // Someone else's repository above, as in a shared /tmp, is none of this workspace.
    const ours = top === path || stat?.uid === process.getuid?.();
    if (stat !== null && ours) return layoutOf(top, path, stat, privateDirectories, lends);
    if (top === dirname(top)) throw new Refusal('not_git_repository');
  }
};

type Place = Pick<Layout, 'top' | 'tree' | 'prefix' | 'lends' | 'close'> & { open(path: string): GitFiles };

const layoutOf = (
  top: string,
  path: string,
  stat: Stats,
  privateDirectories: readonly string[],
  lends: readonly string[],
): Layout => {
  if (stat.isSymbolicLink()) throw unsupported('".git" is a symbolic link here, which is not followed.');
  const below = relative(top, path);
  const opened: GitFiles[] = [];
  const open = (directory: string): GitFiles => {
    const files = new GitFiles(directory);
    opened.push(files);
    return files;
  };
  const close = (): void => {
    for (const files of opened) files.close();
  };
  try {
    const place = { top, tree: open(top), prefix: below === '' ? '' : `${below}/`, lends, open, close };
    return stat.isDirectory() ? plain(place) : pointed(place, privateDirectories);
  } catch (error) {
    close();
    throw error;
  }
};

const plain = (place: Place): Layout => {
  const own = place.open(join(place.top, '.git'));
  // Only a linked work tree's has one; here it would lead elsewhere without anything that points back.
  if (own.has('commondir')) throw unsupported('The repository shares its objects in a way that cannot be checked.');
  return { ...place, own, common: own, linked: false, mustName: null };
};

const pointed = (place: Place, privateDirectories: readonly string[]): Layout => {
  const target = targetOf(place);
  const isBelow = (directory: string): boolean => `${target}/`.startsWith(`${directory}/`);
  if (privateDirectories.some(isBelow)) throw unsupported('".git" leads to a folder of the bridge.');
  const own = place.open(target);
  const back = own.read('gitdir', limits.pathBytes);
  const shared = own.read('commondir', limits.pathBytes);
  if (back === null || shared === null)
    return { ...place, own, common: own, linked: false, mustName: isBelow(place.top) ? null : place.top };
  if (real(resolve(target, line(back))) !== join(place.top, '.git')) throw stranger();
  const common = place.open(real(resolve(target, line(shared))) ?? '/');
  if (dirname(target) !== join(common.path, 'worktrees')) throw stranger();
  return { ...place, own, common, linked: true, mustName: null };
};

const stranger = (): Refusal => unsupported('".git" leads to a repository that does not know this folder.');

const line = (bytes: Buffer): string => bytes.toString('utf8').replace(/\n+$/, '');

const real = (path: string): string | null => {
  try {
    return realpathSync(path);
  } catch (error) {
    if (systemCode(error) !== null) return null;
    throw error;
  }
};

const targetOf = ({ top, tree }: Place): string => {
  const text = line(tree.read('.git', limits.pathBytes) ?? Buffer.alloc(0));
  const target = text.startsWith('gitdir: ') ? real(resolve(top, text.slice('gitdir: '.length))) : null;
  if (target === null) throw unsupported('".git" is a file here that leads nowhere.');
  return target;
};

/** Whether a submodule's configuration names this work tree, relative to its git directory. @throws where it does not */
export const checkNamed = (layout: Layout, configured: string | undefined): void => {
  if (layout.mustName === null) return;
  if (configured === undefined || real(resolve(layout.own.path, configured)) !== layout.mustName) throw stranger();
};

/**
 * Where the objects are: nothing git reads by itself below `objects` leads outside of this repository and what it was
 * made to borrow from. @throws Refusal unsupported_git_state
 */
export const checkObjects = (layout: Layout): string[] => {
  for (const name of ['objects', 'objects/pack', 'objects/info']) {
    const stat = layout.common.stat(name);
    if (stat !== null && !stat.isDirectory()) throw unsupported('The objects of this repository are behind a link.');
  }
  return [join(layout.common.path, 'objects'), ...checkAlternates(layout, layout.common.path, 'objects', 5)];
};

const checkAlternates = (layout: Layout, base: string, objects: string, depth: number): string[] => {
  const found: string[] = [];
  const files = base === layout.common.path ? layout.common : new GitFiles(base);
  try {
    const lines = files.read(`${objects}/info/alternates`)?.toString('utf8').split('\n') ?? [];
    for (const text of lines) {
      if (text === '' || text.startsWith('#')) continue;
      const place = text.startsWith('"') ? null : real(resolve(base, objects, text));
      const isInside = [layout.top, layout.common.path].some((each) => place?.startsWith(`${each}/`) === true);
      if (place === null || !(isInside || layout.lends.includes(place)) || depth === 0)
        throw unsupported('The repository borrows objects from another folder, which is not read.');
      found.push(place, ...checkAlternates(layout, dirname(place), basename(place), depth - 1));
    }
    return found;
  } finally {
    if (files !== layout.common) files.close();
  }
};
