/**
 * A word of shell text: the value it has for certain, or null. And the second, independent reader of simple lines:
 * the parser alone never makes a command simple, both must read the same words. Pure.
 */
import type { Word as ParsedWord, WordPart } from 'unbash';
import { hasInvisible } from '../inert.ts';
import type { Word } from './sheet.ts';

const valueOfPart = (part: WordPart): string | null => {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      return part.value;
    case 'DoubleQuoted':
      return joined(part.parts);
    default:
      return null;
  }
};
const joined = (parts: readonly WordPart[]): string | null => {
  let value = '';
  for (const part of parts) {
    const each = valueOfPart(part);
    if (each === null) return null;
    value += each;
  }
  return value;
};

/** Tildes that the shell replaces: at the start, and after `=` or `:` as in an assignment. */
const tilde = /^~|[=:]~/;

export const wordOf = (parsed: ParsedWord): Word => {
  const isTilde = tilde.test(parsed.text);
  const value = isTilde ? null : parsed.parts === undefined ? parsed.value : joined(parsed.parts);
  return { value, source: parsed.text };
};

const quoted = /'([^'\p{Cc}]*)'|"([^"$`\\\p{Cc}]*)"/uy;
/** What every shell takes as it is. A `=` or `~` within a word is judged apart. */
const bare = /(?:[\w@%+=:,./-]|(?<=[\w])~|\p{L}|\p{N})+/uy;
const redirect = /(?:2>&1|1?>&2|[12]?>>?|<)/y;

/**
 * The words of a line so plain that every shell reads it alike: words, quotes without expansion, and redirections,
 * which are left out. Null for all else. Linear.
 */
export const plainWords = (text: string): string[] | null => {
  if (hasInvisible(text)) return null;
  const words: string[] = [];
  let at = 0;
  let current: string | null = null;
  let isTarget = false;
  const end = (): void => {
    if (current !== null && !isTarget) words.push(current);
    if (current !== null) isTarget = false;
    current = null;
  };
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  while (at < text.length) {
    if (text[at] === ' ' || text[at] === '\t') {
      end();
      at += 1;
      continue;
    }
    const redirected: string | null = current === null && !isTarget ? (take(redirect)?.[0] ?? null) : null;
    if (redirected !== null) {
      isTarget = !redirected.includes('&');
      if (!isTarget && at < text.length && text[at] !== ' ') return null;
      continue;
    }
    const found = take(quoted) ?? take(bare);
    if (found === null) return null;
    // `=ls` is a path in zsh, and `a=~` a home directory anywhere.
    if (current === null && found[0].startsWith('=')) return null;
    current = (current ?? '') + (found[1] ?? found[2] ?? found[0]);
  }
  end();
  return isTarget || words.length === 0 ? null : words;
};
