/**
 * Ends process trees. A group is not enough: agents put shell commands into sessions of their own, so every process
 * that carries the marker is found and ended, until two scans in a row find none. Only a process that cleaned its own
 * environment and left the group escapes this; inside bubblewrap the kernel's pid namespace takes that one too.
 * Used by process.ts, the supervisor script and the boot sweep.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '#protocol/limits.ts';
import { marked } from './procfs.ts';

/** Sends a signal to a pid, or to a group when negative. A target that is gone already is what was wanted. */
export const signal = (pid: number, name: NodeJS.Signals): boolean => {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false; // ESRCH, or EPERM for one that is no longer ours
  }
};

/**
 * KILLs the group (when given) and everything that carries the marker but `spare`. Stops all before killing any, so
 * that a process that forks faster than it is killed does not outrun the scan. Gives up after limits.terminateMs: what
 * is left then sits in an uninterruptible call and dies at its end.
 * @returns how many processes were found by their marker.
 */
export const killTree = async (tree: {
  marker: string;
  group?: number | undefined;
  spare?: readonly number[] | undefined;
}): Promise<number> => {
  if (tree.group !== undefined) signal(-tree.group, 'SIGKILL');
  const seen = new Set<number>();
  const deadline = performance.now() + limits.terminateMs;
  for (let empty = 0; empty < 2 && performance.now() < deadline;) {
    const found = marked(tree.marker).filter((pid) => tree.spare?.includes(pid) !== true);
    for (const pid of found) signal(pid, 'SIGSTOP');
    for (const pid of found) signal(pid, 'SIGKILL');
    for (const pid of found) seen.add(pid);
    empty = found.length === 0 ? empty + 1 : 0;
    await sleep(found.length === 0 ? 1 : 5);
  }
  return seen.size;
};
