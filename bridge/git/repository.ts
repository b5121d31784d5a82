/**
 * The git room's door: what changed in a workspace, read without running anything of its repository (F-20 to F-22).
 * Each call finds the repository anew, reads HEAD itself, and runs git in a shadow of it. The rule not to break: no run of
 * git is pointed at the repository's own git directory. Called by the command table.
 */
import { join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Answer } from '#protocol/methods.ts';
import type { ChangeSource } from '#protocol/methods/git.ts';
import { parsePath } from '../files/beneath.ts';
import type { Root } from '../files/contract.ts';
import { blobSides, changesOf, diffOf, sideOf, type Comparison } from './compare.ts';
import type { Git, PairOf, RunGit } from './contract.ts';
import { folderComparison } from './folder.ts';
import { commitOf, emptyTree, logOf, parentOf } from './history.ts';
import { checkObjects, locate, type Layout } from './layout.ts';
import { bytesOf, inside, isSecretName, pathOf } from './names.ts';
import { listsOf, overviewOf, tolerating, type Distance } from './overview.ts';
import { readHead, type Head } from './refs.ts';
import { Shadows, type Shadow } from './shadow.ts';
import { uncommittedOf } from './worktree-along.ts';
import type { Source } from './worktree-make.ts';
import { changesBetween, diffBetween, sideOf as sideBetween } from './trees.ts';

export interface Repository extends Pick<Comparison, 'run' | 'prefix' | 'isSecret'> {
  readonly root: Root;
  readonly layout: Layout;
  readonly head: Head;
  readonly shadow: Shadow;
  readonly scope: readonly string[];
  /** A submodule as a repository of its own; null where none is checked out there. */
  within<T>(path: string, use: (repository: Repository) => Promise<T>): Promise<T | null>;
}
type Own = Extract<ChangeSource, { kind: 'staged' | 'unstaged' | 'commit' }>;
type Paired = Exclude<ChangeSource, Own>;
const isPaired = (of: ChangeSource): of is Paired => ['turn', 'checkpoints', 'worktree'].includes(of.kind);

export interface GitRoom extends Git {
  /** What a worktree is made of, with or without what is uncommitted. @throws Refusal as status, checkpoint_too_large */
  source(root: Root, uncommitted: boolean, signal: AbortSignal): Promise<Source>;
  close(): void;
}

/** `directory` is the bridge's own, for shadows; `privateDirectories` are never a repository's. */
export const createGit = (parts: {
  readonly run: RunGit;
  readonly directory: string;
  readonly privateDirectories: readonly string[];
  readonly pairOf: PairOf;
  /** Object stores that a workspace's repository was made to borrow from. */
  readonly lends?: (workspaceId: string) => readonly string[];
}): GitRoom => {
  const { run, pairOf } = parts;
  const shadows = new Shadows(run, parts.directory);
  const distances = new Map<string, { pair: string; ahead: number; behind: number }>();

  const at = async <T>(
    root: Root,
    place: string,
    layout: Layout,
    signal: AbortSignal,
    use: (repository: Repository) => Promise<T>,
  ): Promise<T> => {
    const within: Repository['within'] = async (path, useInner) => {
      if (layout.tree.stat(`${path}/.git`) === null) return null;
      const inner = locate(join(layout.top, path), parts.privateDirectories);
      return at(root, `${place} ${path}`, inner, signal, useInner);
    };
    try {
      const head = readHead(layout);
      checkObjects(layout);
      return await shadows.with(place, layout, head, signal, (shadow) =>
        use({ ...repositoryOf(run, root, layout, head, shadow, signal), within }),
      );
    } finally {
      layout.close();
    }
  };
  const once = async <T>(root: Root, signal: AbortSignal, use: (repository: Repository) => Promise<T>): Promise<T> => {
    root.check();
    return at(
      root,
      root.workspaceId,
      locate(root.path, parts.privateDirectories, parts.lends?.(root.workspaceId)),
      signal,
      use,
    );
  };
  // What is written to meanwhile is looked at once more; then it is said.
  const open: typeof once = async (root, signal, use) => {
    try {
      return await once(root, signal, use);
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'repository_changed') throw error;
      return once(root, signal, use);
    }
  };

  // Counted once for each pair of commits: it is a walk through the history.
  const distance: Distance = async (repository, pair) => {
    const known = distances.get(repository.root.workspaceId);
    if (known?.pair === pair) return known;
    const output = await repository.run(['rev-list', '--left-right', '--count', '--end-of-options', pair, '--']);
    const [ahead = 0, behind = 0] = output.toString('latin1').split('\t').map(Number);
    distances.set(repository.root.workspaceId, { pair, ahead, behind });
    return { ahead, behind };
  };

  return {
    status: (root, signal) => open(root, signal, async (repository) => fitting(await overviewOf(repository, distance))),
    changes: async (root, of, signal) => {
      if (isPaired(of))
        return fitting({ entries: await changesBetween(run, await pairOf(root, of, signal), signal), notes: [] });
      return open(root, signal, async (repository) => fitting(await changes(repository, of)));
    },
    diff: async (root, params, signal) => {
      const { of } = params;
      if (isPaired(of)) return diffBetween(run, await pairOf(root, of, signal), params, signal);
      return open(root, signal, async (repository) =>
        unmoved(repository, of, params.id, async () => diffOf(await comparisonOf(repository, of), params)),
      );
    },
    side: async (root, params, signal) => {
      const { of } = params;
      if (isPaired(of)) return sideBetween(run, await pairOf(root, of, signal), params, signal);
      return open(root, signal, async (repository) => sideOf(await comparisonOf(repository, of), params));
    },
    log: (root, { path, skip = 0, limit = limits.gitCommits }, signal) => {
      if (path !== undefined) parsePath(path);
      return open(root, signal, async ({ head, layout, run: here }) => {
        if (head.commit === null) return { commits: [], more: false };
        return logOf(here, head.commit, { path: layout.prefix + (path ?? ''), skip, limit });
      });
    },
    show: (root, { commit }, signal) =>
      open(root, signal, async (repository) => {
        const comparison = await comparisonOf(repository, { kind: 'commit', commit });
        const [found, entries] = await Promise.all([commitOf(repository.run, commit), changesOf(comparison)]);
        return fitting({ ...found, entries, notes: [] });
      }),
    source: (root, uncommitted, signal) =>
      open(root, signal, async (repository) => ({
        ...(await sourceOf(repository)),
        uncommitted: uncommitted ? await uncommittedOf(repository, signal) : null,
      })),
    close: () => shadows.close(),
  };
};

const repositoryOf = (
  run: RunGit,
  root: Root,
  layout: Layout,
  head: Head,
  shadow: Shadow,
  signal: AbortSignal,
): Omit<Repository, 'within'> => {
  const prefix = Buffer.from(layout.prefix);
  const place = { gitDirectory: shadow.directory, workTree: layout.top, objects: [shadow.objects], signal };
  return {
    root,
    layout,
    head,
    shadow,
    prefix,
    scope: layout.prefix === '' ? ['--'] : ['--', layout.prefix],
    run: async (args, options = {}) => (await run({ ...place, args, ...options })).stdout,
    isSecret: (path) => {
      const here = pathOf(path, prefix);
      // The room's own answer where it has one: it knows the bridge's folders, too.
      return here === null ? isSecretName(inside(path, prefix) ?? path) : root.isSecret(here);
    },
  };
};

const sourceOf = async ({ head, layout, shadow, run }: Repository): Promise<Omit<Source, 'uncommitted'>> => {
  const { commit } = head;
  if (commit === null)
    throw new Refusal('unsupported_git_state', { message: 'There is no commit in this repository yet.' });
  const listed = await run(['ls-tree', '-r', '-l', '-z', '--end-of-options', commit]);
  // A submodule has no size.
  const entries = listed.toString('latin1').split('\0').slice(0, -1);
  const sizes = entries.map((entry) => Number(/ +(\d+)\t/.exec(entry)?.[1] ?? 0));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  if (sizes.length > limits.checkpointFiles || bytes > limits.checkpointBytes)
    throw new Refusal('checkpoint_too_large');
  return {
    commit,
    objects: checkObjects(layout),
    objectFormat: shadow.objectFormat,
    prefix: layout.prefix,
    config: shadow.config,
    exclude: layout.common.read('info/exclude'),
    shallow: layout.common.read('shallow'),
  };
};

/** A list that does not fit a frame is refused as a whole. */
const fitting = <T>(answer: T): T => {
  if (Buffer.byteLength(JSON.stringify(answer)) <= limits.frameBytes - 64 * 1024) return answer;
  throw new Refusal('git_output_too_large');
};

const changes = async (repository: Repository, of: Own): Promise<Answer<'git.changes'>> => {
  const comparison = await comparisonOf(repository, of);
  if (of.kind === 'commit') return { entries: await changesOf(comparison), notes: [] };
  const said: string[] = [];
  const counting = tolerating(changesOf(comparison), () =>
    said.push('The changed lines could not be counted: something that git needs for it is missing or takes too long.'),
  );
  const staged = of.kind === 'staged' ? await counting : null;
  if (staged !== null) return { entries: staged.filter(({ state }) => state !== 'conflict'), notes: [] };
  const [lists, counted] = await Promise.all([listsOf(repository), counting]);
  const lines = new Map(counted?.map((entry) => [entry.id, entry]));
  const entries = lists[of.kind].map((entry) => {
    const { added, removed } = lines.get(entry.id) ?? {};
    return added === undefined || removed === undefined ? entry : { ...entry, added, removed };
  });
  return { entries, notes: [...said, ...lists.notes].slice(0, 50) };
};

const comparisonOf = async (repository: Repository, of: Own): Promise<Comparison> => {
  const { run, prefix, isSecret, head, shadow, root, layout } = repository;
  if (of.kind === 'unstaged') return folderComparison({ run, prefix, isSecret }, root, layout, shadow);
  const base = { run, prefix, isSecret, side: blobSides(run) };
  const empty = emptyTree(shadow.objectFormat);
  if (of.kind === 'staged')
    return { ...base, compare: ['diff-index', '--cached', '--end-of-options', head.commit ?? empty] };
  const parent = await parentOf(run, of.commit);
  return { ...base, compare: ['diff-tree', '-r', '--end-of-options', parent ?? empty, of.commit] };
};

/** Git and the walker read one after the other: what moved in between is neither of both. */
const unmoved = async <T>({ layout }: Repository, of: Own, id: string, use: () => Promise<T>): Promise<T> => {
  const path = bytesOf(id).toString('utf8');
  const before = of.kind === 'unstaged' ? layout.tree.revision(path) : '';
  const answer = await use();
  if (of.kind === 'unstaged' && layout.tree.revision(path) !== before) throw new Refusal('repository_changed');
  return answer;
};
