/**
 * The private control socket (D-01, L-20): NDJSON over a Unix socket, 0600, for the CLI. Who the peer is, is judged at
 * `connection.initialize`; the file mode keeps other users out. Called by `gate.ts`.
 */
import { once } from 'node:events';
import { lstatSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { limits } from '#protocol/limits.ts';
import type { Channel, ChannelEvents } from './channel.ts';

const newline = 0x0a;

/** Frames by line, bounded: a peer without a newline is cut off at the frame bound, not held in memory. */
export const lineChannel = (socket: Socket): Channel => {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let parts: Buffer[] = [];
  let bytes = 0;
  const take = (events: ChannelEvents, line: Buffer): void => {
    let text: string;
    try {
      text = decoder.decode(line);
    } catch {
      socket.destroy(); // not UTF-8: not one of ours
      return;
    }
    if (text !== '') events.text(text);
  };
  const read = (events: ChannelEvents, chunk: Buffer): void => {
    let rest = chunk;
    for (let end = rest.indexOf(newline); end >= 0 && !socket.destroyed; end = rest.indexOf(newline)) {
      if (bytes + end > limits.frameBytes) return void socket.destroy();
      const line = parts.length === 0 ? rest.subarray(0, end) : Buffer.concat([...parts, rest.subarray(0, end)]);
      parts = [];
      bytes = 0;
      rest = rest.subarray(end + 1);
      take(events, line);
    }
    bytes += rest.length;
    if (bytes > limits.frameBytes) return void socket.destroy();
    if (rest.length > 0) parts.push(rest);
  };
  return {
    open(events): void {
      socket.on('data', (chunk: Buffer) => read(events, chunk));
      socket.on('close', () => events.closed());
      socket.on('error', () => undefined); // 'close' follows and says all there is to say
    },
    send(text, sent): void {
      if (socket.writable) socket.write(`${text}\n`, (error) => (error ? undefined : sent()));
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    ping: null,
    close(): void {
      socket.resume(); // the peer's end must be heard
      socket.end();
      setTimeout(() => socket.destroy(), limits.retireMs).unref();
    },
  };
};

/**
 * Listens at `path`. The caller holds the lock of this state, so a socket found there is a dead bridge's and is
 * replaced; anything else found there is an error.
 */
export const listenControl = async (
  path: string,
  peersDirectory: string,
  serve: (socket: Socket) => void,
): Promise<Server> => {
  mkdirSync(peersDirectory, { recursive: true, mode: 0o700 });
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isSocket())
    throw new Error(`${path} is in the way of the control socket. Remove it, then start again.`);
  rmSync(path, { force: true });
  const server = createServer({ allowHalfOpen: false }, serve);
  // Bound under a closed mask: the socket is never open to others, not even for a moment. Binding a path is synchronous.
  const mask = process.umask(0o177);
  try {
    server.listen({ path });
  } finally {
    process.umask(mask);
  }
  await once(server, 'listening');
  return server;
};
