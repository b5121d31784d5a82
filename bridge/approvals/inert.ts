/** What hides in text (T37, CVE-2021-42574): found for the risks, escaped in the bridge's own sentences. Pure. */

/**
 * Controls but tab and line ends, format characters (bidirectional, zero-width, tags, byte order mark), line and
 * paragraph separators, variation selectors, fillers, half characters; and a carriage return that is no line end.
 */
const invisible =
  /[\0-\x08\v\f\x0e-\x1f\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]|\r(?!\n)/u;
const everyInvisible = new RegExp(`${invisible.source}|[\\r\\n\\t]`, 'gu');
/** More marks on one letter than any script uses. */
const markFlood = /\p{M}{6,}/u;

export const hasInvisible = (text: string): boolean => invisible.test(text) || markFlood.test(text);
export const hasHiddenSpace = (text: string): boolean => /[ \u00a0\u2000-\u200a\u3000]{32,}/.test(text);

/** One line in which every character can be seen: `\u{202e}` for what cannot. */
export const visible = (text: string): string =>
  text.replace(everyInvisible, (found) => `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`).toWellFormed();
