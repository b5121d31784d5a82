/**
 * The verifier of receipts, pure: bytes in, findings out. The rule not to break: the key is given, never taken
 * from what is verified. Hashing and signatures come from the platform: synchronous in the bridge and the CLI,
 * asynchronous in the app's worker; the checks are the same code.
 */
import { canonical } from './json.ts';
import {
  decisionProofText,
  fromBase64,
  payloadType,
  preAuthEncoding,
  receiptOrigin,
  statementSchema,
  toBase64,
  type ReceiptPredicate,
  type Statement,
} from './receipts.ts';
import { explain, z } from './schema.ts';

export interface VerifyPlatform {
  /** Lower-case hex. */
  sha256(bytes: Uint8Array): string | Promise<string>;
  /** Ed25519; false for anything that is not a valid signature by this key. */
  verify(publicKeySpki: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean | Promise<boolean>;
  utf8(text: string): Uint8Array;
  /** Strict: throws on bytes that are not UTF-8. */
  text(bytes: Uint8Array): string;
}

/** One receipt as it is kept, with the action bytes beside it. */
export interface SealedReceipt {
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
  readonly keyId: string;
  /** Null where the bytes are not there. */
  readonly action: Uint8Array | null;
  /** They are not there because their conversation was deleted: said, not held against it. */
  readonly actionDeleted?: boolean | undefined;
  /** What is stored beside the payload and shown to people; must say the same. */
  readonly stored?: Readonly<Record<string, string | number | null>> | undefined;
}

export interface Finding {
  readonly receiptId: string | null;
  readonly seq: number | null;
  readonly check: string;
  readonly sentence: string;
}
export interface CheckLine {
  readonly check: string;
  readonly ok: boolean;
  readonly sentence: string;
}
export interface Verification {
  readonly ok: boolean;
  readonly receipts: number;
  readonly problems: Finding[];
  /** Not wrong, but worth saying: an action deleted with its conversation, receipts that are elsewhere. */
  readonly notes: Finding[];
  /** Something named could not be checked, because it is not here. */
  readonly incomplete: boolean;
}

/**
 * `all`: the whole chain of an installation, from its first receipt. `some`: a selection in order, with gaps, that
 * holds what each depends on. `one`: a single receipt, which cannot be joined with its decision.
 */
export type VerifyScope = 'all' | 'some' | 'one';
export interface VerifyRequest {
  readonly publicKeySpki: Uint8Array;
  readonly scope: VerifyScope;
  /** The installation whose receipts these must be, where it is known. */
  readonly bridgeId?: string | undefined;
}

interface Decided {
  readonly receiptId: string;
  readonly payloadSha256: string;
  readonly subject: string;
  readonly value: 'allow' | 'deny';
  outcome: boolean;
}
interface State {
  readonly platform: VerifyPlatform;
  readonly request: VerifyRequest;
  readonly keyId: string;
  /** The last receipt seen; `sha256` null when it was not valid, so that only it is named and not the next one too. */
  last: { seq: number; sha256: string | null } | null;
  origin: string | null;
  readonly decisions: Map<string, Decided>;
  readonly nonces: Set<string>;
  /** Page keys by session id, from session receipts. */
  readonly sessions: Map<string, { keyId: string; publicKey: Uint8Array }>;
  readonly problems: Finding[];
  readonly notes: Finding[];
  receipts: number;
  incomplete: boolean;
}
interface Current {
  readonly state: State;
  readonly sealed: SealedReceipt;
  readonly statement: Statement;
  readonly predicate: ReceiptPredicate;
  readonly payloadSha256: string;
  readonly lines: CheckLine[];
}

type Steps<T> = Generator<unknown, T, unknown>;
const settled = function* <T>(value: T | Promise<T>): Steps<T> {
  return value instanceof Promise ? ((yield value) as T) : value;
};

const fromHex = (hex: string): Uint8Array =>
  Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

const good: Readonly<Record<string, string>> = {
  signature: 'Signed by the given key.',
  schema: 'A receipt of this version.',
  canonical: 'The signed bytes are canonical.',
  record: 'What is stored beside it says the same.',
  subject: 'The action is the one that was shown and decided on.',
  sequence: 'In its place in the sequence.',
  chain: 'Names the receipt before it.',
  proof: 'The decision is proved.',
  pairing: 'Decision and outcome belong together.',
};

const idsOf = (current: Current): Pick<Finding, 'receiptId' | 'seq'> => ({
  receiptId: current.predicate.receipt.id,
  seq: current.predicate.receipt.seq,
});
const note = (current: Current, check: string, sentence: string, isIncomplete: boolean): void => {
  current.state.notes.push({ ...idsOf(current), check, sentence });
  if (isIncomplete) current.state.incomplete = true;
};

// Each check answers the sentence of what is wrong, or null.

const checkRecord = ({ sealed, predicate, statement }: Current): string | null => {
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
  const wrong = Object.entries(sealed.stored ?? {}).find(([name, value]) => said[name] !== value);
  return wrong === undefined ? null : `What is stored beside it as "${wrong[0]}" is not what was signed.`;
};

const checkSubject = function* (current: Current): Steps<string | null> {
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
  if ((yield* settled(state.platform.sha256(sealed.action))) !== subject.digest.sha256)
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
  const read = z.safeParse(actionHead, parsed);
  if (!read.success) return 'The action names no conversation or nonce.';
  if (read.data.conversation !== predicate.receipt.conversation) return 'The action belongs to another conversation.';
  if (state.nonces.has(read.data.nonce)) return 'The same request was decided before: its nonce was used already.';
  state.nonces.add(read.data.nonce);
  return null;
};
const actionHead = z.object({ conversation: z.string(), nonce: z.string() });

const checkSequence = ({ state, predicate }: Current): string | null => {
  const { seq, origin } = predicate.receipt;
  state.origin ??= state.request.bridgeId === undefined ? origin : receiptOrigin(state.request.bridgeId);
  if (origin !== state.origin) return 'It belongs to the log of another installation.';
  const last = state.last?.seq ?? 0;
  if (state.request.scope === 'all' && seq !== last + 1)
    return `It has number ${String(seq)} where ${String(last + 1)} belongs.`;
  return seq > last ? null : `It has number ${String(seq)} and comes after ${String(last)}.`;
};

const checkChain = (current: Current): string | null => {
  const { state, predicate } = current;
  const { seq, kind, previous } = predicate.receipt;
  if (seq === 1) return previous === null && kind === 'genesis' ? null : 'The first receipt must be the beginning.';
  if (previous === null || kind === 'genesis') return 'It names no receipt before it.';
  if (state.last === null || state.last.seq !== seq - 1 || state.last.sha256 === null) return null;
  return previous.sha256 === state.last.sha256 ? null : 'The receipt before it is not the one it names.';
};

const checkProof = function* (current: Current): Steps<string | null> {
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

const checkDecision = ({ state, statement, predicate, payloadSha256 }: Current): string | null => {
  const { request, decision, receipt } = predicate;
  if (request === null || decision === null) return 'A decision without its request.';
  if (state.decisions.has(request.id)) return 'This approval was decided before.';
  state.decisions.set(request.id, {
    receiptId: receipt.id,
    payloadSha256,
    subject: statement.subject[0]?.digest.sha256 ?? '',
    value: decision.value,
    outcome: false,
  });
  return null;
};

const checkOutcome = (current: Current): string | null => {
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

const learnSession = ({ state, predicate }: Current): void => {
  const { session } = predicate;
  const publicKey = session === null ? null : fromBase64(session.publicKey, 'base64url');
  if (session !== null && publicKey !== null) state.sessions.set(session.id, { keyId: session.keyId, publicKey });
};

const parse = (state: State, payload: Uint8Array): { text: string; json: unknown } | null => {
  try {
    const text = state.platform.text(payload);
    return { text, json: JSON.parse(text) };
  } catch {
    return null;
  }
};

const isCanonical = (text: string, json: unknown): boolean => {
  try {
    return canonical(json) === text;
  } catch {
    return false;
  }
};

/** A receipt that cannot be trusted at all: named by what is stored beside it, and not read further. */
const refuse = (state: State, sealed: SealedReceipt, check: string, sentence: string): CheckLine[] => {
  const { seq, receiptId } = sealed.stored ?? {};
  const place = typeof seq === 'number' ? seq : state.request.scope === 'all' ? (state.last?.seq ?? 0) + 1 : null;
  state.problems.push({ receiptId: typeof receiptId === 'string' ? receiptId : null, seq: place, check, sentence });
  state.last = { seq: place ?? state.last?.seq ?? 0, sha256: null };
  return [{ check, ok: false, sentence }];
};

const checkReceipt = function* (state: State, sealed: SealedReceipt): Steps<CheckLine[]> {
  const { platform, request } = state;
  state.receipts += 1;
  if (sealed.keyId !== state.keyId)
    return refuse(state, sealed, 'signature', 'It names another key than the given one.');
  const signed = preAuthEncoding(payloadType, sealed.payload, platform.utf8);
  if (!(yield* settled(platform.verify(request.publicKeySpki, signed, sealed.signature))))
    return refuse(state, sealed, 'signature', 'The signature is not valid for these bytes and the given key.');
  const parsed = parse(state, sealed.payload);
  if (parsed === null) return refuse(state, sealed, 'schema', 'The signed bytes are not JSON.');
  const read = z.safeParse(statementSchema, parsed.json);
  if (!read.success) return refuse(state, sealed, 'schema', `Not a receipt of this version: ${explain(read.error)}`);
  const payloadSha256 = yield* settled(platform.sha256(sealed.payload));
  const current: Current = {
    state,
    sealed,
    statement: read.data,
    predicate: read.data.predicate,
    payloadSha256,
    lines: [],
  };
  const line = (check: string, wrong: string | null): void => {
    current.lines.push({ check, ok: wrong === null, sentence: wrong ?? good[check] ?? '' });
    if (wrong !== null) state.problems.push({ ...idsOf(current), check, sentence: wrong });
  };
  line('signature', null);
  line('schema', null);
  line('canonical', isCanonical(parsed.text, parsed.json) ? null : 'The signed bytes are not canonical JSON.');
  line('record', checkRecord(current));
  line('subject', yield* checkSubject(current));
  line('sequence', checkSequence(current));
  line('chain', checkChain(current));
  learnSession(current);
  const { kind, seq } = current.predicate.receipt;
  if (kind === 'decision') {
    line('proof', yield* checkProof(current));
    line('pairing', checkDecision(current));
  }
  if (kind === 'outcome') line('pairing', checkOutcome(current));
  state.last = { seq, sha256: payloadSha256 };
  return current.lines;
};

const begin = function* (platform: VerifyPlatform, request: VerifyRequest): Steps<State> {
  const digest = yield* settled(platform.sha256(request.publicKeySpki));
  return {
    platform,
    request,
    keyId: `SHA256:${toBase64(fromHex(digest), 'base64url')}`,
    last: null,
    origin: null,
    decisions: new Map(),
    nonces: new Set(),
    sessions: new Map(),
    problems: [],
    notes: [],
    receipts: 0,
    incomplete: false,
  };
};

const finish = (state: State): Verification => {
  const { receipts, problems, notes, incomplete } = state;
  return { ok: problems.length === 0, receipts, problems, notes, incomplete };
};

const every = function* (
  platform: VerifyPlatform,
  request: VerifyRequest,
  receipts: Iterable<SealedReceipt>,
): Steps<Verification & { last: CheckLine[] }> {
  const state = yield* begin(platform, request);
  let last: CheckLine[] = [];
  for (const sealed of receipts) last = yield* checkReceipt(state, sealed);
  return { ...finish(state), last };
};

/**
 * Checks receipts in order, without a promise. `last` are the lines of the last one, for showing a single receipt
 * with those it depends on before it. @throws TypeError on a platform that answers with promises
 */
export const verifySync = (
  platform: VerifyPlatform,
  request: VerifyRequest,
  receipts: Iterable<SealedReceipt>,
): Verification & { last: CheckLine[] } => {
  const step = every(platform, request, receipts).next();
  if (step.done !== true) throw new TypeError('this platform only verifies asynchronously');
  return step.value;
};

/** The same on any platform. */
export const verifyAsync = async (
  platform: VerifyPlatform,
  request: VerifyRequest,
  receipts: Iterable<SealedReceipt>,
): Promise<Verification & { last: CheckLine[] }> => {
  const steps = every(platform, request, receipts);
  let step = steps.next();
  while (step.done !== true) step = steps.next(await step.value);
  return step.value;
};
