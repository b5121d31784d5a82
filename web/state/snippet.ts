/** Search snippets: matches stand between U+0001 and U+0002; everything else is inert text. */
import { visible } from '#lib/text/format.ts';

export interface SnippetPart {
  readonly text: string;
  readonly hit: boolean;
}

export const snippetParts = (snippet: string): readonly SnippetPart[] =>
  snippet
    .split(/(\u0001[^\u0002]*\u0002)/u)
    .filter((part) => part !== '')
    .map((part) =>
      part.startsWith('\u0001') ? { text: visible(part.slice(1, -1)), hit: true } : { text: visible(part), hit: false },
    );
