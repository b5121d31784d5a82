/**
 * Asks `GET /up` over and over from a thread of its own, so that the driver of the browser does not delay the asking.
 * This file is both sides: what the bench calls, and the thread.
 */
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** How long each answer took, in ms, from `ask` until `end`. */
export interface Asking {
  end(): Promise<number[]>;
}

/** Resolves once the first answer is there, which is not counted. */
export const ask = async (origin: string): Promise<Asking> => {
  const worker = new Worker(new URL(import.meta.url), { workerData: origin });
  const next = <T>(): Promise<T> =>
    new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
  await next();
  return {
    end: async () => {
      const times = next<number[]>();
      worker.postMessage('end');
      return await times;
    },
  };
};

const timeUp = (origin: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const began = performance.now();
    get(`${origin}/up`, { agent: false }, (response) => {
      response.resume();
      response.on('end', () => resolve(performance.now() - began));
    }).on('error', reject);
  });

if (!isMainThread && parentPort !== null) {
  const port = parentPort;
  const times: number[] = [];
  let isAsking = true;
  port.once('message', () => (isAsking = false));
  await timeUp(workerData as string);
  port.postMessage('asking');
  while (isAsking) {
    times.push(await timeUp(workerData as string));
    await sleep(10);
  }
  port.postMessage(times);
}
