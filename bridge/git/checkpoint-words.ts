/**
 * How checkpoints speak: why there is none, what moved, what a restore did and where it stopped. The rule not to break: a
 * name out of the folder is made inert first, since these sentences are read in terminals, too. Used by checkpoints.ts.
 */
import { Refusal, type ErrorCode } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Plan } from './checkpoint-plan.ts';
import type { Done } from './checkpoint-restore.ts';
import { nameOf } from './names.ts';

export const plural = (count: number): string => (count === 1 ? '1 file' : `${count} files`);
/** The first of them, inert: names are hostile, and this is read in terminals, too. */
export const naming = (paths: readonly string[]): string => {
  const named = paths.slice(0, 3).map((path) => nameOf(Buffer.from(path), Buffer.alloc(0)).slice(0, 100));
  return named.join(', ') + (paths.length > named.length ? ` and ${paths.length - named.length} more` : '');
};

/** Why nothing was recorded, for people. */
export const absence = (refusal: Refusal): string => {
  if (refusal.code === 'checkpoint_too_large') {
    const megabytes = limits.checkpointBytes / 1024 / 1024;
    return `This folder has more than ${limits.checkpointFiles} files or ${megabytes} MiB, so its files are not recorded before each turn and cannot be put back.`;
  }
  if (refusal.code === 'cancelled' || refusal.code === 'git_timeout') {
    return `Recording the files took longer than ${limits.checkpointMs / 1000} seconds, so this turn has no checkpoint.`;
  }
  return `The files were not recorded: ${refusal.message}`;
};

/** Kept as they are; anything else a file refuses with means that it is not what was shown. */
const ownCodes = /^(workspace_|git_|path_denied|symlink_refused|checkpoint_|cancelled|internal_error)/;
const codeOf = (code: ErrorCode): ErrorCode => (ownCodes.test(code) ? code : 'worktree_moved');

/** Which files are not as they were shown. */
export const moved = (shown: Plan | undefined, now: Plan): Refusal => {
  if (shown === undefined) return new Refusal('digest_mismatch');
  const text = (plan: Plan): Map<string, string> =>
    new Map(plan.steps.map((step) => [step.path, JSON.stringify([step.from, step.to])]));
  const [before, after] = [text(shown), text(now)];
  const paths = [...new Set([...before.keys(), ...after.keys()])].filter(
    (path) => before.get(path) !== after.get(path),
  );
  return new Refusal('worktree_moved', {
    message: `Changed since this was shown: ${naming(paths)}. Nothing was written; look again.`,
    details: { paths: paths.slice(0, 100).join('\n'), count: paths.length },
  });
};

export const sentenceOf = ({ stopped, at, written, removed }: Done, begins: string): string => {
  const left = [...written, ...removed];
  const rest = left.length === 0 ? 'Nothing was changed.' : `Put back and not undone: ${naming(left)}.`;
  return `${begins} at ${at ?? 'the store'}: ${stopped?.message ?? ''} ${rest}`.slice(0, 500);
};
export const stoppedAt = (done: Done): Refusal =>
  new Refusal(codeOf(done.stopped?.code ?? 'internal_error'), {
    message: sentenceOf(done, 'Stopped'),
    details: { at: done.at, done: done.written.length + done.removed.length },
    cause: done.stopped,
  });
