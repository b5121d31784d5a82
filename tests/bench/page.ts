/** Rows 3 and 4: what the first page weighs on the wire, and how soon it can be used. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { openCold, paintedAt } from './browser.ts';
import { launchAt, root, type Ground } from './ground.ts';
import { atMost, figure, timesFloor, type Row } from './measure.ts';

const usable = { selector: '.home .button.primary:not([disabled])' } as const;

interface Wire {
  /** Bytes of JS and CSS that came over the network, as they were packed; their heads apart. */
  code: number;
  heads: number;
  files: number;
  /** Everything, heads included. */
  all: number;
  readonly hosts: Set<string>;
}

/** Counts from now on what the page loads over the network; caches and the service worker are not the network. */
const countWire = async (page: Page): Promise<Wire> => {
  const wire: Wire = { code: 0, heads: 0, files: 0, all: 0, hosts: new Set() };
  const cdp = await page.context().newCDPSession(page);
  const codeHeads = new Map<string, number>();
  const local = new Set<string>();
  cdp.on('Network.requestWillBeSent', ({ request }) => {
    if (/^(https?|wss?):/.test(request.url)) wire.hosts.add(new URL(request.url).host);
  });
  cdp.on('Network.responseReceived', ({ requestId, type, response }) => {
    if (type === 'Script' || type === 'Stylesheet') codeHeads.set(requestId, response.encodedDataLength);
    if (response.fromDiskCache === true || response.fromServiceWorker === true || response.fromPrefetchCache === true)
      local.add(requestId);
  });
  cdp.on('Network.requestServedFromCache', ({ requestId }) => void local.add(requestId));
  cdp.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (local.has(requestId)) return;
    wire.all += encodedDataLength;
    const head = codeHeads.get(requestId);
    if (head === undefined) return;
    wire.code += encodedDataLength - head;
    wire.heads += head;
    wire.files += 1;
  });
  await cdp.send('Network.enable');
  return wire;
};

/** All that the service worker keeps for later, compressed where the table has it so. */
const offlineKiB = (): number => {
  const table = JSON.parse(readFileSync(join(root, 'build', 'assets.json'), 'utf8')) as {
    files: Record<string, { bytes: number; br?: { bytes: number } }>;
  };
  return Object.values(table.files).reduce((sum, file) => sum + (file.br?.bytes ?? file.bytes), 0) / 1024;
};

export const wireRows = async (ground: Ground): Promise<Row[]> => {
  const browser = await ground.browser();
  const { bridge } = await ground.shared();
  const origin = new URL(bridge.ready.origin).host;
  const code: number[] = [];
  const warm: number[] = [];
  let heads = '';
  const strangers = new Set<string>();
  for (let run = 0; run < 5; run += 1) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    const cold = await countWire(page);
    await page.goto(await launchAt(bridge, '/'));
    await page.locator(usable.selector).waitFor();
    await page.waitForTimeout(300);
    code.push(cold.code / 1024);
    heads = `${cold.files} files with heads of ${(cold.heads / 1024).toFixed(0)} KiB on top`;
    // The worker installs itself after the first page; then the app is opened again.
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
    await page.waitForTimeout(500);
    const again = await context.newPage();
    const wire = await countWire(again);
    await again.goto(`${bridge.ready.origin}/`);
    await again.locator(usable.selector).waitFor();
    await again.waitForTimeout(300);
    warm.push(wire.all / 1024);
    for (const host of [...cold.hosts, ...wire.hosts]) if (host !== origin) strangers.add(host);
    await context.close();
  }
  return [
    atMost(
      {
        row: '3',
        name: 'wire',
        what: 'first page, JS + CSS on the wire',
        unit: 'KiB',
        floor: null,
        ours: figure(code),
        note: `${heads}; the worker then keeps ${offlineKiB().toFixed(0)} KiB for offline`,
      },
      120,
    ),
    atMost({ row: '3', name: 'wire', what: 'the same, opened again', unit: 'KiB', floor: null, ours: figure(warm) }, 2),
    atMost(
      {
        row: '3',
        name: 'wire',
        what: 'other hosts',
        unit: '',
        floor: null,
        ours: figure([strangers.size]),
        note: [...strangers].join(' '),
      },
      0,
    ),
  ];
};

export const pageRows = async (ground: Ground): Promise<Row[]> => {
  const browser = await ground.browser();
  const { bridge } = await ground.shared();
  const bare = await ground.pages();
  const floors: number[] = [];
  const times: number[] = [];
  const again: number[] = [];
  for (let run = 0; run < 7; run += 1) {
    const floor = await openCold(browser, `${bare.origin}/list`, { selector: '[data-row="0"]' });
    floors.push(floor.ms);
    await floor.context.close();
    const ours = await openCold(browser, await launchAt(bridge, '/'), usable);
    times.push(ours.ms);
    await ours.page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
    const second = await ours.context.newPage();
    await second.goto(`${bridge.ready.origin}/`, { waitUntil: 'commit' });
    again.push(await paintedAt(second));
    await ours.context.close();
  }
  return [
    timesFloor(
      {
        row: '4',
        name: 'page',
        what: 'first usable page, cold, signed in by the link',
        unit: 'ms',
        floor: figure(floors),
        ours: figure(times),
        note: `opened again ${figure(again).value.toFixed(0)} ms`,
      },
      2.2,
    ),
  ];
};
