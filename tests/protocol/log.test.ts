import { createHash, generateKeyPairSync, sign, verify, createPublicKey } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { canonical } from '#protocol/json.ts';
import {
  append,
  checkpointText,
  consistencyProof,
  inclusionProof,
  leafBody,
  leafHash,
  noteKeyId,
  noteOf,
  openCheckpoint,
  rootOf,
  verifyConsistency,
  verifyInclusion,
  type NodeReader,
  type SignaturePlatform,
} from '#protocol/log.ts';
import { toBase64, toHex } from '#protocol/receipts.ts';
import { inSync, inTurn } from '#protocol/steps.ts';

const sha256 = (...parts: (Uint8Array | string)[]): Uint8Array => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return new Uint8Array(hash.digest());
};
const platform: SignaturePlatform = {
  sha256: (bytes) => sha256(bytes),
  utf8: (text) => Buffer.from(text, 'utf8'),
  verify: (key, message, signature) =>
    verify(null, message, createPublicKey({ key: Buffer.from(key), format: 'der', type: 'spki' }), signature),
};

/** RFC 6962 2.1 word for word, over whole lists: what the stored nodes are compared with. */
const largestBelow = (n: number): number => 2 ** (Math.ceil(Math.log2(n)) - 1);
const one = Uint8Array.of(1);
const mth = (leaves: readonly Uint8Array[]): Uint8Array => {
  if (leaves.length === 0) return sha256('');
  if (leaves.length === 1) return leaves[0]!;
  const k = largestBelow(leaves.length);
  return sha256(one, mth(leaves.slice(0, k)), mth(leaves.slice(k)));
};
const path = (m: number, leaves: readonly Uint8Array[]): Uint8Array[] => {
  if (leaves.length === 1) return [];
  const k = largestBelow(leaves.length);
  return m < k
    ? [...path(m, leaves.slice(0, k)), mth(leaves.slice(k))]
    : [...path(m - k, leaves.slice(k)), mth(leaves.slice(0, k))];
};
const subproof = (m: number, leaves: readonly Uint8Array[], whole: boolean): Uint8Array[] => {
  if (m === leaves.length) return whole ? [] : [mth(leaves)];
  const k = largestBelow(leaves.length);
  return m <= k
    ? [...subproof(m, leaves.slice(0, k), whole), mth(leaves.slice(k))]
    : [...subproof(m - k, leaves.slice(k), false), mth(leaves.slice(0, k))];
};

const grown = (leaves: readonly Uint8Array[]): { node: NodeReader; nodes: Map<string, Uint8Array> } => {
  const nodes = new Map<string, Uint8Array>();
  const node: NodeReader = (level, index) => nodes.get(`${level}/${index}`) ?? null;
  leaves.forEach((leaf, index) => {
    inSync(append(platform, index, leaf, node)).forEach((hash, level) => {
      const name = `${level}/${(index + 1) / 2 ** level - 1}`;
      if (nodes.has(name)) throw new Error(`${name} was complete before`);
      nodes.set(name, hash);
    });
  });
  return { node, nodes };
};
const hex = (hashes: readonly Uint8Array[]): string[] => hashes.map(toHex);

describe('the tree of certificate-transparency (RFC 6962)', () => {
  const inputs = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
  const roots = [
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
    '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
    'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
    '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
  ];
  const leaves = inputs.map((input) => inSync(leafHash(platform, Buffer.from(input, 'hex'))));
  const { node } = grown(leaves);

  it.each(roots.map((root, size) => [size, root] as const))('has the published root at size %i', (size, root) => {
    expect(toHex(inSync(rootOf(platform, size, node)))).toBe(root);
  });

  it('has the published paths and proofs', () => {
    expect(hex(inSync(inclusionProof(platform, 0, 8, node)))).toEqual([
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ]);
    expect(hex(inSync(inclusionProof(platform, 1, 5, node)))).toEqual([
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
    ]);
    expect(hex(inSync(consistencyProof(platform, 6, 8, node)))).toEqual([
      '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ]);
  });
});

describe('a log of 300', () => {
  const leaves = Array.from({ length: 300 }, (_, n) => sha256(`leaf ${n}`));
  const { node, nodes } = grown(leaves);
  const roots = Array.from({ length: 301 }, (_, size) => mth(leaves.slice(0, size)));
  const head = (size: number) => ({ size, root: roots[size]! });

  it('stores each complete node once: fewer than two for a leaf', () => {
    expect(nodes.size).toBeLessThan(600);
    for (const [name, hash] of nodes) {
      const [level = 0, index = 0] = name.split('/').map(Number);
      expect(toHex(hash)).toBe(toHex(mth(leaves.slice(index * 2 ** level, (index + 1) * 2 ** level))));
    }
  });

  it('has the reference root at every size', () => {
    roots.forEach((root, size) => expect(toHex(inSync(rootOf(platform, size, node)))).toBe(toHex(root)));
  });

  it('grows from the last complete nodes alone', () => {
    const last: Uint8Array[] = [];
    leaves.forEach((leaf, index) => {
      inSync(append(platform, index, leaf, (level) => last[level] ?? null)).forEach((hash, level) => {
        last[level] = hash;
      });
      expect(toHex(inSync(rootOf(platform, index + 1, (level) => last[level] ?? null)))).toBe(toHex(roots[index + 1]!));
    });
  });

  const sizes = fc.integer({ min: 1, max: 300 });
  it('proves inclusion as the reference does, and only of that leaf at that place', () => {
    fc.assert(
      fc.property(sizes, fc.nat(), (size, any) => {
        const index = any % size;
        const hashes = inSync(inclusionProof(platform, index, size, node));
        expect(hex(hashes)).toEqual(hex(path(index, leaves.slice(0, size))));
        const holds = (at: number, of: number, given: Uint8Array[], leaf = leaves[index]!): boolean =>
          inSync(verifyInclusion(platform, { index: at, size: of, hashes: given }, leaf, roots[size]!));
        expect(holds(index, size, hashes)).toBe(true);
        expect(holds(index, size, hashes, sha256('another'))).toBe(false);
        expect(holds(size, size, hashes)).toBe(false);
        if (index > 0) expect(holds(index - 1, size, hashes)).toBe(false);
        expect(holds(index, size, [...hashes, leaves[0]!])).toBe(false);
        if (hashes.length > 0) {
          expect(holds(index, size, hashes.slice(1))).toBe(false);
          expect(holds(index, size, [sha256('x'), ...hashes.slice(1)])).toBe(false);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('proves consistency as the reference does, and only of these two heads', () => {
    fc.assert(
      fc.property(sizes, sizes, (a, b) => {
        const [from, to] = a < b ? [a, b] : [b, a];
        const hashes = inSync(consistencyProof(platform, from, to, node));
        expect(hex(hashes)).toEqual(hex(from === to ? [] : subproof(from, leaves.slice(0, to), true)));
        const holds = (given: Uint8Array[], old = head(from), now = head(to)): boolean =>
          inSync(verifyConsistency(platform, old, now, given));
        expect(holds(hashes)).toBe(true);
        expect(holds(hashes, { size: from, root: sha256('fork') })).toBe(false);
        expect(holds(hashes, head(from), { size: to, root: sha256('fork') })).toBe(false);
        expect(holds([...hashes, leaves[0]!])).toBe(false);
        if (hashes.length > 0) expect(holds(hashes.slice(1))).toBe(false);
        if (from !== to) expect(holds(hashes, head(to), head(from))).toBe(false);
      }),
      { numRuns: 300 },
    );
  });

  it('refuses proofs of what is not there', () => {
    expect(() => inSync(inclusionProof(platform, 300, 300, node))).toThrow(RangeError);
    expect(() => inSync(consistencyProof(platform, 5, 4, node))).toThrow(RangeError);
    expect(() => inSync(rootOf(platform, 301, node))).toThrow('not in the log');
  });
});

describe('a leaf', () => {
  it('is canonical JSON of a Rekor dsse 0.0.2 body', () => {
    const [payload, signature, key] = [sha256('p'), Buffer.alloc(64, 7), Buffer.alloc(44, 9)];
    expect(leafBody(payload, signature, key)).toBe(
      canonical({
        kind: 'dsse',
        apiVersion: '0.0.2',
        spec: {
          dsseV002: {
            payloadHash: { algorithm: 'SHA2_256', digest: toBase64(payload) },
            signatures: [
              {
                content: toBase64(signature),
                verifier: { keyDetails: 'PKIX_ED25519', publicKey: { rawBytes: toBase64(key) } },
              },
            ],
          },
        },
      }),
    );
  });
});

describe('a checkpoint', () => {
  const origin = 'countersign.local/log/0197f000-0000-4000-8000-000000000001';
  const pair = generateKeyPairSync('ed25519');
  const key = new Uint8Array(pair.publicKey.export({ type: 'spki', format: 'der' }));
  const other = new Uint8Array(generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' }));
  const root = sha256('root');
  const signed = (text: string): string =>
    inSync(noteOf(platform, text, origin, sign(null, Buffer.from(text), pair.privateKey), key));
  let note = '';
  beforeAll(() => {
    note = signed(checkpointText(origin, 200, root));
  });
  const opened = (given: string, keys = [key], of = origin) => inSync(openCheckpoint(platform, given, of, keys));

  it('is a signed note of three lines that names its key', () => {
    const keyId = sha256(`${origin}\n`, one, key.slice(-32));
    expect(toHex(inSync(noteKeyId(platform, origin, key)))).toBe(toHex(keyId));
    const [line] = note.split('\n').slice(-2);
    expect(note.startsWith(`${origin}\n200\n${toBase64(root)}\n\n— ${origin} ${toBase64(keyId.slice(0, 3))}`)).toBe(
      true,
    );
    expect(line).toMatch(/^— \S+ [A-Za-z0-9+/]{91}=$/);
  });

  it('opens with its key, also among others and beside a witness', async () => {
    expect(opened(note, [other, key])).toEqual({ size: 200, root });
    expect(opened(`${note}— witness.example ${toBase64(Buffer.alloc(68))}\n`)).toEqual({ size: 200, root });
    const later = { ...platform, sha256: async (bytes: Uint8Array) => sha256(bytes) };
    expect(await inTurn(openCheckpoint(later, note, origin, [key]))).toEqual({ size: 200, root });
    expect(() => inSync(openCheckpoint(later, note, origin, [key]))).toThrow(TypeError);
  });

  it.each([
    ['another size', (text: string) => text.replace('\n200\n', '\n201\n')],
    ['another root', (text: string) => text.replace(toBase64(root), toBase64(sha256('fork')))],
    ['another origin', (text: string) => text.replaceAll('0001', '0002')],
    ['no signature', (text: string) => text.slice(0, text.indexOf('—'))],
    ['a cut signature', (text: string) => `${text.slice(0, -9)}\n`],
    ['no end', (text: string) => text.slice(0, -1)],
    ['windows line ends', (text: string) => text.replaceAll('\n', '\r\n')],
    ['too much', (text: string) => text + `— x ${'A'.repeat(3000)}\n`],
    ['nothing', () => ''],
  ])('does not open with %s', (_what, change) => {
    expect(opened(change(note))).toBeNull();
  });

  it('does not open with another key, for another log, or with sizes and lines it may not have', () => {
    expect(opened(note, [other])).toBeNull();
    expect(opened(note, [key], `${origin}0`)).toBeNull();
    for (const size of ['0200', '-1', '1e3', '9007199254740993', ''])
      expect(opened(signed(`${origin}\n${size}\n${toBase64(root)}\n`))).toBeNull();
    expect(opened(signed(`${checkpointText(origin, 200, root)}extension\n`))).toBeNull();
    expect(opened(signed(`${origin}\n200\n${toBase64(root.slice(1))}\n`))).toBeNull();
  });
});
