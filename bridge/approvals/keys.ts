/**
 * The signing key of receipts: PKCS#8 Ed25519, `<state>/private/keys/receipt.pem`, 0600 in a 0700 directory.
 * Checked at every start like ssh checks its own; an unsafe key refuses the start, it is never repaired or replaced.
 * Called once, by main and by the verbs that read a state. Key bytes never leave this file except as a KeyObject.
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
  type Stats,
} from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';

export interface ReceiptKey {
  readonly keyId: string;
  readonly publicKeySpki: Uint8Array;
  readonly publicKeyPem: string;
  readonly privateKey: KeyObject;
}

const unsafe = (message: string, cause?: unknown): Refusal => new Refusal('unsafe_key', { message, cause });
const quoted = (path: string): string => `'${path.replaceAll("'", "'\\''")}'`;
const isMissing = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ENOENT';

/** `SHA256:` and the base64url digest of the SPKI bytes: a hint that names a key. */
export const keyIdOf = (publicKeySpki: Uint8Array): string =>
  `SHA256:${createHash('sha256').update(publicKeySpki).digest('base64url')}`;

/** SPKI as PEM. */
export const pemOf = (publicKeySpki: Uint8Array): string =>
  createPublicKey({ key: Buffer.from(publicKeySpki), format: 'der', type: 'spki' })
    .export({ type: 'spki', format: 'pem' })
    .toString();

const mine = (path: string, stat: Stats, mode: string): void => {
  if (stat.uid !== process.getuid?.())
    throw unsafe(`${path} belongs to another user. Move it away, or: chown "$USER" ${quoted(path)}`);
  if ((stat.mode & 0o077) !== 0)
    throw unsafe(`${path} can be reached by other users. To mend it: chmod ${mode} ${quoted(path)}`);
};

const checkDirectory = (directory: string): void => {
  const stat = lstatSync(directory);
  if (stat.isSymbolicLink() || !stat.isDirectory())
    throw unsafe(`${directory} must be a real directory, not a link or a file. Move it away.`);
  mine(directory, stat, '700');
};

/** Makes names that were made, moved or removed in `directory` durable. */
export const syncDirectory = (directory: string): void => {
  const entry = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(entry);
  } finally {
    closeSync(entry);
  }
};

const create = (path: string, directory: string): void => {
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  try {
    writeSync(file, pem);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  syncDirectory(directory); // without it a power cut could keep receipts and lose the key that signed them
};

const open = (path: string): number | null => {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isMissing(error)) return null;
    throw unsafe(`${path} cannot be opened as a plain file. It must not be a link; move it away.`, error);
  }
};

const read = (path: string): KeyObject | null => {
  const file = open(path);
  if (file === null) return null;
  try {
    const stat = fstatSync(file);
    if (!stat.isFile() || stat.nlink !== 1) throw unsafe(`${path} must be a plain file with one name. Move it away.`);
    mine(path, stat, '600');
    if (stat.size > limits.keyFileBytes) throw unsafe(`${path} is too large to be a key. Move it away.`);
    const key = createPrivateKey(readFileSync(file));
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw unsafe(`${path} cannot be read as a PKCS#8 key. Restore it from a backup.`); // no cause: a parser may quote its input
  } finally {
    closeSync(file);
  }
  throw unsafe(`${path} is not an Ed25519 key. Restore it from a backup.`);
};

const described = (privateKey: KeyObject): ReceiptKey => {
  const publicKey = createPublicKey(privateKey);
  const publicKeySpki = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }));
  return {
    keyId: keyIdOf(publicKeySpki),
    publicKeySpki,
    publicKeyPem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    privateKey,
  };
};

const current = (directory: string): string => join(directory, 'receipt.pem');
const next = (directory: string): string => join(directory, 'receipt.next.pem');

/**
 * Opens `receipt.pem` in `directory` (`<state>/private/keys`), making both when the directory holds none. A change of keys
 * that was interrupted is brought to its end first: `lastKeyId`, of the last receipt, tells on which side of its commit.
 * @throws Refusal unsafe_key with the command that mends it: wrong owner, mode, a link, a second name, not Ed25519.
 */
export const openReceiptKey = (directory: string, lastKeyId: string | null = null): ReceiptKey => {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  checkDirectory(directory);
  const left = read(next(directory));
  if (left !== null) {
    if (described(left).keyId === lastKeyId) adoptNextKey(directory);
    else dropNextKey(directory);
  }
  const path = current(directory);
  const key = read(path);
  if (key !== null) return described(key);
  create(path, directory);
  const made = read(path);
  if (made === null) throw unsafe(`${path} was removed while it was made. Start again.`);
  return described(made);
};

/** Step one of a change of keys: the new key, durable beside the present one. */
export const createNextKey = (directory: string): ReceiptKey => {
  dropNextKey(directory);
  create(next(directory), directory);
  const made = read(next(directory));
  if (made === null) throw unsafe(`${next(directory)} was removed while it was made. Try again.`);
  return described(made);
};

/** The last step, after both receipts of the change are committed: the new key replaces the former, which is gone. */
export const adoptNextKey = (directory: string): void => {
  renameSync(next(directory), current(directory));
  syncDirectory(directory);
};

/** The change did not happen. */
export const dropNextKey = (directory: string): void => {
  rmSync(next(directory), { force: true });
  syncDirectory(directory);
};

/** The public half for readers that must not sign or create anything; null where there is no key. @throws Refusal unsafe_key */
export const readPublicKey = (directory: string): Omit<ReceiptKey, 'privateKey'> | null => {
  const key = readReceiptKey(directory);
  if (key === null) return null;
  const { keyId, publicKeySpki, publicKeyPem } = key;
  return { keyId, publicKeySpki, publicKeyPem };
};

/** For a verb that signs beside a running bridge: makes nothing, ends no change of keys. @throws Refusal unsafe_key */
export const readReceiptKey = (directory: string): ReceiptKey | null => {
  const key = read(current(directory));
  return key === null ? null : described(key);
};
