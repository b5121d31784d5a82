/** Acceptance 7 of issue A: 2,000 messages of 60 MB opened while the bridge answers others, and 100,000 rows scrolled. */
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { openCold, scrollFrames, scroller } from './browser.ts';
import { launchAt, type Ground } from './ground.ts';
import { atMost, figure, quantile, type Row } from './measure.ts';

const timeUp = (origin: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const began = performance.now();
    get(`${origin}/up`, { agent: false }, (response) => {
      response.resume();
      response.on('end', () => resolve(performance.now() - began));
    }).on('error', reject);
  });

export const largeRows = async (ground: Ground): Promise<Row[]> => {
  const { bridge, seeded } = await ground.bridge('large', [{ messages: 2000, bytes: 60_000_000 }]);
  const [one] = seeded;
  if (one === undefined) throw new Error('nothing was seeded');
  const browser = await ground.browser();
  const opens: number[] = [];
  const ups: number[] = [];
  let isAsking = true;
  const asking = (async () => {
    while (isAsking) {
      ups.push(await timeUp(bridge.ready.origin));
      await sleep(10);
    }
  })();
  for (let run = 0; run < 5; run += 1) {
    const opened = await openCold(browser, await launchAt(bridge, `/c/${one.conversationId}`), {
      words: one.lastWords,
      from: 'last',
    });
    opens.push(opened.ms);
    await opened.page.waitForTimeout(1000);
    await opened.context.close();
  }
  isAsking = false;
  await asking;
  const common = { row: 'A7', name: 'large', unit: 'ms', floor: null } as const;
  return [
    atMost(
      {
        ...common,
        what: '2,000 messages / 60 MB → last screen',
        ours: figure(opens),
        note: `${(one.bytes / 1e6).toFixed(0)} MB stored`,
      },
      1000,
    ),
    atMost(
      {
        ...common,
        what: 'GET /up meanwhile, longest',
        ours: figure([Math.max(...ups)]),
        note: `${ups.length} asked, p50 ${quantile(ups, 0.5).toFixed(1)} ms`,
      },
      100,
    ),
  ];
};

/** 20,000 turns of five rows each; the outline still names every one. */
const rowsSeeding = { messages: 59_997, bytes: 20_000_000 } as const;

export const rowsRows = async (ground: Ground): Promise<Row[]> => {
  const { bridge, seeded } = await ground.bridge('rows', [rowsSeeding]);
  const [one] = seeded;
  if (one === undefined) throw new Error('nothing was seeded');
  const opened = await openCold(await ground.browser(), await launchAt(bridge, `/c/${one.conversationId}`), {
    words: one.lastWords,
    from: 'last',
  });
  const { page } = opened;
  await page.waitForTimeout(1500);
  const plain: number[] = [];
  const selecting: number[] = [];
  for (let run = 0; run < 5; run += 1) plain.push(...(await scrollFrames(page, { pxPerFrame: -60, ms: 2000 })));
  // A selection that reaches over the rows in view, held while the list scrolls on.
  await page.evaluate((selector) => {
    const rows = document.querySelectorAll(`:is(${selector}) [data-row]`);
    const [from, to] = [rows[2], rows[Math.min(rows.length - 1, 8)]];
    if (from !== undefined && to !== undefined) getSelection()?.setBaseAndExtent(from, 0, to, to.childNodes.length);
  }, scroller);
  for (let run = 0; run < 3; run += 1) selecting.push(...(await scrollFrames(page, { pxPerFrame: -60, ms: 2000 })));
  await opened.context.close();

  const client = await bridge.client();
  const searches: number[] = [];
  for (let run = 0; run < 7; run += 1) {
    const began = performance.now();
    const { hits } = await client.call('conversation.search', { query: `turn ${15_000 + run}`, limit: 20 });
    if (hits.length === 0) throw new Error('the search found nothing');
    searches.push(performance.now() - began);
  }
  const common = { row: 'A7', name: 'rows', unit: 'ms', floor: null } as const;
  const scrolled = (what: string, frames: readonly number[]): Row =>
    atMost(
      {
        ...common,
        what,
        ours: figure([quantile(frames, 0.95)]),
        note: `${frames.length} frames, median ${quantile(frames, 0.5).toFixed(1)}, longest ${Math.max(...frames).toFixed(0)} ms`,
      },
      19,
    );
  return [
    atMost({ ...common, what: '100,000 rows, cold → last line', ours: figure([opened.ms]) }, 1000),
    scrolled('100,000 rows scrolled, p95 frame', plain),
    scrolled('the same over a selection, p95 frame', selecting),
    atMost({ ...common, what: 'search in 140,000 entries', ours: figure(searches) }, 20),
  ];
};
