/**
 * Whether receipts agree with the signed states of their log that are known (R-24: leaf, inclusion, checkpoint,
 * consistency). A whole chain is hashed again and its root compared at every known size; single receipts are led to a
 * root by their proofs. Used by verify.ts alone.
 */
import {
  append,
  isSame,
  openCheckpoint,
  rootOf,
  verifyConsistency,
  verifyInclusion,
  type NodeReader,
  type SignaturePlatform,
  type TreeHead,
} from './log.ts';
import type { Steps } from './steps.ts';

/** A checkpoint someone kept. */
export interface KnownCheckpoint {
  /** C2SP signed note. */
  readonly note: string;
  /** Where it was kept, for naming it. */
  readonly place: string;
  /** Consistency proof from it to the largest one given; needed only where not all receipts are given. */
  readonly consistency?: readonly Uint8Array[] | undefined;
}
export interface Head extends TreeHead {
  readonly place: string;
  readonly consistency?: readonly Uint8Array[] | undefined;
}
export interface Heads {
  /** By size, from the smallest. */
  readonly opened: readonly Head[];
  /** Places of those not signed by a key of this log. */
  readonly refused: readonly string[];
}

export const openHeads = function* (
  platform: SignaturePlatform,
  known: readonly KnownCheckpoint[],
  origin: string,
  keys: readonly Uint8Array[],
): Steps<Heads> {
  const opened: Head[] = [];
  const refused: string[] = [];
  for (const { note, place, consistency } of known) {
    const head = yield* openCheckpoint(platform, note, origin, keys);
    if (head === null) refused.push(place);
    else opened.push({ ...head, place, consistency });
  }
  return { opened: opened.sort((a, b) => a.size - b.size), refused };
};

/** The tree over a whole chain, while it is read. */
export interface Growth {
  size: number;
  /** The last complete node of each level: all that growing needs. */
  readonly last: Uint8Array[];
  /** Roots at the sizes of known checkpoints. */
  readonly roots: Map<number, Uint8Array>;
}

export const grow = function* (
  platform: SignaturePlatform,
  growth: Growth,
  leaf: Uint8Array,
  sizes: ReadonlySet<number>,
): Steps<void> {
  const node: NodeReader = (level) => growth.last[level] ?? null;
  const nodes = yield* append(platform, growth.size, leaf, node);
  nodes.forEach((hash, level) => (growth.last[level] = hash));
  growth.size += 1;
  if (sizes.has(growth.size)) growth.roots.set(growth.size, yield* rootOf(platform, growth.size, node));
};

/** What contradicts a whole chain: at most one sentence for each of the two ways, naming the receipts it is about. */
export const contradictions = (
  heads: Heads,
  growth: Growth,
): { seq: number | null; check: string; sentence: string }[] => {
  const found: { seq: number | null; check: string; sentence: string }[] = [];
  const { size } = growth;
  const beyond = heads.opened.at(-1);
  if (beyond !== undefined && beyond.size > size)
    found.push({
      seq: size + 1,
      check: 'checkpoint',
      sentence: `A checkpoint over ${beyond.size} receipts is known (${beyond.place}), but only ${size} are here: the last ${beyond.size - size} were removed, or an older copy was put back.`,
    });
  const differs = ({ size: at, root }: Head): boolean => {
    const own = at === 0 ? undefined : growth.roots.get(at);
    return own !== undefined && !isSame(own, root);
  };
  const wrong = heads.opened.find(differs);
  if (wrong !== undefined) {
    // Of one size there can be several, of which another agrees: what is shown to be whole ends below.
    const from = 1 + Math.max(0, ...heads.opened.map((head) => (head.size < wrong.size ? head.size : 0)));
    found.push({
      seq: from,
      check: 'consistency',
      sentence: `Receipts ${from} to ${wrong.size} are not the ones a checkpoint was signed over (${wrong.place}): they were replaced, or there are two histories.`,
    });
  }
  return found;
};

/** Null when the receipt with this leaf is under one of the known heads. */
export const checkInclusion = function* (
  platform: SignaturePlatform,
  heads: Heads,
  seq: number,
  leaf: Uint8Array,
  inclusion: { readonly index: number; readonly size: number; readonly hashes: readonly Uint8Array[] },
): Steps<string | null> {
  if (inclusion.index !== seq - 1) return 'Its proof is of another place in the log.';
  const head = heads.opened.find((each) => each.size === inclusion.size);
  if (head === undefined) return `No checkpoint over ${inclusion.size} receipts is here.`;
  const isIn = yield* verifyInclusion(platform, inclusion, leaf, head.root);
  return isIn ? null : 'It is not under the checkpoint: the proof leads to another root.';
};

/** Null when the largest head continues every other; `unshown` counts those it could not be shown for. */
export const checkConsistency = function* (
  platform: SignaturePlatform,
  heads: Heads,
): Steps<{ wrong: string | null; unshown: number }> {
  const newest = heads.opened.at(-1);
  let unshown = 0;
  for (const head of heads.opened) {
    if (newest === undefined || head === newest) continue;
    if (head.size < newest.size && head.size > 0 && head.consistency === undefined) {
      unshown += 1;
      continue;
    }
    if (!(yield* verifyConsistency(platform, head, newest, head.size === newest.size ? [] : (head.consistency ?? []))))
      return {
        wrong: `The log is not the one a checkpoint over ${head.size} was signed over (${head.place}).`,
        unshown,
      };
  }
  return { wrong: null, unshown };
};
