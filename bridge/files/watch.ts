/**
 * Tells that something changed in the folders one looks at (F-07). Watches are taken on the directory the walker opened,
 * not on a name; where the system takes no more of them, those folders are looked at from time to time, which is said.
 * Carries no names: whoever is told looks again through the walker. Called by root.ts.
 */
import { watch, type FSWatcher } from 'node:fs';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { systemCode, type Beneath, type Segments } from './beneath.ts';
import type { Watch } from './contract.ts';
import { revisionOf } from './revision.ts';

/** The system has no more watches, or no more descriptors, for anyone. */
const full: ReadonlySet<string> = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']);

/** Until `close`. `changed` comes at most once in `limits.watchSettleMs`. A folder that is not there is left out. */
export const startWatch = (
  beneath: Beneath,
  folders: readonly Segments[],
  changed: () => void,
  take: typeof watch = watch,
): Watch => {
  const watchers: FSWatcher[] = [];
  const polled: { readonly segments: Segments; seen: string | null }[] = [];
  let settling: NodeJS.Timeout | null = null;
  const tell = (): void => {
    settling ??= setTimeout(() => {
      settling = null;
      changed();
    }, limits.watchSettleMs).unref();
  };
  for (const segments of folders) {
    const took = takeOne(beneath, segments, tell, take);
    if (took === 'full') polled.push({ segments, seen: stateOf(beneath, segments) });
    else if (took !== null) watchers.push(took);
  }
  const poll = (): void => {
    for (const one of polled) {
      const state = stateOf(beneath, one.segments);
      if (state !== one.seen) tell();
      one.seen = state;
    }
  };
  const timer = polled.length === 0 ? null : setInterval(poll, limits.watchPollMs).unref();
  return {
    watched: watchers.length,
    polled: polled.length,
    close: () => {
      for (const watcher of watchers) watcher.close();
      if (timer !== null) clearInterval(timer);
      if (settling !== null) clearTimeout(settling);
    },
  };
};

const takeOne = (
  beneath: Beneath,
  segments: Segments,
  tell: () => void,
  take: typeof watch,
): FSWatcher | 'full' | null => {
  try {
    return beneath.directory(segments, (directory) => {
      const watcher = take(directory.at('.'), { persistent: false }, tell);
      // Removed or unmounted: that is a change, too, and nothing more comes.
      watcher.on('error', () => {
        watcher.close();
        tell();
      });
      return watcher;
    });
  } catch (error) {
    const cause = error instanceof Refusal ? error.cause : error;
    if (full.has(systemCode(cause) ?? '')) return 'full';
    if (error instanceof Refusal && error.code !== 'workspace_unavailable') return null;
    throw error;
  }
};

/** What tells one state of a folder and of the files in it from another, as far as the folder itself knows. */
const stateOf = (beneath: Beneath, segments: Segments): string | null => {
  try {
    return beneath.directory(segments, ({ stat }) => revisionOf(stat));
  } catch (error) {
    if (error instanceof Refusal) return null; // gone or in the way: another state than there
    throw error;
  }
};
