/**
 * What /proc says about processes: start times (a pid alone may have been given out again), the marker that every
 * process of an agent inherits, parents. Read only; answers null or nothing where there is no /proc or no permission.
 * Used by the tree killer, the supervisor script, the boot sweep and the operator check of the control socket (L-35).
 */
import { readdirSync, readFileSync } from 'node:fs';

/** The variable every agent process is started with; its value is unique to one start. */
export const markerName = 'COUNTERSIGN_RUN';
/** The same for the operator's terminals: found by the sweep, but never taken for an agent's. */
export const terminalMarkerName = 'COUNTERSIGN_TERMINAL';

const read = (pid: number, file: string): string | null => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return null; // ended, or not ours to read: both mean "nothing known"
  }
};

/** Fields of /proc/<pid>/stat after the name, which may itself hold spaces and brackets; index 0 is field 3. */
const statFields = (pid: number): string[] | null => {
  const stat = read(pid, 'stat');
  return stat === null ? null : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
};

/** Clock ticks since boot (field 22 of stat) as text, or null when there is no such process. */
export const startTimeOf = (pid: number): string | null => statFields(pid)?.[19] ?? null;

/** Parent's pid, or null. */
export const parentOf = (pid: number): number | null => {
  const parent = Number(statFields(pid)?.[1]);
  return Number.isSafeInteger(parent) ? parent : null;
};

const variableOf = (pid: number, name: string): string | null => {
  const prefix = `${name}=`;
  const entry = read(pid, 'environ')
    ?.split('\0')
    .find((part) => part.startsWith(prefix));
  return entry === undefined ? null : entry.slice(prefix.length);
};

/** The marker of an agent this process carries in its environment, or null. */
export const markerOf = (pid: number): string | null => variableOf(pid, markerName);

export const pids = (): number[] => {
  try {
    return readdirSync('/proc')
      .filter((name) => /^[0-9]+$/.test(name))
      .map(Number);
  } catch {
    return []; // no /proc here: containment is best effort and says so
  }
};

/** Every process but this one that carries the marker. A zombie has no environment left and is not found. */
export const marked = (marker: string): number[] =>
  pids().filter(
    (pid) => pid !== process.pid && [markerName, terminalMarkerName].some((name) => variableOf(pid, name) === marker),
  );

export const childrenOf = (pid: number): number[] => pids().filter((candidate) => parentOf(candidate) === pid);
