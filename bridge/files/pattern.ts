/**
 * What is searched for, and the lines of a text that have it. Pure. The rule not to break: a pattern somebody typed may
 * take for ever, so a regular expression is run here only inside the seeker, which can be ended.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { FoundLine } from '#protocol/methods/workspace.ts';

export interface Wanted {
  readonly query: string;
  readonly regexp: boolean;
  readonly matchCase: boolean;
  readonly word: boolean;
  /** Patterns with commas between, as `includes` reads them. */
  readonly include: string;
}
export interface Pattern {
  readonly expression: RegExp;
  /** Never matches across lines, so that a whole text is asked at once. */
  readonly plain: boolean;
}

const letter = '[\\p{L}\\p{N}_]';

/** @throws Refusal invalid_pattern for what is empty, has line breaks, or is no regular expression */
export const patternOf = ({ query, regexp, matchCase, word }: Wanted): Pattern => {
  if (query === '' || /[\n\r\0]/.test(query)) throw new Refusal('invalid_pattern');
  const core = regexp ? query : query.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const source = word ? `(?<!${letter})(?:${core})(?!${letter})` : core;
  const flags = matchCase ? 'g' : 'gi';
  // People write escapes that Unicode mode refuses; without it those mean what they look like.
  const expression = expressionOf(source, `${flags}u`) ?? (word ? null : expressionOf(source, flags));
  if (expression === null) throw new Refusal('invalid_pattern');
  return { expression, plain: !regexp };
};

const expressionOf = (source: string, flags: string): RegExp | null => {
  try {
    return new RegExp(source, flags);
  } catch {
    return null; // asked again in another mode, and refused by the caller
  }
};

/** The lines of `text` that match, from the first. Line ends are LF, with or without CR. */
export function* linesWith(text: string, pattern: Pattern): Generator<Omit<FoundLine, 'path'>> {
  for (let [start, line] = [0, 1]; start < text.length; line += 1) {
    if (pattern.plain) {
      pattern.expression.lastIndex = start;
      const at = pattern.expression.exec(text)?.index;
      if (at === undefined) return;
      for (let end = text.indexOf('\n', start); end !== -1 && end < at; end = text.indexOf('\n', start)) {
        start = end + 1;
        line += 1;
      }
    }
    const stop = text.indexOf('\n', start);
    const end = stop === -1 ? text.length : stop;
    const content = text.slice(start, text[end - 1] === '\r' && end > start ? end - 1 : end);
    const marks = marksOf(content, pattern.expression);
    if (marks.length > 0) yield { line, ...shown(content, marks) };
    start = end + 1;
  }
}

const marksOf = (content: string, expression: RegExp): [number, number][] => {
  const marks: [number, number][] = [];
  expression.lastIndex = 0;
  for (let found = expression.exec(content); found !== null && marks.length < limits.grepMarks;) {
    marks.push([found.index, found[0].length]);
    if (found[0] === '') expression.lastIndex += 1;
    found = expression.exec(content);
  }
  return marks;
};

/** The whole line, or as much around the first match as a screen shows. */
const shown = (content: string, marks: readonly [number, number][]): Omit<FoundLine, 'path' | 'line'> => {
  const long = content.length > limits.grepLineUnits;
  const first = marks[0]?.[0] ?? 0;
  let from = long ? Math.max(0, Math.min(first - limits.grepLineUnits / 4, content.length - limits.grepLineUnits)) : 0;
  if (isTrail(content, from)) from += 1;
  let end = Math.min(content.length, from + limits.grepLineUnits);
  if (isTrail(content, end)) end -= 1;
  const inside = marks.flatMap(([at, length]): [number, number][] =>
    at >= end ? [] : [[at - from, Math.min(length, end - at)]],
  );
  return { text: content.slice(from, end).toWellFormed(), from, more: end < content.length, marks: inside };
};

/** Inside a pair: a character that takes two units is not cut in two. */
const isTrail = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00;
