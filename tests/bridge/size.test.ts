import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from '#protocol/client.ts';
import { limits } from '#protocol/limits.ts';
import { seed, type Seeded } from '../bench/seed.ts';
import { bridge } from './process.ts';
import { Stage } from './stage.ts';

describe('a transcript of 2,000 messages and 60 MB (case 31)', () => {
  const messages = 2000;
  const stage = new Stage();
  let client: Client;
  let seeded: Seeded;
  beforeAll(async () => {
    const [made] = await seed(stage.bridge.state, stage.workspace, [{ messages, bytes: 60_000_000 }]);
    if (made === undefined) throw new Error('unreachable');
    seeded = made;
    client = await stage.start();
  });
  afterAll(() => stage.end());

  /** Asks GET /up again and again until the work is done; how many answers came while it was not. */
  const answersDuring = async (work: Promise<unknown>): Promise<number> => {
    const busy = { now: true };
    const settled = work.finally(() => (busy.now = false));
    let answers = 0;
    while (busy.now) {
      const { status } = await fetch(`${stage.bridge.ready.origin}/up`);
      expect(status).toBe(204);
      if (busy.now) answers += 1;
    }
    await settled;
    return answers;
  };

  const readAll = async (): Promise<{ messages: number; pages: number; events: number }> => {
    const { conversationId } = seeded;
    const read = { messages: 0, pages: 0, events: 0 };
    const { lastSeq } = await client.call('conversation.get', { conversationId });
    for (let beforeSeq = lastSeq + 1; beforeSeq > 1; read.pages += 1) {
      const page = await client.call('conversation.history', { conversationId, beforeSeq });
      const bytes = Buffer.byteLength(JSON.stringify(page.events));
      expect(bytes).toBeLessThanOrEqual(limits.pageBytes + 2);
      expect(page.lastSeq).toBe(beforeSeq - 1);
      expect(page.events.map(({ seq }) => seq)).toEqual(page.events.map((_, index) => page.firstSeq + index));
      read.events += page.events.length;
      read.messages += page.events.filter(({ type }) => type === 'message').length;
      beforeSeq = page.firstSeq;
    }
    return read;
  };

  it('opens with a small newest page and an outline of every turn', async () => {
    expect(seeded.bytes).toBeGreaterThan(55_000_000);
    const opened = await client.call('conversation.subscribe', { conversationId: seeded.conversationId });
    expect(opened.events.length).toBeLessThanOrEqual(limits.firstPageEvents);
    expect(Buffer.byteLength(JSON.stringify(opened.events))).toBeLessThanOrEqual(limits.firstPageBytes);
    expect(opened.events.at(-1)?.seq).toBe(opened.boundarySeq);
    expect(opened.outline).toHaveLength(Math.ceil(messages / 3) + 1);
    expect(opened.draft).toBe(null);
    await client.call('conversation.unsubscribe', { conversationId: seeded.conversationId });
  });

  it('is read whole in bounded, contiguous pages while GET /up answers', async () => {
    const work = readAll();
    expect(await answersDuring(work)).toBeGreaterThan(20);
    expect(await work).toMatchObject({ messages, events: seeded.events });
  });

  it('is searched while GET /up answers; the one place of the last words is found', async () => {
    const searches = Promise.all(
      ['parser', 'zone', 'tests', 'change', seeded.lastWords].map((query) =>
        client.call('conversation.search', { query }),
      ),
    );
    expect(await answersDuring(searches)).toBeGreaterThan(2);
    const [common, , , , rare] = await searches;
    expect(common?.hits).toHaveLength(limits.searchResults);
    expect(rare?.hits).toMatchObject([{ conversationId: seeded.conversationId }]);
    expect(rare?.more).toBe(false);
  });

  it.each(['json', 'md', 'html'] as const)(
    'as %s is too large for the app, which is found out while GET /up answers',
    async (format) => {
      const asked = client.call('conversation.export', { conversationId: seeded.conversationId, format });
      const refused = expect(asked).rejects.toMatchObject({ code: 'content_too_large' });
      expect(await answersDuring(refused)).toBeGreaterThan(5);
      await refused;
    },
  );

  it('is written whole by the CLI while the bridge runs', async () => {
    const { code, stdout } = await bridge([
      'conversations',
      'export',
      seeded.conversationId,
      '--state',
      stage.bridge.state,
      '--format',
      'json',
    ]);
    expect(code).toBe(0);
    const exported = JSON.parse(stdout) as { format: string; events: { type: string }[]; receipts: unknown[] };
    expect(exported.format).toBe('countersign/conversation/v1');
    expect(exported.events.filter(({ type }) => type === 'message')).toHaveLength(messages);
    expect(exported.receipts).toEqual([]);
  });
});
