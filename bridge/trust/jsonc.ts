/**
 * The values of a JSON text with where they stand, as forgiving as the programs that read it (comments, trailing
 * commas). Pure; needs lines, which no parser at hand tells. What cannot be read at all ends the walk and is said.
 */

export interface Leaf {
  /** Names and indexes from the root. */
  readonly path: readonly string[];
  readonly value: string | number | boolean | null;
  /** Index into the text. */
  readonly at: number;
}
export interface Parsed {
  readonly leaves: readonly Leaf[];
  /** Not JSON from some place on: what follows was not seen. */
  readonly broken: boolean;
}

const token = /\s+|\/\/[^\n]*|\/\*[^]*?\*\/|("(?:[^"\\\n]|\\[^\n])*")|([{}[\],:])|(-?[\w.+]+)/gy;
const maxDepth = 64;
const maxLeaves = 20_000;

interface Open {
  readonly list: boolean;
  /** Name or index the next value gets. */
  name: string;
  count: number;
}

export const leavesOf = (text: string): Parsed => {
  const leaves: Leaf[] = [];
  const stack: Open[] = [];
  let pending: string | null = null;
  token.lastIndex = 0;
  const put = (value: Leaf['value'], at: number): void => {
    leaves.push({ path: stack.map(({ name }) => name), value, at });
  };
  const next = (): void => {
    const top = stack.at(-1);
    if (top?.list !== true) return;
    top.count += 1;
    top.name = String(top.count);
  };
  while (token.lastIndex < text.length) {
    const at = token.lastIndex;
    const match = token.exec(text);
    if (match === null || leaves.length > maxLeaves) return { leaves, broken: true };
    const [, quoted, sign, word] = match;
    const top = stack.at(-1);
    if (quoted !== undefined) {
      const value = unquoted(quoted);
      if (top !== undefined && !top.list && pending === null) pending = value;
      else put(value, at);
    } else if (word !== undefined) put(wordValue(word), at);
    else if (sign === ':' && top !== undefined && pending !== null) top.name = pending;
    else if (sign === '{' || sign === '[') {
      if (stack.length === maxDepth) return { leaves, broken: true };
      stack.push({ list: sign === '[', name: sign === '[' ? '0' : '', count: 0 });
      pending = null;
    } else if (sign === '}' || sign === ']') {
      stack.pop();
    } else if (sign === ',') {
      pending = null;
      next();
    }
  }
  return { leaves, broken: stack.length > 0 };
};

const unquoted = (quoted: string): string => {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted.slice(1, -1); // an escape JSON does not know: its words are enough for a rule
  }
};

const wordValue = (word: string): Leaf['value'] =>
  word === 'true'
    ? true
    : word === 'false'
      ? false
      : word === 'null'
        ? null
        : Number.isNaN(Number(word))
          ? word
          : Number(word);
