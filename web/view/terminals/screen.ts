/**
 * One terminal as it is drawn: xterm with what our policy, our bounds and our clipboard need around it. Loaded only when
 * a terminal is looked at. Knows nothing of sockets: bytes come in, keys go out.
 */
import '@xterm/xterm/css/xterm.css';
import '#lib/style/ansi.css';
import { FitAddon } from '@xterm/addon-fit';
import { SearchAddon } from '@xterm/addon-search';
import { Terminal, type ILink } from '@xterm/xterm';
import { limits } from '#protocol/limits.ts';
import type { TerminalSize } from '#protocol/methods/terminal.ts';
import { boundedSize } from '#lib/link/terminal.ts';
import { linkTarget, type Link } from '#lib/markdown/link.ts';
import { again, guard } from './guard.ts';
import { linksIn } from './links.ts';
import { allowStyles } from './sheets.ts';
import { marksOf, themeOf } from './theme.ts';
import { loadWebgl } from './webgl.ts';

export interface ScreenParts {
  readonly fontSize: number;
  readonly reader: boolean;
  readonly label: string;
  /** Whether a program's question may be answered now. */
  readonly answers: () => boolean;
  /** Keys, pastes, replies and mouse reports; `binary` as one byte for each unit. */
  readonly input: (data: string, binary: boolean) => void;
  readonly offer: (text: string) => void;
  readonly link: (link: Link) => void;
  /** True when the key was dealt with and is not for the shell. */
  readonly key: (event: KeyboardEvent) => boolean;
  readonly found: (at: number, count: number) => void;
}

/** The library rests between writes, never inside one: this much of the worst output takes about a tenth of a second. */
const sliceBytes = 1024;

export class Screen {
  readonly terminal: Terminal;
  readonly #fit = new FitAddon();
  readonly #search = new SearchAddon({ highlightLimit: 1000 });
  readonly #host: HTMLElement;
  readonly #parts: ScreenParts;

  constructor(host: HTMLElement, parts: ScreenParts) {
    allowStyles();
    this.#host = host;
    this.#parts = parts;
    const terminal = new Terminal({
      allowProposedApi: true,
      convertEol: false,
      cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
      fontFamily: getComputedStyle(host).fontFamily,
      fontSize: parts.fontSize,
      lineHeight: 1.2,
      logLevel: 'off',
      macOptionClickForcesSelection: true,
      minimumContrastRatio: 4.5,
      screenReaderMode: parts.reader,
      scrollback: limits.terminalScrollback,
      theme: themeOf(host),
      linkHandler: { activate: (_event, address) => this.#follow(address) },
    });
    this.terminal = terminal;
    terminal.loadAddon(this.#fit);
    terminal.loadAddon(this.#search);
    terminal.open(host);
    if (terminal.textarea !== undefined) terminal.textarea.setAttribute('aria-label', parts.label);
    this.#guard();
    terminal.onData((data) => parts.input(data, false));
    terminal.onBinary((data) => parts.input(data, true));
    terminal.attachCustomKeyEventHandler((event) => event.type !== 'keydown' || !parts.key(event));
    terminal.registerLinkProvider({ provideLinks: (line, then) => then(this.#links(line)) });
    this.#search.onDidChangeResults(({ resultIndex, resultCount }) => parts.found(resultIndex + 1, resultCount));
    loadWebgl(terminal);
  }

  /** What fits into the host right now. */
  measured(): TerminalSize {
    const fit = this.#fit.proposeDimensions();
    return boundedSize(fit?.cols ?? 0, fit?.rows ?? 0);
  }
  resize({ columns, rows }: TerminalSize): void {
    if (this.terminal.cols !== columns || this.terminal.rows !== rows) this.terminal.resize(columns, rows);
  }

  write(bytes: Uint8Array, drawn: () => void): void {
    let at = 0;
    for (; at + sliceBytes < bytes.length; at += sliceBytes) this.terminal.write(bytes.subarray(at, at + sliceBytes));
    this.terminal.write(bytes.subarray(at), drawn);
  }
  reset(): void {
    this.terminal.reset();
  }

  restyle(): void {
    this.terminal.options.theme = themeOf(this.#host);
  }
  /** Settings that may change while it is shown. */
  set(fontSize: number, reader: boolean): void {
    if (this.terminal.options.fontSize !== fontSize) this.terminal.options.fontSize = fontSize;
    if (this.terminal.options.screenReaderMode !== reader) this.terminal.options.screenReaderMode = reader;
  }

  find(text: string, forward: boolean, incremental: boolean): void {
    if (text === '') return this.unmark();
    const options = { incremental, decorations: marksOf(this.terminal.options.theme ?? {}) };
    if (forward) this.#search.findNext(text, options);
    else this.#search.findPrevious(text, { ...options, incremental: false });
  }
  unmark(): void {
    this.#search.clearDecorations();
    this.terminal.clearSelection();
  }

  dispose(): void {
    this.terminal.dispose();
  }

  #guard(): void {
    const { terminal } = this;
    guard(terminal.parser, {
      size: () => ({ columns: terminal.cols, rows: terminal.rows }),
      answers: this.#parts.answers,
      offer: this.#parts.offer,
      again: (final, count) => again(terminal, final, count),
    });
  }

  #follow(address: string): void {
    const link = linkTarget(address, ['http:', 'https:']);
    if (link !== null) this.#parts.link(link);
  }

  /** Plain addresses; a line that goes on in the next is one line. */
  #links(line: number): ILink[] {
    const { active } = this.terminal.buffer;
    const width = this.terminal.cols;
    let first = line - 1;
    while (first > 0 && line - first < 10 && active.getLine(first)?.isWrapped === true) first -= 1;
    let whole = '';
    for (let at = first; at < first + 20; at += 1) {
      const row = active.getLine(at);
      if (row === undefined || (at > first && !row.isWrapped)) break;
      whole += row.translateToString(false).padEnd(width, ' ');
    }
    return linksIn(whole).map(({ from, to, text }) => ({
      text,
      range: {
        start: { x: (from % width) + 1, y: first + 1 + Math.floor(from / width) },
        end: { x: ((to - 1) % width) + 1, y: first + 1 + Math.floor((to - 1) / width) },
      },
      activate: () => this.#follow(text),
    }));
  }
}
