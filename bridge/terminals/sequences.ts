/**
 * What a program writes, made safe to hand on and cut only where it may be cut: no piece ends inside a code point or an
 * escape sequence, so that a page which begins between two pieces draws what one that saw all draws. Sequences that
 * are too long are left out, counts that would keep a parser busy for minutes are clamped, and
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

/** A number of three digits and more, outside of which nothing is to be clamped. */
const hasLongNumber = (data: Buffer, from: number, to: number): boolean => {
  for (let at = from, digits = 0; at < to; at += 1) {
    const byte = data[at] ?? 0;
    digits = byte >= 0x30 && byte <= 0x39 ? digits + 1 : 0;
    if (digits === 3) return true;
  }
  return false;
};

/** The sequence with its numbers cut to what they may be. */
const clamped = (csi: Buffer): Buffer => {
  const most = counted.has(csi.at(-1) ?? 0) ? limits.terminalSequenceCount : limits.terminalSequenceNumber;
  const text = csi.toString('latin1');
  return Buffer.from(
    text.replace(/\d{3,}/g, (number) => (Number(number) > most ? String(most) : number)),
    'latin1',
  );
};

/** `8;params;target` begins a link; without a target it ends one. */
const beginsLink = (data: Buffer, body: number, to: number): boolean =>
  data[body] === 0x38 &&
  data[body + 1] === 0x3b &&
  !/^8;[^;]*;(?:\x07|\x1b|\xc2\x9c)/.test(data.toString('latin1', body, to));

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
    // A view would keep the whole chunk.
    this.#held = Buffer.from(data.subarray(rest));
    return out.length === 1 && out[0] !== undefined ? out[0] : Buffer.concat(out);
  }

  /** Returns from where on more is needed. `run` is where what goes on unchanged began. */
  #walk(data: Buffer, out: Buffer[]): number {
    const pass = (to: number): void => void (to > run && out.push(data.subarray(run, to)));
    let at = this.#dropping === null ? 0 : this.#dropped(data, 0, this.#dropping);
    let run = at;
    let escape = data.indexOf(ESC, at);
    let c1 = data.indexOf(C1, at);
    while (at < data.length) {
      if (escape !== -1 && escape < at) escape = data.indexOf(ESC, at);
      if (c1 !== -1 && c1 < at) c1 = data.indexOf(C1, at);
      const begin = escape === -1 ? c1 : c1 === -1 ? escape : Math.min(escape, c1);
      if (begin === -1) break;
      const second = data[begin + 1];
      if (second === undefined) {
        pass(begin);
        return begin;
      }
      const kind = (begin === escape ? kindOfEscape : kindOfC1)[second] ?? null;
      const body = begin + 2;
      at = body;
      if (kind === null && begin === c1) continue; // a letter of Latin-1
      const end = kind === null ? endOfEscape(data, begin + 1) : endOf(kind, data, body);
      if ((end?.at ?? data.length) - begin > limits.terminalSequenceBytes) {
        pass(begin);
        run = at = this.#dropped(data, body, kind ?? 'csi');
        continue;
      }
      if (end === null) {
        pass(begin);
        return begin;
      }
      at = end.at;
      const isChanged = kind === 'csi' && hasLongNumber(data, body, at);
      const isPassed = end.whole && !isChanged && !(kind === 'osc' && this.#isOverLinks(data, body, at));
      if (isPassed) continue;
      pass(begin);
      if (isChanged && end.whole) out.push(clamped(data.subarray(begin, at)));
      run = at;
    }
    const to = data.length - incompleteBytes(data.subarray(run));
    pass(to);
    return to;
  }

  #isOverLinks(data: Buffer, body: number, to: number): boolean {
    if (!beginsLink(data, body, to)) return false;
    if (this.#links < 1) return true;
    this.#links -= 1;
    return false;
  }

  /** Behind the end of what is left out, which may be in a later chunk. */
  #dropped(data: Buffer, from: number, kind: Kind): number {
    const end = endOf(kind, data, from);
    this.#dropping = end === null ? kind : null;
    // ESC at the very end may begin the terminator.
    return end?.at ?? (data[data.length - 1] === ESC && kind !== 'csi' ? data.length - 1 : data.length);
  }
}
