/**
 * What is on a terminal, kept without a page: parsed by xterm's headless core, and written down again as the shortest
 * output that draws it (P-02). It answers no query: what a program asks its terminal is answered by the page that owns
 * it, and by nobody when there is none. Lives in the host process only. Used by `host.ts`.
 */
import { createRequire } from 'node:module';
import type { Terminal as Core } from '@xterm/headless';
import { limits } from '#protocol/limits.ts';
import type { TerminalSize } from '#protocol/methods/terminal.ts';
import { isPlain, lastOf } from './flood.ts';

// Both are bundles of another module system, whose names a static import does not see.
const load = createRequire(import.meta.url);
const { Terminal } = load('@xterm/headless') as { Terminal: typeof Core };
/** Its own types bring those of the browser with them, which the bridge must not have. */
type Serializer = Parameters<Core['loadAddon']>[0] & { serialize(options: { scrollback: number }): string };
const { SerializeAddon } = load('@xterm/addon-serialize') as { SerializeAddon: new () => Serializer };

/** State the serializer leaves out and a program relies on; inside the pinned version, checked by a test. */
interface Inside {
  readonly _core: {
    readonly coreService: {
      readonly isCursorHidden: boolean;
      readonly decPrivateModes: { readonly cursorStyle?: string; readonly cursorBlink?: boolean };
    };
    readonly coreMouseService: { readonly activeEncoding: string };
    readonly buffer: {
      readonly x: number;
      readonly y: number;
      readonly scrollTop: number;
      readonly scrollBottom: number;
    };
  };
}
const cursorStyles: Readonly<Record<string, number>> = { block: 2, underline: 4, bar: 6 };
const mouseEncodings: Readonly<Record<string, string>> = { SGR: '\x1b[?1006h', SGR_PIXELS: '\x1b[?1016h' };

export class Screen {
  readonly #core: Core;
  readonly #serializer = new SerializeAddon();
  readonly #behind: (isBehind: boolean) => void;
  /** Came and is not parsed: while more keeps coming there is nobody to see it. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isPlain = true;
  #parsingBytes = 0;
  #resting: NodeJS.Timeout | null = null;

  /** `behind`: whether the program has to wait for the parser. */
  constructor(size: TerminalSize, titled: (title: string) => void, behind: (isBehind: boolean) => void) {
    this.#behind = behind;
    this.#core = new Terminal({
      cols: size.columns,
      rows: size.rows,
      scrollback: limits.terminalScrollback,
      allowProposedApi: true,
      logLevel: 'off',
    });
    this.#core.loadAddon(this.#serializer);
    this.#core.onTitleChange(titled);
  }

  /** Whole sequences only. */
  write(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#isPlain &&= isPlain(bytes);
    if (this.#waitingBytes > limits.terminalFloodBytes) this.#relieve();
    if (this.#resting === null) this.#resting = setTimeout(() => this.#parse(), limits.terminalRestMs).unref();
    else this.#resting.refresh();
  }

  resize({ columns, rows }: TerminalSize): void {
    this.#parse();
    this.#core.resize(columns, rows);
  }

  /** Runs `then` with the replay of everything written before this call, at most `limits.terminalReplayBytes`. */
  replay(then: (replay: Buffer) => void): void {
    this.#parse();
    this.#core.write('', () => then(this.#serialized()));
  }

  #parse(): void {
    if (this.#resting !== null) clearTimeout(this.#resting);
    this.#resting = null;
    for (const bytes of this.#waiting) {
      this.#parsingBytes += bytes.length;
      this.#core.write(bytes, () => {
        this.#parsingBytes -= bytes.length;
        if (this.#waitingBytes > limits.terminalFloodBytes) this.#relieve();
        else if (this.#parsingBytes < limits.terminalParseBytes / 2) this.#behind(false);
      });
    }
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#isPlain = true;
    if (this.#parsingBytes > limits.terminalParseBytes) this.#behind(true);
  }

  /** More waits than may. What can be spared is known once nothing is being parsed, so until then the program waits too. */
  #relieve(): void {
    if (this.#parsingBytes > 0) return this.#behind(true);
    if (this.#spared()) this.#behind(false);
    else this.#parse();
  }

  /** Whether what waits became less, by what nobody could see any more. */
  #spared(): boolean {
    const { buffer, modes, rows } = this.#core;
    if (!this.#isPlain || buffer.active.type !== 'normal' || modes.originMode || !this.#isWhole()) return false;
    const last = lastOf(this.#waiting, limits.terminalScrollback + 2 * rows);
    const bytes = last?.reduce((sum, { length }) => sum + length, 0) ?? 0;
    if (last === null || bytes > limits.terminalFloodBytes * 0.75) return false;
    this.#waiting = last;
    this.#waitingBytes = bytes;
    return true;
  }

  /** No part of the screen scrolls by itself. */
  #isWhole(): boolean {
    const { buffer } = (this.#core as unknown as Inside)._core;
    return buffer.scrollTop === 0 && buffer.scrollBottom === this.#core.rows - 1;
  }

  #serialized(): Buffer {
    const screen = this.#with(0);
    if (screen.length > limits.terminalReplayBytes)
      return Buffer.from('\x1bcThis screen is too large to be shown again.\r\n', 'utf8');
    // Guessed from the screen first: writing down what does not fit costs seconds where every letter has a colour.
    const room = ((limits.terminalReplayBytes - screen.length) * this.#core.rows) / screen.length;
    const lines = this.#core.buffer.normal.length - this.#core.rows;
    for (let scrollback = Math.min(lines, Math.ceil(room)); scrollback > 0; scrollback = Math.floor(scrollback / 2)) {
      const bytes = this.#with(scrollback);
      if (bytes.length <= limits.terminalReplayBytes) return bytes;
    }
    return screen;
  }

  #with(scrollback: number): Buffer {
    return Buffer.from(`\x1bc${this.#serializer.serialize({ scrollback })}${this.#rest()}`, 'utf8');
  }

  #rest(): string {
    const { coreService, coreMouseService, buffer } = (this.#core as unknown as Inside)._core;
    const { cursorStyle, cursorBlink } = coreService.decPrivateModes;
    const style = cursorStyles[cursorStyle ?? ''];
    const { originMode } = this.#core.modes;
    const isWhole = this.#isWhole();
    // Setting a region or the origin moves the cursor, so it is put back.
    const row = buffer.y + 1 - (originMode ? buffer.scrollTop : 0);
    return [
      isWhole ? '' : `\x1b[${buffer.scrollTop + 1};${buffer.scrollBottom + 1}r`,
      isWhole && !originMode ? '' : `\x1b[${row};${Math.min(buffer.x, this.#core.cols - 1) + 1}H`,
      coreService.isCursorHidden ? '\x1b[?25l' : '',
      style === undefined ? '' : `\x1b[${style - (cursorBlink === true ? 1 : 0)} q`,
      mouseEncodings[coreMouseService.activeEncoding] ?? '',
    ].join('');
  }
}
