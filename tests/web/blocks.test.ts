import { describe, expect, it } from 'vitest';
import type { AnyEvent } from '#protocol/events.ts';
import { Blocks } from '../../web/state/blocks.ts';

const event = (
  seq: number,
  type = 'notice',
  data: Record<string, unknown> = { level: 'info', code: 'x', sentence: `n${seq}` },
): AnyEvent => ({
  id: `00000000-0000-7000-8000-${String(seq).padStart(12, '0')}`,
  conversationId: 'c',
  seq,
  at: seq,
  type,
  data,
});
const turn = (seq: number): AnyEvent => event(seq, 'turn.started', { messageId: `m${seq}`, by: 'operator' });
const range = (first: number, last: number): AnyEvent[] =>
  Array.from({ length: last - first + 1 }, (_, i) => event(first + i));

describe('the loaded part of a transcript', () => {
  it('shows each block of the outline, loaded or not', () => {
    const blocks = new Blocks();
    blocks.begin([1, 10, 20], 25);
    blocks.add([turn(20), ...range(21, 25)]);
    expect(blocks.slots().map(({ firstSeq, endSeq, view }) => [firstSeq, endSeq, view?.complete ?? null])).toEqual([
      [1, 10, null],
      [10, 20, null],
      [20, 26, true],
    ]);
  });

  it('counts an event once however often it is delivered (case 1)', () => {
    const blocks = new Blocks();
    blocks.begin([1], 3);
    for (let time = 0; time < 3; time += 1) blocks.add(range(1, 3));
    expect(blocks.count).toBe(3);
    expect(blocks.slots()[0]?.view?.entries).toHaveLength(3);
  });

  it('begins a block at a turn that starts live', () => {
    const blocks = new Blocks();
    blocks.begin([1], 2);
    blocks.add(range(1, 2));
    blocks.add([turn(3)]);
    blocks.add([event(4)]);
    expect(blocks.outline).toEqual([1, 3]);
    expect(blocks.slots().map(({ endSeq }) => endSeq)).toEqual([3, 5]);
  });

  it('keeps the identity of slots that did not change', () => {
    const blocks = new Blocks();
    blocks.begin([1, 5], 6);
    blocks.add([...range(1, 4), turn(5), event(6)]);
    const before = blocks.slots();
    blocks.add([event(7)]);
    const after = blocks.slots();
    expect(after[0]).toBe(before[0]);
    expect(after[1]).not.toBe(before[1]);
  });

  it('says where to go on loading a block backwards', () => {
    const blocks = new Blocks();
    blocks.begin([1], 100);
    expect(blocks.missingBefore(0)).toBe(101);
    blocks.add(range(60, 100));
    expect(blocks.missingBefore(0)).toBe(60);
    blocks.add(range(20, 40));
    expect(blocks.missingBefore(0)).toBe(60);
    blocks.add([...range(1, 19), ...range(41, 59)]);
    expect(blocks.missingBefore(0)).toBeNull();
  });

  it('lets go of what is far and never of the live end', () => {
    const blocks = new Blocks();
    const starts = Array.from({ length: 20 }, (_, i) => i * 10 + 1);
    blocks.begin(starts, 200);
    blocks.add(range(1, 200));
    expect(blocks.letGo(15, 60)).toBe(true);
    const held = blocks.slots().flatMap(({ view, firstSeq }) => (view === null ? [] : [firstSeq]));
    expect(held).toEqual(expect.arrayContaining([11, 171, 181, 191]));
    expect(blocks.count).toBeLessThanOrEqual(60);
  });

  it('sorts what is at hand anew when the bridge tells another outline', () => {
    const blocks = new Blocks();
    blocks.begin([1, 5, 9], 12);
    blocks.add(range(1, 12));
    blocks.begin([1, 9], 12);
    expect(blocks.slots().map(({ firstSeq, view }) => [firstSeq, view?.entries.length])).toEqual([
      [1, 8],
      [9, 4],
    ]);
    expect(blocks.count).toBe(12);
  });
});
