/**
 * Text as a review looks at it: folded, so that look-alike and invisible characters hide nothing from a rule; shown, so
 * that nothing in evidence acts or hides on a screen; and by line. Pure.
 */
import { limits } from '#protocol/limits.ts';

/** Letters of other scripts that look like ASCII ones; what NFKC does not fold. A small table for words, not for names. */
const lookAlikes = new Map(
  Object.entries({
    a: 'аα', c: 'сϲ', e: 'еε', h: 'һ', i: 'іιı', j: 'ј', k: 'κк', l: 'ӏ', m: 'м', n: 'п', o: 'оοօ', p: 'рρ',
    r: 'г', s: 'ѕ', t: 'тτ', u: 'υս', v: 'ν', w: 'ѡ', x: 'хχ', y: 'уγ', "'": '’‘', '-': '‐‑‒–—',
  }).flatMap(([plain, others]) => [...others].map((other) => [other, plain] as const)),
); // prettier-ignore

const invisible =
  /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\u{e0000}-\u{e0fff}]/gu;

/** Characters that are drawn as nothing and spell ASCII to a model. */
export const tagged = (text: string): string =>
  [...text]
    .flatMap((sign) => {
      const code = sign.codePointAt(0) ?? 0;
      return code >= 0xe0020 && code <= 0xe007e ? [String.fromCodePoint(code - 0xe0000)] : [];
    })
    .join('');

/** NFKC, lower case, look-alikes and accents as ASCII, nothing invisible, one space for any. */
export const fold = (text: string): string => {
  const plain = /^[\x00-\x7f]*$/.test(text)
    ? text
    : [
        ...text
          .normalize('NFKC')
          .replace(invisible, '')
          .normalize('NFD')
          .replace(/\p{Mn}/gu, '')
          .toLowerCase(),
      ]
        .map((sign) => lookAlikes.get(sign) ?? sign)
        .join('');
  return plain.toLowerCase().replace(/[\s*_`>#]+/g, ' ');
};

/** What acts or hides is written as an escape, and what is cut says so. At most `limits.trustEvidenceUnits`. */
export const shown = (text: string, maxUnits: number = limits.trustEvidenceUnits): string => {
  const head = text
    .slice(0, maxUnits * 2)
    .trimEnd()
    .toWellFormed();
  const whole = head.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\u034f\u115f\u1160\u{e0000}-\u{e0fff}\ufe00-\ufe0f]/gu,
    escape,
  );
  return whole.length <= maxUnits && text.trimEnd().length <= head.length
    ? whole
    : `${whole.slice(0, maxUnits - 1).toWellFormed()}…`;
};
const escape = (sign: string): string => {
  const code = sign.codePointAt(0) ?? 0;
  return sign === '\t' ? ' ' : `\\u{${code.toString(16)}}`;
};

/** One text by line: `lineOf` an index, and the text of a line; both from 1. */
export interface Lines {
  readonly count: number;
  lineOf(index: number): number;
  text(line: number): string;
}

/** Lines are counted when the first is asked for: most texts have nothing to tell. */
export const linesOf = (text: string): Lines => {
  let known: number[] | null = null;
  const starts = (): number[] => (known ??= startsOf(text));
  return {
    get count() {
      return starts().length;
    },
    lineOf: (index) => {
      let [low, high] = [0, starts().length];
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if ((starts()[middle] ?? 0) <= index) low = middle;
        else high = middle;
      }
      return low + 1;
    },
    text: (line) => text.slice(starts()[line - 1] ?? text.length, (starts()[line] ?? text.length + 1) - 1),
  };
};

const startsOf = (text: string): number[] => {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
};
