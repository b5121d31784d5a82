/**
 * Lays a copy of a repository down at one commit: a git directory written here, objects borrowed from the parent's. The
 * rule not to break: nothing of the parent's repository is written to, and of its configuration only validated values of
 * a closed list and the name of the author get in. Called by worktrees.ts.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '#protocol/limits.ts';
import type { RunGit } from './contract.ts';
import { unsupported } from './layout.ts';
import { allowed, type Config } from './shadow.ts';
import type { Uncommitted } from './worktree-along.ts';

/** What `GitRoom.source` reads of a parent. */
export interface Source {
  readonly commit: string;
  /** Absolute; the repository's own first, then what it borrows from. */
  readonly objects: readonly string[];
  readonly objectFormat: 'sha1' | 'sha256';
  /** The workspace's place in the repository with its slash; '' where they are one. */
  readonly prefix: string;
  readonly config: Config;
  readonly exclude: Uint8Array | null;
  readonly shallow: Uint8Array | null;
  /** Null where it was not asked for. */
  readonly uncommitted: Uncommitted | null;
}

export const slugOf = (title: string): string => {
  const words = title
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-');
  return words.slice(0, 40).replaceAll(/^-+|-+$/g, '') || 'work';
};

/** `top` does not exist yet. The files are as the commit has them; no filter, no hook, no helper runs. @throws Refusal git_* */
export const layDown = async (
  run: RunGit,
  source: Source,
  where: { readonly top: string; readonly branch: string },
  signal: AbortSignal,
): Promise<void> => {
  const { top, branch } = where;
  const own = join(top, '.git');
  if (source.objects.some((path) => path.includes('\n')))
    throw unsupported('The path of this repository has a line break in it, which git cannot borrow objects from.');
  await mkdir(top, { recursive: true, mode: 0o700 });
  for (const name of ['objects/info', 'objects/pack', 'refs/heads/countersign', 'refs/tags', 'info'])
    await mkdir(join(own, name), { recursive: true });
  const put = (name: string, content: string | Uint8Array): Promise<void> => writeFile(join(own, name), content);
  await put('config', configText(source));
  await put('objects/info/alternates', `${source.objects.join('\n')}\n`);
  if (source.exclude !== null) await put('info/exclude', source.exclude);
  if (source.shallow !== null) await put('shallow', source.shallow);
  await put(`refs/heads/${branch}`, `${source.commit}\n`);
  await put('HEAD', `ref: refs/heads/${branch}\n`);
  const here = { gitDirectory: own, workTree: top, index: join(own, 'index'), timeoutMs: limits.worktreeMs, signal };
  await run({ ...here, args: ['read-tree', source.commit] });
  await run({ ...here, args: ['checkout-index', '--all', '--index', '--quiet'] });
};

const configText = ({ config, objectFormat }: Source): string => {
  const core = allowed.flatMap(([name, values]) => {
    const value = config.get(name);
    return value !== undefined && values.test(value) ? [`\t${name.slice('core.'.length)} = ${value}\n`] : [];
  });
  const author = ['name', 'email'].flatMap((key) => {
    const value = config.get(`user.${key}`);
    return value === undefined || /\p{Cc}/u.test(value) ? [] : [`\t${key} = ${quoted(value)}\n`];
  });
  return [
    `[core]\n\trepositoryformatversion = ${objectFormat === 'sha1' ? 0 : 1}\n\tbare = false\n\tlogallrefupdates = true\n`,
    ...core,
    ...(objectFormat === 'sha1' ? [] : ['[extensions]\n\tobjectFormat = sha256\n']),
    ...(author.length === 0 ? [] : ['[user]\n', ...author]),
  ].join('');
};

const quoted = (value: string): string => `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
