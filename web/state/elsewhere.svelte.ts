/**
 * Where one is in the files of a workspace. In the conversation's own it is the dock, which is kept; in one that is only
 * read it is this page's, gone when it is left.
 */
import { createContext } from 'svelte';
import type { Dock } from './dock.svelte.ts';

export type FilePlace = Pick<
  Dock,
  'folder' | 'expanded' | 'file' | 'line' | 'showFile' | 'showFolder' | 'closeFile' | 'expand'
>;

export class Elsewhere implements FilePlace {
  folder = $state('');
  expanded = $state.raw<readonly string[]>([]);
  file = $state<string | null>(null);
  line = $state<number | null>(null);
  /** Absolute path of the workspace. */
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  showFile(path: string, line: number | null = null): void {
    this.file = path;
    this.line = line;
    this.folder = path.slice(0, Math.max(0, path.lastIndexOf('/')));
  }
  showFolder(path: string): void {
    this.closeFile();
    this.folder = path;
  }
  closeFile(): void {
    this.file = null;
    this.line = null;
  }
  expand(paths: readonly string[]): void {
    this.expanded = paths;
  }
}

/** A path as a message names it: an agent begins in its own workspace, and finds others by where they are. */
export const messagePath = (place: FilePlace, path: string): string =>
  place instanceof Elsewhere ? `${place.root === '/' ? '' : place.root}/${path}` : path;

export const [getPlace, setPlace] = createContext<FilePlace>();
