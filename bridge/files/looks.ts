/**
 * What one attachment has going on in the files of a workspace: one search in contents, and what it watches. Both end
 * with the attachment, and with the next of their kind. Called by the command table.
 */
import { Refusal } from '#protocol/errors.ts';
import type { Answer, Params } from '#protocol/methods.ts';
import type { Looks, Root, Search, Watch } from './contract.ts';

export interface LooksParts {
  readonly random: () => string;
  /** Tells one attachment that files changed. */
  readonly changed: (attachmentId: string) => void;
  /** Runs once the attachment has ended; at once where it has already. */
  readonly whenDetached: (attachmentId: string, run: () => void) => void;
}

interface Look {
  over: boolean;
  search: { readonly cursor: string; readonly workspaceId: string; readonly running: Search } | null;
  watch: Watch | null;
}

export const createLooks = ({ random, changed, whenDetached }: LooksParts): Looks => {
  const looks = new Map<string, Look>();
  const lookOf = (attachmentId: string): Look => {
    const known = looks.get(attachmentId);
    if (known !== undefined) return known;
    const look: Look = { over: false, search: null, watch: null };
    looks.set(attachmentId, look);
    whenDetached(attachmentId, () => {
      looks.delete(attachmentId);
      look.over = true;
      look.search?.running.end();
      look.watch?.close();
    });
    // It ended while its question was on the way: nothing may begin that nobody would end.
    if (look.over) throw new Refusal('cancelled');
    return look;
  };

  const begin = (look: Look, root: Root, params: Params<'files.grep'>): NonNullable<Look['search']> => {
    look.search?.running.end();
    look.search = null;
    const { query, regexp = false, matchCase = false, word = false, include = '' } = params;
    const running = root.grep({ query, regexp, matchCase, word, include });
    return (look.search = { cursor: random(), workspaceId: root.workspaceId, running });
  };

  return {
    async grep(attachmentId, root, params, signal): Promise<Answer<'files.grep'>> {
      const look = lookOf(attachmentId);
      if (params.cursor !== undefined) {
        const { cursor, workspaceId } = look.search ?? {};
        if (cursor !== params.cursor || workspaceId !== root.workspaceId) throw new Refusal('unknown_cursor');
      }
      const search = params.cursor === undefined || look.search === null ? begin(look, root, params) : look.search;
      const { ended, ...page } = await search.running.next(signal);
      if (ended) {
        search.running.end();
        if (look.search === search) look.search = null;
      }
      return { ...page, cursor: ended ? null : search.cursor };
    },
    watch(attachmentId, root, folders, file): Answer<'files.watch'> {
      const look = lookOf(attachmentId);
      look.watch?.close();
      look.watch = null;
      if (folders.length === 0 && file === undefined) return { watched: 0, polled: 0 };
      const watch = root.watch(folders, file, () => changed(attachmentId));
      look.watch = watch;
      return { watched: watch.watched, polled: watch.polled };
    },
  };
};
