/**
 * What `bridge start` does before the rooms are loaded, which is most of a start: the state's lock, the ledger's file,
 * the verified app, the listener. Imports little, on purpose; nothing here may import a schema. Used by start.ts.
 */
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { limits } from '#protocol/limits.ts';
import { openPorch, type Porch } from '../gate/porch.ts';
import { ledgerPath, openWriter, type Opened } from '../ledger/file.ts';
import { acquireLock } from '../ledger/lock.ts';
import type { Directories } from '../ledger/paths.ts';
import { Statements } from '../ledger/statements.ts';
import { CliError } from './args.ts';
import { createLog, type Log } from './log.ts';

export const assetsDirectory = fileURLToPath(new URL('../../build', import.meta.url));
/** Names in `meta`: the port used last, the secret segment of the app's path. */
export const portMeta = 'port';
const segmentMeta = 'segment';

export type HeldLock = Extract<ReturnType<typeof acquireLock>, { held: true }>;

/** @throws CliError that names who holds it */
export const lockState = (directories: Directories, what: string): HeldLock => {
  const lock = acquireLock(directories.stateLock, { pid: process.pid, what });
  if (lock.held) return lock;
  const who = lock.holder === null ? 'another process' : `pid ${lock.holder.pid} (${lock.holder.what})`;
  throw new CliError(
    `This state is in use by ${who}. Use that bridge, stop it with "bridge stop", or name another --state.`,
  );
};

export interface Early {
  readonly lock: HeldLock;
  readonly log: Log;
  readonly file: Opened;
  readonly port: number;
  /** Rejects as `openPorch` does; whoever composes the rooms judges that. */
  readonly porch: Promise<Porch>;
}

/** `port` null: the one used before, else the default. */
export const openEarly = (directories: Directories, port: number | null): Early => {
  const lock = lockState(directories, 'bridge start');
  const log = createLog();
  const file = openWriter(ledgerPath(directories.private));
  const sql = new Statements(file.db);
  const kept = (name: string): string | null =>
    sql.get<{ value: string }>('SELECT value FROM meta WHERE name = ?', name)?.value ?? null;
  const wanted = port ?? Number(kept(portMeta) ?? limits.defaultPort);
  const porch = openPorch({ port: wanted, assetsDirectory, log, segment: kept(segmentMeta) });
  porch.catch(() => undefined); // heard by the gate, when the rooms are there
  return { lock, log, file, port: wanted, porch };
};

/** Ends what was opened when the rest of the start failed. */
export const closePorch = async (porch: Promise<Porch>): Promise<void> => {
  const opened = await porch.catch(() => null);
  opened?.listener.server.close();
  opened?.listener.connections.destroyAll();
};

/** Linking a room holds up the whole process; between two of them, what came to the listener is answered. */
export const loadRooms = async (porch: Promise<Porch>) => {
  await porch.catch(() => null); // the gate says what was wrong with it
  await setImmediate();
  for (const load of [
    () => import('#protocol/schema.ts'),
    () => import('#protocol/methods.ts'),
    () => import('../approvals/desk.ts'),
    () => import('../conversations/registry.ts'),
  ]) {
    await load();
    await setImmediate();
  }
  const { compose } = await import('./parts.ts');
  await setImmediate();
  const { openGate } = await import('./listen.ts');
  return { compose, openGate };
};
