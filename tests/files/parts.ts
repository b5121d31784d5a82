/** Real directories, roots and locks for the tests of this room. */
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect } from 'vitest';
import type { ErrorCode } from '#protocol/errors.ts';
import { Refusal } from '#protocol/errors.ts';
import type { Root } from '../../bridge/files/contract.ts';
import { openRoot } from '../../bridge/files/root.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});
export const atEnd = (cleanup: () => void): void => {
  cleanups.push(cleanup);
};

export const makeFolder = (): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'countersign-files-')));
  atEnd(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
};

/** Writes files by relative path; a path that ends in a slash is a folder. */
export const fill = (folder: string, files: Readonly<Record<string, string | Uint8Array>>): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(path.endsWith('/') ? join(folder, path) : dirname(join(folder, path)), { recursive: true });
    if (!path.endsWith('/')) writeFileSync(join(folder, path), content);
  }
};

/** A workspace below a folder of its own, so that there is an outside beside it. */
export const makeRoot = (
  files: Readonly<Record<string, string | Uint8Array>> = {},
  privateDirectories: readonly string[] = [],
  now?: () => number,
): { root: Root; path: string; outside: string } => {
  const base = makeFolder();
  const [path, outside, home] = [join(base, 'workspace'), join(base, 'outside'), join(base, 'home')];
  fill(base, { 'workspace/': '', 'outside/': '', 'home/': '' });
  fill(path, files);
  const root = openRoot({
    workspaceId: '0198b6d0-0000-7000-8000-000000000001',
    path,
    privateDirectories,
    home,
    ...(now && { now }),
  });
  atEnd(() => {
    root.close();
  });
  return { root, path, outside };
};

/** The code that `act` refuses with, or 'done'. */
export const codeOf = (act: () => unknown): ErrorCode | 'done' => {
  try {
    act();
    return 'done';
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
};

export const textOf = (root: Root, path: string): string => {
  const { content } = root.read(path);
  expect(content.kind).toBe('text');
  return content.kind === 'text' ? content.text : '';
};

export const openDescriptors = (): number => readdirSync('/proc/self/fd').length;
