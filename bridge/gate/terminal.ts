/**
 * The socket of one terminal, `<base>/terminal/<id>` (D-01): behind the same judge, cookie and session as the app's, and
 * nothing is heard on it before a ticket for exactly this path. Then keys come in and output goes out as bytes, at a
 * pace of its own, so that a flood never delays the protocol. Called by `upgrade.ts`; ended with its session by `gate.ts`.
 */
import { performance } from 'node:perf_hooks';
import type { RawData, WebSocket } from 'ws';
import { closeCodes } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { terminalClientFrame, type TerminalClientFrame } from '#protocol/methods/terminal.ts';
import { z } from '#protocol/schema.ts';
import type { TerminalAttachment, Terminals, TerminalViewer } from '../terminals/contract.ts';
import type { AttachmentDeps, LogLine } from './attachment.ts';
import { Bucket } from './bucket.ts';
import { endSocket } from './socket.ts';
import type { Tickets } from './tickets.ts';

export interface TerminalSocketParts {
  readonly tickets: Tickets;
  readonly terminals: Pick<Terminals, 'attach'>;
  readonly isLive: (sessionId: string) => boolean;
  readonly log: (line: LogLine) => void;
  readonly timing?: AttachmentDeps['timing'];
}

const bytesOf = (data: RawData): Buffer =>
  Array.isArray(data) ? Buffer.concat(data) : data instanceof ArrayBuffer ? Buffer.from(data) : data;

/** Null for what is no control frame of ours. */
const frameOf = (data: Buffer): TerminalClientFrame | null => {
  if (data.length > limits.terminalControlBytes) return null;
  try {
    const parsed = z.safeParse(terminalClientFrame, JSON.parse(data.toString('utf8')));
    return parsed.success ? parsed.data : null;
  } catch {
    return null; // not JSON
  }
};

class TerminalSocket {
  readonly sessionId: string;
  readonly #socket: WebSocket;
  readonly #path: string;
  readonly #parts: TerminalSocketParts;
  readonly #frames: Bucket;
  readonly #bytes: Bucket;
  readonly #handshake: NodeJS.Timeout;
  #pings: NodeJS.Timeout | null = null;
  #pause: NodeJS.Timeout | null = null;
  #seenAt = performance.now();
  /** Present from a good ticket on: what came before the terminal answered waits for it. */
  #attaching: Promise<TerminalAttachment | null> | null = null;
  #attachment: TerminalAttachment | null = null;
  #isEnded = false;

  constructor(socket: WebSocket, sessionId: string, path: string, parts: TerminalSocketParts, left: () => void) {
    this.sessionId = sessionId;
    this.#socket = socket;
    this.#path = path;
    this.#parts = parts;
    const now = performance.now();
    const second = { windowMs: 1000 };
    this.#frames = new Bucket(
      { ...second, perWindow: limits.terminalInputFrames, burst: limits.terminalInputFrames },
      now,
    );
    this.#bytes = new Bucket(
      { ...second, perWindow: limits.terminalInputBytes, burst: limits.terminalInputBytes },
      now,
    );
    this.#handshake = setTimeout(
      () => this.#refuse('no ticket in time'),
      parts.timing?.handshakeMs ?? limits.handshakeMs,
    );
    socket.on('message', (data, isBinary) => this.#receive(bytesOf(data), isBinary));
    socket.on('pong', () => (this.#seenAt = performance.now()));
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => {
      this.#ended();
      left();
    });
  }

  close(code: number, reason: string): void {
    if (this.#isEnded) return;
    this.#ended();
    endSocket(this.#socket, code, reason);
  }

  #ended(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#handshake);
    if (this.#pings !== null) clearInterval(this.#pings);
    if (this.#pause !== null) clearTimeout(this.#pause);
    void this.#attaching?.then((attachment) => attachment?.detach());
  }

  #refuse(reason: string): void {
    this.#parts.log({ event: 'refused', reason, route: 'terminal' });
    this.close(closeCodes.signedOut, reason);
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (this.#isEnded) return;
    this.#seenAt = performance.now();
    const frame = isBinary ? null : frameOf(data);
    if (this.#attaching === null) return this.#attach(frame);
    if (!isBinary && (frame === null || frame.type === 'attach')) return this.#refuse('not a frame of a terminal');
    this.#slow(data.length, frame?.type === 'ack');
    if (this.#attachment !== null) this.#perform(this.#attachment, data, frame);
    else
      void this.#attaching.then(
        (attachment) => attachment !== null && !this.#isEnded && this.#perform(attachment, data, frame),
      );
  }

  #attach(frame: TerminalClientFrame | null): void {
    if (frame?.type !== 'attach') return this.#refuse('a ticket comes first');
    // One use, also when it does not fit.
    const isFit = this.#parts.tickets.take(frame.ticket, this.sessionId, this.#path);
    if (!isFit || !this.#parts.isLive(this.sessionId)) return this.#refuse('ticket');
    clearTimeout(this.#handshake);
    this.#pings = setInterval(() => this.#beat(), this.#parts.timing?.pingIntervalMs ?? limits.pingIntervalMs);
    const terminalId = this.#path.slice(this.#path.indexOf('/') + 1);
    this.#attaching = this.#parts.terminals.attach(terminalId, frame.size, this.#viewer()).then(
      (attachment) => {
        this.#attachment = attachment;
        if (attachment === null) this.close(closeCodes.done, 'gone');
        return attachment;
      },
      () => {
        this.#parts.log({ event: 'internal', where: 'terminal' });
        this.close(closeCodes.internal, 'internal');
        return null;
      },
    );
  }

  #viewer(): TerminalViewer {
    const send = (data: string | Uint8Array, binary: boolean): void => {
      if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(data, { binary, compress: false });
    };
    return {
      frame: (frame) => send(JSON.stringify(frame), false),
      bytes: (bytes) => send(bytes, true),
      close: (reason) => this.close(reason === 'slow' ? closeCodes.tooSlow : closeCodes.done, reason),
    };
  }

  #perform(attachment: TerminalAttachment, data: Buffer, frame: TerminalClientFrame | null): void {
    if (frame === null) attachment.input(data);
    else if (frame.type === 'resize') attachment.resize(frame.size);
    else if (frame.type === 'own') attachment.own();
    else if (frame.type === 'ack') attachment.ack(frame.bytes);
  }

  /** Faster than a person: nothing is lost, the page's own queue waits. */
  #slow(bytes: number, isAck: boolean): void {
    const now = performance.now();
    const waitMs = Math.max(
      this.#frames.owe(now, isAck ? 1 / limits.terminalAcksPerFrame : 1),
      isAck ? 0 : this.#bytes.owe(now, bytes),
    );
    if (waitMs === 0) return;
    this.#socket.pause();
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.#socket.resume(), waitMs);
  }

  #beat(): void {
    if (!this.#parts.isLive(this.sessionId)) return this.close(closeCodes.signedOut, 'signed out');
    if (performance.now() - this.#seenAt > limits.presenceTimeoutMs) return this.close(closeCodes.done, 'silent');
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }
}

/** Every open socket of a terminal. */
export class TerminalSockets {
  readonly #parts: TerminalSocketParts;
  readonly #open = new Set<TerminalSocket>();

  constructor(parts: TerminalSocketParts) {
    this.#parts = parts;
  }

  /** `path` is below base, `terminal/<id>`, as the judge let it through; the session is live. */
  serve(socket: WebSocket, sessionId: string, path: string): void {
    const one = new TerminalSocket(socket, sessionId, path, this.#parts, () => this.#open.delete(one));
    if (this.#open.size >= limits.terminalSockets) return one.close(closeCodes.tooSlow, 'too many terminal sockets');
    this.#open.add(one);
  }

  retire(sessionIds: readonly string[]): void {
    for (const one of this.#open) if (sessionIds.includes(one.sessionId)) one.close(closeCodes.signedOut, 'signed out');
  }

  close(): void {
    for (const one of this.#open) one.close(closeCodes.stopping, 'the bridge is stopping');
  }
}
