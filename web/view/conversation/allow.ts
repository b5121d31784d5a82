/** When Allow can be pressed. Pure; the card shows the reason and checks again at the press itself. */
import { limits } from '#protocol/limits.ts';
import type { ApprovalFacts, ApprovalOption } from '#protocol/events.ts';

export interface AllowFacts {
  readonly nowMs: number;
  /** When the card appeared, moved, or came back into focus; same clock as `nowMs`. */
  readonly movedMs: number;
  /** The end of what would be allowed was in view. */
  readonly read: boolean;
  /** Every byte of it is on the page; otherwise its size has to be acknowledged. */
  readonly whole: boolean;
  readonly sizeAcknowledged: boolean;
  /** What it would do could not be established, or not to its end. */
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

/** Something about the effect cannot be inspected. */
export const isBlind = (facts: Pick<ApprovalFacts, 'uninspectable' | 'reading'>): boolean =>
  facts.uninspectable || (facts.reading?.uninspectable.length ?? 0) > 0;

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

/** Which rule is being made beside the answer. */
export type RuleMode = '' | 'always' | 'never';

/** What a button says it does, by its name in the catalogue: all of it, with the note and the rule that go along. */
export const labelOf = (value: 'allow' | 'deny', noted: boolean, mode: RuleMode) => {
  if (value === 'allow')
    return mode === 'always' ? (noted ? 'alwaysAllowNote' : 'alwaysAllow') : noted ? 'allowWithNote' : 'allow';
  return mode === 'never' ? (noted ? 'neverDenyNote' : 'neverDeny') : noted ? 'denyWithNote' : 'deny';
};

/** The target takes text or a choice of its own; keys pressed there are never answers. */
export const writes = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** The plain key of a card, or null: not with modifiers, not of an input method, and in a field only Escape. */
export const keyOf = (event: KeyboardEvent): string | null => {
  if (event.isComposing || event.keyCode === 229) return null;
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return null;
  const key = event.key.toLowerCase();
  return writes(event.target) && key !== 'escape' ? null : key;
};
