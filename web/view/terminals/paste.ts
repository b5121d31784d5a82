/** What is pasted, before a shell sees it (P-03, T74). Pure. */

/** All but tab and new line: an end-of-paste sequence inside the text would let the rest of it run as typed. */
const controls = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

export interface Pasted {
  readonly text: string;
  /** Control characters that were left out. */
  readonly dropped: number;
  readonly lines: readonly string[];
}

export const pasted = (raw: string): Pasted => {
  const plain = raw.replace(/\r\n?/g, '\n');
  const text = plain.replace(controls, '');
  return { text, dropped: plain.length - text.length, lines: text.split('\n') };
};

/** A shell without bracketed paste runs each line as it comes. A single line with its end is one, too. */
export const asks = (paste: Pasted, bracketed: boolean): boolean => !bracketed && paste.lines.length > 1;
