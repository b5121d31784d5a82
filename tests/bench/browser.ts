/**
 * A real Chromium and what is asked of it: how long until something is on the screen, how frames come, when words arrive.
 * Everything is timed inside the page, on its own clock, so that the driver's round trips do not count.
 */
import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type CDPSession, type Page } from '@playwright/test';

const known = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export const openBrowser = (): Promise<Browser> => {
  const executablePath = process.env['CHROMIUM'] ?? known.find((path) => existsSync(path));
  const root = process.getuid?.() === 0;
  return chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    args: [
      ...(root ? ['--no-sandbox'] : []),
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
      '--js-flags=--expose-gc',
    ],
  });
};

/** What has to be on the screen: words in one of the last rows, or an element that can be used. */
export type Wanted = { readonly words: string; readonly from: 'last' | 'first' } | { readonly selector: string };

interface Probe {
  painted: number | null;
  await(wanted: Wanted): void;
}
declare global {
  interface Window {
    bench: Probe;
  }
}

/** Runs in the page before anything else. `painted` is set in the task after the frame in which it was first seen. */
const install = (first: Wanted | null): void => {
  const inView = (element: Element | null): boolean => {
    if (element === null || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return false;
    const { top, bottom, height } = element.getBoundingClientRect();
    return height > 0 && bottom > 0 && top < innerHeight;
  };
  const holder = (row: Element, words: string): Element | null => {
    const walk = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
    while (walk.nextNode() !== null)
      if (walk.currentNode.nodeValue?.includes(words) === true) return walk.currentNode.parentElement;
    return null;
  };
  const isThere = (wanted: Wanted): boolean => {
    if ('selector' in wanted) return inView(document.querySelector(wanted.selector));
    const rows = [...document.querySelectorAll('[data-row]')];
    const some = wanted.from === 'last' ? rows.slice(-4) : rows.slice(0, 6);
    return some.some((row) => row.textContent.includes(wanted.words) && inView(holder(row, wanted.words)));
  };
  const probe: Probe = {
    painted: null,
    await: (wanted) => {
      probe.painted = null;
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        probe.painted ??= performance.now();
      };
      const look = (): void => {
        if (document.body !== null && isThere(wanted)) channel.port2.postMessage(0);
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    },
  };
  window.bench = probe;
  if (first !== null && window === window.top) probe.await(first);
};

export const paintedAt = async (page: Page, timeoutMs = 30_000): Promise<number> => {
  const handle = await page.waitForFunction(() => window.bench.painted, undefined, { polling: 50, timeout: timeoutMs });
  return (await handle.jsonValue()) ?? Number.NaN;
};

export interface Opened {
  readonly page: Page;
  readonly context: BrowserContext;
  /** From the start of the navigation until `wanted` was painted. */
  readonly ms: number;
}

/** A fresh profile without any cache opens `url`. The caller closes the context. */
export const openCold = async (browser: Browser, url: string, wanted: Wanted): Promise<Opened> => {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await context.addInitScript(install, wanted);
  const page = await context.newPage();
  await page.goto(url, { waitUntil: 'commit' });
  return { page, context, ms: await paintedAt(page) };
};

export const scroller = '.scroll[role=log], #box';

/** The scroll box goes to `top`; how long until `wanted` is painted there. */
export const jumpTo = async (page: Page, top: number, wanted: Wanted): Promise<number> => {
  const began = await page.evaluate(
    ({ top: to, wanted: what, scroller: selector }) => {
      window.bench.await(what);
      const at = performance.now();
      const box = document.querySelector(selector);
      if (box !== null) box.scrollTop = to;
      return at;
    },
    { top, wanted, scroller },
  );
  return (await paintedAt(page)) - began;
};

/** Clicks as the operator does; from the click until `wanted` is painted. */
export const awaitClicked = async (page: Page, link: string, wanted: Wanted): Promise<number> => {
  const clickedAt = page.evaluate(
    (what) =>
      new Promise<number>((resolve) => {
        const heard = (event: MouseEvent): void => {
          window.bench.await(what);
          resolve(event.timeStamp);
        };
        document.addEventListener('click', heard, { capture: true, once: true });
      }),
    wanted,
  );
  await page.locator(link).first().click();
  return (await paintedAt(page)) - (await clickedAt);
};

/** Scrolls `px` a frame for so long; answers the time between frames. */
export const scrollFrames = (page: Page, options: { pxPerFrame: number; ms: number }): Promise<number[]> =>
  page.evaluate(
    ({ pxPerFrame, ms, scroller: selector }) =>
      new Promise<number[]>((resolve) => {
        const box = document.querySelector(selector);
        const frames: number[] = [];
        let last = 0;
        const began = performance.now();
        const step = (now: number): void => {
          if (last !== 0) frames.push(now - last);
          last = now;
          box?.scrollBy(0, pxPerFrame);
          if (now - began < ms) requestAnimationFrame(step);
          else resolve(frames);
        };
        requestAnimationFrame(step);
      }),
    { ...options, scroller },
  );

export interface Weight {
  readonly elements: number;
  readonly heapMB: number;
}

/** Elements in the document, and the heap after a full collection. */
export const weigh = async (page: Page, cdp: CDPSession): Promise<Weight> => {
  await cdp.send('HeapProfiler.enable');
  for (let pass = 0; pass < 3; pass += 1) await cdp.send('HeapProfiler.collectGarbage');
  const { usedSize } = await cdp.send('Runtime.getHeapUsage');
  const elements = await page.evaluate(() => document.getElementsByTagName('*').length);
  return { elements, heapMB: usedSize / 1e6 };
};
