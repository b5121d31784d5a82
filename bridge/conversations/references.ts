/**
 * Workspaces beside its own that a conversation may read and never write (W-03). Each is the folder the operator chose:
 * one that is closed, replaced or held back by its trust review is not read, and none is ever opened from here.
 * Used by registry.ts when a conversation is made, by effects.ts when its agent reads or writes.
 */
import { basename } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import type { WorkspaceReference } from '#protocol/methods/conversation.ts';
import type { Root } from '../files/contract.ts';
import type { Rooms } from './rooms.ts';

export interface Reference extends WorkspaceReference {
  /** Of the folder as it was chosen. */
  readonly rootSha256: string;
}

const contains = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`);

/** The open folder of a workspace. @throws Refusal reference_closed, not_trusted, workspace_changed, workspace_unavailable */
const openRoot = ({ workspaces, trust }: Pick<Rooms, 'workspaces' | 'trust'>, workspaceId: string): Root => {
  const root = workspaces.held(workspaceId);
  if (root === null) throw new Refusal('reference_closed');
  const obstacle = trust.blocked(workspaceId);
  if (obstacle !== null) throw new Refusal('not_trusted', { message: obstacle });
  return root;
};

/** What a new conversation that works in `own` may read beside it. @throws Refusal bad_request, and as `referencedRoot` */
export const chosenReferences = (rooms: Rooms, own: Root, workspaceIds: readonly string[]): Reference[] => {
  if (new Set([own.workspaceId, ...workspaceIds]).size <= workspaceIds.length) throw new Refusal('bad_request');
  return workspaceIds.map((workspaceId) => {
    const { path, rootSha256 } = openRoot(rooms, workspaceId);
    // What lies in the own folder can be written, whatever else it is called.
    if (contains(own.path, path))
      throw new Refusal('forbidden', { message: 'A folder inside the workspace itself is part of it already.' });
    return { workspaceId, path, name: basename(path) || path, rootSha256 };
  });
};

/** The reference an absolute path lies in, the innermost of them; null where it lies in none. By its text alone. */
export const referenceAt = (references: readonly Reference[], path: string): Reference | null =>
  references
    .filter((each) => contains(each.path, path))
    .reduce<Reference | null>(
      (best, each) => (best !== null && best.path.length > each.path.length ? best : each),
      null,
    );

/** @throws Refusal reference_closed, not_trusted, workspace_changed, workspace_unavailable */
export const referencedRoot = (rooms: Rooms, { workspaceId, rootSha256 }: Reference): Root => {
  const root = openRoot(rooms, workspaceId);
  if (root.rootSha256 !== rootSha256)
    throw new Refusal('workspace_changed', {
      message: 'This folder was replaced since this conversation was given it to read.',
    });
  return root;
};
