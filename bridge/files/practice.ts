/**
 * The practice workspace on disk (W-06): a copy of the template in the state directory, kept across updates and put back
 * whole on request. The rule not to break: only this directory and its two staging names beside it are ever touched, and
 * a link in its place is refused. Called by workspaces.ts.
 */
import { cpSync, lstatSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { Refusal } from '#protocol/errors.ts';

/** Copies the template unless the directory is there. @throws Refusal symlink_refused, not_a_directory */
export const ensurePractice = (template: string, directory: string): void => {
  if (exists(directory)) return;
  renameSync(stage(template, directory), directory);
};

/** A fresh copy beside the directory, to be put in place by `swap`. Removes what a crash may have left there. */
export const stage = (template: string, directory: string): string => {
  const staged = `${directory}.new`;
  mkdirSync(dirname(directory), { recursive: true, mode: 0o700 });
  rmSync(staged, { recursive: true, force: true });
  // Copied beside and renamed, so that a crash never leaves half a workspace under the real name.
  cpSync(template, staged, { recursive: true, verbatimSymlinks: true });
  return staged;
};

/** Puts the staged copy in place of the directory, which is removed. @throws Refusal symlink_refused, not_a_directory */
export const swap = (staged: string, directory: string): void => {
  const old = `${directory}.old`;
  rmSync(old, { recursive: true, force: true });
  if (exists(directory)) renameSync(directory, old);
  renameSync(staged, directory);
  rmSync(old, { recursive: true, force: true });
};

/** Whether the directory is there. @throws Refusal symlink_refused, not_a_directory when something else is */
export const exists = (directory: string): boolean => {
  const stat = lstatSync(directory, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink() === true) throw new Refusal('symlink_refused');
  if (stat !== undefined && !stat.isDirectory()) throw new Refusal('not_a_directory');
  return stat !== undefined;
};
