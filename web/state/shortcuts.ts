/** Shortcuts as data (U-08): each action with its keys; the operator may change any of them. */
import { text } from '#lib/text/en.ts';

export const shortcutIds = [
  'palette',
  'new',
  'approvals',
  'files',
  'changes',
  'terminal',
  'rail',
  'settings',
  'next',
  'previous',
  'composer',
  'context',
  'help',
] as const;
export type ShortcutId = (typeof shortcutIds)[number];

/** `Mod` is ⌘ on a Mac and Ctrl elsewhere. Letters are written in upper case, marks as they are typed. */
export const standardKeys: Readonly<Record<ShortcutId, string>> = {
  palette: 'Mod+K',
  new: 'Mod+Shift+O',
  approvals: 'Mod+Shift+A',
  files: 'Mod+Shift+F',
  changes: 'Mod+Shift+G',
  terminal: 'Mod+Shift+Y',
  rail: 'Mod+B',
  settings: 'Mod+,',
  next: 'Alt+ArrowDown',
  previous: 'Alt+ArrowUp',
  composer: '/',
  context: 'Mod+Shift+L',
  help: '?',
};

export const shortcutNames: Readonly<Record<ShortcutId, string>> = {
  palette: text.shortcuts.palette,
  new: text.shortcuts.newConversation,
  approvals: text.shortcuts.approvals,
  files: text.shortcuts.files,
  changes: text.shortcuts.changes,
  terminal: text.shortcuts.terminal,
  rail: text.shortcuts.rail,
  settings: text.shortcuts.settings,
  next: text.shortcuts.next,
  previous: text.shortcuts.previous,
  composer: text.shortcuts.composer,
  context: text.shortcuts.context,
  help: text.shortcuts.help,
};

export interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
  readonly isComposing?: boolean;
  readonly keyCode?: number;
}

const modifiers = new Set(['Control', 'Meta', 'Alt', 'Shift', 'AltGraph', 'CapsLock']);

/** The press as it is written above, or null for a lone modifier and for anything inside a composition. */
export const keysOf = (press: KeyPress, mac: boolean): string | null => {
  if (press.isComposing === true || press.keyCode === 229 || modifiers.has(press.key)) return null;
  const key = press.key.length === 1 ? press.key.toUpperCase() : press.key;
  const mod = mac ? press.metaKey : press.ctrlKey;
  const other = mac ? press.ctrlKey : press.metaKey;
  // A mark such as "?" already says that Shift was held; letters and named keys do not.
  const shift = press.shiftKey && (key.length > 1 || key.toLowerCase() !== key.toUpperCase());
  return [mod && 'Mod', other && (mac ? 'Ctrl' : 'Meta'), press.altKey && 'Alt', shift && 'Shift', key]
    .filter(Boolean)
    .join('+');
};

/** Keys without a modifier would fire while one types, so they act only outside of text fields. */
export const needsNoField = (keys: string): boolean => !/^(Mod|Ctrl|Meta|Alt)\+/.test(keys);

export const keysFor = (id: ShortcutId, changed: Readonly<Record<string, string>>): string =>
  changed[id] ?? standardKeys[id];

export const shortcutFor = (keys: string, changed: Readonly<Record<string, string>>): ShortcutId | null =>
  shortcutIds.find((id) => keysFor(id, changed) === keys) ?? null;

const macNames: Readonly<Record<string, string>> = { Mod: '⌘', Ctrl: '⌃', Alt: '⌥', Shift: '⇧' };
const names: Readonly<Record<string, string>> = {
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
  Enter: '↵',
  Escape: 'Esc',
};

/** For people: `⌘K` on a Mac, `Ctrl K` elsewhere. */
export const showKeys = (keys: string, mac: boolean): string => {
  const parts = keys
    .split(/\+(?=.)/)
    .map((part) => names[part] ?? (mac ? (macNames[part] ?? part) : part === 'Mod' ? 'Ctrl' : part));
  return parts.join(mac ? '' : ' ');
};

export const onMac = (): boolean => /Mac|iPhone|iPad/.test(navigator.platform);
