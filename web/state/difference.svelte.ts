/** The difference of one file: loaded, looked at again when the list was, unfolded line by line. */
import type { ChangeSource, FileDiff } from '#protocol/methods/git.ts';
import { limits } from '#protocol/limits.ts';
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';

export interface DifferencePlace {
  readonly workspaceId: string;
  readonly of: ChangeSource;
  readonly id: string;
  readonly fromId: string | null;
}
export interface SideImage {
  readonly mime: string;
  readonly dataUrl: string;
}

export class Difference {
  diff = $state.raw<FileDiff | null>(null);
  failure = $state.raw<Failure | null>(null);
  loading = $state(true);
  /** Lines of the new side fetched since, by number. */
  unfolded = $state.raw<ReadonlyMap<number, string>>(new Map());
  images = $state.raw<{ readonly old: SideImage | null; readonly new: SideImage | null }>({ old: null, new: null });
  /** What could not be fetched of it. */
  problem = $state<string | null>(null);
  #app: App;
  #large = false;
  #asked = 0;
  readonly place: DifferencePlace;

  constructor(app: App, place: DifferencePlace) {
    this.#app = app;
    this.place = place;
  }

  /** Also what is too large to be sent unasked. */
  loadLarge(): Promise<void> {
    this.#large = true;
    return this.load();
  }

  /** Asks again; what is shown is replaced only when it is another difference. */
  async load(): Promise<void> {
    const asked = (this.#asked += 1);
    this.loading = true;
    const { workspaceId, of, id, fromId } = this.place;
    const outcome = await this.#app.call('git.diff', {
      workspaceId,
      of,
      id,
      ...(fromId === null ? {} : { fromId }),
      ...(this.#large ? { large: true } : {}),
    });
    if (asked !== this.#asked) return;
    this.loading = false;
    this.failure = outcome.ok ? null : outcome.failure;
    if (!outcome.ok) return;
    const { diff } = this;
    if (diff?.revision === outcome.value.revision && diff.content.kind === outcome.value.content.kind) return;
    this.unfolded = new Map();
    this.images = { old: null, new: null };
    this.problem = null;
    this.diff = outcome.value;
    if (outcome.value.content.kind === 'image') await this.#loadImages(outcome.value.content);
  }

  /** Fetches unchanged lines from `firstLine` of the new side on. */
  async unfold(firstLine: number, lines: number): Promise<void> {
    const { diff } = this;
    const content = diff?.content;
    if (content?.kind !== 'text') return;
    const unfolded = new Map(this.unfolded);
    for (let at = firstLine; at < firstLine + lines; at += limits.readLines) {
      const part = await this.#side('new', at, Math.min(limits.readLines, firstLine + lines - at));
      if (this.diff !== diff) return;
      if (part?.kind !== 'text') break;
      part.lines.forEach((line, index) =>
        unfolded.set(part.firstLine + index, content.eol.new === 'crlf' ? line.replace(/\r$/, '') : line),
      );
    }
    this.unfolded = unfolded;
  }

  /** Lines of a side around `line`, to find again what a comment was about. */
  async linesAround(side: 'old' | 'new', line: number): Promise<ReadonlyMap<number, string>> {
    const firstLine = Math.max(1, line - limits.readLines / 2);
    const part = await this.#side(side, firstLine, limits.readLines);
    if (part?.kind !== 'text') return new Map();
    return new Map(part.lines.map((text, index) => [part.firstLine + index, text.replace(/\r$/, '')]));
  }

  async #side(side: 'old' | 'new', firstLine?: number, lines?: number) {
    const { workspaceId, of, id, fromId } = this.place;
    const outcome = await this.#app.call('git.side', {
      workspaceId,
      of,
      id: side === 'old' && fromId !== null ? fromId : id,
      side,
      ...(firstLine === undefined ? {} : { firstLine }),
      ...(lines === undefined ? {} : { lines }),
    });
    this.problem = outcome.ok ? null : outcome.failure.message;
    return outcome.ok ? outcome.value : null;
  }

  async #loadImages(content: { readonly oldBytes: number | null; readonly newBytes: number | null }): Promise<void> {
    const { diff } = this;
    const [old, now] = await Promise.all([
      content.oldBytes === null ? null : this.#side('old'),
      content.newBytes === null ? null : this.#side('new'),
    ]);
    if (this.diff !== diff) return;
    this.images = { old: old?.kind === 'image' ? old : null, new: now?.kind === 'image' ? now : null };
  }
}
