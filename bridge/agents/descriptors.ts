/**
 * Closes what this process was started with beyond 0–2: a shell, a test runner or a supervisor may have left open
 * descriptors behind, and every child of the bridge would inherit them (L-32; measured: Node guards only the low ones).
 * Node opens all of its own with CLOEXEC, so one without it came from outside.
 * Called once by createAgents, before the first child, and by the supervisor script.
 */
import { closeSync, readdirSync, readFileSync } from 'node:fs';

const closeOnExec = 0o2000000;

const isInheritable = (fd: number): boolean => {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    return false; // closed meanwhile: the descriptor of the listing itself
  }
};

/** `keep` are descriptors above 2 that were meant for this process. Does nothing where there is no /proc. */
export const closeInherited = (keep: readonly number[]): void => {
  let open: number[];
  try {
    open = readdirSync('/proc/self/fdinfo').map(Number);
  } catch {
    return;
  }
  for (const fd of open.filter((candidate) => candidate > 2 && !keep.includes(candidate) && isInheritable(candidate))) {
    try {
      closeSync(fd);
    } catch {
      // gone already
    }
  }
};
