/** Plain web addresses in a line of a terminal. Pure. */
import { linkTarget } from '#lib/markdown/link.ts';

export interface Found {
  readonly from: number;
  /** Behind the last unit. */
  readonly to: number;
  readonly text: string;
}

const address = /https?:\/\/[^\s"'<>`{}|\\^\u0000-\u001f]{1,2048}/gi;
/** Marks that end a sentence rather than an address, and a bracket that was opened before it. */
const trailing = /[.,;:!?]+$/;

const trimmed = (text: string): string => {
  const cut = text.replace(trailing, '');
  const isOpen = (open: string, close: string): boolean => cut.endsWith(close) && !cut.includes(open);
  return isOpen('(', ')') || isOpen('[', ']') ? cut.slice(0, -1).replace(trailing, '') : cut;
};

export const linksIn = (line: string): Found[] =>
  Array.from(line.matchAll(address), (match) => {
    const text = trimmed(match[0]);
    return { from: match.index, to: match.index + text.length, text };
  }).filter(({ text }) => linkTarget(text, ['http:', 'https:']) !== null);
