import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { encode, FrameReader, headOf, kinds } from '../../bridge/terminals/frames.ts';

interface Frame {
  readonly kind: number;
  readonly body: Buffer;
}
/** Everything but output as it came, and the output between them joined. */
const joined = (frames: readonly Frame[]): [number, string][] =>
  frames.reduce<[number, string][]>((all, { kind, body }) => {
    const last = all.at(-1);
    if (kind === kinds.output && last?.[0] === kinds.output) last[1] += body.toString('hex');
    else if (kind !== kinds.output || body.length > 0) all.push([kind, body.toString('hex')]);
    return all;
  }, []);

const frame = fc.record({
  kind: fc.constantFrom(kinds.output, kinds.output, kinds.title, kinds.replay, kinds.exit),
  body: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
});

describe('frames of a pipe', () => {
  it('are the same however it was cut, and output needs no frame to be whole', () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 12 }), fc.array(fc.nat(30), { maxLength: 60 }), (frames, cuts) => {
        const all = Buffer.concat(frames.map(({ kind, body }) => encode(kind, body)));
        const seen: Frame[] = [];
        const reader = new FrameReader((kind, body) => seen.push({ kind, body: Buffer.from(body) }));
        let at = 0;
        for (const cut of cuts) reader.push(all.subarray(at, (at += cut)));
        reader.push(all.subarray(at));
        expect(joined(seen)).toEqual(joined(frames));
      }),
      { numRuns: 500 },
    );
  });

  it('hand output on before its frame is whole, and nothing else', () => {
    const seen: string[] = [];
    const reader = new FrameReader((kind, body) => seen.push(`${kind} ${body.toString()}`));
    reader.push(headOf(kinds.output, 4));
    reader.push(Buffer.from('ab'));
    expect(seen).toEqual([`${kinds.output} ab`]);
    reader.push(Buffer.concat([Buffer.from('cd'), encode(kinds.title, Buffer.from('name')).subarray(0, 7)]));
    expect(seen).toEqual([`${kinds.output} ab`, `${kinds.output} cd`]);
  });

  it('refuse a length that no frame has, of output too', () => {
    for (const kind of [kinds.output, kinds.title]) {
      const reader = new FrameReader(() => undefined);
      expect(() => reader.push(headOf(kind, limits.terminalReplayBytes + 17))).toThrow(RangeError);
    }
  });
});
