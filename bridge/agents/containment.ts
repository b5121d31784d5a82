/**
 * Chooses how an agent is held (L-30). bubblewrap, where it works: a pid namespace that the kernel ends with the bridge
 * (`--die-with-parent`), and the bridge's private directories covered by empty ones. Otherwise a supervisor process
 * with a lifetime pipe and a scan for the marker, best effort.
 * bubblewrap is started directly, without a supervisor in between: measured on 2 cores 4 ms and 1 MiB against 40 ms
 * and 48 MiB for a Node process, and SIGKILL of the bridge left nobody alive in either, so the kernel is the
 * supervisor. Whatever slips between is taken by the sweep at the next start.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Containment } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';

export interface Holding {
  readonly kind: Containment;
  /** One sentence for the chip. */
  readonly why: string;
  /** Whether a lifetime pipe on descriptor 3 belongs to it. */
  readonly lifetimePipe: boolean;
  /** The argv that runs `argv` held. */
  wrap(argv: readonly string[], cwd: string): string[];
}

// Root keeps its capabilities inside, and with these it could take the covers off or look into the bridge.
const rootCapabilities = [
  'CAP_SYS_ADMIN',
  'CAP_SYS_PTRACE',
  'CAP_SYS_MODULE',
  'CAP_SYS_RAWIO',
  'CAP_DAC_READ_SEARCH',
  'CAP_MKNOD',
];

const bubblewrapArgs = (hidden: readonly string[]): string[] => [
  '--die-with-parent',
  '--unshare-pid',
  ...(process.getuid?.() === 0 ? rootCapabilities.flatMap((capability) => ['--cap-drop', capability]) : []),
  '--dev-bind',
  '/',
  '/',
  '--proc',
  '/proc',
  ...hidden.flatMap((directory) => ['--tmpfs', directory]),
];

/** A real start, with all that will be asked of it: kernels and containers refuse different parts of it. */
const works = (bubblewrap: string, hidden: readonly string[]): boolean => {
  const argv = [...bubblewrapArgs(hidden), '--', bubblewrap, '--version'];
  return spawnSync(bubblewrap, argv, { stdio: 'ignore', env: {}, timeout: limits.probeMs }).status === 0;
};

export const bestEffort = (nodePath: string, why: string): Holding => ({
  kind: 'best_effort',
  why,
  lifetimePipe: true,
  wrap: (argv) => [nodePath, fileURLToPath(new URL('supervisor.ts', import.meta.url)), ...argv],
});

/** Chosen when first asked for, and then the same: finding out runs a program, which no start of the bridge waits for. */
export const holdingWhenAsked = (...given: Parameters<typeof chooseHolding>): (() => Holding) => {
  let chosen: Holding | null = null;
  return () => (chosen ??= chooseHolding(...given));
};

/**
 * Runs bubblewrap once to see. `hidden` are absolute directories that exist and belong to the bridge; `bubblewrap` is
 * its absolute path or null.
 */
export const chooseHolding = (bubblewrap: string | null, hidden: readonly string[], nodePath: string): Holding => {
  if (bubblewrap === null)
    return bestEffort(
      nodePath,
      'Not contained: bubblewrap is not installed, so a process that hides from the bridge could outlive it or approve for itself.',
    );
  if (!works(bubblewrap, hidden))
    return bestEffort(
      nodePath,
      'Not contained: bubblewrap does not work here, so a process that hides from the bridge could outlive it or approve for itself.',
    );
  return {
    kind: 'bubblewrap',
    why: 'Held by bubblewrap: ends with the bridge, and cannot see its keys, database or control socket.',
    lifetimePipe: false,
    wrap: (argv, cwd) => [bubblewrap, ...bubblewrapArgs(hidden), '--chdir', cwd, '--', ...argv],
  };
};
