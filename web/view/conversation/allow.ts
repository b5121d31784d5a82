/** When Allow can be pressed. Pure; the card shows the reason and checks again at the press itself. */
import { limits } from '#protocol/limits.ts';
import type { ApprovalOption } from '#protocol/events.ts';

export interface AllowFacts {
  readonly nowMs: number;
  /** When the card appeared, moved, or came back into focus; same clock as `nowMs`. */
  readonly movedMs: number;
  /** The end of what would be allowed was in view. */
  readonly read: boolean;
  /** Every byte of it is on the page; otherwise its size has to be acknowledged. */
  readonly whole: boolean;
  readonly sizeAcknowledged: boolean;
  /** Nothing could be established about the effect. */
  readonly blind: boolean;
  readonly blindAcknowledged: boolean;
  readonly offered: boolean;
}
export type Inert = 'noOption' | 'acknowledge' | 'read' | 'settle';

/** Null: it may be pressed now. */
export const whyInert = (facts: AllowFacts): Inert | null => {
  if (!facts.offered) return 'noOption';
  if (facts.blind && !facts.blindAcknowledged) return 'acknowledge';
  if (!facts.whole && !facts.sizeAcknowledged) return 'acknowledge';
  if (facts.whole && !facts.read) return 'read';
  return facts.nowMs - facts.movedMs < limits.cardInertMs ? 'settle' : null;
};

/** A press or a key that a person made, once. */
export const isOwnPress = (event: { readonly isTrusted: boolean; readonly repeat?: boolean }): boolean =>
  event.isTrusted && event.repeat !== true;

export interface Answers {
  readonly allow: ApprovalOption | null;
  readonly deny: ApprovalOption | null;
  /** The rest, in the agent's order; never chosen for the operator. */
  readonly others: readonly ApprovalOption[];
}

const first = (options: readonly ApprovalOption[], meaning: 'allow' | 'deny'): ApprovalOption | null =>
  options.find((option) => option.meaning === meaning && option.kind.endsWith('_once')) ??
  options.find((option) => option.meaning === meaning) ??
  null;

export const answersOf = (options: readonly ApprovalOption[]): Answers => {
  const allow = first(options, 'allow');
  const deny = first(options, 'deny');
  return { allow, deny, others: options.filter((option) => option !== allow && option !== deny) };
};
