/**
 * What the worker does with the protocol's verifier: one receipt with its proof, or the whole log page by page, against
 * what this browser knew before. Pure apart from the platform it is given, so that tests run it without a worker.
 */
import { bundleText, tlogProofText, trustedRootText, type LogKey } from '#protocol/bundle.ts';
import { guessed, inThisThread, type Signatures } from '#protocol/guess.ts';
import { keyringOf, type SigningKey } from '#protocol/keyring.ts';
import { limits } from '#protocol/limits.ts';
import { isSame, openCheckpoint, type TreeHead, verifyConsistency } from '#protocol/log.ts';
import type { SealedView } from '#protocol/methods/receipt.ts';
import { fromBase64, openEnvelope, receiptOrigin, toBase64, type Statement } from '#protocol/receipts.ts';
import { inTurn } from '#protocol/steps.ts';
import {
  verifyAsync,
  type CheckLine,
  type Finding,
  type SealedReceipt,
  type VerifyPlatform,
  type VerifyResult,
} from '#protocol/verify.ts';
import { words } from '#lib/text/receipts.en.ts';
import type {
  Head,
  Known,
  LogPage,
  LogProblem,
  LogVerdict,
  Progress,
  ReceiptForms,
  ReceiptProof,
  ReceiptVerdict,
  Shown,
} from './verify-contract.ts';
import { spkiOf, type WebPlatform } from './verify-platform.ts';

const encoder = new TextEncoder();
const nothing = new Uint8Array();

/** An envelope that cannot be read is checked as empty bytes: the signature check refuses it, by number. */
const sealedOf = (view: SealedView, more: Partial<SealedReceipt> = {}): SealedReceipt => ({
  ...(openEnvelope(view.envelope) ?? { payload: nothing, signature: nothing, keyId: '' }),
  action: view.action === null ? null : encoder.encode(view.action),
  actionDeleted: view.actionDeleted,
  stored: { seq: view.seq },
  ...more,
});

/** One that only has to be there for another: what it acted on is not asked for. */
const besides = (view: SealedView): SealedReceipt => sealedOf(view, { actionDeleted: true });

const hashesOf = (encoded: readonly string[]): Uint8Array[] => encoded.map((hash) => fromBase64(hash) ?? nothing);

/** The keys in force, first to newest, and the signed states of the log: the one known here and the one shown now. */
interface Ground {
  readonly origin: string;
  readonly keys: readonly SigningKey[];
  readonly known: TreeHead | null;
  readonly now: TreeHead | null;
}

const groundOf = async (platform: VerifyPlatform, known: Known, shown: Shown): Promise<Ground> => {
  const rotations = shown.rotations.map(besides);
  const ring = await inTurn(keyringOf(platform, spkiOf(known.publicKey), rotations));
  const keys = [...ring.values()].sort((a, b) => a.first - b.first);
  const origin = receiptOrigin(known.bridgeId);
  return {
    origin,
    keys,
    known: known.checkpoint === null ? null : headIn(known.checkpoint),
    now: await openedBy(platform, shown.checkpoint, origin, keys),
  };
};
/**
 * What a checkpoint says, its signature aside: it held when it was pinned, and the key that signed it may be gone with the
 * receipts that were taken away.
 */
const headIn = (note: string): TreeHead => {
  const [, size, root] = note.split('\n');
  return { size: Number(size), root: fromBase64(root ?? '') ?? nothing };
};
const openedBy = (
  platform: VerifyPlatform,
  note: string,
  origin: string,
  keys: readonly SigningKey[],
): Promise<TreeHead | null> =>
  inTurn(
    openCheckpoint(
      platform,
      note,
      origin,
      keys.map((key) => key.publicKeySpki),
    ),
  );

const keyProblem = async (platform: VerifyPlatform, known: Known, shown: Shown): Promise<LogProblem | null> => {
  const [mine, theirs] = [spkiOf(known.publicKey), spkiOf(shown.publicKey)];
  if (isSame(mine, theirs)) return null;
  const name = async (spki: Uint8Array): Promise<string> =>
    `SHA256:${toBase64(await platform.sha256(spki), 'base64url')}`;
  return { kind: 'key', known: await name(mine), shown: await name(theirs) };
};

/** What is wrong with the log as a whole. `hashes` null: the bridge has no proof that it continues what was seen. */
const logProblem = async (
  platform: VerifyPlatform,
  { known, now }: Ground,
  hashes: readonly string[] | null,
): Promise<LogProblem | null> => {
  if (now === null) return { kind: 'checkpoint' };
  if (known === null) return null;
  if (now.size < known.size) return { kind: 'rollback', from: known.size, to: now.size };
  const proof = now.size === known.size ? [] : hashes;
  const continues = proof !== null && (await inTurn(verifyConsistency(platform, known, now, hashesOf(proof))));
  return continues ? null : { kind: 'fork' };
};

const statementFrom = (platform: VerifyPlatform, sealed: SealedReceipt): Statement =>
  JSON.parse(platform.text(sealed.payload)) as Statement;

const pemOf = (spki: Uint8Array): string => `-----BEGIN PUBLIC KEY-----\n${toBase64(spki)}\n-----END PUBLIC KEY-----\n`;

/** Each key with the times it began and ended, as its changes were signed. */
const datedKeys = (platform: VerifyPlatform, keys: readonly SigningKey[], proof: ReceiptProof): LogKey[] => {
  const times = proof.rotations.map((view) => statementFrom(platform, besides(view)).predicate.receipt);
  let from: number | null = null;
  return keys.map(({ publicKeySpki, last }) => {
    const until = times.find(({ seq }) => seq === last)?.at ?? null;
    const key = { publicKeySpki, from, until };
    from = until;
    return key;
  });
};

/** Only of a receipt that holds, so that nobody is handed what does not. */
const formsOf = async (
  platform: VerifyPlatform,
  { origin, keys, now }: Ground,
  sealed: SealedReceipt,
  proof: ReceiptProof,
): Promise<ReceiptForms | null> => {
  const signer = keys.find((key) => key.keyId === sealed.keyId)?.publicKeySpki;
  let logKey: Uint8Array | undefined;
  for (const key of keys)
    if ((await openedBy(platform, proof.checkpoint, origin, [key])) !== null) logKey = key.publicKeySpki;
  if (now === null || signer === undefined || logKey === undefined) return null;
  const { index, size, hashes } = proof.inclusion;
  const place = { index, size, root: now.root, hashes: hashesOf(hashes), checkpoint: proof.checkpoint };
  return {
    signer: pemOf(signer),
    bundle: await inTurn(bundleText(platform, { ...sealed, place }, { origin, signer, logKey })),
    trustedRoot: await inTurn(trustedRootText(platform, origin, datedKeys(platform, keys, proof))),
    tlogProof: tlogProofText(place),
  };
};

/**
 * Checks one receipt. `consistency` as of `log.consistency` from the known state of the log to the proof's. `kept`: from
 * this browser's copy, whose log may be older than the known one.
 */
export const checkReceipt = async (
  platform: VerifyPlatform,
  known: Known,
  proof: ReceiptProof,
  options: { readonly consistency: readonly string[] | null; readonly kept: boolean },
): Promise<ReceiptVerdict> => {
  const ground = await groundOf(platform, known, proof);
  const wrongKey = await keyProblem(platform, known, proof);
  const isOlder = options.kept && ground.now !== null && ground.now.size < (ground.known?.size ?? 0);
  const wrongLog = isOlder ? null : await logProblem(platform, ground, options.consistency);
  const { receiptId, seq, kind, at, conversationId, approvalId, value, outcome, by } = proof.summary;
  const sealed = sealedOf(proof.receipt, {
    stored: { receiptId, seq, kind, at, conversationId, approvalId, value, outcome, by },
    inclusion: { ...proof.inclusion, hashes: hashesOf(proof.inclusion.hashes) },
  });
  const result = await verifyAsync(
    platform,
    {
      publicKeySpki: spkiOf(known.publicKey),
      scope: 'some',
      bridgeId: known.bridgeId,
      rotations: proof.rotations.map(besides),
      checkpoints: [{ note: proof.checkpoint, place: words.placeBridge }],
    },
    [...proof.basis.filter((other) => other.seq !== seq).map(besides), sealed],
  );
  const lines = linesOf(result, wrongKey, wrongLog, receiptId, isOlder);
  const own = result.notes.filter((note) => note.receiptId === receiptId);
  const ok = lines.every((line) => line.ok);
  const isSigned = result.last[0]?.check === 'signature' && result.last[0].ok && result.last.length > 2;
  return {
    ok,
    lines,
    notes: own.map((note) => note.sentence),
    // That an action went with its conversation is said, and no gap in the check.
    incomplete: own.some((note) => note.check !== 'subject' || !proof.receipt.actionDeleted),
    statement: isSigned ? statementFrom(platform, sealed) : null,
    head: headOf(proof.checkpoint, ground),
    problem: wrongKey ?? wrongLog,
    rotations: ground.keys.length - 1,
    forms: ok ? await formsOf(platform, ground, sealed, proof) : null,
  };
};

const headOf = (note: string, { now }: Ground): Head | null => (now === null ? null : { note, size: now.size });

/** What makes a receipt worthless as a basis; whether its own decision or outcome is here as well is not asked of it. */
const basisChecks: ReadonlySet<string> = new Set(['signature', 'schema', 'sequence', 'key']);

/** In the order of the verifier, with what only this browser can say: the key first, the known log where consistency stands. */
const linesOf = (
  result: VerifyResult,
  wrongKey: LogProblem | null,
  wrongLog: LogProblem | null,
  receiptId: string,
  isOlder: boolean,
): CheckLine[] => {
  const key: CheckLine = {
    check: 'pin',
    ok: wrongKey === null,
    sentence: wrongKey === null ? words.pinGood : words.problem.key,
  };
  const log: CheckLine = {
    check: 'consistency',
    ok: wrongLog === null,
    sentence: wrongLog !== null ? words.problem[wrongLog.kind] : isOlder ? words.olderGood : words.continuesGood,
  };
  const found = result.last.filter((line) => line.check !== 'consistency');
  const at = found.findIndex((line) => line.check === 'checkpoint') + 1;
  const others = result.problems.filter(
    (one) => basisChecks.has(one.check) && one.seq !== null && one.receiptId !== receiptId && !isOf(found, one),
  );
  return [
    key,
    ...found.slice(0, at === 0 ? found.length : at),
    ...(wrongLog?.kind === 'checkpoint' ? [] : [log]),
    ...(at === 0 ? [] : found.slice(at)),
    ...others.map((one) => ({ check: 'basis', ok: false, sentence: words.basisBad(one.seq ?? 0, one.sentence) })),
  ];
};
/** A receipt that could not be read has no id in what was found. */
const isOf = (lines: readonly CheckLine[], one: Finding): boolean =>
  lines.some((line) => !line.ok && line.sentence === one.sentence);

/** Receipts as they come, one page asked for ahead. */
const receiptsFrom = async function* (
  page: (afterSeq: number) => Promise<LogPage>,
  progress: (done: number) => void,
  { hashAhead }: WebPlatform,
): AsyncGenerator<SealedReceipt> {
  const ask = (afterSeq: number): Promise<LogPage> => {
    const asked = page(afterSeq);
    asked.catch(() => undefined); // thrown where it is awaited, or the check ended before
    return asked;
  };
  let done = 0;
  for (let next: Promise<LogPage> | null = ask(0); next !== null;) {
    const { receipts, more }: LogPage = await next;
    const last = receipts.at(-1);
    next = more && last !== undefined ? ask(last.seq) : null;
    const sealed = receipts.map((view) => sealedOf(view));
    await hashAhead(sealed.map(({ payload }) => payload));
    yield* sealed;
    done += receipts.length;
    progress(done);
  }
};

/**
 * Checks the whole log. Signatures are first taken for good while `hold` checks them beside the rest; when one is not,
 * everything is checked again, one by one, so that what is wrong is named.
 */
export const checkLog = async (
  platform: WebPlatform,
  known: Known,
  shown: Shown,
  page: (afterSeq: number) => Promise<LogPage>,
  progress: (progress: Progress) => void,
  hold: Signatures = inThisThread(platform),
): Promise<LogVerdict> => {
  const began = performance.now();
  const ground = await groundOf(platform, known, shown);
  const wrongKey = await keyProblem(platform, known, shown);
  const request = {
    publicKeySpki: spkiOf(known.publicKey),
    scope: 'all',
    bridgeId: known.bridgeId,
    rotations: shown.rotations.map(besides),
    checkpoints: [
      ...(known.checkpoint === null ? [] : [{ note: known.checkpoint, place: words.placeHere }]),
      { note: shown.checkpoint, place: words.placeBridge },
    ],
  } as const;
  const run = (by: VerifyPlatform, slow: boolean): Promise<VerifyResult> =>
    verifyAsync(
      by,
      request,
      receiptsFrom(page, (done) => progress({ done, slow }), platform),
    );
  const result = await guessed(platform, hold, (by, isGuess) => run(by, !isGuess));
  const isFork = result.problems.some((one) => one.check === 'consistency');
  const wrongLog = (await shorter(ground)) ?? (isFork ? ({ kind: 'fork' } as const) : null);
  const problem = wrongKey ?? wrongLog;
  const ok = result.ok && problem === null;
  return {
    ok,
    receipts: result.receipts,
    problems: result.problems.slice(0, limits.verifyProblems),
    problemCount: Math.max(result.problems.length, problem === null ? 0 : 1),
    notes: result.notes.slice(0, limits.verifyProblems),
    incomplete: result.incomplete,
    head: headOf(shown.checkpoint, ground),
    problem,
    rotations: ground.keys.length - 1,
    ms: performance.now() - began,
  };
};

const shorter = ({ known, now }: Ground): LogProblem | null => {
  if (now === null) return { kind: 'checkpoint' };
  return known !== null && now.size < known.size ? { kind: 'rollback', from: known.size, to: now.size } : null;
};
