/**
 * When the words of a stream arrive on a page: in the document, and on the screen. Chunks are `c1~ c2~ …`; both ends
 * write wall-clock times, read off the same clock's edges, so that they can be subtracted.
 */
import type { Page } from '@playwright/test';
import { scroller } from './browser.ts';

export interface ChunkTimes {
  /** By chunk number from 1, wall clock in ms. */
  readonly dom: readonly number[];
  readonly painted: readonly number[];
}
interface Watch {
  latest: number;
  readonly dom: number[];
  readonly painted: number[];
}
declare global {
  interface Window {
    benchChunks: Watch;
  }
}

/** Begins to watch; call before the stream starts. */
export const watchChunks = (page: Page, from: number): Promise<void> =>
  page.evaluate(
    ({ selector, from: first }) => {
      // Date.now() just after it changed is exact; performance.now() has the fractions.
      const edge = (): number => {
        const at = Date.now();
        while (Date.now() === at);
        return Date.now() - performance.now();
      };
      const offset = Math.max(edge(), edge(), edge(), edge(), edge());
      const wallMs = (): number => performance.now() + offset;
      const watch: Watch = { latest: first, dom: [], painted: [] };
      window.benchChunks = watch;
      const box = document.querySelector(selector) ?? document.body;
      let waiting: number[] = [];
      // Posted at the start of a frame, handled after its paint: what changed before or within the frame is on the screen.
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        const at = wallMs();
        for (const number of waiting) watch.painted[number - first] = at;
        waiting = [];
      };
      const frame = (): void => {
        channel.port2.postMessage(0);
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
      const latest = (): number => {
        const rows = box.querySelectorAll('[data-row]');
        for (let at = rows.length - 1; at >= Math.max(0, rows.length - 4); at -= 1) {
          const found = /c(\d+)~\s*$/.exec(rows[at]?.textContent.slice(-24).trimEnd() ?? '');
          if (found !== null) return Number(found[1]);
        }
        return 0;
      };
      new MutationObserver(() => {
        const number = latest();
        if (number <= watch.latest) return;
        const at = wallMs();
        for (let one = watch.latest + 1; one <= number; one += 1) {
          watch.dom[one - first] = at;
          waiting.push(one);
        }
        watch.latest = number;
      }).observe(box, { subtree: true, childList: true, characterData: true });
    },
    { selector: scroller, from },
  );

/** Waits until the last chunk is on the screen. */
export const chunkTimes = async (page: Page, count: number): Promise<ChunkTimes> => {
  await page.waitForFunction((last) => window.benchChunks.painted[last] !== undefined, count, {
    polling: 100,
    timeout: 60_000,
  });
  return page.evaluate(() => ({ dom: window.benchChunks.dom, painted: window.benchChunks.painted }));
};

/** Times between each sending and `arrived`, ms. The first chunks carry the start of the turn and are left out. */
export const delays = (sent: readonly number[], arrived: readonly number[], skip = 5): number[] =>
  sent.flatMap((at, index) => (index < skip ? [] : [(arrived[index + 1] ?? Number.NaN) - at]));
