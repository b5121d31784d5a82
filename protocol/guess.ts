/**
 * Signatures checked beside the rest of a verification, in other threads: each is first taken for good. The rule not to
 * break: what was found so holds only once `settle` resolved, and a wrong guess means everything is checked again, one
 * by one, so that the answer is that of the checks in order. Used by `bridge verify` and by the app's worker.
 */
import { limits } from './limits.ts';
import type { VerifyPlatform } from './verify.ts';

/** A question to `VerifyPlatform.verify`. */
export type Signed = Parameters<VerifyPlatform['verify']>;
/** Whether all of them hold. */
export type Signatures = (asked: readonly Signed[]) => Promise<boolean>;

export const inThisThread =
  (platform: VerifyPlatform): Signatures =>
  async (asked) => {
    for (const each of asked) if (!(await platform.verify(...each))) return false;
    return true;
  };

/** A signature that was taken for good is not. */
export class WrongGuess extends Error {
  override readonly name = 'WrongGuess';
}

/**
 * A platform that takes every signature for good while `hold` checks it beside the rest, at most `verifyWindow` at once.
 * What was found with it holds only when `settle` resolves; a single signature that does not hold makes `verify` and
 * `settle` throw WrongGuess, and everything must be checked again with `platform` itself.
 */
export const guessing = (platform: VerifyPlatform, hold: Signatures): VerifyPlatform & { settle(): Promise<void> } => {
  let batch: Signed[] = [];
  let running = 0;
  let failure: unknown = null;
  let waiting: { readonly most: number; readonly go: () => void } | null = null;
  const stopIfWrong = (): void => {
    if (failure !== null) throw failure;
  };
  const check = async (asked: readonly Signed[]): Promise<void> => {
    try {
      if (!(await hold(asked))) failure ??= new WrongGuess('a signature does not hold');
    } catch (error) {
      failure ??= error;
    }
    running -= asked.length;
    if (waiting === null || running > waiting.most) return;
    waiting.go();
    waiting = null;
  };
  const flush = (): void => {
    const asked = batch;
    batch = [];
    running += asked.length;
    if (asked.length > 0) void check(asked);
  };
  const atMost = (most: number): Promise<void> =>
    running <= most ? Promise.resolve() : new Promise((go) => (waiting = { most, go }));
  return {
    ...platform,
    verify: (...asked) => {
      stopIfWrong();
      batch.push(asked);
      if (batch.length < limits.verifyBatch) return true;
      flush();
      return running < limits.verifyWindow ? true : atMost(limits.verifyWindow / 2).then(() => true);
    },
    settle: async () => {
      flush();
      await atMost(0);
      stopIfWrong();
    },
  };
};

/** What `run` finds with the platform: quickly where every signature holds, else in order. */
export const guessed = async <T>(
  platform: VerifyPlatform,
  hold: Signatures,
  run: (by: VerifyPlatform, isGuess: boolean) => Promise<T>,
): Promise<T> => {
  const quick = guessing(platform, hold);
  try {
    const found = await run(quick, true);
    await quick.settle();
    return found;
  } catch (error) {
    if (error instanceof WrongGuess) return run(platform, false);
    throw error;
  }
};
