/**
 * What a program may make a terminal do (T72 to T74). The bridge has cut and clamped before; here is
 * what only the page knows: how large the screen is, whether anyone is there to be answered, what has to be asked first.
 * A handler that answers true has dealt with the sequence; false leaves it to the library.
 */
import { limits } from '#protocol/limits.ts';

export interface GuardedParser {
  registerCsiHandler(
    id: { prefix?: string; intermediates?: string; final: string },
    each: (params: (number | number[])[]) => boolean,
  ): unknown;
  registerDcsHandler(id: { intermediates?: string; final: string }, each: (data: string) => boolean): unknown;
  registerOscHandler(id: number, each: (data: string) => boolean): unknown;
}
export interface GuardParts {
  readonly size: () => { readonly columns: number; readonly rows: number };
  /** A live terminal with the keyboard, whose size is ours, and not while a replay is drawn. */
  readonly answers: () => boolean;
  /** The program wants this text on the clipboard; nothing is put there before it was asked for. */
  readonly offer: (text: string) => void;
  /** Does a counted sequence again with as much as the screen holds. */
  readonly again: (final: string, count: number) => void;
}

/** What counted sequences do, inside the pinned version; checked by a test. */
const counted = {
  '@': 'insertChars',
  P: 'deleteChars',
  X: 'eraseChars',
  I: 'cursorForwardTab',
  Z: 'cursorBackwardTab',
  C: 'cursorForward',
  S: 'scrollUp',
  T: 'scrollDown',
  L: 'insertLines',
  M: 'deleteLines',
  B: 'cursorDown',
  b: 'repeatPrecedingCharacter',
} as const;
interface Inside {
  readonly _core: {
    readonly _inputHandler: Record<string, (params: { length: number; params: number[] }) => unknown>;
  };
}

/** Does a counted sequence of `terminal` with another count, where it stands. */
export const again = (terminal: unknown, final: string, count: number): void => {
  const { _inputHandler: inside } = (terminal as Inside)._core;
  inside[counted[final as keyof typeof counted]]?.({ length: 1, params: [count] });
};

/** Counts that go along a line, and those that go down the screen. */
const along = ['@', 'P', 'X', 'I', 'Z', 'C'] as const;
const down = ['S', 'T', 'L', 'M', 'B'] as const;

const decoded = (base64: string): string | null => {
  try {
    const bytes = Uint8Array.from(atob(base64), (unit) => unit.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null; // not base64, or no text
  }
};

/** What OSC 52 would put on the clipboard; null for a question, for nothing, and for what is no text. */
export const clipboardText = (data: string): string | null => {
  if (data.length > limits.terminalSequenceBytes) return null;
  const body = data.slice(data.indexOf(';') + 1);
  const text = body === '?' || body === '' ? null : decoded(body);
  return text === '' ? null : text;
};

const guardCounts = (parser: GuardedParser, { size, again }: GuardParts): void => {
  const clamp = (final: string, most: () => number): void => {
    parser.registerCsiHandler({ final }, ([count]) => {
      const max = most();
      if (typeof count !== 'number' || count <= max) return false;
      again(final, max);
      return true;
    });
  };
  for (const final of along) clamp(final, () => size().columns);
  for (const final of down) clamp(final, () => size().rows);
  clamp('b', () => size().columns * size().rows);
};

const guardQuestions = (parser: GuardedParser, { answers }: GuardParts): void => {
  const ask = (): boolean => !answers();
  for (const prefix of ['', '>', '=']) parser.registerCsiHandler({ prefix, final: 'c' }, ask);
  for (const prefix of ['', '?']) {
    parser.registerCsiHandler({ prefix, final: 'n' }, ask);
    parser.registerCsiHandler({ prefix, intermediates: '$', final: 'p' }, ask);
  }
  parser.registerCsiHandler({ prefix: '>', final: 'q' }, ask);
  // Questions about the window, and orders to it: it is ours.
  parser.registerCsiHandler({ final: 't' }, () => true);
  parser.registerDcsHandler({ intermediates: '$', final: 'q' }, ask);
  parser.registerDcsHandler({ intermediates: '+', final: 'q' }, ask);
  for (const id of [4, 10, 11, 12])
    parser.registerOscHandler(id, (data) =>
      /(^|;)\?/.test(data) ? ask() : data.length > limits.terminalSequenceBytes,
    );
};

export const guard = (parser: GuardedParser, parts: GuardParts): void => {
  guardCounts(parser, parts);
  guardQuestions(parser, parts);
  // Titles come from the bridge as text.
  for (const id of [0, 1, 2]) parser.registerOscHandler(id, () => true);
  parser.registerOscHandler(8, (data) => data.length > limits.terminalSequenceBytes);
  parser.registerOscHandler(52, (data) => {
    const text = clipboardText(data);
    if (text !== null && parts.answers()) parts.offer(text);
    return true;
  });
};
