/**
 * The review of one workspace (W-10, W-11): walks over it, reads what configures, steers or runs something, and applies
 * the rules. Deterministic for the same files. The rule not to break: it reads through the survey alone, runs nothing,
 * and says what it left out. Called by trust.ts.
 */
import { createHash } from 'node:crypto';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { findingGroups, severities, type Severity, type Standing, type TrustFinding } from '#protocol/methods/trust.ts';
import type { Root, Surveyed } from '../files/contract.ts';
import { isAside, isGitInternal, isSkipped, isSpecial, kindOf, type Kind } from './kinds.ts';
import { agentHits } from './rules/agent-config.ts';
import { executionHits, manifestHits } from './rules/execution.ts';
import { gitHits } from './rules/git.ts';
import { TooMuch } from './rules/near.ts';
import { secretHits } from './rules/secrets.ts';
import { rules, type Hit } from './rules/table.ts';
import { hiddenHits, injectionHits } from './rules/text.ts';
import { linesOf, shown, type Lines } from './words.ts';

export interface Review {
  readonly rootSha256: string;
  readonly at: number;
  readonly raw: Standing;
  /** Those that are sent; in their order. */
  readonly findings: readonly TrustFinding[];
  /** Of every finding, in order: what an acceptance is for. */
  readonly ids: readonly string[];
  readonly scanned: { readonly files: number; readonly bytes: number; readonly skipped: number };
  readonly truncated: boolean;
  /** Paths whose change calls for another review before a turn. */
  readonly watched: readonly string[];
}
/** What was found in a file, for as long as the file is the same. One map a workspace, kept by the caller. */
export type Cache = Map<string, Known>;
interface Known {
  readonly revision: string;
  readonly bytes: number;
  readonly findings: readonly TrustFinding[];
}
export interface Progress {
  files: number;
  bytes: number;
}

/** Files whose coming or going matters, where they were not there at the review. */
const awaited = [
  ...[
    '.git/config',
    '.git/hooks',
    '.gitmodules',
    'package.json',
    '.npmrc',
    '.envrc',
    'AGENTS.md',
    'CLAUDE.md',
    'GEMINI.md',
  ],
  ...['.mcp.json', '.claude/settings.json', '.claude/settings.local.json', '.cursor/mcp.json', '.gemini/settings.json'],
  ...[
    '.codex/config.toml',
    'opencode.json',
    '.vscode/tasks.json',
    '.vscode/settings.json',
    '.devcontainer/devcontainer.json',
  ],
];
const maxWatched = 150;

/** Reads anew what changed since `cache` was filled. `progress` is written to as it goes. @throws Refusal cancelled, workspace_changed */
export const review = async (
  root: Root,
  cache: Cache,
  progress: Progress,
  signal: AbortSignal,
  now: () => number,
): Promise<Review> => {
  const work = new Work(root, cache, progress);
  const walked = await root.survey((entry) => work.visit(entry), signal);
  return work.result(walked.truncated, now());
};

class Work {
  readonly #root: Root;
  readonly #cache: Cache;
  readonly #progress: Progress;
  readonly #met = new Set<string>();
  readonly #findings: TrustFinding[] = [];
  readonly #watched: string[] = [];
  #skipped = 0;
  #ordinary = 0;
  #cut = false;

  constructor(root: Root, cache: Cache, progress: Progress) {
    this.#root = root;
    this.#cache = cache;
    this.#progress = progress;
  }

  visit(entry: Surveyed): boolean {
    const { path, type } = entry;
    if (type === 'directory') {
      if (isGitInternal(path)) return false;
      if (isSkipped(path)) this.#skipped += 1;
      return !isSkipped(path);
    }
    this.#progress.files += 1;
    if (type === 'symlink') this.#link(entry);
    const kind = type === 'file' ? kindOf(path) : null;
    if (kind !== null) this.#read(entry, kind);
    return false;
  }

  #link(entry: Surveyed): void {
    const found = findingsOf(entry.path, linkHits(entry), null, false);
    if (found.length > 0) this.#watched.push(entry.path);
    this.#findings.push(...found);
  }

  #read(entry: Surveyed, kind: Kind): void {
    const special = isSpecial(kind);
    if (!special && (this.#ordinary >= limits.trustRead || this.#progress.bytes >= limits.trustReadAll)) {
      this.#cut = true;
      return;
    }
    if (special) this.#watched.push(entry.path);
    else this.#ordinary += 1;
    const found = this.#findingsIn(entry, kind);
    if (found === null) return;
    this.#met.add(entry.path);
    this.#progress.bytes += found.bytes;
    if (found.findings.length > 0 && !special) this.#watched.push(entry.path);
    this.#findings.push(...found.findings);
  }

  #findingsIn(entry: Surveyed, kind: Kind): Known | null {
    const { path } = entry;
    try {
      const known = this.#cache.get(path);
      if (known !== undefined && known.revision === entry.revision()) return known;
      const { bytes, size, revision } = entry.head(isSpecial(kind) ? limits.trustFileBytes : limits.trustReadBytes);
      const findings = findingsIn(path, kind, bytes, size, this.#root.isSecret(path));
      const next = { revision, bytes: bytes.length, findings };
      this.#cache.set(path, next);
      return next;
    } catch (error) {
      if (!(error instanceof Refusal) || error.code.startsWith('workspace_')) throw error;
      if (error.code === 'not_found') return null; // gone since its name was read
      if (!isSpecial(kind)) {
        this.#cut = true;
        return null;
      }
      return { revision: '', bytes: 0, findings: findingsOf(path, [unread(error.code)], null, false) };
    }
  }

  result(truncated: boolean, at: number): Review {
    for (const path of this.#cache.keys()) if (!this.#met.has(path)) this.#cache.delete(path);
    const cut = truncated || this.#cut;
    const { files, bytes } = this.#progress;
    const whole: Hit = { rule: 'scan.truncated', line: null, exact: '', evidence: `${files} files looked at` };
    const all = [...this.#findings, ...(cut ? findingsOf('', [whole], null, false) : [])].sort(inOrder);
    return {
      rootSha256: this.#root.rootSha256,
      at,
      raw: standingOf(all),
      findings: listed(all),
      ids: all.map(({ findingId }) => findingId),
      scanned: { files, bytes, skipped: this.#skipped },
      truncated: cut,
      watched: [...new Set([...awaited, ...this.#watched.slice(0, maxWatched)])],
    };
  }
}

export const standingOf = (findings: readonly Pick<TrustFinding, 'severity'>[]): Standing =>
  findings.some(({ severity }) => severity === 'block')
    ? 'blocked'
    : findings.some(({ severity }) => severity === 'warn')
      ? 'caution'
      : 'trusted';

/** Blocking first, then by group, file, line and rule: total, so that the same files give the same list. */
export const inOrder = (a: TrustFinding, b: TrustFinding): number =>
  severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
  findingGroups.indexOf(a.group) - findingGroups.indexOf(b.group) ||
  (a.path < b.path ? -1 : a.path > b.path ? 1 : 0) ||
  (a.line ?? 0) - (b.line ?? 0) ||
  (a.rule < b.rule ? -1 : a.rule > b.rule ? 1 : 0);

/** As many as are sent: few of one rule in one file, within one frame. */
export const listed = (all: readonly TrustFinding[]): TrustFinding[] => {
  const counts = new Map<string, number>();
  const list: TrustFinding[] = [];
  let bytes = 0;
  for (const finding of all) {
    const key = `${finding.rule} ${finding.path}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    bytes += Buffer.byteLength(JSON.stringify(finding));
    if (list.length === limits.trustFindings || bytes > limits.pageBytes / 2) break;
    if (count <= limits.trustFindingsPerFile) list.push(finding);
  }
  return list;
};

const linkHits = (entry: Surveyed): Hit[] => {
  const { target, place } = entry.link();
  const kind = kindOf(entry.path) ?? kindOf(`${entry.path}/x`);
  const hit = { line: null, exact: target, evidence: `leads to ${target}` } as const;
  const isHidden =
    kind === 'agent' || kind === 'git' || kind === 'manifest' || (kind === 'instruction' && place !== 'inside');
  return [
    ...(place === 'outside' ? [{ rule: 'links.outside', ...hit } as const] : []),
    ...(isHidden ? [{ rule: 'links.in_config', ...hit } as const] : []),
  ];
};

const unread = (code: string): Hit => ({ rule: 'scan.unread', line: null, exact: code, evidence: `not read: ${code}` });

/** A file's findings, pure. `size` is of the whole file, of which `bytes` is the beginning. */
export const findingsIn = (path: string, kind: Kind, bytes: Buffer, size: number, secret: boolean): TrustFinding[] => {
  const isBinary = bytes.subarray(0, limits.sniffBytes).includes(0) && !isUtf16(bytes);
  if (isBinary && !isSpecial(kind)) return [];
  const text = isUtf16(bytes)
    ? bytes.subarray(2, bytes.length - (bytes.length % 2)).toString('utf16le')
    : bytes.toString('utf8').replace(/^\ufeff/, '');
  const lines = linesOf(text);
  const cut = size > bytes.length && isSpecial(kind) ? [unread('content_too_large')] : [];
  try {
    const hits = [...hitsIn(path, kind, text, lines, bytes.length !== text.length), ...cut];
    return findingsOf(path, hits, isBinary || secret ? null : lines, !secret);
  } catch (error) {
    if (error instanceof TooMuch)
      return findingsOf(path, [unread('too many places to look at'), ...cut], null, !secret);
    throw error;
  }
};

const isUtf16 = (bytes: Buffer): boolean => bytes[0] === 0xff && bytes[1] === 0xfe;

const hitsIn = (path: string, kind: Kind, text: string, lines: Lines, beyondAscii: boolean): Hit[] => {
  const isJson = /\.(jsonc?|code-workspace)$/i.test(path);
  return [
    ...(kind === 'agent' ? agentHits(path, text, lines) : []),
    ...(kind === 'git' ? gitHits(path, text, lines) : []),
    ...(kind === 'manifest' ? manifestHits(path, text, lines) : []),
    ...(kind === 'agent' && isJson ? [] : executionHits(kind, text, lines)),
    ...(kind === 'instruction' || kind === 'doc' || kind === 'agent' ? injectionHits(kind, text, lines) : []),
    ...secretHits(path, kind, text, lines),
    ...(beyondAscii ? hiddenHits(kind, text, lines) : []),
  ];
};

/** One finding of a rule for each line, the weightiest; elsewhere than at the root's own files it weighs less. */
export const findingsOf = (
  path: string,
  hits: readonly Hit[],
  lines: Lines | null,
  openable: boolean,
): TrustFinding[] => {
  const byPlace = new Map<string, Hit>();
  for (const hit of hits) {
    const key = `${hit.rule} ${hit.line}`;
    const known = byPlace.get(key);
    if (known === undefined || severities.indexOf(severityOf(hit)) < severities.indexOf(severityOf(known)))
      byPlace.set(key, hit);
  }
  const seen = new Map<string, number>();
  return [...byPlace.values()].map((hit) => {
    const words = `${hit.rule}\0${path}\0${hit.exact}`;
    const times = (seen.get(words) ?? 0) + 1;
    seen.set(words, times);
    const { group, why, next } = rules[hit.rule];
    return {
      findingId: createHash('sha256').update(`${words}\0${times}`).digest('hex').slice(0, 32),
      rule: hit.rule,
      group,
      severity: isAside(path) ? lighter[severityOf(hit)] : severityOf(hit),
      path,
      line: hit.line,
      evidence: shown((hit.evidence ?? hit.exact).trimStart()),
      around: lines === null || hit.line === null ? [] : aroundOf(lines, hit.line, hit.evidence),
      why,
      next,
      openable: openable && path !== '',
    };
  });
};

const lighter = { block: 'warn', warn: 'note', note: 'note' } as const satisfies Record<Severity, Severity>;
const severityOf = (hit: Hit): Severity => hit.severity ?? rules[hit.rule].severity;

/** Two lines on each side. Where the evidence keeps a value back, so does its line. */
const aroundOf = (lines: Lines, line: number, evidence: string | undefined): TrustFinding['around'] => {
  const first = Math.max(1, line - 2);
  const last = Math.min(lines.count, line + 2);
  return Array.from({ length: last - first + 1 }, (_, at) => ({
    line: first + at,
    text:
      first + at === line && evidence?.includes('•••') === true
        ? shown(evidence)
        : shown(lines.text(first + at).slice(0, 2000)),
  }));
};
