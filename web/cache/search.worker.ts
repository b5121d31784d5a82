/// <reference lib="webworker" />
/** Searches the offline copy off the page's thread. */
import { limits } from '#protocol/limits.ts';
import { expose } from 'comlink';
import { openCopy, rangeOf } from './database.ts';
import { findIn, wordsOf, type Found } from './find.ts';

export interface CopyHit extends Found {
  readonly conversationId: string;
  readonly title: string;
}

let latest = 0;

const search = async (databaseName: string, query: string): Promise<readonly CopyHit[]> => {
  const mine = ++latest;
  const words = wordsOf(query);
  const database = await openCopy(databaseName);
  const hits: CopyHit[] = [];
  try {
    const metas = (await database.getAll('meta')).sort(
      (a, b) => (b.summary?.updatedAt ?? 0) - (a.summary?.updatedAt ?? 0),
    );
    for (const meta of metas) {
      // A newer question makes this one pointless.
      if (mine !== latest || hits.length >= limits.searchResults) break;
      let cursor = await database.transaction('events').store.openCursor(rangeOf(meta.conversationId), 'prev');
      while (cursor !== null && hits.length < limits.searchResults) {
        const found = findIn(cursor.value, words);
        if (found !== null)
          hits.push({ ...found, conversationId: meta.conversationId, title: meta.summary?.title ?? '' });
        cursor = await cursor.continue();
      }
    }
    return hits;
  } finally {
    database.close();
  }
};

const api = { search };
export type SearchApi = typeof api;
expose(api);
