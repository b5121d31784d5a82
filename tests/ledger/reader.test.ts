import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Worker } from 'node:worker_threads';
import { limits } from '#protocol/limits.ts';
import type { AnyEvent } from '#protocol/events.ts';
import type { Ledger } from '../../bridge/ledger/contract.ts';
import { Questions } from '../../bridge/ledger/questions.ts';
import { matchText } from '../../bridge/ledger/query.ts';
import { openLedgerReadOnly } from '../../bridge/ledger/ledger.ts';
import { message, openIn, putConversation, sink, temporaryDirectory } from './open.ts';

let directory: ReturnType<typeof temporaryDirectory>;
let ledger: Ledger;
beforeEach(async () => {
  directory = temporaryDirectory();
  ledger = openIn(directory.path);
  await ledger.commit((tx) => putConversation(tx, 'one'));
});
afterEach(async () => {
  await ledger.close();
  directory.remove();
});
const say = (text: string, conversationId = 'one') => ledger.commit((tx) => tx.append(conversationId, message(text)));

describe('search (newest first)', () => {
  it('finds words of messages and titles and paths of tool calls, newest first, with marks around each', async () => {
    await say('the walrus sleeps');
    await ledger.commit((tx) =>
      tx.append('one', {
        type: 'tool.called',
        data: { toolCallId: 't', title: 'Read walrus notes', locations: [{ path: 'src/walrus.ts' }] },
      }),
    );
    await ledger.commit((tx) => putConversation(tx, 'two'));
    await say('Ein Walroß? A WALRUS!', 'two');
    const { hits, more } = await ledger.search('walrus', { limit: 10 });
    expect(more).toBe(false);
    expect(hits.map((hit) => [hit.conversationId, hit.seq, hit.type])).toEqual([
      ['two', 1, 'message'],
      ['one', 2, 'tool.called'],
      ['one', 1, 'message'],
    ]);
    expect(hits[0]).toMatchObject({ title: 'Title of two', snippet: 'Ein Walroß? A \u0001WALRUS\u0002!' });
    expect((await ledger.search('src/walrus.ts', { limit: 10 })).hits.map((hit) => hit.seq)).toEqual([2]);
    expect((await ledger.search('wal', { conversationId: 'one', limit: 1 })).more).toBe(true);
    expect((await ledger.search('sleep wal', { limit: 9 })).hits).toHaveLength(0);
    expect((await ledger.search('sleeps wal', { limit: 9 })).hits).toHaveLength(1);
  });

  it.each([
    '"',
    '""',
    'a"b',
    'NEAR(',
    'words:x',
    '*',
    '^',
    'x AND',
    '-x',
    ') OR 1=1',
    "'; DROP TABLE event; --",
    '\u0000',
    '\ud800',
    '(((((',
    'a*b*',
    '{words} : x',
    '🙂',
    '   ',
  ])('takes the hostile query %j as words', async (query) => {
    await say('harmless x');
    const { hits } = await ledger.search(query, { limit: 5 });
    expect(Array.isArray(hits)).toBe(true);
    expect(ledger.read.events('one', 0, 9)).toHaveLength(1);
  });

  it('never lets the searched text make marks of its own', async () => {
    await say('a \u0001fake\u0002 mark near needle');
    expect((await ledger.search('needle', { limit: 5 })).hits[0]?.snippet).toBe(
      'a  fake  mark near \u0001needle\u0002',
    );
  });

  it('uses no more than so many words and none of pure signs', () => {
    expect(matchText('a - "b')).toBe('"a" """b"*');
    expect(matchText('- *')).toBeNull();
    expect(matchText('w '.repeat(100))?.split(' ')).toHaveLength(limits.searchTerms);
  });

  it('forgets what a deleted conversation said', async () => {
    await say('unforgettable');
    await ledger.commit((tx) => tx.deleteConversation('one'));
    expect((await ledger.search('unforgettable', { limit: 5 })).hits).toEqual([]);
    expect(await ledger.quickCheck()).toEqual([]);
  });
});

describe('pages (D-44, case 31)', () => {
  const joins = (events: readonly AnyEvent[], from: number, to: number): void =>
    expect(events.map((event) => event.seq)).toEqual(Array.from({ length: to - from + 1 }, (_, index) => from + index));

  it('opens 2,000 messages of 60 MB with a small page, and older pages join without a gap', async () => {
    const text = 'lorem ipsum dolor sit amet '.repeat(1_130);
    for (let start = 0; start < 2_000; start += 50) {
      await ledger.commit((tx) => {
        for (let index = start; index < start + 50; index += 1) {
          if (index % 10 === 0)
            tx.append('one', { type: 'turn.started', turnId: randomUUID(), data: { messageId: 'm', by: 'operator' } });
          tx.append('one', message(`${index} ${text}`));
        }
      });
    }
    const total = 2_200;
    expect(ledger.read.conversation('one')?.bytes).toBeGreaterThan(60_000_000);
    const first = ledger.feed.subscribe('one', sink());
    expect(Buffer.byteLength(JSON.stringify(first.events))).toBeLessThanOrEqual(limits.firstPageBytes);
    expect(first.outline).toHaveLength(200);
    expect(first.outline.slice(0, 3)).toEqual([1, 12, 23]);
    joins(first.events, first.events[0]?.seq ?? 0, total);

    let before = first.events[0]?.seq ?? 0;
    while (before > 1) {
      const page = await ledger.history('one', { beforeSeq: before }, 10_000);
      expect(page.events.length).toBeGreaterThan(0);
      expect(page.events.length).toBeLessThanOrEqual(limits.pageEvents);
      expect(Buffer.byteLength(JSON.stringify(page.events))).toBeLessThanOrEqual(limits.pageBytes);
      joins(page.events, page.firstSeq, before - 1);
      before = page.firstSeq;
    }
    const around = await ledger.history('one', { aroundSeq: 1_000 }, 20);
    joins(around.events, 990 + 1, 1_010);
    let scanned = 0;
    for await (const page of ledger.scan('one')) {
      joins(page, scanned + 1, scanned + page.length);
      scanned += page.length;
    }
    expect(scanned).toBe(total);
  }, 60_000);

  it('gives an empty page before the first event and refuses an unknown conversation', async () => {
    await say('x');
    expect(await ledger.history('one', { beforeSeq: 1 }, 10)).toEqual({ events: [], firstSeq: 1, lastSeq: 0 });
    await expect(ledger.history('none', { beforeSeq: 1 }, 10)).rejects.toMatchObject({ code: 'unknown_conversation' });
  });

  it('merges the oldest blocks of the outline beyond the bound', async () => {
    const turns = limits.outlineBlocks + 5;
    // Rows as append would make them, twenty thousand at once.
    const db = new DatabaseSync(join(directory.path, 'ledger.db'));
    db.exec(`
      WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < ${turns})
      INSERT INTO event (id, stream, seq, at, type, block, bytes, body)
      SELECT 'id' || seq, 'one', seq, 1, 'turn.started', 1, 2, '{}' FROM n;
      UPDATE stream SET lastSeq = ${turns} WHERE stream = 'one';
    `);
    db.close();
    const { outline } = ledger.feed.subscribe('one', sink());
    expect(outline).toHaveLength(limits.outlineBlocks);
    expect(outline.slice(0, 3)).toEqual([1, 7, 8]);
    expect(outline.at(-1)).toBe(turns);
  });
});

describe('the thread of long reads', () => {
  it('ends when nothing has been asked for long, fails nothing, and is there again for the next question', async () => {
    await say('once');
    const threads: Worker[] = [];
    const started = (worker: Worker): void => void threads.push(worker);
    process.on('worker', started);
    const questions = new Questions(join(directory.path, 'ledger.db'), 1);
    try {
      const ask = () => questions.search('once', { limit: 1 });
      expect((await ask()).hits).toHaveLength(1);
      const [first] = threads;
      if (first === undefined) throw new Error('no thread was started');
      await once(first, 'exit');
      expect((await Promise.all([ask(), ask()])).map(({ hits }) => hits.length)).toEqual([1, 1]);
      expect(threads).toHaveLength(2);
    } finally {
      process.off('worker', started);
      await questions.close();
    }
  });
});

describe('without a bridge', () => {
  it('reads, pages and searches a state that was closed, and one that was not', async () => {
    await say('left behind');
    for (const closes of [false, true]) {
      if (closes) await ledger.close();
      const reader = openLedgerReadOnly(directory.path);
      expect(reader.read.conversation('one')?.lastSeq).toBe(1);
      expect((await reader.search('left', { limit: 3 })).hits).toHaveLength(1);
      expect((await reader.history('one', { beforeSeq: 9 }, 5)).events).toHaveLength(1);
      await reader.close();
    }
  });
});
