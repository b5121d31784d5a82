/**
 * Where blocks begin (D-44): at seq 1 and at every `turn.started`; each reaches to the next one's start. The outline
 * is their first seqs, ascending. The bridge's outline leads; a client only extends it by what it then receives.
 */
import type { AnyEvent } from './events.ts';
import { limits } from './limits.ts';
import { inOrder } from './project.ts';

const startsBlock = (event: AnyEvent): boolean => event.seq === 1 || event.type === 'turn.started';

/** First seqs of the blocks that begin within `events`, ascending. */
export const blockStarts = (events: readonly AnyEvent[]): number[] =>
  inOrder(events)
    .filter(startsBlock)
    .map(({ seq }) => seq);

/**
 * The outline with the block `event` begins, if it begins one at the end; otherwise the same array. Beyond the bound
 * the two oldest blocks become one, as in the bridge.
 */
export const extendOutline = (outline: readonly number[], event: AnyEvent): readonly number[] => {
  if (!startsBlock(event) || event.seq <= (outline.at(-1) ?? 0)) return outline;
  const longer = [...outline, event.seq];
  if (longer.length > limits.outlineBlocks) longer.splice(1, longer.length - limits.outlineBlocks);
  return longer;
};

export interface BlockEvents {
  readonly firstSeq: number;
  /** Ascending. */
  readonly events: readonly AnyEvent[];
}

/**
 * Events by block, ascending. `outline` says where blocks begin; without it only starts seen in `events` are known, and
 * events before the first of them are a block that begins at the first event given.
 */
export const splitBlocks = (
  events: readonly AnyEvent[],
  outline: readonly number[] = blockStarts(events),
): BlockEvents[] => {
  const blocks: { firstSeq: number; events: AnyEvent[] }[] = [];
  let next = 0;
  for (const event of inOrder(events)) {
    const before = next;
    while ((outline[next] ?? Infinity) <= event.seq) next += 1;
    const last = blocks.at(-1);
    if (last !== undefined && next === before) last.events.push(event);
    else blocks.push({ firstSeq: outline[next - 1] ?? event.seq, events: [event] });
  }
  return blocks;
};
