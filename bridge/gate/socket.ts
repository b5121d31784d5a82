/** WebSocket as a channel (D-01): text frames only, no compression, bounded. Called by `gate.ts` after the verdict. */
import type { RawData, WebSocket } from 'ws';
import { WebSocketServer } from 'ws';
import { closeCodes } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Channel, ChannelEvents } from './channel.ts';

/** Upgrades what the judge let through; it listens nowhere itself. */
export const makeSocketServer = (maxPayload: number = limits.frameBytes): WebSocketServer =>
  new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload,
    skipUTF8Validation: false,
    handleProtocols: () => false,
  });

const textOf = (data: RawData): string =>
  Array.isArray(data) ? Buffer.concat(data).toString('utf8') : Buffer.from(data as ArrayBuffer).toString('utf8');

/** Says why and ends; a peer that does not answer is cut off. */
export const endSocket = (socket: WebSocket, code: number, reason: string): void => {
  socket.resume(); // the peer's close frame must be heard
  socket.close(code, reason);
  // A peer that reads nothing never sees the close frame; a slow one gets the time it had to drain.
  setTimeout(() => socket.terminate(), code === closeCodes.tooSlow ? limits.slowDrainMs : limits.retireMs).unref();
};

export const socketChannel = (socket: WebSocket): Channel => ({
  open(events: ChannelEvents): void {
    socket.on('message', (data, isBinary) => {
      if (isBinary) socket.close(closeCodes.signedOut, 'text frames only');
      else events.text(textOf(data));
    });
    socket.on('pong', () => events.seen());
    socket.on('close', () => events.closed());
    // ws closes by itself after it: 1009 for size, 1007 for UTF-8, 1002 for framing. 'close' follows.
    socket.on('error', () => undefined);
  },
  send(text, sent): void {
    if (socket.readyState === socket.OPEN)
      socket.send(text, { binary: false, compress: false }, (error) => (error ? undefined : sent()));
  },
  pause: () => socket.pause(),
  resume: () => socket.resume(),
  ping(): void {
    if (socket.readyState === socket.OPEN) socket.ping();
  },
  close(code, reason): void {
    endSocket(socket, code, reason);
  },
});
