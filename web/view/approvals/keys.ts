/** Keys of the inbox as data: they move, select and open; none of them decides. */
export type TriageAct = 'next' | 'previous' | 'select' | 'open' | 'help';

const acts: Readonly<Record<string, TriageAct>> = {
  j: 'next',
  k: 'previous',
  x: 'select',
  o: 'open',
  '?': 'help',
};

export interface Press {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly repeat: boolean;
  readonly isComposing: boolean;
  readonly keyCode: number;
}

/** What a press means here; null for anything held with a modifier or inside a composition. Only moving repeats. */
export const triageKey = (press: Press): TriageAct | null => {
  if (press.ctrlKey || press.metaKey || press.altKey || press.isComposing || press.keyCode === 229) return null;
  const act = Object.hasOwn(acts, press.key) ? acts[press.key] : undefined;
  if (act === undefined || (press.repeat && act !== 'next' && act !== 'previous')) return null;
  return act;
};

/** Keys belong to what one writes or chooses in. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    /^(TEXTAREA|SELECT)$/.test(target.tagName) ||
    (target instanceof HTMLInputElement && target.type !== 'checkbox' && target.type !== 'radio'));
