/** Real repositories made by the git of this machine, and the room that reads them. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { accessSync } from 'node:fs';
import { afterEach } from 'vitest';
import { Refusal, type ErrorCode } from '#protocol/errors.ts';
import type { ChangeEntry, ChangeSource, FileDiff } from '#protocol/methods/git.ts';
import { openRoot } from '../../bridge/files/root.ts';
import type { Root } from '../../bridge/files/contract.ts';
import type { Git, PairOf, RunGit } from '../../bridge/git/contract.ts';
import { createGit } from '../../bridge/git/repository.ts';
import { makeRunGit } from '../../bridge/git/spawn.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});
export const atEnd = (cleanup: () => void): void => {
  cleanups.push(cleanup);
};

export const makeFolder = (): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'countersign-git-')));
  atEnd(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
};

const isThere = (path: string): boolean => {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
};
export const program =
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, 'git'))
    .find(isThere) ?? null;

export const fill = (folder: string, files: Readonly<Record<string, string | Uint8Array>>): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
};

/** Plain git as a person has it, without this machine's settings. */
export const plainEnv = (home: string): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  HOME: home,
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.org',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.org',
  GIT_ALLOW_PROTOCOL: 'file:git:ssh',
});

export interface Repository {
  readonly path: string;
  /** Above it, for what lies outside. */
  readonly base: string;
  git(...args: readonly string[]): string;
  write(files: Readonly<Record<string, string | Uint8Array>>): void;
  commit(message: string, files?: Readonly<Record<string, string | Uint8Array>>): string;
}

export const repositoryAt = (path: string, base: string): Repository => {
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: path, env: plainEnv(base), stdio: ['ignore', 'pipe', 'pipe'] }).toString('utf8');
  const write = (files: Readonly<Record<string, string | Uint8Array>>): void => {
    fill(path, files);
  };
  return {
    path,
    base,
    git,
    write,
    commit: (message, files = {}) => {
      write(files);
      git('add', '-A');
      git('commit', '-q', '--allow-empty', '-m', message);
      return git('rev-parse', 'HEAD').trim();
    },
  };
};

export const makeRepository = (...options: readonly string[]): Repository => {
  const base = makeFolder();
  const path = join(base, 'work');
  mkdirSync(path);
  const repository = repositoryAt(path, base);
  repository.git('init', '-q', '--initial-branch=main', ...options);
  return repository;
};

export interface Room {
  readonly git: Git;
  readonly root: Root;
  readonly run: RunGit;
  status(): ReturnType<Git['status']>;
  changes(of: ChangeSource): Promise<ChangeEntry[]>;
  diff(of: ChangeSource, id: string, more?: { fromId?: string; large?: boolean; context?: number }): Promise<FileDiff>;
  side(
    of: ChangeSource,
    id: string,
    side: 'old' | 'new',
    more?: { firstLine?: number; lines?: number },
  ): ReturnType<Git['side']>;
}

export const signal = new AbortController().signal;
export const idOf = (path: string | Buffer): string => Buffer.from(path).toString('base64url');
const workspaceId = '0198b6d0-0000-7000-8000-000000000001';

/** `seen` is told of every run of git. */
export const openRoom = (
  path: string,
  options: {
    seen?: (args: readonly string[], index: string | undefined) => void;
    pairOf?: PairOf;
    privateDirectories?: readonly string[];
  } = {},
): Room => {
  const base = makeFolder();
  const privateDirectories = options.privateDirectories ?? [];
  const root = openRoot({ workspaceId, path, privateDirectories, home: base });
  const real = makeRunGit({ program });
  const run: RunGit = (what) => {
    options.seen?.(what.args, what.index);
    return real(what);
  };
  const pairOf: PairOf = options.pairOf ?? (() => Promise.reject(new Refusal('checkpoint_unavailable')));
  const git = createGit({ run, directory: join(base, 'shadows'), privateDirectories, pairOf });
  atEnd(() => {
    git.close();
    root.close();
  });
  return {
    git,
    root,
    run,
    status: () => git.status(root, signal),
    changes: async (of) => (await git.changes(root, of, signal)).entries,
    diff: (of, id, more = {}) => git.diff(root, { workspaceId, of, id, ...more }, signal),
    side: (of, id, side, more = {}) => git.side(root, { workspaceId, of, id, side, ...more }, signal),
  };
};

/** The code that `act` refuses with, or 'done'. */
export const codeOf = async (act: () => Promise<unknown>): Promise<ErrorCode | 'done'> => {
  try {
    await act();
    return 'done';
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
};

export const linesOf = ({ content }: FileDiff): string[] =>
  content.kind === 'text' ? content.hunks.flatMap(({ lines }) => lines) : [];
