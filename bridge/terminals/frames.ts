/**
 * What a bridge and a terminal's host say to each other over the host's stdin and stdout: one byte of kind, four of
 * length, the body. The host believes the bridge; the bridge parses what the host says (`said.ts`), for that reads
 * hostile output. No schema library here: it would be a third of a host's start. Used by `host.ts` and `process.ts`.
 */
import { limits } from '#protocol/limits.ts';
import type { TerminalSize } from '#protocol/methods/terminal.ts';

/** To the host: open, input, resize, replay (a number), wait and go. From it: the rest; replay and resize answer. */
export const kinds = {
  open: 1,
  input: 2,
  resize: 3,
  replay: 4,
  wait: 5,
  go: 6,
  opened: 7,
  failed: 8,
  output: 9,
  title: 10,
  exit: 11,
} as const;

export interface OpenMessage {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** The directory as the walker found it; the host is in this one or in none. */
  readonly cwd: { readonly path: string; readonly dev: string; readonly ino: string };
  readonly size: TerminalSize;
}

const headBytes = 5;
/** Largest body: a replay with its number. */
const maxBytes = limits.terminalReplayBytes + 16;

export const encode = (kind: number, body: Uint8Array = Buffer.alloc(0)): Buffer => {
  const frame = Buffer.allocUnsafe(headBytes + body.length);
  frame.writeUInt8(kind, 0);
  frame.writeUInt32BE(body.length, 1);
  frame.set(body, headBytes);
  return frame;
};
export const encodeJson = (kind: number, message: object): Buffer => encode(kind, Buffer.from(JSON.stringify(message)));

/** Bytes of a pipe into frames, whatever way they were cut. */
export class FrameReader {
  readonly #each: (kind: number, body: Buffer) => void;
  #parts: Buffer[] = [];
  #bytes = 0;
  #needed = headBytes;

  constructor(each: (kind: number, body: Buffer) => void) {
    this.#each = each;
  }

  /** @throws RangeError for a length that no frame has: the peer is not ours any more. */
  push(chunk: Buffer): void {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    // A replay comes in hundreds of chunks: they are joined once, when it is whole.
    if (this.#bytes < this.#needed) return;
    let rest = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts, this.#bytes);
    while (rest.length >= headBytes) {
      const length = rest.readUInt32BE(1);
      if (length > maxBytes) throw new RangeError('a frame of this length does not exist');
      if (rest.length < headBytes + length) break;
      this.#each(rest.readUInt8(0), rest.subarray(headBytes, headBytes + length));
      rest = rest.subarray(headBytes + length);
    }
    this.#parts = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    this.#needed = rest.length < headBytes ? headBytes : headBytes + rest.readUInt32BE(1);
  }
}
