/**
 * The checks of one receipt, each alone: it answers the sentence of what is wrong, or null, and keeps in the
 * state what later receipts are compared with. verify.ts says in which order they run.
 */
import type { Growth, Heads } from './agreement.ts';
import type { Keyring, SigningKey } from './keyring.ts';
import {
  decisionProofText,
  fromBase64,
  receiptOrigin,
  toHex,
  type ReceiptPredicate,
  type Statement,
} from './receipts.ts';
import { settled, type Steps } from './steps.ts';
import type { CheckLine, Finding, SealedReceipt, VerifyPlatform, VerifyRequest } from './verify.ts';

interface Decided {
  readonly receiptId: string;
  readonly seq: number;
  readonly payloadSha256: string;
  readonly subject: string;
  readonly value: 'allow' | 'deny';
  outcome: boolean;
}
export interface State {
  readonly platform: VerifyPlatform;
  readonly request: VerifyRequest;
  readonly keys: Keyring;
  /** The last receipt seen; `sha256` null when it was not valid, so that only it is named and not the next one too. */
  last: { seq: number; sha256: string | null } | null;
  origin: string | null;
  /** Known checkpoints; null until the log's origin is known. */
  heads: Heads | null;
  /** Sizes a whole chain is compared at. */
  sizes: ReadonlySet<number>;
  readonly growth: Growth;
  /** What is wrong between the known checkpoints themselves. */
  consistency: string | null;
  readonly decisions: Map<string, Decided>;
  readonly nonces: Set<string>;
  /** Page keys by session id, from session receipts. */
  readonly sessions: Map<string, { keyId: string; publicKey: Uint8Array }>;
  /** A change of keys of which the first receipt was seen: the next one must be its second. */
  rotating: { readonly subject: string; readonly nextKeyId: string } | null;
  readonly problems: Finding[];
  readonly notes: Finding[];
  receipts: number;
  incomplete: boolean;
}
export interface Current {
  readonly state: State;
  readonly sealed: SealedReceipt;
  readonly key: SigningKey;
  readonly statement: Statement;
  readonly predicate: ReceiptPredicate;
  readonly payloadSha256: string;
  readonly lines: CheckLine[];
}

/** What a line says when nothing is wrong. */
export const good: Readonly<Record<string, string>> = {
  signature: 'Signed by a key of this installation.',
  schema: 'A receipt of this version.',
  canonical: 'The signed bytes are canonical.',
  record: 'What is stored beside it says the same.',
  subject: 'The action is the one that was shown and decided on.',
  sequence: 'In its place in the sequence.',
  chain: 'Names the receipt before it.',
  leaf: 'The log holds it as its own leaf.',
  inclusion: 'It is under the signed checkpoint.',
  checkpoint: 'The checkpoint of the log is signed.',
  consistency: 'The log continues every older checkpoint.',
  proof: 'The decision is proved.',
  pairing: 'Decision and outcome belong together.',
  key: 'Its key was in use at its place.',
};

export const idsOf = (current: Current): Pick<Finding, 'receiptId' | 'seq'> => ({
  receiptId: current.predicate.receipt.id,
  seq: current.predicate.receipt.seq,
});
export const note = (current: Current, check: string, sentence: string, isIncomplete: boolean): void => {
  current.state.notes.push({ ...idsOf(current), check, sentence });
  if (isIncomplete) current.state.incomplete = true;
};

export const checkRecord = ({ sealed, predicate, statement }: Current): string | null => {
  const { receipt, request, author, decision, outcome } = predicate;
  const said: Record<string, string | number | null> = {
    seq: receipt.seq,
    receiptId: receipt.id,
    kind: receipt.kind,
    at: receipt.at,
    conversationId: receipt.conversation,
    approvalId: request?.id ?? null,
    value: decision?.value ?? null,
    outcome: outcome?.value ?? null,
    by: decision?.by ?? author?.by ?? null,
    actionSha256: statement.subject[0]?.digest.sha256 ?? null,
  };
  const stored = sealed.stored ?? {};
  for (const name in stored)
    if (said[name] !== stored[name]) return `What is stored beside it as "${name}" is not what was signed.`;
  return null;
};

export const checkSubject = function* (current: Current): Steps<string | null> {
  const { state, sealed, statement, predicate } = current;
  const { receipt, request, decision } = predicate;
  const [subject] = statement.subject;
  if (subject === undefined || subject.name !== `action:${request?.id ?? receipt.id}`)
    return 'It is about an action of another name.';
  if (decision !== null && decision.shown.sha256 !== subject.digest.sha256)
    return 'The action shown is not the action decided on.';
  if (sealed.action === null) {
    if (sealed.actionDeleted === true) note(current, 'subject', 'The action was deleted with its conversation.', false);
    else if (state.request.scope === 'all') return 'The action is missing.';
    else note(current, 'subject', 'The action is not here.', true);
    return null;
  }
  if (toHex(yield* settled(state.platform.sha256(sealed.action))) !== subject.digest.sha256)
    return 'The action is not the one that was signed.';
  if (request !== null && request.size !== sealed.action.length)
    return 'The action is not of the size that was signed.';
  return decision === null ? null : checkNonce(current, sealed.action);
};

/** a nonce is used once, and the action is of the conversation the receipt names. */
const checkNonce = ({ state, predicate }: Current, action: Uint8Array): string | null => {
  let parsed: unknown;
  try {
    parsed = JSON.parse(state.platform.text(action));
  } catch {
    return 'The action is not JSON.';
  }
  const { conversation, nonce } = (parsed ?? {}) as { conversation?: unknown; nonce?: unknown };
  if (typeof conversation !== 'string' || typeof nonce !== 'string')
    return 'The action names no conversation or nonce.';
  if (conversation !== predicate.receipt.conversation) return 'The action belongs to another conversation.';
  if (state.nonces.has(nonce)) return 'The same request was decided before: its nonce was used already.';
  state.nonces.add(nonce);
  return null;
};

export const checkSequence = ({ state, predicate }: Current): string | null => {
  const { seq, origin } = predicate.receipt;
  state.origin ??= state.request.bridgeId === undefined ? origin : receiptOrigin(state.request.bridgeId);
  if (origin !== state.origin) return 'It belongs to the log of another installation.';
  const last = state.last?.seq ?? 0;
  if (state.request.scope === 'all' && seq !== last + 1)
    return `It has number ${String(seq)} where ${String(last + 1)} belongs.`;
  return seq > last ? null : `It has number ${String(seq)} and comes after ${String(last)}.`;
};

export const checkChain = (current: Current): string | null => {
  const { state, predicate } = current;
  const { seq, kind, previous } = predicate.receipt;
  if (seq === 1) return previous === null && kind === 'genesis' ? null : 'The first receipt must be the beginning.';
  if (previous === null || kind === 'genesis') return 'It names no receipt before it.';
  if (state.last === null || state.last.seq !== seq - 1 || state.last.sha256 === null) return null;
  return previous.sha256 === state.last.sha256 ? null : 'The receipt before it is not the one it names.';
};

export const checkProof = function* (current: Current): Steps<string | null> {
  const { state, statement, predicate } = current;
  const { decision, request, policy } = predicate;
  if (decision === null || request === null) return 'A decision without its request.';
  const { proof } = decision;
  if (decision.by === 'rule')
    return proof.by === 'rule' && typeof policy?.rule === 'string' ? null : 'Decided by a rule that is not named.';
  if (decision.by === 'cli')
    return proof.by === 'control-socket' || proof.by === 'terminal'
      ? null
      : 'Decided by a command without saying where.';
  const session = decision.session === null ? undefined : state.sessions.get(decision.session);
  if (proof.by !== 'browser' || proof.sig === undefined || decision.session === null)
    return 'Decided by a person without a signature.';
  if (session === undefined) {
    if (state.request.scope === 'all') return 'No receipt holds the key of the session that decided.';
    note(current, 'proof', 'The receipt with the key of the session that decided is not here.', true);
    return null;
  }
  if (session.keyId !== proof.keyId) return 'Signed by another key than the one of its session.';
  const said = decisionProofText({
    approval: request.id,
    digest: statement.subject[0]?.digest.sha256 ?? '',
    option: decision.option,
    value: decision.value,
    noteSha256: decision.noteSha256,
  });
  const signature = fromBase64(proof.sig, 'base64url') ?? new Uint8Array();
  const isValid = yield* settled(state.platform.verify(session.publicKey, state.platform.utf8(said), signature));
  return isValid ? null : 'The signature of the session that decided is not valid.';
};

export const checkDecision = ({ state, statement, predicate, payloadSha256 }: Current): string | null => {
  const { request, decision, receipt } = predicate;
  if (request === null || decision === null) return 'A decision without its request.';
  if (state.decisions.has(request.id)) return 'This approval was decided before.';
  state.decisions.set(request.id, {
    receiptId: receipt.id,
    seq: receipt.seq,
    payloadSha256,
    subject: statement.subject[0]?.digest.sha256 ?? '',
    value: decision.value,
    outcome: false,
  });
  return null;
};

export const checkOutcome = (current: Current): string | null => {
  const { state, statement, predicate } = current;
  const { request, outcome } = predicate;
  const decided = request === null ? undefined : state.decisions.get(request.id);
  if (state.request.scope === 'one') {
    note(current, 'pairing', 'The receipt of the decision it follows from is not here.', true);
    return null;
  }
  if (outcome === null || decided === undefined) return 'No receipt of the decision it follows from.';
  if (decided.value !== 'allow') return 'It follows from a decision that denied.';
  if (decided.receiptId !== outcome.decision.id || decided.payloadSha256 !== outcome.decision.sha256)
    return 'It names another decision.';
  if (decided.subject !== statement.subject[0]?.digest.sha256) return 'Its action is not the one that was decided on.';
  if (decided.outcome) return 'This decision has an outcome already.';
  decided.outcome = true;
  return null;
};

export const learnSession = ({ state, predicate }: Current): void => {
  const { session } = predicate;
  const publicKey = session === null ? null : fromBase64(session.publicKey, 'base64url');
  if (session !== null && publicKey !== null) state.sessions.set(session.id, { keyId: session.keyId, publicKey });
};

const sameKey = (a: { keyId: string; publicKey: string }, b: { keyId: string; publicKey: string }): boolean =>
  a.keyId === b.keyId && a.publicKey === b.publicKey;

/** a key signs in its span of the sequence only, and a change of keys is two receipts of one subject. */
export const checkKey = ({ state, statement, predicate, sealed, key }: Current): string | null => {
  const { receipt, rotation } = predicate;
  const begun = state.rotating;
  state.rotating = null;
  const subject = statement.subject[0]?.digest.sha256 ?? '';
  if (receipt.seq < key.first || receipt.seq > key.last) return 'Its key was not in use at its place in the sequence.';
  if (receipt.kind !== 'key-rotation') return begun === null ? null : 'The new key did not sign its change first.';
  if (rotation === undefined || sameKey(rotation.former, rotation.next)) return 'It names no change of keys.';
  if (sealed.keyId === rotation.former.keyId) {
    state.rotating = { subject, nextKeyId: rotation.next.keyId };
    return null;
  }
  if (sealed.keyId !== rotation.next.keyId) return 'A change of keys signed by neither of them.';
  if (begun === null && state.request.scope !== 'all') return null;
  return begun?.subject === subject && begun.nextKeyId === rotation.next.keyId
    ? null
    : 'The former key did not sign this change before it.';
};
