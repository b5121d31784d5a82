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
/** Given on as it comes, in as many parts as the pipe cut it into: a flood is not copied to be put together. */
const inParts = kinds.output;
/** Largest body: a replay with its number. */
const maxBytes = limits.terminalReplayBytes + 16;

/** What stands before a body of that length. */
export const headOf = (kind: number, length: number): Buffer => {
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt8(kind, 0);
  head.writeUInt32BE(length, 1);
  return head;
};
export const encode = (kind: number, body: Uint8Array = Buffer.alloc(0)): Buffer =>
  Buffer.concat([headOf(kind, body.length), body]);
export const encodeJson = (kind: number, message: object): Buffer => encode(kind, Buffer.from(JSON.stringify(message)));

/** Bytes of a pipe into frames, whatever way they were cut. */
export class FrameReader {
  readonly #each: (kind: number, body: Buffer) => void;
  /** Of a frame in parts, what is still to come. */
  #left = 0;
  #parts: Buffer[] = [];
  #bytes = 0;
  #needed = headBytes;

  constructor(each: (kind: number, body: Buffer) => void) {
    this.#each = each;
  }

  /** @throws RangeError for a length that no frame has: the peer is not ours any more. */
  push(chunk: Buffer): void {
    const rest = this.#left > 0 ? this.#part(chunk) : chunk;
    if (rest.length === 0) return;
    this.#parts.push(rest);
    this.#bytes += rest.length;
    // A replay comes in hundreds of chunks: they are joined once, when it is whole.
    if (this.#bytes < this.#needed) return;
    this.#walk(this.#parts.length === 1 ? rest : Buffer.concat(this.#parts, this.#bytes));
  }

  #walk(all: Buffer): void {
    let rest = all;
    while (rest.length >= headBytes) {
      const kind = rest.readUInt8(0);
      const length = rest.readUInt32BE(1);
      if (length > maxBytes) throw new RangeError('a frame of this length does not exist');
      if (kind === inParts) {
        this.#left = length;
        rest = this.#part(rest.subarray(headBytes));
        continue;
      }
      if (rest.length < headBytes + length) break;
      this.#each(kind, rest.subarray(headBytes, headBytes + length));
      rest = rest.subarray(headBytes + length);
    }
    this.#parts = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    this.#needed = rest.length < headBytes ? headBytes : headBytes + rest.readUInt32BE(1);
  }

  /** Hands on what there is of a frame in parts; what is behind it. */
  #part(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#left);
    this.#left -= part.length;
    if (part.length > 0) this.#each(inParts, part);
    return bytes.subarray(part.length);
  }
}
