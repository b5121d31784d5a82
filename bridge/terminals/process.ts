/**
 * A host process as the bridge holds it: started with three descriptors, next to no environment and a session of its
 * own, ended with everything under it. Used by `terminal.ts`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { limits } from '#protocol/limits.ts';
import { startTimeOf, terminalMarkerName } from '../agents/procfs.ts';
import { killTree } from '../agents/tree.ts';
import { encode, encodeJson, FrameReader, kinds } from './frames.ts';
import { exitOf, type Exit } from './said.ts';

export interface HostProcess {
  readonly pid: number;
  readonly startTime: string;
  readonly marker: string;
  /** Resolves once the host and everything under it is gone; null when the host fell without a word of its shell. */
  readonly gone: Promise<Exit | null>;
  send(kind: number, body?: Uint8Array): void;
  sendJson(kind: number, message: object): void;
  /** Hangs up, then KILLs the tree; resolves when gone, within two seconds. */
  end(): Promise<void>;
}

/** @throws the system's error when it cannot be started */
export const startHost = async (options: {
  nodePath: string;
  marker: string;
  received: (kind: number, body: Buffer) => void;
}): Promise<HostProcess> => {
  const { nodePath, marker } = options;
  const program = fileURLToPath(new URL('host.ts', import.meta.url));
  const cache = getCompileCacheDir();
  const child = spawn(nodePath, [`--max-old-space-size=${limits.terminalHeapMiB}`, program], {
    cwd: '/',
    env: { [terminalMarkerName]: marker, ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) }) },
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  await once(child, 'spawn');
  const { pid, stdin, stdout } = child;
  if (pid === undefined) throw new Error('a process without a number');
  let exit: Exit | null = null;
  const reader = new FrameReader((kind, body) => {
    if (kind === kinds.exit) exit = exitOf(body);
    else options.received(kind, body);
  });
  const kill = async (): Promise<void> => void (await killTree({ marker, group: pid }));
  // A host that does not speak as ours does is one that was taken over.
  stdout.on('data', (chunk: Buffer) => {
    try {
      reader.push(chunk);
    } catch {
      stdout.removeAllListeners('data').resume();
      void kill();
    }
  });
  stdout.on('error', () => undefined); // 'close' follows
  stdin.on('error', () => undefined); // the exit tells it
  const gone = once(child, 'close').then(async (): Promise<Exit | null> => {
    if (exit === null) await kill();
    return exit;
  });
  return {
    pid,
    startTime: startTimeOf(pid) ?? '',
    marker,
    gone,
    send: (kind, body) => void stdin.write(encode(kind, body)),
    sendJson: (kind, message) => void stdin.write(encodeJson(kind, message)),
    end: async () => {
      stdin.end();
      const late = setTimeout(() => void kill(), limits.terminalHangupMs * 3);
      await gone;
      clearTimeout(late);
    },
  };
};
