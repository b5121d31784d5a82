import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { limits } from '#protocol/limits.ts';
import type { ActivityFrame, Delivery } from '#protocol/frames.ts';
import type { Ledger } from '../../bridge/ledger/contract.ts';
import { message, openIn, putConversation, sink, temporaryDirectory } from './open.ts';

let directory: ReturnType<typeof temporaryDirectory>;
let ledger: Ledger;
beforeEach(async () => {
  directory = temporaryDirectory();
  ledger = openIn(directory.path);
  await ledger.commit((tx) => putConversation(tx, 'one'));
});
afterEach(async () => {
  vi.useRealTimers();
  await ledger.close();
  directory.remove();
});
const say = (text: string) => ledger.commit((tx) => tx.append('one', message(text)));
const activities = (deliveries: readonly Delivery[]) => deliveries.filter((one) => one.kind === 'activity');
const texts = (frames: readonly ActivityFrame[]) => frames.flatMap((frame) => (frame.type === 'text' ? frame : []));
const piece = (text: string, part = 0) => ({ turnId: null, messageId: 'm', role: 'agent' as const, part, text });

describe('subscribe (D-44, D-45)', () => {
  it('holds the tail until the boundary is acknowledged, then goes on live', async () => {
    await say('1');
    const caught = sink();
    const first = ledger.feed.subscribe('one', caught);
    expect(first).toMatchObject({ boundarySeq: 1, resumed: false, outline: [1], draft: null });
    await say('2');
    expect(caught.raw).toEqual([]);
    expect(ledger.feed.ack('one', caught.attachmentId, 0)).toBe(true);
    expect(caught.raw).toEqual([]);
    expect(ledger.feed.ack('one', caught.attachmentId, 1)).toBe(true);
    expect(caught.seqs()).toEqual([2]);
    await say('3');
    expect(ledger.feed.ack('one', caught.attachmentId, 1)).toBe(true);
    expect(caught.seqs()).toEqual([2, 3]);
    expect(ledger.feed.subscribed(caught.attachmentId)).toEqual(['one']);
    expect(ledger.feed.unsubscribe('one', caught.attachmentId)).toBe(true);
    expect(ledger.feed.unsubscribe('one', caught.attachmentId)).toBe(false);
    expect(ledger.feed.ack('one', caught.attachmentId, 3)).toBe(false);
  });

  it('gives every event exactly once and in order, however appends, subscriptions and acks interleave', async () => {
    const step = fc.constantFrom('append', 'appendTwo', 'subscribe', 'resume', 'ack', 'wait');
    let number = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const conversationId = `c${(number += 1)}`;
        await ledger.commit((tx) => putConversation(tx, conversationId));
        const caught = sink();
        const seen: number[] = [];
        let taken = 0;
        const drain = (): void => {
          seen.push(...caught.seqs().slice(taken));
          taken = caught.seqs().length;
        };
        let works: Promise<unknown>[] = [];
        let boundary = -1;
        const append = () => works.push(ledger.commit((tx) => tx.append(conversationId, message('x'))));
        for (const one of [...steps, 'wait', 'resume', 'ack', 'append', 'wait']) {
          if (one === 'append' || one === 'appendTwo') append();
          if (one === 'appendTwo') append();
          if (one === 'subscribe' || one === 'resume') {
            drain();
            const at = seen.at(-1) ?? 0;
            if (one === 'subscribe') seen.length = 0;
            const after = one === 'resume' ? { lineage: ledger.lineage, seq: at } : undefined;
            const given = ledger.feed.subscribe(conversationId, caught, after);
            boundary = given.boundarySeq;
            seen.push(...given.events.map((event) => event.seq));
          }
          if (one === 'ack' && boundary >= 0) ledger.feed.ack(conversationId, caught.attachmentId, boundary);
          if (one === 'wait') {
            await Promise.all(works);
            works = [];
          }
        }
        drain();
        const last = ledger.read.conversation(conversationId)?.lastSeq ?? 0;
        expect(seen).toEqual(Array.from({ length: last }, (_, index) => index + 1));
      }),
      { numRuns: 60 },
    );
  });

  it('resumes by cursor; refuses another lineage, a place not reached, and more than a page (T91)', async () => {
    await ledger.commit((tx) => {
      for (let index = 0; index < limits.pageEvents + 1; index += 1) tx.append('one', message('x'));
    });
    const last = limits.pageEvents + 1;
    const { lineage } = ledger;
    const caught = sink();
    expect(ledger.feed.subscribe('one', caught, { lineage, seq: 1 })).toMatchObject({
      resumed: true,
      boundarySeq: last,
    });
    expect(ledger.feed.subscribe('one', caught, { lineage, seq: last }).events).toEqual([]);
    for (const after of [
      { lineage: randomUUID(), seq: 1 },
      { lineage, seq: last + 1 },
      { lineage, seq: 0 },
    ]) {
      expect(() => ledger.feed.subscribe('one', caught, after)).toThrow(
        expect.objectContaining({ code: 'snapshot_required' }),
      );
    }
    expect(() => ledger.feed.subscribe('none', caught)).toThrow(
      expect.objectContaining({ code: 'unknown_conversation' }),
    );
  });

  it('ends a subscription that never acknowledges once its tail is too long, and says so', async () => {
    const silent = sink();
    const healthy = sink();
    ledger.feed.subscribe('one', silent);
    ledger.feed.subscribe('one', healthy);
    ledger.feed.ack('one', healthy.attachmentId, 0);
    await ledger.commit((tx) => {
      for (let index = 0; index <= limits.tailFrames; index += 1) tx.append('one', message('x'));
    });
    expect(silent.raw).toHaveLength(1);
    expect(JSON.parse(silent.raw[0] ?? '')).toMatchObject({
      kind: 'error',
      id: -1,
      error: { code: 'snapshot_required', details: { conversationId: 'one' } },
    });
    expect(ledger.feed.subscribed(silent.attachmentId)).toEqual([]);
    expect(healthy.seqs()).toHaveLength(limits.tailFrames + 1);
  });

  it('encodes a frame once for all', async () => {
    const [a, b] = [sink(), sink()];
    for (const one of [a, b]) {
      ledger.feed.subscribe('one', one);
      ledger.feed.ack('one', one.attachmentId, 0);
    }
    await say('x');
    expect(a.raw).toEqual(b.raw);
    expect(a.seqs()).toEqual([1]);
  });

  it('sends invalidations to every attachment and nothing to one that detached', async () => {
    const [a, b] = [sink(), sink()];
    ledger.feed.attach(a);
    ledger.feed.attach(b);
    ledger.feed.subscribe('one', b);
    ledger.feed.ack('one', b.attachmentId, 0);
    ledger.feed.invalidate('conversations');
    ledger.feed.detach(b.attachmentId);
    ledger.feed.invalidate('conversations');
    await say('x');
    expect(a.deliveries()).toEqual([
      { kind: 'invalidate', topic: 'conversations', generation: 1 },
      { kind: 'invalidate', topic: 'conversations', generation: 2 },
    ]);
    expect(b.raw).toHaveLength(1);
  });
});

describe('live text (D-42, D-43)', () => {
  const live = () => {
    const caught = sink();
    ledger.feed.subscribe('one', caught);
    ledger.feed.ack('one', caught.attachmentId, 0);
    return caught;
  };

  it('sends the first piece at once and gathers what follows until the window ends', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const caught = live();
    ledger.feed.text('one', piece('a'));
    ledger.feed.text('one', piece('b'));
    ledger.feed.text('one', piece('c'));
    expect(caught.raw).toHaveLength(1);
    vi.advanceTimersByTime(limits.liveTextMs);
    vi.advanceTimersByTime(limits.liveTextMs);
    ledger.feed.text('one', piece('d'));
    const sent = activities(caught.deliveries());
    expect(sent.map((one) => one.n)).toEqual([1, 2, 3]);
    expect(texts(sent.map((one) => one.frame)).map((one) => [one.offset, one.text])).toEqual([
      [0, 'a'],
      [1, 'bc'],
      [3, 'd'],
    ]);
  });

  it('gives a newcomer the whole draft, and the next frame begins where it ends', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const early = live();
    ledger.feed.text('one', piece('a'));
    ledger.feed.text('one', piece('b'));
    const late = sink();
    expect(ledger.feed.subscribe('one', late).draft).toEqual({ messageId: 'm', role: 'agent', part: 0, text: 'ab' });
    ledger.feed.ack('one', late.attachmentId, 0);
    ledger.feed.text('one', piece('c'));
    vi.advanceTimersByTime(limits.liveTextMs);
    const sent = (caught: typeof late) =>
      texts(activities(caught.deliveries()).map((one) => one.frame)).map((one) => [one.offset, one.text]);
    expect(sent(early)).toEqual([
      [0, 'a'],
      [1, 'b'],
      [2, 'c'],
    ]);
    expect(sent(late)).toEqual([[2, 'c']]);
  });

  it('turns the draft into one message and deletes its row in the same commit', async () => {
    const caught = live();
    ledger.feed.text('one', piece('hello '));
    ledger.feed.text('one', piece('world'));
    const event = await ledger.commit((tx) => tx.endDraft('one'));
    expect(event).toMatchObject({
      seq: 1,
      type: 'message',
      data: { messageId: 'm', role: 'agent', text: 'hello world' },
    });
    expect(ledger.feed.draft('one')).toBeNull();
    expect(ledger.read.openDrafts()).toEqual([]);
    expect(await ledger.commit((tx) => tx.endDraft('one'))).toBeNull();
    expect(caught.deliveries().at(-1)).toMatchObject({ kind: 'event', seq: 1 });
  });

  it('ends a draft once, though two works of one commit ask for it', async () => {
    ledger.feed.text('one', piece('x'));
    const both = await Promise.all([
      ledger.commit((tx) => tx.endDraft('one')),
      ledger.commit((tx) => tx.endDraft('one')),
    ]);
    expect(both.map((event) => event?.seq ?? null)).toEqual([1, null]);
  });

  it('keeps the draft when the work that ended it is rolled back', async () => {
    ledger.feed.text('one', piece('x'));
    await expect(
      ledger.commit((tx) => {
        tx.endDraft('one');
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(ledger.feed.draft('one')?.text).toBe('x');
    expect(await ledger.commit((tx) => tx.endDraft('one'))).toMatchObject({ data: { text: 'x' } });
  });

  it('begins the next part behind an end that is only queued, and refuses one that was not ended', async () => {
    ledger.feed.text('one', piece('first'));
    const ended = ledger.commit((tx) => tx.endDraft('one'));
    ledger.feed.text('one', piece('second', 1));
    expect(await ended).toMatchObject({ data: { text: 'first' } });
    expect(ledger.feed.draft('one')).toMatchObject({ part: 1, text: 'second' });
    expect(() => ledger.feed.text('one', piece('third', 2))).toThrow('must be ended');
    expect(await ledger.commit((tx) => tx.endDraft('one'))).toMatchObject({ data: { text: 'second', part: 1 } });
  });

  it('writes what is new of a draft every 250 ms, no more often', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'setImmediate', 'clearImmediate'] });
    const { DatabaseSync } = await import('node:sqlite');
    const db = new DatabaseSync(`${directory.path}/ledger.db`, { readOnly: true });
    const pieces = () =>
      db
        .prepare('SELECT text FROM draftPiece ORDER BY startUnits')
        .all()
        .map((row) => row['text']);
    for (let elapsed = 0; elapsed < 1_000; elapsed += 10) {
      ledger.feed.text('one', piece('0123456789'));
      vi.advanceTimersByTime(10);
      const saved = pieces().join('').length;
      // One unit a millisecond: what a crash would lose now, beside one commit's delay.
      expect(elapsed + 10 - saved).toBeLessThanOrEqual(limits.draftMs + 10 + limits.commitDelayMs);
    }
    expect(pieces().length).toBeLessThanOrEqual(4);
    expect(pieces().length).toBeGreaterThanOrEqual(3);
    db.close();
  });
});
