/**
 * What allow rules stand on in a conversation: the trust it began with, and that nothing in it changed what runs
 * by itself. The rule not to break: once paused, for the rest of the conversation, over restarts too. Called by the desk
 * inside its transactions.
 */
import type { GroundRow, Tx } from '../../ledger/contract.ts';
import type { PolicyRequest } from './request.ts';

/** `trust`: the fingerprint accepted for the workspace as it is now. */
export const groundOf = (tx: Tx, conversationId: string, trust: string | null): GroundRow => {
  const known = tx.ground(conversationId);
  if (known === null) {
    const row: GroundRow = { conversationId, trust, paused: null };
    tx.putGround(row);
    return row;
  }
  if (known.paused !== null || known.trust === trust) return known;
  const paused = 'the trust in this folder was given or taken back in this conversation';
  const row: GroundRow = { ...known, paused };
  tx.putGround(row);
  return row;
};

/** After an action was allowed: one that may change what agents, editors or git run later pauses the allow rules. */
export const pauseAfter = (tx: Tx, request: PolicyRequest, conversationId: string): void => {
  const isReading = request.effects.every((effect) => effect === 'read' || effect === 'search');
  if (isReading || !request.facts.paths.some(({ place }) => place === 'agent_config')) return;
  const paused = 'configuration of agents, editors or git was changed in this conversation';
  tx.putGround({ conversationId, trust: tx.ground(conversationId)?.trust ?? null, paused });
};
