/** From composed rooms to a listening gate: the port, session receipts, and a port that a stranger held meanwhile. */
import type { Actor } from '#protocol/actor.ts';
import type { Tx } from '../ledger/contract.ts';
import { AssetsUnusable } from '../gate/assets.ts';
import { startGate, type Gate, type GateDeps } from '../gate/gate.ts';
import { PortTaken } from '../gate/holder.ts';
import type { SessionNews } from '../gate/sessions.ts';
import { CliError, exits } from './args.ts';
import { assetsDirectory, portMeta, type Early } from './early.ts';
import type { Parts } from './parts.ts';

const sealSession = (parts: Parts, tx: Tx, news: SessionNews): void => {
  if (news.what === 'created') {
    const row = tx.sessions().find(({ sessionId }) => sessionId === news.sessionId);
    if (row !== undefined) parts.seal.session(tx, row);
    return;
  }
  const detail = { what: 'revoked', why: news.why, sessions: [...news.sessionIds] };
  parts.seal.sign(tx, {
    kind: 'session',
    actor: null,
    detail,
    sentence: `${news.sessionIds.length} signed out (${news.why}).`,
  });
};

/** What the operator can mend is said in one sentence. */
const opened = async (deps: GateDeps): Promise<Gate> => {
  try {
    return await startGate(deps);
  } catch (error) {
    if (error instanceof AssetsUnusable || error instanceof PortTaken)
      throw new CliError(error.message, exits.failed, { cause: error });
    throw error;
  }
};

/** The door behind the porch. Any port is remembered, but 0. */
export const openGate = async (parts: Parts, early: Pick<Early, 'port' | 'porch'>): Promise<Gate> => {
  const gate: { current: Gate | null } = { current: null };
  const running = (): Gate => {
    if (gate.current === null) throw new Error('a command came before the gate was open');
    return gate.current;
  };
  const dispatch = parts.dispatch({
    origin: () => running().origin,
    launch: () => {
      const { url, expiresAt } = running().launchUrl();
      return { launchUrl: url, expiresAt };
    },
    sessions: (actor: Actor) => ({
      sessions: running().sessions(actor.kind === 'browser' ? actor.sessionId : undefined),
    }),
    revoke: async (sessionId) => ({ revoked: await running().revoke(sessionId) }),
  });
  gate.current = await opened({
    port: early.port,
    porch: early.porch,
    controlSocketPath: parts.directories.controlSocket,
    peersDirectory: parts.directories.peers,
    assetsDirectory,
    ledger: parts.ledger,
    dispatch,
    feed: parts.ledger.feed,
    terminals: parts.terminals,
    onSession: (tx, news) => sealSession(parts, tx, news),
    insideAgent: (pid) => parts.agents.insideAgent(pid),
    bootId: parts.bootId,
    log: parts.log,
    now: Date.now,
  });
  const port = String(early.port);
  if (early.port !== 0 && parts.ledger.read.meta(portMeta) !== port)
    await parts.ledger.commit((tx) => tx.setMeta(portMeta, port));
  return gate.current;
};
