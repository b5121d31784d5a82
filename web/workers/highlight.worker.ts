/**
 * Colours code away from the page (U-41): shiki with its JavaScript engine. Answers classes, never styles. Grammars come
 * from the page, which the offline shell caches; chunks a worker imports itself would be missing offline.
 */
import { expose } from 'comlink';
import {
  createCssVariablesTheme,
  createHighlighterCoreSync,
  type GrammarState,
  type LanguageRegistration,
  type ThemedToken,
} from 'shiki/core';
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript';

/** A run of one line: class suffix (`''` for plain) and text. */
export type Run = readonly [kind: string, text: string];

// The first line of a language compiles its grammar; with the default of 500 ms it came out cut off on a slow machine.
const lineMs = 5000;
const theme = createCssVariablesTheme({ name: 'roles', variablePrefix: '--x-', fontStyle: false });
const highlighter = createHighlighterCoreSync({
  themes: [theme],
  langs: [],
  engine: createJavaScriptRegexEngine({ forgiving: true }),
});

/** `var(--x-token-string-expression)` → `string-expression`. */
const kind = (colour: string | undefined): string => /^var\(--x-token-([a-z-]+)\)$/.exec(colour ?? '')?.[1] ?? '';

const runsOf = (lines: readonly ThemedToken[][]): Run[][] =>
  lines.map((line) => line.map((token) => [kind(token.color), token.content] as const));

/** Longer lines stay plain: minified code, data. */
const lineUnits = 2000;
/** Where the grammar was at the end of each part of a document; of the last few documents. */
const states = new Map<string, Map<number, GrammarState>>();
const maxDocuments = 4;
const statesOf = (document: string): Map<number, GrammarState> => {
  const known = states.get(document) ?? new Map<number, GrammarState>();
  states.delete(document);
  states.set(document, known);
  if (states.size > maxDocuments) states.delete(states.keys().next().value ?? '');
  return known;
};

const api = {
  load(grammars: LanguageRegistration[]): void {
    highlighter.loadLanguageSync(grammars);
  },
  tokens(text: string, lang: string): Run[][] {
    return runsOf(highlighter.codeToTokensBase(text, { lang, theme: 'roles', tokenizeTimeLimit: lineMs }));
  },
  /** One part of a document, as it continues the part before where that was painted; else as if it were the first. */
  part(document: string, part: number, text: string, lang: string): Run[][] {
    const known = statesOf(document);
    const before = known.get(part - 1);
    const lines = highlighter.codeToTokensBase(text, {
      ...{ lang, theme: 'roles', tokenizeTimeLimit: lineMs, tokenizeMaxLineLength: lineUnits },
      ...(before === undefined ? {} : { grammarState: before }),
    });
    const after = (highlighter.getLastGrammarState as (lines: ThemedToken[][]) => GrammarState | undefined)(lines);
    if (after !== undefined) known.set(part, after);
    return runsOf(lines);
  },
};
export type Highlighter = typeof api;
expose(api);
