/** Full text search of the offline copy, as in the bridge: every word must occur; newest first; marked-up snippets. */
import type { AnyEvent } from '#protocol/events.ts';

const textOf = (event: AnyEvent): string => {
  const { data } = event;
  if (event.type === 'message' && typeof data.text === 'string') return data.text;
  if (event.type === 'tool.called' && typeof data.title === 'string') return data.title;
  if (event.type === 'approval.requested') return (data as { facts?: { headline?: string } }).facts?.headline ?? '';
  if (event.type === 'notice' && typeof data.sentence === 'string') return data.sentence;
  return '';
};

const fold = (text: string): string => text.toLocaleLowerCase();

export const wordsOf = (query: string): readonly string[] =>
  fold(query)
    .split(/\s+/u)
    .filter((word) => word.length > 0);

const before = 40;
const after = 120;
/** Around the first match; each match between U+0001 and U+0002. */
export const snippetOf = (text: string, words: readonly string[]): string | null => {
  const folded = fold(text);
  // Folding may change lengths in a few languages; positions are then those of the folded text.
  const shown = folded.length === text.length ? text : folded;
  if (words.length === 0 || !words.every((word) => folded.includes(word))) return null;
  const first = Math.min(...words.map((word) => folded.indexOf(word)));
  const start = Math.max(0, first - before);
  const end = Math.min(shown.length, first + after);
  let marked = '';
  for (let at = start; at < end;) {
    const hit = words.find((word) => folded.startsWith(word, at));
    marked += hit === undefined ? shown[at] : `\u0001${shown.slice(at, at + hit.length)}\u0002`;
    at += hit?.length ?? 1;
  }
  return `${start > 0 ? '…' : ''}${marked.replaceAll(/\s+/gu, ' ')}${end < shown.length ? '…' : ''}`;
};

export interface Found {
  readonly seq: number;
  readonly at: number;
  readonly type: string;
  readonly snippet: string;
}
export const findIn = (event: AnyEvent, words: readonly string[]): Found | null => {
  const text = textOf(event);
  const snippet = text === '' ? null : snippetOf(text, words);
  return snippet === null ? null : { seq: event.seq, at: event.at, type: event.type, snippet };
};
