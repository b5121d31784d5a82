/** A stand-in for the clock: timers as long as a card waits (`limits.approvalMs`) ring after six seconds. Loaded by `--import`. */
import { limits } from '../../protocol/limits.ts';

const real = globalThis.setTimeout;
const hurried = ((run: () => void, afterMs?: number, ...rest: []) =>
  real(run, afterMs === limits.approvalMs ? 6000 : afterMs, ...rest)) as typeof setTimeout;
globalThis.setTimeout = Object.assign(hurried, real);
