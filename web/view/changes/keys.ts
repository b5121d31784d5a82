/** Keys of the changes as data: they move, open and mark; none of them writes to a file. */
import type { Press } from '../approvals/keys.ts';

export type ChangeAct =
  | 'down'
  | 'up'
  | 'extendDown'
  | 'extendUp'
  | 'first'
  | 'last'
  | 'nextChange'
  | 'previousChange'
  | 'open'
  | 'file'
  | 'comment'
  | 'unified'
  | 'split'
  | 'wrap'
  | 'leave'
  | 'help';

const acts: Readonly<Record<string, ChangeAct>> = {
  j: 'down',
  ArrowDown: 'down',
  k: 'up',
  ArrowUp: 'up',
  J: 'extendDown',
  K: 'extendUp',
  Home: 'first',
  End: 'last',
  n: 'nextChange',
  p: 'previousChange',
  Enter: 'open',
  o: 'file',
  c: 'comment',
  u: 'unified',
  s: 'split',
  w: 'wrap',
  Escape: 'leave',
  '?': 'help',
};
/** Only moving goes on while a key is held. */
const repeats = new Set<ChangeAct>(['down', 'up', 'extendDown', 'extendUp', 'nextChange', 'previousChange']);

/** What a press means here; null for anything held with a modifier or inside a composition. */
export const changeKey = (press: Press & { readonly shiftKey: boolean }): ChangeAct | null => {
  if (press.ctrlKey || press.metaKey || press.altKey || press.isComposing || press.keyCode === 229) return null;
  const arrow = { ArrowDown: 'extendDown', ArrowUp: 'extendUp' } as const;
  const act =
    press.shiftKey && Object.hasOwn(arrow, press.key)
      ? arrow[press.key as keyof typeof arrow]
      : Object.hasOwn(acts, press.key)
        ? acts[press.key]
        : undefined;
  return act === undefined || (press.repeat && !repeats.has(act)) ? null : act;
};
