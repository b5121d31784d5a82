/** The page's side of the highlighter: one worker, started by the first code block in view; results kept. */
import { wrap, type Remote } from 'comlink';
import type { LanguageRegistration } from 'shiki/core';
import { scriptUrl } from '#lib/link/trusted.ts';
import type { Highlighter, Run } from './highlight.worker.ts';
import workerUrl from './highlight.worker.ts?worker&url';
import { grammars, languageOf, type Language } from './languages.ts';

export type { Run } from './highlight.worker.ts';

/** Code above this stays plain: colouring it would take seconds and help nobody. */
const maxUnits = 200_000;
/** Blocks kept; a long transcript has a few hundred in view over its life. */
const maxKept = 300;
const idleMs = 60_000;

let worker: Worker | null = null;
let remote: Remote<Highlighter> | null = null;
let idle: ReturnType<typeof setTimeout> | undefined;
const loaded = new Map<Language, Promise<void>>();
const kept = new Map<string, readonly (readonly Run[])[]>();

const stop = (): void => {
  worker?.terminate();
  worker = null;
  remote = null;
  loaded.clear();
};

const open = (): Remote<Highlighter> => {
  clearTimeout(idle);
  idle = setTimeout(stop, idleMs);
  if (remote !== null) return remote;
  worker = new Worker(scriptUrl(workerUrl), { type: 'module', name: 'highlight' });
  remote = wrap<Highlighter>(worker);
  return remote;
};

const load = (highlighter: Remote<Highlighter>, lang: Language): Promise<void> => {
  const known = loaded.get(lang);
  if (known !== undefined) return known;
  const loading = grammars[lang]().then((module) => highlighter.load(module.default as LanguageRegistration[]));
  loaded.set(lang, loading);
  return loading;
};

/** `hint` is a fence's info word or a file name. Null when there is no grammar, or colouring failed: looks only. */
export const highlight = async (text: string, hint: string): Promise<readonly (readonly Run[])[] | null> => {
  const lang = languageOf(hint);
  if (lang === null || text.length > maxUnits) return null;
  const key = `${lang}\0${text}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  try {
    const highlighter = open();
    await load(highlighter, lang);
    const lines = await highlighter.tokens(text, lang);
    kept.set(key, lines);
    if (kept.size > maxKept) kept.delete(kept.keys().next().value ?? '');
    return lines;
  } catch (cause) {
    console.warn('highlight: shown without colours', cause);
    return null;
  }
};

/** A document coloured part by part, where somebody looks. Parts are given in any order; in order they continue each other. */
export const paintPart = async (
  document: string,
  part: number,
  text: string,
  lang: Language,
): Promise<readonly (readonly Run[])[] | null> => {
  try {
    const highlighter = open();
    await load(highlighter, lang);
    return await highlighter.part(document, part, text, lang);
  } catch (cause) {
    console.warn('highlight: shown without colours', cause);
    return null;
  }
};
