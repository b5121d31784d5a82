/**
 * The files of a workspace as a tree whose folders open in place. Which are open is the dock's, so that they are as they
 * were left; what is in them is asked for when it is looked at.
 */
import { limits } from '#protocol/limits.ts';
import type { FileEntry } from '#protocol/methods/workspace.ts';
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';
import type { FilePlace } from './elsewhere.svelte.ts';
import { Folder } from './folder.svelte.ts';

interface Common {
  readonly id: string;
  /** From 1. */
  readonly depth: number;
  readonly folder: Folder;
}
export type TreeRow = Common &
  (
    | {
        readonly kind: 'entry';
        readonly entry: FileEntry;
        readonly place: number;
        /** Null for what is no folder one can look into. */
        readonly open: boolean | null;
      }
    | { readonly kind: 'waiting'; readonly place: number }
    | { readonly kind: 'empty' | 'truncated' }
    | { readonly kind: 'failure'; readonly failure: Failure }
  );
export type EntryRow = Extract<TreeRow, { kind: 'entry' }>;

/** The folders above a path, outermost first; the root is always open. */
const above = (path: string): string[] => {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
};

export class Tree {
  /** Id of the row the keyboard is at. */
  active = $state<string | null>(null);
  #folders = $state.raw<ReadonlyMap<string, Folder>>(new Map());
  readonly rows: readonly TreeRow[] = $derived.by(() => this.#flatten());
  /** Of the row the keyboard is at, −1 where there is none. */
  readonly at = $derived(this.rows.findIndex(({ id }) => id === this.active));
  readonly #open = $derived.by(() => new Set(this.#dock.expanded));
  #app: App;
  #dock: FilePlace;
  readonly workspaceId: string;

  constructor(app: App, dock: FilePlace, workspaceId: string) {
    this.#app = app;
    this.#dock = dock;
    this.workspaceId = workspaceId;
  }

  get top(): Folder | null {
    return this.#folders.get('') ?? null;
  }
  /** Paths of the folders whose entries are on the screen, or would be. */
  get shown(): string[] {
    return ['', ...this.#dock.expanded.filter((path) => above(path).every((each) => this.#open.has(each)))];
  }

  /** Makes and lists what is open and not known yet. */
  fill(): void {
    const missing = this.shown.filter((path) => !this.#folders.has(path));
    if (missing.length === 0) return;
    const made = missing.map((path) => new Folder(this.#app, this.workspaceId, path));
    this.#folders = new Map([...this.#folders, ...made.map((folder) => [folder.path, folder] as const)]);
    for (const folder of made) void folder.reload();
  }

  /** Lists again what is open; the rest is forgotten, and listed when it is opened. */
  refresh(): void {
    const shown = new Set(this.shown);
    this.#folders = new Map([...this.#folders].filter(([path]) => shown.has(path)));
    for (const folder of this.#folders.values()) void folder.reload();
  }

  need(first: number, last: number): void {
    for (const row of this.rows.slice(first, last + 1))
      if (row.kind === 'waiting' || row.kind === 'entry') row.folder.need(row.place, row.place);
  }

  /** Opens the folders on the way to a path, and with `open` that one, too, and puts the keyboard there. */
  reveal(path: string, open = false): void {
    const missing = [...above(path), ...(open ? [path] : [])].filter((each) => !this.#open.has(each));
    if (missing.length > 0) this.#dock.expand([...this.#dock.expanded, ...missing]);
    this.active = path;
  }

  /** A press: a folder opens or closes, a file is shown. */
  press(row: EntryRow): void {
    this.active = row.id;
    const { path } = row.entry;
    if (path === null) return;
    if (row.open === null) {
      if (row.entry.type === 'file') this.#dock.showFile(path);
    } else this.#set(path, !row.open);
  }

  closeAll(): void {
    this.#dock.expand([]);
  }

  /** Keys as in any tree; answers whether the key was one of them. */
  key(key: string, page: number): boolean {
    const row = this.rows[this.at];
    const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const step = steps[key];
    if (step !== undefined) this.#move(row === undefined ? 0 : this.at + step, Math.sign(step));
    else if (key === 'Home') this.#move(0, 1);
    else if (key === 'End') this.#move(this.rows.length - 1, -1);
    else if (row?.kind !== 'entry') return false;
    else if (key === 'Enter' || key === ' ') this.press(row);
    else if (key === 'ArrowRight') {
      if (row.open === false) this.#set(row.id, true);
      else if (row.open === true) this.#move(this.at + 1, 1);
    } else if (key === 'ArrowLeft') {
      if (row.open === true) this.#set(row.id, false);
      else if (row.folder.path !== '') this.active = row.folder.path;
    } else return false;
    return true;
  }

  /** The next entry, from the one after the keyboard, whose name begins so. */
  startingWith(letters: string): void {
    const wanted = letters.toLowerCase();
    const from = letters.length === 1 ? this.at + 1 : Math.max(0, this.at);
    const order = [...this.rows.slice(from), ...this.rows.slice(0, from)];
    const row = order.find((each) => each.kind === 'entry' && each.entry.name.toLowerCase().startsWith(wanted));
    if (row !== undefined) this.active = row.id;
  }

  #move(to: number, direction: number): void {
    const last = this.rows.length - 1;
    let at = Math.min(last, Math.max(0, to));
    while (at >= 0 && at <= last && this.rows[at]?.kind !== 'entry' && this.rows[at]?.kind !== 'waiting')
      at += direction;
    const row = this.rows[at];
    if (row !== undefined) this.active = row.id;
  }

  #set(path: string, open: boolean): void {
    const { expanded } = this.#dock;
    this.#dock.expand(
      open ? [...expanded.filter((each) => each !== path), path] : expanded.filter((each) => each !== path),
    );
  }

  #flatten(): TreeRow[] {
    const rows: TreeRow[] = [];
    const add = (path: string, depth: number): void => {
      const folder = this.#folders.get(path);
      if (folder === undefined || folder.loading || depth > limits.pathDepth) return;
      const common = { depth, folder };
      for (const [place, entry] of folder.entries.entries()) {
        if (entry === null) continue;
        if (entry === undefined) {
          rows.push({ ...common, kind: 'waiting', id: `${path}/\0${place}`, place });
          continue;
        }
        const isFolder = entry.type === 'directory' && entry.path !== null && !entry.secret;
        const open = isFolder ? this.#open.has(entry.path ?? '') : null;
        rows.push({ ...common, kind: 'entry', id: entry.path ?? `${path}/\0${place}`, entry, place, open });
        if (open === true && entry.path !== null) add(entry.path, depth + 1);
      }
      if (folder.failure !== null)
        rows.push({ ...common, kind: 'failure', id: `${path}/\0failure`, failure: folder.failure });
      else if (folder.entries.length === 0) rows.push({ ...common, kind: 'empty', id: `${path}/\0empty` });
      if (folder.truncated) rows.push({ ...common, kind: 'truncated', id: `${path}/\0truncated` });
    };
    add('', 1);
    return rows;
  }
}
