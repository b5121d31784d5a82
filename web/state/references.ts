/** Workspaces beside a conversation's own (W-03): which can be chosen, and which of them the files panel shows. Pure. */
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import type { WorkspaceSummary } from '#protocol/methods/workspace.ts';

type Known = Pick<WorkspaceSummary, 'workspaceId' | 'path' | 'name' | 'open' | 'problem'>;

/** What a new conversation in `own` can be given to read: other open folders that are no part of its own. */
export const offeredToRead = <T extends Known>(workspaces: readonly T[], own: Known | null): readonly T[] =>
  workspaces.filter(
    ({ workspaceId, path, open, problem }) =>
      open && problem === null && own !== null && workspaceId !== own.workspaceId && !path.startsWith(`${own.path}/`),
  );

export interface Place {
  readonly workspaceId: string;
  readonly path: string;
  /** Its name; its path where several have that name. */
  readonly label: string;
  /** A closed one cannot be looked into. */
  readonly open: boolean;
}

/** The own workspace, then what is read beside it; nothing where there is nothing to choose. */
export const placesOf = (
  summary: Pick<ConversationSummary, 'workspaceId' | 'workspacePath' | 'references'> | null,
  workspaces: readonly Known[],
): readonly Place[] => {
  if (summary?.references === undefined) return [];
  const { workspaceId, workspacePath: path, references } = summary;
  const all = [{ workspaceId, path, name: path.slice(path.lastIndexOf('/') + 1) || path }, ...references];
  return all.map((each, at) => ({
    workspaceId: each.workspaceId,
    path: each.path,
    label: all.filter(({ name }) => name === each.name).length > 1 ? each.path : each.name,
    open:
      at === 0 || workspaces.some((one) => one.workspaceId === each.workspaceId && one.open && one.problem === null),
  }));
};

/** The place chosen, as long as it can be looked into; null is the own workspace. */
export const placeShown = (places: readonly Place[], chosen: string | null): Place | null =>
  places.slice(1).find(({ workspaceId, open }) => open && workspaceId === chosen) ?? null;
