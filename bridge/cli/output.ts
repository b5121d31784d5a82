/** What verbs print: plain lines or one JSON document a line. Text from agents is made inert before a terminal sees it. */
const colourful = (): boolean =>
  process.stdout.isTTY === true && process.env['NO_COLOR'] === undefined && process.env['TERM'] !== 'dumb';

const sgr = (code: number) => (text: string) => (colourful() ? `\u001b[${code}m${text}\u001b[0m` : text);
export const bold = sgr(1);
export const dim = sgr(2);

export const print = (line = ''): void => void process.stdout.write(`${line}\n`);
export const printJson = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`);
export const warn = (line: string): void => void process.stderr.write(`${line}\n`);

/** Control, bidirectional, zero-width and tag characters as visible escapes; line ends and tabs stay. */
export const inert = (text: string): string =>
  text.replaceAll(
    // eslint's no-control-regex is off: controls are the point here.
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );

export const when = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').slice(0, 19);

/** Columns padded to their widest cell. */
export const table = (rows: readonly (readonly string[])[]): void => {
  const widths = rows.reduce<number[]>((all, row) => row.map((cell, at) => Math.max(all[at] ?? 0, cell.length)), []);
  for (const row of rows)
    print(row.map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0))).join('  '));
};
