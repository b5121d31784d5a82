/**
 * Who is at the other end of the control socket (L-35). Node has no SO_PEERCRED, so the client holds a file named by
 * our nonce open and names its pid; the kernel's table of that process's descriptors is the proof. Called by `attachment.ts`.
 */
import { lstatSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface Peer {
  readonly pid: number | null;
  /** Inside an agent's process tree: refused everything. */
  readonly isInside: boolean;
  /** Proven to be that process, and not inside. */
  readonly isOperator: boolean;
  /** Its standard input is a terminal. */
  readonly hasTty: boolean;
}
export interface PeerDeps {
  /** Where clients put their files; ours, 0700. */
  readonly peersDirectory: string;
  /** Whether this pid, or an ancestor, carries an agent marker. */
  readonly insideAgent: (pid: number) => boolean;
}

const holdsOpen = (pid: number, file: string): boolean => {
  try {
    const wanted = lstatSync(file, { bigint: true });
    if (!wanted.isFile() || wanted.uid !== BigInt(process.getuid?.() ?? -1)) return false;
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const held = statSync(`/proc/${pid}/fd/${fd}`, { bigint: true, throwIfNoEntry: false });
      return held !== undefined && held.dev === wanted.dev && held.ino === wanted.ino;
    });
  } catch {
    return false; // no such file or process, or not ours to look into: not proven
  }
};

/** Terminal devices by their Linux majors: 4 (tty), 5 (/dev/tty, console), 136–143 (pseudo-terminals). */
const isTerminal = (pid: number): boolean => {
  try {
    const input = statSync(`/proc/${pid}/fd/0`);
    const major = (input.rdev >> 8) & 0xfff;
    return input.isCharacterDevice() && (major === 4 || major === 5 || (major >= 136 && major <= 143));
  } catch {
    return false; // closed or unreadable: no terminal to ask at
  }
};

/** Looks once: the nonce's file is removed. A peer that proves nothing is nobody's operator. */
export const examinePeer = (pid: number | null, nonce: string, deps: PeerDeps): Peer => {
  if (pid === null || !Number.isSafeInteger(pid) || pid <= 0)
    return { pid: null, isInside: false, isOperator: false, hasTty: false };
  const file = join(deps.peersDirectory, nonce);
  const isProven = holdsOpen(pid, file);
  rmSync(file, { force: true });
  const isInside = deps.insideAgent(pid);
  return {
    pid: isProven ? pid : null,
    isInside,
    isOperator: isProven && !isInside,
    hasTty: isProven && isTerminal(pid),
  };
};
