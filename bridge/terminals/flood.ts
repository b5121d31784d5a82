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
const everyColour = new RegExp(colour.source, 'g');

/** Whether it is nothing but letters, line ends and colours. Whole sequences only. */
export const isPlain = (bytes: Buffer): boolean => {
  const text = bytes.toString('latin1');
  if (other.test(text)) return false;
  for (let at = bytes.indexOf(ESC); at !== -1; at = bytes.indexOf(ESC, colour.lastIndex)) {
    colour.lastIndex = at;
    if (!colour.test(text)) return false;
  }
  return true;
};

/**
 * Of plain pieces those at the end that lead to the same screen as all of them, preceded by the colours that hold there;
 * null where all are needed. They begin at the screen's ground state. `lines`: rows and scrollback, and the rows once
 * more, since the cursor may be anywhere when they begin.
 */
export const lastOf = (pieces: readonly Buffer[], lines: number): Buffer[] | null => {
  let found = 0;
  for (let piece = pieces.length - 1; piece >= 0; piece -= 1) {
    const bytes = pieces[piece] ?? Buffer.alloc(0);
    for (let at = bytes.lastIndexOf(LF); at > 0; at = bytes.lastIndexOf(LF, at - 1)) {
      found += 1;
      // What ended its line at the first column.
      if (found <= lines || bytes[at - 1] !== CR) continue;
      const colours = coloursOf([...pieces.slice(0, piece), bytes.subarray(0, at)]);
      return colours === null ? null : [colours, bytes.subarray(at + 1), ...pieces.slice(piece + 1)];
    }
  }
  return null;
};

/** What holds after them; null where that is more than is carried on. */
const coloursOf = (pieces: readonly Buffer[]): Buffer | null => {
  let colours: string[] = [];
  let size = 0;
  for (const bytes of pieces) {
    if (!bytes.includes(ESC)) continue;
    for (const [whole, numbers] of bytes.toString('latin1').matchAll(everyColour)) {
      if (numbers === '' || numbers === '0') [colours, size] = [[], 0];
      colours.push(whole);
      size += whole.length;
      if (size > limits.terminalColourBytes) return null;
    }
  }
  return Buffer.from(colours.join(''), 'latin1');
};
