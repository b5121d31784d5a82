/**
 * One level of a directory (F-02): 200 a page, folders first, links described and never followed.
 * The rule not to break: a name that is not UTF-8 or carries control characters is shown escaped and never substituted;
 * only a name that opens exactly this entry becomes a path. Called by root.ts.
 */
import { isUtf8 } from 'node:buffer';
import { lstatSync, opendirSync, readlinkSync, type Dirent } from 'node:fs';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { FileEntry } from '#protocol/methods/workspace.ts';
import { ignoredIn, isIgnored, type Ignored } from './ignore.ts';
import { isName, objectOf, systemCode, type Beneath, type Directory, type Segments } from './beneath.ts';
import { modifiedAtOf, typeOf } from './revision.ts';
import { isSecretPath } from './secrets.ts';

export interface Name {
  /** Bytes where a text might be another name. */
  readonly name: string | Buffer;
  /** The name as text where it opens this entry, else null. */
  readonly text: string | null;
  readonly folder: boolean;
  readonly type: ReturnType<typeof typeOf>;
}

/**
 * Escapes what would act on a screen or hide: controls, bidirectional and invisible characters, bytes that are not UTF-8.
 * At most four characters for a byte, so that 255 bytes fit the 1,024 of the wire.
 */
export const display = (name: string | Buffer): string => {
  const text = typeof name === 'string' ? name : isUtf8(name) ? name.toString('utf8') : null;
  if (text === null) return name.toString('latin1').replace(/[^\x20-\x7e]/g, escape);
  return isPrintable.test(text) ? text : text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, escape);
};
const isPrintable = /^[\x20-\x7e]*$/;
const escape = (sign: string): string => {
  const code = sign.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
};

/** Up to `limits.directoryEntries` names of an open directory, in no order. */
export const namesOf = (directory: Directory): { names: Name[]; truncated: boolean } => {
  const read = entriesOf(directory, 'utf8', (entry) => nameOf(entry, directory));
  // Something was substituted, or is called so: only the bytes tell. Not read at once, because they take twice as long.
  const isSure = read.names.every(({ text }) => text?.includes('\ufffd') === false);
  return isSure ? read : entriesOf(directory, 'buffer', (entry) => nameOf(entry, directory));
};

const entriesOf = (
  directory: Directory,
  encoding: 'utf8' | 'buffer',
  make: (entry: Dirent<string | Buffer>) => Name,
): { names: Name[]; truncated: boolean } => {
  const names: Name[] = [];
  // The types of opendir know string encodings only; 'buffer' is documented and gives Buffer names.
  const stream = opendirSync(directory.at('.'), { encoding: encoding as BufferEncoding, bufferSize: 1024 });
  try {
    for (let entry = stream.readSync(); entry !== null; entry = stream.readSync()) {
      if (names.length === limits.directoryEntries) return { names, truncated: true };
      names.push(make(entry as Dirent<string | Buffer>));
    }
    return { names, truncated: false };
  } finally {
    stream.closeSync();
  }
};

const nameOf = (entry: Dirent<string | Buffer>, directory: Directory): Name => {
  const { name } = entry;
  const text = typeof name === 'string' ? name : isUtf8(name) ? name.toString('utf8') : null;
  const type = typeOfEntry(entry, directory);
  return { name, text: text !== null && isName(text) ? text : null, folder: type === 'directory', type };
};
const bytesOf = ({ name }: Name): Buffer => (typeof name === 'string' ? Buffer.from(name) : name);

const at = (directory: Directory, name: string | Buffer): string | Buffer =>
  typeof name === 'string' ? directory.at(name) : directory.at(name);

// Some file systems do not tell types while listing.
const typeOfEntry = (entry: Dirent<string | Buffer>, directory: Directory): Name['type'] => {
  const told = entry.isFile() || entry.isDirectory() || entry.isSymbolicLink() || entry.isFIFO() || entry.isSocket();
  const known = told ? entry : lstatSync(at(directory, entry.name), { throwIfNoEntry: false });
  return known === undefined ? 'other' : typeOf(known);
};

/** Folders first, then by name without regard to case, then by bytes so that the order is total. */
const sorted = (names: readonly Name[]): Name[] => {
  const keyed = names.map((name) => ({ name, key: (name.text ?? display(name.name)).toLowerCase() }));
  keyed.sort((a, b) => {
    if (a.name.folder !== b.name.folder) return a.name.folder ? -1 : 1;
    return a.key < b.key ? -1 : a.key > b.key ? 1 : Buffer.compare(bytesOf(a.name), bytesOf(b.name));
  });
  return keyed.map(({ name }) => name);
};

interface Page {
  readonly place: string;
  readonly names: readonly Name[];
  readonly from: number;
  readonly truncated: boolean;
  readonly expiresAt: number;
}
export interface Listing {
  readonly entries: FileEntry[];
  readonly cursor: string | null;
  readonly total: number;
  readonly truncated: boolean;
}

/** Lists pages and remembers where they go on; a cursor names one frozen list of names for `limits.directoryCursorMs`. */
export class Lister {
  readonly #beneath: Beneath;
  readonly #now: () => number;
  readonly #random: () => string;
  readonly #cursors = new Map<string, Page>();

  constructor(beneath: Beneath, now: () => number, random: () => string) {
    this.#beneath = beneath;
    this.#now = now;
    this.#random = random;
  }

  /** @throws Refusal as the walk, path_denied for a secret directory, unknown_cursor for one that is old or of another path */
  page(segments: Segments, cursor: string | undefined, from?: number): Listing {
    if (isSecretPath(segments)) throw new Refusal('path_denied');
    return this.#beneath.directory(segments, (directory) => {
      const page = cursor === undefined ? this.#first(segments, directory) : this.#next(segments, cursor);
      const begin = (cursor === undefined ? undefined : from) ?? page.from;
      const end = begin + limits.directoryPage;
      const isIgnored = ignoredEntries(this.#beneath, segments);
      const entries = page.names
        .slice(begin, end)
        .flatMap((name) => this.#entry(directory, segments, name, isIgnored(name)) ?? []);
      const more = end < page.names.length ? this.#remember({ ...page, from: end }) : null;
      return { entries, cursor: more, total: page.names.length, truncated: page.truncated };
    });
  }

  #first(segments: Segments, directory: Directory): Page {
    const { names, truncated } = namesOf(directory);
    const expiresAt = this.#now() + limits.directoryCursorMs;
    return { place: segments.join('/'), names: sorted(names), from: 0, truncated, expiresAt };
  }

  #next(segments: Segments, cursor: string): Page {
    const page = this.#cursors.get(cursor);
    if (page === undefined || page.place !== segments.join('/') || page.expiresAt <= this.#now())
      throw new Refusal('unknown_cursor');
    return page;
  }

  #remember(page: Page): string {
    for (const [cursor, { expiresAt }] of this.#cursors) {
      // Insertion order is age: the oldest go first, whether they expired or there are too many.
      if (expiresAt > this.#now() && this.#cursors.size < limits.directoryCursors) break;
      this.#cursors.delete(cursor);
    }
    const cursor = this.#random();
    this.#cursors.set(cursor, page);
    return cursor;
  }

  // Null for a name that has gone since the names were read.
  #entry(directory: Directory, segments: Segments, name: Name, ignored: boolean): FileEntry | null {
    const stat = lstatSync(at(directory, name.name), { bigint: true, throwIfNoEntry: false });
    if (stat === undefined) return null;
    const type = typeOf(stat);
    const shown = display(name.name);
    const inside = [...segments, name.text ?? shown];
    const target = type === 'symlink' ? readTarget(directory, name.name) : null;
    return {
      name: shown,
      path: name.text === null ? null : inside.join('/'),
      type,
      bytes: Number(stat.size),
      modifiedAt: modifiedAtOf(stat),
      secret: isSecretPath(inside) || this.#beneath.isDenied(objectOf(stat)),
      ...(target !== null && { link: { target: display(target), place: placeOf(this.#beneath, segments, target) } }),
      ...(type === 'file' && stat.nlink > 1n && { shared: true }),
      ...(ignored && { ignored }),
    };
  }
}

/** What the ignore files on the way down say of the entries of a folder. */
const ignoredEntries = (beneath: Beneath, segments: Segments): ((name: Name) => boolean) => {
  let ignored: Ignored = [];
  for (let depth = 0; depth <= segments.length; depth += 1) {
    const folder = segments.slice(0, depth);
    if (depth > 0 && isIgnored(ignored, folder, true)) return () => true;
    ignored = ignoredIn(beneath, folder, ignored);
  }
  return ({ text, folder }) => text !== null && isIgnored(ignored, [...segments, text], folder);
};

const readTarget = (directory: Directory, name: string | Buffer): Buffer | null => {
  try {
    return readlinkSync(at(directory, name), 'buffer');
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'EINVAL') return null; // replaced just now
    throw error;
  }
};

/**
 * Where a link leads, told from its text and the walker alone: nothing is followed, so a target behind a further linked
 * directory counts as outside, which is the careful answer.
 */
export const placeOf = (
  beneath: Beneath,
  from: Segments,
  target: Buffer,
  hops = 16,
): 'inside' | 'outside' | 'missing' => {
  const segments = isUtf8(target) ? resolve(beneath.path, from, target.toString('utf8')) : null;
  if (segments === null || hops === 0) return 'outside';
  if (segments.length === 0) return 'inside';
  try {
    return beneath.leaf(segments, ({ stat, directory, name }) =>
      stat.isSymbolicLink()
        ? placeOf(beneath, segments.slice(0, -1), readlinkSync(directory.at(name), { encoding: 'buffer' }), hops - 1)
        : 'inside',
    );
  } catch (error) {
    return error instanceof Refusal && (error.code === 'not_found' || error.code === 'not_a_directory')
      ? 'missing'
      : 'outside';
  }
};

/** A link's text as segments below the root, or null where it leaves it. */
export const resolve = (root: string, from: Segments, target: string): Segments | null => {
  const absolute = target.startsWith('/');
  if (absolute && target !== root && !target.startsWith(root === '/' ? root : `${root}/`)) return null;
  const segments = absolute ? [] : [...from];
  for (const part of (absolute ? target.slice(root.length) : target).split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') segments.push(part);
    else if (segments.pop() === undefined) return null;
  }
  return segments.every(isName) ? segments : null;
};
