/**
 * Answering one card: what is open beside it, when Allow may be pressed, and what a press does or why it does
 * nothing. Bound to the action it was made for; only the bridge's answer ends it.
 */
import { words } from '#lib/text/approval.en.ts';
import { answersOf, isBlind, isOwnPress, labelOf, whyInert, type RuleMode } from '../conversation/allow.ts';
import type { CardAnswer, CardApproval, Decide } from '../conversation/card.ts';
import { mayBeSaved, type RuleCheck } from './preview.svelte.ts';
import { Stillness } from './still.svelte.ts';

export interface Asked {
  readonly approval: CardApproval;
  readonly decide: Decide;
  /** Every byte of it is on the page. */
  readonly whole: boolean;
  /** Its end was in view. */
  readonly read: boolean;
  /** Why nothing can be decided, in plain words. */
  readonly blocked: string | null;
}
export type PanelName = 'note' | 'always' | 'never' | 'more';
type Press = Event & { readonly repeat?: boolean };

export class Answering {
  readonly still = new Stillness();
  note = $state('');
  noteOpen = $state(false);
  mode = $state<RuleMode>('');
  othersOpen = $state(false);
  /** What is known of the rule on the screen. */
  check = $state.raw<RuleCheck | null>(null);
  busy = $state(false);
  failure = $state('');
  sizeAcknowledged = $state(false);
  blindAcknowledged = $state(false);

  #asked: () => Asked;

  /** `asked` is reactive. */
  constructor(asked: () => Asked) {
    this.#asked = asked;
  }

  readonly answers = $derived.by(() => answersOf(this.#asked().approval.options));
  readonly blind = $derived.by(() => isBlind(this.#asked().approval.facts));
  readonly blocked = $derived.by(() => this.#asked().blocked);
  // `settled` stands for the time that has passed; a press asks the clock itself.
  readonly inert = $derived.by(() => this.#inertAt(this.still.settled ? Infinity : this.still.movedMs));
  readonly noted = $derived.by(() => this.noteOpen && this.note.trim() !== '');
  readonly ruleReady = $derived.by(() => this.check !== null && mayBeSaved(this.check, this.check.draft));
  readonly may = $derived.by(() => !this.busy && this.blocked === null);
  readonly mayAllow = $derived.by(() => this.inert === null && this.may && (this.mode !== 'always' || this.ruleReady));
  readonly mayDeny = $derived.by(() => this.may && (this.mode !== 'never' || this.ruleReady));
  /** All of it was in view, or what was not was acknowledged. */
  readonly seen = $derived.by(() => this.inert === null || this.inert === 'settle');
  readonly reason = $derived.by(() => {
    if (this.blocked !== null) return this.blocked;
    if (this.busy) return words.card.sending;
    return this.inert === null ? '' : words.card.why[this.inert];
  });
  readonly allowLabel = $derived.by(() => words.card[labelOf('allow', this.noted, this.mode)]);
  readonly denyLabel = $derived.by(() => words.card[labelOf('deny', this.noted, this.mode)]);

  #inertAt(nowMs: number) {
    const { whole, read } = this.#asked();
    return whyInert({
      nowMs,
      movedMs: this.still.movedMs,
      read,
      whole,
      sizeAcknowledged: this.sizeAcknowledged,
      blind: this.blind,
      blindAcknowledged: this.blindAcknowledged,
      offered: this.answers.allow !== null,
    });
  }

  isOpen(name: PanelName): boolean {
    if (name === 'note') return this.noteOpen;
    return name === 'more' ? this.othersOpen : this.mode === name;
  }
  flip(name: PanelName): void {
    if (name === 'note') this.noteOpen = !this.noteOpen;
    else if (name === 'more') this.othersOpen = !this.othersOpen;
    else {
      this.mode = this.mode === name ? '' : name;
      this.check = null;
    }
  }
  /** The one that stands lowest, or null when none is open. */
  get lastOpen(): PanelName | null {
    if (this.othersOpen) return 'more';
    if (this.mode !== '') return this.mode;
    return this.noteOpen ? 'note' : null;
  }

  allow(event: Press): void {
    const option = this.answers.allow;
    if (option === null || !this.#counts(event) || !this.#mayAllowNow() || this.#ruleWaits('always')) return;
    void this.#send({ value: 'allow', optionId: option.id, ...this.#along('always') });
  }
  deny(event: Press): void {
    const option = this.answers.deny;
    if (option === null || !this.#counts(event) || this.#ruleWaits('never')) return;
    void this.#send({ value: 'deny', optionId: option.id, ...this.#along('never') });
  }
  /** One of the agent's other options, for what the person says it means. */
  other(event: Press, value: 'allow' | 'deny', optionId: string): void {
    if (!this.#counts(event) || (value === 'allow' && !this.#mayAllowNow('noOption'))) return;
    void this.#send({ value, optionId, ...this.#along(null) });
  }
  /** A key held down from elsewhere landed on Allow. */
  held(): void {
    if (!this.busy) this.still.say(words.card.ignored.held);
  }

  /** What goes along: a note that was written, and the very rule that was shown. */
  #along(mode: 'always' | 'never' | null): Pick<CardAnswer, 'note' | 'remember' | 'rule'> {
    return {
      ...(this.noted ? { note: this.note.trim() } : {}),
      ...(this.mode === mode && this.check !== null ? { remember: true, rule: this.check.draft } : {}),
    };
  }
  #counts(event: Press): boolean {
    if (event.isTrusted && event.repeat === true) this.held();
    return isOwnPress(event) && this.may;
  }
  #mayAllowNow(except?: 'noOption'): boolean {
    const why = this.#inertAt(performance.now());
    if (why === null || why === except) return true;
    this.still.say(words.card.ignored[why]);
    return false;
  }
  #ruleWaits(mode: 'always' | 'never'): boolean {
    if (this.mode !== mode || this.ruleReady) return false;
    this.still.say(this.check?.problem ?? this.check?.failure?.message ?? words.card.ignored.checking);
    return true;
  }

  async #send(answer: CardAnswer): Promise<void> {
    this.busy = true;
    this.failure = '';
    this.still.said = '';
    const answered = await this.#asked().decide(answer);
    // Taken: the card stays shut until its event comes; refused: it opens again with the reason.
    if (answered.ok) return;
    this.failure = answered.failure.message;
    this.busy = false;
    this.still.moved();
  }
}
