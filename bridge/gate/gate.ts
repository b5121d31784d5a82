/**
 * The gate put together: verified assets, sessions, the HTTP listener, the app's socket and the control socket.
 * It reaches the rooms only through `dispatch` and `feed`, handed in by main, which alone calls this.
 */
import { rmSync } from 'node:fs';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { closeCodes } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { SessionSummary } from '#protocol/methods/connection.ts';
import type { Feed, Tx } from '../ledger/contract.ts';
import type { Terminals } from '../terminals/contract.ts';
import { serveAttachment, type AttachmentDeps, type LogLine } from './attachment.ts';
import type { Dispatch } from './contract.ts';
import { lineChannel, listenControl } from './control.ts';
import { Door, type GateLedger } from './door.ts';
import { holderOf, PortTaken } from './holder.ts';
import { originOf } from './judge.ts';
import { LaunchTokens } from './launch.ts';
import type { Listener } from './listen.ts';
import { openPorch, type Porch } from './porch.ts';
import { Roster } from './roster.ts';
import { Sessions, type SessionNews } from './sessions.ts';
import { TerminalSockets } from './terminal.ts';
import { Tickets } from './tickets.ts';
import { makeUpgrade } from './upgrade.ts';

export type { GateLedger };
export interface GateDeps {
  /** 0 takes a free one. */
  readonly port: number;
  /** Where it listens already, opened before the rooms were loaded; opened here otherwise. */
  readonly porch?: Promise<Porch> | undefined;
  readonly controlSocketPath: string;
  /** `<runtime>/peers`: where control clients prove their pid. Made 0700 when absent. */
  readonly peersDirectory: string;
  /** The built app, with its `assets.json`. */
  readonly assetsDirectory: string;
  readonly ledger: GateLedger;
  readonly dispatch: Dispatch;
  readonly feed: Pick<Feed, 'attach' | 'detach' | 'ack' | 'broadcast' | 'subscribed' | 'invalidate'>;
  readonly terminals: Pick<Terminals, 'attach'>;
  /** Runs in the transaction that stores it: sign the session's receipt there. */
  readonly onSession: (tx: Tx, news: SessionNews) => void;
  readonly insideAgent: (pid: number) => boolean;
  readonly bootId: string;
  readonly log: (line: LogLine) => void;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
  /** Milliseconds that only grow; `performance.now` when absent. */
  readonly monotonic?: (() => number) | undefined;
  readonly checkAnswers?: boolean | undefined;
  readonly timing?: AttachmentDeps['timing'];
}
export interface Gate {
  readonly port: number;
  readonly origin: string;
  /** Source revision the app was built from. */
  readonly revision: string;
  readonly attachments: number;
  /** What `serveAttachment` needs for one more, in-process client. */
  readonly attachmentDeps: AttachmentDeps;
  /** A new one-use URL, 60 s. */
  launchUrl(): { readonly url: string; readonly expiresAt: number };
  /** `current` marks the session that asks. */
  sessions(current?: string): SessionSummary[];
  /** One session, or all; their sockets end with 1008 after the answers on their way. Resolves with how many were live. */
  revoke(sessionId: string | null): Promise<number>;
  /** All sessions and the path segment. */
  rotate(): Promise<number>;
  /** Tells every client 1001, closes both listeners, removes the control socket. Idempotent. */
  close(): Promise<void>;
}

const porchOf = async (deps: GateDeps, sessions: Sessions): Promise<Porch> => {
  try {
    return await (deps.porch ?? openPorch({ ...deps, segment: null }));
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'EADDRINUSE') throw error;
    // Whoever held our origin may have been given cookie and path by a page of ours (L-03).
    await sessions.rotate('port_taken');
    const holder = holderOf(deps.port);
    deps.log({ event: 'port_taken', port: deps.port, pid: holder.pid, uid: holder.uid });
    throw new PortTaken(deps.port, holder);
  }
};

/** Sessions end together with their sockets. */
const retireIn =
  (roster: Roster, terminals: TerminalSockets, feed: Pick<Feed, 'invalidate'>) =>
  (sessionIds: readonly string[]): void => {
    terminals.retire(sessionIds);
    for (const one of roster.all())
      if (one.sessionId !== null && sessionIds.includes(one.sessionId)) one.retire(closeCodes.signedOut, 'signed out');
    feed.invalidate('sessions');
  };

/** Every connection is told, has a moment to hear it, and is cut off. */
const closeAll = async (parts: {
  listener: Listener;
  control: Server;
  roster: Roster;
  terminals: TerminalSockets;
  open: ReadonlySet<{ destroy(): void }>;
}): Promise<void> => {
  const { listener, control, roster, terminals, open } = parts;
  const ended = [listener.server, control].map(
    (server) => new Promise<void>((resolve) => server.close(() => resolve())),
  );
  for (const one of roster.all()) one.close(closeCodes.stopping, 'the bridge is stopping');
  terminals.close();
  const cutOff = setTimeout(() => {
    for (const socket of open) socket.destroy();
    listener.connections.destroyAll();
  }, limits.retireMs);
  listener.server.closeIdleConnections();
  await Promise.all(ended);
  clearTimeout(cutOff);
};

/**
 * Verifies the app, listens on 127.0.0.1 and on the control socket. The caller holds the lock of this state.
 * @throws AssetsUnusable, PortTaken (all sessions dropped, segment rotated), or the system's error
 */
export const startGate = async (deps: GateDeps): Promise<Gate> => {
  const monotonic = deps.monotonic ?? ((): number => performance.now());
  const sessions = await Sessions.open(deps);
  const porch = await porchOf(deps, sessions);
  const { listener, assets, headers } = porch;
  const { port } = listener;
  sessions.listensOn(port);
  const tokens = new LaunchTokens(monotonic);
  const tickets = new Tickets(monotonic);
  const roster = new Roster(deps.feed);
  const { ledger, feed, log, now } = deps;
  const { bridgeId, lineage } = ledger;
  const attachmentDeps: AttachmentDeps = { ...deps, bridgeId, lineage, roster };
  const terminals = new TerminalSockets({
    tickets,
    terminals: deps.terminals,
    isLive: (sessionId) => sessions.isLive(sessionId),
    log,
    timing: deps.timing,
  });
  const retire = retireIn(roster, terminals, feed);
  const open = new Set<{ destroy(): void }>();
  const opened = (socket: Duplex): void => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  };
  const door = new Door({ ledger, feed, log, sessions, tokens, tickets, headers, retire });
  const origin = originOf(port);
  const { peersDirectory, insideAgent } = deps;
  const control = await listenControl(deps.controlSocketPath, peersDirectory, (socket) => {
    opened(socket);
    serveAttachment(lineChannel(socket), { kind: 'control', peersDirectory, insideAgent }, attachmentDeps);
  }).catch((error: unknown) => {
    listener.server.close();
    throw error;
  });
  porch.enter({
    answer: (allowed, request, response) => door.answer(allowed, request, response),
    upgrade: makeUpgrade({ sessions, tickets, headers, attachmentDeps, terminals, origin, opened }),
    base: () => sessions.base,
  });
  log({ event: 'listening', port, revision: assets.revision });

  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    rmSync(deps.controlSocketPath, { force: true });
    await closeAll({ listener, control, roster, terminals, open });
    log({ event: 'closed', port });
  };
  const ended = (sessionIds: readonly string[]): number => {
    retire(sessionIds);
    return sessionIds.length;
  };
  return {
    port,
    origin,
    revision: assets.revision,
    get attachments() {
      return roster.size;
    },
    attachmentDeps,
    launchUrl: () => ({ url: `${origin}/#launch=${tokens.mint()}`, expiresAt: now() + limits.launchTokenMs }),
    sessions: (current) => sessions.list(current ?? null),
    revoke: async (sessionId) => ended(await sessions.revoke(sessionId, 'operator')),
    rotate: async () => ended(await sessions.rotate('rotated')),
    close: () => (closing ??= close()),
  };
};
