/**
 * What an unclean end left open in the log, closed in one transaction at boot (L-23): nothing is shown as working that
 * is not. Approvals, queues and processes are recovered by their own rooms in the same work. Called by main.
 */
import type { OperationRow, OperationState, Tx } from './contract.ts';

export interface Recovered {
  readonly messages: number;
  readonly turns: number;
  readonly operations: number;
}
export interface RecoverOptions {
  /** What became of a running operation whose effect is wholly in the database; null: it cannot be known, `uncertain`. */
  readonly settle?: (row: OperationRow) => { state: Exclude<OperationState, 'running'>; result: string | null } | null;
  /** Paths written by approved actions of an interrupted turn. */
  readonly changedPaths?: (conversationId: string, turnId: string) => string[];
}

/** Drafts become interrupted messages, open turns end as interrupted, running operations become uncertain. */
export const recoverTranscripts = (tx: Tx, options: RecoverOptions = {}): Recovered => {
  const drafts = tx.openDrafts();
  for (const conversationId of drafts) tx.endDraft(conversationId, { interrupted: true });

  const turns = tx.openTurns();
  for (const { conversationId, turnId, startedAt } of turns) {
    const conversation = tx.conversation(conversationId);
    // The last event is the last that is known of the turn; the time the bridge was down is not the agent's.
    const lastSeq = conversation?.lastSeq ?? 0;
    const lastAt = tx.events(conversationId, lastSeq - 1, lastSeq)[0]?.at ?? startedAt;
    const changedPaths = options.changedPaths?.(conversationId, turnId) ?? [];
    tx.append(conversationId, {
      type: 'turn.ended',
      turnId,
      data: { stopReason: 'interrupted', durationMs: Math.max(0, lastAt - startedAt), sentence: 'The bridge stopped before the agent was done.', changedPaths },
    });
    if (conversation !== null) tx.updateConversation(conversationId, { lastStop: 'interrupted' });
  }

  const operations = tx.runningOperations();
  for (const row of operations) {
    const settled = options.settle?.(row) ?? { state: 'uncertain' as const, result: JSON.stringify('uncertain') };
    tx.finishOperation(row.key, settled.state, settled.result);
  }
  return { messages: drafts.length, turns: turns.length, operations: operations.length };
};
