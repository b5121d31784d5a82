/**
 * A checkpoint's twin for people who have OpenSSH and nothing else: an SSHSIG over the same bytes by the same key
 * (PROTOCOL.sshsig of OpenSSH). The namespace inside keeps it from being taken for any other signature. Used by exports.
 */
import { createHash, sign, type KeyObject } from 'node:crypto';
import { verifyEd25519 } from './signature.ts';

export const checkpointNamespace = 'countersign-checkpoint';
const [begin, end] = ['-----BEGIN SSH SIGNATURE-----', '-----END SSH SIGNATURE-----'];
const [magic, algorithm, hash] = ['SSHSIG', 'ssh-ed25519', 'sha512'];

/** RFC 4251 `string`: length, then bytes. */
const field = (data: Uint8Array | string): Buffer => {
  const bytes = Buffer.from(data);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
};
/** An Ed25519 SPKI ends with the 32 bytes of the key itself. */
const sshKey = (publicKeySpki: Uint8Array): Buffer =>
  Buffer.concat([field(algorithm), field(publicKeySpki.slice(-32))]);

const signedBytes = (message: Uint8Array): Buffer => {
  const digest = createHash(hash).update(message).digest();
  return Buffer.concat([Buffer.from(magic), field(checkpointNamespace), field(''), field(hash), field(digest)]);
};
/** Everything before the signature itself: the same for every checkpoint of a key. */
const head = (publicKeySpki: Uint8Array): Buffer => {
  const version = Buffer.from([0, 0, 0, 1]);
  const fields = [field(sshKey(publicKeySpki)), field(checkpointNamespace), field(''), field(hash)];
  return Buffer.concat([Buffer.from(magic), version, ...fields]);
};

const armour = (blob: Buffer): string =>
  [begin, ...(blob.toString('base64').match(/.{1,70}/g) ?? []), end, ''].join('\n');

/** Armoured signature over `message`, as `ssh-keygen -Y sign` would write it. */
export const sshSignature = (
  message: Uint8Array,
  key: { readonly publicKeySpki: Uint8Array; readonly privateKey: KeyObject },
): string => {
  const signature = Buffer.concat([field(algorithm), field(sign(null, signedBytes(message), key.privateKey))]);
  return armour(Buffer.concat([head(key.publicKeySpki), field(signature)]));
};

/** Whether `armoured` is, letter for letter, what `sshSignature` gives for this message and key. */
export const verifySshSignature = (message: Uint8Array, publicKeySpki: Uint8Array, armoured: string): boolean => {
  const blob = Buffer.from(armoured.split('\n').slice(1, -2).join(''), 'base64');
  const signature = blob.subarray(-64);
  const expected = Buffer.concat([head(publicKeySpki), field(Buffer.concat([field(algorithm), field(signature)]))]);
  return armour(expected) === armoured && verifyEd25519(publicKeySpki, signedBytes(message), signature);
};

/** A line for each key, for `ssh-keygen -Y verify -f`; `origin` is who signs (`-I`). */
export const allowedSigners = (origin: string, keys: readonly Uint8Array[]): string =>
  keys
    .map((key) => `${origin} namespaces="${checkpointNamespace}" ${algorithm} ${sshKey(key).toString('base64')}\n`)
    .join('');
