/**
 * Bytes of an agent's stdout → lines of text, in bounded memory (L-33). A line longer than the bound is passed over as
 * it comes, without being kept; a line that is not UTF-8 is not JSON either. Both are reported, never thrown.
 * Used by connection.ts.
 */
export interface LineSink {
  line(text: string): void;
  /** A line that was not kept: too long, or not UTF-8. `head` is its beginning for the operator. */
  dropped(why: 'too_long' | 'not_utf8', head: string): void;
}

const newline = 0x0a;
const headBytes = 256;

export class LineReader {
  readonly #sink: LineSink;
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #tooLong: string | null = null;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });

  constructor(sink: LineSink, maxBytes: number) {
    this.#sink = sink;
    this.#maxBytes = maxBytes;
  }

  push(chunk: Uint8Array): void {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      this.#take(chunk.subarray(start, end));
      this.#finish();
      start = end + 1;
    }
    if (start < chunk.length) this.#take(chunk.subarray(start));
  }

  /** The stream has ended: what is left is a line too. */
  end(): void {
    if (this.#bytes > 0 || this.#tooLong !== null) this.#finish();
  }

  #take(part: Uint8Array): void {
    if (this.#tooLong !== null || part.length === 0) return;
    if (this.#bytes + part.length > this.#maxBytes) {
      const first = this.#parts[0] ?? part;
      this.#tooLong = new TextDecoder().decode(first.subarray(0, headBytes));
      this.#parts = [];
      this.#bytes = 0;
      return;
    }
    this.#parts.push(part);
    this.#bytes += part.length;
  }

  #finish(): void {
    const parts = this.#parts;
    const tooLong = this.#tooLong;
    this.#parts = [];
    this.#bytes = 0;
    this.#tooLong = null;
    if (tooLong !== null) return this.#sink.dropped('too_long', tooLong);
    const bytes = parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
    let text: string;
    try {
      text = this.#decoder.decode(bytes);
    } catch {
      return this.#sink.dropped('not_utf8', new TextDecoder().decode(bytes.subarray(0, headBytes)));
    }
    if (text.trim() !== '') this.#sink.line(text);
  }
}
