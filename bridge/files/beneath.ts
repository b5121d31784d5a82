/**
 * The only opener of workspace paths. Every component is opened relative to its parent's descriptor and never through a
 * symbolic link, so nothing that happens to the tree in between can lead outside.
 * The rule not to break: no other file of this room passes a joined path to the file system; names are opened with
 * `Directory.at`, contents with `Leaf.content`. Everything is synchronous: no raw descriptor lives across an await.
 * Called by this room only.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  type BigIntStats,
} from 'node:fs';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';

const O_PATH = 0o10000000;
const O_NOFOLLOW_ANY = 0x20000000;
const { O_RDONLY, O_NOFOLLOW, O_DIRECTORY, O_NONBLOCK, O_NOCTTY } = constants;

/** How strong the walk is here: by descriptor (Linux), by one refusing open (macOS), by comparing before and after. */
export type Strength = 'component' | 'nofollow_any' | 'compared';
export const strength: Strength =
  process.platform === 'linux' ? 'component' : process.platform === 'darwin' ? 'nofollow_any' : 'compared';
const linux = strength === 'component';
/** This process by its number: through `/proc/self` each look would take twice as long. Without /proc nothing opens. */
const own = ((): string => {
  try {
    return `/proc/${linux ? readlinkSync('/proc/self') : 'self'}`;
  } catch {
    return '/proc/self';
  }
})();
const noLink = strength === 'nofollow_any' ? O_NOFOLLOW_ANY : O_NOFOLLOW;

export type Segments = readonly string[];

/** An open directory of the workspace; valid only inside the callback that was given it. */
export interface Directory {
  readonly fd: number;
  readonly stat: BigIntStats;
  /** A path that names a child of exactly this directory, for calls that do not follow the last component. */
  at(name: string): string;
  /** The same for a name of raw bytes. */
  at(name: Buffer): Buffer;
}

/** The last component, described without having been opened for reading. */
export interface Leaf {
  readonly stat: BigIntStats;
  readonly directory: Directory;
  readonly name: string;
  /** Opens a regular file for reading; anything else is refused before any open could block or have an effect. */
  content<T>(use: (fd: number) => T): T;
}

/** Grammar of T54, before anything is opened: '' is the root itself. @throws Refusal invalid_path */
export const parsePath = (path: string): Segments => {
  if (path === '') return [];
  const segments = path.split('/');
  if (Buffer.byteLength(path) > limits.pathBytes || segments.length > limits.pathDepth || !segments.every(isName)) {
    throw new Refusal('invalid_path');
  }
  return segments;
};

/** One component: no separator, no dot names, no NUL, at most 255 bytes, well-formed text. */
export const isName = (name: string): boolean =>
  name !== '' &&
  name !== '.' &&
  name !== '..' &&
  !/[/\\\0]/.test(name) &&
  name.isWellFormed() &&
  Buffer.byteLength(name) <= limits.nameBytes;

/** Identity of an opened object. */
export const objectOf = (stat: BigIntStats): string => `${stat.dev}:${stat.ino}`;

const refusals: Readonly<Record<string, ConstructorParameters<typeof Refusal>>> = {
  ENOENT: ['not_found'],
  ELOOP: ['symlink_refused'],
  ENAMETOOLONG: ['invalid_path'],
  EACCES: ['path_denied', { message: 'The operating system does not let the bridge open this.' }],
  EPERM: ['path_denied', { message: 'The operating system does not let the bridge open this.' }],
  ENOTDIR: ['not_a_directory'],
  EEXIST: ['already_exists'],
};

/** The code of a system error, or null. */
export const systemCode = (error: unknown): string | null =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;

/** A system error as a refusal; refusals pass through. */
export const asRefusal = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error;
  const [code, options] = refusals[systemCode(error) ?? ''] ?? ['workspace_unavailable'];
  return new Refusal(code, { ...options, cause: error });
};

// A bind mount has the device of its source: only the mount id tells it apart (T57). Asked for each file of a review,
// so not by readFileSync, which takes twice as long.
const infoBytes = Buffer.alloc(512);
const mountOf = (fd: number, stat: BigIntStats): string => {
  if (!linux) return String(stat.dev);
  const info = openSync(`${own}/fdinfo/${fd}`, O_RDONLY);
  try {
    const length = readSync(info, infoBytes, 0, infoBytes.length, 0);
    return /^mnt_id:\s*(\d+)/m.exec(infoBytes.toString('latin1', 0, length))?.[1] ?? 'none';
  } finally {
    closeSync(info);
  }
};

const directoryAt = (fd: number, path: string): Directory => {
  const prefix = linux ? `${own}/fd/${fd}/` : `${path}/`;
  const at = (name: string | Buffer): string | Buffer =>
    typeof name === 'string' ? prefix + name : Buffer.concat([Buffer.from(prefix), name]);
  return { fd, stat: fstatSync(fd, { bigint: true }), at: at as Directory['at'] };
};

const openDirectory = (path: string, flags: number, realPath: string): Directory => {
  const fd = openSync(path, flags | O_DIRECTORY);
  try {
    const directory = directoryAt(fd, realPath);
    if (!linux) sameObject(lstatSync(path, { bigint: true }), directory.stat);
    return directory;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
};

// Two writers may both find it missing; whose it is does not matter, and a link put there is refused by the open.
const makeDirectory = (path: string): void => {
  try {
    mkdirSync(path);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  }
};

const sameObject = (before: BigIntStats, after: BigIntStats): void => {
  if (objectOf(before) !== objectOf(after)) throw new Refusal('symlink_refused');
};

/** A root held open. The owner closes it. */
export class Beneath {
  readonly path: string;
  readonly stat: BigIntStats;
  readonly #root: Directory;
  readonly #mount: string;
  readonly #denied: () => ReadonlySet<string>;
  #closed = false;

  /**
   * `path` is a realpath. Directories whose object is in `denied` are refused wherever they are met.
   * @throws Refusal not_found, not_a_directory (a link is none), path_denied, workspace_unavailable
   */
  constructor(path: string, denied: () => ReadonlySet<string>) {
    this.path = path;
    this.#denied = denied;
    try {
      this.#root = openDirectory(path, O_RDONLY | noLink, path);
    } catch (error) {
      throw asRefusal(error);
    }
    this.stat = this.#root.stat;
    this.#mount = mountOf(this.#root.fd, this.stat);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#root.fd);
  }

  isDenied(object: string): boolean {
    return this.#denied().has(object);
  }

  /**
   * Opens the directory, hands it to `use`, closes it. With `make`, missing components are created on the way.
   * @throws Refusal not_found, not_a_directory, symlink_refused, path_denied, workspace_unavailable
   */
  directory<T>(segments: Segments, use: (directory: Directory) => T, make = false): T {
    return this.#walk(segments, make, (directory) => {
      if (segments.length > 0) this.#stay(directory.fd, directory.stat);
      return use(directory);
    });
  }

  /**
   * Describes the last component without following it and without opening it for reading.
   * @throws Refusal as `directory`, and not_a_file for the root itself
   */
  leaf<T>(segments: Segments, use: (leaf: Leaf) => T): T {
    const name = segments.at(-1);
    if (name === undefined) throw new Refusal('not_a_file');
    // The mount is asked of the leaf alone: it lies in whatever was mounted on the way.
    return this.#walk(segments.slice(0, -1), false, (directory) => this.child(directory, name, use));
  }

  /** As `leaf`, of a directory that is open. Errors of the system pass as they are. */
  child<T>(directory: Directory, name: string, use: (leaf: Leaf) => T): T {
    return linux ? this.#describe(directory, name, use) : this.#compare(directory, name, use);
  }

  #walk<T>(segments: Segments, make: boolean, use: (directory: Directory) => T): T {
    // Its number may be another directory's by now.
    if (this.#closed) throw new Refusal('workspace_unavailable');
    let here = this.#root;
    try {
      segments.forEach((name, depth) => {
        const parent = here;
        here = this.#step(
          parent,
          name,
          depth === 0 ? this.path : [this.path, ...segments.slice(0, depth)].join('/'),
          make,
        );
        if (parent !== this.#root) closeSync(parent.fd);
        if (this.isDenied(objectOf(here.stat))) throw new Refusal('path_denied');
      });
      return use(here);
    } catch (error) {
      throw asRefusal(error);
    } finally {
      if (here !== this.#root) closeSync(here.fd);
    }
  }

  #step(parent: Directory, name: string, parentPath: string, make: boolean): Directory {
    const flags = linux ? O_PATH | O_NOFOLLOW : O_RDONLY | noLink;
    const open = (): Directory => openDirectory(parent.at(name), flags, `${parentPath}/${name}`);
    try {
      return open();
    } catch (error) {
      const code = systemCode(error);
      if (code === 'ENOENT' && make) {
        makeDirectory(parent.at(name));
        return open();
      }
      // A link opened with O_NOFOLLOW|O_DIRECTORY answers ENOTDIR: look only to name the reason.
      if (code === 'ENOTDIR' && lstatSync(parent.at(name)).isSymbolicLink())
        throw new Refusal('symlink_refused', { cause: error });
      throw error;
    }
  }

  #describe<T>(directory: Directory, name: string, use: (leaf: Leaf) => T): T {
    const fd = openSync(directory.at(name), O_PATH | O_NOFOLLOW);
    try {
      const stat = fstatSync(fd, { bigint: true });
      this.#stay(fd, stat);
      if (this.isDenied(objectOf(stat))) throw new Refusal('path_denied');
      // Reopening through the descriptor reads the object that was described, whatever the name leads to by now.
      return use({ stat, directory, name, content: (read) => reading(stat, `${own}/fd/${fd}`, 0, read) });
    } finally {
      closeSync(fd);
    }
  }

  #compare<T>(directory: Directory, name: string, use: (leaf: Leaf) => T): T {
    const stat = lstatSync(directory.at(name), { bigint: true });
    if (stat.dev !== this.stat.dev) throw mounted();
    if (this.isDenied(objectOf(stat))) throw new Refusal('path_denied');
    return use({ stat, directory, name, content: (read) => reading(stat, directory.at(name), noLink, read) });
  }

  #stay(fd: number, stat: BigIntStats): void {
    if (mountOf(fd, stat) !== this.#mount) throw mounted();
  }
}

const mounted = (): Refusal =>
  new Refusal('symlink_refused', {
    message: 'This path leads into another mounted file system, which is not followed.',
  });

const reading = <T>(stat: BigIntStats, path: string, flags: number, use: (fd: number) => T): T => {
  if (stat.isSymbolicLink()) throw new Refusal('symlink_refused');
  if (stat.isDirectory()) throw new Refusal('not_a_file');
  if (!stat.isFile()) throw new Refusal('unsupported_file_type');
  const fd = openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags);
  try {
    sameObject(stat, fstatSync(fd, { bigint: true }));
    return use(fd);
  } finally {
    closeSync(fd);
  }
};
