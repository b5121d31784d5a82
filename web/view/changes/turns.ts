/** Turns that can be looked at, from the checkpoints around them. Pure. */
import type { BlockSlot } from '#lib/state/contract.ts';
import type { CheckpointInfo } from '#protocol/methods/git.ts';

export interface TurnChoice {
  readonly turnId: string;
  readonly at: number;
  /** What was asked, where that part of the conversation is loaded. */
  readonly asked: string | null;
  /** Not over: looked at as it is now. */
  readonly open: boolean;
}

const askedUnits = 80;
const askedIn = (blocks: readonly BlockSlot[]): ReadonlyMap<string, string> => {
  const asked = new Map<string, string>();
  for (const { view } of blocks) {
    const first = view?.entries.find((entry) => entry.kind === 'message' && entry.role === 'user');
    if (view !== null && view.turnId !== null && first !== undefined && 'text' in first)
      asked.set(view.turnId, first.text.replace(/\s+/g, ' ').trim().slice(0, askedUnits));
  }
  return asked;
};

/** Newest first, as the checkpoints come. One whose first checkpoint was cleared away cannot be looked at any more. */
export const turnChoices = (checkpoints: readonly CheckpointInfo[], blocks: readonly BlockSlot[]): TurnChoice[] => {
  const asked = askedIn(blocks);
  const over = new Set(checkpoints.filter((one) => one.why === 'after_turn').map((one) => one.turnId));
  return checkpoints.flatMap(({ turnId, why, pruned, at }) =>
    why !== 'before_turn' || pruned || turnId === undefined
      ? []
      : [{ turnId, at, asked: asked.get(turnId) ?? null, open: !over.has(turnId) }],
  );
};
