/**
 * The seal: signs what was decided and what came of it, inside the caller's transaction, so that a receipt commits
 * with the thing it is about or not at all. One chain per installation: seq without a gap, each naming the digest of
 * the payload before it. Signing is synchronous: nothing may run between reading the last receipt and adding the next.
 */
import { createHash, randomBytes, sign } from 'node:crypto';
import type { Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import type { Outcome, ReceiptKind } from '#protocol/events.ts';
import { uuidv7 } from '#protocol/ids.ts';
import { canonical, type Json } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import { checkpointText, noteOf } from '#protocol/log.ts';
import {
  actionMediaType,
  payloadType,
  preAuthEncoding,
  receiptOrigin,
  statementSchema,
  statementText,
  toBase64,
  type ReceiptPredicate,
} from '#protocol/receipts.ts';
import { z } from '#protocol/schema.ts';
import { inSync } from '#protocol/steps.ts';
import type { ReceiptRow, Tx } from '../ledger/contract.ts';
import { appendToLog, backfillLog, putCheckpoint } from './checkpoints.ts';
import type { ApprovalRequest, Seal } from './contract.ts';
import type { ReceiptKey } from './keys.ts';
import { nodePlatform } from './reader.ts';

export interface SealOptions {
  /** The key to begin with. */
  readonly key: ReceiptKey;
  /** A checkpoint was put into a transaction; it may yet be rolled back. */
  readonly checkpointed?: () => void;
  /** `assetDigest`: sha256 of the asset table, or `checkout` where the source itself runs. */
  readonly bridge: { readonly version: string; readonly assetDigest: string; readonly bootId: string };
  readonly bridgeId: string;
  /** Wall clock, ms. */
  readonly now: () => number;
  /** Monotonic clock, ms; `performance.now`. */
  readonly monotonic: () => number;
}

export interface DecisionInput {
  readonly approvalId: string;
  readonly request: Pick<ApprovalRequest, 'conversationId' | 'turnId' | 'toolCallId' | 'agent' | 'workspace'>;
  readonly requestedAt: number;
  readonly digest: string;
  readonly actionBytes: number;
  readonly policy: NonNullable<ReceiptPredicate['policy']>;
  readonly decision: Omit<NonNullable<ReceiptPredicate['decision']>, 'shown' | 'decidedAt' | 'noteSha256'>;
  readonly note: string | undefined;
  readonly sentence: string;
}
export interface OutcomeInput {
  /** The decision's receipt as stored. */
  readonly decision: ReceiptRow;
  readonly outcome: Outcome;
  readonly resultSha256: string | null;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly sentence: string;
}
/** The whole seal, for the desk and the log; other rooms hold `Seal`. */
export interface DeskSeal extends Seal {
  readonly key: ReceiptKey;
  decision(tx: Tx, input: DecisionInput): ReceiptRow;
  outcome(tx: Tx, input: OutcomeInput): ReceiptRow;
  /** C2SP signed note over this state of the log. */
  checkpoint(size: number, root: Uint8Array): string;
  /**
   * Two receipts of one subject: the present key names `next`, then `next` signs the same; from here on it signs
   * everything. Returns the first. The caller takes `key` back with `useKey` when the transaction fails.
   */
  rotate(tx: Tx, actor: Actor, next: ReceiptKey): ReceiptRow;
  useKey(key: ReceiptKey): void;
}

const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');
const sha256 = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex');

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

interface Sealed {
  readonly kind: ReceiptKind;
  readonly conversationId: string | null;
  readonly approvalId: string | null;
  readonly actionSha256: string;
  readonly body: Body;
  readonly by: string | null;
  readonly sentence: string;
}

const authorOf = (actor: Actor | null): Body['author'] => {
  if (actor === null) return { by: 'bridge', session: null };
  return actor.kind === 'browser' ? { by: 'operator', session: actor.sessionId } : { by: 'cli', session: null };
};

const decisionBody = (input: DecisionInput, at: number): Body => {
  const { request, decision } = input;
  const { agent, workspace } = request;
  return {
    ...nothing,
    request: {
      id: input.approvalId,
      turn: request.turnId,
      toolCall: request.toolCallId,
      receivedAt: input.requestedAt,
      mediaType: actionMediaType,
      size: input.actionBytes,
    },
    agent: {
      id: agent.id,
      name: agent.name,
      version: agent.version,
      executableSha256: agent.executableSha256,
      entrySha256: agent.entrySha256,
      model: agent.model,
      session: agent.session,
      enforcement: agent.enforcement,
      containment: agent.containment,
    },
    workspace: { id: workspace.id, rootSha256: workspace.rootSha256, gitHead: workspace.gitHead },
    policy: input.policy,
    decision: { ...decision, shown: { sha256: input.digest }, noteSha256: sha256(input.note ?? ''), decidedAt: at },
  };
};

/** `ledger` pieces come with each call as the open transaction. The key must be the one of the earlier receipts (`genesis`). */
export const createSeal = (options: SealOptions): DeskSeal => {
  let { key } = options;
  const origin = receiptOrigin(options.bridgeId);
  let seen = { wall: options.now(), monotonic: options.monotonic() };

  /** `stepped` when the wall clock did not move with the monotonic one, or lies before the last receipt (T88). */
  const readClock = (last: ReceiptRow | null): { at: number; bridge: ReceiptPredicate['bridge'] } => {
    const clock = { wall: options.now(), monotonic: options.monotonic() };
    const drift = Math.abs(clock.wall - seen.wall - (clock.monotonic - seen.monotonic));
    const stepped = drift > limits.clockStepMs || clock.wall < (last?.at ?? 0);
    seen = clock;
    return {
      at: clock.wall,
      bridge: { ...options.bridge, monotonicMs: Math.floor(clock.monotonic), clock: stepped ? 'stepped' : 'ok' },
    };
  };

  const put = (tx: Tx, make: (at: number) => Sealed): ReceiptRow => {
    const last = tx.lastReceipt();
    const { at, bridge } = readClock(last);
    const sealed = make(at);
    const receiptId = uuidv7(at, randomBytes);
    const seq = (last?.seq ?? 0) + 1;
    const receipt: ReceiptPredicate['receipt'] = {
      id: receiptId,
      seq,
      kind: sealed.kind,
      at,
      conversation: sealed.conversationId,
      previous: last === null ? null : { sha256: sha256(last.payload) },
      origin,
    };
    const subject = { name: `action:${sealed.approvalId ?? receiptId}`, sha256: sealed.actionSha256 };
    const payload = utf8(statementText(subject, { receipt, ...sealed.body, bridge }));
    const signature = sign(null, preAuthEncoding(payloadType, payload, utf8), key.privateKey);
    const row: ReceiptRow = {
      seq,
      receiptId,
      kind: sealed.kind,
      conversationId: sealed.conversationId,
      approvalId: sealed.approvalId,
      at,
      payload,
      signature,
      keyId: key.keyId,
      actionSha256: sealed.actionSha256,
      value: sealed.body.decision?.value ?? null,
      outcome: sealed.body.outcome?.value ?? null,
      by: sealed.by,
      sentence: sealed.sentence.slice(0, 500),
    };
    tx.putReceipt(row);
    appendToLog(tx, row, key.publicKeySpki);
    if (seq % limits.checkpointReceipts === 0) {
      putCheckpoint(tx, checkpoint, at, 'here');
      options.checkpointed?.();
    }
    return row;
  };

  const checkpoint: DeskSeal['checkpoint'] = (size, root) => {
    const text = checkpointText(origin, size, root);
    return inSync(noteOf(nodePlatform, text, origin, sign(null, utf8(text), key.privateKey), key.publicKeySpki));
  };

  const putDetail = (
    tx: Tx,
    kind: ReceiptKind,
    actor: Actor | null,
    detail: Json,
    sentence: string,
    more: { conversationId?: string | undefined; session?: Body['session']; rotation?: Body['rotation'] },
  ): ReceiptRow => {
    const conversationId = more.conversationId ?? null;
    const action = utf8(canonical({ kind, detail, nonce: randomBytes(limits.nonceBytes).toString('base64url') }));
    const actionSha256 = sha256(action);
    tx.putAction(actionSha256, action, conversationId);
    const author = authorOf(actor);
    const { session = null, rotation } = more;
    return put(tx, () => ({
      kind,
      conversationId,
      approvalId: null,
      actionSha256,
      sentence,
      by: author?.by ?? null,
      body: { ...nothing, author, session, ...(rotation === undefined ? {} : { rotation }) },
    }));
  };

  return {
    get key() {
      return key;
    },
    get keyId() {
      return key.keyId;
    },
    get publicKeyPem() {
      return key.publicKeyPem;
    },
    checkpoint,

    sign: (tx, what) =>
      putDetail(tx, what.kind, what.actor, what.detail, what.sentence, { conversationId: what.conversationId }),

    genesis: (tx) => {
      const last = tx.lastReceipt();
      if (last === null) {
        const detail = {
          bridgeId: options.bridgeId,
          keyId: key.keyId,
          publicKey: toBase64(key.publicKeySpki, 'base64url'),
        };
        putDetail(tx, 'genesis', null, detail, 'This installation began its record.', {});
        return;
      }
      if (last.keyId === key.keyId) return backfillLog(tx, key.publicKeySpki);
      throw new Refusal('unsafe_key', {
        message: `The receipts so far were signed by ${last.keyId}, not by this key. Restore the former private/keys/receipt.pem.`,
      });
    },

    session: (tx, session) => {
      const done = `receipts.session.${session.sessionId}`;
      if (tx.meta(done) !== null) return;
      const publicKey = toBase64(session.publicKeySpki, 'base64url');
      const detail = { session: session.sessionId, keyId: session.keyId, publicKey };
      const row = putDetail(tx, 'session', null, detail, 'A browser signed in.', {
        session: { id: session.sessionId, keyId: session.keyId, publicKey },
      });
      tx.setMeta(done, row.receiptId);
    },

    rotate: (tx, actor, next) => {
      const half = ({ keyId, publicKeySpki }: ReceiptKey) => ({
        keyId,
        publicKey: toBase64(publicKeySpki, 'base64url'),
      });
      const rotation = { former: half(key), next: half(next) };
      const first = putDetail(tx, 'key-rotation', actor, rotation, 'The signing key was changed.', { rotation });
      key = next;
      put(tx, () => ({
        kind: 'key-rotation',
        conversationId: null,
        approvalId: null,
        actionSha256: first.actionSha256 ?? '',
        sentence: 'The new signing key took over.',
        by: first.by,
        body: { ...nothing, author: authorOf(actor), rotation },
      }));
      return first;
    },
    useKey: (former) => {
      key = former;
    },

    decision: (tx, input) =>
      put(tx, (at) => ({
        kind: 'decision',
        conversationId: input.request.conversationId,
        approvalId: input.approvalId,
        actionSha256: input.digest,
        body: decisionBody(input, at),
        by: input.decision.by,
        sentence: input.sentence,
      })),

    outcome: (tx, input) => {
      const statement = z.parse(statementSchema, JSON.parse(Buffer.from(input.decision.payload).toString('utf8')));
      const { request, agent, workspace } = statement.predicate;
      const [subject] = statement.subject;
      if (subject === undefined) throw new Refusal('integrity_error');
      const { decision } = input;
      const outcome: Body['outcome'] = {
        decision: { id: decision.receiptId, sha256: sha256(decision.payload) },
        value: input.outcome,
        resultSha256: input.resultSha256,
        startedAt: input.startedAt,
        endedAt: input.endedAt,
      };
      return put(tx, () => ({
        kind: 'outcome',
        conversationId: decision.conversationId,
        approvalId: decision.approvalId,
        actionSha256: subject.digest.sha256,
        by: null,
        sentence: input.sentence,
        body: { ...nothing, request, agent, workspace, outcome },
      }));
    },
  };
};
