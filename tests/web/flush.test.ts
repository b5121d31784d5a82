import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Flush } from '#lib/state/flush.ts';

let frames: (() => void)[] = [];
let runs = 0;
let flush: Flush;
const frame = (): void => {
  vi.advanceTimersByTime(17);
  for (const run of frames.splice(0)) run();
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  frames = [];
  runs = 0;
  vi.stubGlobal('document', { visibilityState: 'visible' });
  vi.stubGlobal('requestAnimationFrame', (run: () => void) => frames.push(run));
  vi.stubGlobal('cancelAnimationFrame', (id: number) => void frames.splice(id - 1, 1));
  flush = new Flush(() => (runs += 1));
});
afterEach(() => {
  flush.cancel();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it('the first change after a quiet frame is shown without waiting for the next', async () => {
  flush.ask();
  flush.ask();
  await Promise.resolve();
  expect(runs).toBe(1);
  expect(frames).toHaveLength(0);
});

it('changes within a frame of the last flush share the next frame', async () => {
  flush.ask();
  await Promise.resolve();
  for (let change = 0; change < 30; change += 1) flush.ask();
  await Promise.resolve();
  expect(runs).toBe(1);
  frame();
  expect(runs).toBe(2);
});

it('a hidden page is flushed at most every 250 ms', async () => {
  vi.stubGlobal('document', { visibilityState: 'hidden' });
  for (let change = 0; change < 30; change += 1) flush.ask();
  await Promise.resolve();
  expect(runs).toBe(0);
  vi.advanceTimersByTime(250);
  expect(runs).toBe(1);
});

it('a cancelled flush does not come later', async () => {
  flush.ask();
  flush.cancel();
  await Promise.resolve();
  frame();
  expect(runs).toBe(0);
});
