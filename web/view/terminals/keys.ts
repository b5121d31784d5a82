/** Keys that are not the shell's, and the row of keys a phone lacks. Pure. */
export type TerminalAct = 'copy' | 'paste' | 'find' | 'leave';

export interface Press {
  readonly key: string;
  readonly code: string;
  readonly ctrlKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
  readonly metaKey: boolean;
}

/** Null: the shell's, or the app's when the library has no use for it. ⌘C and ⌘V are the browser's own. */
export const terminalAct = (press: Press, mac: boolean): TerminalAct | null => {
  const { ctrlKey, shiftKey, altKey, metaKey } = press;
  if (mac && metaKey && !ctrlKey && !altKey && !shiftKey && press.code === 'KeyF') return 'find';
  if (!ctrlKey || !shiftKey || altKey || metaKey) return null;
  if (press.key === 'Escape') return 'leave';
  // By place, as Shift changes the letter in some layouts.
  return ({ KeyC: 'copy', KeyV: 'paste', KeyF: 'find' } as const)[press.code] ?? null;
};

export interface Sticky {
  readonly ctrl: boolean;
  readonly alt: boolean;
}

/** The next typed character with the modifiers that were pressed on the row before it. */
export const withSticky = (data: string, { ctrl, alt }: Sticky): string => {
  if ([...data].length !== 1) return data;
  const code = data.toUpperCase().charCodeAt(0);
  // @ A–Z [ \ ] ^ _ and space have a control code each; ? is delete.
  const control =
    code >= 0x40 && code <= 0x5f
      ? String.fromCharCode(code & 0x1f)
      : data === ' '
        ? '\x00'
        : data === '?'
          ? '\x7f'
          : data;
  return (alt ? '\x1b' : '') + (ctrl ? control : data);
};

export const rowKeys = ['escape', 'tab', 'ctrl', 'alt', 'left', 'down', 'up', 'right', '|', '/', '-', '~'] as const;
export type RowKey = (typeof rowKeys)[number];
const arrows: Readonly<Record<string, string>> = { up: 'A', down: 'B', right: 'C', left: 'D' };

/** What a key of the row sends; null for the two that stick. `application`: the program asked for the other arrows. */
export const rowSends = (key: RowKey, application: boolean, sticky: Sticky): string | null => {
  if (key === 'ctrl' || key === 'alt') return null;
  if (key === 'escape') return '\x1b';
  if (key === 'tab') return '\t';
  const arrow = arrows[key];
  if (arrow === undefined) return withSticky(key, sticky);
  const modifier = 1 + (sticky.alt ? 2 : 0) + (sticky.ctrl ? 4 : 0);
  return modifier > 1 ? `\x1b[1;${modifier}${arrow}` : `\x1b${application ? 'O' : '['}${arrow}`;
};
