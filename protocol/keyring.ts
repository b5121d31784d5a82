/**
 * The keys an installation signs with over time, reached from the one that is given: by rotation receipts signed
 * by a key that is known already. Each is good for a span of the sequence. Used by the verifier and by the bridge.
 */
import type { SignaturePlatform } from './log.ts';
import { fromBase64, payloadType, preAuthEncoding, statementSchema, toBase64 } from './receipts.ts';
import { z } from './schema.ts';
import { settled, type Steps } from './steps.ts';
import type { VerifyPlatform } from './verify.ts';

export interface SigningKey {
  readonly keyId: string;
  /** DER. */
  readonly publicKeySpki: Uint8Array;
  /** Signs receipts with seq from `first` through `last` only. */
  readonly first: number;
  readonly last: number;
}
export type Keyring = ReadonlyMap<string, SigningKey>;
interface Signed {
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
  readonly keyId: string;
}

/** `SHA256:` and the base64url digest of the SPKI bytes. */
export const keyIdFor = function* (platform: SignaturePlatform, publicKeySpki: Uint8Array): Steps<string> {
  return `SHA256:${toBase64(yield* settled(platform.sha256(publicKeySpki)), 'base64url')}`;
};

interface Rotation {
  readonly seq: number;
  readonly former: { readonly keyId: string; readonly publicKey: string };
  readonly next: { readonly keyId: string; readonly publicKey: string };
}

/** What a receipt of a rotation says, unverified; null where it is none. */
export const rotationOf = (platform: Pick<VerifyPlatform, 'text'>, payload: Uint8Array): Rotation | null => {
  let parsed: unknown;
  try {
    parsed = JSON.parse(platform.text(payload));
  } catch {
    return null;
  }
  const read = z.safeParse(statementSchema, parsed);
  if (!read.success) return null;
  const { receipt, rotation } = read.data.predicate;
  return receipt.kind !== 'key-rotation' || rotation === undefined ? null : { seq: receipt.seq, ...rotation };
};

/**
 * Every key reached from `given` (SPKI). The former key vouches for the next with the first receipt of a rotation, the
 * next for the former with the second. What is signed by no known key leads nowhere and is passed over: where it
 * stands in the sequence, it is named as a problem.
 */
export const keyringOf = function* (
  platform: VerifyPlatform,
  given: Uint8Array,
  rotations: readonly Signed[],
): Steps<Keyring> {
  const keyId = yield* keyIdFor(platform, given);
  const keys = new Map<string, SigningKey>([
    [keyId, { keyId, publicKeySpki: given, first: 1, last: Number.MAX_SAFE_INTEGER }],
  ]);
  let open = rotations;
  for (let before = -1; open.length !== before;) {
    before = open.length;
    const later: Signed[] = [];
    for (const signed of open) if (!(yield* follow(platform, keys, signed))) later.push(signed);
    open = later;
  }
  return keys;
};

/** Takes one rotation receipt in; false where its signer is not known yet. */
const follow = function* (platform: VerifyPlatform, keys: Map<string, SigningKey>, signed: Signed): Steps<boolean> {
  const signer = keys.get(signed.keyId);
  if (signer === undefined) return false;
  const message = preAuthEncoding(payloadType, signed.payload, platform.utf8);
  if (!(yield* settled(platform.verify(signer.publicKeySpki, message, signed.signature)))) return true;
  const rotation = rotationOf(platform, signed.payload);
  if (rotation === null) return true;
  const { former, next } = rotation;
  const lastOfFormer = signer.keyId === former.keyId ? rotation.seq : rotation.seq - 1;
  yield* learn(platform, keys, former, (key) => ({ ...key, last: Math.min(key.last, lastOfFormer) }));
  yield* learn(platform, keys, next, (key) => ({ ...key, first: Math.max(key.first, lastOfFormer + 1) }));
  return true;
};

const learn = function* (
  platform: VerifyPlatform,
  keys: Map<string, SigningKey>,
  named: Rotation['former'],
  narrow: (key: SigningKey) => SigningKey,
): Steps<void> {
  const publicKeySpki = fromBase64(named.publicKey, 'base64url');
  if (publicKeySpki === null || (yield* keyIdFor(platform, publicKeySpki)) !== named.keyId) return;
  const known = keys.get(named.keyId);
  keys.set(
    named.keyId,
    narrow(known ?? { keyId: named.keyId, publicKeySpki, first: 1, last: Number.MAX_SAFE_INTEGER }),
  );
};
