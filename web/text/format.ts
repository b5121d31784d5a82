/** Numbers, dates, sizes and paths for people. Everything through Intl, in the browser's own language. */
const number = new Intl.NumberFormat();
const oneDigit = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const dayYear = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'narrow' });

export const formatCount = (value: number): string => number.format(value);

export const formatBytes = (bytes: number): string => {
  if (bytes < 1024) return `${number.format(bytes)} B`;
  if (bytes < 1024 * 1024) return `${oneDigit.format(bytes / 1024)} kB`;
  return `${oneDigit.format(bytes / 1024 / 1024)} MB`;
};

export const formatDuration = (ms: number): string => {
  if (ms < 1000) return `${number.format(Math.round(ms))} ms`;
  if (ms < 60_000) return `${oneDigit.format(ms / 1000)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};

export const formatClock = (at: number): string => clock.format(at);
/** For a title on hover: the whole date and time. */
export const formatExact = (at: number): string => exact.format(at);
export const isoTime = (at: number): string => new Date(at).toISOString();

const startOfDay = (at: number): number => new Date(at).setHours(0, 0, 0, 0);

/** "3 Nov", with the year where it is another; for times ahead. */
export const formatDay = (at: number): string =>
  new Date(at).getFullYear() === new Date().getFullYear() ? day.format(at) : dayYear.format(at);

/** "Chromium 156 on Linux" from a user agent string; what is not recognised stays as it came. */
export const browserName = (userAgent: string): string => {
  const browser = /(Edg|OPR|Firefox|Chrome|Version)\/(\d+)/.exec(userAgent);
  const system = /Android|iPhone|iPad|Windows|Mac OS X|CrOS|Linux/.exec(userAgent)?.[0];
  const names: Readonly<Record<string, string>> = {
    Edg: 'Edge',
    OPR: 'Opera',
    Chrome: 'Chromium',
    Version: 'Safari',
    'Mac OS X': 'macOS',
    CrOS: 'ChromeOS',
  };
  if (browser === null || system === undefined) return userAgent;
  // Edge and Opera name Chrome first and themselves last.
  const own = /(Edg|OPR)\/(\d+)/.exec(userAgent) ?? browser;
  return `${names[own[1] ?? ''] ?? own[1]} ${own[2]} · ${names[system] ?? system}`;
};

/** "now", "5 min ago", "14:02", "3 Nov". */
export const formatWhen = (at: number, now: number): string => {
  const ago = now - at;
  if (ago < 60_000) return relative.format(0, 'second');
  if (ago < 3_600_000) return relative.format(-Math.floor(ago / 60_000), 'minute');
  if (startOfDay(at) === startOfDay(now)) return clock.format(at);
  return new Date(at).getFullYear() === new Date(now).getFullYear() ? day.format(at) : dayYear.format(at);
};

export type DayGroup = 'today' | 'yesterday' | 'week' | 'month' | 'older';
/** The heading of the history a time belongs under. */
export const dayGroup = (at: number, now: number): DayGroup => {
  const days = Math.round((startOfDay(now) - startOfDay(at)) / 86_400_000);
  if (days <= 0) return 'today';
  if (days === 1) return 'yesterday';
  if (days < 7) return 'week';
  return days < 31 ? 'month' : 'older';
};

/** Keeps both ends of a path: the root tells where, the name tells what. */
export const elidePath = (path: string, maxUnits = 48): string => {
  if (path.length <= maxUnits) return path;
  const name = path.slice(path.lastIndexOf('/'));
  if (name.length + 2 >= maxUnits) return `…${path.slice(-(maxUnits - 1))}`;
  return `${path.slice(0, maxUnits - name.length - 1)}…${name}`;
};

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1) || path;

// Control and format characters, separators, variation selectors, and the fillers that render as nothing.
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]/gu;

/** Paths, commands and names with what cannot be seen written out as an escape (U-40). */
export const visible = (text: string): string =>
  text.replace(unseen, (character) =>
    character === '\n' || character === '\t' ? character : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
