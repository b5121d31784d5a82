import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { Sequences } from '../../bridge/terminals/sequences.ts';
import { drawn, newCore, stateOf } from './parts.ts';

const through = (...chunks: (string | Buffer)[]): string => {
  const sequences = new Sequences();
  return Buffer.concat(chunks.map((chunk) => sequences.take(Buffer.from(chunk as string)))).toString('utf8');
};

describe('output on its way to a parser', () => {
  it.each([
    'plain text\r\n',
    '\x1b[31mred\x1b[0m',
    '\x1b]0;a title\x07after',
    '\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\',
    '\x1bP$q q\x1b\\x',
    '\x1b(0lqk\x1b(B',
    '\x1b7\x1b8\x1b=\x1b>\x1bc',
    'café — 🎉 完了',
    '\u009b31mC1\u009b0m °',
    '\x1b[38;2;255;0;127mtrue colour',
    '\x1b[?1049h\x1b[?2004h',
  ])('is handed on as it is: %j', (text) => expect(through(text)).toBe(text));

  it('is the same however it was cut (case 59)', () => {
    const text = 'café — 🎉 完了 \x1b[1;31mred\x1b[0m \x1b]0;title 完\x07 \u009b4m° \x1bP+q\x1b\\ end';
    const bytes = Buffer.from(text, 'utf8');
    for (let cut = 0; cut <= bytes.length; cut += 1)
      expect(through(bytes.subarray(0, cut), bytes.subarray(cut))).toBe(text);
    expect(through(...Array.from(bytes, (byte) => Buffer.from([byte])))).toBe(text);
  });

  it('is never handed on up to the middle of a sequence or a code point', () => {
    const whole = /^(?:[^\x1b\x80-\x9f\ufffd]|\x1b\[[0-9;]*[a-zA-Z]|\x1b\][^\x07]*\x07|\x1bc|\x1b\(0)*$/u;
    const piece = fc.oneof(
      fc.constantFrom('\x1b[31m', '\x1b[2;5H', '\x1b]2;完\x07', '\x1bc', '\x1b(0', 'é', '🎉', '完'),
      fc.string({ minLength: 1, maxLength: 4 }).filter((text) => !/[\x1b\x80-\x9f\ufffd]/.test(text)),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.array(fc.nat(60), { maxLength: 6 }), (pieces, cuts) => {
        const text = pieces.join('').toWellFormed();
        const bytes = Buffer.from(text, 'utf8');
        const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort((a, b) => a - b);
        const sequences = new Sequences();
        const out = at.slice(1).map((to, index) => sequences.take(bytes.subarray(at[index], to)));
        for (const one of out) expect(one.toString('utf8')).toMatch(whole);
        expect(Buffer.concat(out).toString('utf8')).toBe(text);
      }),
      { numRuns: 300 },
    );
  });

  it.each(['b', 'S', 'T', 'L', 'M', '@', 'P', 'X', 'I', 'Z', 'C', 'B'])('clamps the count of CSI %s (T72)', (final) => {
    expect(through(`A\x1b[2147483647${final}`)).toBe(`A\x1b[${limits.terminalSequenceCount}${final}`);
    expect(through(`A\u009b99999${final}`)).toBe(`A\u009b${limits.terminalSequenceCount}${final}`);
    expect(through(`A\x1b[7${final}`)).toBe(`A\x1b[7${final}`);
  });

  it('clamps other numbers so that they mean nothing, and leaves modes and colours alone', () => {
    expect(through('\x1b[4294967296m')).toBe('\x1b[9999m');
    expect(through('\x1b[?2026$p\x1b[?9001h')).toBe('\x1b[?2026$p\x1b[?9001h');
  });

  it('leaves out a string of more than 4 KiB, and goes on behind it (T72)', () => {
    for (const [begin, end] of [
      ['\x1b]52;c;', '\x07'],
      ['\x1bPq', '\x1b\\'],
      ['\x1b_G', '\x1b\\'],
      ['\u009d0;', '\u009c'],
    ]) {
      const long = `${begin}${'x'.repeat(20_000)}${end}`;
      expect(through(`a${long}b`)).toMatch(/^a(?:\x1b\\)?b$/);
      const bytes = Buffer.from(`a${long}b`);
      const chunks = Array.from({ length: Math.ceil(bytes.length / 777) }, (_, index) =>
        bytes.subarray(index * 777, index * 777 + 777),
      );
      expect(through(...chunks)).toMatch(/^a(?:\x1b\\)?b$/);
    }
    expect(through(`a\x1b[${'1;'.repeat(9000)}mb`)).toBe('ab');
  });

  it('leaves out a sequence that was cancelled or is none, and keeps what comes after it', () => {
    expect(through('a\x1b[31\x18b')).toBe('a\x18b');
    expect(through('a\x1b[31\x1b[32mb')).toBe('a\x1b[32mb');
    expect(through('a\x1b[3é b')).toBe('aé b');
    expect(through('a\x1b\x1b[32mb')).toBe('a\x1b[32mb');
  });

  it('holds at most one sequence back, whatever comes', () => {
    const sequences = new Sequences();
    for (let index = 0; index < 5000; index += 1)
      sequences.take(Buffer.from(index === 0 ? '\x1b]0;' : 'x'.repeat(100)));
    expect(sequences.take(Buffer.from('\x07after')).toString()).toBe('after');
  });

  it('passes a budget of hyperlinks, and every end of one (T72)', () => {
    const link = '\x1b]8;;http://x/\x07a\x1b]8;;\x07';
    const out = through(link.repeat(50_000));
    const opened = out.split('\x1b]8;;http://x/\x07').length - 1;
    const most = limits.terminalLinkBurst + (link.length * 50_000) / limits.terminalLinkBytes;
    expect(opened).toBeGreaterThan(limits.terminalLinkBurst - 1);
    expect(opened).toBeLessThanOrEqual(most);
    expect(out.split('\x1b]8;;\x07')).toHaveLength(50_001);
  });

  it('draws what it would have drawn, for what programs really send', async () => {
    const text = '\x1b[2J\x1b[H\x1b[1;33mhead\x1b[0m\r\n\x1b[3;5Hhere\x1b[K\x1b[5Dthere\x1b[2P\x1b[4h!\x1b[4l\x1b[3b';
    const [plain, tamed] = [newCore(), newCore()];
    await drawn(plain, text);
    await drawn(tamed, through(...text));
    expect(stateOf(tamed)).toEqual(stateOf(plain));
  });
});
