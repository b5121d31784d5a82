/** Who holds a TCP port on loopback, by the kernel's tables (L-01, T02). Linux; elsewhere nothing is known. Called by `gate.ts`. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface Holder {
  readonly pid: number | null;
  readonly program: string | null;
  readonly uid: number | null;
}

/** The port is taken. No other port is tried: the origin would silently become another one. */
export class PortTaken extends Error {
  readonly port: number;
  readonly holder: Holder;

  constructor(port: number, holder: Holder) {
    const who =
      holder.pid === null
        ? holder.uid === null
          ? 'another program'
          : `a program of user ${holder.uid}`
        : `${holder.program ?? 'a program'} (pid ${holder.pid})`;
    super(`Port ${port} on 127.0.0.1 is held by ${who}. Stop it, or choose another port with --port.`);
    this.name = 'PortTaken';
    this.port = port;
    this.holder = holder;
  }
}

const readOr = <T>(read: () => T, otherwise: T): T => {
  try {
    return read();
  } catch {
    return otherwise; // gone meanwhile, another user's, or not Linux
  }
};

const listening = '0A';
/** Inode and uid of the listener, from one of the kernel's tables. */
const listenerIn = (table: string, port: number): { inode: string; uid: number } | null => {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  for (const line of readOr(() => readFileSync(table, 'utf8'), '').split('\n')) {
    const fields = line.trim().split(/\s+/);
    if (fields[1]?.endsWith(suffix) === true && fields[3] === listening)
      return { inode: fields[9] ?? '', uid: Number(fields[7]) };
  }
  return null;
};

/** Best effort: the names of what could be seen, null for what could not. The program's name is made printable. */
export const holderOf = (port: number): Holder => {
  const listener = listenerIn('/proc/net/tcp', port) ?? listenerIn('/proc/net/tcp6', port);
  if (listener === null) return { pid: null, program: null, uid: null };
  const wanted = `socket:[${listener.inode}]`;
  for (const pid of readOr(() => readdirSync('/proc'), []).filter((name) => /^\d+$/.test(name))) {
    const isHeld = readOr(() => readdirSync(`/proc/${pid}/fd`), []).some(
      (fd) => readOr(() => readlinkSync(`/proc/${pid}/fd/${fd}`), '') === wanted,
    );
    if (!isHeld) continue;
    const program = readOr(() => readFileSync(`/proc/${pid}/comm`, 'utf8'), '').replace(/[^\x20-\x7e]/g, '');
    return { pid: Number(pid), program: program === '' ? null : program, uid: listener.uid };
  }
  return { pid: null, program: null, uid: listener.uid };
};
