/**
 * Ignore files and patterns (F-06): gitignore's grammar, matched in time that grows with pattern and path alone, because
 * both are hostile. The rule not to break: no pattern of a repository becomes a regular expression.
 * Called by walk.ts, list.ts, sources.ts and the seeker.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Beneath, Segments } from './beneath.ts';
import { readWhole } from './read.ts';

/** In order: what the later one says holds. */
const files = ['.gitignore', '.ignore'] as const;
export const isIgnoreFile = (name: string): boolean => name === files[0] || name === files[1];

interface Rule {
  readonly keeps: boolean;
  readonly foldersOnly: boolean;
  readonly fits: (below: Segments) => boolean;
}
/** The rules of the folders on the way down, each with how deep its folder lies. */
export type Ignored = readonly { readonly depth: number; readonly rules: readonly Rule[] }[];

const star = Symbol('any run');
const anyOne = Symbol('any one');
type Sign = string | typeof star | typeof anyOne | { readonly out: boolean; readonly ranges: readonly string[] };

/** What the patterns of one file may cost. Then they name nothing more: a hostile file hides nothing and delays nobody. */
interface Budget {
  steps: number;
}

/** The one matcher: a star gives way by one at a time and only the last one is tried again, so nothing explodes. */
const match = <P, T>(
  budget: Budget,
  pattern: readonly P[],
  text: readonly T[],
  isStar: (part: P) => boolean,
  fits: (part: P, one: T) => boolean,
): boolean => {
  let [at, seen, lastStar, retry] = [0, 0, -1, 0];
  while (seen < text.length) {
    budget.steps -= 1;
    if (budget.steps < 0) return false;
    const part = pattern[at];
    if (part !== undefined && isStar(part)) {
      lastStar = at;
      retry = seen;
      at += 1;
    } else if (part !== undefined && fits(part, text[seen] as T)) {
      at += 1;
      seen += 1;
    } else if (lastStar !== -1) {
      retry += 1;
      seen = retry;
      at = lastStar + 1;
    } else return false;
  }
  return pattern.slice(at).every(isStar);
};

const signFits = (sign: Sign, letter: string): boolean => {
  if (typeof sign === 'string') return sign === letter;
  if (typeof sign === 'symbol') return true;
  return sign.out !== sign.ranges.some(([low = '', high = low]) => letter >= low && letter <= high);
};

/** One segment of a pattern: `*`, `?`, `[a-z]`, `[!a]`, and `\` before what is meant as it stands. */
const signsOf = (segment: string): Sign[] => {
  const signs: Sign[] = [];
  for (let at = 0; at < segment.length; at += 1) {
    const letter = segment[at] ?? '';
    const end = letter === '[' ? segment.indexOf(']', at + 2) : -1;
    if (letter === '\\' && at + 1 < segment.length) signs.push(segment[(at += 1)] ?? '');
    else if (letter === '*') signs.push(star);
    else if (letter === '?') signs.push(anyOne);
    else if (end !== -1) {
      const body = segment.slice(at + 1, end);
      const out = /^[!^]/.test(body);
      const ranges = (out ? body.slice(1) : body).match(/.-.|./gsu) ?? [];
      signs.push({ out, ranges: ranges.map((range) => (range.length === 3 ? `${range[0]}${range[2]}` : range)) });
      at = end;
    } else signs.push(letter);
  }
  return signs;
};

const segmentMatcher = (segment: string, budget: Budget): ((name: string) => boolean) => {
  if (!/[*?[\\]/.test(segment)) return (name) => name === segment;
  const signs = signsOf(segment);
  return (name) => {
    budget.steps -= name.length;
    return budget.steps > 0 && match(budget, signs, [...name], (sign) => sign === star, signFits);
  };
};

/** Whether a path below the pattern's folder is named by it. */
const pathMatcher = (pattern: string, budget: Budget): ((below: Segments) => boolean) => {
  const parts = pattern.replace(/^\//, '').split('/');
  if (parts.length === 1 && !pattern.startsWith('/')) {
    const fits = segmentMatcher(parts[0] ?? '', budget);
    return (below) => fits(below.at(-1) ?? '');
  }
  // `a/**` is what lies in a, not a itself.
  if (parts.at(-1) === '**') parts.push('*');
  const matchers = parts.map((part) => (part === '**' ? null : segmentMatcher(part, budget)));
  return (below) =>
    match(
      budget,
      matchers,
      below,
      (part) => part === null,
      (part, name) => part?.(name) === true,
    );
};

const ruleOf = (line: string, budget: Budget): Rule | null => {
  let text = line.endsWith('\r') ? line.slice(0, -1) : line;
  while (text.endsWith(' ') && !text.endsWith('\\ ')) text = text.slice(0, -1);
  if (text === '' || text.startsWith('#')) return null;
  const keeps = text.startsWith('!');
  const body = keeps ? text.slice(1) : text;
  const foldersOnly = body.endsWith('/');
  const pattern = foldersOnly ? body.slice(0, -1) : body;
  return pattern === '' ? null : { keeps, foldersOnly, fits: pathMatcher(pattern, budget) };
};

export const rulesOf = (text: string): Rule[] => {
  const budget: Budget = { steps: limits.ignoreSteps };
  return text
    .split('\n', limits.ignoreLines)
    .flatMap((line) => (line.length > limits.nameBytes ? [] : (ruleOf(line, budget) ?? [])));
};

type TextOf = (path: Segments) => string;
const ruledIn = (textOf: TextOf, folder: Segments, above: Ignored): Ignored => {
  const rules = files.flatMap((name) => rulesOf(textOf([...folder, name])));
  return rules.length === 0 ? above : [...above, { depth: folder.length, rules }];
};

/** What holds in a folder: what held above, and its own ignore files, of which `present` says that there may be some. */
export const ignoredIn = (beneath: Beneath, folder: Segments, above: Ignored, present = true): Ignored =>
  present ? ruledIn((path) => ignoreText(beneath, path), folder, above) : above;

/** The text of an ignore file; '' where it says nothing. */
export const ignoreText = (beneath: Beneath, path: Segments): string => {
  try {
    return beneath.leaf(path, (leaf) => readWhole(leaf, limits.ignoreBytes)).bytes.toString('utf8');
  } catch (error) {
    // None there, a link, too large, being written: it says nothing.
    if (error instanceof Refusal && error.code !== 'workspace_unavailable') return '';
    throw error;
  }
};

/** Whether an entry, whose folders are not ignored themselves, is. The deepest file that names it has the word. */
export const isIgnored = (ignored: Ignored, path: Segments, folder: boolean): boolean => {
  for (const { depth, rules } of ignored.toReversed()) {
    const below = path.slice(depth);
    const rule = rules.findLast(({ foldersOnly, fits }) => (folder || !foldersOnly) && fits(below));
    if (rule !== undefined) return !rule.keeps;
  }
  return false;
};

/** Whether the ignore files on the way to a path name it, or a folder it lies in; each is read once, by `textOf`. */
export const ignoring = (textOf: TextOf): ((path: Segments, folder: boolean) => boolean) => {
  const chains = new Map<string, Ignored>();
  const chainOf = (folder: Segments): Ignored => {
    const key = folder.join('/');
    const known = chains.get(key);
    if (known !== undefined) return known;
    const chain = ruledIn(textOf, folder, folder.length === 0 ? [] : chainOf(folder.slice(0, -1)));
    chains.set(key, chain);
    return chain;
  };
  return (path, folder) =>
    path.some((_, at) => isIgnored(chainOf(path.slice(0, at)), path.slice(0, at + 1), folder || at < path.length - 1));
};

/** What is looked into, from patterns with commas between; a folder's name means what lies in it. Null for everything. */
export const includes = (patterns: string): ((path: Segments) => boolean) | null => {
  const budget: Budget = { steps: Infinity };
  const rules = patterns.split(',').flatMap((pattern) => ruleOf(pattern.trim(), budget) ?? []);
  if (rules.length === 0) return null;
  const names = (wanted: readonly Rule[], path: Segments): boolean =>
    wanted.some(({ fits, foldersOnly }) =>
      path.some((_, at) => (at < path.length - 1 || !foldersOnly) && fits(path.slice(0, at + 1))),
    );
  const [out, wanted] = [rules.filter(({ keeps }) => keeps), rules.filter(({ keeps }) => !keeps)];
  return (path) => (wanted.length === 0 || names(wanted, path)) && !names(out, path);
};
