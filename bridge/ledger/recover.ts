/**
 * What an unclean end left open in the log, closed in one transaction at boot (L-23): nothing is shown as working that
 * is not. Approvals, queues and processes are recovered by their own rooms in the same work. Called by main.
 */
import { knownEvent } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { OperationRow, OperationState, Tx } from './contract.ts';
import { metaNames } from './schema.ts';

export interface Recovered {
  readonly messages: number;
  readonly turns: number;
  readonly operations: number;
}
export interface RecoverOptions {
  /** What became of a running operation whose effect is wholly in the database; null: it cannot be known, `uncertain`. */
  readonly settle?: (row: OperationRow) => { state: Exclude<OperationState, 'running'>; result: string | null } | null;
}

/** Drafts become interrupted messages, open turns end as interrupted, running operations become uncertain. */
export const recoverTranscripts = (tx: Tx, options: RecoverOptions = {}): Recovered => {
  const drafts = tx.openDrafts();
  for (const conversationId of drafts) tx.endDraft(conversationId, { interrupted: true });
  const turns = tx.openTurns();
  for (const turn of turns) endTurn(tx, turn);
  const operations = tx.runningOperations();
  for (const row of operations) {
    const settled = options.settle?.(row) ?? { state: 'uncertain' as const, result: JSON.stringify('uncertain') };
    tx.finishOperation(row.key, settled.state, settled.result);
  }
  return { messages: drafts.length, turns: turns.length, operations: operations.length };
};

const endTurn = (tx: Tx, turn: ReturnType<Tx['openTurns']>[number]): void => {
  const { conversationId, turnId, startedAt } = turn;
  const { lastAt, changedPaths } = readTurn(tx, turn);
  tx.append(conversationId, {
    type: 'turn.ended',
    turnId,
    data: {
      stopReason: 'interrupted',
      durationMs: Math.max(0, lastAt - startedAt),
      sentence: 'The bridge stopped before the agent was done.',
      changedPaths: changedPaths.slice(0, 500),
    },
  });
  if (tx.conversation(conversationId) !== null) tx.updateConversation(conversationId, { lastStop: 'interrupted' });
};

/** When the turn was last heard of, and the paths that its allowed writes are known to have written. */
const readTurn = (tx: Tx, turn: ReturnType<Tx['openTurns']>[number]): { lastAt: number; changedPaths: string[] } => {
  // What this start appended itself is not the turn's doing: the time the bridge was down does not count.
  const openedAt = Number(tx.meta(metaNames.openedAt));
  const lastSeq = tx.conversation(turn.conversationId)?.lastSeq ?? 0;
  const asked = new Map<string, readonly string[]>();
  const written = new Set<string>();
  let lastAt = turn.startedAt;
  for (let after = turn.startedSeq; after < lastSeq; after += limits.pageEvents) {
    for (const any of tx.events(turn.conversationId, after, Math.min(lastSeq, after + limits.pageEvents))) {
      if (any.at < openedAt) lastAt = Math.max(lastAt, any.at);
      const event = any.type === 'approval.requested' || any.type === 'receipt' ? knownEvent(any) : null;
      if (event?.type === 'approval.requested' && event.data.kind === 'file.write') {
        asked.set(
          event.data.approvalId,
          event.data.facts.paths.map((one) => one.path),
        );
      }
      if (event?.type !== 'receipt' || event.data.outcome !== 'ok') continue;
      for (const path of asked.get(event.data.approvalId ?? '') ?? []) written.add(path);
    }
  }
  return { lastAt, changedPaths: [...written] };
};
