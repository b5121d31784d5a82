/**
 * Options of programs that run another program, as data. The rule not to break: an option that is not in the grammar,
 * or a word that is not known, ends the reading; where the inner command begins is never guessed. Pure.
 */
import type { Word } from './sheet.ts';

/** Letters and long names, with and without a value. `attached`: letters whose value, if any, is in the same word. */
export interface Grammar {
  readonly flags?: string;
  readonly values?: string;
  readonly attached?: string;
  readonly longFlags?: string;
  readonly longValues?: string;
  /** Also takes `-5` (nice) or `+o` (shells). */
  readonly odd?: RegExp;
}
export interface Option {
  readonly name: string;
  readonly value: Word | null;
}
export interface Split {
  readonly options: readonly Option[];
  readonly rest: readonly Word[];
}

const has = (list: string | undefined, name: string): boolean => list !== undefined && list.split(' ').includes(name);

/** Letters of one word; null when one is unknown. `next` is the word after it. */
const cluster = (
  letters: string,
  next: Word | undefined,
  grammar: Grammar,
): { options: Option[]; took: boolean } | null => {
  const options: Option[] = [];
  for (let at = 0; at < letters.length; at += 1) {
    const name = letters[at] ?? '';
    const tail = letters.slice(at + 1);
    if (grammar.attached?.includes(name) === true)
      return { options: [...options, { name, value: { value: tail, source: tail } }], took: false };
    if (grammar.values?.includes(name) === true) {
      if (tail !== '') return { options: [...options, { name, value: { value: tail, source: tail } }], took: false };
      if (next === undefined) return null;
      return { options: [...options, { name, value: next }], took: true };
    }
    if (grammar.flags?.includes(name) !== true) return null;
    options.push({ name, value: null });
  }
  return { options, took: false };
};

const long = (text: string, next: Word | undefined, grammar: Grammar): { options: Option[]; took: boolean } | null => {
  const equals = text.indexOf('=');
  const name = text.slice(0, equals === -1 ? undefined : equals);
  const isValued = has(grammar.longValues, name);
  if (!isValued && !has(grammar.longFlags, name)) return null;
  if (equals !== -1) {
    const value = text.slice(equals + 1);
    return { options: [{ name, value: { value, source: value } }], took: false };
  }
  if (!isValued) return { options: [{ name, value: null }], took: false };
  return next === undefined ? null : { options: [{ name, value: next }], took: true };
};

/** The options before the first operand, and all after them; null when that cannot be told. */
export const split = (args: readonly Word[], grammar: Grammar): Split | null => {
  const options: Option[] = [];
  let at = 0;
  for (; at < args.length; at += 1) {
    const text = args[at]?.value ?? null;
    if (text === null) return null;
    if (text === '--') return { options, rest: args.slice(at + 1) };
    if (grammar.odd?.test(text) === true) continue;
    if (!text.startsWith('-') || text === '-') break;
    const next = args[at + 1];
    const found = text.startsWith('--') ? long(text.slice(2), next, grammar) : cluster(text.slice(1), next, grammar);
    if (found === null) return null;
    // A value that is not known may be several words once it is expanded.
    if (found.options.some(({ value }) => value !== null && value.value === null)) return null;
    options.push(...found.options);
    if (found.took) at += 1;
  }
  return { options, rest: args.slice(at) };
};

export const valueOf = (options: readonly Option[], ...names: readonly string[]): Word | undefined =>
  options.findLast(({ name, value }) => names.includes(name) && value !== null)?.value ?? undefined;
export const isSet = (options: readonly Option[], ...names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));
