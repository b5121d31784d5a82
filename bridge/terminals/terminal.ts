/**
 * One running terminal and the pages that look at it: which of them owns the size, how far each has drawn, and when the
 * program has to wait. The owner holds the program up, for as long as it draws at all; every other page that falls too
 * far behind is cut off and comes back with a replay. Made by `terminals.ts`.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { TerminalInfo, TerminalSize } from '#protocol/methods/terminal.ts';
import { oneLine } from '../agents/ring.ts';
import type { TerminalAttachment, TerminalViewer } from './contract.ts';
import { kinds, type OpenMessage } from './frames.ts';
import { startHost, type HostProcess } from './process.ts';
import { failedOf, sizeOf, type Failed } from './said.ts';

interface Page {
  readonly viewer: TerminalViewer;
  /** The size it would have, if it owned it. */
  size: TerminalSize;
  /** Its replay was sent: output goes to it from here on. */
  isLive: boolean;
  sent: number;
  drawn: number;
  /** Runs while the program waits for it. */
  patience: NodeJS.Timeout | null;
}
export type Ended = NonNullable<TerminalInfo['ended']>;

const refusalOf = (failed: Failed): Refusal => {
  const cause = new Error(failed.message);
  if (failed.why === 'moved') return new Refusal('workspace_changed', { cause });
  const message =
    failed.why === 'library'
      ? 'There are no terminals here: the library for them does not load on this machine.'
      : 'The shell did not start.';
  return new Refusal('unsupported_capability', { message, cause });
};

export class Terminal {
  readonly #host: HostProcess;
  readonly #pages = new Set<Page>();
  /** Pages that wait for their replay, by its number. */
  readonly #replays = new Map<number, Page>();
  #info: TerminalInfo;
  #owner: Page | null = null;
  #isNamed = false;
  #isWaiting = false;
  #replayed = 0;
  #endedBy: Ended['by'] = 'itself';
  readonly #changed: () => void;
  /** Resolves with how it ended, after every page was told. */
  readonly gone: Promise<Ended>;

  private constructor(host: HostProcess, info: TerminalInfo, now: () => number, changed: () => void) {
    this.#host = host;
    this.#info = info;
    this.#changed = changed;
    this.gone = host.gone.then((exit) => {
      const ended = { at: now(), code: exit?.code ?? null, signal: exit?.signal ?? null, by: this.#endedBy };
      this.#info = { ...this.#info, ended };
      for (const page of this.#pages) {
        if (page.patience !== null) clearTimeout(page.patience);
        page.viewer.frame({ type: 'ended', code: ended.code, signal: ended.signal });
        page.viewer.close('gone');
      }
      this.#pages.clear();
      return ended;
    });
  }

  /** Resolves once the shell runs. @throws Refusal workspace_changed, unsupported_capability */
  static async open(options: {
    nodePath: string;
    marker: string;
    info: TerminalInfo;
    message: OpenMessage;
    now: () => number;
    changed: () => void;
    /** Runs with the host's process, before the shell is started. */
    recorded: (process: Pick<HostProcess, 'pid' | 'startTime' | 'marker'>) => Promise<unknown>;
  }): Promise<Terminal> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let terminal: Terminal | null = null;
    const host = await startHost({
      nodePath: options.nodePath,
      marker: options.marker,
      received: (kind, body) => {
        if (kind === kinds.opened) resolve();
        else if (kind === kinds.failed) reject(refusalOf(failedOf(body)));
        else if (terminal !== null) terminal.#receive(kind, body);
      },
    }).catch((cause: unknown) => {
      throw new Refusal('unsupported_capability', { message: 'The process of the terminal did not start.', cause });
    });
    terminal = new Terminal(host, options.info, options.now, options.changed);
    const late = setTimeout(
      () => reject(refusalOf({ why: 'program', message: 'not in time' })),
      limits.terminalStartMs,
    );
    void host.gone.then(() => reject(refusalOf({ why: 'program', message: 'the host ended' })));
    try {
      await options.recorded(host);
      host.sendJson(kinds.open, options.message);
      await promise;
      return terminal;
    } catch (error) {
      promise.catch(() => undefined); // the recording failed first
      await host.end();
      throw error;
    } finally {
      clearTimeout(late);
    }
  }

  get info(): TerminalInfo {
    return this.#info;
  }

  rename(title: string): void {
    this.#isNamed = true;
    this.#retitle(title);
  }

  async end(by: Ended['by']): Promise<void> {
    this.#endedBy = by;
    await this.#host.end();
    await this.gone;
  }

  attach(size: TerminalSize, viewer: TerminalViewer): TerminalAttachment {
    const page: Page = { viewer, size, isLive: false, sent: 0, drawn: 0, patience: null };
    this.#pages.add(page);
    if (this.#owner === null) {
      this.#owner = page;
      this.#fit(size);
    }
    this.#replayed += 1;
    this.#replays.set(this.#replayed, page);
    this.#host.sendJson(kinds.replay, { id: this.#replayed });
    return {
      input: (bytes) => {
        if (this.#pages.has(page)) this.#host.send(kinds.input, bytes);
      },
      resize: (next) => {
        page.size = next;
        if (this.#owner === page) this.#fit(next);
      },
      own: () => this.#pages.has(page) && this.#own(page),
      ack: (bytes) => {
        page.drawn = Math.min(page.sent, Math.max(page.drawn, bytes));
        this.#pace();
      },
      detach: () => this.#leave(page),
    };
  }

  #receive(kind: number, body: Buffer): void {
    if (kind === kinds.output) this.#output(body);
    else if (kind === kinds.replay) this.#replay(body);
    else if (kind === kinds.resize) this.#resized(sizeOf(body));
    else if (kind === kinds.title && !this.#isNamed)
      this.#retitle(oneLine(body.toString('utf8'), limits.terminalTitleUnits - 2));
  }

  #output(bytes: Buffer): void {
    for (const page of this.#pages) {
      if (!page.isLive) continue;
      page.sent += bytes.length;
      page.viewer.bytes(bytes);
      if (page !== this.#owner && page.sent - page.drawn > limits.tailBytes) this.#cut(page);
    }
    this.#pace();
  }

  #replay(body: Buffer): void {
    const id = body.readUInt32BE(0);
    const page = this.#replays.get(id);
    this.#replays.delete(id);
    if (page === undefined || !this.#pages.has(page)) return;
    const bytes = body.subarray(4);
    const { size, title } = this.#info;
    page.viewer.frame({ type: 'replay', size, owner: this.#owner === page, bytes: bytes.length });
    page.viewer.bytes(bytes);
    page.isLive = true;
    if (title !== '') page.viewer.frame({ type: 'title', title });
  }

  /** The host says it where it stands in the output, and so the pages hear it there. */
  #resized(size: TerminalSize): void {
    this.#info = { ...this.#info, size };
    for (const page of this.#pages)
      if (page.isLive && page !== this.#owner) page.viewer.frame({ type: 'size', size, owner: false });
    this.#changed();
  }

  #retitle(title: string): void {
    if (title === this.#info.title) return;
    this.#info = { ...this.#info, title };
    for (const page of this.#pages) if (page.isLive) page.viewer.frame({ type: 'title', title });
    this.#changed();
  }

  #fit(size: TerminalSize): void {
    this.#host.sendJson(kinds.resize, size);
  }

  #own(owner: Page): void {
    if (this.#owner === owner) return;
    this.#owner = owner;
    const { size } = this.#info;
    for (const page of this.#pages) if (page.isLive) page.viewer.frame({ type: 'size', size, owner: page === owner });
    this.#fit(owner.size);
    this.#pace();
  }

  #leave(page: Page): void {
    if (!this.#pages.delete(page)) return;
    if (page.patience !== null) clearTimeout(page.patience);
    if (this.#owner !== page) return;
    this.#owner = null;
    // The one that came last is the one that is looked at.
    const next = [...this.#pages].at(-1);
    if (next !== undefined) this.#own(next);
    else this.#pace();
  }

  #cut(page: Page): void {
    this.#leave(page);
    page.viewer.close('slow');
  }

  /** The program waits when its owner has a window of output to draw, and goes on when half of that is drawn. */
  #pace(): void {
    const owner = this.#owner;
    const behind = owner === null ? 0 : owner.sent - owner.drawn;
    const isFull = this.#isWaiting ? behind > limits.terminalWindowBytes / 2 : behind >= limits.terminalWindowBytes;
    if (owner !== null && isFull) owner.patience ??= setTimeout(() => this.#cut(owner), limits.slowDrainMs);
    if (owner !== null && !isFull && owner.patience !== null) {
      clearTimeout(owner.patience);
      owner.patience = null;
    }
    if (isFull === this.#isWaiting) return;
    this.#isWaiting = isFull;
    this.#host.send(isFull ? kinds.wait : kinds.go);
  }
}
