/** Acceptance 7 of issue A: 2,000 messages of 60 MB opened while the bridge answers others, and 100,000 rows scrolled. */
import { readFileSync } from 'node:fs';
import { ask } from './asking.ts';
import { awaitClicked, openCold, scrollFrames, scroller, type Wanted } from './browser.ts';
import { spawnBare } from './floors.ts';
import { freePort, launchAt, type Ground } from './ground.ts';
import { atMost, figure, quantile, type Figure, type Row } from './measure.ts';

const runs = 5;
const bareLast: Wanted = { words: 'last of all', from: 'last' };

interface Readings {
  readonly shown: number[];
  readonly ups: number[];
  /** Of the asked process's own thread, over all that time: on a core, and ready but without one. */
  cpuMs: number;
  queuedMs: number;
}

const coreOf = (pid: number): { cpuMs: number; queuedMs: number } => {
  const [cpuNs = 0, queuedNs = 0] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ').map(Number);
  return { cpuMs: cpuNs / 1e6, queuedMs: queuedNs / 1e6 };
};

/** Each run opens something in a fresh profile while `origin` is asked whether it is up. */
const opening = async (
  { origin, pid }: { origin: string; pid: number },
  open: (asked: () => Promise<() => Promise<void>>) => Promise<number>,
): Promise<Readings> => {
  const readings: Readings = { shown: [], ups: [], cpuMs: 0, queuedMs: 0 };
  for (let run = 0; run < runs; run += 1) {
    readings.shown.push(
      await open(async () => {
        const asking = await ask(origin);
        const before = coreOf(pid);
        return async () => {
          const after = coreOf(pid);
          readings.cpuMs += after.cpuMs - before.cpuMs;
          readings.queuedMs += after.queuedMs - before.queuedMs;
          readings.ups.push(...(await asking.end()));
        };
      }),
    );
  }
  return readings;
};
const longest = ({ ups }: Readings): Figure => figure([Math.max(...ups)]);
const askedNote = (ours: Readings, floor: Readings): string =>
  `${ours.ups.length} asked, p50 ${quantile(ours.ups, 0.5).toFixed(1)}, p99 ${quantile(ours.ups, 0.99).toFixed(0)} ms (floor's ${quantile(floor.ups, 0.99).toFixed(0)}); a run, its thread ran ${(ours.cpuMs / runs).toFixed(0)} ms and waited ${(ours.queuedMs / runs).toFixed(0)} ms for a core (floor's ${(floor.cpuMs / runs).toFixed(0)} and ${(floor.queuedMs / runs).toFixed(0)})`;

export const largeRows = async (ground: Ground): Promise<Row[]> => {
  const { bridge, seeded } = await ground.bridge('large', [{ messages: 200 }, { messages: 2000, bytes: 60_000_000 }]);
  const [small, large] = seeded;
  if (small === undefined || large === undefined) throw new Error('nothing was seeded');
  const browser = await ground.browser();
  const bare = await ground.pages();
  const barePort = await freePort();
  const bareUp = spawnBare(barePort);
  const last: Wanted = { words: large.lastWords, from: 'last' };

  /** From nothing: a fresh profile signs in by the link and shows `url`. */
  const cold =
    (where: () => Promise<string>, wanted: Wanted) =>
    async (asked: () => Promise<() => Promise<void>>): Promise<number> => {
      const url = await where();
      const end = await asked();
      const opened = await openCold(browser, url, wanted);
      await opened.page.waitForTimeout(1000);
      await end();
      await opened.context.close();
      return opened.ms;
    };
  /** The page is open and at rest; a link in it is clicked. */
  const clicked =
    (where: () => Promise<string>, first: Wanted, link: string, wanted: Wanted) =>
    async (asked: () => Promise<() => Promise<void>>): Promise<number> => {
      const opened = await openCold(browser, await where(), first);
      await opened.page.waitForTimeout(3000);
      const end = await asked();
      const ms = await awaitClicked(opened.page, link, wanted);
      await opened.page.waitForTimeout(500);
      await end();
      await opened.context.close();
      return ms;
    };

  try {
    const bareServer = { origin: `http://127.0.0.1:${barePort}`, pid: bareUp.pid ?? 0 };
    const openBare = await opening(
      bareServer,
      clicked(() => Promise.resolve(`${bare.origin}/later`), { selector: '#open' }, '#open', bareLast),
    );
    const open = await opening(
      bridge.ready,
      clicked(
        () => launchAt(bridge, `/c/${small.conversationId}`),
        { words: small.lastWords, from: 'last' },
        `a[href="/c/${large.conversationId}"]`,
        last,
      ),
    );
    const coldBare = await opening(
      bareServer,
      cold(() => Promise.resolve(`${bare.origin}/transcript`), bareLast),
    );
    const coldOurs = await opening(
      bridge.ready,
      cold(() => launchAt(bridge, `/c/${large.conversationId}`), last),
    );
    const common = { row: 'A7', name: 'large', unit: 'ms' } as const;
    const stored = `${(large.bytes / 1e6).toFixed(0)} MB stored`;
    return [
      atMost(
        {
          ...common,
          what: '2,000 messages / 60 MB, clicked in the open app → last screen',
          ours: figure(open.shown),
          floor: figure(openBare.shown),
          note: stored,
        },
        1000,
      ),
      atMost(
        {
          ...common,
          what: 'GET /up meanwhile, longest',
          ours: longest(open),
          floor: longest(openBare),
          note: askedNote(open, openBare),
        },
        100,
      ),
      atMost(
        {
          ...common,
          what: '2,000 messages / 60 MB, cold → last screen',
          ours: figure(coldOurs.shown),
          floor: figure(coldBare.shown),
          note: stored,
        },
        1000,
      ),
      atMost(
        {
          ...common,
          what: 'GET /up during the cold start, longest',
          ours: longest(coldOurs),
          floor: longest(coldBare),
          note: askedNote(coldOurs, coldBare),
        },
        100,
      ),
    ];
  } finally {
    bareUp.kill();
  }
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
