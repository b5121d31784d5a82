/**
 * Ed25519 by node:crypto. The rule not to break: whatever is given, the answer is yes or no, never an error. Used wherever
 * the bridge verifies, and on the thread of checker.ts.
 */
import { createPublicKey, verify, type KeyObject } from 'node:crypto';

const publicKeys = new WeakMap<Uint8Array, KeyObject>();
/** Parsed once for each array: parsing costs as much as verifying. @throws for anything but an Ed25519 key */
const publicKeyOf = (publicKeySpki: Uint8Array): KeyObject => {
  const known = publicKeys.get(publicKeySpki);
  if (known !== undefined) return known;
  const key = createPublicKey({ key: Buffer.from(publicKeySpki), format: 'der', type: 'spki' });
  if (key.asymmetricKeyType !== 'ed25519') throw new TypeError('not an Ed25519 key');
  publicKeys.set(publicKeySpki, key);
  return key;
};

/** Ed25519 over `message`; `publicKeySpki` is DER. False for any key or signature that is not one. */
export const verifyEd25519 = (publicKeySpki: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean => {
  try {
    return verify(null, message, publicKeyOf(publicKeySpki), signature);
  } catch {
    return false;
  }
};
