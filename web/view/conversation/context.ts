/** What rows of one transcript share: the conversation, and which rows are open, kept while a row is scrolled away. */
import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';
import type { ConversationState } from '#lib/state/contract.ts';

export interface Shared {
  readonly conversation: ConversationState;
  /** Fold state by row key; a row that was never touched has none. */
  readonly folds: SvelteMap<string, boolean>;
}

export const [useShared, shareTranscript] = createContext<Shared>();
export const newFolds = (): SvelteMap<string, boolean> => new SvelteMap();
