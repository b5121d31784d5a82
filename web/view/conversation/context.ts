/** What rows of one transcript share: the conversation, and which rows are open, kept while a row is scrolled away. */
import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';
import type { ConversationState } from '#lib/state/contract.ts';

/** Files that are to be put back; `undo` where that takes a restore back. */
export interface Restoring {
  readonly checkpointId: string;
  readonly undo: boolean;
}

export interface Shared {
  readonly conversation: ConversationState;
  /** Fold state by row key; a row that was never touched has none. */
  readonly folds: SvelteMap<string, boolean>;
  /** Asks which files to put back. Above the rows: a row may be scrolled away while it is asked. */
  restore(restoring: Restoring): void;
}

export const [useShared, shareTranscript] = createContext<Shared>();
export const newFolds = (): SvelteMap<string, boolean> => new SvelteMap();
