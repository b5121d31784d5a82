/**
 * Effective trust (W-10 to W-14, G-23): the review of each workspace, kept while it holds, and the operator's acceptance
 * of exactly what it found. The rule not to break: an acceptance is for a fingerprint over the root's identity, every
 * finding and the digests of what runs code, never for a path; it takes nothing off the findings. Called by
 * conversations before anything starts, by the desk where a rule would allow, and by the command table.
 */
import { createHash } from 'node:crypto';
import type { Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import { canonical, type Json } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import type { TrustState } from '#protocol/methods/trust.ts';
import { z } from '#protocol/schema.ts';
import type { Seal } from '../approvals/contract.ts';
import type { Root } from '../files/contract.ts';
import type { Ledger, TrustRow } from '../ledger/contract.ts';
import type { RunScanner, Scanner, Trust, TrustPattern } from './contract.ts';
import { absent, pending, scanForMalware, type Scanned } from './malware.ts';
import { inOrder, listed, review, type Cache, type Progress, type Review } from './review.ts';
import { scanFiles, type Scan } from './scan.ts';

export interface TrustParts {
  readonly ledger: Pick<Ledger, 'commit'> & { readonly read: Pick<Ledger['read'], 'trust'> };
  readonly seal: Pick<Seal, 'sign'>;
  readonly root: (workspaceId: string) => Root;
  /** Asked anew at each scan, since custom agents come and go. */
  readonly patterns: () => readonly TrustPattern[];
  /** True when the agent is started with a switch that keeps workspace configuration from running. */
  readonly safeUntrusted: (agentId: string) => boolean;
  /** The malware scanner of this machine, looked for at each scan; null where there is none. */
  readonly scanner: () => Scanner | null;
  readonly runScanner: RunScanner;
  /** Clients that show trust look again. */
  readonly changed: () => void;
  readonly log: (message: string, error: unknown) => void;
  readonly now: () => number;
}

/** What is known of one workspace, for as long as the bridge runs. */
interface Known {
  readonly cache: Cache;
  seen: Seen | null;
  running: Promise<void> | null;
  looking: Promise<void> | null;
  progress: Progress | null;
  scanned: Scanned;
  scanning: Promise<void> | null;
}
interface Seen {
  readonly review: Review;
  readonly files: Scan;
  /** What the watched files were when the review began. */
  readonly marks: string;
}

/** Time between two notices of progress. */
const progressMs = 400;

export const createTrust = (parts: TrustParts): Trust => new Reviews(parts);

class Reviews implements Trust {
  readonly #parts: TrustParts;
  readonly #known = new Map<string, Known>();
  readonly #end = new AbortController();

  constructor(parts: TrustParts) {
    this.#parts = parts;
  }

  async fresh(workspaceId: string): Promise<void> {
    const known = this.#of(workspaceId);
    // A review under way may have passed what changed since: what it leaves is looked at once more.
    await known.running;
    // Whoever asks in the same moment is told by one look at the files.
    known.looking ??= Promise.resolve().then(() => {
      known.looking = null;
      const root = this.#parts.root(workspaceId);
      return this.#isDue(root, known) ? this.#start(root, known) : undefined;
    });
    await known.looking;
  }

  async get(workspaceId: string): Promise<TrustState> {
    const root = this.#parts.root(workspaceId);
    const known = this.#of(workspaceId);
    const ready = this.fresh(workspaceId);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, limits.trustWaitMs);
    });
    await Promise.race([ready, late]).finally(() => clearTimeout(timer));
    // Nobody waits for it any more; whoever asks next is told what went wrong.
    ready.catch(() => undefined);
    return this.#state(root, known);
  }

  async review(workspaceId: string): Promise<TrustState> {
    const root = this.#parts.root(workspaceId);
    const known = this.#of(workspaceId);
    await known.running;
    await this.#start(root, known);
    return this.#state(root, known);
  }

  obstacle(workspaceId: string, agentId: string): string | null {
    const root = this.#parts.root(workspaceId);
    const known = this.#of(workspaceId);
    if (known.seen === null || this.#hasChanged(root, known.seen))
      return 'This folder changed just now and must be reviewed again first. Try again.';
    const state = this.#state(root, known);
    if (state.effective === 'blocked') return blockedSentence(state);
    if (state.effective === 'trusted' || this.#parts.safeUntrusted(agentId)) return null;
    const mine = state.files.filter(({ agents }) => agents.includes(agentId));
    if (mine.length === 0 && !known.seen.files.truncated) return null;
    const what =
      mine.length === 1
        ? `1 file (${mine[0]?.path ?? ''})`
        : mine.length > 1
          ? `${mine.length} files`
          : 'more files than could be looked through';
    return `This folder has ${what} that can run code when the agent starts${state.stale === null ? '' : ', and the findings changed since you accepted them'}. Review and accept them first.`;
  }

  blocked(workspaceId: string): string | null {
    const state = this.#now(workspaceId);
    return state?.effective === 'blocked' ? blockedSentence(state) : null;
  }

  trusted(workspaceId: string): boolean {
    const known = this.#of(workspaceId);
    try {
      const root = this.#parts.root(workspaceId);
      if (known.seen === null || this.#hasChanged(root, known.seen)) return false;
      return this.#state(root, known).effective === 'trusted';
    } catch (error) {
      if (error instanceof Refusal) return false; // what cannot be looked at is not trusted
      throw error;
    }
  }

  async accept(
    actor: Actor,
    { workspaceId, fingerprint, note }: Parameters<Trust['accept']>[1],
    store: Parameters<Trust['accept']>[2],
  ): Promise<TrustState> {
    const { ledger, seal, now } = this.#parts;
    await this.fresh(workspaceId);
    const root = this.#parts.root(workspaceId);
    const known = this.#of(workspaceId);
    const state = this.#state(root, known);
    if (state.fingerprint !== fingerprint || known.seen === null) throw new Refusal('digest_mismatch');
    const { review: seen, files } = known.seen;
    const answer = await ledger.commit((tx) => {
      const sentence = `Accepted what the trust review of this folder found: ${countsOf(state)}.`;
      const { receiptId } = seal.sign(tx, { kind: 'trust', actor, detail: detailOf(root, state, note), sentence });
      const by = actor.kind === 'browser' ? 'operator' : 'cli';
      const detail: Detail = {
        by,
        note: note === undefined || note === '' ? null : note,
        rootSha256: root.rootSha256,
        ids: seen.ids.slice(0, maxKept),
        files: files.found.map(({ file, mark }) => `${file.path}\0${file.sha256 ?? mark ?? ''}`),
        malware: known.scanned.findings.length,
      };
      tx.putTrust({ workspaceId, fingerprint, acceptedAt: now(), receiptId, detail: JSON.stringify(detail) });
      tx.append('bridge', {
        type: 'trust.changed',
        data: { workspaceId, state: 'accepted', files: files.found.length, receiptId },
      });
      const accepted = this.#state(root, known, tx.trust(workspaceId));
      store(tx, accepted);
      return accepted;
    });
    return answer;
  }

  async withdraw(
    actor: Actor,
    { workspaceId }: Parameters<Trust['withdraw']>[1],
    store: Parameters<Trust['withdraw']>[2],
  ): Promise<TrustState> {
    const root = this.#parts.root(workspaceId);
    const known = this.#of(workspaceId);
    return this.#parts.ledger.commit((tx) => {
      const row = tx.trust(workspaceId);
      if (row === null) throw new Refusal('not_found', { message: 'Nothing is accepted here.' });
      const detail = {
        workspaceId,
        rootSha256: root.rootSha256,
        fingerprint: row.fingerprint,
        withdraws: row.receiptId,
      };
      const sentence = 'Took back the acceptance of what the trust review of this folder found.';
      const { receiptId } = this.#parts.seal.sign(tx, { kind: 'trust', actor, detail, sentence });
      tx.removeTrust(workspaceId);
      tx.append('bridge', {
        type: 'trust.changed',
        data: { workspaceId, state: 'withdrawn', files: known.seen?.files.found.length ?? 0, receiptId },
      });
      const answer = this.#state(root, known, null);
      store(tx, answer);
      return answer;
    });
  }

  async close(): Promise<void> {
    this.#end.abort();
    await Promise.allSettled([...this.#known.values()].flatMap(({ running, scanning }) => [running, scanning]));
  }

  #of(workspaceId: string): Known {
    const known = this.#known.get(workspaceId) ?? {
      cache: new Map(),
      seen: null,
      running: null,
      looking: null,
      progress: null,
      scanned: absent,
      scanning: null,
    };
    this.#known.set(workspaceId, known);
    return known;
  }

  /** As it is at this moment; null where it cannot be told. */
  #now(workspaceId: string): TrustState | null {
    try {
      return this.#state(this.#parts.root(workspaceId), this.#of(workspaceId));
    } catch (error) {
      if (error instanceof Refusal) return null;
      throw error;
    }
  }

  #isDue(root: Root, { seen }: Known): boolean {
    if (seen === null || this.#parts.now() - seen.review.at > limits.trustStaleMs) return true;
    return this.#hasChanged(root, seen);
  }

  #hasChanged(root: Root, seen: Seen): boolean {
    if (seen.review.rootSha256 !== root.rootSha256 || marksOf(root, seen.review.watched) !== seen.marks) return true;
    return printOf(scanFiles(root, this.#parts.patterns())) !== printOf(seen.files);
  }

  #start(root: Root, known: Known): Promise<void> {
    known.running ??= this.#run(root, known).finally(() => {
      known.running = null;
      known.progress = null;
    });
    return known.running;
  }

  async #run(root: Root, known: Known): Promise<void> {
    const before = known.seen === null ? null : this.#state(root, known).fingerprint;
    known.progress = { files: 0, bytes: 0 };
    const telling = setInterval(() => this.#parts.changed(), progressMs);
    try {
      // Taken first: what changes while the walk goes on makes the review due again.
      const files = scanFiles(root, this.#parts.patterns());
      const began = new Map(known.seen?.review.watched.map((path) => [path, markOf(root, path)]));
      const done = await review(root, known.cache, known.progress, this.#end.signal, this.#parts.now);
      const marks = done.watched
        .map((path) => began.get(path) ?? known.cache.get(path)?.revision ?? markOf(root, path))
        .join('\n');
      known.seen = { review: done, files, marks };
    } finally {
      clearInterval(telling);
    }
    this.#scan(root, known);
    if (this.#state(root, known).fingerprint !== before) this.#parts.changed();
  }

  /** In the background: what it finds changes the state when it is found. */
  #scan(root: Root, known: Known): void {
    const scanner = this.#parts.scanner();
    const { state, at } = known.scanned.malware;
    if (scanner === null || known.scanning !== null) return;
    if (at !== null && this.#parts.now() - at < limits.malwareStaleMs) return;
    // What was found stays until it is known to be gone.
    if (state !== 'detected') known.scanned = pending(scanner);
    known.scanning = scanForMalware(root, scanner, this.#parts.runScanner, this.#end.signal, this.#parts.now)
      .then((scanned) => {
        known.scanned = scanned;
        this.#parts.changed();
      })
      .catch((error: unknown) => {
        known.scanned = absent;
        this.#parts.log('a malware scan was given up', error);
      })
      .finally(() => {
        known.scanning = null;
      });
  }

  #state(root: Root, known: Known, row: TrustRow | null = this.#parts.ledger.read.trust(root.workspaceId)): TrustState {
    const { seen, progress, scanned } = known;
    const base = {
      workspaceId: root.workspaceId,
      reviewing: progress === null ? null : { ...progress },
      malware: scanned.malware,
    };
    if (seen === null) return { ...base, ...unreviewed };
    const { review: done, files } = seen;
    const all = [...scanned.findings, ...done.findings].sort(inOrder);
    const raw = scanned.findings.length > 0 ? 'blocked' : done.raw;
    const ids = [...scanned.findings.map(({ findingId }) => findingId), ...done.ids].sort();
    const truncated = done.truncated || files.truncated;
    const fingerprint = sha256({ rootSha256: root.rootSha256, raw, ids, files: printOf(files), truncated });
    const isAccepted = row?.fingerprint === fingerprint;
    const detail = row === null ? null : detailIn(row);
    return {
      ...base,
      raw,
      effective: isAccepted ? 'trusted' : raw,
      fingerprint,
      reviewedAt: done.at,
      findings: listed(all),
      found: ids.length,
      files: files.found.map(({ file }) => file),
      scanned: done.scanned,
      truncated,
      acceptance:
        row === null || !isAccepted
          ? null
          : { at: row.acceptedAt, by: detail?.by ?? 'operator', note: detail?.note ?? null, receiptId: row.receiptId },
      stale: row === null || isAccepted ? null : staleSentence(root, seen, scanned, detail),
    };
  }
}

const unreviewed = {
  raw: null,
  effective: null,
  fingerprint: null,
  reviewedAt: null,
  findings: [],
  found: 0,
  files: [],
  scanned: { files: 0, bytes: 0, skipped: 0 },
  truncated: false,
  acceptance: null,
  stale: null,
} as const satisfies Partial<TrustState>;

const sha256 = (value: Json): string => createHash('sha256').update(canonical(value)).digest('hex');

const printOf = ({ found, truncated }: Scan): string =>
  sha256({ truncated, files: found.map(({ file, mark }) => ({ ...file, mark })) });

/** What tells a watched file's state, or why there is none. */
const markOf = (root: Root, path: string): string => {
  try {
    return root.stat(path).revision;
  } catch (error) {
    if (error instanceof Refusal && !error.code.startsWith('workspace_')) return error.code;
    throw error;
  }
};
const marksOf = (root: Root, paths: readonly string[]): string => paths.map((path) => markOf(root, path)).join('\n');

const maxKept = 2000;
const detailSchema = z.object({
  by: z.enum(['operator', 'cli']),
  note: z.nullable(z.string()),
  rootSha256: z.string(),
  ids: z.array(z.string()),
  files: z.array(z.string()),
  malware: z.number(),
});
type Detail = z.infer<typeof detailSchema>;
const detailIn = ({ detail }: TrustRow): Detail | null =>
  detail === null || detail === undefined ? null : detailSchema.parse(JSON.parse(detail));

const staleSentence = (root: Root, { review: done, files }: Seen, scanned: Scanned, detail: Detail | null): string => {
  if (detail === null) return 'It was given before the review looked at as much as it does now.';
  if (detail.rootSha256 !== root.rootSha256) return 'The folder was replaced by another one.';
  if (scanned.findings.length > 0 && detail.malware === 0) return 'The malware scanner has found something since.';
  const known = new Set(detail.ids);
  const added = done.ids.slice(0, maxKept).filter((id) => !known.has(id)).length;
  const gone = detail.ids.filter((id) => !done.ids.includes(id)).length;
  const before = new Set(detail.files);
  const changed = files.found.filter(
    ({ file, mark }) => !before.has(`${file.path}\0${file.sha256 ?? mark ?? ''}`),
  ).length;
  const counted = [
    added > 0 ? `${plural(added, 'finding')} came` : null,
    gone > 0 ? `${plural(gone, 'finding')} went` : null,
    changed > 0 ? `${plural(changed, 'file')} that can run code changed` : null,
  ].filter((each) => each !== null);
  return counted.length === 0 ? 'What was found has changed since.' : `Since then ${counted.join(', ')}.`;
};

const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`;

const countsOf = ({ found, files, raw }: TrustState): string =>
  `${plural(found, 'finding')}${raw === 'blocked' ? ', some of which block' : ''}, and ${plural(files.length, 'file')} that can run code when an agent starts`;

const blockedSentence = ({ findings }: TrustState): string => {
  const blocking = findings.filter(({ severity }) => severity === 'block');
  const first = blocking[0];
  const where = first === undefined || first.path === '' ? '' : `, first in ${first.path}`;
  return `The trust review of this folder found ${plural(blocking.length, 'thing')} that must not run unseen${where}. Look at the review, then mend or accept it.`;
};

/** What is signed: digests and rules, no line of a file. */
const detailOf = (
  root: Root,
  { workspaceId, fingerprint, raw, findings, found, files, truncated }: TrustState,
  note: string | undefined,
): Json => ({
  ...{ workspaceId, fingerprint, raw, truncated, found, rootSha256: root.rootSha256 },
  findings: findings.map(({ findingId, rule, severity, path }) => ({ id: findingId, rule, severity, path })),
  files: files.map(({ path, sha256: digest, bytes }) => ({ path, sha256: digest, bytes })),
  ...(note !== undefined && note !== '' && { note }),
});
