/**
 * Signatures of a whole log, checked on a thread beside the one that reads it. While that thread has enough to do
 * the asking one checks as well, so that neither waits for the other. Used by reader.ts.
 */
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Signatures, Signed } from '#protocol/guess.ts';
import { limits } from '#protocol/limits.ts';
import type { Batch } from './checker.ts';
import { verifyEd25519 } from './signature.ts';

/** One copy that is handed over, instead of three for each signature. */
const batchOf = (asked: readonly Signed[]): Batch => {
  const parts = asked.flat();
  const lengths = Uint32Array.from(parts, ({ length }) => length);
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { bytes, lengths };
};

interface Asked {
  readonly resolve: (holds: boolean) => void;
  readonly reject: (error: Error) => void;
}

/**
 * `hold` of all it is asked until `end`; about so many as `receipts`. A thread that fails fails the asking; it never
 * counts as a yes.
 */
export const signaturesAside = (receipts: number): { readonly hold: Signatures; end(): void } => {
  const open: Asked[] = [];
  const fail = (error: Error): void => {
    for (const { reject } of open.splice(0)) reject(error);
  };
  const start = (): Worker => {
    // What Node names is the part of the cache for this very Node, below the directory it was given.
    const cache = getCompileCacheDir();
    const compileCache = cache === undefined ? null : dirname(cache);
    const begun = new Worker(new URL('./checker.js', import.meta.url), { workerData: { compileCache }, env: {} });
    begun.on('message', (holds: boolean) => open.shift()?.resolve(holds));
    begun.on('error', fail);
    begun.on('exit', () => {
      fail(new Error('the thread that checks signatures ended'));
    });
    return begun;
  };
  // A few are checked sooner than a thread begins.
  const worker = receipts < limits.verifyWindow ? null : start();
  return {
    hold: async (asked) => {
      const isBusy = open.length >= limits.verifyWindow / limits.verifyBatch - 1;
      if (isBusy || worker === null) return asked.every((each) => verifyEd25519(...each));
      const batch = batchOf(asked);
      const answered = new Promise<boolean>((resolve, reject) => open.push({ resolve, reject }));
      worker.postMessage(batch, [batch.bytes.buffer as ArrayBuffer, batch.lengths.buffer as ArrayBuffer]);
      return answered;
    },
    end: () => void worker?.terminate(),
  };
};
