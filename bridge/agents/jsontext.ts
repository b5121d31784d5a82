/**
 * The exact text of a member inside a JSON document that JSON.parse has accepted. What an operator approves is the text
 * that was received, not what floats made of it (1e400, 0.10, 12345678901234567890 all change when re-serialised).
 * Used by connection.ts; the caller must have parsed `json` already: no syntax is checked here.
 */

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

const skipSpace = (json: string, at: number): number => {
  let index = at;
  while (isSpace(json.charCodeAt(index))) index += 1;
  return index;
};

/** Index after the string that begins at `at`. */
const endOfString = (json: string, at: number): number => {
  let index = at + 1;
  while (json[index] !== '"') index += json[index] === '\\' ? 2 : 1;
  return index + 1;
};

/** Index after the value that begins at `at`; brackets inside strings are passed over with their string. */
const endOfValue = (json: string, at: number): number => {
  const first = json[at];
  if (first === '"') return endOfString(json, at);
  if (first !== '{' && first !== '[') {
    let index = at;
    while (index < json.length && !',]}'.includes(json[index] as string) && !isSpace(json.charCodeAt(index)))
      index += 1;
    return index;
  }
  let depth = 0;
  let index = at;
  do {
    const char = json[index];
    if (char === '"') {
      index = endOfString(json, index);
      continue;
    }
    if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    index += 1;
  } while (depth > 0);
  return index;
};

/** Start and end of the member `name` of the object that begins at `at`; of the last one, as JSON.parse does. */
const member = (json: string, at: number, name: string): readonly [number, number] | null => {
  if (json[at] !== '{') return null;
  let found: readonly [number, number] | null = null;
  let index = skipSpace(json, at + 1);
  while (json[index] === '"') {
    const keyEnd = endOfString(json, index);
    const key: unknown = JSON.parse(json.slice(index, keyEnd)); // keys may be written with escapes
    const start = skipSpace(json, skipSpace(json, keyEnd) + 1);
    const end = endOfValue(json, start);
    if (key === name) found = [start, end];
    index = skipSpace(json, end);
    if (json[index] === ',') index = skipSpace(json, index + 1);
  }
  return found;
};

/** Exact text of the value at `path` (object members only), or undefined where there is none. */
export const textAt = (json: string, path: readonly string[]): string | undefined => {
  let at = skipSpace(json, 0);
  let end = json.length;
  for (const name of path) {
    const found = member(json, at, name);
    if (found === null) return undefined;
    [at, end] = found;
  }
  return json.slice(at, end);
};
