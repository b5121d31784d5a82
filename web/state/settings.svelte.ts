/** The app's own settings: they belong to this browser and are read before the first paint by static/theme.js. */
export type Theme = 'system' | 'light' | 'dark' | 'contrast';
export type Density = 'comfortable' | 'compact';
export type SendKey = 'enter' | 'modEnter';

interface Stored {
  theme: Theme;
  density: Density;
  sendKey: SendKey;
  offline: boolean;
  notify: boolean;
  rail: boolean;
  dockWidth: number;
  diffSplit: boolean;
  diffWrap: boolean;
  terminalFont: number;
  terminalReader: boolean;
  workspaceId: string | null;
  agentId: string | null;
  last: string | null;
  keys: Readonly<Record<string, string>>;
}

const fallback: Stored = {
  theme: 'system',
  density: 'comfortable',
  sendKey: 'enter',
  offline: true,
  notify: false,
  rail: true,
  dockWidth: 420,
  diffSplit: false,
  diffWrap: false,
  terminalFont: 13,
  terminalReader: false,
  workspaceId: null,
  agentId: null,
  last: null,
  keys: {},
};

const storageKey = 'countersign.settings';

const read = (): Stored => {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey) ?? '{}');
    if (typeof stored !== 'object' || stored === null) return fallback;
    const known = Object.entries(stored).filter(([name, value]) => {
      const standard = fallback[name as keyof Stored];
      return (
        Object.hasOwn(fallback, name) &&
        (standard === null ? typeof value === 'string' || value === null : typeof value === typeof standard)
      );
    });
    return { ...fallback, ...(Object.fromEntries(known) as Partial<Stored>) };
  } catch {
    // Storage refused (private mode) or damaged: the defaults work.
    return fallback;
  }
};

export class Settings {
  #all = $state.raw<Stored>(read());

  get theme(): Theme {
    return this.#all.theme;
  }
  get density(): Density {
    return this.#all.density;
  }
  get sendKey(): SendKey {
    return this.#all.sendKey;
  }
  /** Whether conversations are kept in this browser. */
  get offline(): boolean {
    return this.#all.offline;
  }
  get notify(): boolean {
    return this.#all.notify;
  }
  get rail(): boolean {
    return this.#all.rail;
  }
  /** Pixels; for conversations that have no dock state of their own. */
  get dockWidth(): number {
    return this.#all.dockWidth;
  }
  /** Differences side by side where they fit; long lines broken. */
  get diffSplit(): boolean {
    return this.#all.diffSplit;
  }
  get diffWrap(): boolean {
    return this.#all.diffWrap;
  }
  /** Pixels; and whether terminals speak to a screen reader, which costs them speed. */
  get terminalFont(): number {
    return this.#all.terminalFont;
  }
  get terminalReader(): boolean {
    return this.#all.terminalReader;
  }
  /** The workspace last chosen, and the agent last used. */
  get workspaceId(): string | null {
    return this.#all.workspaceId;
  }
  get agentId(): string | null {
    return this.#all.agentId;
  }
  /** The conversation last open. */
  get last(): string | null {
    return this.#all.last;
  }
  /** Shortcuts changed by the operator, by action. */
  get keys(): Readonly<Record<string, string>> {
    return this.#all.keys;
  }

  set(change: Partial<Stored>): void {
    this.#all = { ...this.#all, ...change };
    try {
      localStorage.setItem(storageKey, JSON.stringify(this.#all));
    } catch {
      // Not kept across reload then; what was chosen still holds for this page.
    }
    const root = document.documentElement;
    if (this.#all.theme === 'system') delete root.dataset.theme;
    else root.dataset.theme = this.#all.theme;
    if (this.#all.density === 'compact') root.dataset.density = 'compact';
    else delete root.dataset.density;
  }
}
