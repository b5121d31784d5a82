/**
 * Receipts verified by the page itself: what it knows of the bridge's key and log from before, one receipt, all of them.
 * The rule not to break: what the bridge claims never stands where a check of this browser's own is shown.
 */
import type { Answer } from '#protocol/methods.ts';
import { toBase64 } from '#protocol/receipts.ts';
import { pinCheckpoint, pinKey, readPin, replacePin, type Pin } from '#lib/cache/pins.ts';
import { words } from '#lib/text/receipts.en.ts';
import type {
  Finding,
  Head,
  Known,
  LogProblem,
  LogVerdict,
  Progress,
  ReceiptProof,
  ReceiptVerdict,
} from '#lib/workers/verify-contract.ts';
import { spkiOf } from '#lib/workers/verify-platform.ts';
import { Stopped, verifyLog, verifyReceipt } from '#lib/workers/verify.ts';
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';

/** `SHA256:…` of a PEM public key, as the bridge and the receipts write it. */
export const fingerprintOf = async (pem: string): Promise<string> => {
  const digest = await crypto.subtle.digest('SHA-256', new Uint8Array(spkiOf(pem)));
  return `SHA256:${toBase64(new Uint8Array(digest), 'base64url')}`;
};

/** The bridge did not answer a question on the way. */
class Unavailable extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

const failed = (cause: unknown): Failure => {
  if (cause instanceof Unavailable) return cause.failure;
  console.error('receipts: the check did not run', cause);
  const isUnsupported = cause instanceof Error && cause.name === 'NotSupportedError';
  return { code: 'internal_error', message: isUnsupported ? words.unsupported : words.failed };
};

/** The installation this browser signed in to; what a proof says of itself counts only when signed out. */
const ownId = (app: App, proof: ReceiptProof): string => app.session.identity?.session.bridgeId ?? proof.bridgeId;

const warn = (cause: unknown): void => console.warn('receipts: something was not checked', cause);

/** The pinned key and log of this installation, and what is wrong with what the bridge shows now. */
export class ReceiptTrust {
  #app: App;
  #shown: { readonly publicKey: string; readonly head: Head | null } | null = null;
  pin = $state.raw<Pin | null>(null);
  fingerprint = $state('');
  rotations = $state(0);
  problem = $state.raw<LogProblem | null>(null);

  constructor(app: App) {
    this.#app = app;
  }

  async load(bridgeId: string): Promise<void> {
    await this.#hold(await readPin(bridgeId));
  }

  /** What to check against. The key that is shown is pinned when none is: the first sight. */
  async known(bridgeId: string, publicKey: string): Promise<Known> {
    const pin = await pinKey(bridgeId, publicKey, Date.now());
    await this.#hold(pin);
    return { bridgeId, publicKey: pin.publicKey, checkpoint: pin.checkpoint?.note ?? null };
  }

  /** What came of a check of something the bridge showed just now. */
  async learn(
    bridgeId: string,
    publicKey: string,
    found: Pick<ReceiptVerdict, 'ok' | 'head' | 'problem' | 'rotations'>,
  ): Promise<void> {
    this.#shown = { publicKey, head: found.head };
    this.#say(found.problem);
    this.rotations = found.rotations;
    if (found.ok && found.problem === null && found.head !== null)
      await this.#hold(await pinCheckpoint(bridgeId, { ...found.head, seenAt: Date.now() }));
  }

  /** By the operator, after being told what it means. */
  async trustShown(): Promise<void> {
    const { pin, problem } = this;
    if (pin === null || problem === null || this.#shown === null) return;
    const isKey = problem.kind === 'key';
    const next: Pin = {
      ...pin,
      ...(isKey ? { publicKey: this.#shown.publicKey, pinnedAt: Date.now() } : {}),
      checkpoint: null,
    };
    await replacePin(next);
    this.#say(null);
    await this.#hold(next);
  }

  #say(problem: LogProblem | null): void {
    this.problem = problem;
    this.#app.receiptAlarm = problem === null ? null : words.problem[problem.kind];
  }

  async #hold(pin: Pin | null): Promise<void> {
    if (pin?.publicKey !== this.pin?.publicKey)
      this.fingerprint = pin === null ? '' : await fingerprintOf(pin.publicKey);
    this.pin = pin;
  }
}

/**
 * Hashes that lead from the known state of the log to `toSize`; null when the bridge has none, as a rewritten log.
 * @throws Unavailable when it did not answer
 */
const consistency = async (app: App, pin: Pin | null, toSize: number): Promise<readonly string[] | null> => {
  const fromSize = pin?.checkpoint?.size ?? 0;
  if (fromSize === 0 || fromSize >= toSize) return [];
  const answer = await app.call('log.consistency', { fromSize, toSize });
  if (answer.ok) return answer.value.hashes;
  if (answer.failure.code === 'unknown_receipt') return null;
  throw new Unavailable(answer.failure);
};

/** One receipt. */
export class ReceiptCheck {
  #app: App;
  #trust: ReceiptTrust;
  readonly receiptId: string;
  proof = $state.raw<ReceiptProof | null>(null);
  /** When it was kept, where it came from this browser's copy. */
  keptAt = $state<number | null>(null);
  loading = $state(true);
  failure = $state.raw<Failure | null>(null);
  checking = $state(false);
  verdict = $state.raw<ReceiptVerdict | null>(null);
  checkedAt = $state(0);
  /** It can be checked with the bridge off. */
  isKept = $state(false);
  /** The bridge's own opinion. */
  bridge = $state.raw<Answer<'receipt.verify'> | null>(null);

  constructor(app: App, trust: ReceiptTrust, receiptId: string) {
    this.#app = app;
    this.#trust = trust;
    this.receiptId = receiptId;
  }

  /** Fetches it, or takes it from the copy, and checks it. */
  async open(): Promise<void> {
    this.loading = true;
    await this.#load();
    this.loading = false;
    if (this.proof !== null) await this.#check();
  }

  async #load(): Promise<void> {
    const kept = (await this.#app.copy?.receipts.get(this.receiptId)) ?? null;
    this.isKept = kept !== null;
    const answer = this.#app.live ? await this.#app.call('receipt.proof', { receiptId: this.receiptId }) : null;
    if (answer?.ok === true) {
      this.proof = answer.value;
      this.keptAt = null;
      this.failure = null;
      return;
    }
    // A refusal is an answer: what the bridge no longer has is not brought back from the copy.
    if (answer !== null && answer.failure.code !== 'offline') {
      this.proof = null;
      this.failure = answer.failure;
      return;
    }
    this.proof = kept?.proof ?? null;
    this.keptAt = kept?.keptAt ?? null;
    this.failure = kept === null ? { code: 'offline', message: words.notKept } : null;
  }

  async #check(): Promise<void> {
    const { proof, keptAt } = this;
    if (proof === null) return;
    this.checking = true;
    this.verdict = null;
    this.failure = null;
    try {
      const bridgeId = ownId(this.#app, proof);
      const known = await this.#trust.known(bridgeId, proof.publicKey);
      const hashes = keptAt === null ? await consistency(this.#app, this.#trust.pin, proof.inclusion.size) : null;
      const verdict = await verifyReceipt(known, proof, { consistency: hashes, kept: keptAt !== null });
      this.verdict = verdict;
      this.checkedAt = Date.now();
      if (keptAt === null) await this.#settle(bridgeId, proof, verdict);
    } catch (cause) {
      this.failure = failed(cause);
    } finally {
      this.checking = false;
    }
  }

  async #settle(bridgeId: string, proof: ReceiptProof, verdict: ReceiptVerdict): Promise<void> {
    await this.#trust.learn(bridgeId, proof.publicKey, verdict);
    if (verdict.ok && !verdict.incomplete) {
      this.isKept = (await this.#app.copy?.receipts.put(proof, Date.now())) ?? false;
    }
    const answer = await this.#app.call('receipt.verify', { receiptId: this.receiptId });
    this.bridge = answer.ok ? answer.value : null;
  }
}

/** After a whole log was found good, so many of its newest receipts are kept for checking without the bridge. */
const keptNewest = 100;
const noProgress = { done: 0, total: 0, slow: false };

/** All receipts: the whole log with the bridge, those kept here without it. */
export class LogCheck {
  #app: App;
  #trust: ReceiptTrust;
  #abort: AbortController | null = null;
  running = $state(false);
  stopped = $state(false);
  progress = $state.raw(noProgress);
  verdict = $state.raw<LogVerdict | null>(null);
  /** What was checked were those kept here. */
  kept = $state(false);
  /** How many can be checked without the bridge, once they were put away; null before. */
  keptCount = $state<number | null>(null);
  finishedAt = $state(0);
  failure = $state.raw<Failure | null>(null);

  constructor(app: App, trust: ReceiptTrust) {
    this.#app = app;
    this.#trust = trust;
  }

  async run(): Promise<void> {
    if (this.running) return;
    this.#abort?.abort(); // what the last check still puts away, this one will
    const abort = new AbortController();
    this.#abort = abort;
    Object.assign(this, { running: true, stopped: false, verdict: null, failure: null, progress: noProgress });
    this.keptCount = null;
    this.kept = !this.#app.live;
    try {
      const verdict = await (this.kept ? this.#checkKept(abort.signal) : this.#checkLog(abort.signal));
      if (verdict !== null) this.verdict = verdict;
      this.finishedAt = Date.now();
    } catch (cause) {
      if (cause instanceof Stopped) this.stopped = true;
      else this.failure = failed(cause);
    } finally {
      this.running = false;
    }
  }

  stop(): void {
    this.#abort?.abort();
  }

  /** Without being asked, when the pages open: the newest receipt and with it the key and the state of the log. */
  async glance(): Promise<void> {
    try {
      const proof = await this.#newest();
      if (proof === null) return;
      const bridgeId = ownId(this.#app, proof);
      const known = await this.#trust.known(bridgeId, proof.publicKey);
      const hashes = await consistency(this.#app, this.#trust.pin, proof.inclusion.size);
      await this.#trust.learn(
        bridgeId,
        proof.publicKey,
        await verifyReceipt(known, proof, { consistency: hashes, kept: false }),
      );
    } catch (cause) {
      warn(cause); // "Verify all" says why, when asked
    }
  }

  /** The newest receipt's proof: the first key, the log as it is now, and the key changes in between. */
  async #newest(): Promise<ReceiptProof | null> {
    const list = await this.#app.call('receipt.list', { limit: 1 });
    if (!list.ok) throw new Unavailable(list.failure);
    const [newest] = list.value.receipts;
    if (newest === undefined) return null;
    const proof = await this.#app.call('receipt.proof', { receiptId: newest.receiptId });
    if (!proof.ok) throw new Unavailable(proof.failure);
    return proof.value;
  }

  async #checkLog(signal: AbortSignal): Promise<LogVerdict | null> {
    const proof = await this.#newest();
    if (proof === null) return null;
    const { publicKey } = proof;
    const total = proof.inclusion.size;
    this.progress = { ...noProgress, total };
    const bridgeId = ownId(this.#app, proof);
    const known = await this.#trust.known(bridgeId, publicKey);
    // An exception does not keep its class on its way through the worker: what was refused is held here.
    const refused: Failure[] = [];
    const page = async (afterSeq: number): Promise<Answer<'receipt.page'>> => {
      const answer = await this.#app.call('receipt.page', { afterSeq });
      if (answer.ok) return answer.value;
      refused.push(answer.failure);
      throw new Unavailable(answer.failure);
    };
    const progress = (now: Progress): void => void (this.progress = { ...now, total });
    try {
      const verdict = await verifyLog(known, proof, { page, progress }, signal);
      await this.#trust.learn(bridgeId, publicKey, verdict);
      if (verdict.ok) void this.#keepNewest(signal).catch(warn);
      return verdict;
    } catch (cause) {
      throw refused[0] === undefined ? cause : new Unavailable(refused[0]);
    }
  }

  /** Each with its proof, checked once more by itself: what is kept has held. */
  async #keepNewest(signal: AbortSignal): Promise<void> {
    const { copy } = this.#app;
    const list = await this.#app.call('receipt.list', { limit: keptNewest });
    if (!list.ok || copy === null) return;
    for (const { receiptId } of list.value.receipts.toReversed()) {
      if (signal.aborted || !this.#app.live) return;
      if ((await copy.receipts.get(receiptId)) !== null) continue;
      const proof = await this.#app.call('receipt.proof', { receiptId });
      if (!proof.ok) return;
      const known = await this.#trust.known(ownId(this.#app, proof.value), proof.value.publicKey);
      const hashes = await consistency(this.#app, this.#trust.pin, proof.value.inclusion.size);
      const verdict = await verifyReceipt(known, proof.value, { consistency: hashes, kept: false });
      if (verdict.ok && !verdict.incomplete) await copy.receipts.put(proof.value, Date.now());
    }
    this.keptCount = await copy.receipts.count();
  }

  async #checkKept(signal: AbortSignal): Promise<LogVerdict> {
    const began = performance.now();
    const kept = (await this.#app.copy?.receipts.list()) ?? [];
    const problems: Finding[] = [];
    let incomplete = false;
    for (const [index, { proof }] of kept.entries()) {
      if (signal.aborted) throw new Stopped();
      const known = await this.#trust.known(proof.bridgeId, proof.publicKey);
      const verdict = await verifyReceipt(known, proof, { consistency: null, kept: true });
      const { receiptId, seq } = proof.summary;
      for (const line of verdict.lines) if (!line.ok) problems.push({ ...line, receiptId, seq });
      incomplete ||= verdict.incomplete;
      this.progress = { done: index + 1, total: kept.length, slow: false };
    }
    const ms = performance.now() - began;
    const { length } = problems;
    const found = { problems, problemCount: length, notes: [], head: null, problem: null, rotations: 0 };
    return { ok: length === 0, receipts: kept.length, incomplete, ms, ...found };
  }
}
