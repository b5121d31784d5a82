import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openEnvelope, preAuthEncoding } from '#protocol/receipts.ts';
import { nodePlatform } from '../../bridge/approvals/reader.ts';
import { verifyEd25519 } from '../../bridge/approvals/signature.ts';
import { keys, vectors, worked, type KeyName, type Vector } from './dsse.ts';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const spki = (name: KeyName): Uint8Array => Buffer.concat([hex('302a300506032b6570032100'), hex(keys[name].public)]);
const privateKey = (name: KeyName) =>
  createPrivateKey({
    key: Buffer.concat([hex('302e020100300506032b657004220420'), hex(keys[name].seed)]),
    format: 'der',
    type: 'pkcs8',
  });
/** Node reads both alphabets. */
const bytes = (base64: string): Buffer => Buffer.from(base64, 'base64');
const encode = (type: string, payload: Uint8Array): Buffer =>
  Buffer.from(preAuthEncoding(type, payload, nodePlatform.utf8));
const envelope = ({ payload, payloadType, signatures }: Vector): string =>
  JSON.stringify({ payload, payloadType, signatures });

/** DSSE's own rule: as many different trusted keys as the threshold asks, and a type that is supported. */
const outcome = (vector: Vector): Vector['expect'] => {
  const signed = encode(vector.payloadType, bytes(vector.payload));
  const accepted = vector.trusted.filter((key) =>
    vector.signatures.some(
      ({ sig, keyid }) => (keyid === undefined || keyid === key) && verifyEd25519(spki(key), signed, bytes(sig)),
    ),
  );
  const isSupported = vector.supported.includes(vector.payloadType);
  return isSupported && accepted.length >= vector.threshold ? 'accept' : 'reject';
};

describe("DSSE's own test vectors (R-25)", () => {
  it('the keys are those of RFC 8032', () => {
    for (const name of ['A', 'B'] as const)
      expect(createPublicKey(privateKey(name)).export({ type: 'spki', format: 'der' })).toEqual(spki(name));
  });

  it.each(vectors)('$id: $expect', (vector) => {
    expect(outcome(vector)).toBe(vector.expect);
    if (vector.id !== 'payload-type-swapped')
      expect(encode(vector.payloadType, bytes(vector.payload)).toString('hex')).toBe(vector.pae);
  });

  it.each(vectors)('$id: our encoding, signed with the key named, gives the signature in the vector', (vector) => {
    const type = vector.id === 'payload-type-swapped' ? 'application/vnd.in-toto+json' : vector.payloadType;
    const signers = vector.signatures.map(({ keyid }, index) => keyid ?? (['A', 'B'] as const)[index] ?? 'A');
    const made = signers.map((key) => sign(null, encode(type, bytes(vector.payload)), privateKey(key)));
    expect(made).toEqual(vector.signatures.map(({ sig }) => bytes(sig)));
  });

  it('the worked example of its protocol holds', () => {
    const signed = encode(worked.payloadType, Buffer.from(worked.payload));
    expect(signed.toString()).toBe(worked.pae);
    const [x, y] = [worked.x, worked.y].map((n) => hex(n.toString(16).padStart(64, '0')).toString('base64url'));
    const key = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' }, format: 'jwk' });
    expect(verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, bytes(worked.sig))).toBe(true);
  });

  // A receipt is one in-toto statement with one signature that names its key: less than DSSE allows, never more.
  it.each([
    ['single-signature', true],
    ['url-safe-base64', true],
    ['payload-type-swapped', false],
    ['non-ascii-payload-type', false],
    ['empty-payload', true],
    ['empty-payload-type', false],
    ['threshold-two-distinct-keys', false],
    ['threshold-two-one-key-twice', false],
    ['threshold-two-without-keyids', false],
  ])('as an envelope of ours, %s opens: %s', (id, opens) => {
    const vector = vectors.find((each) => each.id === id)!;
    const opened = openEnvelope(envelope(vector));
    expect(opened !== null).toBe(opens);
    if (opened === null) return;
    expect(Buffer.from(opened.payload)).toEqual(bytes(vector.payload));
    expect(Buffer.from(opened.signature)).toEqual(bytes(vector.signatures[0]!.sig));
  });
});
