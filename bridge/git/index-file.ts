/**
 * What the index says beside its entries: its extensions, and how many files it asks not to compare, which would hide what
 * changed in them. Read entry by entry, for the names in it are a stranger's. Pure; called by shadow.ts.
 */
import { unsupported } from './layout.ts';

export interface IndexFacts {
  readonly version: number;
  /** Four letters each. */
  readonly extensions: ReadonlySet<string>;
  /** Marked as unchanged, whatever they hold. */
  readonly assumed: number;
  /** Marked as left out of the folder. */
  readonly skipped: number;
}

const header = 12;
const statBytes = 40;

/** @throws Refusal unsupported_git_state for one that is damaged or of a version that is not known */
export const readIndex = (index: Buffer, oidBytes: 20 | 32): IndexFacts => {
  const version = index.length < header + oidBytes ? 0 : index.readUInt32BE(4);
  if (index.toString('latin1', 0, 4) !== 'DIRC' || version < 2 || version > 4) throw damaged();
  const end = index.length - oidBytes;
  let [at, assumed, skipped] = [header, 0, 0];
  for (let left = index.readUInt32BE(8); left > 0; left -= 1) {
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
  return { version, extensions: extensionsOf(index, at, end), assumed, skipped };
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
