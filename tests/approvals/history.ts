/**
 * A small record made by hand: fixed keys, ids and clock, so that each byte is the same every time, and signed with
 * whatever is handed in, so that a forger with the key can be played too. For docs/RECEIPTS.md and the tamper matrix.
 */
import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto';
import { canonical, type Json } from '#protocol/json.ts';
import {
  actionMediaType,
  decisionProofText,
  payloadType,
  preAuthEncoding,
  receiptOrigin,
  statementText,
  toBase64,
  type ReceiptPredicate,
} from '#protocol/receipts.ts';
import { keyIdOf, type ReceiptKey } from '../../bridge/approvals/keys.ts';
import { nodePlatform } from '../../bridge/approvals/reader.ts';
import type { ReceiptRow } from '../../bridge/ledger/contract.ts';
import { keys as testKeys } from './dsse.ts';

export const keyOfSeed = (seed: string): ReceiptKey => {
  const privateKey = createPrivateKey({
    key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.from(seed, 'hex')]),
    format: 'der',
    type: 'pkcs8',
  });
  const publicKey = createPublicKey(privateKey);
  const publicKeySpki = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }));
  const publicKeyPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  return { keyId: keyIdOf(publicKeySpki), publicKeySpki, publicKeyPem, privateKey };
};

export const bridgeId = '0197f000-0000-7000-8000-0000000000f0';
export const conversationId = '0197f000-0000-7000-8000-000000000001';
const sessionId = '0197f000-0000-7000-8000-0000000000e0';
const turnId = '0197f000-0000-7000-8000-0000000000b0';
const workspaceId = '0197f000-0000-7000-8000-0000000000a0';
const bootId = '0197f000-0000-7000-8000-0000000000c0';
const idOf = (kind: number, n: number): string =>
  `0197f000-0000-7000-8${String(kind).padStart(3, '0')}-${String(n).padStart(12, '0')}`;
const beganAt = Date.parse('2026-12-01T09:00:00Z');

/** TEST 1 and TEST 2 of RFC 8032: known to everyone, so never of use for anything but examples. */
export const installationKey = keyOfSeed(testKeys.A.seed);
export const pageKey = keyOfSeed(testKeys.B.seed);
/** Of an attacker, or after a rotation. */
export const otherKey = keyOfSeed('c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7'); // TEST 3

const sha256 = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex');
const utf8 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'utf8'));

type Body = Omit<ReceiptPredicate, 'receipt' | 'bridge'>;
const nothing: Body = {
  author: null,
  request: null,
  agent: null,
  workspace: null,
  policy: null,
  decision: null,
  outcome: null,
  session: null,
};
const agent: Body['agent'] = {
  id: 'practice',
  name: 'Practice agent',
  version: '1.0.0',
  executableSha256: 'a'.repeat(64),
  entrySha256: 'b'.repeat(64),
  model: null,
  session: 'session-1',
  enforcement: 'mediated',
  containment: 'bubblewrap',
};
const workspace: Body['workspace'] = { id: workspaceId, rootSha256: 'c'.repeat(64), gitHead: null };

/** A receipt about to be signed. */
export interface Draft {
  readonly kind: ReceiptPredicate['receipt']['kind'];
  readonly conversation: string | null;
  /** Of the subject's name where the receipt is about an approval. */
  readonly approval: string | null;
  readonly action: Uint8Array;
  /** The receipts before it are handed in, since an outcome names its decision by digest. */
  readonly body: (before: readonly ReceiptRow[]) => Body;
  /** Signs this one with another key than the rest. */
  readonly key?: ReceiptKey;
}

const detail = (kind: Draft['kind'], n: number, more: Json, body: Partial<Body> = {}): Draft => ({
  kind,
  conversation: null,
  approval: null,
  action: utf8(canonical({ kind, detail: more, nonce: `nonce-${String(n)}` })),
  body: () => ({ ...nothing, author: { by: 'bridge', session: null }, ...body }),
});
const publicPart = (key: ReceiptKey) => ({
  keyId: key.keyId,
  publicKey: toBase64(key.publicKeySpki, 'base64url'),
});

const genesis = (key: ReceiptKey): Draft => detail('genesis', 1, { bridgeId, ...publicPart(key) });
const session = (): Draft => {
  const signedIn = { id: sessionId, ...publicPart(pageKey) };
  return detail('session', 2, { session: sessionId, ...publicPart(pageKey) }, { session: signedIn });
};

const actionOf = (approval: string, argv: readonly string[]): Uint8Array =>
  utf8(
    canonical({
      kind: 'command',
      conversation: conversationId,
      turn: turnId,
      toolCall: null,
      agent: { id: 'practice', session: 'session-1' },
      workspace: { id: workspaceId, rootSha256: 'c'.repeat(64) },
      effects: [{ type: 'execute', argv, cwd: '/home/u/project' }],
      detail: { argv, cwd: '/home/u/project', env: [] },
      nonce: `nonce-${approval.replace(/^.*-0*/, '').padStart(2, '0')}`,
    }),
  );
const requestOf = (approval: string, size: number, receivedAt: number): Body['request'] => ({
  id: approval,
  turn: turnId,
  toolCall: null,
  receivedAt,
  mediaType: actionMediaType,
  size,
});

interface Decided {
  readonly n: number;
  readonly argv: readonly string[];
  readonly value: 'allow' | 'deny';
  /** Signed by the page for this approval instead of its own. */
  readonly proofOf?: string;
}
const approvalOf = (n: number): string => idOf(2, n);
const decision = ({ n, argv, value, proofOf }: Decided): Draft => {
  const approval = approvalOf(n);
  const action = actionOf(approval, argv);
  const [digest, noteSha256] = [sha256(action), sha256('')];
  const said = decisionProofText({ approval: proofOf ?? approval, digest, option: value, value, noteSha256 });
  const sig = sign(null, Buffer.from(said), pageKey.privateKey).toString('base64url');
  const at = beganAt + n * 60_000;
  return {
    kind: 'decision',
    conversation: conversationId,
    approval,
    action,
    body: () => ({
      ...nothing,
      request: requestOf(approval, action.length, at - 5000),
      agent,
      workspace,
      policy: { version: 0, digest: sha256('[]'), rule: null, outcome: 'ask' },
      decision: {
        value,
        option: value,
        by: 'operator',
        session: sessionId,
        shown: { sha256: digest },
        noteSha256,
        remembered: false,
        decidedAt: at,
        expiresAt: at + 1_800_000,
        proof: { by: 'browser', keyId: pageKey.keyId, sig },
      },
    }),
  };
};
/** What came of the decision that is receipt `of`; `says` is the receipt it names, if another. */
const outcome = (decided: Decided, of: number, says: number = of): Draft => {
  const approval = approvalOf(decided.n);
  const action = actionOf(approval, decided.argv);
  return {
    kind: 'outcome',
    conversation: conversationId,
    approval,
    action,
    body: (before) => {
      const row = before[says - 1];
      if (row === undefined) throw new Error('an outcome before its decision');
      return {
        ...nothing,
        request: requestOf(approval, action.length, beganAt + decided.n * 60_000 - 5000),
        agent,
        workspace,
        outcome: {
          decision: { id: row.receiptId, sha256: sha256(row.payload) },
          value: 'ok',
          resultSha256: sha256('done\n'),
          startedAt: beganAt + of * 60_000 + 100,
          endedAt: beganAt + of * 60_000 + 900,
        },
      };
    },
  };
};

const test = { n: 3, argv: ['npm', 'test'], value: 'allow' } as const;
const push = { n: 5, argv: ['git', 'push', 'origin', 'main'], value: 'allow' } as const;
const remove = { n: 7, argv: ['rm', '-rf', '/'], value: 'deny' } as const;

/** 1 genesis, 2 a browser signs in, 3 and 4 `npm test` allowed and done, 5 and 6 `git push`, 7 `rm -rf /` denied. */
export const usual = (key: ReceiptKey = installationKey): Draft[] => [
  genesis(key),
  session(),
  decision(test),
  outcome(test, 3),
  decision(push),
  outcome(push, 5),
  decision(remove),
];
/** As many decisions as make a thread worth its start. */
export const long = (decisions: number): Draft[] => [
  ...usual(),
  ...Array.from({ length: decisions }, (_, at) => decision({ n: 8 + at, argv: ['npm', 'test'], value: 'deny' })),
];
/** The same up to here, then another decision: a second history of one size. */
export const forked = (): Draft[] => [...usual().slice(0, 6), decision({ ...remove, value: 'allow' })];
/** What only someone with the key can write. */
export const lies = {
  proofOfAnother: (): Draft[] => usual().with(4, decision({ ...push, proofOf: approvalOf(3) })),
  outcomeOfAnother: (): Draft[] => usual().with(5, outcome(push, 5, 3)),
};

export interface Signing {
  readonly key?: ReceiptKey;
  readonly bridgeId?: string;
}
/** Signs the drafts in order, each naming the one before it, as the seal does. */
export const signed = (drafts: readonly Draft[], { key = installationKey, ...given }: Signing = {}): ReceiptRow[] =>
  drafts.reduce<ReceiptRow[]>((rows, draft) => [...rows, sealed(draft, rows, { key, ...given })], []);

const sealed = (draft: Draft, before: readonly ReceiptRow[], signing: Signing & { key: ReceiptKey }): ReceiptRow => {
  const seq = before.length + 1;
  const at = beganAt + seq * 60_000;
  const last = before.at(-1);
  const body = draft.body(before);
  const receipt: ReceiptPredicate['receipt'] = {
    id: idOf(1, seq),
    seq,
    kind: draft.kind,
    at,
    conversation: draft.conversation,
    previous: last === undefined ? null : { sha256: sha256(last.payload) },
    origin: receiptOrigin(signing.bridgeId ?? bridgeId),
  };
  const bridge = { version: '0.1.0', assetDigest: 'checkout', bootId, monotonicMs: seq * 60_000, clock: 'ok' } as const;
  const actionSha256 = sha256(draft.action);
  const subject = { name: `action:${draft.approval ?? receipt.id}`, sha256: actionSha256 };
  const payload = utf8(statementText(subject, { receipt, ...body, bridge }));
  const { keyId, privateKey } = draft.key ?? signing.key;
  return {
    seq,
    receiptId: receipt.id,
    kind: draft.kind,
    conversationId: draft.conversation,
    approvalId: draft.approval,
    at,
    payload,
    signature: signedBy(privateKey, preAuthEncoding(payloadType, payload, nodePlatform.utf8)),
    keyId,
    actionSha256,
    value: body.decision?.value ?? null,
    outcome: body.outcome?.value ?? null,
    by: body.decision?.by ?? body.author?.by ?? null,
    sentence: `${draft.kind} ${String(seq)}`,
  };
};

export const signedBy = (key: KeyObject, message: Uint8Array): Uint8Array => new Uint8Array(sign(null, message, key));
