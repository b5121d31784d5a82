/**
 * Finds the files that match the agents' patterns, through the guarded walker, and digests them. Runs nothing, follows
 * no link. The rule not to break: what cannot be read exactly is still listed, and what cannot be looked through
 * completely is said to be truncated. Called by trust.ts.
 */
import { createHash } from 'node:crypto';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { TrustFile } from '#protocol/methods/trust.ts';
import type { FileEntry } from '#protocol/methods/workspace.ts';
import type { Root } from '../files/contract.ts';
import type { TrustPattern } from './contract.ts';

/** A file and what beside its digest tells its state: a link's target, the revision of one too large to digest. */
export interface Found {
  readonly file: TrustFile;
  readonly mark: string | null;
}
export interface Scan {
  readonly found: readonly Found[];
  readonly truncated: boolean;
}

interface Budget {
  entries: number;
  truncated: boolean;
  /** Each folder is listed once, however many patterns lead through it. */
  readonly listed: Map<string, readonly Openable[]>;
}
interface Hit {
  readonly entry: FileEntry & { readonly path: string };
  readonly agents: Set<string>;
  readonly whats: Set<string>;
}

/** Sorted by path. Bounded in entries and files; beyond either it is truncated. */
export const scanFiles = (root: Root, patterns: readonly TrustPattern[]): Scan => {
  const hits = new Map<string, Hit>();
  const budget: Budget = { entries: limits.trustEntries, truncated: false, listed: new Map() };
  for (const { pattern, agentId, what } of patterns) {
    for (const entry of matches(root, '', pattern.split('/'), budget)) {
      const hit = hits.get(entry.path) ?? { entry, agents: new Set(), whats: new Set() };
      hits.set(entry.path, hit);
      hit.agents.add(agentId);
      hit.whats.add(what);
    }
  }
  const sorted = [...hits.values()].sort((a, b) => (a.entry.path < b.entry.path ? -1 : 1));
  const found = sorted.slice(0, limits.trustFiles).map((hit) => describe(root, hit));
  return { found, truncated: budget.truncated || sorted.length > found.length };
};

type Openable = FileEntry & { readonly path: string };

/** Entries below `folder` that match. A link where a folder is expected is itself a match: the agent would follow it. */
const matches = (root: Root, folder: string, [part, ...rest]: readonly string[], budget: Budget): Openable[] => {
  if (part === undefined) return [];
  return entriesOf(root, folder, part, budget).flatMap((entry) => {
    if (part === '**') {
      const deeper = entry.type === 'directory' ? matches(root, entry.path, ['**', ...rest], budget) : [];
      const isLeaf =
        entry.type !== 'directory' &&
        (rest.length === 0 || (rest.length === 1 && isMatch(nameOf(entry), rest[0] ?? '')));
      return isLeaf || entry.type === 'symlink' ? [entry] : deeper;
    }
    if (entry.type === 'symlink') return [entry];
    if (rest.length === 0) return entry.type === 'directory' ? [] : [entry];
    return entry.type === 'directory' ? matches(root, entry.path, rest, budget) : [];
  });
};

const nameOf = (entry: Openable): string => entry.path.slice(entry.path.lastIndexOf('/') + 1);

/** The entries of a folder that a pattern's part names. A name that no path can open is no agent's configuration. */
const entriesOf = (root: Root, folder: string, part: string, budget: Budget): Openable[] => {
  const all = budget.listed.get(folder) ?? listAll(root, folder, budget);
  budget.listed.set(folder, all);
  return all.filter((entry) => part === '**' || isMatch(nameOf(entry), part));
};

const listAll = (root: Root, folder: string, budget: Budget): Openable[] => {
  const entries: Openable[] = [];
  let cursor: string | undefined;
  do {
    const page = listOrNothing(root, folder, cursor);
    budget.entries -= page.entries.length;
    if (budget.entries < 0 || page.truncated) budget.truncated = true;
    if (budget.entries < 0) return entries;
    for (const entry of page.entries) if (entry.path !== null) entries.push({ ...entry, path: entry.path });
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return entries;
};

const listOrNothing = (root: Root, folder: string, cursor: string | undefined): ReturnType<Root['list']> => {
  try {
    return root.list(folder, cursor);
  } catch (error) {
    // Gone since it was named. Anything else (a link put there, a mount) must not read as "nothing found".
    if (error instanceof Refusal && error.code === 'not_found')
      return { entries: [], cursor: null, total: 0, truncated: false };
    if (error instanceof Refusal && !error.code.startsWith('workspace_'))
      return { entries: [], cursor: null, total: 0, truncated: true };
    throw error;
  }
};

/** One name against one part, `*` for any run of characters. Case does not matter: on some disks it does not. */
const isMatch = (name: string, part: string): boolean => {
  const [head = '', ...runs] = part.toLowerCase().split('*');
  const text = name.normalize('NFC').toLowerCase();
  if (runs.length === 0) return text === head;
  if (!text.startsWith(head)) return false;
  let at = head.length;
  const tail = runs.pop() ?? '';
  for (const run of runs) {
    const next = text.indexOf(run, at);
    if (next === -1) return false;
    at = next + run.length;
  }
  return text.length - tail.length >= at && text.endsWith(tail);
};

const describe = (root: Root, { entry, agents, whats }: Hit): Found => {
  const { sha256, mark, note } = digest(root, entry);
  const file: TrustFile = {
    path: entry.path,
    sha256,
    bytes: entry.bytes,
    agents: [...agents].sort().slice(0, 20),
    what: [...note, ...[...whats].sort()].join('; ').slice(0, 300),
  };
  return { file, mark };
};

interface Digest {
  readonly sha256: string | null;
  readonly mark: string | null;
  readonly note: readonly string[];
}

const digest = (root: Root, entry: Openable): Digest => {
  if (entry.type === 'symlink')
    return { sha256: null, mark: entry.link?.target ?? '', note: ['symbolic link; what it leads to is not covered'] };
  if (entry.type !== 'file') return { sha256: null, mark: entry.type, note: ['not a regular file'] };
  try {
    // Credentials may lie under a pattern: the digest says nothing about them, and their content goes nowhere.
    const whole = root.readBytes(entry.path, limits.trustFileBytes, { reveal: true });
    if (whole === null) return { sha256: null, mark: 'gone', note: ['gone while it was looked at'] };
    return { sha256: createHash('sha256').update(whole.bytes).digest('hex'), mark: null, note: [] };
  } catch (error) {
    if (!(error instanceof Refusal) || error.code.startsWith('workspace_')) throw error;
    return {
      sha256: null,
      mark: `${error.code} ${revisionOrNone(root, entry.path)}`,
      note: ['not read; a change shows by its size and time only'],
    };
  }
};

const revisionOrNone = (root: Root, path: string): string => {
  try {
    return root.stat(path).revision;
  } catch (error) {
    if (error instanceof Refusal && !error.code.startsWith('workspace_')) return error.code;
    throw error;
  }
};
