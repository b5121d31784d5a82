/**
 * What of a flood need not be parsed, because nothing of it can be seen or found again: lines of plain text and colours
 * that so many others follow that the scrollback has let go of them. The rule not to break: a screen that was spared them
 * is the one that had them all. Pure. Used by `screen.ts`.
 */
import { limits } from '#protocol/limits.ts';

const [LF, CR, ESC] = [0x0a, 0x0d, 0x1b];
/** Anything but letters, tabs, line ends and ESC; U+0080 to U+009F are controls too, and begin with C2. */
const other = /[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\xc2]/;
/** A colour: SGR, of which one without a number or with 0 takes back what was before. */
const colour = /\x1b\[(0?|[\d:;]{1,64})m/y;

/** Where the last `lines` lines of it begin, behind a line that ended at its first column; 0 where there are not so many. */
const startOfLast = (bytes: Buffer, lines: number): number => {
  let at = bytes.length;
  for (let found = 0; found <= lines; found += 1) {
    at = bytes.lastIndexOf(LF, at - 1);
    if (at <= 0) return 0;
  }
  return bytes[at - 1] === CR ? at + 1 : 0;
};

/**
 * The end of `bytes` that leads to the same screen as all of them, preceded by the colours that hold there; null where
 * all are needed. They begin at the screen's ground state and hold whole sequences only. `lines`: rows and scrollback,
 * and the rows once more, since the cursor may be anywhere when they begin.
 */
export const lastOf = (bytes: Buffer, lines: number): Buffer | null => {
  const start = startOfLast(bytes, lines);
  if (start === 0) return null;
  const text = bytes.toString('latin1');
  if (other.test(text)) return null;
  let colours: string[] = [];
  let size = 0;
  for (let at = bytes.indexOf(ESC); at !== -1; at = bytes.indexOf(ESC, colour.lastIndex)) {
    colour.lastIndex = at;
    const found = colour.exec(text);
    if (found === null) return null;
    if (at >= start) continue;
    const [whole, numbers = ''] = found;
    if (numbers === '' || numbers === '0') [colours, size] = [[], 0];
    colours.push(whole);
    size += whole.length;
    if (size > limits.terminalColourBytes) return null;
  }
  return Buffer.concat([Buffer.from(colours.join(''), 'latin1'), bytes.subarray(start)]);
};
