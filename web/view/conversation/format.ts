/** Shapes of text that only the conversation needs; numbers, sizes and times are in web/text/format.ts. */

const compactNumber = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
export const compact = (value: number): string => compactNumber.format(value);

/** `29:04` left of `ms`; never below zero. */
export const countdown = (ms: number): string => {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
};

/** `path` without the workspace in front, when it lies in it. */
export const within = (workspacePath: string | null | undefined, path: string): string =>
  workspacePath !== null && workspacePath !== undefined && workspacePath !== '' && path.startsWith(`${workspacePath}/`)
    ? path.slice(workspacePath.length + 1)
    : path;

/**
 * Address that opens a file of the workspace beside its conversation; null for what does not lie in it. `path` is
 * absolute or from the workspace. The bridge judges the path again; this only keeps links away from where none can lead.
 */
export const fileLink = (
  conversationId: string,
  workspacePath: string | null | undefined,
  path: string,
  line?: number,
): string | null => {
  const inside = within(workspacePath, path);
  if (inside === '' || inside.startsWith('/') || inside.split('/').includes('..')) return null;
  const query = new URLSearchParams({ file: inside, ...(line === undefined ? {} : { line: String(line) }) });
  return `/c/${encodeURIComponent(conversationId)}?${query}`;
};

export interface Ends {
  readonly head: string;
  readonly tail: string;
  readonly hiddenUnits: number;
}

/** Head and tail of a text above `maxUnits`, cut at line ends where there are some near; null when it fits. */
export const headAndTail = (text: string, maxUnits: number): Ends | null => {
  if (text.length <= maxUnits) return null;
  const part = Math.floor(maxUnits / 2);
  const headBreak = text.lastIndexOf('\n', part);
  const headEnd = whole(text, headBreak > part / 2 ? headBreak + 1 : part);
  const tailBreak = text.indexOf('\n', text.length - part);
  const tailStart = whole(
    text,
    tailBreak !== -1 && tailBreak < text.length - part / 2 ? tailBreak + 1 : text.length - part,
  );
  return { head: text.slice(0, headEnd), tail: text.slice(tailStart), hiddenUnits: tailStart - headEnd };
};

/** Never between the halves of a surrogate pair. */
const whole = (text: string, at: number): number => (/[\uDC00-\uDFFF]/.test(text[at] ?? '') ? at - 1 : at);

/** JSON laid out for reading; what is not JSON stays as it came. */
export const pretty = (json: string): string => {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
};
