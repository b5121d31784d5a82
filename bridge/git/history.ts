/** Commits: one, its first parent, a page of them (F-22). Names and messages are text of strangers, bounded here and made inert where they are drawn. Called by repository.ts. */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { CommitInfo } from '#protocol/methods/git.ts';
import type { Comparison } from './compare.ts';
import { Fields } from './raw.ts';

type Run = Comparison['run'];

const emptyTrees = {
  sha1: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  sha256: '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321',
} as const;
/** What everything is an addition to. */
export const emptyTree = (format: 'sha1' | 'sha256'): string => emptyTrees[format];

/** The first parent, null for a first commit. @throws Refusal not_found where it is no commit of this repository */
export const parentOf = async (run: Run, commit: string): Promise<string | null> => {
  const output = await run(['cat-file', '--batch-check'], { input: Buffer.from(`${commit}\n${commit}^1\n`) });
  const [itself = '', parent = ''] = output.toString('latin1').split('\n');
  if (!itself.startsWith(`${commit} commit `)) throw new Refusal('not_found');
  return /^([0-9a-f]+) commit /.exec(parent)?.[1] ?? null;
};

const format = '--format=%H%x00%P%x00%an%x00%at%x00%s%x00%B';
const fixed = ['log', '-z', '--encoding=UTF-8', '--no-show-signature', '--no-color', '--no-notes', '--no-patch'];

const commits = async (run: Run, args: readonly string[]): Promise<{ info: CommitInfo; message: string }[]> => {
  const fields = new Fields(await run([...fixed, format, ...args]));
  const found: { info: CommitInfo; message: string }[] = [];
  const text = (units: number): string => fields.next().toString('utf8').slice(0, units).toWellFormed();
  while (!fields.ended) {
    const commit = text(64);
    const parents = fields.next().toString('latin1').split(' ').slice(0, 100);
    const author = text(500);
    const seconds = Number(text(20));
    const at = Number.isSafeInteger(seconds * 1000) ? Math.max(0, seconds * 1000) : 0;
    const info = { commit, parents: parents.filter((oid) => oid !== ''), author, at, subject: text(1000) };
    found.push({ info, message: text(64 * 1024) });
  }
  return found;
};

export const commitOf = async (run: Run, commit: string): Promise<{ info: CommitInfo; message: string }> => {
  const [found] = await commits(run, ['--max-count=1', '--end-of-options', commit, '--']);
  if (found === undefined) throw new Refusal('not_found');
  return found;
};

/** `path` as git has it, relative to the top; '' for all. */
export const logOf = async (
  run: Run,
  commit: string,
  page: { path: string; skip: number; limit: number },
): Promise<{ commits: CommitInfo[]; more: boolean }> => {
  const { path, skip } = page;
  const limit = Math.min(page.limit, limits.gitCommits);
  const range = [`--skip=${skip}`, `--max-count=${limit + 1}`, '--end-of-options', commit, '--'];
  const found = await commits(run, [...range, ...(path === '' ? [] : [path])]);
  return { commits: found.slice(0, limit).map(({ info }) => info), more: found.length > limit };
};
