/**
 * A name of a stranger inside a text of ours. The rule not to break: nothing in it can begin a line or act on a screen.
 * Used where profile, map and excerpts of a workspace are put into words.
 */
export const quoted = (name: string): string =>
  JSON.stringify(name).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`,
  );
