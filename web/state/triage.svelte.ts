/**
 * Working through the inbox: the filter, what is selected, whose payload was seen. A card is named by its id and the
 * digest on it, never by its place: one that changes or goes is no longer selected, whatever stands there now.
 */
import type { ApprovalView } from '#protocol/methods/approval.ts';
import { noFilter, oldestFirst, passes, type InboxFilter } from './inbox.ts';

export interface Shown {
  readonly approvalId: string;
  readonly digest: string;
}
const nameOf = ({ approvalId, digest }: Shown): string => `${approvalId}/${digest}`;

export class Triage {
  filter = $state.raw<InboxFilter>(noFilter);
  #waiting: () => readonly ApprovalView[];
  #picked = $state.raw<ReadonlyMap<string, Shown>>(new Map());
  #seen = $state.raw<ReadonlySet<string>>(new Set());
  /** Where a range of a shift-click begins. */
  #anchor: string | null = null;

  /** `waiting`: what waits for a decision, as last heard from the bridge; reactive. */
  constructor(waiting: () => readonly ApprovalView[]) {
    this.#waiting = waiting;
  }

  readonly all = $derived.by(() => oldestFirst(this.#waiting()));
  readonly shown = $derived.by(() => this.all.filter((one) => passes(one, this.filter)));
  readonly selected = $derived.by(() => this.shown.filter((one) => this.isPicked(one)));
  /** Picked ones that are answered, withdrawn or changed by now; said until the selection is next touched. */
  readonly lost = $derived.by(() => {
    const waiting = new Set(this.all.map(nameOf));
    return [...this.#picked.keys()].filter((name) => !waiting.has(name)).length;
  });
  /** Picked ones that the filter hides: they wait, and are not acted on. */
  readonly hidden = $derived.by(() => this.#picked.size - this.lost - this.selected.length);

  isPicked(one: Shown): boolean {
    return this.#picked.has(nameOf(one));
  }

  /** With `range`: also everything between it and the one picked before. */
  pick(one: Shown, options: { on: boolean; range?: boolean }): void {
    const picked = this.#current();
    for (const each of options.range === true ? this.#between(one) : [one]) {
      if (options.on) picked.set(nameOf(each), { approvalId: each.approvalId, digest: each.digest });
      else picked.delete(nameOf(each));
    }
    this.#anchor = nameOf(one);
    this.#picked = picked;
  }

  pickAll(on: boolean): void {
    this.#picked = on ? new Map(this.shown.map((one) => [nameOf(one), one])) : new Map();
  }

  /** The whole payload of this very action was in view, or what was not was acknowledged (T37). */
  see(one: Shown): void {
    if (!this.isSeen(one)) this.#seen = new Set([...this.#seen, nameOf(one)]);
  }
  isSeen(one: Shown): boolean {
    return this.#seen.has(nameOf(one));
  }

  isWaiting(one: Shown): boolean {
    return this.all.some((each) => nameOf(each) === nameOf(one));
  }

  /** What is picked and can still be seen: the rest was said, and is forgotten. */
  #current(): Map<string, Shown> {
    return new Map(this.selected.map((one) => [nameOf(one), one]));
  }

  #between(one: Shown): readonly Shown[] {
    const names = this.shown.map(nameOf);
    const [from, to] = [names.indexOf(this.#anchor ?? ''), names.indexOf(nameOf(one))];
    if (from < 0 || to < 0) return [one];
    return this.shown.slice(Math.min(from, to), Math.max(from, to) + 1);
  }
}
