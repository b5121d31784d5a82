/**
 * Test vectors of DSSE: github.com/secure-systems-lab/dsse, testvectors/vectors.json at 82043ad (values only, Apache-2.0), and
 * the worked example of its protocol.md. The keys are RFC 8032 7.1, TEST 1 and TEST 2, so each signature can be made again.
 */
export const keys = {
  A: {
    seed: '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    public: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  },
  B: {
    seed: '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    public: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
  },
} as const;
export type KeyName = keyof typeof keys;

export interface Vector {
  readonly id: string;
  readonly payload: string;
  readonly payloadType: string;
  readonly signatures: readonly { readonly sig: string; readonly keyid?: KeyName }[];
  readonly trusted: readonly KeyName[];
  readonly threshold: number;
  readonly supported: readonly string[];
  /** Hex of what was signed. */
  readonly pae: string;
  readonly expect: 'accept' | 'reject';
}

const inToto = 'application/vnd.in-toto+json';
const statement = 'eyJfdHlwZSI6Imh0dHBzOi8vaW4tdG90by5pby9TdGF0ZW1lbnQvdjEifQ==';
const statementPae =
  '445353457631203238206170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e203433207b225f74797065223a2268747470733a2f2f696e2d746f746f2e696f2f53746174656d656e742f7631227d';
const byA = '2WAfaHm5jluo0w+0rk8uVkluELJYWjSmU9x7EUzx+AyteDGJ4/nqyJXfmAUVFIAoQafWm7AxBZNw5M9ixNHiCA==';
const byB = 'c1+67/aT0yqEpwx8PsVY3MLHsj9D0CZ014/Fv/QlG59P+9CobUZ7xECJ/V3USG0Ob9CiE5LjReEZUzNF2l7eBw==';
const usual = { payload: statement, payloadType: inToto, trusted: ['A'], threshold: 1, supported: [inToto] } as const;
const two = { ...usual, trusted: ['A', 'B'], threshold: 2, pae: statementPae } as const;

export const vectors: readonly Vector[] = [
  {
    ...usual,
    id: 'single-signature',
    signatures: [{ sig: byA, keyid: 'A' }],
    pae: statementPae,
    expect: 'accept',
  },
  {
    ...usual,
    id: 'url-safe-base64',
    payload: '-_-_Pj8=',
    signatures: [
      {
        sig: 'P-_KHICeR7tI6S_YyejJTRtrXhcQyQ2LYPaL8h90KjC9qN8HU_svOQ6TuDOT1HIrsGW886DbWNWcCmX5twLrAw==',
        keyid: 'A',
      },
    ],
    pae: '445353457631203238206170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e203520fbffbf3e3f',
    expect: 'accept',
  },
  {
    ...usual,
    id: 'payload-type-swapped',
    payloadType: 'application/vnd.example.other+json',
    signatures: [{ sig: byA, keyid: 'A' }],
    supported: [inToto, 'application/vnd.example.other+json'],
    pae: statementPae,
    expect: 'reject',
  },
  {
    ...usual,
    id: 'non-ascii-payload-type',
    payloadType: 'application/vnd.exämple+json',
    signatures: [
      {
        sig: 'xmSk/ug66ysT7ayhkCIjhAq42zgZXSsEWuzUaNL7w2eGAdF/NU6/fRXPtmfN+5DNSAs5/i2lUnHjbbjPsu0tAw==',
        keyid: 'A',
      },
    ],
    supported: ['application/vnd.exämple+json'],
    pae: '445353457631203239206170706c69636174696f6e2f766e642e6578c3a46d706c652b6a736f6e203433207b225f74797065223a2268747470733a2f2f696e2d746f746f2e696f2f53746174656d656e742f7631227d',
    expect: 'accept',
  },
  {
    ...usual,
    id: 'empty-payload',
    payload: '',
    signatures: [
      {
        sig: 'gSggCAaTLTYyRH6FIDBem6meyIynsYy8RTHVzwx9tnTb7Bg/1jMWnuVgI/gffqmbsC2VX5/jHfkkDqsj7CDbDg==',
        keyid: 'A',
      },
    ],
    pae: '445353457631203238206170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e203020',
    expect: 'accept',
  },
  {
    ...usual,
    id: 'empty-payload-type',
    payloadType: '',
    signatures: [
      {
        sig: 'iC3q/+3Rm0+lpAJRueDmDh15PnwCfxKmS0NAfKsbv+zgulXQC/WM9trc+j1XEqlwDIg/vf/uNfebeD6sxInrDg==',
        keyid: 'A',
      },
    ],
    pae: '445353457631203020203433207b225f74797065223a2268747470733a2f2f696e2d746f746f2e696f2f53746174656d656e742f7631227d',
    expect: 'reject',
  },
  {
    ...two,
    id: 'threshold-two-distinct-keys',
    signatures: [
      { sig: byA, keyid: 'A' },
      { sig: byB, keyid: 'B' },
    ],
    expect: 'accept',
  },
  {
    ...two,
    id: 'threshold-two-one-key-twice',
    signatures: [
      { sig: byA, keyid: 'A' },
      { sig: byA, keyid: 'A' },
    ],
    expect: 'reject',
  },
  { ...two, id: 'threshold-two-without-keyids', signatures: [{ sig: byA }, { sig: byB }], expect: 'accept' },
];

/** protocol.md, "Test Vectors": ECDSA over P-256 and SHA-256, the signature as r and s. */
export const worked = {
  payload: 'hello world',
  payloadType: 'http://example.com/HelloWorld',
  pae: 'DSSEv1 29 http://example.com/HelloWorld 11 hello world',
  x: 46950820868899156662930047687818585632848591499744589407958293238635476079160n,
  y: 5640078356564379163099075877009565129882514886557779369047442380624545832820n,
  sig: 'A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA==',
} as const;
