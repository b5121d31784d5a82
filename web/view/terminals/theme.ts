/** The terminal's colours, read from the page's tokens as they are now: light, dark or high contrast. */
import type { ITheme } from '@xterm/xterm';

const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const;
type Name = (typeof names)[number];
const bright = (name: Name): `bright${Capitalize<Name>}` =>
  `bright${(name.charAt(0).toUpperCase() + name.slice(1)) as Capitalize<Name>}`;

/** `within` has the class `ansi` on it or above it, which holds the sixteen colours. */
export const themeOf = (within: HTMLElement): ITheme => {
  const probe = document.createElement('i');
  within.append(probe);
  const colour = (token: string): string => {
    probe.style.color = `var(${token})`;
    return getComputedStyle(probe).color;
  };
  const background = colour('--paper');
  const theme: Record<string, string> = {
    background,
    foreground: colour('--ink'),
    cursor: colour('--ink'),
    cursorAccent: background,
    selectionBackground: colour('--select'),
    selectionInactiveBackground: colour('--paper-3'),
    scrollbarSliderBackground: colour('--line-2'),
    scrollbarSliderHoverBackground: colour('--ink-3'),
    scrollbarSliderActiveBackground: colour('--ink-2'),
    overviewRulerBorder: background,
  };
  for (const name of names) {
    theme[name] = colour(`--t-${name}`);
    theme[bright(name)] = colour(`--t-bright-${name}`);
  }
  probe.remove();
  return theme;
};

/** Runs `changed` whenever the tokens may be others. */
export const onTheme = (changed: () => void): (() => void) => {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  const queries = ['(prefers-color-scheme: dark)', '(prefers-contrast: more)', '(forced-colors: active)'].map((query) =>
    matchMedia(query),
  );
  for (const query of queries) query.addEventListener('change', changed);
  return () => {
    observer.disconnect();
    for (const query of queries) query.removeEventListener('change', changed);
  };
};

/** `#rrggbb`, the only form in which the search takes its colours. */
const hex = (rgb: string): string =>
  `#${(rgb.match(/[\d.]+/g) ?? [])
    .slice(0, 3)
    .map((part) => Math.round(Number(part)).toString(16).padStart(2, '0'))
    .join('')}`;

export const marksOf = (theme: ITheme) => {
  const [mark, edge] = [hex(theme.selectionBackground ?? ''), hex(theme.foreground ?? '')];
  return {
    matchBackground: mark,
    matchOverviewRuler: edge,
    activeMatchBackground: mark,
    activeMatchBorder: edge,
    activeMatchColorOverviewRuler: edge,
  };
};
