/**
 * What a program writes, made safe to hand on and cut only where it may be cut: no piece ends inside a code point or an
 * escape sequence, so that a page which begins between two pieces draws what one that saw all draws. Sequences that
 * are too long are left out, counts that would keep a parser busy for minutes are clamped (security-facts 10), and
 * hyperlinks have a budget. Pure but for its state. Used by `host.ts`, before its own parser and before any page.
 */
import { limits } from '#protocol/limits.ts';

const [BEL, CAN, SUB, ESC, ST] = [0x07, 0x18, 0x1a, 0x1b, 0x9c];
/** First byte of U+0080 to U+00BF in UTF-8: the C1 controls are among them, and parsers take them. */
const C1 = 0xc2;
type Kind = 'csi' | 'osc' | 'string';

const kindOfEscape: Readonly<Record<number, Kind>> = {
  0x5b: 'csi',
  0x5d: 'osc',
  0x50: 'string',
  0x58: 'string',
  0x5e: 'string',
  0x5f: 'string',
};
const kindOfC1: Readonly<Record<number, Kind>> = {
  0x9b: 'csi',
  0x9d: 'osc',
  0x90: 'string',
  0x98: 'string',
  0x9e: 'string',
  0x9f: 'string',
};
/** Finals whose number is how often something is done. */
const counted = new Set(Array.from('bSTLM@PXIZCB', (final) => final.charCodeAt(0)));

/** Where a sequence ends: behind its last byte, and whether it is one; null when more bytes are needed. */
interface End {
  readonly at: number;
  readonly whole: boolean;
}
const whole = (at: number): End => ({ at, whole: true });
const broken = (at: number): End => ({ at, whole: false });

const endOfCsi = (data: Buffer, from: number): End | null => {
  for (let at = from; at < data.length; at += 1) {
    const byte = data[at] ?? 0;
    if (byte >= 0x40 && byte <= 0x7e) return whole(at + 1);
    // Cancelled, begun anew, or not one: what was collected is left out, and this byte is looked at again.
    if (byte === CAN || byte === SUB || byte === ESC || byte > 0x7f) return broken(at);
  }
  return null;
};

const endOfString = (data: Buffer, from: number, isOsc: boolean): End | null => {
  for (let at = from; at < data.length; at += 1) {
    const byte = data[at] ?? 0;
    if (byte === BEL && isOsc) return whole(at + 1);
    if (byte === CAN || byte === SUB) return broken(at);
    if (byte === ESC) return at + 1 === data.length ? null : data[at + 1] === 0x5c ? whole(at + 2) : broken(at);
    if (byte === C1 && data[at + 1] === ST) return whole(at + 2);
  }
  return null;
};
const endOf = (kind: Kind, data: Buffer, from: number): End | null =>
  kind === 'csi' ? endOfCsi(data, from) : endOfString(data, from, kind === 'osc');

/** An escape sequence that is none of the three kinds: intermediates, then a final. */
const endOfEscape = (data: Buffer, from: number): End | null => {
  for (let at = from; at < data.length; at += 1) {
    const byte = data[at] ?? 0;
    if (byte >= 0x20 && byte <= 0x2f) continue;
    return byte >= 0x30 && byte <= 0x7e ? whole(at + 1) : broken(at);
  }
  return null;
};

/** Length of an incomplete code point at the end. */
const incompleteBytes = (data: Buffer): number => {
  for (let back = 1; back <= Math.min(3, data.length); back += 1) {
    const byte = data[data.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needed > back ? back : 0;
  }
  return 0;
};

const clamped = (csi: Buffer): Buffer => {
  const final = csi[csi.length - 1] ?? 0;
  const most = counted.has(final) ? limits.terminalSequenceCount : limits.terminalSequenceNumber;
  const text = csi.toString('latin1');
  if (!/\d{3}/.test(text)) return csi;
  return Buffer.from(
    text.replace(/\d{3,}/g, (number) => (Number(number) > most ? String(most) : number)),
    'latin1',
  );
};

export class Sequences {
  #held: Buffer = Buffer.alloc(0);
  /** A sequence that grew too long, while its end is looked for. */
  #dropping: Kind | null = null;
  #links: number = limits.terminalLinkBurst;

  /** What may be handed on of all that came so far; may be empty. */
  take(chunk: Buffer): Buffer {
    this.#links = Math.min(limits.terminalLinkBurst, this.#links + chunk.length / limits.terminalLinkBytes);
    const data = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const out: Buffer[] = [];
    const rest = this.#walk(data, out);
    this.#held = data.subarray(rest);
    // A view would keep the whole chunk.
    if (this.#held.length > 0) this.#held = Buffer.from(this.#held);
    return out.length === 1 && out[0] !== undefined ? out[0] : Buffer.concat(out);
  }

  /** Returns from where on more is needed. */
  #walk(data: Buffer, out: Buffer[]): number {
    let plainFrom = 0;
    let at = 0;
    if (this.#dropping !== null) {
      at = this.#dropped(data, 0, this.#dropping);
      plainFrom = at;
    }
    let escape = data.indexOf(ESC, at);
    let c1 = data.indexOf(C1, at);
    while (at < data.length) {
      if (escape !== -1 && escape < at) escape = data.indexOf(ESC, at);
      if (c1 !== -1 && c1 < at) c1 = data.indexOf(C1, at);
      const begin = escape === -1 ? c1 : c1 === -1 ? escape : Math.min(escape, c1);
      if (begin === -1) break;
      const second = data[begin + 1];
      if (second === undefined) return this.#plain(data, plainFrom, begin, out);
      const kind = (begin === escape ? kindOfEscape : kindOfC1)[second] ?? null;
      at = begin + 2;
      if (kind === null && begin === c1) continue; // a letter of Latin-1
      this.#plain(data, plainFrom, begin, out);
      const end = kind === null ? endOfEscape(data, begin + 1) : endOf(kind, data, at);
      const length = (end?.at ?? data.length) - begin;
      if (length > limits.terminalSequenceBytes) {
        at = this.#dropped(data, at, kind ?? 'csi');
      } else if (end === null) {
        return begin;
      } else {
        at = end.at;
        if (end.whole) this.#sequence(data.subarray(begin, at), kind, out);
      }
      plainFrom = at;
    }
    return this.#plain(data, plainFrom, data.length - incompleteBytes(data.subarray(plainFrom)), out);
  }

  #plain(data: Buffer, from: number, to: number, out: Buffer[]): number {
    if (to > from) out.push(data.subarray(from, to));
    return to;
  }

  #sequence(sequence: Buffer, kind: Kind | null, out: Buffer[]): void {
    if (kind === 'csi') return void out.push(clamped(sequence));
    // `8;params;target`: without a target it ends a link, and that always passes.
    const link =
      kind === 'osc' ? /^(?:\x1b\]|\xc2\x9d)8;[^;]*;(?!\x07|\x1b|\xc2\x9c)/.test(sequence.toString('latin1')) : false;
    if (link && this.#links < 1) return;
    if (link) this.#links -= 1;
    out.push(sequence);
  }

  /** Behind the end of what is left out, which may be in a later chunk. */
  #dropped(data: Buffer, from: number, kind: Kind): number {
    const end = endOf(kind, data, from);
    this.#dropping = end === null ? kind : null;
    // ESC at the very end may begin the terminator.
    return end?.at ?? (data[data.length - 1] === ESC && kind !== 'csi' ? data.length - 1 : data.length);
  }
}
