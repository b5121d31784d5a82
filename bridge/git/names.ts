/**
 * Names of changed files: the exact bytes as an id, a text to look at, and a path where there is one to open (T68).
 * The rule not to break: an id that came from outside is a relative path without dot segments before git sees it.
 * Pure; used by this room and by checkpoints.
 */
import { isUtf8 } from 'node:buffer';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { parsePath } from '../files/beneath.ts';
import { display } from '../files/list.ts';
import { isSecretPath } from '../files/secrets.ts';

export const idOf = (path: Buffer): string => path.toString('base64url');

/** @throws Refusal bad_request for what is no relative path */
export const bytesOf = (id: string): Buffer => {
  const bytes = Buffer.from(id, 'base64url');
  const segments = bytes.toString('latin1').split('/');
  const isPath = segments.every((name) => name !== '' && name !== '.' && name !== '..' && !name.includes('\0'));
  if (!isPath || bytes.length > limits.pathBytes || idOf(bytes) !== id) throw new Refusal('bad_request');
  return bytes;
};

/** `prefix` is the workspace's place in the repository with its slash, '' where they are one. */
export const inside = (path: Buffer, prefix: Buffer): Buffer | null =>
  path.subarray(0, prefix.length).equals(prefix) ? path.subarray(prefix.length) : null;

/** What is shown; controls and what is not UTF-8 as escapes. */
export const nameOf = (path: Buffer, prefix: Buffer): string => display(inside(path, prefix) ?? path);

/** What it is opened with by the files room; null where no text opens exactly this. */
export const pathOf = (path: Buffer, prefix: Buffer): string | null => {
  const here = inside(path, prefix);
  const text = here !== null && isUtf8(here) ? here.toString('utf8') : null;
  return text !== null && text !== '' && isPath(text) ? text : null;
};

const isPath = (text: string): boolean => {
  try {
    return parsePath(text).length > 0;
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
};

/** By every component, also where the name is not UTF-8: what is not text cannot hide a secret name behind it. */
export const isSecretName = (path: Buffer): boolean => isSecretPath(path.toString('utf8').split('/'));

/** For git's arguments, which are text; null where it must be found in the list of all. */
export const argumentOf = (path: Buffer): string | null => (isUtf8(path) ? path.toString('utf8') : null);
