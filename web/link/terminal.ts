/**
 * The socket of one terminal (P-02): a ticket, the size the page has, the screen as it stands, then bytes. Connects
 * again by itself; what is typed while there is no connection is not kept. Knows nothing of how a screen is drawn.
 */
import { closeCodes } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import {
  terminalServerFrame,
  type TerminalClientFrame,
  type TerminalServerFrame,
  type TerminalSize,
} from '#protocol/methods/terminal.ts';
import { z } from '#protocol/schema.ts';

/** `gone`: the bridge has no such terminal, or it ended; nothing more comes. */
export type WireState = 'connecting' | 'live' | 'waiting' | 'gone';

/** As much of a WebSocket as is used. */
export interface TerminalSocket {
  binaryType: BinaryType;
  readonly readyState: number;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number): void;
  onopen: (() => void) | null;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null;
}
export interface WireParts {
  /** One use; null when there is none to be had right now. */
  readonly ticket: () => Promise<string | null>;
  readonly connect: () => TerminalSocket;
  readonly size: () => TerminalSize;
  readonly timer: (ms: number, then: () => void) => () => void;
}
export interface WireEvents {
  state(state: WireState): void;
  frame(frame: TerminalServerFrame): void;
  /** `replay`: the whole screen, in place of all that was drawn before. */
  bytes(bytes: Uint8Array, replay: boolean): void;
}

/** Well below `limits.terminalInputBytes`, so that a long paste is no single burst. */
const inputBytes = 16 * 1024;
const isOpen = 1;
const retryMs = [250, 500, 1000, 2000, 4000, 8000] as const;

const frameOf = (data: string): TerminalServerFrame | null => {
  try {
    const parsed = z.safeParse(terminalServerFrame, JSON.parse(data));
    return parsed.success ? parsed.data : null;
  } catch {
    return null; // not JSON
  }
};

export class TerminalWire {
  readonly #parts: WireParts;
  readonly #events: WireEvents;
  #socket: TerminalSocket | null = null;
  #cancel: (() => void) | null = null;
  #tries = 0;
  /** A replay was announced: the next bytes are it. */
  #isReplay = false;
  #isLive = false;
  #isClosed = false;
  #sent: TerminalSize | null = null;

  constructor(parts: WireParts, events: WireEvents) {
    this.#parts = parts;
    this.#events = events;
  }

  get live(): boolean {
    return this.#isLive;
  }

  /** Now, instead of when the wait is over; nothing while connected. */
  wake(): void {
    if (this.#socket !== null || this.#isClosed) return;
    this.#cancel?.();
    this.#cancel = null;
    void this.#connect();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#leave();
  }

  /** False when nothing is connected: then nothing was sent, and nothing will be. */
  input(bytes: Uint8Array<ArrayBuffer>): boolean {
    const socket = this.#socket;
    if (!this.#isLive || socket?.readyState !== isOpen) return false;
    for (let at = 0; at < bytes.length; at += inputBytes) socket.send(bytes.subarray(at, at + inputBytes));
    return true;
  }

  resize(size: TerminalSize): void {
    if (this.#sent?.columns === size.columns && this.#sent.rows === size.rows) return;
    if (this.#say({ type: 'resize', size })) this.#sent = size;
  }
  own(): void {
    this.#say({ type: 'own' });
  }
  ack(bytes: number): void {
    this.#say({ type: 'ack', bytes });
  }

  #say(frame: TerminalClientFrame): boolean {
    if (this.#socket?.readyState !== isOpen || !this.#isLive) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  async #connect(): Promise<void> {
    this.#events.state('connecting');
    // Held before the ticket comes, so that a second call does not connect twice.
    const socket = this.#parts.connect();
    this.#socket = socket;
    socket.binaryType = 'arraybuffer';
    socket.onclose = ({ code, reason }) => {
      if (this.#socket === socket) this.#lost(code, reason);
    };
    socket.onopen = () => void this.#attach(socket);
    socket.onmessage = ({ data }) => {
      if (this.#socket === socket) this.#receive(data);
    };
  }

  async #attach(socket: TerminalSocket): Promise<void> {
    const ticket = await this.#parts.ticket();
    if (this.#socket !== socket) return;
    if (ticket === null) {
      this.#leave();
      return this.#lost(closeCodes.internal, 'no ticket');
    }
    const size = this.#parts.size();
    this.#sent = size;
    const frame: TerminalClientFrame = { type: 'attach', ticket, size };
    if (socket.readyState === isOpen) socket.send(JSON.stringify(frame));
  }

  #receive(data: unknown): void {
    if (data instanceof ArrayBuffer) return this.#events.bytes(new Uint8Array(data), this.#took());
    const frame = typeof data === 'string' ? frameOf(data) : null;
    if (frame === null) {
      // Of another version, or no terminal at all: begun anew, it is whole again.
      this.#leave();
      return this.#lost(closeCodes.internal, 'not a frame');
    }
    if (frame.type === 'replay') {
      this.#isReplay = true;
      this.#tries = 0;
      this.#isLive = true;
      this.#events.state('live');
    }
    this.#events.frame(frame);
  }
  #took(): boolean {
    const is = this.#isReplay;
    this.#isReplay = false;
    return is;
  }

  #leave(): void {
    const socket = this.#socket;
    this.#socket = null;
    this.#isLive = false;
    this.#isReplay = false;
    socket?.close(closeCodes.done);
  }

  #lost(code: number, reason: string): void {
    this.#leave();
    if (this.#isClosed) return;
    if (code === closeCodes.done && reason === 'gone') {
      this.#isClosed = true;
      return this.#events.state('gone');
    }
    this.#events.state('waiting');
    // Cut off for being slow, with the screen as it stands to be had at once: no reason to wait longer each time.
    const ms = code === closeCodes.tooSlow ? retryMs[0] : retryMs[Math.min(this.#tries, retryMs.length - 1)];
    this.#tries += 1;
    this.#cancel = this.#parts.timer(ms ?? retryMs[0], () => {
      this.#cancel = null;
      void this.#connect();
    });
  }
}

/** The longest text a key, a paste or a reply can be sent as. */
export const encodeInput = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
/** What a mouse report is: one byte for each unit. */
export const encodeBinary = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(text, (unit) => unit.charCodeAt(0) & 0xff);

export const boundedSize = (columns: number, rows: number): TerminalSize => ({
  columns: Math.max(limits.terminalColumnsMin, Math.min(limits.terminalColumns, Math.floor(columns) || 80)),
  rows: Math.max(1, Math.min(limits.terminalRows, Math.floor(rows) || 24)),
});
