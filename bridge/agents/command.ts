/**
 * Runs one command for an agent (P-04) under the same containment as agents themselves, without a shell, output and
 * errors in one stream. The decision that it may run was made before this is called. Handed to conversations by
 * the composition.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Holding } from './containment.ts';
import { onPath } from './find.ts';
import { hold, type Exit } from './process.ts';
import { markerName } from './procfs.ts';

export interface CommandParts {
  readonly holding: () => Holding;
  /** A marker no other process carries. */
  readonly marker: () => string;
  /** What the boot sweep must know, durable before the command is awaited; undone when it is gone. */
  readonly record: (row: { pid: number; startTime: string; marker: string }) => Promise<unknown>;
  readonly forget: (marker: string) => Promise<unknown>;
}

export interface CommandRequest {
  readonly argv: readonly string[];
  /** Absolute, existing. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly output: (chunk: Uint8Array) => void;
}

/** @throws Refusal not_found for a program that is not on PATH, agent_start_failed */
export const commandRunner = (parts: CommandParts) => async (request: CommandRequest) => {
  const [name = '', ...args] = request.argv;
  const program = onPath(name, request.env['PATH'] ?? '');
  if (program === null)
    throw new Refusal('not_found', { message: `There is no program "${name.slice(0, 200)}" on this machine.` });
  const marker = parts.marker();
  const held = await hold(parts.holding(), {
    argv: [program, ...args],
    cwd: request.cwd,
    env: { ...request.env, [markerName]: marker },
    marker,
  });
  held.stdin.end();
  // Both streams must have ended before the exit is told, or the last output would come after it.
  const drained = [held.stdout, held.stderr].map(
    (stream) =>
      new Promise<void>((resolve) => {
        stream.on('data', (chunk: Uint8Array) => request.output(chunk));
        stream.once('close', () => resolve());
      }),
  );
  await parts.record({ pid: held.pid, startTime: held.startTime, marker });
  const exit: Promise<Exit> = held.gone.then(async (ended) => {
    await Promise.all(drained);
    await parts.forget(marker);
    return ended;
  });
  return {
    pid: held.pid,
    exit,
    kill: async (): Promise<void> => {
      held.terminate();
      const patience = setTimeout(() => void held.kill(), limits.terminateMs);
      await exit;
      clearTimeout(patience);
    },
  };
};
