/**
 * One workspace root held by descriptor: the room's verbs on top of the walker, each behind grammar, identity and the
 * secret policy, in that order. The rule not to break: `reveal` skips the secret policy only, never the walk, and never
 * opens the bridge's private directories. Called by workspaces.ts; everyone else sees the `Root` of contract.ts.
 */
import { createHash, randomBytes } from 'node:crypto';
import { lstatSync, statSync, type BigIntStats } from 'node:fs';
import { setMaxListeners } from 'node:events';
import { homedir } from 'node:os';
import { Refusal } from '#protocol/errors.ts';
import { canonical } from '#protocol/json.ts';
import { Beneath, isName, objectOf, parsePath, systemCode, type Leaf, type Segments } from './beneath.ts';
import type { Root } from './contract.ts';
import { startSearch } from './grep.ts';
import { gitHead } from './head.ts';
import { LineIndexes } from './lines.ts';
import { Lister } from './list.ts';
import { secretObjects } from './objects.ts';
import { readContent, readWhole } from './read.ts';
import { createRecorder } from './record.ts';
import { modifiedAtOf, revisionOf, typeOf } from './revision.ts';
import { findRipgrep } from './ripgrep.ts';
import { searchNames } from './search.ts';
import { isSecretPath } from './secrets.ts';
import { survey } from './survey.ts';
import { startWatch } from './watch.ts';
import { putEntry, removeEntry, writeFile } from './write.ts';

export interface RootParts {
  readonly workspaceId: string;
  /** A realpath. */
  readonly path: string;
  /** Absolute paths that are refused wherever they are met: the state's `private/` and the runtime directory. */
  readonly privateDirectories: readonly string[];
  /** Whose `.ssh` and the like a hard link could bring in. */
  readonly home?: string;
  readonly now?: () => number;
}

/** Holds one descriptor until `close`. @throws Refusal not_found, not_a_directory, symlink_refused, path_denied, workspace_unavailable */
export const openRoot = (parts: RootParts): Root => new HeldRoot(parts);

class HeldRoot implements Root {
  readonly workspaceId: string;
  readonly path: string;
  readonly dev: string;
  readonly ino: string;
  readonly rootSha256: string;
  readonly #parts: RootParts;
  readonly #beneath: Beneath;
  readonly #lister: Lister;
  readonly #lines = new LineIndexes();
  /** What goes on by itself ends before the descriptor does: its number may be another's the moment after. */
  readonly #closing = new AbortController();
  // Taken anew before each verb: the private directories may be made after the root was opened.
  #denied: ReadonlySet<string>;

  constructor(parts: RootParts) {
    this.#parts = parts;
    this.#denied = deniedObjects(parts.privateDirectories);
    this.#beneath = new Beneath(parts.path, () => this.#denied);
    // Each attachment may have a search and a watch that end with it.
    setMaxListeners(0, this.#closing.signal);
    this.#lister = new Lister(this.#beneath, parts.now ?? Date.now, () => randomBytes(16).toString('hex'));
    this.workspaceId = parts.workspaceId;
    this.path = parts.path;
    this.dev = String(this.#beneath.stat.dev);
    this.ino = String(this.#beneath.stat.ino);
    this.rootSha256 = createHash('sha256')
      .update(canonical({ dev: this.dev, ino: this.ino, path: this.path }))
      .digest('hex');
  }

  check(): void {
    this.#denied = deniedObjects(this.#parts.privateDirectories);
    try {
      // Not followed: a link put in place of the directory is a replacement, wherever it leads.
      const stat = lstatSync(this.path, { bigint: true });
      if (objectOf(stat) === objectOf(this.#beneath.stat)) return;
    } catch (error) {
      const code = systemCode(error);
      if (code !== 'ENOENT' && code !== 'ENOTDIR') throw new Refusal('workspace_unavailable', { cause: error });
    }
    throw new Refusal('workspace_changed');
  }

  list(path: string, cursor?: string, from?: number): ReturnType<Root['list']> {
    const segments = this.#segments(path);
    return this.#lister.page(segments, cursor, from);
  }

  stat(path: string): ReturnType<Root['stat']> {
    const segments = this.#segments(path);
    const describe = (stat: BigIntStats): ReturnType<Root['stat']> => ({
      path,
      type: typeOf(stat),
      bytes: Number(stat.size),
      modifiedAt: modifiedAtOf(stat),
      secret: isSecretPath(segments),
      revision: revisionOf(stat),
    });
    if (segments.length === 0) return this.#beneath.directory([], ({ stat }) => describe(stat));
    return this.#beneath.leaf(segments, ({ stat }) => describe(stat));
  }

  directory(path: string): ReturnType<Root['directory']> {
    const segments = this.#segments(path);
    return this.#beneath.directory(segments, ({ stat }) => ({
      path: segments.length === 0 ? this.path : `${this.path === '/' ? '' : this.path}/${segments.join('/')}`,
      dev: String(stat.dev),
      ino: String(stat.ino),
    }));
  }

  read(path: string, options: Parameters<Root['read']>[1] = {}): ReturnType<Root['read']> {
    return this.#open(path, options.reveal === true, (leaf) => {
      const { offset, line, revision, encoding } = options;
      const { content, stat } = readContent(leaf, { offset, line, revision, encoding }, this.#lines);
      return { path, revision: revisionOf(stat), bytes: Number(stat.size), modifiedAt: modifiedAtOf(stat), content };
    });
  }

  readBytes(
    path: string,
    maxBytes: number,
    options: Parameters<Root['readBytes']>[2] = {},
  ): ReturnType<Root['readBytes']> {
    try {
      return this.#open(path, options.reveal === true, (leaf) => readWhole(leaf, maxBytes));
    } catch (error) {
      if (error instanceof Refusal && error.code === 'not_found') return null;
      throw error;
    }
  }

  readText(path: string, maxBytes: number): ReturnType<Root['readText']> {
    const whole = this.readBytes(path, maxBytes);
    if (whole === null) return null;
    const { bytes, revision } = whole;
    try {
      // The mark stays in the text: an edit that writes the text back must not lose it (case 49).
      const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
      return { text, revision, bytes: bytes.length, bom: text.startsWith('\ufeff') };
    } catch (error) {
      throw new Refusal('invalid_encoding', { cause: error });
    }
  }

  write(path: string, bytes: Uint8Array, expect: string | null): ReturnType<Root['write']> {
    const segments = this.#segments(path);
    if (isSecretPath(segments)) throw new Refusal('path_denied');
    return writeFile(this.#beneath, segments, bytes, expect, (stat) => {
      this.#refuseSecretObject(stat);
    });
  }

  recorder(): ReturnType<Root['recorder']> {
    this.check();
    let isSecret: ((object: string) => boolean) | null = null;
    return createRecorder(this.#beneath, (object) => (isSecret ??= this.#secretObjects())(object));
  }

  put(path: string, content: Parameters<Root['put']>[1], expect: string | null): string {
    const segments = this.#segments(path);
    if (isSecretPath(segments)) throw new Refusal('path_denied');
    return putEntry(this.#beneath, segments, content, expect, (stat) => {
      this.#refuseSecretObject(stat);
    });
  }

  remove(path: string, expect: string): void {
    const segments = this.#segments(path);
    if (isSecretPath(segments)) throw new Refusal('path_denied');
    removeEntry(this.#beneath, segments, expect);
  }

  relative(path: string): string | null {
    if (path.startsWith('/') && path !== this.path && !path.startsWith(this.path === '/' ? '/' : `${this.path}/`))
      return null;
    const rest = path.startsWith('/') ? path.slice(this.path.length) : path;
    const segments = rest.split('/').filter((part) => part !== '' && part !== '.');
    return segments.every(isName) ? segments.join('/') : null;
  }

  isSecret(path: string): boolean {
    const absolute = `${this.path}/${path}/`;
    return (
      isSecretPath(path.split('/')) ||
      this.#parts.privateDirectories.some((directory) => absolute.startsWith(`${directory}/`))
    );
  }

  search(query: string, limit: number, signal: AbortSignal): ReturnType<Root['search']> {
    this.check();
    return searchNames(this.#beneath, query, limit, AbortSignal.any([signal, this.#closing.signal]));
  }

  grep(wanted: Parameters<Root['grep']>[0]): ReturnType<Root['grep']> {
    this.check();
    const { home = homedir(), privateDirectories } = this.#parts;
    return startSearch({
      order: { path: this.path, object: objectOf(this.#beneath.stat), home, privateDirectories, wanted },
      ripgrep: findRipgrep(process.env['PATH'] ?? '', this.path),
      signal: this.#closing.signal,
    });
  }

  watch(folders: readonly string[], file: string | undefined, changed: () => void): ReturnType<Root['watch']> {
    const parents = file === undefined ? [] : [file.split('/').slice(0, -1).join('/')];
    // What git says about the files changes with its index and its head.
    const all = new Set([...folders, ...parents, '.git']);
    const watch = startWatch(
      this.#beneath,
      [...all].map((folder) => this.#segments(folder)),
      changed,
    );
    this.#closing.signal.addEventListener('abort', watch.close, { once: true });
    const close = (): void => {
      this.#closing.signal.removeEventListener('abort', watch.close);
      watch.close();
    };
    return { ...watch, close };
  }

  survey(visit: Parameters<Root['survey']>[0], signal: AbortSignal): ReturnType<Root['survey']> {
    this.check();
    return survey(this.#beneath, visit, signal);
  }

  gitHead(): string | null {
    this.check();
    return gitHead(this.#beneath);
  }

  close(): void {
    this.#closing.abort();
    this.#beneath.close();
  }

  // Grammar first, so that a path that cannot be one never reaches the file system.
  #segments(path: string): Segments {
    const segments = parsePath(path);
    this.check();
    return segments;
  }

  #open<T>(path: string, reveal: boolean, use: (leaf: Leaf) => T): T {
    const segments = this.#segments(path);
    if (!reveal && isSecretPath(segments)) throw new Refusal('path_denied');
    return this.#beneath.leaf(segments, (leaf) => {
      if (!reveal) this.#refuseSecretObject(leaf.stat);
      return use(leaf);
    });
  }

  // Every other name of the object counts, so only files with several are asked about.
  #refuseSecretObject(stat: BigIntStats): void {
    if (!stat.isFile() || stat.nlink < 2n) return;
    if (this.#secretObjects()(objectOf(stat))) throw new Refusal('path_denied');
  }

  #secretObjects(): (object: string) => boolean {
    const { home = homedir(), privateDirectories } = this.#parts;
    return secretObjects(this.#beneath, home, privateDirectories);
  }
}

const deniedObjects = (paths: readonly string[]): ReadonlySet<string> =>
  new Set(
    paths.flatMap((path) => {
      const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
      return stat === undefined ? [] : [objectOf(stat)];
    }),
  );
