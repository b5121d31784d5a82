/**
 * Colours code away from the page (U-41): shiki with its JavaScript engine. Answers classes, never styles. Grammars come
 * from the page, which the offline shell caches; chunks a worker imports itself would be missing offline.
 */
import { expose } from 'comlink';
import { createCssVariablesTheme, createHighlighterCoreSync, type LanguageRegistration } from 'shiki/core';
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

const api = {
  load(grammars: LanguageRegistration[]): void {
    highlighter.loadLanguageSync(grammars);
  },
  tokens(text: string, lang: string): Run[][] {
    const lines = highlighter.codeToTokensBase(text, { lang, theme: 'roles', tokenizeTimeLimit: lineMs });
    return lines.map((line) => line.map((token) => [kind(token.color), token.content] as const));
  },
};
export type Highlighter = typeof api;
expose(api);
