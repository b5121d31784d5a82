/**
 * Text whose every character can be seen: what a screen would hide, reorder or merge is written out as ⟨U+202E⟩ (R-13,
 * T37). For cards, paths, commands and headlines, where the eye decides; prose keeps its characters.
 */

/** A run of plain text, or one character written out. */
export interface Span {
  readonly text: string;
  readonly escaped: boolean;
}

/**
 * Controls, format characters (bidirectional, zero width, tags), separators that look like a space or a new line,
 * surrogates standing alone, private and unassigned characters, variation selectors, fillers drawn as nothing.
 */
const hidden =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u00A0\u1680\u2000-\u200A\u202F\u205F\u3000\u115F\u1160\u3164\uFFA0\u2800\u034F\u17B4\u17B5\u180B-\u180F\uFE00-\uFE0F\u{E0100}-\u{E01EF}]/u;
/** Marks that pile up on one base letter; two are in real use, a third starts a tower. */
const mark = /\p{M}/u;
const maxMarks = 2;

const escape = (char: string): string =>
  `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

/** `lines`: new lines and tabs stay as they are, because the place shows them (a diff, a command block). */
export const inertSpans = (text: string, options: { readonly lines?: boolean } = {}): Span[] => {
  const spans: Span[] = [];
  let plain = '';
  let marks = 0;
  const flush = (): void => {
    if (plain !== '') spans.push({ text: plain, escaped: false });
    plain = '';
  };
  for (const char of text) {
    marks = mark.test(char) ? marks + 1 : 0;
    const shown = options.lines === true && (char === '\n' || char === '\t');
    if (shown || (!hidden.test(char) && marks <= maxMarks)) {
      plain += char;
      continue;
    }
    flush();
    spans.push({ text: escape(char), escaped: true });
  }
  flush();
  return spans;
};

export const inert = (text: string, options: { readonly lines?: boolean } = {}): string =>
  inertSpans(text, options)
    .map((span) => span.text)
    .join('');

/** Something in it would not be seen as it is. */
export const hasHidden = (text: string): boolean => inertSpans(text, { lines: true }).some((span) => span.escaped);
