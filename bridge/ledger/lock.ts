/**
 * A lock as an open exclusive transaction on a small SQLite file: the kernel frees it with its process, also by kill -9.
 * Who holds it stands in a file beside it, for the words of the refusal only; the lock itself is the truth.
 * Used for the state (one bridge) and for workspaces (leases).
 */
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

export interface LockHolder {
  readonly pid: number;
  readonly startTime: string;
  readonly what: string;
}
export type Lock =
  { readonly held: true; release(): void } | { readonly held: false; readonly holder: LockHolder | null };

/** Tells a process from a later one of the same pid: ticks since boot where the kernel says so, else the time it started. */
const startTimeOf = (pid: number): string => {
  try {
    // The name, which may hold anything, stands in brackets; start time is the 22nd field of the line.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, '').trim().split(' ')[19] ?? '';
  } catch {
    // No /proc here. Only our own start is known then.
    return pid === process.pid ? new Date(Date.now() - process.uptime() * 1000).toISOString() : '';
  }
};

const readHolder = (path: string): LockHolder | null => {
  try {
    const { pid, startTime, what } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Record<string, unknown>>;
    const isHolder = Number.isSafeInteger(pid) && typeof startTime === 'string' && typeof what === 'string';
    return isHolder ? { pid: Number(pid), startTime, what } : null;
  } catch {
    // Locked, but not yet or no longer described: held all the same.
    return null;
  }
};

/** Takes the lock or says who has it (null when that cannot be read). Never waits. @throws where the file cannot be made */
export const acquireLock = (path: string, about: { pid: number; what: string }): Lock => {
  const described = `${path}.holder`;
  // Only a file that is not there is opened: closing a second descriptor of one that this process has locked would free it.
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (error) {
    db.close();
    if ((error as { errcode?: number }).errcode === 5) return { held: false, holder: readHolder(described) };
    throw error;
  }
  const holder: LockHolder = { pid: about.pid, startTime: startTimeOf(about.pid), what: about.what };
  const temporary = `${described}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify(holder), { mode: 0o600 });
  renameSync(temporary, described);
  let isHeld = true;
  return {
    held: true,
    release: () => {
      if (!isHeld) return;
      isHeld = false;
      rmSync(described, { force: true });
      db.close();
    },
  };
};
