/**
 * Markdown that grows (U-41): closed top-level blocks keep their objects, only the open end is read again. The result is
 * the same as reading everything at once; a property test holds this to it.
 */
import { normalise, parseTops, type Top } from './tree.ts';

export interface Parsed {
  /** Normalised. */
  readonly text: string;
  readonly tops: readonly Top[];
  /** A link definition was seen: it may reach any block, so everything is read each time. */
  readonly defines: boolean;
}

const whole = (text: string): Parsed => ({ text, ...parseTops(text) });

/**
 * Where reading has to begin again. The last block is open; the one before it may still take it in: after `1. a`, the
 * line `2` is a paragraph until its dot arrives and makes it an item of the list.
 */
const reopen = (tops: readonly Top[]): number => Math.max(0, tops.length - 2);

/** `previous` is what an earlier call gave for the same message, or null. */
export const advance = (previous: Parsed | null, source: string): Parsed => {
  const text = normalise(source);
  if (previous === null || previous.defines || !text.startsWith(previous.text)) return whole(text);
  if (text.length === previous.text.length) return previous;
  const keep = reopen(previous.tops);
  const from = previous.tops[keep]?.at;
  if (from === undefined || keep === 0) return whole(text);
  const tail = parseTops(text.slice(from), from);
  if (tail.defines) return whole(text);
  return { text, tops: [...previous.tops.slice(0, keep), ...tail.tops], defines: false };
};
