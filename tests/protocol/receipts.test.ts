import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonical } from '#protocol/json.ts';
import {
  decisionProofText,
  envelopeText,
  fromBase64,
  openEnvelope,
  payloadType,
  preAuthEncoding,
  toBase64,
} from '#protocol/receipts.ts';
import { verifySync, type VerifyPlatform } from '#protocol/verify.ts';
import { verifyEd25519 } from '../../bridge/approvals/signature.ts';

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const latin = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

describe('DSSE', () => {
  it('encodes as the specification’s own vector', () => {
    expect(latin(preAuthEncoding('http://example.com/HelloWorld', utf8('hello world'), utf8))).toBe(
      'DSSEv1 29 http://example.com/HelloWorld 11 hello world',
    );
  });
  it('counts bytes, not characters, and keeps what is not text', () => {
    expect(latin(preAuthEncoding('é', new Uint8Array([0, 255]), utf8))).toBe('DSSEv1 2 Ã© 2 \x00\xff');
    expect(latin(preAuthEncoding('', new Uint8Array(), utf8))).toBe('DSSEv1 0  0 ');
  });
  it('an envelope opens to the very bytes sealed, and nothing else opens', () => {
    const sealed = { payload: utf8('{"a":1}'), signature: new Uint8Array(64).fill(7), keyId: 'SHA256:x' };
    const envelope = envelopeText(sealed);
    expect(Object.keys(JSON.parse(envelope) as object)).toEqual(['payload', 'payloadType', 'signatures']);
    expect(openEnvelope(envelope)).toEqual(sealed);
    const parsed = JSON.parse(envelope) as {
      payload: string;
      payloadType: string;
      signatures: { keyid: string; sig: string }[];
    };
    for (const broken of [
      '',
      '{}',
      'null',
      '[]',
      JSON.stringify({ ...parsed, payloadType: 'text/plain' }),
      JSON.stringify({ ...parsed, signatures: [] }),
      JSON.stringify({ ...parsed, signatures: [...parsed.signatures, ...parsed.signatures] }),
      JSON.stringify({ ...parsed, payload: `${parsed.payload} ` }),
    ]) {
      expect(openEnvelope(broken)).toBeNull();
    }
  });
});

describe('base64', () => {
  it('is that of Node, both ways, for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        for (const kind of ['base64', 'base64url'] as const) {
          expect(toBase64(bytes, kind)).toBe(Buffer.from(bytes).toString(kind));
          expect(fromBase64(toBase64(bytes, kind), kind)).toEqual(new Uint8Array(bytes));
        }
      }),
    );
  });
  it.each(['A', 'AA', 'AA=', 'AAA', 'AB==', 'AAB=', 'A===', '====', 'AA==AA==', 'AA\n==', 'A-_=', ' AAAA', 'AAAA='])(
    'refuses %j, which is not the one encoding of anything',
    (text) => {
      expect(fromBase64(text)).toBeNull();
    },
  );
  it.each(['A', 'AA==', 'AB', 'A+/A', 'AAB'])('refuses %j in the URL alphabet', (text) => {
    expect(fromBase64(text, 'base64url')).toBeNull();
  });
});

describe('T50 canonical JSON', () => {
  it('orders names by UTF-16 code units and leaves no choice', () => {
    expect(canonical({ b: [1, { z: null, a: true }], a: 'é\n"', '\u{1f600}': 1, '\ufb33': 2, 1: 0 })).toBe(
      '{"1":0,"a":"é\\n\\"","b":[1,{"a":true,"z":null}],"😀":1,"\ufb33":2}',
    );
    expect(canonical(-0)).toBe('0');
    expect(canonical({ gone: undefined, kept: 1 })).toBe('{"kept":1}');
  });
  it.each([
    1.5,
    Number.NaN,
    Infinity,
    1e400,
    2 ** 53,
    '\ud800',
    { '\udc00': 1 },
    1n,
    new Date(0),
    new Map(),
    () => 1,
    undefined,
    [undefined],
  ])('refuses %s', (value) => {
    expect(() => canonical(value)).toThrow(TypeError);
  });
  it('is stable: what it wrote, read and written again, is the same bytes', () => {
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        fc.string({ unit: 'grapheme' }),
        fc.maxSafeInteger(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('any'), { maxLength: 4 }),
        fc.dictionary(fc.string(), tie('any'), { maxKeys: 4, noNullPrototype: true }),
      ),
    })).any;
    fc.assert(
      fc.property(value, (any) => {
        expect(canonical(JSON.parse(canonical(any)))).toBe(canonical(any));
      }),
    );
  });
});

it('the text a page signs is fixed to the byte', () => {
  expect(decisionProofText({ value: 'allow', option: 'a"b', noteSha256: 'n', digest: 'd', approval: 'x' })).toBe(
    'countersign/decision/v1\n{"approval":"x","digest":"d","noteSha256":"n","option":"a\\"b","value":"allow"}',
  );
});

describe('the verifier', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const publicKeySpki = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }));
  const platform: VerifyPlatform = {
    sha256: (bytes) => createHash('sha256').update(bytes).digest(),
    verify: verifyEd25519,
    utf8,
    text: (bytes) => new TextDecoder('utf-8', { fatal: true }).decode(bytes),
  };
  const keyId = `SHA256:${createHash('sha256').update(publicKeySpki).digest('base64url')}`;
  const signed = (payload: Uint8Array) => ({
    payload,
    signature: sign(null, preAuthEncoding(payloadType, payload, utf8), privateKey),
    keyId,
    action: null,
  });
  const checks = (payload: Uint8Array): string[] =>
    verifySync(platform, { publicKeySpki, scope: 'some' }, [signed(payload)]).problems.map((problem) => problem.check);

  it('reads nothing of what is validly signed but no receipt', () => {
    expect(checks(utf8('not json'))).toEqual(['schema']);
    expect(checks(new Uint8Array([0xff, 0xfe]))).toEqual(['schema']);
    expect(checks(utf8('{"_type":"https://in-toto.io/Statement/v1"}'))).toEqual(['schema']);
  });
  it('an empty record is a record of nothing', () => {
    expect(verifySync(platform, { publicKeySpki, scope: 'all' }, [])).toMatchObject({ ok: true, receipts: 0 });
  });
  it('says so when it was given a platform that answers later', () => {
    const later = { ...platform, verify: async () => true };
    expect(() => verifySync(later, { publicKeySpki, scope: 'some' }, [signed(utf8('x'))])).toThrow('asynchronously');
  });
});
