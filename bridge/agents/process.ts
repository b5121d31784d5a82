/**
 * One held agent process: started in a session of its own with three descriptors (and the lifetime pipe of its
 * supervisor), an environment that was chosen name by name, and no shell; ended as a whole tree.
 * Used by running.ts. Knows nothing of ACP.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { Refusal } from '#protocol/errors.ts';
import type { Holding } from './containment.ts';
import { childrenOf, startTimeOf } from './procfs.ts';
import { killTree, signal } from './tree.ts';

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface HeldProcess {
  /** Of the outermost process of ours: bubblewrap or the supervisor. */
  readonly pid: number;
  readonly startTime: string;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves once the process has ended and nothing of its tree was found any more. */
  readonly gone: Promise<Exit>;
  /** Closes stdin and sends TERM to the agent. */
  terminate(): void;
  /** KILLs the tree; resolves when gone. */
  kill(): Promise<Exit>;
}

/** bubblewrap reports a death by signal as 128 + its number. */
const signalOf = (code: number | null): string | null => {
  if (code === null || code <= 128) return null;
  return Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0] ?? null;
};

/**
 * `argv[0]` is absolute; `env` holds the marker. The caller ends what it started with `kill`.
 * @throws Refusal agent_start_failed
 */
export const hold = async (
  holding: Holding,
  request: { argv: readonly string[]; cwd: string; env: Readonly<Record<string, string>>; marker: string },
): Promise<HeldProcess> => {
  const [command, ...args] = holding.wrap(request.argv, request.cwd);
  if (command === undefined) throw new Refusal('agent_start_failed');
  const child = spawn(command, args, {
    cwd: request.cwd,
    env: request.env,
    detached: true,
    stdio: holding.lifetimePipe ? ['pipe', 'pipe', 'pipe', 'pipe'] : ['pipe', 'pipe', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (cause) => reject(new Refusal('agent_start_failed', { cause })));
  });
  const { pid, stdin, stdout, stderr } = child;
  if (pid === undefined || stdin === null || stdout === null || stderr === null)
    throw new Refusal('agent_start_failed');
  const lifetime = child.stdio[3] as Writable | undefined;
  // A write to a process that has just ended is no event of its own: the exit tells it.
  stdin.on('error', () => undefined);
  lifetime?.on('error', () => undefined);

  const ended = new Promise<Exit>((resolve) => child.once('exit', (code, by) => resolve({ code, signal: by })));
  const gone = ended.then(async (exit) => {
    await killTree({ marker: request.marker, group: pid });
    if (holding.lifetimePipe) return exit;
    const by = exit.signal ?? signalOf(exit.code);
    return { code: by === null ? exit.code : null, signal: by };
  });

  return {
    pid,
    startTime: startTimeOf(pid) ?? '',
    stdin,
    stdout,
    stderr,
    gone,
    terminate: () => {
      stdin.end();
      if (lifetime !== undefined) lifetime.write('term\n');
      // bubblewrap does not pass signals on: TERM goes to the children of the namespace's first process.
      else for (const first of childrenOf(pid)) for (const agent of childrenOf(first)) signal(agent, 'SIGTERM');
    },
    kill: async () => {
      // The group holds bubblewrap or the supervisor; killing the supervisor first would leave its agent to the scan.
      if (lifetime !== undefined) await killTree({ marker: request.marker, spare: [pid] });
      await killTree({ marker: request.marker, group: pid });
      return gone;
    },
  };
};
