/**
 * What the index says beside its entries: its extensions, and how many files it asks not to compare, which would hide what
 * changed in them; and an index of a few of its entries alone, for git reads a whole one whatever it is asked about. Read
 * entry by entry, for the names in it are a stranger's. Pure; called by shadow.ts.
 */
import { createHash } from 'node:crypto';
import { unsupported } from './layout.ts';

export interface IndexFacts {
  readonly version: number;
  /** Four letters each. */
  readonly extensions: ReadonlySet<string>;
  /** Marked as unchanged, whatever they hold. */
  readonly assumed: number;
  /** Marked as left out of the folder. */
  readonly skipped: number;
  /** Null where entries need others to be read: from version 4 on, and in a sparse index. */
  readonly entries: Entries | null;
}
export interface Entries {
  readonly version: number;
  readonly oidBytes: 20 | 32;
  /** Where each begins, and where the last one ends. */
  readonly starts: Uint32Array;
}

const header = 12;
const statBytes = 40;

/** @throws Refusal unsupported_git_state for one that is damaged or of a version that is not known */
export const readIndex = (index: Buffer, oidBytes: 20 | 32): IndexFacts => {
  const version = index.length < header + oidBytes ? 0 : index.readUInt32BE(4);
  if (index.toString('latin1', 0, 4) !== 'DIRC' || version < 2 || version > 4) throw damaged();
  const end = index.length - oidBytes;
  const count = index.readUInt32BE(8);
  if (count * (statBytes + oidBytes) > end) throw damaged();
  const starts = new Uint32Array(count + 1);
  let [at, assumed, skipped] = [header, 0, 0];
  for (let entry = 0; entry < count; entry += 1) {
    starts[entry] = at;
    const flagsAt = at + statBytes + oidBytes;
    if (flagsAt + 4 > end) throw damaged();
    const flags = index.readUInt16BE(flagsAt);
    const extended = version > 2 && (flags & 0x4000) !== 0;
    if ((flags & 0x8000) !== 0) assumed += 1;
    if (extended && (index.readUInt16BE(flagsAt + 2) & 0x4000) !== 0) skipped += 1;
    const close = index.indexOf(0, nameAt(index, flagsAt + (extended ? 4 : 2), version));
    if (close === -1 || close >= end) throw damaged();
    // Up to version 3 an entry is filled up to a multiple of eight.
    at = version === 4 ? close + 1 : at + ((close - at + 8) & ~7);
  }
  starts[count] = at;
  const extensions = extensionsOf(index, at, end);
  const entries = version === 4 || extensions.has('sdir') ? null : { version, oidBytes, starts };
  return { version, extensions, assumed, skipped, entries };
};

/**
 * An index of all entries of `name`, and of those of `others` that there are; null where `name` has none. `read` gives
 * the bytes of the index that the entries were read from.
 */
export const indexOf = (
  { version, oidBytes, starts }: Entries,
  read: (from: number, to: number) => Buffer,
  name: Buffer,
  others: readonly Buffer[],
): Buffer | null => {
  const count = starts.length - 1;
  const entryAt = (at: number): Buffer => read(starts[at] ?? 0, starts[at + 1] ?? 0);
  const nameOf = (entry: Buffer): Buffer => {
    const flagsAt = statBytes + oidBytes;
    const from = flagsAt + (version > 2 && (entry.readUInt16BE(flagsAt) & 0x4000) !== 0 ? 4 : 2);
    return entry.subarray(from, entry.indexOf(0, from));
  };
  // Sorted by name, as git refuses them otherwise; a conflict has several of one name.
  const called = (wanted: Buffer): Buffer[] => {
    let [low, high] = [0, count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (Buffer.compare(nameOf(entryAt(middle)), wanted) < 0) low = middle + 1;
      else high = middle;
    }
    const found: Buffer[] = [];
    for (let at = low; at < count && nameOf(entryAt(at)).equals(wanted); at += 1) found.push(entryAt(at));
    return found;
  };
  const own = called(name);
  if (own.length === 0) return null;
  const all = [name, ...others]
    .sort((a, b) => Buffer.compare(a, b))
    .flatMap((each) => (each === name ? own : called(each)));
  const head = Buffer.alloc(header);
  head.write('DIRC', 'latin1');
  head.writeUInt32BE(version, 4);
  head.writeUInt32BE(all.length, 8);
  const body = Buffer.concat([head, ...all]);
  const digest = createHash(oidBytes === 20 ? 'sha1' : 'sha256')
    .update(body)
    .digest();
  return Buffer.concat([body, digest]);
};

// From version 4 on a name begins with how much of the one before is dropped, seven bits a byte.
const nameAt = (index: Buffer, at: number, version: number): number => {
  let place = at;
  if (version === 4) while (((index[place] ?? 0) & 0x80) !== 0) place += 1;
  return version === 4 ? place + 1 : place;
};

const extensionsOf = (index: Buffer, from: number, end: number): Set<string> => {
  const found = new Set<string>();
  for (let at = from; at + 8 <= end; at += 8 + index.readUInt32BE(at + 4))
    found.add(index.toString('latin1', at, at + 4));
  return found;
};

const damaged = (): Error => unsupported('The index of this repository is damaged.');
