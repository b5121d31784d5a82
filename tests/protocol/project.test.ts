import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AnyEvent, EventType } from '#protocol/events.ts';
import { eventTypes } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import { blockStarts, extendOutline, splitBlocks } from '#protocol/outline.ts';
import { liveRow, projectBlock } from '#protocol/project.ts';
import type { BlockView } from '#protocol/view.ts';
import { approvalId, decided, ended, prompt, raw, receipt, record, requested, started, type Step } from './record.ts';

interface Fixture {
  readonly name: string;
  readonly firstSeq: number;
  readonly events: AnyEvent[];
  readonly view: BlockView;
}
const directory = new URL('../../protocol/fixtures/', import.meta.url);
const fixtures = readdirSync(directory).map(
  (file) => JSON.parse(readFileSync(new URL(file, directory), 'utf8')) as Fixture,
);
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** Everything a turn may hold, several of a kind, ids shared and apart. */
const tool = (type: 'tool.called' | 'tool.updated') =>
  fc
    .record(
      {
        toolCallId: fc.constantFrom('c1', 'c2', 'a1'),
        title: fc.string({ maxLength: 5 }),
        status: fc.constantFrom('pending', 'in_progress', 'completed', 'failed'),
        rawInput: fc.string({ maxLength: 5 }),
      },
      { requiredKeys: ['toolCallId'] },
    )
    .map((data) => [type, data] as Step);
const step: fc.Arbitrary<Step> = fc.oneof(
  tool('tool.called'),
  tool('tool.updated'),
  fc
    .record({
      messageId: fc.constantFrom('a1', 'a2'),
      role: fc.constantFrom('agent', 'thought'),
      text: fc.string({ maxLength: 5 }),
      part: fc.nat(3),
    })
    .map((data) => ['message', data] as Step),
  fc.nat(2).map((index) => requested(index, `c${index}`)),
  fc.nat(2).map((index) => decided(index, 'allow')),
  fc.nat(2).map((index) => receipt(index, 40 + index, 'ok')),
  fc.nat(2).map((index): Step => ['approval.withdrawn', { approvalId: approvalId(index), reason: 'agent' }]),
  fc.nat(9).map((usedTokens): Step => ['usage', { usedTokens }]),
  fc.constant<Step>(['plan', { entries: [] }]),
);
const turn = fc
  .tuple(fc.array(step, { maxLength: 25 }), fc.boolean())
  .map(([steps, isEnded]) => record(7, 1, [started, prompt('Go'), ...steps, ...(isEnded ? [ended()] : [])]));

describe('projector (D-46)', () => {
  test.each(fixtures.map((fixture) => [fixture.name, fixture] as const))('%s', (_, { firstSeq, events, view }) => {
    expect(plain(projectBlock(firstSeq, events))).toEqual(view);
  });

  test('every kind of row is in the fixtures', () => {
    const kinds = new Set(fixtures.flatMap(({ view }) => view.entries.map(({ kind }) => kind)));
    expect([...kinds].sort()).toEqual(['approval', 'divider', 'message', 'notice', 'plan', 'tool', 'unknown']);
    expect(fixtures.length).toBeGreaterThanOrEqual(12);
  });

  test('any order of a turn and any doubling give the same view', () => {
    fc.assert(
      fc.property(turn, fc.infiniteStream(fc.nat()), (events, numbers) => {
        const draw = (): number => numbers.next().value as number;
        const shuffled = [...events, ...events.filter(() => draw() % 3 === 0).map((event) => structuredClone(event))]
          .map((event) => [draw(), event] as const)
          .sort(([a], [b]) => a - b)
          .map(([, event]) => event);
        expect(projectBlock(7, shuffled)).toEqual(projectBlock(7, events));
      }),
      { numRuns: 150 },
    );
  });

  test('any split into pages, read in any order, gives the same view, with and without the view before', () => {
    fc.assert(
      fc.property(turn, fc.nat(), fc.boolean(), (events, where, newestFirst) => {
        const cut = where % (events.length + 1);
        const pages = [events.slice(0, cut), events.slice(cut)];
        if (newestFirst) pages.reverse();
        let merged: AnyEvent[] = [];
        let view: BlockView | undefined;
        for (const page of pages) {
          merged = [...merged, ...page];
          view = projectBlock(7, merged, { previous: view });
        }
        expect(view).toEqual(projectBlock(7, events));
      }),
      { numRuns: 150 },
    );
  });

  test('row keys are unique, and no tool runs in a turn that ended', () => {
    fc.assert(
      fc.property(turn, (events) => {
        const view = projectBlock(7, events);
        expect(new Set(view.entries.map(({ key }) => key)).size).toBe(view.entries.length);
        if (view.ended === null) return;
        for (const row of view.entries)
          if (row.kind === 'tool') expect(['completed', 'failed', 'cancelled']).toContain(row.status);
      }),
      { numRuns: 100 },
    );
  });

  test('garbage in data never throws and is shown (case 9)', () => {
    const type = fc.oneof(fc.constantFrom(...eventTypes), fc.constantFrom('__proto__', 'constructor', 'hologram'));
    fc.assert(
      fc.property(fc.array(fc.tuple(type, fc.anything()), { maxLength: 8 }), (items) => {
        const events = items.map(([name, data], index) => raw(index + 1, name, data as Record<string, unknown>));
        const view = projectBlock(1, events);
        expect(view.lastSeq).toBe(Math.max(1, items.length));
      }),
      { numRuns: 300 },
    );
    expect(projectBlock(1, [raw(1, 'message', { messageId: 5 })]).entries).toMatchObject([
      { kind: 'unknown', type: 'message', json: '{"messageId":5}' },
    ]);
  });

  test('the JSON of an unknown event is bounded and says how much is left out', () => {
    const [row] = projectBlock(1, [raw(1, 'hologram', { text: 'x'.repeat(limits.unknownUnits) })]).entries;
    if (row?.kind !== 'unknown') throw new Error('no unknown row');
    expect(row.json.length).toBeLessThan(limits.unknownUnits + 40);
    expect(row.json).toMatch(/… \(11 more\)$/);
  });

  test('rows that did not change keep their identity', () => {
    const events = record(7, 1, [
      started,
      prompt('Go'),
      ['tool.called', { toolCallId: 'c1' }],
      requested(1, 'c1'),
      ['message', { messageId: 'a1', role: 'agent', text: 'Hm' }],
    ]);
    const before = projectBlock(7, events);
    const after = projectBlock(
      7,
      [...events, ...record(12, 1, [['tool.updated', { toolCallId: 'c1', status: 'completed' }]])],
      { previous: before },
    );
    expect(after.entries.map((entry, index) => entry === before.entries[index])).toEqual([true, false, true, true]);
    expect(projectBlock(7, events, { previous: before }).entries).toBe(before.entries);
  });

  test('parts join in part order even where the log has them the other way round', () => {
    const part = (text: string, number: number): Step => [
      'message',
      { messageId: 'a1', role: 'agent', text, part: number },
    ];
    expect(projectBlock(1, record(1, 1, [part('b', 1), part('a', 0)])).entries).toMatchObject([{ text: 'ab' }]);
  });

  test('a part whose text lies in a blob stays a row of its own', () => {
    const blob = { sha256: 'a'.repeat(64), bytes: 100_000, mime: 'text/plain', head: 'x' };
    const steps: Step[] = [
      ['message', { messageId: 'a1', role: 'agent', text: 'one' }],
      ['message', { messageId: 'a1', role: 'agent', text: 'x', blob, part: 1 }],
      ['message', { messageId: 'a1', role: 'agent', text: 'two', part: 2 }],
    ];
    expect(
      projectBlock(1, record(1, 1, steps)).entries.map((row) => row.kind === 'message' && [row.text, row.blob?.bytes]),
    ).toEqual([
      ['one', undefined],
      ['x', 100_000],
      ['two', undefined],
    ]);
  });

  test('the row of a draft has the key its event will have', () => {
    const live = liveRow({ messageId: 'a1', role: 'agent', part: 2, text: 'Once' }, 5);
    const [stored] = projectBlock(
      1,
      record(1, 1, [['message', { messageId: 'a1', role: 'agent', text: 'Once more', part: 2 }]]),
    ).entries;
    expect(live).toMatchObject({ streaming: true, text: 'Once', key: stored?.key });
  });

  test('a stored prompt carries the key of the operation that sent it (case 2)', () => {
    const event = { ...raw(1, 'message', { messageId: 'u1', role: 'user', text: 'Hi' }), operationId: approvalId(9) };
    expect(projectBlock(1, [event]).entries).toMatchObject([{ kind: 'message', operationId: approvalId(9) }]);
  });
});

describe('outline (D-44)', () => {
  const log = [
    ...record(1, undefined, [['notice', { level: 'info', code: 'x', sentence: 'x' }]]),
    ...record(2, 1, [started, prompt('a'), ended()]),
    ...record(5, 2, [started, prompt('b')]),
  ];

  test('blocks begin at seq 1 and at every turn', () => {
    expect(blockStarts(log)).toEqual([1, 2, 5]);
    expect(splitBlocks(log).map(({ firstSeq, events }) => [firstSeq, events.map(({ seq }) => seq)])).toEqual([
      [1, [1]],
      [2, [2, 3, 4]],
      [5, [5, 6]],
    ]);
  });

  test('a page that begins inside a block belongs to the block the outline names', () => {
    expect(splitBlocks(log.slice(2), [1, 2, 5]).map(({ firstSeq, events }) => [firstSeq, events.length])).toEqual([
      [2, 2],
      [5, 2],
    ]);
    expect(splitBlocks(log.slice(2)).map(({ firstSeq }) => firstSeq)).toEqual([3, 5]);
  });

  test('blocks merged by the outline are not split again', () => {
    expect(splitBlocks(log, [1, 5]).map(({ firstSeq, events }) => [firstSeq, events.length])).toEqual([
      [1, 4],
      [5, 2],
    ]);
  });

  test('extends by what begins a block at the end, and merges the oldest beyond the bound', () => {
    const outline = log.reduce<readonly number[]>(extendOutline, []);
    expect(outline).toEqual([1, 2, 5]);
    expect(extendOutline(outline, log[3] as AnyEvent)).toBe(outline);
    const full = Array.from({ length: limits.outlineBlocks }, (_, index) => index + 1);
    const longer = extendOutline(full, raw(90_000, 'turn.started' satisfies EventType, {}));
    expect([longer.length, longer[0], longer[1], longer.at(-1)]).toEqual([limits.outlineBlocks, 1, 3, 90_000]);
  });
});
