/**
 * A receipt together with its place in the log, in the forms other tools read: a Sigstore bundle with the trusted
 * root it is checked against, and a C2SP tlog-proof. Pure. The rule not to break: each form is one text of what it
 * says, so that whoever has the receipt can make it again and compare. Used by exports, `bridge verify` and the app.
 */
import { canonical } from './json.ts';
import { limits } from './limits.ts';
import { leafBody, noteKeyId, type HashPlatform } from './log.ts';
import { fromBase64, payloadType, toBase64 } from './receipts.ts';
import { list, text, z } from './schema.ts';
import { settled, type Steps } from './steps.ts';

export const bundleType = 'application/vnd.dev.sigstore.bundle.v0.3+json';
export const trustedRootType = 'application/vnd.dev.sigstore.trustedroot+json;version=0.1';
const proofHead = 'c2sp.org/tlog-proof@v1';

/** Where a receipt is in the log, and the signed log. */
export interface Place {
  /** From 0: a receipt's seq − 1. */
  readonly index: number;
  /** Of the log that `checkpoint` is about. */
  readonly size: number;
  readonly root: Uint8Array;
  /** RFC 6962 inclusion proof, lowest first. */
  readonly hashes: readonly Uint8Array[];
  /** C2SP signed note. */
  readonly checkpoint: string;
}
/** A receipt as it was signed, and its place. */
export interface Placed {
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
  readonly keyId: string;
  readonly place: Place;
}
/** What a form names beside the receipt: both keys are SPKI. After a rotation they can differ. */
export interface PlacedBy {
  readonly origin: string;
  /** Signed the receipt. */
  readonly signer: Uint8Array;
  /** Signed the checkpoint. */
  readonly logKey: Uint8Array;
}

/** The bundle as canonical JSON: `bundle.v0.3`, a public key's hint, one log entry, the DSSE envelope. */
export const bundleText = function* (platform: HashPlatform, placed: Placed, by: PlacedBy): Steps<string> {
  const { payload, signature, keyId, place } = placed;
  const logId = yield* noteKeyId(platform, by.origin, by.logKey);
  const body = leafBody(yield* settled(platform.sha256(payload)), signature, by.signer);
  const logIndex = String(place.index); // proto3 JSON spells 64-bit integers as strings
  const entry = {
    logIndex,
    logId: { keyId: toBase64(logId) },
    kindVersion: { kind: 'dsse', version: '0.0.2' },
    inclusionProof: {
      logIndex,
      rootHash: toBase64(place.root),
      treeSize: String(place.size),
      hashes: place.hashes.map((hash) => toBase64(hash)),
      checkpoint: { envelope: place.checkpoint },
    },
    canonicalizedBody: toBase64(platform.utf8(body)),
  };
  return canonical({
    mediaType: bundleType,
    verificationMaterial: { publicKey: { hint: keyId }, tlogEntries: [entry] },
    dsseEnvelope: {
      payload: toBase64(payload),
      payloadType,
      signatures: [{ keyid: keyId, sig: toBase64(signature) }],
    },
  });
};

const integer = z.string().check(z.regex(/^(0|[1-9]\d{0,14})$/));
const bundleSchema = z.object({
  mediaType: z.literal(bundleType),
  verificationMaterial: z.object({
    tlogEntries: list(
      z.object({
        inclusionProof: z.object({
          logIndex: integer,
          rootHash: text(44),
          treeSize: integer,
          hashes: list(text(44), 64),
          checkpoint: z.object({ envelope: text(limits.checkpointUnits) }),
        }),
      }),
      1,
    ).check(z.minLength(1)),
  }),
  dsseEnvelope: z.object({
    payload: text(limits.eventBytes),
    payloadType: z.literal(payloadType),
    signatures: list(z.object({ keyid: text(100), sig: text(128) }), 1).check(z.minLength(1)),
  }),
});

const parsed = (json: string): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
};

/** The receipt and its place as a bundle states them, unchecked; null where it is not a bundle of ours. */
export const openBundle = (json: string): Placed | null => {
  const read = z.safeParse(bundleSchema, parsed(json));
  if (!read.success) return null;
  const [entry] = read.data.verificationMaterial.tlogEntries;
  const [signed] = read.data.dsseEnvelope.signatures;
  if (entry === undefined || signed === undefined) return null;
  const { logIndex, rootHash, treeSize, hashes, checkpoint } = entry.inclusionProof;
  const [payload, signature, root, ...path] = [read.data.dsseEnvelope.payload, signed.sig, rootHash, ...hashes].map(
    (each) => fromBase64(each),
  );
  if (!payload || !signature || root?.length !== 32) return null;
  const proof = path.filter((hash) => hash?.length === 32) as Uint8Array[];
  if (proof.length < path.length) return null;
  const place = { index: Number(logIndex), size: Number(treeSize), root, hashes: proof };
  return { payload, signature, keyId: signed.keyid, place: { ...place, checkpoint: checkpoint.envelope } };
};

/** `c2sp.org/tlog-proof@v1`: index, proof and checkpoint. The leaf is not in it; it follows from the envelope and the key. */
export const tlogProofText = ({ index, hashes, checkpoint }: Place): string =>
  [proofHead, `index ${String(index)}`, ...hashes.map((hash) => toBase64(hash)), '', checkpoint].join('\n');

/** A key of the installation, with the time (ms) a rotation brought it in and the one that ended it; null: none did. */
export interface LogKey {
  readonly publicKeySpki: Uint8Array;
  readonly from: number | null;
  readonly until: number | null;
}
const dated = (at: number): string => new Date(at).toISOString();

/** What Sigstore's verifiers are given as trusted: our log, once for each of its keys, and nobody else. */
export const trustedRootText = function* (
  platform: HashPlatform,
  origin: string,
  keys: readonly LogKey[],
): Steps<string> {
  const tlogs = [];
  for (const { publicKeySpki, from, until } of keys) {
    const validFor = { start: dated(from ?? 0), ...(until === null ? {} : { end: dated(until) }) };
    tlogs.push({
      baseUrl: `https://${origin}`, // a name, never fetched: checkpoints must be signed under a part of it
      hashAlgorithm: 'SHA2_256',
      publicKey: { rawBytes: toBase64(publicKeySpki), keyDetails: 'PKIX_ED25519', validFor },
      logId: { keyId: toBase64(yield* noteKeyId(platform, origin, publicKeySpki)) },
    });
  }
  const nobody = { certificateAuthorities: [], ctlogs: [], timestampAuthorities: [] };
  return canonical({ mediaType: trustedRootType, tlogs, ...nobody });
};
