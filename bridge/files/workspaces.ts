/**
 * The registry of workspaces (W-01, W-02, W-06, W-07): which directories the operator opened, held by descriptor and
 * lease. The rule not to break: a root is handed out only while its lease is held and its path still leads to the same
 * device and inode. Called by the command table and by conversations; the operator's verbs only, never an agent's.
 */
import { mkdirSync, realpathSync, statSync } from 'node:fs';
import { Refusal } from '#protocol/errors.ts';
import { uuidv7 } from '#protocol/ids.ts';
import { limits } from '#protocol/limits.ts';
import type { WorkspaceSummary } from '#protocol/methods/workspace.ts';
import type { Ledger, WorkspaceRow } from '../ledger/contract.ts';
import { Beneath, asRefusal, isName } from './beneath.ts';
import type { Root, Workspaces } from './contract.ts';
import { excerptsOf } from './excerpts.ts';
import { browseFolder, canonicalFolder, nameOfFolder } from './folders.ts';
import { mapOf } from './map.ts';
import { ensurePractice, exists, stage, swap } from './practice.ts';
import { profileOf } from './profile.ts';
import { openRoot } from './root.ts';

/** The exclusive right of one bridge process to a directory, or who has it. Taken at once or not at all. */
export type Lock = (
  dev: string,
  ino: string,
) => { readonly release: () => void } | { readonly holder: { readonly pid: number | null } };

export interface WorkspacesParts {
  readonly ledger: Pick<Ledger, 'commit'> & { readonly read: Pick<Ledger['read'], 'workspaces' | 'conversations'> };
  readonly practiceTemplate: string;
  readonly practiceDirectory: string;
  readonly lock: Lock;
  /** The state's `private/` and the runtime directory; absolute. */
  readonly privateDirectories: readonly string[];
  readonly now: () => number;
  readonly random: (bytes: number) => Uint8Array;
  /** Tells the clients that the list changed. */
  readonly invalidate: () => void;
}

export const createWorkspaces = (parts: WorkspacesParts): Workspaces => new Registry(parts);

interface Held {
  row: WorkspaceRow;
  readonly root: Root;
  readonly release: () => void;
}

class Registry implements Workspaces {
  readonly #parts: WorkspacesParts;
  readonly #private: readonly string[];
  readonly #held = new Map<string, Held>();

  constructor(parts: WorkspacesParts) {
    this.#parts = parts;
    this.#private = parts.privateDirectories.map(realOrSame);
  }

  list(): WorkspaceSummary[] {
    const counts = this.#counts();
    const rows = this.#rows().filter(({ forgotten }) => !forgotten);
    return rows
      .sort((a, b) => b.openedAt - a.openedAt)
      .slice(0, limits.workspaces)
      .map((row) => this.#summary(row, counts));
  }

  async open(where: { path: string } | { practice: true }): Promise<WorkspaceSummary> {
    const practice = 'practice' in where;
    if (practice) ensurePractice(this.#parts.practiceTemplate, this.#parts.practiceDirectory);
    const path = canonicalFolder(practice ? this.#parts.practiceDirectory : where.path, this.#private);
    return this.#open(path, practice || path === realOrSame(this.#parts.practiceDirectory));
  }

  async create(parent: string, name: string): Promise<WorkspaceSummary> {
    if (!isName(name)) throw new Refusal('invalid_path');
    const beneath = new Beneath(canonicalFolder(parent, this.#private), () => new Set());
    try {
      beneath.directory([], (directory) => {
        mkdirSync(directory.at(name));
      });
    } finally {
      beneath.close();
    }
    return this.open({ path: `${beneath.path === '/' ? '' : beneath.path}/${name}` });
  }

  root(workspaceId: string): Root {
    const held = this.held(workspaceId);
    if (held !== null) return held;
    const row = this.#row(workspaceId);
    const taken = this.#take(row.workspaceId, row.path);
    if (taken.root.dev !== row.dev || taken.root.ino !== row.ino) {
      drop(taken);
      throw new Refusal('workspace_changed');
    }
    this.#held.set(workspaceId, { row, ...taken });
    this.#parts.invalidate();
    return taken.root;
  }

  held(workspaceId: string): Root | null {
    const held = this.#held.get(workspaceId);
    held?.root.check();
    return held?.root ?? null;
  }

  async close(workspaceId: string): Promise<void> {
    const held = this.#held.get(workspaceId);
    if (held === undefined) {
      this.#row(workspaceId);
      return;
    }
    this.#held.delete(workspaceId);
    drop(held);
    this.#parts.invalidate();
  }

  async forget(workspaceId: string): Promise<void> {
    const row = this.#row(workspaceId);
    await this.close(workspaceId);
    await this.#put({ ...row, forgotten: true });
  }

  async reset(workspaceId: string): Promise<WorkspaceSummary> {
    const row = this.#row(workspaceId);
    const { practiceTemplate, practiceDirectory } = this.#parts;
    if (!row.practice) throw new Refusal('forbidden');
    // The lease of the old directory is held until the new one is in place: nobody else starts in what is being removed.
    const held = this.#held.get(workspaceId);
    const release = held === undefined && exists(practiceDirectory) ? this.#lockOf(practiceDirectory) : null;
    try {
      exists(practiceDirectory); // refuses a link before anything is copied
      swap(stage(practiceTemplate, practiceDirectory), practiceDirectory);
    } finally {
      release?.();
    }
    if (held !== undefined) await this.close(workspaceId);
    return this.open({ practice: true });
  }

  browse(path: string): ReturnType<Workspaces['browse']> {
    return browseFolder(path, this.#private);
  }

  profile(...[workspaceId, trusted, signal]: Parameters<Workspaces['profile']>): ReturnType<Workspaces['profile']> {
    return profileOf(this.root(workspaceId), trusted, signal);
  }

  map(...[workspaceId, trusted, signal]: Parameters<Workspaces['map']>): ReturnType<Workspaces['map']> {
    return mapOf(this.root(workspaceId), trusted, signal);
  }

  excerpts(...[workspaceId, ...rest]: Parameters<Workspaces['excerpts']>): ReturnType<Workspaces['excerpts']> {
    return excerptsOf(this.root(workspaceId), ...rest);
  }

  closeAll(): void {
    for (const held of this.#held.values()) drop(held);
    this.#held.clear();
  }

  async #open(path: string, practice: boolean): Promise<WorkspaceSummary> {
    const known = this.#rows().find((row) => row.path === path);
    const held = known && this.#held.get(known.workspaceId);
    if (known !== undefined && held !== undefined && isSame(held.root))
      return this.#reopened({ ...known, openedAt: this.#parts.now(), forgotten: false });
    // The operator opens what is there now: a replaced directory gets its own lease, and trust is asked anew by its digest.
    if (known !== undefined && held !== undefined) await this.close(known.workspaceId);
    const workspaceId = known?.workspaceId ?? uuidv7(this.#parts.now(), this.#parts.random);
    const taken = this.#take(workspaceId, path);
    const { dev, ino } = taken.root;
    const row: WorkspaceRow = { workspaceId, path, dev, ino, practice, openedAt: this.#parts.now(), forgotten: false };
    // Held before the row is durable, so that a second open meanwhile finds this one.
    this.#held.set(workspaceId, { row, ...taken });
    try {
      await this.#put(row);
    } catch (error) {
      this.#held.delete(workspaceId);
      drop(taken);
      throw error;
    }
    return this.#summary(row, this.#counts());
  }

  async #reopened(row: WorkspaceRow): Promise<WorkspaceSummary> {
    const held = this.#held.get(row.workspaceId);
    if (held !== undefined) held.row = row;
    await this.#put(row);
    return this.#summary(row, this.#counts());
  }

  #take(workspaceId: string, path: string): { root: Root; release: () => void } {
    const root = this.#openRoot(workspaceId, path);
    try {
      return { root, release: this.#lock(root.dev, root.ino) };
    } catch (error) {
      root.close();
      throw error;
    }
  }

  #openRoot(workspaceId: string, path: string): Root {
    try {
      return openRoot({ workspaceId, path, privateDirectories: this.#private, now: this.#parts.now });
    } catch (error) {
      const gone = error instanceof Refusal && ['not_found', 'not_a_directory', 'symlink_refused'].includes(error.code);
      throw gone ? new Refusal('workspace_changed', { cause: error }) : error;
    }
  }

  #lockOf(directory: string): () => void {
    const stat = statSync(directory, { bigint: true });
    return this.#lock(String(stat.dev), String(stat.ino));
  }

  #lock(dev: string, ino: string): () => void {
    const lock = this.#parts.lock(dev, ino);
    if ('release' in lock) return lock.release;
    const { pid } = lock.holder;
    const who = pid === null ? 'Another bridge' : `Another bridge (process ${pid})`;
    throw new Refusal('workspace_leased', { message: `${who} is using this workspace.`, details: { pid } });
  }

  async #put(row: WorkspaceRow): Promise<void> {
    await this.#parts.ledger.commit((tx) => {
      tx.putWorkspace(row);
    });
    this.#parts.invalidate();
  }

  // Held rows first: the newest of them may not be durable yet.
  #rows(): WorkspaceRow[] {
    const held = [...this.#held.values()].map(({ row }) => row);
    return [...held, ...this.#parts.ledger.read.workspaces().filter(({ workspaceId }) => !this.#held.has(workspaceId))];
  }

  #row(workspaceId: string): WorkspaceRow {
    const row = this.#rows().find((each) => each.workspaceId === workspaceId && !each.forgotten);
    if (row === undefined) throw new Refusal('workspace_unknown');
    return row;
  }

  #counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { workspaceId } of this.#parts.ledger.read.conversations({ limit: Number.MAX_SAFE_INTEGER })) {
      counts.set(workspaceId, (counts.get(workspaceId) ?? 0) + 1);
    }
    return counts;
  }

  #summary(row: WorkspaceRow, counts: ReadonlyMap<string, number>): WorkspaceSummary {
    const { workspaceId, path, practice, openedAt } = row;
    const open = this.#held.has(workspaceId);
    return {
      ...{ workspaceId, path, name: nameOfFolder(path), practice, open, openedAt },
      conversations: counts.get(workspaceId) ?? 0,
      problem: problemOf(row),
    };
  }
}

const drop = ({ root, release }: { root: Root; release: () => void }): void => {
  root.close();
  release();
};

const isSame = (root: Root): boolean => {
  try {
    root.check();
    return true;
  } catch (error) {
    if (error instanceof Refusal && error.code === 'workspace_changed') return false;
    throw error;
  }
};

/** Seen from outside, without opening: a lease is only found out by taking it. */
const problemOf = ({ path, dev, ino }: WorkspaceRow): WorkspaceSummary['problem'] => {
  try {
    const stat = statSync(realpathSync.native(path), { bigint: true });
    return String(stat.dev) === dev && String(stat.ino) === ino ? null : 'workspace_changed';
  } catch (error) {
    return asRefusal(error).code === 'not_found' ? 'workspace_changed' : 'workspace_unavailable';
  }
};

// A private directory that is not made yet is compared as it was named.
const realOrSame = (path: string): string => {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
};
