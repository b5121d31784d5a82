/**
 * Fuzzy search of file names below the root (F-06). Yields between slices so that a big tree delays nobody, and stops at
 * once when its signal aborts. Called by root.ts.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Beneath } from './beneath.ts';
import { levels } from './walk.ts';

export interface Match {
  readonly path: string;
  readonly type: 'file' | 'directory';
}
interface Scored extends Match {
  readonly score: number;
}
/** Best first; `truncated` when the tree was larger than the bound or there were more matches. @throws Refusal cancelled */
export const searchNames = async (
  beneath: Beneath,
  query: string,
  limit: number,
  signal: AbortSignal,
): Promise<{ matches: Match[]; truncated: boolean }> => {
  const wanted = query.normalize('NFC').toLowerCase().replace(/\s+/g, '');
  const found: Scored[] = [];
  let [truncated, sliceEnd] = [false, performance.now() + limits.searchSliceMs];
  for (const level of levels(beneath)) {
    truncated ||= level.truncated;
    for (const { text, folder } of level.names) {
      const path = [...level.segments, text].join('/');
      const score = scoreOf(path, wanted);
      if (score !== null) found.push({ path, type: folder ? 'directory' : 'file', score });
    }
    if (performance.now() > sliceEnd) {
      await turn();
      sliceEnd = performance.now() + limits.searchSliceMs;
    }
    if (signal.aborted) throw new Refusal('cancelled');
  }
  const best = found.sort((a, b) => b.score - a.score || a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
  const matches = best.slice(0, limit).map(({ path, type }) => ({ path, type }));
  return { matches, truncated: truncated || best.length > limit };
};

/** Null when the letters of `wanted` do not all occur in order; otherwise higher is nearer. Prefers runs, starts of words and the name itself. */
export const scoreOf = (path: string, wanted: string): number | null => {
  const text = path.normalize('NFC').toLowerCase();
  const base = text.lastIndexOf('/') + 1;
  const whole = text.indexOf(wanted, base);
  if (whole !== -1) return 1000 + (whole === base ? 200 : 0) - (text.length - base) - base / 10;
  let [score, at, run] = [0, 0, 0];
  for (const sign of wanted) {
    const next = text.indexOf(sign, at);
    if (next === -1) return null;
    run = next === at && at > 0 ? run + 1 : 0;
    score += 1 + run * 4 + (next === 0 || /[/._\- ]/.test(text[next - 1] ?? '') ? 6 : 0) + (next >= base ? 2 : 0);
    at = next + sign.length;
  }
  return score - text.length / 50;
};
