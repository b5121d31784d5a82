/**
 * The receipt format: an in-toto Statement v1 as canonical JSON bytes, signed once inside a DSSE envelope.
 * Bytes that were signed are stored and never re-serialised; every sentence for people stays outside.
 * Used by the seal that signs, by the verifier at both ends, and by the page key that signs decisions.
 */
import { containments, enforcements, outcomes, receiptKinds } from './events.ts';
import { guardOf } from './guard.ts';
import { canonical } from './json.ts';
import { limits } from './limits.ts';
import { decisionProofPrefix, type DecisionProof } from './methods/approval.ts';
import { base64url, count, list, name, sha256, text, time, uuid, z } from './schema.ts';

export const statementType = 'https://in-toto.io/Statement/v1';
export const predicateType = 'https://countersign.local/receipt/v1';
export const payloadType = 'application/vnd.in-toto+json';
/** Of the action bytes a receipt is about: canonical JSON. */
export const actionMediaType = 'application/json';
/** The log a receipt belongs to; `bridgeId` names the installation. */
export const receiptOrigin = (bridgeId: string): string => `countersign.local/log/${bridgeId}`;

const digest = z.object({ sha256 });
const id = name(500);
const signingKey = z.object({ keyId: name(100), publicKey: base64url(400) });

/** Unknown members are ignored on reading (in-toto parsing rules); what is known must be there. */
export const predicateSchema = z.object({
  receipt: z.object({
    id: uuid,
    /** 1, 2, 3 … without a gap over the whole installation. */
    seq: count,
    kind: z.enum(receiptKinds),
    at: time,
    conversation: z.nullable(name(64)),
    /** sha256 of the payload with seq − 1; null only for the first. */
    previous: z.nullable(digest),
    origin: text(200),
  }),
  /** Who caused a receipt that is not about an approval. */
  author: z.nullable(z.object({ by: z.enum(['operator', 'cli', 'bridge']), session: z.nullable(uuid) })),
  request: z.nullable(
    z.object({
      id: uuid,
      turn: z.nullable(uuid),
      toolCall: z.nullable(name(128)),
      receivedAt: time,
      mediaType: text(100),
      size: count,
    }),
  ),
  agent: z.nullable(
    z.object({
      id,
      name: text(500),
      version: text(500),
      executableSha256: text(64),
      entrySha256: z.nullable(text(64)),
      model: z.nullable(text(500)),
      session: text(500),
      enforcement: z.enum(enforcements),
      containment: z.enum(containments),
    }),
  ),
  workspace: z.nullable(z.object({ id, rootSha256: text(64), gitHead: z.nullable(text(64)) })),
  policy: z.nullable(
    z.object({
      /** Generation of the rules, and the digest over them. */
      version: count,
      digest: sha256,
      /** What decided when nobody was asked: a rule's id, `cli --allow all`, `expired`. */
      rule: z.nullable(text(200)),
      outcome: z.enum(['allow', 'reject', 'ask']),
    }),
  ),
  decision: z.nullable(
    z.object({
      value: z.enum(['allow', 'deny']),
      option: text(500),
      by: z.enum(['operator', 'cli', 'rule']),
      session: z.nullable(uuid),
      shown: digest,
      noteSha256: sha256,
      remembered: z.boolean(),
      decidedAt: time,
      expiresAt: time,
      proof: z.object({
        by: z.enum(['browser', 'control-socket', 'terminal', 'rule']),
        keyId: z.optional(text(100)),
        /** Ed25519 over `decisionProofText`, base64url. */
        sig: z.optional(base64url(128)),
        /** `--yes`: decided by a command without a person at a terminal. */
        mark: z.optional(text(20)),
      }),
    }),
  ),
  outcome: z.nullable(
    z.object({
      decision: z.object({ id: uuid, sha256 }),
      value: z.enum(outcomes),
      resultSha256: z.nullable(sha256),
      startedAt: time,
      endedAt: time,
    }),
  ),
  /** The page key of a session: what its decisions' proofs are checked with. SPKI, base64url. */
  session: z.nullable(z.object({ id: uuid, keyId: name(100), publicKey: base64url(400) })),
  /**
   * A change of the signing key. Two receipts of one subject carry it: the first signed by the former key, the next
   * by the new one. Every later receipt is signed by the new key. SPKI, base64url. Absent from all others.
   */
  rotation: z.optional(z.object({ former: signingKey, next: signingKey })),
  bridge: z.object({
    version: text(64),
    assetDigest: text(128),
    bootId: uuid,
    monotonicMs: count,
    clock: z.enum(['ok', 'stepped']),
  }),
});
export type ReceiptPredicate = z.infer<typeof predicateSchema>;

export const statementSchema = z.object({
  _type: z.literal(statementType),
  predicateType: z.literal(predicateType),
  subject: list(z.object({ name: text(200), digest }), 1).check(z.minLength(1)),
  predicate: predicateSchema,
});
export type Statement = z.infer<typeof statementSchema>;

export const envelopeSchema = z.object({
  payload: text(limits.eventBytes),
  payloadType: z.literal(payloadType),
  signatures: list(z.object({ keyid: text(100), sig: text(128) }), 1).check(z.minLength(1)),
});
export type Envelope = z.infer<typeof envelopeSchema>;
const isEnvelope = guardOf(envelopeSchema);

/** Canonical text of the statement about one action. */
export const statementText = (
  subject: { readonly name: string; readonly sha256: string },
  predicate: ReceiptPredicate,
): string =>
  canonical({
    _type: statementType,
    predicateType,
    subject: [{ name: subject.name, digest: { sha256: subject.sha256 } }],
    predicate,
  });

/** The bytes that are signed: DSSE's pre-authentication encoding, with the type inside. `utf8` comes from the platform. */
export const preAuthEncoding = (type: string, payload: Uint8Array, utf8: (text: string) => Uint8Array): Uint8Array => {
  const typeLength = type === payloadType ? payloadType.length : utf8(type).length; // ours is ASCII
  const head = utf8(`DSSEv1 ${typeLength} ${type} ${payload.length} `);
  const bytes = new Uint8Array(head.length + payload.length);
  bytes.set(head);
  bytes.set(payload, head.length);
  return bytes;
};

/** What the page key signs to decide; `noteSha256` is of the note's UTF-8, of the empty string without one. */
export const decisionProofText = (proof: DecisionProof): string =>
  decisionProofPrefix +
  canonical({
    approval: proof.approval,
    digest: proof.digest,
    option: proof.option,
    value: proof.value,
    noteSha256: proof.noteSha256,
  });

const alphabets = {
  base64: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
  base64url: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
} as const;

type Alphabet = keyof typeof alphabets;
/** Two digits at a time: an envelope is 3,000 of them, a log ten thousand envelopes. */
const pairsOf = (kind: Alphabet): string[] =>
  Array.from(
    { length: 4096 },
    (_, twelve) => alphabets[kind].charAt(twelve >> 6) + alphabets[kind].charAt(twelve & 63),
  );
const valuesOf = (kind: Alphabet): Int8Array => {
  const values = new Int8Array(128).fill(-1);
  [...alphabets[kind]].forEach((digit, value) => (values[digit.charCodeAt(0)] = value));
  return values;
};
const pairs = { base64: pairsOf('base64'), base64url: pairsOf('base64url') } as const;
const values = { base64: valuesOf('base64'), base64url: valuesOf('base64url') } as const;

/** RFC 4648; padded in `base64`, not in `base64url`. */
export const toBase64 = (bytes: Uint8Array, kind: Alphabet = 'base64'): string => {
  const pair = pairs[kind];
  let encoded = '';
  for (let index = 0; index < bytes.length; index += 3) {
    const word = ((bytes[index] ?? 0) << 16) | ((bytes[index + 1] ?? 0) << 8) | (bytes[index + 2] ?? 0);
    encoded += (pair[word >> 12] ?? '') + (pair[word & 4095] ?? '');
  }
  const spare = (3 - (bytes.length % 3)) % 3;
  const digits = spare === 0 ? encoded : encoded.slice(0, -spare);
  return kind === 'base64' ? digits + '='.repeat(spare) : digits;
};

/** The bytes, or null where the text is not the one encoding of them: other alphabets, whitespace and stray bits are refused. */
export const fromBase64 = (encoded: string, kind: Alphabet = 'base64'): Uint8Array | null => {
  const digits = kind === 'base64' ? encoded.replace(/={1,2}$/, '') : encoded;
  const rest = digits.length % 4;
  if (rest === 1 || (kind === 'base64' && encoded.length % 4 !== 0)) return null;
  const value = values[kind];
  const bytes = new Uint8Array(Math.floor((digits.length * 3) / 4));
  const whole = digits.length - rest;
  let written = 0;
  for (let index = 0; index < whole; index += 4) {
    const word =
      ((value[digits.charCodeAt(index)] ?? -1) << 18) |
      ((value[digits.charCodeAt(index + 1)] ?? -1) << 12) |
      ((value[digits.charCodeAt(index + 2)] ?? -1) << 6) |
      (value[digits.charCodeAt(index + 3)] ?? -1);
    if (word < 0) return null; // one of the four is no digit
    bytes[written++] = word >> 16;
    bytes[written++] = word >> 8;
    bytes[written++] = word;
  }
  if (rest === 0) return bytes;
  const at = (index: number): number => value[digits.charCodeAt(index)] ?? -1;
  const word = (at(whole) << 12) | (at(whole + 1) << 6) | (rest === 3 ? at(whole + 2) : 0);
  if (word < 0 || (word & (rest === 2 ? 0x3ff : 3)) !== 0) return null; // no digit, or stray bits
  bytes[written++] = word >> 10;
  if (rest === 3) bytes[written] = word >> 2;
  return bytes;
};

const hexDigits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
/** Lower-case hex, as digests are written in statements. */
export const toHex = (bytes: Uint8Array): string => {
  let hex = '';
  for (const byte of bytes) hex += hexDigits[byte] ?? '';
  return hex;
};

/**
 * The envelope as it is shown and exported: DSSE's JSON, canonical. Base64 has nothing to escape. `encode`: a platform's
 * own `toBase64`.
 */
export const envelopeText = (
  sealed: { readonly payload: Uint8Array; readonly signature: Uint8Array; readonly keyId: string },
  encode: (bytes: Uint8Array) => string = toBase64,
): string =>
  `{"payload":"${encode(sealed.payload)}","payloadType":"${payloadType}","signatures":[{"keyid":${canonical(sealed.keyId)},"sig":"${encode(sealed.signature)}"}]}`;

/** Padded, in one of the two alphabets: DSSE asks verifiers to accept either. */
const fromEither = (encoded: string): Uint8Array | null =>
  fromBase64(encoded) ?? (/[+/]/.test(encoded) ? null : fromBase64(encoded.replaceAll('-', '+').replaceAll('_', '/')));

/** The sealed bytes of an envelope's JSON text, or null where it is not one. */
export const openEnvelope = (
  envelope: string,
): { payload: Uint8Array; signature: Uint8Array; keyId: string } | null => {
  let parsed: unknown;
  try {
    parsed = JSON.parse(envelope);
  } catch {
    return null;
  }
  if (!isEnvelope(parsed)) return null;
  const read = parsed as Envelope;
  const [signed] = read.signatures;
  const payload = fromEither(read.payload);
  const signature = signed === undefined ? null : fromEither(signed.sig);
  return payload === null || signature === null || signed === undefined
    ? null
    : { payload, signature, keyId: signed.keyid };
};
