/**
 * A bridge that has started comes to rest: what it compiled is kept for the next start, and the memory that only the
 * start needed goes back, once, in a moment when nobody is connected (it takes up to a tenth of a second). Used by start.ts.
 */
import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';

/** By then nobody waits for the first screen. */
const settleMs = 1500;
const laterMs = 60_000;

const giveBack = async (): Promise<void> => {
  const { runInNewContext } = await import('node:vm');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (how: { type: 'major'; flavor: 'last-resort' }) => void;
  // The flags are part of what marks compiled code as usable: as they were, before any more of it is kept.
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', flavor: 'last-resort' });
};

/** Never holds the process. */
export const comeToRest = (isQuiet: () => boolean): void => {
  const rest = (): void => {
    if (isQuiet()) void giveBack();
    else setTimeout(rest, laterMs).unref();
  };
  setTimeout(() => {
    // Now, so that the next start is quick also when this one is killed.
    flushCompileCache();
    rest();
  }, settleMs).unref();
};
