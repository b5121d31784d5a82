/** The terminals of one workspace as the bridge lists them, and the verbs for them; the sockets are the panes' own. */
import { limits } from '#protocol/limits.ts';
import type { TerminalInfo, TerminalSize } from '#protocol/methods/terminal.ts';
import { words } from '#lib/text/terminal.en.ts';
import type { App } from './app.svelte.ts';
import type { Failure, Outcome } from './contract.ts';

/** Why one ended, in words. */
export const endedWords = ({ by, code, signal }: NonNullable<TerminalInfo['ended']>): string => {
  if (by === 'bridge') return words.ended.bridge;
  if (by === 'operator') return words.ended.operator;
  if (signal !== null) return words.ended.signal(signal);
  return code === null ? words.ended.unknown : words.ended.code(code);
};

/** What a tab is called: its title, else the program and the folder. */
export const terminalName = ({ title, program, cwd }: TerminalInfo): string => {
  if (title !== '') return title;
  const shell = program.slice(program.lastIndexOf('/') + 1);
  const folder = cwd.slice(cwd.lastIndexOf('/') + 1);
  return folder === '' || folder === '.' ? shell : `${shell} · ${folder}`;
};

export class Terminals {
  readonly #app: App;
  readonly #workspaceId: string;
  #all = $state.raw<readonly TerminalInfo[] | null>(null);
  absent = $state.raw<string | null>(null);
  failure = $state.raw<Failure | null>(null);
  opening = $state(false);
  #asked = 0;

  constructor(app: App, workspaceId: string) {
    this.#app = app;
    this.#workspaceId = workspaceId;
  }

  /** In the order they began, so that a tab stays where it is when its shell ends. */
  readonly items = $derived.by(() =>
    (this.#all ?? [])
      .filter((one) => one.workspaceId === this.#workspaceId)
      .sort((a, b) => a.startedAt - b.startedAt || a.terminalId.localeCompare(b.terminalId)),
  );
  readonly loaded = $derived.by(() => this.#all !== null);
  readonly live = $derived.by(() => (this.#all ?? []).filter((one) => one.ended === null));
  /** Why no other can be opened; null when one can. */
  readonly full = $derived.by((): string | null => {
    if (this.live.length < limits.terminals) return null;
    const elsewhere = this.live.filter((one) => one.workspaceId !== this.#workspaceId).length;
    return elsewhere === 0 ? words.full : words.fullElsewhere(elsewhere);
  });

  async load(): Promise<void> {
    this.#asked += 1;
    const asked = this.#asked;
    const answer = await this.#app.call('terminal.list', {});
    // An older answer than the one that is there already says nothing.
    if (asked !== this.#asked) return;
    this.failure = answer.ok ? null : answer.failure;
    if (!answer.ok) return;
    this.#all = answer.value.terminals;
    this.absent = answer.value.absent;
  }

  /** Answers its id, or null after having said why not. */
  async open(cwd: string, size: TerminalSize): Promise<string | null> {
    if (this.opening) return null;
    this.opening = true;
    const params = { workspaceId: this.#workspaceId, size, ...(cwd === '' ? {} : { cwd }) };
    const answer = await this.#app.tell('terminal.open', params);
    this.opening = false;
    if (!answer.ok) return null;
    this.#put(answer.value);
    void this.load();
    return answer.value.terminalId;
  }

  async rename(terminalId: string, title: string): Promise<void> {
    const answer = await this.#app.tell('terminal.rename', { terminalId, title });
    if (answer.ok) this.#put(answer.value);
  }

  /** Ends a live one, takes an ended one off the list. */
  async close(terminalId: string): Promise<Outcome<unknown>> {
    const answer = await this.#app.tell('terminal.close', { terminalId });
    await this.load();
    return answer;
  }

  #put(info: TerminalInfo): void {
    const others = this.#all ?? [];
    this.#all = others.some((one) => one.terminalId === info.terminalId)
      ? others.map((one) => (one.terminalId === info.terminalId ? info : one))
      : [...others, info];
  }
}
