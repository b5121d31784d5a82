/** A terminal that is looked at: its screen, its socket, and the queue between them; one for each pane. */
import type { TerminalServerFrame, TerminalSize } from '#protocol/methods/terminal.ts';
import { encodeBinary, encodeInput, TerminalWire, type TerminalSocket, type WireState } from '#lib/link/terminal.ts';
import type { Link } from '#lib/markdown/link.ts';
import type { App } from '#lib/state/app.svelte.ts';
import { onMac } from '#lib/state/shortcuts.ts';
import { text } from '#lib/text/en.ts';
import { words } from '#lib/text/terminal.en.ts';
import { DrawQueue } from './draw.ts';
import { rowSends, terminalAct, withSticky, type RowKey } from './keys.ts';
import { asks, pasted, type Pasted } from './paste.ts';
import type { Screen } from './screen.ts';
import { onTheme } from './theme.ts';

type Ended = Omit<Extract<TerminalServerFrame, { type: 'ended' }>, 'type'>;
interface Leave {
  /** The operator wants out of the terminal. */
  readonly leave: () => void;
  /** It ended, or the list knows something newer. */
  readonly gone: () => void;
}
export const fontSizes = { min: 9, max: 24 } as const;
/** Reports of the focus, which a mode that the replay sets again would send on its own. */
const isFocusReport = (data: string): boolean => data === '\x1b[I' || data === '\x1b[O';

const nextFrame = (then: () => void): void => {
  // A page that is not seen draws no frames, and would never acknowledge anything.
  if (document.visibilityState === 'visible') requestAnimationFrame(() => setTimeout(then));
  else setTimeout(then);
};

export class Pane {
  state = $state<WireState>('connecting');
  owner = $state(true);
  ended = $state.raw<Ended | null>(null);
  /** Text the program wants on the clipboard. */
  offered = $state.raw<string | null>(null);
  /** An address that was pressed. */
  link = $state.raw<Link | null>(null);
  /** Lines that are asked about before they are pasted. */
  asked = $state.raw<Pasted | null>(null);
  /** The field to paste into by hand is open. */
  pasting = $state(false);
  /** Something was typed and could not be sent. */
  missed = $state(false);
  finding = $state(false);
  found = $state.raw({ at: 0, count: 0 });
  ctrl = $state(false);
  alt = $state(false);
  readonly #app: App;
  readonly #terminalId: string;
  readonly #leave: Leave;
  #screen: Screen | null = null;
  #wire: TerminalWire | null = null;
  #queue: DrawQueue | null = null;
  /** Announced and not here yet. */
  #announced: Extract<TerminalServerFrame, { type: 'replay' }> | null = null;
  #isReplaying = false;
  #wantsFocus = false;
  #isDisposed = false;
  #mac = onMac();

  constructor(app: App, terminalId: string, leave: Leave) {
    this.#app = app;
    this.#terminalId = terminalId;
    this.#leave = leave;
  }

  /** Makes the screen in `host` and connects. Answers how to take it all down. */
  mount(host: HTMLElement, label: string): () => void {
    const { settings } = this.#app;
    const fitted = new ResizeObserver(() => requestAnimationFrame(() => this.#fit()));
    const stopTheme = onTheme(() => this.#screen?.restyle());
    const paste = (event: ClipboardEvent): void => {
      event.preventDefault();
      event.stopImmediatePropagation();
      this.paste(event.clipboardData?.getData('text/plain') ?? '');
    };
    host.addEventListener('paste', paste, true);
    void import('./screen.ts').then(({ Screen }) => {
      if (this.#isDisposed) return;
      this.#screen = new Screen(host, {
        fontSize: settings.terminalFont,
        reader: settings.terminalReader,
        label,
        answers: () => this.#answers(),
        input: (data, binary) => this.#input(data, binary),
        offer: (offered) => (this.offered = offered),
        link: (link) => (this.link = link),
        key: (event) => this.#key(event),
        found: (at, count) => (this.found = { at, count }),
      });
      this.#connect(this.#screen);
      if (this.#wantsFocus) this.focus();
      fitted.observe(host);
    });
    return () => {
      this.#isDisposed = true;
      fitted.disconnect();
      stopTheme();
      host.removeEventListener('paste', paste, true);
      this.#wire?.close();
      this.#screen?.dispose();
      this.#screen = null;
    };
  }

  focus(): void {
    this.#wantsFocus = this.#screen === null;
    this.#screen?.terminal.focus();
  }
  /** The page is connected again: not only when the wait is over. */
  wake(): void {
    this.#wire?.wake();
  }
  own(): void {
    const size = this.#screen?.measured();
    if (size !== undefined) this.#wire?.resize(size);
    this.#wire?.own();
  }
  set(fontSize: number, reader: boolean): void {
    this.#screen?.set(fontSize, reader);
    this.#fit();
  }

  paste(raw: string): void {
    const paste = pasted(raw);
    if (paste.text === '') return;
    if (asks(paste, this.#screen?.terminal.modes.bracketedPasteMode === true)) this.asked = paste;
    else this.pasteNow(paste);
  }
  pasteNow(paste: Pasted): void {
    this.asked = null;
    this.#screen?.terminal.paste(paste.text);
  }
  press(key: RowKey): void {
    if (key === 'ctrl') this.ctrl = !this.ctrl;
    if (key === 'alt') this.alt = !this.alt;
    const sends = rowSends(key, this.#screen?.terminal.modes.applicationCursorKeysMode === true, this);
    if (sends === null) return;
    this.ctrl = false;
    this.alt = false;
    this.#send(encodeInput(sends));
  }

  async copy(): Promise<void> {
    const selected = this.#screen?.terminal.getSelection() ?? '';
    if (selected !== '') await this.#toClipboard(selected);
  }
  async takeOffer(): Promise<void> {
    const { offered } = this;
    this.offered = null;
    if (offered !== null) await this.#toClipboard(offered);
    this.focus();
  }
  selectAll(): void {
    this.#screen?.terminal.selectAll();
  }
  clear(): void {
    this.#screen?.terminal.clear();
  }
  find(wanted: string, forward: boolean, incremental = false): void {
    this.#screen?.find(wanted, forward, incremental);
  }
  stopFinding(): void {
    this.finding = false;
    this.#screen?.unmark();
    this.focus();
  }

  #connect(screen: Screen): void {
    const queue = new DrawQueue({
      write: (bytes, drawn) => screen.write(bytes, drawn),
      ack: (bytes) => this.#wire?.ack(bytes),
      yield: nextFrame,
    });
    this.#queue = queue;
    const { base } = this.#app.session.identity?.session ?? { base: '/' };
    const path = `terminal/${this.#terminalId}`;
    const wire = new TerminalWire(
      {
        ticket: async () => {
          const answer = await this.#app.call('ticket.create', { path });
          return answer.ok ? answer.value.ticket : null;
        },
        connect: () => new WebSocket(`${location.origin.replace(/^http/, 'ws')}${base}${path}`) as TerminalSocket,
        size: () => this.#fitted(screen),
        timer: (ms, then) => {
          const handle = setTimeout(then, ms);
          return () => clearTimeout(handle);
        },
      },
      {
        state: (state) => this.#stateChanged(state),
        frame: (frame) => this.#frame(screen, frame),
        bytes: (bytes, isReplay) => {
          if (isReplay) this.#replay(screen, bytes);
          else queue.push(bytes);
        },
      },
    );
    this.#wire = wire;
    wire.wake();
  }

  #stateChanged(state: WireState): void {
    this.state = state;
    if (state === 'live') this.missed = false;
    if (state === 'gone') this.#leave.gone();
  }

  #frame(screen: Screen, frame: TerminalServerFrame): void {
    if (frame.type === 'replay') this.#announced = frame;
    if (frame.type === 'ended') this.#queue?.step(() => (this.ended = { code: frame.code, signal: frame.signal }));
    if (frame.type !== 'size') return;
    this.#queue?.step(() => {
      this.owner = frame.owner;
      if (frame.owner) this.#fit();
      else screen.resize(frame.size);
    });
  }

  #replay(screen: Screen, bytes: Uint8Array): void {
    const announced = this.#announced;
    this.#announced = null;
    if (announced === null) return;
    this.owner = announced.owner;
    this.#queue?.replay(
      bytes,
      () => {
        this.#isReplaying = true;
        screen.reset();
        screen.resize(announced.size);
      },
      () => {
        this.#isReplaying = false;
        screen.terminal.scrollToBottom();
        this.#fit();
      },
    );
  }

  /** Behind what is still to be drawn: the same bytes mean something else on another size. */
  #fit(): void {
    const screen = this.#screen;
    if (screen === null) return;
    this.#queue?.step(() => {
      const size = this.#fitted(screen);
      if (this.owner && this.state !== 'waiting') screen.resize(size);
      this.#wire?.resize(size);
    });
  }
  /** A panel that is not shown has no size; then the one it had holds. */
  #fitted(screen: Screen): TerminalSize {
    const isSeen = (screen.terminal.element?.parentElement?.clientWidth ?? 0) > 0;
    return isSeen ? screen.measured() : { columns: screen.terminal.cols, rows: screen.terminal.rows };
  }

  #answers(): boolean {
    const hasKeyboard = document.hasFocus() && document.activeElement === this.#screen?.terminal.textarea;
    return hasKeyboard && this.owner && this.state === 'live' && !this.#isReplaying;
  }

  #input(data: string, binary: boolean): void {
    if (this.#isReplaying && isFocusReport(data)) return;
    if (binary) return this.#send(encodeBinary(data));
    const sent = this.ctrl || this.alt ? withSticky(data, this) : data;
    this.ctrl = false;
    this.alt = false;
    this.#send(encodeInput(sent));
  }
  #send(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#wire?.input(bytes) !== true && this.state !== 'gone') this.missed = true;
  }

  #key(event: KeyboardEvent): boolean {
    const act = terminalAct(event, this.#mac);
    if (act === null) return false;
    // The browser pastes by itself, and only it may.
    if (act === 'paste') return true;
    event.preventDefault();
    event.stopPropagation();
    if (act === 'copy') void this.copy();
    if (act === 'find') this.finding = true;
    if (act === 'leave') this.#leave.leave();
    return true;
  }

  async #toClipboard(copied: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(copied);
      this.#app.toasts.show(words.copied);
    } catch {
      this.#app.toasts.show(text.common.copyFailed, 'stop');
    }
  }
}
