/**
 * The git room's door: what changed in a workspace, read without running anything of its repository (F-20 to F-22).
 * Each call finds the repository anew, reads HEAD itself, and runs git in a shadow of it. The rule not to break: no run of
 * git is pointed at the repository's own git directory. Called by the command table.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Answer } from '#protocol/methods.ts';
import type { ChangeSource, GitStatus } from '#protocol/methods/git.ts';
import { parsePath } from '../files/beneath.ts';
import type { Root } from '../files/contract.ts';
import { blobSides, changesOf, diffOf, sideOf, type Comparison } from './compare.ts';
import type { Git, PairOf, RunGit } from './contract.ts';
import { filters, folderComparison } from './folder.ts';
import { commitOf, emptyTree, logOf, parentOf } from './history.ts';
import { locate, type Layout } from './layout.ts';
import { bytesOf, inside, isSecretName, pathOf } from './names.ts';
import { readHead, readRef, upstreamOf, type Head } from './refs.ts';
import { Shadows, type Shadow } from './shadow.ts';
import { parseStatus, type StatusLists } from './status.ts';
import { changesBetween, diffBetween, sideOf as sideBetween } from './trees.ts';

interface Repository extends Pick<Comparison, 'run' | 'prefix' | 'isSecret'> {
  readonly root: Root;
  readonly layout: Layout;
  readonly head: Head;
  readonly shadow: Shadow;
  readonly scope: readonly string[];
}
type Own = Extract<ChangeSource, { kind: 'staged' | 'unstaged' | 'commit' }>;
type Paired = Exclude<ChangeSource, Own>;
const isPaired = (of: ChangeSource): of is Paired => ['turn', 'checkpoints', 'worktree'].includes(of.kind);

/** `directory` is the bridge's own, for shadows; `privateDirectories` are never a repository's. */
export const createGit = (parts: {
  readonly run: RunGit;
  readonly directory: string;
  readonly privateDirectories: readonly string[];
  readonly pairOf: PairOf;
}): Git & { close(): void } => {
  const { run, pairOf } = parts;
  const shadows = new Shadows(run, parts.directory);
  const distances = new Map<string, { pair: string; ahead: number; behind: number }>();

  const once = async <T>(root: Root, signal: AbortSignal, use: (repository: Repository) => Promise<T>): Promise<T> => {
    root.check();
    const layout = locate(root.path, parts.privateDirectories);
    try {
      const head = readHead(layout);
      return await shadows.with(root.workspaceId, layout, head, signal, (shadow) =>
        use(repositoryOf(run, root, layout, head, shadow, signal)),
      );
    } finally {
      layout.close();
    }
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

  const distance = async (
    repository: Repository,
  ): Promise<Extract<GitStatus['head'], { kind: 'branch' }>['upstream']> => {
    const { head, layout, shadow, root } = repository;
    if (head.kind !== 'branch' || head.commit === null) return undefined;
    const upstream = upstreamOf(shadow.config, head.ref);
    const commit = upstream === null ? null : readRef(layout, upstream);
    if (upstream === null || commit === null) return undefined;
    const name = upstream.replace(/^refs\/(heads|remotes)\//, '').slice(0, 500);
    const pair = `${head.commit}...${commit}`;
    const known = distances.get(root.workspaceId);
    if (known?.pair === pair) return { name, ahead: known.ahead, behind: known.behind };
    const output = await repository.run(['rev-list', '--left-right', '--count', '--end-of-options', pair, '--']);
    const [ahead = 0, behind = 0] = output.toString('latin1').split('\t').map(Number);
    distances.set(root.workspaceId, { pair, ahead, behind });
    return { name, ahead, behind };
  };

  return {
    status: (root, signal) =>
      open(root, signal, async (repository) => {
        const [lists, upstream] = await Promise.all([statusOf(repository), distance(repository)]);
        return fitting(await statusAnswer(repository, lists, upstream));
      }),
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
): Repository => {
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
      return isSecretName(inside(path, prefix) ?? path) || (here !== null && root.isSecret(here));
    },
  };
};

/** A list that does not fit a frame is refused as a whole. */
const fitting = <T>(answer: T): T => {
  if (Buffer.byteLength(JSON.stringify(answer)) <= limits.frameBytes - 64 * 1024) return answer;
  throw new Refusal('git_output_too_large');
};

const statusOf = async ({ run, shadow, prefix, scope, isSecret }: Repository): Promise<StatusLists> => {
  // Telling what was renamed takes contents that a partial clone may not have.
  const renames = shadow.partial ? '--no-renames' : '--find-renames=50%';
  const fixed = ['--porcelain=v2', '-z', '--untracked-files=all', '--ignore-submodules=dirty', '--no-column'];
  return parseStatus(await run(['status', ...fixed, renames, ...scope]), prefix, isSecret);
};

const statusAnswer = async (
  repository: Repository,
  lists: StatusLists,
  upstream: Extract<GitStatus['head'], { kind: 'branch' }>['upstream'],
): Promise<GitStatus> => {
  const { head, layout, shadow } = repository;
  return {
    head:
      head.kind === 'detached'
        ? head
        : {
            kind: 'branch',
            name: head.ref.replace(/^refs\/heads\//, '').slice(0, 500),
            commit: head.commit,
            ...(upstream !== undefined && { upstream }),
          },
    topLevel: layout.prefix === '' ? 'here' : 'above',
    objectFormat: shadow.objectFormat,
    underWay: underWay(layout),
    worktree: layout.linked,
    sparse: shadow.sparse,
    ...lists,
    notes: await notesOf(repository, lists),
  };
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

const notesOf = async ({ run, layout, shadow }: Repository, { unstaged }: StatusLists): Promise<string[]> => {
  const compared = unstaged.filter(({ state, what }) => state === 'modified' && what === 'file');
  const mayBe = shadow.attributes || unstaged.some(({ path }) => path?.endsWith('.gitattributes') === true);
  const filtered = mayBe
    ? (
        await filters(
          run,
          compared.map(({ id }) => bytesOf(id)),
        )
      ).size
    : 0;
  const count = filtered === 1 ? '1 file goes' : `${filtered} files go`;
  return [
    ...shadow.notes,
    ...(filtered > 0
      ? [`${count} through a program of the repository, which is not run: whether they really changed is not known.`]
      : []),
    ...(layout.tree.has('.gitmodules')
      ? ['Submodules are compared by their commit alone: changes inside of them are not looked for.']
      : []),
    ...(shadow.partial
      ? ['Some objects of this repository are only on its server, which is not asked. Renames are not looked for.']
      : []),
  ];
};

const changes = async (repository: Repository, of: Own): Promise<Answer<'git.changes'>> => {
  const counted = changesOf(await comparisonOf(repository, of));
  if (of.kind !== 'unstaged')
    return { entries: (await counted).filter(({ state }) => state !== 'conflict'), notes: [] };
  const [lists, compared] = await Promise.all([statusOf(repository), counted]);
  const lines = new Map(compared.map((entry) => [entry.id, entry]));
  const entries = lists.unstaged.map((entry) => {
    const { added, removed } = lines.get(entry.id) ?? {};
    return added === undefined || removed === undefined ? entry : { ...entry, added, removed };
  });
  return { entries, notes: await notesOf(repository, lists) };
};

const comparisonOf = async (repository: Repository, of: Own): Promise<Comparison> => {
  const { run, prefix, isSecret, head, shadow, root, layout } = repository;
  if (of.kind === 'unstaged') return folderComparison({ run, prefix, isSecret }, root, layout, shadow.attributes);
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
