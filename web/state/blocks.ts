/**
 * The loaded part of a transcript: events by block, projected when asked. Plain and synchronous, so that the rune
 * class above it only says when. Far blocks can be let go; they load again on sight.
 */
import type { AnyEvent } from '#protocol/events.ts';
import { extendOutline, splitBlocks } from '#protocol/outline.ts';
import { projectBlock } from '#protocol/project.ts';
import type { BlockView } from '#protocol/view.ts';
import type { BlockSlot } from './contract.ts';

interface Block {
  readonly events: Map<number, AnyEvent>;
  view: BlockView | null;
  dirty: boolean;
}

/** Events held before far blocks are let go; some forty screens. */
export const heldEvents = 8000;
/** Blocks at the end are always held: the live end never flickers. */
const heldTail = 3;

export class Blocks {
  #outline: readonly number[] = [];
  #blocks = new Map<number, Block>();
  #slots: readonly BlockSlot[] = [];
  #count = 0;
  #lastSeq = 0;
  #stale = true;

  get outline(): readonly number[] {
    return this.#outline;
  }
  /** Highest seq known, loaded or not. */
  get lastSeq(): number {
    return this.#lastSeq;
  }
  get count(): number {
    return this.#count;
  }

  /** Takes the outline of the bridge; events at hand are sorted into it anew where it differs. */
  begin(outline: readonly number[], boundarySeq: number): void {
    const extendsOld = this.#outline.every((seq, index) => outline[index] === seq);
    this.#outline = outline;
    this.#lastSeq = Math.max(boundarySeq, this.#lastSeq);
    this.#stale = true;
    if (extendsOld) return;
    const events = [...this.#blocks.values()].flatMap((block) => [...block.events.values()]);
    this.#blocks.clear();
    this.#count = 0;
    for (const part of splitBlocks(events, outline)) this.#addTo(part.firstSeq, part.events);
  }

  clear(): void {
    this.#blocks.clear();
    this.#outline = [];
    this.#count = 0;
    this.#lastSeq = 0;
    this.#stale = true;
  }

  /** Adds events in any order; those at hand already are ignored. */
  add(events: readonly AnyEvent[]): void {
    for (const event of events) {
      if (event.seq <= this.#lastSeq) continue;
      this.#outline = extendOutline(this.#outline, event);
      this.#lastSeq = event.seq;
    }
    if (this.#outline.length === 0 && events.length > 0) this.#outline = [1];
    for (const part of splitBlocks(events, this.#outline)) this.#addTo(part.firstSeq, part.events);
    this.#stale = true;
  }

  #addTo(firstSeq: number, events: readonly AnyEvent[]): void {
    const block = this.#blocks.get(firstSeq) ?? { events: new Map<number, AnyEvent>(), view: null, dirty: true };
    this.#blocks.set(firstSeq, block);
    for (const event of events) {
      if (block.events.has(event.seq)) continue;
      block.events.set(event.seq, event);
      block.dirty = true;
      this.#count += 1;
    }
  }

  /** Index in the outline of the block that holds `seq`. */
  indexOf(seq: number): number {
    let [low, high] = [0, this.#outline.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#outline[middle] ?? Infinity) <= seq) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  bounds(index: number): { readonly firstSeq: number; readonly endSeq: number } {
    return { firstSeq: this.#outline[index] ?? 1, endSeq: this.#outline[index + 1] ?? this.#lastSeq + 1 };
  }

  has(seq: number): boolean {
    return this.#blocks.get(this.bounds(this.indexOf(seq)).firstSeq)?.events.has(seq) === true;
  }

  /** Where to go on loading a block backwards: the lowest seq from which all to its end is at hand, or its end. */
  missingBefore(index: number): number | null {
    const { firstSeq, endSeq } = this.bounds(index);
    const events = this.#blocks.get(firstSeq)?.events;
    if (events === undefined) return endSeq;
    let seq = endSeq;
    while (seq > firstSeq && events.has(seq - 1)) seq -= 1;
    return seq === firstSeq ? null : seq;
  }

  /** Lets go of the blocks farthest from `seq` until the bound holds. True when something went. */
  letGo(seq: number, maxEvents = heldEvents): boolean {
    if (this.#count <= maxEvents) return false;
    const here = this.indexOf(seq);
    const tail = this.#outline.length - heldTail;
    const far = [...this.#blocks.keys()]
      .map((firstSeq) => ({ firstSeq, index: this.indexOf(firstSeq) }))
      .filter(({ index }) => index < tail && Math.abs(index - here) > 1)
      .sort((a, b) => Math.abs(b.index - here) - Math.abs(a.index - here));
    for (const { firstSeq } of far) {
      if (this.#count <= maxEvents) break;
      this.#count -= this.#blocks.get(firstSeq)?.events.size ?? 0;
      this.#blocks.delete(firstSeq);
    }
    this.#stale = true;
    return true;
  }

  /** The slots as they now are; only blocks that changed are projected, and unchanged slots keep their identity. */
  slots(): readonly BlockSlot[] {
    if (!this.#stale) return this.#slots;
    this.#stale = false;
    const before = new Map(this.#slots.map((slot) => [slot.firstSeq, slot]));
    this.#slots = this.#outline.map((_, index) => {
      const { firstSeq, endSeq } = this.bounds(index);
      const view = this.#viewOf(firstSeq);
      const slot = before.get(firstSeq);
      return slot !== undefined && slot.endSeq === endSeq && slot.view === view ? slot : { firstSeq, endSeq, view };
    });
    return this.#slots;
  }

  #viewOf(firstSeq: number): BlockView | null {
    const block = this.#blocks.get(firstSeq);
    if (block === undefined || block.events.size === 0) return null;
    if (!block.dirty && block.view !== null) return block.view;
    const previous = block.view ?? undefined;
    block.view = projectBlock(firstSeq, [...block.events.values()], { previous });
    block.dirty = false;
    return block.view;
  }
}
