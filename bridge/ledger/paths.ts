/**
 * Where the bridge keeps things (L-20): the state by XDG or `--state`, the runtime files beside the user's session.
 * Every directory is ours alone (owner, 0700, not a link) before anything is put in it. Used by main and the CLI.
 */
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';

export interface Directories {
  /** realpath of the state directory. */
  readonly state: string;
  /** Database, keys, blobs; hidden from contained agents. */
  readonly private: string;
  readonly practice: string;
  readonly blobs: string;
  readonly runtime: string;
  readonly controlSocket: string;
  readonly peers: string;
  readonly leases: string;
  /** Locked by the one bridge of this state (lock.ts). */
  readonly stateLock: string;
}
type Environment = Readonly<Record<string, string | undefined>>;

const refused = (message: string, cause?: unknown): Refusal => new Refusal('storage_refused', { message, cause });

/** Makes the directory 0700 where it is missing and checks it where it is not. @throws Refusal storage_refused */
const privateDirectory = (path: string): string => {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason';
    throw refused(
      `${path} could not be made (${reason}). Make it yourself, or name another state directory with --state.`,
      error,
    );
  }
  const facts = lstatSync(path);
  if (!facts.isDirectory())
    throw refused(`${path} must be a directory, not a link or a file. Move it away and start again.`);
  if (process.getuid !== undefined && facts.uid !== process.getuid()) {
    throw refused(`${path} belongs to another user. Name a state directory of your own with --state.`);
  }
  if ((facts.mode & 0o077) !== 0) throw refused(`${path} can be used by others. Run: chmod 700 '${path}'`);
  return path;
};

/** XDG asks for an absolute path; anything else is as if it were not set. */
const absolute = (path: string | undefined): string | null => (path !== undefined && isAbsolute(path) ? path : null);

const statePath = (option: string | undefined, env: Environment): string => {
  if (option !== undefined) return resolve(option);
  return join(absolute(env['XDG_STATE_HOME']) ?? join(homedir(), '.local', 'state'), 'countersign');
};

/** The session's directory when there is one of ours, else one of our own name under /tmp, whose owner is checked. */
const runtimePath = (env: Environment): string => {
  const session = absolute(env['XDG_RUNTIME_DIR']);
  const facts = session === null ? undefined : statSync(session, { throwIfNoEntry: false });
  if (session !== null && facts?.isDirectory() === true && facts.uid === process.getuid?.())
    return join(session, 'countersign');
  return `/tmp/countersign-${process.getuid?.() ?? 'user'}`;
};

/**
 * The directories of a state, made and checked. Two bridges on one state find the same socket and lock.
 * @param option the value of `--state`, relative to the working directory
 * @throws Refusal storage_refused, in words that say how to mend it
 */
export const stateDirectories = (option?: string, env: Environment = process.env): Directories => {
  const state = realpathSync(privateDirectory(statePath(option, env)));
  const secret = privateDirectory(join(state, 'private'));
  const runtime = privateDirectory(runtimePath(env));
  const short = createHash('sha256').update(state).digest('hex').slice(0, 16);
  const controlSocket = join(runtime, `${short}.sock`);
  if (Buffer.byteLength(controlSocket) > limits.socketPathBytes) {
    throw refused(
      `${runtime} is too long a path for a socket. Set XDG_RUNTIME_DIR to a shorter directory of your own.`,
    );
  }
  return {
    state,
    private: secret,
    practice: privateDirectory(join(state, 'practice')),
    blobs: privateDirectory(join(secret, 'blobs')),
    runtime,
    controlSocket,
    peers: privateDirectory(join(runtime, 'peers')),
    leases: privateDirectory(join(runtime, 'leases')),
    stateLock: join(secret, 'lock'),
  };
};

/** The lease of a workspace: by what the directory is, not by what it is called. */
export const leasePath = (leases: string, directory: { dev: string; ino: string }): string =>
  join(leases, createHash('sha256').update(`${directory.dev}:${directory.ino}`).digest('hex'));
