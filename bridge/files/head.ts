/**
 * The commit a repository is at, read by the walker from `.git` without running git (F-20). Pure reading: HEAD, then a
 * loose reference, then packed-refs. Null for anything unusual: worktrees elsewhere, reftable, an unborn branch.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { parsePath, type Beneath } from './beneath.ts';
import { readWhole } from './read.ts';

const commitPattern = /^([0-9a-f]{40}|[0-9a-f]{64})$/;

export const gitHead = (beneath: Beneath): string | null => {
  const head = gitText(beneath, 'HEAD')?.trim() ?? '';
  if (commitPattern.test(head)) return head;
  const name = /^ref: (refs\/[^\s]+)$/.exec(head)?.[1];
  if (name === undefined) return null;
  const loose = gitText(beneath, name)?.trim() ?? packed(gitText(beneath, 'packed-refs') ?? '', name);
  return commitPattern.test(loose) ? loose : null;
};

const packed = (text: string, name: string): string =>
  text
    .split('\n')
    .find((line) => line.endsWith(` ${name}`))
    ?.split(' ')[0] ?? '';

const gitText = (beneath: Beneath, path: string): string | null => {
  try {
    return beneath
      .leaf(parsePath(`.git/${path}`), (leaf) => readWhole(leaf, limits.readBytes))
      .bytes.toString('latin1');
  } catch (error) {
    if (error instanceof Refusal && error.code !== 'workspace_unavailable') return null;
    throw error;
  }
};
