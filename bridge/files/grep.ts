/**
 * One search in contents (F-06): started here, done by a seeker thread, answered in pages of what was found so far.
 * The rule not to break: it ends with its signal, with silence, and with a pattern that does not come to an end; then
 * neither thread nor process is left. Called by root.ts.
 */
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { FoundLine } from '#protocol/methods/workspace.ts';
import type { Search, SearchPage } from './contract.ts';
import { patternOf } from './pattern.ts';
import { askRipgrep } from './ripgrep.ts';
import type { Named, Order, Stopped, Told } from './seeker.ts';

export interface SearchParts {
  readonly order: Omit<Order, 'named'>;
  /** Its absolute path, or null where there is none. */
  readonly ripgrep: string | null;
  /** Aborts when the root is closed. */
  readonly signal: AbortSignal;
}

/** @throws Refusal invalid_pattern */
export const startSearch = (parts: SearchParts): Search => {
  patternOf(parts.order.wanted);
  return new Running(parts);
};

class Running implements Search {
  readonly #parts: SearchParts;
  readonly #ending = new AbortController();
  readonly #waiting = new Set<() => void>();
  #worker: Worker | null = null;
  #lines: FoundLine[] = [];
  #counts = { files: 0, bytes: 0, skipped: 0 };
  #stopped: Stopped | null = null;
  #ended = false;
  #failure: unknown = null;
  #stall: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;
  readonly #end = (): void => this.end();

  constructor(parts: SearchParts) {
    this.#parts = parts;
    parts.signal.addEventListener('abort', this.#end, { once: true });
    this.#stay();
    if (parts.ripgrep === null) this.#start(false);
    else this.#guided(parts.ripgrep);
  }

  async next(signal: AbortSignal): Promise<SearchPage> {
    this.#stay();
    signal.addEventListener('abort', this.#end, { once: true });
    try {
      if (!this.#ended && this.#lines.length < limits.grepPage) await this.#news();
    } finally {
      signal.removeEventListener('abort', this.#end);
    }
    if (this.#ending.signal.aborted && this.#failure === null && !this.#ended) throw new Refusal('cancelled');
    if (this.#failure !== null) throw this.#failure;
    const lines = this.#take();
    const ended = this.#ended && this.#lines.length === 0;
    return { lines, ...this.#counts, ended, stopped: ended ? this.#stopped : null };
  }

  end(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#stall);
    this.#parts.signal.removeEventListener('abort', this.#end);
    this.#ending.abort();
    void this.#worker?.terminate();
    this.#worker = null;
    this.#wake();
  }

  /** Waits for a page, for the end, or as long as an answer may take. */
  #news(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, limits.grepAnswerMs);
      this.#waiting.add(done);
    });
  }

  #wake(): void {
    for (const done of [...this.#waiting]) done();
  }

  /** As many lines as an answer holds, in count and in bytes. */
  #take(): FoundLine[] {
    let [count, bytes] = [0, 0];
    for (const line of this.#lines.slice(0, limits.grepPage)) {
      bytes += Buffer.byteLength(JSON.stringify(line));
      if (count > 0 && bytes > limits.pageBytes) break;
      count += 1;
    }
    return this.#lines.splice(0, count);
  }

  #stay(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(this.#end, limits.grepIdleMs);
    this.#idle.unref();
  }

  #guided(program: string): void {
    let worker: Worker | null = null;
    const tell = (message: Named): void => {
      // What a killed ripgrep had still printed.
      if (this.#ending.signal.aborted) return;
      worker ??= this.#start(true);
      if (message.paths.length > 0) this.#watchForStall();
      worker.postMessage(message);
    };
    askRipgrep(
      program,
      this.#parts.order.path,
      this.#parts.order.wanted,
      this.#ending.signal,
      (paths) => tell({ paths, last: false }),
      (done) => {
        // What ripgrep does not understand is looked for without it.
        if (!done && worker === null) this.#start(false);
        else tell({ paths: [], last: true });
      },
    );
  }

  #start(named: boolean): Worker {
    const cache = getCompileCacheDir();
    const compileCache = cache === undefined ? null : dirname(cache);
    const worker = new Worker(new URL('./seeker.js', import.meta.url), {
      workerData: { ...this.#parts.order, named, compileCache },
      env: {},
    });
    this.#worker = worker;
    worker.unref();
    worker.on('message', (told: Told) => this.#told(told));
    worker.on('error', (error) => this.#over(error));
    worker.on('exit', () => this.#over(this.#ended ? null : new Error('the seeker ended')));
    if (!named) this.#watchForStall();
    return worker;
  }

  #told({ lines, files, bytes, skipped, ended, waits, stopped }: Told): void {
    this.#lines.push(...lines);
    this.#counts = { files, bytes, skipped };
    clearTimeout(this.#stall);
    if (ended) {
      this.#stopped = stopped;
      return this.#over(null);
    }
    if (!waits) this.#watchForStall();
    if (this.#lines.length >= limits.grepPage) this.#wake();
  }

  #watchForStall(): void {
    clearTimeout(this.#stall);
    this.#stall = setTimeout(() => void this.#lookAtStall(null), limits.grepStallMs);
  }

  /** Silent: at work inside the pattern, or only waiting for a core or a disk? `before` is what it had used when first asked. */
  async #lookAtStall(before: number | null): Promise<void> {
    const [worker, asked] = [this.#worker, this.#stall];
    if (worker === null) return;
    const usage = await worker.cpuUsage().catch(() => null);
    // It spoke or ended meanwhile.
    if (usage === null || worker !== this.#worker || asked !== this.#stall) return;
    const usedMs = (usage.user + usage.system) / 1000;
    if (before !== null && usedMs - before >= limits.grepStallMs) {
      this.#stopped = 'slow';
      return this.#over(null);
    }
    this.#stall = setTimeout(() => void this.#lookAtStall(before ?? usedMs), limits.grepAnswerMs);
  }

  /** Done, or failed; what was found stays until it was asked for. */
  #over(failure: unknown): void {
    if (this.#ended || this.#ending.signal.aborted) return;
    this.#ended = true;
    this.#failure = failure;
    clearTimeout(this.#stall);
    this.#ending.abort();
    void this.#worker?.terminate();
    this.#worker = null;
    this.#wake();
  }
}
