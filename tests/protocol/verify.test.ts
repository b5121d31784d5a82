import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { guardOf } from '#protocol/guard.ts';
import { canonical, isCanonical, type Json } from '#protocol/json.ts';
import { keyringOf } from '#protocol/keyring.ts';
import {
  envelopeSchema,
  payloadType,
  preAuthEncoding,
  predicateType,
  statementSchema,
  statementType,
  toBase64,
} from '#protocol/receipts.ts';
import { z } from '#protocol/schema.ts';
import { inSync } from '#protocol/steps.ts';
import { verifySync, type SealedReceipt, type VerifyPlatform } from '#protocol/verify.ts';
import { keyIdOf } from '../../bridge/approvals/keys.ts';
import { verifyEd25519 } from '../../bridge/approvals/signature.ts';

const uuid = '0197f000-0000-7000-8000-000000000001';
const digest = 'a'.repeat(64);
const sha256 = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex');
const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');
const platform: VerifyPlatform = {
  sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  verify: verifyEd25519,
  utf8,
  text: (bytes) => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
};

/** Every member filled, so that each can be bent. */
const whole = {
  _type: statementType,
  predicateType,
  subject: [{ name: `action:${uuid}`, digest: { sha256: digest } }],
  predicate: {
    receipt: {
      id: uuid,
      seq: 4,
      kind: 'decision',
      at: 1,
      conversation: 'c',
      previous: { sha256: digest },
      origin: `countersign.local/log/${uuid}`,
    },
    author: { by: 'operator', session: uuid },
    request: { id: uuid, turn: uuid, toolCall: 't', receivedAt: 1, mediaType: 'application/json', size: 3 },
    agent: {
      id: 'practice',
      name: 'Practice',
      version: '1',
      executableSha256: digest,
      entrySha256: null,
      model: 'm',
      session: 's',
      enforcement: 'mediated',
      containment: 'bubblewrap',
    },
    workspace: { id: uuid, rootSha256: digest, gitHead: null },
    policy: { version: 1, digest, rule: null, outcome: 'ask' },
    decision: {
      value: 'allow',
      option: 'allow',
      by: 'operator',
      session: uuid,
      shown: { sha256: digest },
      noteSha256: digest,
      remembered: false,
      decidedAt: 1,
      expiresAt: 2,
      proof: { by: 'browser', keyId: 'k', sig: 'abc', mark: '--yes' },
    },
    outcome: { decision: { id: uuid, sha256: digest }, value: 'ok', resultSha256: digest, startedAt: 1, endedAt: 2 },
    session: { id: uuid, keyId: 'k', publicKey: 'abc' },
    rotation: { former: { keyId: 'a', publicKey: 'abc' }, next: { keyId: 'b', publicKey: 'abd' } },
    bridge: { version: '1', assetDigest: 'checkout', bootId: uuid, monotonicMs: 1, clock: 'ok' },
  },
};
type Path = readonly (string | number)[];
const pathsIn = (value: unknown, path: Path = []): Path[] =>
  typeof value !== 'object' || value === null
    ? [path]
    : [path, ...Object.entries(value).flatMap(([name, member]) => pathsIn(member, [...path, name]))];
const bent = (value: unknown, path: Path, change: (holder: Record<string, unknown>, name: string) => void): unknown => {
  const copy = { root: structuredClone(value) } as Record<string, unknown>;
  const last = path.length === 0 ? 'root' : String(path.at(-1));
  const holder =
    path.length === 0
      ? copy
      : path.slice(0, -1).reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], copy['root']);
  change(holder as Record<string, unknown>, last);
  return copy['root'];
};

describe('the guard of a schema', () => {
  const strange = fc.oneof(
    fc.jsonValue() as fc.Arbitrary<unknown>,
    fc.constantFrom<unknown>(
      null,
      '',
      'x'.repeat(501),
      'x'.repeat(201),
      -1,
      -0,
      0.5,
      2 ** 53,
      true,
      [],
      {},
      [1],
      uuid,
      uuid.toUpperCase(),
      digest,
      `${digest}0`,
      `${digest}\n`,
      'genesis',
      'Genesis',
      'toString',
      '__proto__',
      'constructor',
      { sha256: digest },
      { sha256: digest, more: 1 },
    ),
  );
  it.each([
    ['a statement', statementSchema, whole],
    ['an envelope', envelopeSchema, { payload: 'x', payloadType, signatures: [{ keyid: 'k', sig: 's' }] }],
  ] as const)('says what zod says of %s, whatever is bent in it', (_what, schema, value) => {
    const guard = guardOf(schema);
    expect(guard(value)).toBe(true);
    const paths = pathsIn(value);
    let refused = 0;
    fc.assert(
      fc.property(fc.constantFrom(...paths), strange, fc.boolean(), (path, by, gone) => {
        const changed = bent(value, path, (holder, name) => {
          if (gone && !Array.isArray(holder)) delete holder[name];
          else holder[name] = by;
        });
        const { success } = z.safeParse(schema, changed);
        if (!success) refused += 1;
        expect(guard(changed)).toBe(success);
      }),
      { numRuns: 2000 },
    );
    expect(refused).toBeGreaterThan(500);
  });
  it('asks zod about what it does not know', () => {
    const schema = z.union([z.string(), z.strictObject({ a: z.number().check(z.lt(3)) })]);
    const guard = guardOf(schema);
    expect([guard('x'), guard({ a: 2 }), guard({ a: 4 }), guard({ a: 2, b: 1 }), guard(1)]).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(guardOf(z.string().check(z.regex(/^a/g)))('ab')).toBe(true);
  });
});

describe('canonical JSON without sorting (T50)', () => {
  const compared = (text: string): boolean => {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return false;
    }
    let is = false;
    try {
      is = canonical(value) === text;
    } catch {
      // outside the restriction
    }
    expect(isCanonical(text, value)).toBe(is);
    return is;
  };
  it('says what sorting says, of any JSON, canonical or not', () => {
    const key = fc.oneof(
      fc.string(),
      fc.constantFrom('a', 'b', '1', '10', '9', '__proto__', 'é', '\u{1f600}', '\ud800'),
    );
    const value = fc.letrec<{ any: Json }>((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom<Json>(null, true, 0, -1, 1.5, 1e21, -0, '\ud800', 'ü', '\u2028', '"\\'),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(key, tie('any'), { maxKeys: 4 }),
      ),
    })).any;
    let were = 0;
    fc.assert(
      fc.property(value, fc.boolean(), (any, sorted) => {
        let text = JSON.stringify(any);
        if (sorted) {
          try {
            text = canonical(any);
          } catch {
            // as it is
          }
        }
        if (compared(text)) were += 1;
      }),
      { numRuns: 1000 },
    );
    expect(were).toBeGreaterThan(200);
  });
  it.each([
    ['a key twice', '{"a":1,"a":1}'],
    ['an order that is not canonical', '{"b":1,"a":1}'],
    ['a number beyond doubles', '{"a":1e400}'],
    ['a fraction', '{"a":1.5}'],
    ['minus zero', '{"a":-0}'],
    ['an exponent', '{"a":1e3}'],
    ['a lone surrogate', '{"a":"\\ud800"}'],
    ['a lone surrogate as a name', '{"\\ud800":1}'],
    ['a space', '{"a": 1}'],
    ['an escape that needs none', '{"a":"\\u0041"}'],
    ['a line feed behind it', '{"a":1}\n'],
  ])('refuses %s', (_what, text) => expect(compared(text)).toBe(false));
  it('takes numbers as names in canonical order, which is not the order they parse in', () => {
    expect(compared('{"10":1,"9":1,"a":1}')).toBe(true);
    expect(compared('{"9":1,"10":1,"a":1}')).toBe(false);
  });
  it('does not fall over what is nested a hundred thousand deep', () => {
    const text = '['.repeat(100_000) + ']'.repeat(100_000);
    expect(isCanonical(text, JSON.parse(text))).toBe(false);
  });
});

describe('a record', () => {
  const keyPair = () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const publicKeySpki = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }));
    return { privateKey, publicKeySpki, keyId: keyIdOf(publicKeySpki) };
  };
  type Key = ReturnType<typeof keyPair>;
  const key = keyPair();
  const signed = (payload: Uint8Array, by: Key = key, action: Uint8Array | null = null): SealedReceipt => ({
    payload,
    signature: sign(null, preAuthEncoding(payloadType, payload, utf8), by.privateKey),
    keyId: by.keyId,
    action,
  });
  const approval = (n: number): string => `0197f000-0000-7000-8000-${String(n).padStart(12, '0')}`;
  const actionOf = (n: number): Uint8Array => utf8(canonical({ conversation: 'c', nonce: `n${n}` }));
  const nothing = {
    author: null,
    request: null,
    agent: null,
    workspace: null,
    policy: null,
    decision: null,
    outcome: null,
    session: null,
  };
  interface Draft {
    readonly kind: 'genesis' | 'decision' | 'outcome' | 'recovery' | 'key-rotation';
    readonly of?: number;
    readonly value?: 'allow' | 'deny';
    readonly bend?: (statement: { predicate: Record<string, Record<string, unknown>> }) => void;
    readonly by?: Key;
    readonly rotation?: unknown;
  }
  /** A chain of receipts by a rule, each as it would be sealed, unless it is bent. */
  const chain = (drafts: readonly Draft[]): SealedReceipt[] => {
    const made: SealedReceipt[] = [];
    const decided = new Map<number, { id: string; sha256: string }>();
    for (const [index, { kind, of, value = 'allow', bend, by, rotation }] of drafts.entries()) {
      const seq = index + 1;
      const id = `0197f000-0000-7000-9000-${String(seq).padStart(12, '0')}`;
      const action =
        of === undefined
          ? utf8(canonical({ kind, nonce: rotation === undefined ? `x${seq}` : 'rotation' }))
          : actionOf(of);
      const shown = { sha256: sha256(action) };
      const before = made.at(-1);
      const statement = {
        _type: statementType,
        predicateType,
        subject: [{ name: `action:${of === undefined ? id : approval(of)}`, digest: shown }],
        predicate: {
          ...nothing,
          receipt: {
            id,
            seq,
            kind,
            at: seq,
            conversation: of === undefined ? null : 'c',
            previous: before === undefined ? null : { sha256: sha256(before.payload) },
            origin: `countersign.local/log/${uuid}`,
          },
          ...(of === undefined
            ? {}
            : { request: { ...whole.predicate.request, id: approval(of), size: action.length } }),
          ...(kind === 'decision'
            ? {
                policy: { ...whole.predicate.policy, rule: 'a rule' },
                decision: {
                  ...whole.predicate.decision,
                  value,
                  by: 'rule',
                  session: null,
                  shown,
                  proof: { by: 'rule' },
                },
              }
            : {}),
          ...(kind === 'outcome' ? { outcome: { ...whole.predicate.outcome, decision: decided.get(of ?? 0) } } : {}),
          ...(rotation === undefined ? {} : { rotation }),
          bridge: whole.predicate.bridge,
        },
      };
      bend?.(statement as never);
      const payload = utf8(canonical(statement));
      if (kind === 'decision') decided.set(of ?? 0, { id, sha256: sha256(payload) });
      made.push(signed(payload, by, action));
    }
    return made;
  };
  const found = (
    receipts: readonly SealedReceipt[],
    more: { rotations?: readonly SealedReceipt[]; key?: Key } = {},
  ) => {
    const request = {
      publicKeySpki: (more.key ?? key).publicKeySpki,
      scope: 'all',
      rotations: more.rotations,
    } as const;
    return verifySync(platform, request, receipts);
  };
  const problems = (receipts: readonly SealedReceipt[]): string[] =>
    found(receipts).problems.map(({ seq, check }) => `${String(seq)} ${check}`);
  const begun: Draft = { kind: 'genesis' };
  const allowed = (of: number, more: Partial<Draft> = {}): Draft => ({ kind: 'decision', of, ...more });
  const done = (of: number, more: Partial<Draft> = {}): Draft => ({ kind: 'outcome', of, ...more });

  it('of decisions and their outcomes is whole', () => {
    const { ok, notes } = found(
      chain([begun, allowed(1), done(1), allowed(2, { value: 'deny' }), allowed(3), done(3)]),
    );
    expect(ok).toBe(true);
    expect(notes.map((note) => note.check)).toEqual(['checkpoint']);
  });
  it('that allowed something without an outcome says so, and is not wrong', () => {
    const { ok, notes } = found(chain([begun, allowed(1)]));
    expect(ok).toBe(true);
    expect(notes).toContainEqual(expect.objectContaining({ seq: 2, check: 'pairing' }));
  });
  it.each<[string, Draft[], string[]]>([
    [
      'an outcome of nothing',
      [begun, done(1, { bend: ({ predicate }) => (predicate['outcome']!['decision'] = { id: uuid, sha256: digest }) })],
      ['2 pairing'],
    ],
    ['an outcome of what was denied', [begun, allowed(1, { value: 'deny' }), done(1)], ['3 pairing']],
    ['two outcomes', [begun, allowed(1), done(1), done(1)], ['4 pairing']],
    [
      'an outcome that names another decision',
      [
        begun,
        allowed(1),
        done(1, { bend: ({ predicate }) => (predicate['outcome']!['decision'] = { id: uuid, sha256: digest }) }),
      ],
      ['3 pairing'],
    ],
    ['one approval decided twice', [begun, allowed(1), allowed(1)], ['3 subject', '3 pairing']],
    [
      'a number left out (T49)',
      [begun, allowed(1, { bend: ({ predicate }) => (predicate['receipt']!['seq'] = 3) })],
      ['3 sequence'],
    ],
    [
      'a receipt before it that is another (T49)',
      [begun, allowed(1, { bend: ({ predicate }) => (predicate['receipt']!['previous'] = { sha256: digest }) })],
      ['2 chain'],
    ],
    [
      'another installation',
      [begun, allowed(1, { bend: ({ predicate }) => (predicate['receipt']!['origin'] = 'elsewhere') })],
      ['2 sequence'],
    ],
    [
      'something else shown than decided on',
      [begun, allowed(1, { bend: ({ predicate }) => (predicate['decision']!['shown'] = { sha256: digest }) })],
      ['2 subject'],
    ],
    [
      'no rule that decided',
      [begun, allowed(1, { bend: ({ predicate }) => (predicate['policy']!['rule'] = null) })],
      ['2 proof'],
    ],
    [
      'a person without a signature',
      [begun, allowed(1, { bend: ({ predicate }) => (predicate['decision']!['by'] = 'operator') })],
      ['2 proof'],
    ],
    ['a change of keys that names none', [begun, { kind: 'key-rotation' }], ['2 key']],
  ])('with %s is named', (_what, drafts, expected) => {
    expect(problems(chain(drafts))).toEqual(expected);
  });
  it('that holds canonical bytes only: the same values in another order are named', () => {
    const [first] = chain([begun]);
    const { predicate, ...rest } = JSON.parse(Buffer.from(first!.payload).toString('utf8')) as Record<string, unknown>;
    const moved = signed(utf8(JSON.stringify({ predicate, ...rest })), key, first!.action);
    expect(problems([moved])).toEqual(['1 canonical']);
  });

  describe('with a change of keys', () => {
    const next = keyPair();
    const half = ({ keyId, publicKeySpki }: Key) => ({ keyId, publicKey: toBase64(publicKeySpki, 'base64url') });
    const rotation = { former: half(key), next: half(next) };
    /** Both are about one action, so the second is named after the first. */
    const changed = chain([
      begun,
      { kind: 'key-rotation', rotation },
      { kind: 'key-rotation', rotation, by: next },
      { kind: 'recovery', by: next },
    ]);
    const rotations = changed.slice(1, 3);

    it('is whole from either key, and not without the receipts of the change', () => {
      for (const given of [key, next]) expect(found(changed, { rotations, key: given }).problems).toEqual([]);
      expect(found(changed).problems.map(({ seq, check }) => `${String(seq)} ${check}`)).toEqual([
        '3 signature',
        '4 signature',
        '4 key',
      ]);
    });
    it('that names a key under another id leads nowhere', () => {
      const lie = { former: half(key), next: { ...half(next), keyId: 'SHA256:other' } };
      const forged = chain([begun, { kind: 'key-rotation', rotation: lie }]);
      expect([...inSync(keyringOf(platform, key.publicKeySpki, forged)).keys()]).toEqual([key.keyId]);
    });
    it('that a stranger signed, or with a bent signature, leads nowhere', () => {
      const stranger = chain([begun, { kind: 'key-rotation', rotation, by: next }]);
      expect(inSync(keyringOf(platform, key.publicKeySpki, stranger)).size).toBe(1);
      const bentSignature = { ...rotations[0]!, signature: new Uint8Array(64) };
      expect(inSync(keyringOf(platform, key.publicKeySpki, [bentSignature])).size).toBe(1);
    });
    it('reaches over many changes in any order', () => {
      const all = Array.from({ length: 6 }, keyPair);
      const drafts = all.slice(1).flatMap((to, n): Draft[] => {
        const both = { former: half(all[n]!), next: half(to) };
        return [
          { kind: 'key-rotation', rotation: both, by: all[n]! },
          { kind: 'key-rotation', rotation: both, by: to },
        ];
      });
      const receipts = chain([{ ...begun, by: all[0]! }, ...drafts]);
      for (const given of all) {
        const order = receipts.slice(1).reverse();
        expect(found(receipts, { rotations: order, key: given }).problems).toEqual([]);
      }
    });
  });
});
