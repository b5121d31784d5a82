/**
 * What the dock shows. For a conversation it lives on the bridge (U-16), so that another device goes on there; without
 * one it is this page's own.
 */
import { changeSource, type ChangeSource } from '#protocol/methods/git.ts';
import { z } from '#protocol/schema.ts';
import { createContext } from 'svelte';
import type { App } from './app.svelte.ts';

export const dockTabs = ['files', 'changes', 'terminal'] as const;
export type DockTab = (typeof dockTabs)[number];

const stored = z.object({
  open: z.boolean(),
  tab: z._default(z.enum(dockTabs), 'files'),
  width: z.number(),
  folder: z.string(),
  expanded: z._default(z.array(z.string()), []),
  file: z.nullable(z.string()),
  line: z.nullable(z.number()),
  of: z._default(z.nullable(changeSource), null),
  entry: z._default(z.nullable(z.string()), null),
  terminal: z._default(z.nullable(z.string()), null),
  beside: z._default(z.nullable(z.string()), null),
  stacked: z._default(z.boolean(), true),
  share: z._default(z.number(), 50),
});
type Stored = z.infer<typeof stored>;

const saveMs = 600;
/** As many as one keeps an eye on; the first opened close first. */
const expandedMost = 60;
export const dockWidths = { min: 300, max: 900 } as const;
export const shares = { min: 20, max: 80 } as const;

export class Dock {
  open = $state(false);
  tab = $state<DockTab>('files');
  width = $state(420);
  /** Folder whose entries are listed; empty is the top. */
  folder = $state('');
  /** Folders whose entries are shown in place, in the order they were opened. */
  expanded = $state.raw<readonly string[]>([]);
  file = $state<string | null>(null);
  line = $state<number | null>(null);
  /** Workspace beside the own whose files are looked at instead. */
  elsewhere = $state<string | null>(null);
  /** What the changes are of; null is the folder against its index. */
  of = $state.raw<ChangeSource | null>(null);
  /** Id of the entry whose difference is open. */
  entry = $state<string | null>(null);
  /** Terminal in front. */
  terminal = $state<string | null>(null);
  /** Terminal shown along with it; below it or at its side; and how much of the room the one in front has, in percent. */
  beside = $state<string | null>(null);
  stacked = $state(true);
  share = $state(50);
  /** Conversation whose dock this is. */
  conversationId = $state<string | null>(null);
  /** Workspace of that conversation, once known; else the chosen one. */
  workspaceId = $state<string | null>(null);
  #app: App;
  /** A link or a press chose what to show; what the bridge remembers comes too late for it. */
  #chosen = false;
  /** What the bridge remembers was asked for. */
  #asked = false;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(app: App) {
    this.#app = app;
    this.width = app.settings.dockWidth;
  }

  /** Takes over the dock of a conversation, as it was left. */
  async enter(conversationId: string | null, workspaceId: string | null): Promise<void> {
    if (workspaceId !== this.workspaceId) {
      this.elsewhere = null;
      this.folder = '';
      this.expanded = [];
      this.file = null;
      this.line = null;
      this.of = null;
      this.entry = null;
      this.terminal = null;
      this.beside = null;
    }
    this.workspaceId = workspaceId;
    if (conversationId !== this.conversationId) {
      this.#saveNow();
      this.conversationId = conversationId;
      this.#chosen = false;
      this.#asked = false;
    }
    // A copy of the conversation is on the screen before there is anybody to ask; then this is called once more.
    if (conversationId === null || this.#asked || !this.#app.can('view')) return;
    this.#asked = true;
    const outcome = await this.#app.call('view.get', { conversationId });
    if (!outcome.ok || outcome.value.state === null || this.conversationId !== conversationId || this.#chosen) return;
    this.#restore(outcome.value.state);
  }

  toggle(): void {
    this.open = !this.open;
    this.#save();
  }
  hide(): void {
    this.open = false;
    this.#save();
  }
  show(): void {
    this.open = true;
    this.#save();
  }

  /** Shows a tab; pressed again on the one in front, the dock goes. */
  toggleTab(tab: DockTab): void {
    if (this.open && this.tab === tab) return this.hide();
    this.showTab(tab);
  }
  showTab(tab: DockTab): void {
    this.#chosen = true;
    this.tab = tab;
    this.show();
  }

  /** Opens a file at a line; from a path chip, a link, the palette. */
  showFile(path: string, line: number | null = null): void {
    this.#chosen = true;
    this.tab = 'files';
    this.elsewhere = null;
    this.file = path;
    this.line = line;
    this.folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
    this.show();
  }
  showFolder(path: string): void {
    this.#chosen = true;
    this.tab = 'files';
    this.elsewhere = null;
    this.file = null;
    this.line = null;
    this.folder = path;
    this.show();
  }
  /** Back to the list, at the folder where one was. */
  closeFile(): void {
    this.file = null;
    this.line = null;
    this.#save();
  }
  expand(paths: readonly string[]): void {
    this.expanded = paths.slice(-expandedMost);
    this.#save();
  }
  /** Opens the changes of `of`, and of them one entry. */
  showChanges(of: ChangeSource | null, entry: string | null = null): void {
    this.#chosen = true;
    this.tab = 'changes';
    this.of = of;
    this.entry = entry;
    this.show();
  }
  showTerminal(terminalId: string | null): void {
    this.#chosen = true;
    this.tab = 'terminal';
    this.terminal = terminalId;
    this.show();
  }
  /** Shows a second terminal along with the one in front, or none. */
  showBeside(terminalId: string | null): void {
    this.beside = terminalId;
    this.#save();
  }
  divide(stacked: boolean, share: number): void {
    this.stacked = stacked;
    this.share = Math.round(Math.min(shares.max, Math.max(shares.min, share)));
    this.#save();
  }
  resize(width: number): void {
    this.width = Math.round(Math.min(dockWidths.max, Math.max(dockWidths.min, width)));
    this.#save();
  }

  #restore(state: string): void {
    let value: unknown;
    try {
      value = JSON.parse(state);
    } catch {
      return; // written by another version: the dock begins as it is
    }
    const parsed = z.safeParse(stored, value);
    if (!parsed.success) return;
    const { open, tab, width, folder, expanded, file, line, of, entry, terminal, beside, stacked, share } = parsed.data;
    // A phone shows one thing at a time: what a desktop left open does not cover the conversation there.
    this.open = open && innerWidth > 760;
    this.width = Math.min(dockWidths.max, Math.max(dockWidths.min, width));
    this.folder = folder;
    this.expanded = expanded;
    this.file = file;
    this.line = line;
    this.tab = tab;
    this.of = of;
    this.entry = entry;
    this.terminal = terminal;
    this.beside = beside;
    this.stacked = stacked;
    this.share = Math.min(shares.max, Math.max(shares.min, share));
  }

  #save(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#saveNow(), saveMs);
  }

  #saveNow(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#app.settings.set({ dockWidth: this.width });
    if (this.conversationId === null || !this.#app.can('view')) return;
    const { open, tab, width, folder, expanded, file, line, of, entry, terminal, beside, stacked, share } = this;
    const state: Stored = {
      ...{ open, tab, width, folder, expanded: [...expanded], file, line, of, entry },
      ...{ terminal, beside, stacked, share },
    };
    void this.#app.call('view.set', { conversationId: this.conversationId, state: JSON.stringify(state) });
  }
}

export const [getDock, setDock] = createContext<Dock>();
