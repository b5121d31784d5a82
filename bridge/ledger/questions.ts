/**
 * Speaks to the reader worker (reader.ts), which it starts at the first question and ends when none has come for long:
 * it holds some 30 MB. A worker that ended fails what was open and is started anew by the next question. Used by ledger.ts.
 */
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { AnyEvent } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { Ledger } from './contract.ts';
import type { Page } from './pages.ts';
import type { Answers, Question } from './reader.ts';

interface Open {
  readonly resolve: (answer: never) => void;
  readonly reject: (error: Error) => void;
}
type LongReads = Pick<Ledger, 'history' | 'search' | 'scan' | 'quickCheck'>;

const events = (page: Page): AnyEvent[] => page.bodies.map((body) => JSON.parse(body) as AnyEvent);
/** What a caller asked for, within `most`. */
const within = (asked: number, most: number): number => Math.max(1, Math.min(Math.trunc(asked), most));

export class Questions implements LongReads {
  readonly #path: string;
  readonly #idleMs: number;
  readonly #open = new Map<number, Open>();
  #worker: Worker | null = null;
  #idle: NodeJS.Timeout | undefined;
  #lastId = 0;

  constructor(path: string, idleMs: number = limits.readerIdleMs) {
    this.#path = path;
    this.#idleMs = idleMs;
  }

  async history(
    stream: string,
    where: { beforeSeq: number } | { aroundSeq: number },
    limit: number,
  ): ReturnType<LongReads['history']> {
    const common = { stream, limit: within(limit, limits.pageEvents) };
    const page =
      'beforeSeq' in where
        ? await this.#ask({ op: 'before', seq: where.beforeSeq, ...common })
        : await this.#ask({ op: 'around', seq: where.aroundSeq, ...common });
    return { events: events(page), firstSeq: page.firstSeq, lastSeq: page.lastSeq };
  }

  search(
    query: string,
    filter: { conversationId?: string | undefined; limit: number },
  ): ReturnType<LongReads['search']> {
    return this.#ask({
      op: 'search',
      query,
      conversationId: filter.conversationId ?? null,
      limit: within(filter.limit, limits.searchResults),
    });
  }

  async *scan(stream: string): AsyncIterable<AnyEvent[]> {
    for (let after = 0; ;) {
      const page = await this.#ask({ op: 'after', stream, seq: after });
      if (page.bodies.length === 0) return;
      yield events(page);
      if (page.whole) return;
      after = page.lastSeq;
    }
  }

  quickCheck(): Promise<string[]> {
    return this.#ask({ op: 'check' });
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
    this.#fail(new Error('the reader ended'));
  }

  #ask<Asked extends Question>(asked: Asked): Promise<Answers[Asked['op']]> {
    clearTimeout(this.#idle);
    const worker = (this.#worker ??= this.#start());
    const id = (this.#lastId += 1);
    const answered = new Promise<Answers[Asked['op']]>((resolve, reject) => {
      this.#open.set(id, { resolve: resolve as Open['resolve'], reject });
    });
    // Holds the process only while something is asked.
    worker.ref();
    worker.postMessage({ id, asked });
    return answered;
  }

  #start(): Worker {
    // What Node names is the part of the cache for this very Node, below the directory it was given.
    const cache = getCompileCacheDir();
    const compileCache = cache === undefined ? null : dirname(cache);
    const worker = new Worker(new URL('./reader.js', import.meta.url), {
      workerData: { path: this.#path, compileCache },
      env: {},
    });
    worker.on('message', (message: { id: number; answer: never } | { id: number; error: string }) => {
      const open = this.#open.get(message.id);
      this.#open.delete(message.id);
      if (this.#open.size === 0) this.#rest(worker);
      if ('error' in message) open?.reject(new Error(`the reader could not answer: ${message.error}`));
      else open?.resolve(message.answer);
    });
    worker.on('error', (error: Error) => this.#ended(worker, error));
    worker.on('exit', () => this.#ended(worker, new Error('the reader ended')));
    return worker;
  }

  #rest(worker: Worker): void {
    worker.unref();
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      if (this.#worker !== worker) return;
      this.#worker = null;
      void worker.terminate();
    }, this.#idleMs).unref();
  }

  /** The end of one that was let go says nothing about what its successor was asked. */
  #ended(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    this.#fail(error);
  }

  #fail(error: Error): void {
    for (const open of this.#open.values()) open.reject(error);
    this.#open.clear();
  }
}
