/** A running turn, and the small tables a conversation keeps while its agent works. Memory only: the log is the truth. */
import type { Outcome, ToolStatus } from '#protocol/events.ts';
import type { ToolCallState } from '../agents/contract.ts';

export interface Turn {
  readonly turnId: string;
  readonly startedAt: number;
  /** Aborts what waits for the agent to start, and the recording of the files. */
  readonly abort: AbortController;
  /** The operator said stop: whatever the agent answers, the turn ends `cancelled` (G-04). */
  cancelled: boolean;
  /** The prompt has gone to the agent; before that there is nothing to cancel there. */
  prompted: boolean;
  /** The one ending has begun. */
  ending: boolean;
  /** The agent said or did anything at all. */
  said: boolean;
  readonly changedPaths: Set<string>;
}

/** An allowed permission whose outcome the agent's own tool call will tell. */
export interface Grant {
  readonly approvalId: string;
  readonly startedAt: number;
}

export interface OpenCall {
  state: ToolCallState;
  readonly grants: Grant[];
  /** Updates that only grow output are stored at most once a second; the last one always is. */
  storedAt: number;
  deferred: ToolCallState | null;
  timer: NodeJS.Timeout | null;
}

export const isFinal = (status: ToolStatus | undefined): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled';

export const outcomeOf = (status: ToolStatus | undefined): Outcome =>
  status === 'completed' ? 'ok' : status === 'failed' ? 'failed' : status === 'cancelled' ? 'cancelled' : 'uncertain';

/** Fields present in `update` replace those of `call`. */
export const mergeCall = (call: ToolCallState, update: ToolCallState): ToolCallState => {
  const given = Object.fromEntries(Object.entries(update).filter(([, value]) => value !== undefined));
  return { ...call, ...given };
};

/** Nothing but output grew: such an update may wait for the next. */
export const onlyOutput = (update: ToolCallState): boolean =>
  update.title === undefined && update.rawInput === undefined && update.kind === undefined && !isFinal(update.status);
