/** The room on real processes, with a ledger of two maps, and a page that draws with the parser the app draws with. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { createRequire, enableCompileCache } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Terminal as Core } from '@xterm/headless';
import type { TerminalServerFrame, TerminalSize } from '#protocol/methods/terminal.ts';
import { closeInherited } from '../../bridge/agents/descriptors.ts';
import type { Root } from '../../bridge/files/contract.ts';
import { openRoot } from '../../bridge/files/root.ts';
import type { Tx } from '../../bridge/ledger/contract.ts';
import type { TerminalAttachment, Terminals } from '../../bridge/terminals/contract.ts';
import { createTerminals, type TerminalsParts } from '../../bridge/terminals/terminals.ts';

const { Terminal } = createRequire(import.meta.url)('@xterm/headless') as { Terminal: typeof Core };
// Hosts keep their compiled code where this process keeps its own, as behind a bridge: a third of the time.
enableCompileCache(join(tmpdir(), `terminals-code-${process.getuid?.() ?? 0}`));
export const size: TerminalSize = { columns: 80, rows: 24 };
export const workspaceId = randomUUID();

export const newCore = ({ columns, rows }: TerminalSize = size): Core =>
  new Terminal({ cols: columns, rows, scrollback: 5000, allowProposedApi: true, logLevel: 'off' });
export const drawn = (core: Core, bytes: Uint8Array | string): Promise<void> =>
  new Promise((resolve) => core.write(bytes, resolve));

/** Everything on a terminal: text of every line with its wrapping, where the cursor is, which screen, which modes. */
export const stateOf = (core: Core): unknown => {
  const lines = (buffer: Core['buffer']['active']): string[] =>
    Array.from({ length: buffer.length }, (_, index) => {
      const line = buffer.getLine(index);
      return `${line?.isWrapped === true ? '+' : ' '}${line?.translateToString(true) ?? ''}`;
    });
  const { active, normal } = core.buffer;
  return {
    type: active.type,
    normal: lines(normal),
    active: lines(active),
    cursor: [active.cursorX, active.cursorY],
    modes: core.modes,
  };
};

export class Page {
  readonly core: Core;
  readonly frames: TerminalServerFrame[] = [];
  closed: string | null = null;
  attachment: TerminalAttachment | null = null;
  /** Live output, in bytes. */
  bytes = 0;
  /** What the app's terminal would answer to queries. */
  answers = '';
  isAcking = true;
  #isReplay = false;
  #pending = 0;

  constructor(at: TerminalSize = size) {
    this.core = newCore(at);
    this.core.onData((text) => (this.answers += text));
  }

  async attach(terminals: Terminals, terminalId: string, at: TerminalSize = size): Promise<this> {
    this.attachment = await terminals.attach(terminalId, at, {
      frame: (frame) => {
        this.frames.push(frame);
        if (frame.type === 'replay') this.#isReplay = true;
        if (frame.type === 'replay' || frame.type === 'size') this.core.resize(frame.size.columns, frame.size.rows);
      },
      bytes: (bytes) => {
        const isReplay = this.#isReplay;
        this.#isReplay = false;
        if (!isReplay) this.bytes += bytes.length;
        const upTo = this.bytes;
        this.#pending += 1;
        this.core.write(bytes, () => {
          this.#pending -= 1;
          if (this.isAcking && !isReplay) this.attachment?.ack(upTo);
        });
      },
      close: (reason) => (this.closed = reason),
    });
    return this;
  }

  type(text: string): void {
    this.attachment?.input(Buffer.from(text, 'utf8'));
  }

  text(): string {
    const { active } = this.core.buffer;
    return Array.from({ length: active.length }, (_, index) => active.getLine(index)?.translateToString(true) ?? '')
      .join('\n')
      .trimEnd();
  }

  get isDrawn(): boolean {
    return this.#pending === 0;
  }

  async until(look: (page: this) => boolean): Promise<void> {
    while (!look(this)) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  /** Until nothing more comes for a while. */
  async still(): Promise<void> {
    for (let before = -1; before !== this.bytes || !this.isDrawn;) {
      before = this.bytes;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }
}

export class Ground {
  directory = '';
  root!: Root;
  terminals!: Terminals;
  readonly meta = new Map<string, string>();
  readonly processes = new Map<string, { pid: number; startTime: string; marker: string }>();
  readonly errors: unknown[] = [];

  async start(change: Partial<TerminalsParts> = {}): Promise<this> {
    closeInherited([]); // as the bridge does before its first child
    this.directory = await realpath(await mkdtemp(join(tmpdir(), 'terminals-')));
    this.root = openRoot({ workspaceId, path: this.directory, privateDirectories: [] });
    this.terminals = this.room(change);
    return this;
  }

  /** Another bridge on the same record. */
  room(change: Partial<TerminalsParts> = {}): Terminals {
    const tx = {
      setMeta: (name: string, value: string) => void this.meta.set(name, value),
      putProcess: (row: { pid: number; startTime: string; marker: string }) => void this.processes.set(row.marker, row),
      removeProcess: (marker: string) => void this.processes.delete(marker),
    } as unknown as Tx;
    return createTerminals({
      ledger: {
        read: { meta: (name) => this.meta.get(name) ?? null },
        commit: (work) => Promise.resolve(work(tx)),
      },
      root: () => this.root,
      nodePath: process.execPath,
      env: { PATH: process.env['PATH'], HOME: this.directory, SHELL: '/bin/bash', LANG: 'C.UTF-8' },
      uuid: randomUUID,
      marker: () => `test-${randomUUID()}`,
      now: Date.now,
      log: (_, error) => void this.errors.push(error),
      changed: () => undefined,
      ...change,
    });
  }

  async open(cwd?: string): Promise<string> {
    const where = cwd === undefined ? {} : { cwd };
    return (await this.terminals.open({ workspaceId, size, ...where })).terminalId;
  }

  /** A new terminal with one page. */
  async page(cwd?: string): Promise<{ terminalId: string; page: Page }> {
    const terminalId = await this.open(cwd);
    const page = await new Page().attach(this.terminals, terminalId);
    await page.until(() => /[$#] $/.test(`${page.text()} `));
    return { terminalId, page };
  }

  async end(): Promise<void> {
    await this.terminals.closeAll();
    this.root.close();
    await rm(this.directory, { recursive: true, force: true });
  }
}
