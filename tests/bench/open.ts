/** Rows 5, 7, 8 and 9: long conversations opened, held, scrolled and jumped through. */
import { jumpTo, openCold, scrollFrames, weigh, type Wanted } from './browser.ts';
import { conversationOf, launchAt, type Ground } from './ground.ts';
import { atMost, figure, quantile, timesFloor, type Row } from './measure.ts';
import type { Seeded } from './seed.ts';

const lastOf = (one: Seeded): Wanted => ({ words: one.lastWords, from: 'last' });
const firstOf = (one: Seeded): Wanted => ({ words: one.firstWords, from: 'first' });
const bareLast: Wanted = { words: 'last of all', from: 'last' };

/** Rows 5 and 9: each run is a fresh profile; the jump follows at once, so that nothing of the beginning is there yet. */
export const openRows = async (ground: Ground): Promise<Row[]> => {
  const browser = await ground.browser();
  const bare = await ground.pages();
  const { bridge, seeded } = await ground.shared();
  const times: Record<number, number[]> = { 200: [], 2000: [], 20_000: [] };
  const floors: number[] = [];
  const jumps: number[] = [];
  const fetches: number[] = [];
  const client = await bridge.client();
  for (let run = 0; run < 7; run += 1) {
    const floor = await openCold(browser, `${bare.origin}/transcript`, bareLast);
    floors.push(floor.ms);
    await floor.context.close();
    for (const messages of [200, 2000, 20_000]) {
      const one = conversationOf(seeded, messages);
      const opened = await openCold(browser, await launchAt(bridge, `/c/${one.conversationId}`), lastOf(one));
      times[messages]?.push(opened.ms);
      if (messages === 20_000) {
        await opened.page.waitForTimeout(500);
        jumps.push(await jumpTo(opened.page, 0, firstOf(one)));
        const began = performance.now();
        await client.call('conversation.history', { conversationId: one.conversationId, aroundSeq: 1 });
        fetches.push(performance.now() - began);
      }
      await opened.context.close();
    }
  }
  const floor = figure(floors);
  const [small, middle, large] = [200, 2000, 20_000].map((messages) => figure(times[messages] ?? [])) as [
    ReturnType<typeof figure>,
    ReturnType<typeof figure>,
    ReturnType<typeof figure>,
  ];
  const common = { row: '5', name: 'open', unit: 'ms', floor } as const;
  return [
    timesFloor({ ...common, what: 'open 2,000 messages, cold → last line', ours: middle }, 4),
    timesFloor({ ...common, what: 'open 20,000 messages, cold → last line', ours: large }, 4),
    timesFloor({ ...common, what: '20,000 against our 200', floor: small, ours: large }, 1.15),
    atMost(
      {
        row: '9',
        name: 'open',
        what: 'jump to the first of 20,000',
        unit: 'ms',
        floor: figure(fetches),
        ours: figure(jumps),
        note: 'floor: one fetch of that page',
      },
      300,
    ),
  ];
};

/** Rows 7 and 8, and A7's scrolling: nodes, heap and frames of one conversation. */
export const scrollRows = async (ground: Ground): Promise<Row[]> => {
  const browser = await ground.browser();
  const bare = await ground.pages();
  const { bridge, seeded } = await ground.shared();
  const one = conversationOf(seeded, 20_000);

  const floorPage = await openCold(browser, `${bare.origin}/long`, { selector: '[data-row="0"]' });
  const floors: number[] = [];
  for (let run = 0; run < 5; run += 1)
    floors.push(quantile(await scrollFrames(floorPage.page, { pxPerFrame: run % 2 === 0 ? 60 : -60, ms: 3000 }), 0.95));
  await floorPage.context.close();

  const opened = await openCold(browser, await launchAt(bridge, `/c/${one.conversationId}`), lastOf(one));
  await opened.page.waitForTimeout(2000);
  const cdp = await opened.context.newCDPSession(opened.page);
  const before = await weigh(opened.page, cdp);
  const p95: number[] = [];
  let longest = 0;
  let late = 0;
  for (let run = 0; run < 5; run += 1) {
    const frames = await scrollFrames(opened.page, { pxPerFrame: -60, ms: 3000 });
    p95.push(quantile(frames, 0.95));
    longest = Math.max(longest, ...frames);
    late += frames.filter((ms) => ms > 50).length;
  }
  await opened.page.waitForTimeout(1500);
  const after = await weigh(opened.page, cdp);
  await opened.context.close();
  const common = { name: 'scroll', floor: null } as const;
  return [
    atMost({ ...common, row: '7', what: 'elements at 20,000', unit: '', ours: figure([before.elements]) }, 1000),
    atMost({ ...common, row: '7', what: 'heap at 20,000', unit: 'MB', ours: figure([before.heapMB]) }, 15),
    atMost(
      { ...common, row: '7', what: 'elements after 15 s of scrolling', unit: '', ours: figure([after.elements]) },
      1000,
    ),
    atMost({ ...common, row: '7', what: 'heap after 15 s of scrolling', unit: 'MB', ours: figure([after.heapMB]) }, 15),
    timesFloor(
      {
        row: '8',
        name: 'scroll',
        what: 'scroll at 3,600 px/s, p95 frame',
        unit: 'ms',
        floor: figure(floors),
        ours: figure(p95),
      },
      1.15,
    ),
    atMost(
      {
        ...common,
        row: '8',
        what: 'frames over 50 ms in 15 s',
        unit: '',
        ours: figure([late]),
        note: `longest ${longest.toFixed(0)} ms`,
      },
      0,
    ),
  ];
};
