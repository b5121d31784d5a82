/** The page's side of the verifier: a worker that is started by the first check and ends when idle or stopped. */
import { proxy, transfer, wrap, type Remote } from 'comlink';
import { scriptUrl } from '#lib/link/trusted.ts';
import type { Known, LogPage, LogVerdict, Progress, ReceiptProof, ReceiptVerdict, Shown } from './verify-contract.ts';
import type { Verifier } from './verify.worker.ts';
import workerUrl from './verify.worker.ts?worker&url';

const idleMs = 30_000;

export class Stopped extends Error {
  override readonly name = 'Stopped';
}

interface Opened {
  readonly api: Remote<Verifier>;
  /** Rejects when the worker cannot be loaded or dies; comlink alone would wait for ever. */
  readonly broken: Promise<never>;
  end(): void;
}

const start = (): Opened => {
  const worker = new Worker(scriptUrl(workerUrl), { type: 'module', name: 'verify' });
  const broken = new Promise<never>((_, reject) => {
    worker.onerror = (event) => reject(new Error(event.message === '' ? 'The verifier did not start.' : event.message));
  });
  broken.catch(() => undefined); // said where it is awaited
  return { api: wrap<Verifier>(worker), broken, end: () => worker.terminate() };
};

let shared: Opened | null = null;
let idle: ReturnType<typeof setTimeout> | undefined;
const stop = (): void => {
  shared?.end();
  shared = null;
};

/** `consistency`: RFC 6962 hashes from the known state of the log to the proof's; null where there are none to be had. */
export const verifyReceipt = async (
  known: Known,
  proof: ReceiptProof,
  options: { readonly consistency: readonly string[] | null; readonly kept: boolean },
): Promise<ReceiptVerdict> => {
  clearTimeout(idle);
  shared ??= start();
  const { api, broken } = shared;
  try {
    return await Promise.race([api.verifyReceipt(known, proof, options), broken]);
  } catch (error) {
    stop();
    throw error;
  } finally {
    idle = setTimeout(stop, idleMs);
  }
};

/** Checks the whole log, page by page. @throws Stopped when `signal` says so */
export const verifyLog = async (
  known: Known,
  shown: Shown,
  on: { page(afterSeq: number): Promise<LogPage>; progress(progress: Progress): void },
  signal: AbortSignal,
): Promise<LogVerdict> => {
  const [main, other] = [start(), start()];
  const stopped = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new Stopped()), { once: true });
  });
  const between = new MessageChannel();
  try {
    signal.throwIfAborted();
    void other.api.serve(transfer(between.port1, [between.port1]));
    const port = transfer(between.port2, [between.port2]);
    const work = main.api.verifyLog(known, shown, proxy(on.page), proxy(on.progress), port);
    return await Promise.race([work, main.broken, other.broken, stopped]);
  } finally {
    main.end();
    other.end();
  }
};
