/**
 * The status of a repository (F-21): what is staged, what is not, where HEAD is, what could not be looked at. The rule not
 * to break: git never looks into a submodule, where it would obey that one's settings (T64); each is looked at here as a
 * repository of its own. Called by repository.ts.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { ChangeEntry, GitStatus } from '#protocol/methods/git.ts';
import { filters } from './folder.ts';
import type { Layout } from './layout.ts';
import { bytesOf, idOf } from './names.ts';
import { entryOf, gitlinks, type RawChange } from './raw.ts';
import { readRef, upstreamOf } from './refs.ts';
import type { Repository } from './repository.ts';
import { configOf } from './shadow.ts';
import { parseStatus, type StatusLists } from './status.ts';

/** `pair` as git has it: `ours...theirs`. */
export type Distance = (repository: Repository, pair: string) => Promise<{ ahead: number; behind: number }>;

type Noted = StatusLists & { readonly notes: string[] };

/** @throws Refusal git_output_too_large above the bounds of either list */
export const overviewOf = async (repository: Repository, distance: Distance): Promise<GitStatus> => {
  const { head, layout, shadow } = repository;
  const notes: string[] = [];
  const [lists, upstream] = await Promise.all([
    listsOf(repository),
    tolerating(following(repository, distance), () =>
      notes.push('How far this branch is from the one it follows could not be counted.'),
    ),
  ]);
  return {
    head:
      head.kind === 'detached'
        ? head
        : {
            kind: 'branch',
            name: head.ref.replace(/^refs\/heads\//, '').slice(0, 500),
            commit: head.commit,
            ...(upstream !== null && { upstream }),
          },
    topLevel: layout.prefix === '' ? 'here' : 'above',
    objectFormat: shadow.objectFormat,
    underWay: underWay(layout),
    worktree: layout.linked,
    sparse: shadow.sparse,
    ...lists,
    notes: [...lists.notes, ...notes],
  };
};

/** Null, and said, where git takes too long or lacks what it needs; anything else is thrown on. */
export const tolerating = async <T>(work: Promise<T>, say: () => void): Promise<T | null> => {
  try {
    return await work;
  } catch (error) {
    const codes = ['git_timeout', 'git_output_too_large', 'unsupported_git_state', 'not_git_repository'];
    if (!(error instanceof Refusal) || !codes.includes(error.code)) throw error;
    say();
    return null;
  }
};

type Upstream = NonNullable<Extract<GitStatus['head'], { kind: 'branch' }>['upstream']>;
const following = async (repository: Repository, distance: Distance): Promise<Upstream | null> => {
  const { head, layout, shadow } = repository;
  if (head.kind !== 'branch' || head.commit === null) return null;
  const ref = upstreamOf(shadow.config, head.ref);
  const commit = ref === null ? null : readRef(layout, ref);
  if (ref === null || commit === null) return null;
  const { ahead, behind } = await distance(repository, `${head.commit}...${commit}`);
  return { name: ref.replace(/^refs\/(heads|remotes)\//, '').slice(0, 500), ahead, behind };
};

const marks = [
  ['rebase-merge', 'rebase'],
  ['rebase-apply', 'rebase'],
  ['MERGE_HEAD', 'merge'],
  ['CHERRY_PICK_HEAD', 'cherry_pick'],
  ['REVERT_HEAD', 'revert'],
  ['BISECT_LOG', 'bisect'],
] as const;
const underWay = ({ own }: Layout): GitStatus['underWay'] => marks.find(([name]) => own.has(name))?.[1] ?? null;

/** The two lists, submodules looked into, with what is to be said beside them. */
export const listsOf = async (repository: Repository): Promise<Noted> => {
  const { shadow } = repository;
  const [lists, inner] = await Promise.all([statusOf(repository), submodules(repository)]);
  const unstaged = withSubmodules(repository, lists.unstaged, inner.dirty);
  const filtered = await filteredNote(repository, unstaged);
  const partial =
    'Some objects of this repository are only on its server, which is not asked: renames are not looked for.';
  const notes = [...shadow.notes, ...filtered, ...inner.notes, ...(shadow.partial ? [partial] : [])];
  return { staged: lists.staged, unstaged, notes: notes.slice(0, 50) };
};

const statusOf = async ({ run, shadow, prefix, scope, isSecret }: Repository): Promise<StatusLists> => {
  // Telling what was renamed takes contents that a partial clone may not have.
  const renames = shadow.partial ? '--no-renames' : '--find-renames=50%';
  const fixed = ['--porcelain=v2', '-z', '--untracked-files=all', '--ignore-submodules=dirty', '--no-column'];
  return parseStatus(await run(['status', ...fixed, renames, ...scope]), prefix, isSecret);
};

const filteredNote = async ({ run, shadow }: Repository, unstaged: readonly ChangeEntry[]): Promise<string[]> => {
  const compared = unstaged.filter(({ state, what }) => state === 'modified' && what === 'file');
  const mayBe = shadow.attributes || unstaged.some(({ path }) => path?.endsWith('.gitattributes') === true);
  const count = mayBe
    ? (
        await filters(
          run,
          compared.map(({ id }) => bytesOf(id)),
        )
      ).size
    : 0;
  if (count === 0) return [];
  const go = count === 1 ? '1 file goes' : `${count} files go`;
  return [`${go} through a program of the repository, which is not run: whether they really changed is not known.`];
};

interface Dirty {
  readonly link: RawChange;
  readonly modified: boolean;
  readonly untracked: boolean;
}

/** What changed inside of each submodule that is checked out. */
const submodules = async (repository: Repository): Promise<{ dirty: Dirty[]; notes: string[] }> => {
  const { run, layout, scope, prefix } = repository;
  const text = layout.tree.read('.gitmodules');
  if (text === null) return { dirty: [], notes: [] };
  const config = configOf(await run(['config', '--file', '-', '--no-includes', '--null', '--list'], { input: text }));
  const named = [...config].filter(([key]) => /^submodule\..*\.path$/s.test(key)).map(([, path]) => path);
  const paths = named.filter((path) => path.startsWith(prefix.toString('utf8')) && isPath(path));
  const asked = paths.slice(0, limits.gitSubmodules);
  const notes =
    asked.length < paths.length ? [`Only ${asked.length} of ${paths.length} submodules were looked into.`] : [];
  if (asked.length === 0) return { dirty: [], notes };
  const dirty: Dirty[] = [];
  // What the index holds decides what is a submodule, not what a file says.
  for (const link of gitlinks(await run(['ls-files', '--stage', '-z', ...scope.slice(0, 1), ...asked]))) {
    const path = link.path.toString('utf8');
    const say = (): number => notes.push(`The submodule ${path.slice(0, 200)} could not be looked into.`);
    const inner = await tolerating(repository.within(path, statusOf), say);
    const unstaged = inner?.unstaged ?? [];
    const untracked = unstaged.some(({ state }) => state === 'untracked');
    const modified = (inner?.staged.length ?? 0) > 0 || unstaged.some(({ state }) => state !== 'untracked');
    if (untracked || modified) dirty.push({ link, modified, untracked });
  }
  return { dirty, notes };
};

const isPath = (path: string): boolean => {
  try {
    return bytesOf(idOf(Buffer.from(path))).length > 0;
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
};

const withSubmodules = (
  { prefix, isSecret }: Repository,
  unstaged: readonly ChangeEntry[],
  dirty: readonly Dirty[],
): ChangeEntry[] => {
  const byId = new Map(dirty.map((each) => [idOf(each.link.path), each]));
  const listed = unstaged.map((entry) => {
    const found = byId.get(entry.id);
    if (found === undefined || entry.submodule === undefined) return entry;
    byId.delete(entry.id);
    return { ...entry, submodule: { ...entry.submodule, modified: found.modified, untracked: found.untracked } };
  });
  const added = [...byId.values()].map(({ link, modified, untracked }) => ({
    ...entryOf(link, prefix, isSecret),
    submodule: { commitChanged: false, modified, untracked },
  }));
  if (listed.length + added.length > limits.gitEntries) throw new Refusal('git_output_too_large');
  return [...listed, ...added];
};
