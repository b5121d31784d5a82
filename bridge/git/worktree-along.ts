/**
 * What a folder differs in from its last commit, taken along into a worktree that was just laid down (W-03). The rule not
 * to break: git only names the paths; the files room alone looks, reads and writes, and whatever it leaves out is named.
 * Called by repository.ts, which finds it, and worktrees.ts, which takes it.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { ChangeEntry } from '#protocol/methods/git.ts';
import type { EntryContent, FileState, Recorder, Root } from '../files/contract.ts';
import { stateAt } from './checkpoint-plan.ts';
import { plural } from './checkpoint-words.ts';
import { nameOf, pathOf } from './names.ts';
import { listsOf } from './overview.ts';
import type { Repository } from './repository.ts';

const reasons = {
  secret: 'kept secret',
  repository: 'in a repository of its own',
  name: 'with a name that cannot be written',
  large: 'too large',
  link: 'a link that leads out',
  unreadable: 'not readable',
  blocked: 'with something left out in its place',
} as const;
type Reason = keyof typeof reasons;
type Seen = Extract<FileState, { kind: 'file' | 'symlink' }>;

export interface LeftOut {
  /** Inert. */
  readonly name: string;
  readonly why: Reason;
}
export interface Uncommitted {
  /** By path in the workspace, as they were when git had named them; null where there is no file. */
  readonly files: ReadonlyMap<string, Seen | null>;
  readonly leftOut: readonly LeftOut[];
}
export interface Along {
  /** Files that were written or removed. */
  readonly taken: number;
  readonly leftOut: readonly LeftOut[];
}

/** Bounded as a checkpoint. @throws Refusal as git's status, checkpoint_too_large */
export const uncommittedOf = async (repository: Repository, signal: AbortSignal): Promise<Uncommitted> => {
  const { root, prefix } = repository;
  const { staged, unstaged } = await listsOf(repository);
  const recorder = root.recorder();
  const pause = slices(signal);
  const files = new Map<string, Seen | null>();
  const leftOut: LeftOut[] = [];
  let bytes = 0;
  for (const [id, why] of named(repository, [...staged, ...unstaged])) {
    await pause();
    const name = Buffer.from(id, 'base64url');
    const path = pathOf(name, prefix) ?? '';
    const seen = why ?? look(recorder, path);
    if (typeof seen === 'string') leftOut.push({ name: nameOf(name, prefix), why: seen });
    else files.set(path, seen);
    if (typeof seen === 'object' && seen?.kind === 'file') bytes += seen.bytes;
    if (files.size > limits.checkpointFiles || bytes > limits.checkpointBytes)
      throw new Refusal('checkpoint_too_large');
  }
  return { files, leftOut };
};

/** Each path once, by its id, with what is against it already; a renamed file is both of its names. */
const named = (
  { prefix, isSecret }: Repository,
  entries: readonly ChangeEntry[],
): ReadonlyMap<string, Reason | null> => {
  const found = new Map<string, Reason | null>();
  const add = (id: string, isRepository: boolean): void => {
    const path = Buffer.from(id, 'base64url');
    const nameless = pathOf(path, prefix) === null ? 'name' : null;
    found.set(id, found.get(id) ?? (isRepository ? 'repository' : isSecret(path) ? 'secret' : nameless));
  };
  for (const { id, from, what } of entries) {
    add(id, what === 'submodule');
    if (from !== undefined) add(from.id, false);
  }
  return found;
};

/** As git sees a path: a folder in its place, or a link on the way, is no file. */
const look = (recorder: Recorder, path: string): Seen | null | Reason => {
  const state = stateAt(recorder, path);
  if (state === null || state.kind === 'folder') return null;
  if (state.kind === 'symlink') return state;
  if (state.kind === 'file') return state.bytes > limits.checkpointFileBytes ? 'large' : state;
  if (state.kind === 'secret') return 'secret';
  return isBehindLink(recorder, path) ? null : 'unreadable';
};

const isBehindLink = (recorder: Recorder, path: string): boolean => {
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1))
    if (stateAt(recorder, path.slice(0, slash))?.kind === 'symlink') return true;
  return false;
};

/**
 * Puts into `to`, which has the commit, what `from` had beside it. What was left out before is part of the answer.
 * @throws Refusal repository_changed for a file that is not as it was seen, git_timeout, workspace_*
 */
export const takeAlong = async (
  from: Root,
  to: Root,
  { files, leftOut }: Uncommitted,
  signal: AbortSignal,
): Promise<Along> => {
  const sides: Sides = { from: from.recorder(), to, there: to.recorder() };
  const pause = slices(signal);
  const left = [...leftOut];
  let taken = 0;
  // What goes, goes first: a folder may come where a file stood, and a file where its folder was.
  const steps = [...files].sort(([, a], [, b]) => Number(a !== null) - Number(b !== null));
  for (const [path, seen] of steps) {
    await pause();
    const done = take(sides, path, seen);
    if (typeof done === 'string') left.push({ name: nameOf(Buffer.from(path), Buffer.alloc(0)), why: done });
    else if (done) taken += 1;
  }
  return { taken, leftOut: left };
};

interface Sides {
  readonly from: Recorder;
  readonly to: Root;
  readonly there: Recorder;
}

/** Whether there was anything to do, or why it is left out. */
const take = ({ from, to, there }: Sides, path: string, seen: Seen | null): boolean | Reason => {
  const now = look(from, path);
  const isAsSeen =
    seen === null ? now === null : now !== null && typeof now === 'object' && now.revision === seen.revision;
  if (!isAsSeen) throw new Refusal('repository_changed');
  const held = stateAt(there, path);
  const revision = held?.kind === 'file' || held?.kind === 'symlink' ? held.revision : null;
  if (seen === null) {
    if (revision !== null) to.remove(path, revision);
    return revision !== null;
  }
  if (held !== null && revision === null) return 'blocked';
  const content = contentOf(from, path, seen);
  if (typeof content === 'string') return content;
  // By the folder it comes to: a link by its full path into this one would lead out of that one.
  if (content.kind === 'symlink' && !there.isSafeLink(path, content.target)) return 'link';
  if (isSame(there, path, held, content)) return false;
  return put(to, path, content, revision);
};

const contentOf = (from: Recorder, path: string, seen: Seen): EntryContent | Reason => {
  if (seen.kind === 'symlink') return { kind: 'symlink', target: seen.target };
  try {
    const { bytes, revision } = from.read(path, limits.checkpointFileBytes);
    if (revision === seen.revision) return { kind: 'file', bytes, executable: seen.executable };
  } catch (error) {
    if (!(error instanceof Refusal) || error.code.startsWith('workspace_')) throw error;
    if (error.code === 'path_denied') return 'unreadable';
  }
  throw new Refusal('repository_changed');
};

const isSame = (there: Recorder, path: string, held: FileState | null, content: EntryContent): boolean => {
  if (content.kind === 'symlink') return held?.kind === 'symlink' && held.target.equals(content.target);
  if (held?.kind !== 'file' || held.executable !== content.executable || held.bytes !== content.bytes.length)
    return false;
  return there.read(path, limits.checkpointFileBytes).bytes.equals(content.bytes);
};

const inTheWay = ['not_a_file', 'not_a_directory', 'symlink_refused'];
const put = (to: Root, path: string, content: EntryContent, revision: string | null): true | Reason => {
  try {
    to.put(path, content, revision);
    return true;
  } catch (error) {
    if (error instanceof Refusal && inTheWay.includes(error.code)) return 'blocked';
    throw error;
  }
};

/** Lets others run between slices. */
const slices = (signal: AbortSignal): (() => Promise<void>) => {
  let end = performance.now() + limits.searchSliceMs;
  return async () => {
    if (performance.now() < end) return;
    await turn();
    if (signal.aborted) throw new Refusal('git_timeout');
    end = performance.now() + limits.searchSliceMs;
  };
};

/** As the end of a sentence: what was taken and how much was not, with the first names of each kind where they are wanted. */
export const sayAlong = ({ taken, leftOut }: Along, named: boolean): string => {
  const kinds = new Map<Reason, string[]>();
  for (const { name, why } of leftOut) kinds.set(why, [...(kinds.get(why) ?? []), name.slice(0, 60)]);
  const left = [...kinds].map(([why, names]) => {
    const rest = names.length > 3 ? ', …' : '';
    return `${names.length} ${reasons[why]}${named ? ` (${names.slice(0, 3).join(', ')}${rest})` : ''}`;
  });
  const what = taken === 0 ? 'no uncommitted changes' : `the uncommitted changes of ${plural(taken)}`;
  return `with ${what}${left.length === 0 ? '' : `; left out: ${left.join(', ')}`}`;
};

/** One line each, of the first of them. */
export const nameLeftOut = (leftOut: readonly LeftOut[]): string =>
  leftOut
    .slice(0, 100)
    .map(({ name, why }) => `${why} ${name.slice(0, 200)}`)
    .join('\n');
