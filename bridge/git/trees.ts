/**
 * Two states of files as two trees of a git directory that the bridge owns: turns, checkpoints, worktrees. Nothing of a
 * repository is read here. The rule not to break: secret paths are in no such tree; where one is, it stays closed.
 * Called by repository.ts for the app and by checkpoints for their own plans.
 */
import type { Answer, Params } from '#protocol/methods.ts';
import type { ChangeEntry, FileDiff } from '#protocol/methods/git.ts';
import { blobSides, changesOf, diffOf, sideOf as sideOfComparison, type Comparison } from './compare.ts';
import { isSecretName } from './names.ts';
import type { RunGit, TreePair } from './contract.ts';

const comparisonOf = (run: RunGit, pair: TreePair, signal: AbortSignal): Comparison => {
  const here: Comparison['run'] = async (args, options = {}) =>
    (await run({ gitDirectory: pair.gitDirectory, workTree: null, args, ...options, signal })).stdout;
  return {
    run: here,
    compare: ['diff-tree', '-r', '--end-of-options', pair.from, pair.to],
    prefix: Buffer.alloc(0),
    side: blobSides(here),
    isSecret: isSecretName,
  };
};

/** All that differs, with lines counted. @throws Refusal git_output_too_large above `limits.gitEntries`, as git's run */
export const changesBetween = (run: RunGit, pair: TreePair, signal: AbortSignal): Promise<ChangeEntry[]> =>
  changesOf(comparisonOf(run, pair, signal));

/** @throws Refusal not_found, content_too_large, bad_request for an id that is none, as git's run */
export const diffBetween = (
  run: RunGit,
  pair: TreePair,
  asked: Pick<Params<'git.diff'>, 'id' | 'fromId' | 'context' | 'large'>,
  signal: AbortSignal,
): Promise<FileDiff> => diffOf(comparisonOf(run, pair, signal), asked);

/** @throws Refusal not_found, path_denied, content_too_large, unsupported_file_type, as git's run */
export const sideOf = (
  run: RunGit,
  pair: TreePair,
  asked: Pick<Params<'git.side'>, 'id' | 'side' | 'firstLine' | 'lines'>,
  signal: AbortSignal,
): Promise<Answer<'git.side'>> => sideOfComparison(comparisonOf(run, pair, signal), asked);
