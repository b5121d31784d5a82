/** Turns what a person typed into a full-text query that can only ever look for words. Pure. Used by reader.ts. */
import { limits } from '#protocol/limits.ts';

/** Each word quoted (FTS5 strings know no operators), the last also as a prefix. Null when there is no word in it. */
export const matchText = (typed: string): string | null => {
  const words = typed
    .toWellFormed()
    .split(/[\s\u0000]+/)
    .filter((word) => /[\p{L}\p{N}\p{Co}]/u.test(word))
    .slice(0, limits.searchTerms);
  if (words.length === 0) return null;
  return `${words.map((word) => `"${word.replaceAll('"', '""')}"`).join(' ')}*`;
};
