/**
 * The log around the receipts, pure: an RFC 6962 tree whose leaves are Rekor-v2 `dsse` bodies, and C2SP
 * checkpoints of it. The rule not to break: a node is stored once it is complete and never changes; what is incomplete
 * is computed. Used by the ledger's append, the verifier, exports and the app. Everything that hashes is a generator
 * (steps.ts): `inSync(rootOf(…))` in Node, `await inTurn(rootOf(…))` with WebCrypto.
 */
import { limits } from './limits.ts';
import { fromBase64, toBase64 } from './receipts.ts';
import { settled, type Steps } from './steps.ts';

export interface HashPlatform {
  /** 32 bytes. */
  sha256(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
  utf8(text: string): Uint8Array;
  /** Its own, where it has a quicker one than `toBase64`. */
  base64?(bytes: Uint8Array): string;
}
export interface SignaturePlatform extends HashPlatform {
  /** Ed25519; false for anything that is not a valid signature by this key (SPKI, DER). */
  verify(publicKeySpki: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean | Promise<boolean>;
}

/**
 * Reads the hash of a complete node: level 0 are the leaves, node `index` of `level` covers the 2^level leaves from
 * index · 2^level on. Null where it is not there.
 */
export type NodeReader = (level: number, index: number) => Uint8Array | null;

const half = (value: number): number => Math.floor(value / 2); // sizes may exceed 32 bits: no shifts
const isOdd = (value: number): boolean => value % 2 === 1;
export const isSame = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index]);
const stored = (node: NodeReader, level: number, index: number): Uint8Array => {
  const hash = node(level, index);
  if (hash === null) throw new RangeError(`node ${index} of level ${level} is not in the log`);
  return hash;
};

/**
 * What the log holds of a receipt, as Rekor v2 (`dsse` 0.0.2) spells it, in canonical JSON. `publicKeySpki` is of the key
 * that signed. Every member is base64 or fixed, so there is nothing to escape.
 */
export const leafBody = (
  payloadSha256: Uint8Array,
  signature: Uint8Array,
  publicKeySpki: Uint8Array,
  base64: (bytes: Uint8Array) => string = toBase64,
): string =>
  `{"apiVersion":"0.0.2","kind":"dsse","spec":{"dsseV002":{"payloadHash":{"algorithm":"SHA2_256","digest":"${base64(payloadSha256)}"},"signatures":[{"content":"${base64(signature)}","verifier":{"keyDetails":"PKIX_ED25519","publicKey":{"rawBytes":"${keyText(publicKeySpki)}"}}}]}}}`;

/** One key stands in thousands of leaves. */
const keyTexts = new WeakMap<Uint8Array, string>();
const keyText = (publicKeySpki: Uint8Array): string => {
  const text = keyTexts.get(publicKeySpki) ?? toBase64(publicKeySpki);
  keyTexts.set(publicKeySpki, text);
  return text;
};

/** RFC 6962 2.1: SHA-256(0x00 ‖ data). */
export const leafHash = (platform: HashPlatform, data: Uint8Array): Steps<Uint8Array> => {
  const bytes = new Uint8Array(data.length + 1);
  bytes.set(data, 1);
  return settled(platform.sha256(bytes));
};

/** RFC 6962 2.1: SHA-256(0x01 ‖ left ‖ right). */
export const nodeHash = (platform: HashPlatform, left: Uint8Array, right: Uint8Array): Steps<Uint8Array> => {
  const bytes = new Uint8Array(left.length + right.length + 1);
  bytes[0] = 1;
  bytes.set(left, 1);
  bytes.set(right, left.length + 1);
  return settled(platform.sha256(bytes));
};

/**
 * The nodes that leaf number `index` (from 0) completes: at level 0 itself, then each parent it is the last of.
 * `node` need only know the last complete node of each level, which are those the former appends returned.
 */
export const append = function* (
  platform: HashPlatform,
  index: number,
  leaf: Uint8Array,
  node: NodeReader,
): Steps<Uint8Array[]> {
  const nodes = [leaf];
  let hash = leaf;
  for (let place = index; isOdd(place); place = half(place)) {
    hash = yield* nodeHash(platform, stored(node, nodes.length - 1, place - 1), hash);
    nodes.push(hash);
  }
  return nodes;
};

/** The root over the first `size` leaves; of the empty tree the hash of nothing. */
export const rootOf = function* (platform: HashPlatform, size: number, node: NodeReader): Steps<Uint8Array> {
  return size === 0 ? yield* settled(platform.sha256(new Uint8Array())) : yield* range(platform, 0, size, node);
};

/** Largest power of two below `count` (at least 2). */
const split = (count: number): number => {
  let size = 1;
  while (size * 2 < count) size *= 2;
  return size;
};

/** The hash over the leaves [begin, end), where `begin` is a multiple of the power of two that holds them. */
const range = function* (platform: HashPlatform, begin: number, end: number, node: NodeReader): Steps<Uint8Array> {
  const count = end - begin;
  const level = Math.round(Math.log2(count));
  if (2 ** level === count) return stored(node, level, begin / count);
  const middle = begin + split(count);
  const left = yield* range(platform, begin, middle, node);
  return yield* nodeHash(platform, left, yield* range(platform, middle, end, node));
};

/**
 * RFC 6962 2.1.1: the hashes that lead from leaf `index` to the root over `size` leaves, lowest first.
 * @throws RangeError for a leaf beyond `size`, or a node that is not there
 */
export const inclusionProof = function* (
  platform: HashPlatform,
  index: number,
  size: number,
  node: NodeReader,
): Steps<Uint8Array[]> {
  if (!(index >= 0 && index < size)) throw new RangeError(`there is no leaf ${index} in a log of ${size}`);
  const hashes: Uint8Array[] = [];
  for (let begin = 0, end = size; end - begin > 1;) {
    const middle = begin + split(end - begin);
    const isLeft = index < middle;
    hashes.unshift(yield* isLeft ? range(platform, middle, end, node) : range(platform, begin, middle, node));
    if (isLeft) end = middle;
    else begin = middle;
  }
  return hashes;
};

/**
 * RFC 6962 2.1.2: that the first `from` leaves are still the first of `to`. Empty when either says nothing (0, or equal).
 * @throws RangeError when `from` exceeds `to`, or a node is not there
 */
export const consistencyProof = function* (
  platform: HashPlatform,
  from: number,
  to: number,
  node: NodeReader,
): Steps<Uint8Array[]> {
  if (!(from >= 0 && from <= to)) throw new RangeError(`a log of ${to} is not a continuation of one of ${from}`);
  const hashes: Uint8Array[] = [];
  if (from === 0 || from === to) return hashes;
  let [begin, end] = [0, to];
  // Down to the old tree's right edge; what branches off on the way is the proof.
  while (end !== from) {
    const middle = begin + split(end - begin);
    const isLeft = from <= middle;
    hashes.unshift(yield* isLeft ? range(platform, middle, end, node) : range(platform, begin, middle, node));
    if (isLeft) end = middle;
    else begin = middle;
  }
  if (begin > 0) hashes.unshift(yield* range(platform, begin, end, node)); // from 0 on, it is the old root itself
  return hashes;
};

/** Whether `leaf` is leaf `index` of the log of `size` with this root (RFC 9162 2.1.3.2). */
export const verifyInclusion = function* (
  platform: HashPlatform,
  proof: { readonly index: number; readonly size: number; readonly hashes: readonly Uint8Array[] },
  leaf: Uint8Array,
  root: Uint8Array,
): Steps<boolean> {
  if (!(proof.index >= 0 && proof.index < proof.size)) return false;
  let place = proof.index;
  let last = proof.size - 1;
  let hash = leaf;
  for (const other of proof.hashes) {
    if (last === 0) return false;
    if (isOdd(place) || place === last) {
      hash = yield* nodeHash(platform, other, hash);
      while (!isOdd(place) && place !== 0) [place, last] = [half(place), half(last)];
    } else hash = yield* nodeHash(platform, hash, other);
    [place, last] = [half(place), half(last)];
  }
  return last === 0 && isSame(hash, root);
};

export interface TreeHead {
  readonly size: number;
  readonly root: Uint8Array;
}

/** Whether `to` continues `from` (RFC 9162 2.1.4.2). An empty log is continued by any. */
export const verifyConsistency = function* (
  platform: HashPlatform,
  from: TreeHead,
  to: TreeHead,
  hashes: readonly Uint8Array[],
): Steps<boolean> {
  if (!(from.size >= 0 && from.size <= to.size)) return false;
  if (from.size === to.size) return hashes.length === 0 && isSame(from.root, to.root);
  if (from.size === 0) return hashes.length === 0;
  let place = from.size - 1;
  let last = to.size - 1;
  while (isOdd(place)) [place, last] = [half(place), half(last)];
  const path = place === 0 ? [from.root, ...hashes] : hashes; // `from` is one complete node: its root starts the path
  const [first] = path;
  if (first === undefined) return false;
  let [old, now] = [first, first];
  for (const other of path.slice(1)) {
    if (last === 0) return false;
    if (isOdd(place) || place === last) {
      old = yield* nodeHash(platform, other, old);
      now = yield* nodeHash(platform, other, now);
      while (!isOdd(place) && place !== 0) [place, last] = [half(place), half(last)];
    } else now = yield* nodeHash(platform, now, other);
    [place, last] = [half(place), half(last)];
  }
  return last === 0 && isSame(old, from.root) && isSame(now, to.root);
};

// Checkpoints: C2SP tlog-checkpoint inside a signed note.

/** The text that is signed. `origin` is `receiptOrigin(bridgeId)`. */
export const checkpointText = (origin: string, size: number, root: Uint8Array): string =>
  `${origin}\n${String(size)}\n${toBase64(root)}\n`;

/** The last 32 bytes of an Ed25519 SPKI are the key itself. */
const rawKey = (publicKeySpki: Uint8Array): Uint8Array => publicKeySpki.slice(-32);

/** SHA-256(name ‖ 0x0A ‖ 0x01 ‖ key): its first four bytes name a key in a signed note, all of them a Sigstore log. */
export const noteKeyId = (platform: HashPlatform, keyName: string, publicKeySpki: Uint8Array): Steps<Uint8Array> =>
  settled(platform.sha256(Uint8Array.of(...platform.utf8(keyName), 0x0a, 0x01, ...rawKey(publicKeySpki))));

/** C2SP signed note: `text` (ends with a line feed) and one Ed25519 signature over exactly it. */
export const noteOf = function* (
  platform: HashPlatform,
  text: string,
  keyName: string,
  signature: Uint8Array,
  publicKeySpki: Uint8Array,
): Steps<string> {
  const keyId = yield* noteKeyId(platform, keyName, publicKeySpki);
  return `${text}\n— ${keyName} ${toBase64(Uint8Array.of(...keyId.slice(0, 4), ...signature))}\n`;
};

/**
 * What a checkpoint says, when it is of this log and signed by one of `keys` (SPKI); null otherwise. Signatures of others
 * (witnesses) are passed over, as C2SP asks.
 */
export const openCheckpoint = function* (
  platform: SignaturePlatform,
  note: string,
  origin: string,
  keys: readonly Uint8Array[],
): Steps<TreeHead | null> {
  if (note.length > limits.checkpointUnits) return null;
  const end = note.lastIndexOf('\n\n');
  if (end < 0 || !note.endsWith('\n')) return null;
  const text = note.slice(0, end + 1);
  const head = readHead(text, origin);
  if (head === null) return null;
  const prefix = `— ${origin} `;
  for (const line of note.slice(end + 2, -1).split('\n')) {
    const signed = line.startsWith(prefix) ? fromBase64(line.slice(prefix.length)) : null;
    if (signed === null || signed.length !== 68) continue;
    for (const key of keys) {
      const keyId = yield* noteKeyId(platform, origin, key);
      if (!isSame(keyId.slice(0, 4), signed.slice(0, 4))) continue;
      if (yield* settled(platform.verify(key, platform.utf8(text), signed.slice(4)))) return head;
    }
  }
  return null;
};

/** Origin, size and root of a checkpoint's text, unsigned; null where it is of another log or not one. */
const readHead = (text: string, origin: string): TreeHead | null => {
  const [first, size, hash, rest, ...more] = text.split('\n');
  if (first !== origin || rest !== '' || more.length > 0) return null;
  if (size === undefined || !/^(0|[1-9]\d{0,15})$/.test(size) || !Number.isSafeInteger(Number(size))) return null;
  const root = hash === undefined ? null : fromBase64(hash);
  return root?.length === 32 ? { size: Number(size), root } : null;
};

/** A checkpoint in one line, for pasting where line ends get lost: origin, size, root and each signature. */
export const checkpointLine = (note: string): string => {
  const [origin = '', size = '', root = '', , ...signed] = note.trimEnd().split('\n');
  return [origin, size, root, ...signed.map((line) => line.replace(`— ${origin} `, ''))].join(' ');
};

/** Every checkpoint in a text: notes, one after the other, and lines made by `checkpointLine`. Unverified. */
export const checkpointsIn = (text: string): string[] => {
  const notes = text.match(/^\S+\n\d+\n[A-Za-z0-9+/]{43}=\n\n(?:— \S+ [A-Za-z0-9+/=]+(?:\n|$))+/gm) ?? [];
  const lines = [...text.matchAll(/^(\S+) (\d+) ([A-Za-z0-9+/]{43}=) ([A-Za-z0-9+/]{91}=)$/gm)].map(
    ([, origin = '', size = '', root = '', signed = '']) => `${origin}\n${size}\n${root}\n\n— ${origin} ${signed}\n`,
  );
  return [...notes.map((note) => (note.endsWith('\n') ? note : `${note}\n`)), ...lines];
};
