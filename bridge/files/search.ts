/**
 * Fuzzy search of file names below the root (F-06), over a bounded walk that opens nothing but directories.
 * Skips secret folders, `node_modules` and what plain lines of .gitignore files name. Yields between slices so that a
 * big tree delays nobody, and stops at once when its signal aborts. Called by root.ts.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Beneath, Directory, Segments } from './beneath.ts';
import { namesOf, type Name } from './list.ts';
import { readWhole } from './read.ts';
import { isSecretPath } from './secrets.ts';

export interface Match {
  readonly path: string;
  readonly type: 'file' | 'directory';
}
interface Scored extends Match {
  readonly score: number;
}
/** One set of plain lines for each .gitignore on the way down. */
type Ignored = readonly ReadonlySet<string>[];
interface Pending {
  readonly segments: Segments;
  readonly ignored: Ignored;
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
  const queue: Pending[] = [{ segments: [], ignored: [] }];
  let [seen, truncated, sliceEnd] = [0, false, performance.now() + limits.searchSliceMs];
  // Breadth first, so that what is near the root is found before the bound is reached.
  for (const next of queue) {
    if (performance.now() > sliceEnd) {
      await turn();
      sliceEnd = performance.now() + limits.searchSliceMs;
    }
    if (signal.aborted) throw new Refusal('cancelled');
    const level = look(beneath, next);
    truncated ||= level.truncated;
    for (const name of level.names) {
      const segments = [...next.segments, name.text];
      const path = segments.join('/');
      const score = scoreOf(path, wanted);
      if (score !== null) found.push({ path, type: name.folder ? 'directory' : 'file', score });
      if (name.folder && segments.length < limits.pathDepth) queue.push({ segments, ignored: level.ignored });
    }
    seen += level.names.length;
    if (seen >= limits.searchEntries) {
      truncated ||= queue.at(-1) !== next;
      break;
    }
  }
  const best = found.sort((a, b) => b.score - a.score || a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
  const matches = best.slice(0, limit).map(({ path, type }) => ({ path, type }));
  return { matches, truncated: truncated || best.length > limit };
};

type Plain = Name & { readonly text: string };
type Level = { readonly names: readonly Plain[]; readonly ignored: Ignored; readonly truncated: boolean };

const look = (beneath: Beneath, { segments, ignored }: Pending): Level => {
  try {
    return beneath.directory(segments, (directory) => visible(beneath, directory, segments, ignored));
  } catch (error) {
    // Gone, replaced by a link, private or mounted since its name was read: not part of what can be found.
    if (error instanceof Refusal && error.code !== 'workspace_unavailable')
      return { names: [], ignored, truncated: false };
    throw error;
  }
};

const visible = (beneath: Beneath, directory: Directory, segments: Segments, inherited: Ignored): Level => {
  const { names, truncated } = namesOf(directory);
  const ignored = names.some(({ text }) => text === '.gitignore')
    ? [...inherited, ignoreLines(beneath, segments)]
    : inherited;
  const isVisible = (name: Name): name is Plain =>
    name.text !== null &&
    !(name.folder && (name.text === 'node_modules' || isSecretPath([name.text]))) &&
    !isIgnored(name.text, ignored);
  return { names: names.filter(isVisible), ignored, truncated };
};

/** Lines that are one name or `*.ending`, as sets so that a hostile file costs nothing; the rest is left to a real ignore engine. */
const ignoreLines = (beneath: Beneath, segments: Segments): ReadonlySet<string> => {
  try {
    const { bytes } = beneath.leaf([...segments, '.gitignore'], (leaf) => readWhole(leaf, limits.sniffBytes));
    const lines = bytes
      .toString('utf8')
      .split('\n')
      .map((line) => line.trim().replace(/\/$/, ''));
    return new Set(lines.filter((line) => /^(\*\.)?[\w.@+-]+$/.test(line)));
  } catch (error) {
    if (error instanceof Refusal && error.code !== 'workspace_unavailable') return new Set();
    throw error;
  }
};

const isIgnored = (name: string, ignored: Ignored): boolean => {
  const endings = name
    .split('.')
    .slice(1)
    .map((_, at, parts) => `*.${parts.slice(at).join('.')}`);
  return ignored.some((lines) => lines.has(name) || endings.some((ending) => lines.has(ending)));
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
