/**
 * The verifier of receipts, pure: bytes in, findings out. The rule not to break: the key is given, never taken
 * from what is verified; other keys count only as far as rotation receipts lead to them. Hashing and signatures come
 * from the platform: synchronous in the bridge and the CLI, asynchronous in the app's worker; the checks are the same
 * code. Here is their order; each stands in checks.ts and agreement.ts.
 */
import {
  checkConsistency,
  checkInclusion,
  contradictions,
  grow,
  openHeads,
  type KnownCheckpoint,
} from './agreement.ts';
import {
  checkChain,
  checkDecision,
  checkKey,
  checkOutcome,
  checkProof,
  checkRecord,
  checkSequence,
  checkSubject,
  good,
  idsOf,
  learnSession,
  type Current,
  type State,
} from './checks.ts';
import { guardOf } from './guard.ts';
import { isCanonical } from './json.ts';
import { keyringOf } from './keyring.ts';
import { leafBody, leafHash, type SignaturePlatform } from './log.ts';
import { payloadType, preAuthEncoding, receiptOrigin, statementSchema, toHex, type Statement } from './receipts.ts';
import { explain, z } from './schema.ts';
import { inSync, inTurn, settled, type Steps } from './steps.ts';

export type { KnownCheckpoint } from './agreement.ts';

export interface VerifyPlatform extends SignaturePlatform {
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
  /** The leaf hash the log stores for it. */
  readonly leaf?: Uint8Array | null | undefined;
  /** Its proof under the checkpoint of that size, among the given ones. A whole chain needs none. */
  readonly inclusion?:
    { readonly index: number; readonly size: number; readonly hashes: readonly Uint8Array[] } | undefined;
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
  /** Key rotation receipts, by which older and newer keys are reached from the given one. */
  readonly rotations?: readonly SealedReceipt[] | undefined;
  /** Every checkpoint that is known, here or from elsewhere. */
  readonly checkpoints?: readonly KnownCheckpoint[] | undefined;
}
export type VerifyResult = Verification & {
  /** Of the last receipt: for showing a single one with those it depends on before it. */
  readonly last: readonly CheckLine[];
};

const isStatement = guardOf(statementSchema);

const parse = (state: State, payload: Uint8Array): { text: string; json: unknown } | null => {
  try {
    const text = state.platform.text(payload);
    return { text, json: JSON.parse(text) };
  } catch {
    return null;
  }
};

/** Null where it is a statement; otherwise why not. The guard is quick, zod explains. */
const schemaProblem = (json: unknown): string | null => {
  if (isStatement(json)) return null;
  const read = z.safeParse(statementSchema, json);
  return `Not a receipt of this version: ${read.success ? 'value' : explain(read.error)}`;
};

/** A receipt that cannot be trusted at all: named by what is stored beside it, and not read further. */
const refuse = (state: State, sealed: SealedReceipt, check: string, sentence: string): CheckLine[] => {
  const { seq, receiptId } = sealed.stored ?? {};
  const place = typeof seq === 'number' ? seq : state.request.scope === 'all' ? (state.last?.seq ?? 0) + 1 : null;
  state.problems.push({ receiptId: typeof receiptId === 'string' ? receiptId : null, seq: place, check, sentence });
  state.last = { seq: place ?? state.last?.seq ?? 0, sha256: null };
  return [{ check, ok: false, sentence }];
};

/** As soon as the log's origin is known. */
const openKnown = function* (state: State): Steps<void> {
  if (state.heads !== null || state.origin === null) return;
  const keys = [...state.keys.values()].map((key) => key.publicKeySpki);
  const heads = yield* openHeads(state.platform, state.request.checkpoints ?? [], state.origin, keys);
  state.heads = heads;
  state.sizes = new Set(heads.opened.map((head) => head.size));
  for (const place of heads.refused)
    problem(state, null, 'checkpoint', `A checkpoint is not signed by a key of this log (${place}).`);
  if (state.request.scope === 'all') return;
  const { wrong, unshown } = yield* checkConsistency(state.platform, heads);
  state.consistency = wrong;
  if (wrong !== null) problem(state, null, 'consistency', wrong);
  if (unshown > 0) remark(state, 'consistency', `Not shown to continue ${unshown} older checkpoints.`, true);
};
const problem = (state: State, seq: number | null, check: string, sentence: string): void =>
  void state.problems.push({ receiptId: null, seq, check, sentence });
const remark = (state: State, check: string, sentence: string, isIncomplete: boolean): void => {
  state.notes.push({ receiptId: null, seq: null, check, sentence });
  if (isIncomplete) state.incomplete = true;
};

type Line = (check: string, wrong: string | null) => void;

/** Leaf, inclusion, checkpoint, consistency: as far as the receipt came with what they need. */
const checkPlace = function* (current: Current, leaf: Uint8Array | null, line: Line): Steps<void> {
  const { state, sealed, predicate } = current;
  if (leaf === null) return;
  if (sealed.leaf !== undefined && sealed.leaf !== null)
    line('leaf', toHex(leaf) === toHex(sealed.leaf) ? null : 'The log holds another leaf at its place.');
  yield* openKnown(state);
  if (sealed.inclusion === undefined || state.heads === null) return;
  const { seq } = predicate.receipt;
  line('inclusion', yield* checkInclusion(state.platform, state.heads, seq, leaf, sealed.inclusion));
  const [refused] = state.heads.refused;
  const shown = (wrong: string | null, check: string): void =>
    void current.lines.push({ check, ok: wrong === null, sentence: wrong ?? good[check] ?? '' });
  shown(refused === undefined ? null : `A checkpoint is not signed by a key of this log (${refused}).`, 'checkpoint');
  shown(state.consistency, 'consistency');
};

const checkReceipt = function* (state: State, sealed: SealedReceipt): Steps<CheckLine[]> {
  const { platform, request } = state;
  state.receipts += 1;
  const key = state.keys.get(sealed.keyId);
  const payloadSha256 = yield* settled(platform.sha256(sealed.payload));
  const needsLeaf = request.scope === 'all' || sealed.inclusion !== undefined || (sealed.leaf ?? null) !== null;
  const signer = key?.publicKeySpki ?? request.publicKeySpki;
  const body = needsLeaf ? leafBody(payloadSha256, sealed.signature, signer, platform.base64) : '';
  const leaf = needsLeaf ? yield* leafHash(platform, platform.utf8(body)) : null;
  if (leaf !== null && request.scope === 'all') yield* grow(platform, state.growth, leaf, state.sizes);

  if (key === undefined) return refuse(state, sealed, 'signature', 'It names another key than the given one.');
  const signed = preAuthEncoding(payloadType, sealed.payload, platform.utf8);
  if (!(yield* settled(platform.verify(key.publicKeySpki, signed, sealed.signature))))
    return refuse(state, sealed, 'signature', 'The signature is not valid for these bytes and the given key.');
  const parsed = parse(state, sealed.payload);
  if (parsed === null) return refuse(state, sealed, 'schema', 'The signed bytes are not JSON.');
  const unreadable = schemaProblem(parsed.json);
  if (unreadable !== null) return refuse(state, sealed, 'schema', unreadable);
  const statement = parsed.json as Statement;
  const { predicate } = statement;
  const current: Current = { state, sealed, key, statement, predicate, payloadSha256: toHex(payloadSha256), lines: [] };
  const line: Line = (check, wrong) => {
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
  yield* checkPlace(current, leaf, line);
  learnSession(current);
  const { kind, seq } = predicate.receipt;
  if (kind === 'decision') {
    line('proof', yield* checkProof(current));
    line('pairing', checkDecision(current));
  }
  if (kind === 'outcome') line('pairing', checkOutcome(current));
  line('key', checkKey(current));
  state.last = { seq, sha256: current.payloadSha256 };
  return current.lines;
};

const begin = function* (platform: VerifyPlatform, request: VerifyRequest): Steps<State> {
  const state: State = {
    platform,
    request,
    keys: yield* keyringOf(platform, request.publicKeySpki, request.rotations ?? []),
    last: null,
    origin: request.bridgeId === undefined ? null : receiptOrigin(request.bridgeId),
    heads: null,
    sizes: new Set(),
    growth: { size: 0, last: [], roots: new Map() },
    consistency: null,
    decisions: new Map(),
    nonces: new Set(),
    sessions: new Map(),
    rotating: null,
    problems: [],
    notes: [],
    receipts: 0,
    incomplete: false,
  };
  yield* openKnown(state);
  return state;
};

/** What only the end of a whole chain can tell. */
const finishAll = (state: State): void => {
  if (state.rotating !== null) problem(state, state.last?.seq ?? null, 'key', 'The new key never signed its change.');
  const { heads, receipts } = state;
  if (heads !== null)
    state.problems.push(...contradictions(heads, state.growth).map((each) => ({ receiptId: null, ...each })));
  const covered = heads?.opened.at(-1)?.size ?? 0;
  if (receipts > 0 && covered === 0) remark(state, 'checkpoint', 'No signed checkpoint of this log is here.', true);
  for (const { receiptId, seq, value, outcome } of state.decisions.values())
    if (value === 'allow' && !outcome)
      state.notes.push({ receiptId, seq, check: 'pairing', sentence: 'Allowed, and no outcome is recorded so far.' });
};

const every = function* (
  platform: VerifyPlatform,
  request: VerifyRequest,
  receipts: Iterable<SealedReceipt> | AsyncIterable<SealedReceipt>,
): Steps<VerifyResult> {
  const state = yield* begin(platform, request);
  let last: CheckLine[] = [];
  const each = Symbol.asyncIterator in receipts ? receipts[Symbol.asyncIterator]() : receipts[Symbol.iterator]();
  for (let next = yield* settled(each.next()); next.done !== true; next = yield* settled(each.next()))
    last = yield* checkReceipt(state, next.value);
  if (request.scope === 'all') finishAll(state);
  const { problems, notes, incomplete } = state;
  return { ok: problems.length === 0, receipts: state.receipts, problems, notes, incomplete, last };
};

/** Checks receipts in order, without a promise. @throws TypeError on a platform that answers with promises */
export const verifySync = (
  platform: VerifyPlatform,
  request: VerifyRequest,
  receipts: Iterable<SealedReceipt>,
): VerifyResult => inSync(every(platform, request, receipts));

/** The same on any platform, also of receipts that come by and by. */
export const verifyAsync = (
  platform: VerifyPlatform,
  request: VerifyRequest,
  receipts: Iterable<SealedReceipt> | AsyncIterable<SealedReceipt>,
): Promise<VerifyResult> => inTurn(every(platform, request, receipts));
