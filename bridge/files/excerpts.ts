/**
 * Lines of the workspace that a message is about (W-05), proposed to the operator: files it names, what it names in them,
 * and what was changed before. The rule not to break: the message may be pasted from anywhere, so a name in it opens only
 * what a survey of the workspace would have looked into. The same files and words make the same answer, in one order.
 * Called by workspaces.ts.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Answer } from '#protocol/methods.ts';
import type { Excerpt } from '#protocol/methods/workspace.ts';
import type { About, Root } from './contract.ts';
import { sourcesOf, type Sources } from './sources.ts';
import { hintsOf, type Definition } from './symbols.ts';

/** Without a line, the place in the file is yet to be found. */
interface Wish {
  readonly path: string;
  readonly why: Excerpt['why'];
  readonly line: number | null;
}
interface Words {
  /** Written as code is: meant as a symbol. */
  readonly marked: readonly string[];
  /** Any others: a symbol only if a file gives out one that is called exactly so. */
  readonly plain: readonly string[];
}

/** @throws Refusal workspace_*, cancelled */
export const excerptsOf = async (
  root: Root,
  trusted: boolean,
  about: About,
  signal: AbortSignal,
): Promise<Answer<'workspace.excerpts'>> => {
  const { workspaceId } = root;
  if (!trusted) return { workspaceId, trusted, excerpts: [], files: 0, truncated: false };
  const sources = await sourcesOf(root, true, signal);
  const words = wordsIn(about.text);
  const wishes = wishesOf(root, sources, words, about);
  const excerpts: Excerpt[] = [];
  let [left, isCut] = [limits.excerptsBytes, false];
  for (const wish of wishes) {
    await turn();
    if (signal.aborted) throw new Refusal('cancelled');
    const range = rangeOf(sources, wish, words);
    if (range === null || excerpts.some((each) => covers(each, range))) continue;
    const text = fitting(range.lines, Math.min(left, limits.excerptBytes));
    if (text.length === 0 || excerpts.length === limits.excerpts) {
      isCut = true;
      if (text.length === 0) continue;
      break;
    }
    isCut ||= text.length < range.lines.length;
    const excerpt = { path: wish.path, from: range.from, to: range.from + text.length - 1, text: text.join('\n') };
    excerpts.push({ ...excerpt, why: wish.why });
    left -= Buffer.byteLength(excerpt.text);
  }
  return { workspaceId, trusted, excerpts, files: sources.files.length, truncated: sources.truncated || isCut };
};

/** In the order in which they are answered. */
const wishesOf = (root: Root, sources: Sources, words: Words, { text, paths }: About): Wish[] => {
  const places = filesIn(text).flatMap(({ name, line }) =>
    pathsCalled(root, sources, name).map((path): Wish => ({ path, why: line === null ? 'named' : 'line', line })),
  );
  const all = [
    ...places.filter(({ why }) => why === 'named'),
    ...places.filter(({ why }) => why === 'line'),
    ...definedBy(sources, words),
    ...paths.map((path): Wish => ({ path, why: 'changed', line: null })),
  ];
  const met = new Set<string>();
  return all.filter(({ path, line }) => met.size < met.add(`${line} ${path}`).size);
};

/** What a text calls by names of files: with a dot or a slash, or capitalised as a Makefile is. */
const filesIn = (text: string): { name: string; line: number | null }[] => {
  const found = (text.match(/@"[^"\n]+"|[^\s"'`<>|,;]+/g) ?? []).flatMap((token) => {
    if (token.length > limits.hintLineUnits) return [];
    const bare = token.replace(/^[[({@"]+/, '').replace(/[\])}.:!?*"]+$/, '');
    const [, name = '', line, hash] = /^(.+?)(?::(\d{1,7})(?:[-:]\d{1,7})?|#L(\d{1,7})\S*)?$/.exec(bare) ?? [];
    if (!/[./]|^[A-Z]/.test(name)) return [];
    const number = line ?? hash;
    return [{ name, line: number === undefined ? null : Math.max(1, Number(number)) }];
  });
  return found.slice(0, limits.excerptWords);
};

/** The nearest of that name; or the path itself, which may lie beyond what a survey gets to. */
const pathsCalled = (root: Root, sources: Sources, name: string): string[] => {
  const path = root.relative(name);
  if (path === null || path === '') return [];
  const all = sources.files.map((file) => file.path);
  if (all.includes(path)) return [path];
  const ending = all.filter((each) => each.endsWith(`/${path}`)).slice(0, 2);
  return ending.length > 0 || !/[./]/.test(path) ? ending : [path];
};

const wordsIn = (text: string): Words => {
  const inTicks = (text.match(/`[^`\n]+`/g) ?? []).flatMap((each) => each.match(/[\w$]+/g) ?? []);
  // Not what is part of a path.
  const all = (text.match(/(?<![\w$./])[\w$]+(?:\(|(?![\w$]|[./]\w))/g) ?? []).map((each) => ({
    word: each.replace('(', ''),
    called: each.endsWith('('),
  }));
  const isCode = ({ word, called }: { word: string; called: boolean }): boolean =>
    called || /[a-z\d][A-Z]|[A-Z]{2}[a-z]|[^_]_[^_]/.test(word);
  const names = (words: readonly string[], least: number): string[] => [
    ...new Set(words.filter((word) => word.length >= least && word.length <= 80 && !/^\d/.test(word))),
  ];
  return {
    marked: names([...inTicks, ...all.filter(isCode).map(({ word }) => word)], 2).slice(0, limits.excerptWords),
    plain: names(
      all.filter((each) => !isCode(each)).map(({ word }) => word),
      4,
    ).slice(0, limits.excerptWords),
  };
};

/** The first two of each name: what a file gives out before what it keeps, and a class's own last. */
const definedBy = (sources: Sources, { marked, plain }: Words): Wish[] => {
  const byName = Map.groupBy(
    sources.files.flatMap(({ path, hints }) => (hints?.definitions ?? []).map((definition) => ({ path, definition }))),
    ({ definition }) => definition.name,
  );
  const rank = ({ exported, member }: Definition): number => (exported ? 0 : member ? 2 : 1);
  const called = (word: string, isWanted: (definition: Definition) => boolean): Wish[] =>
    (byName.get(word) ?? [])
      .filter(({ definition }) => isWanted(definition))
      .sort((a, b) => rank(a.definition) - rank(b.definition))
      .slice(0, 2)
      .map(({ path, definition }) => ({ path, why: 'defines', line: definition.line }));
  return [
    ...marked.flatMap((word) => called(word, () => true)),
    ...plain.flatMap((word) => called(word, ({ exported }) => exported)),
  ];
};

interface Range {
  readonly path: string;
  readonly from: number;
  /** The line that is meant; null for the head of a file. */
  readonly at: number | null;
  readonly lines: readonly string[];
}

const covers = (excerpt: Excerpt, { path, at }: Range): boolean =>
  excerpt.path === path && (at === null || (at >= excerpt.from && at <= excerpt.to));

const rangeOf = (sources: Sources, { path, why, line }: Wish, words: Words): Range | null => {
  const text = sources.text(path);
  if (text === null || text.trim() === '') return null;
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/);
  const { definitions } = hintsOf(path, text);
  const isMeant = ({ name, exported }: Definition): boolean =>
    words.marked.includes(name) || (exported && words.plain.includes(name));
  const at = line !== null && line <= lines.length ? line : (definitions.find(isMeant)?.line ?? null);
  const isBlank = (each: number): boolean => (lines[each - 1] ?? '').trim() === '';
  const range = (first: number, last: number): Range => {
    let [from, to] = [first, Math.min(last, first + limits.excerptLines - 1, lines.length)];
    while (from < to && isBlank(from)) from += 1;
    while (to > from && isBlank(to)) to -= 1;
    return { path, from, at, lines: lines.slice(from - 1, to) };
  };
  if (at === null) return range(1, limits.excerptHeadLines);
  if (why === 'line') {
    const around = Math.floor(limits.excerptLinesAfter / 2);
    return range(Math.max(1, at - around), at + around);
  }
  // What comes next is another thing, and so is what is said above it.
  let last = Math.min(at + limits.excerptLinesAfter, lines.length);
  const next = definitions.find((each) => !each.member && each.line > at && each.line <= last)?.line;
  if (next !== undefined) last = next - 1;
  while (next !== undefined && last > at && isRemark.test(lines[last - 1] ?? '')) last -= 1;
  return range(Math.max(1, at - limits.excerptLinesBefore), last);
};
const isRemark = /^\s*(?:\/\/|\/\*|\*|#|@)/;

/** As many of the lines as fit. */
const fitting = (lines: readonly string[], maxBytes: number): readonly string[] => {
  let left = maxBytes + 1;
  const over = lines.findIndex((line) => (left -= Buffer.byteLength(line) + 1) < 0);
  return over === -1 ? lines : lines.slice(0, over);
};
