/** From a judged upgrade to an attachment: the session once more, then WebSocket. Called by `gate.ts`. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { limits } from '#protocol/limits.ts';
import type { SessionRow } from '../ledger/contract.ts';
import { serveAttachment, type AttachmentDeps, type Who } from './attachment.ts';
import type { Headers } from './headers.ts';
import type { Allowed } from './listen.ts';
import type { Sessions } from './sessions.ts';
import { makeSocketServer, socketChannel } from './socket.ts';
import type { TerminalSockets } from './terminal.ts';
import type { Tickets } from './tickets.ts';

export interface UpgradeParts {
  readonly sessions: Sessions;
  readonly tickets: Tickets;
  readonly headers: Headers;
  readonly attachmentDeps: AttachmentDeps;
  readonly terminals: TerminalSockets;
  readonly origin: string;
  /** Told of each connection that stays open. */
  readonly opened: (socket: Duplex) => void;
}

const browserOf = (row: SessionRow, { sessions, tickets, attachmentDeps, origin }: UpgradeParts): Who => ({
  kind: 'browser',
  sessionId: row.sessionId,
  keyId: row.keyId,
  publicKeySpki: row.publicKeySpki,
  origin,
  path: `${sessions.base}socket`,
  isLive: () => {
    const isLive = sessions.isLive(row.sessionId);
    if (isLive)
      sessions
        .touch(row.sessionId)
        .catch(() => attachmentDeps.log({ event: 'session_not_touched', session: row.sessionId }));
    return isLive;
  },
  // A page may name the path with or without our secret prefix.
  ticket: (path) =>
    tickets.create(row.sessionId, path.startsWith(sessions.base) ? path.slice(sessions.base.length) : path),
});

/** Handles one upgrade; returns the status to refuse with, or null when the connection is taken. */
export const makeUpgrade = (
  parts: UpgradeParts,
): ((allowed: Allowed, request: IncomingMessage, socket: Duplex, head: Buffer) => number | null) => {
  const { log } = parts.attachmentDeps;
  const servers = {
    socket: makeSocketServer(),
    terminal: makeSocketServer(limits.terminalInputBytes),
  };
  for (const [route, server] of Object.entries(servers)) {
    server.on('headers', (lines) =>
      lines.push(...Object.entries(parts.headers).map(([name, value]) => `${name}: ${value}`)),
    );
    // With a listener ws leaves the refusal to us, with our headers.
    server.on('wsClientError', () => log({ event: 'refused', reason: 'websocket_head', status: 400, route }));
  }
  return (allowed, request, socket, head) => {
    if (allowed.kind !== 'base' || (allowed.route !== 'socket' && allowed.route !== 'terminal')) return 404;
    const { route, rest } = allowed;
    const found = parts.sessions.find(allowed.cookies);
    if (found.state !== 'live') {
      log({ event: 'refused', reason: `session_${found.state}`, route });
      return found.state === 'revoked' ? 410 : 401;
    }
    let isTaken = false; // by the callback, which runs before handleUpgrade returns or not at all
    servers[route].handleUpgrade(request, socket, head, (ws) => {
      isTaken = true;
      parts.opened(socket);
      if (route === 'terminal') parts.terminals.serve(ws, found.row.sessionId, rest);
      else serveAttachment(socketChannel(ws), browserOf(found.row, parts), parts.attachmentDeps);
    });
    return isTaken ? null : 400;
  };
};
