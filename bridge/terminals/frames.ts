/**
 * What a bridge and a terminal's host say to each other over the host's stdin and stdout: one byte of kind, four of
 * length, the body. Used by `host.ts` and `terminal.ts`, and by nobody else: both ends are of one version.
 */
import { terminalSize } from '#protocol/methods/terminal.ts';
import { limits } from '#protocol/limits.ts';
import { count, text, z } from '#protocol/schema.ts';

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

export const openMessage = z.strictObject({
  program: text(limits.pathBytes),
  env: z.record(z.string(), z.string()),
  /** The directory as the walker found it; the host is in this one or in none. */
  cwd: z.strictObject({ path: text(limits.pathBytes), dev: text(32), ino: text(32) }),
  size: terminalSize,
});
export type OpenMessage = z.infer<typeof openMessage>;
/** Of `moved` nothing was started. `library`: node-pty does not load here. */
export const failedMessage = z.strictObject({ why: z.enum(['moved', 'library', 'program']), message: text(500) });
export const exitMessage = z.strictObject({ code: z.nullable(z.int()), signal: z.nullable(text(32)) });
export const replayMessage = z.strictObject({ id: count });

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
