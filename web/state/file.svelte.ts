/**
 * One file as the viewer reads it (F-03): any part of it, when somebody looks there, guarded by its revision; and whether
 * it is still so on disk (F-07).
 */
import type { FileRead } from '#protocol/methods/workspace.ts';
import type { App } from './app.svelte.ts';
import type { Failure, Outcome } from './contract.ts';

export type Encoding = 'utf-16le' | 'utf-16be' | 'windows-1252';
export const encodings: readonly Encoding[] = ['utf-16le', 'utf-16be', 'windows-1252'];
type TextContent = Extract<FileRead['content'], { kind: 'text' }>;

export class File {
  /** First part; its `content` says what kind of file it is. */
  read = $state.raw<FileRead | null>(null);
  /** Lines there are to look at: all, or as many as are known where the file is too large to count. */
  count = $state(0);
  /** Rises when lines came in; `line` tells more then. */
  version = $state(0);
  /** Rises when the text is another. */
  edition = $state(0);
  loading = $state(true);
  failure = $state.raw<Failure | null>(null);
  revealed = $state(false);
  /** On disk it is no longer what is shown. */
  changed = $state<'changed' | 'gone' | null>(null);
  /** Lines picked for the message, from 1. */
  picked = $state.raw<{ readonly from: number; readonly to: number } | null>(null);
  #lines: (string | undefined)[] = [];
  /** Where it goes on behind the known lines of a file that was not counted. */
  #nextOffset: number | null = null;
  #encoding: Encoding | null = null;
  #wanted: readonly [number, number] = [0, 0];
  #app: App;
  readonly workspaceId: string;
  readonly path: string;

  constructor(app: App, workspaceId: string, path: string) {
    this.#app = app;
    this.workspaceId = workspaceId;
    this.path = path;
    void this.reload();
  }

  /** Undefined where it has not been read yet. */
  line(place: number): string | undefined {
    return this.#lines[place];
  }
  /** The lines of a range when all were read, else null. */
  range(from: number, to: number): readonly string[] | null {
    const lines: string[] = [];
    for (let place = from; place < Math.min(to, this.count); place += 1) {
      const line = this.#lines[place];
      if (line === undefined) return null;
      lines.push(line);
    }
    return lines;
  }

  async reload(encoding: Encoding | null = this.#encoding): Promise<void> {
    this.#encoding = encoding;
    this.loading = true;
    const outcome = await this.#read({});
    this.loading = false;
    this.failure = outcome.ok ? null : outcome.failure;
    if (outcome.ok) {
      this.revealed = false;
      this.#begin(outcome.value);
      await this.need(...this.#wanted);
    }
  }

  /** Reads what is missing between two places; what is wanted last is read first. */
  async need(first: number, last: number): Promise<void> {
    this.#wanted = [first, last];
    while (!this.loading && this.read !== null && this.changed === null) {
      const [from, to] = this.#wanted;
      const params = this.#missing(from, to);
      if (params === null) return;
      this.loading = true;
      const outcome = await this.#read({ ...params, revision: this.read.revision });
      this.loading = false;
      if (!outcome.ok) {
        if (outcome.failure.code === 'file_changed') this.changed = 'changed';
        else this.failure = outcome.failure;
        return;
      }
      if (outcome.value.content.kind !== 'text') return;
      this.#take(outcome.value.content);
      // A line that the bridge does not find is not asked for again.
      if ('line' in params) this.#lines[params.line - 1] ??= '';
    }
  }

  /** One sight of a secret file: an action with a receipt (F-04). */
  async reveal(): Promise<void> {
    const outcome = await this.#app.call('files.reveal', { workspaceId: this.workspaceId, path: this.path });
    if (!outcome.ok) {
      this.failure = outcome.failure;
      return;
    }
    this.failure = null;
    this.revealed = true;
    this.#begin(outcome.value);
  }

  /** Something changed near it: was it this file? */
  async check(): Promise<void> {
    const { workspaceId, path, read } = this;
    if (read === null) return;
    const outcome = await this.#app.call('files.stat', { workspaceId, path });
    if (this.read !== read) return;
    if (outcome.ok) this.changed = outcome.value.revision === read.revision ? null : 'changed';
    else if (outcome.failure.code === 'not_found') this.changed = 'gone';
  }

  #read(more: { line?: number; offset?: number; revision?: string }): Promise<Outcome<FileRead>> {
    return this.#app.call('files.read', {
      workspaceId: this.workspaceId,
      path: this.path,
      ...more,
      ...(this.#encoding === null ? {} : { encoding: this.#encoding }),
    });
  }

  #begin(read: FileRead): void {
    this.read = read;
    this.changed = null;
    this.edition += 1;
    this.#lines = [];
    this.#nextOffset = null;
    this.count = 0;
    if (read.content.kind === 'text') this.#take(read.content);
  }

  /** What to ask for, or null where all is there. */
  #missing(first: number, last: number): { line: number } | { offset: number } | null {
    for (let place = Math.max(0, first); place <= Math.min(last, this.count - 1); place += 1)
      if (this.#lines[place] === undefined) return { line: place + 1 };
    return last >= this.count - 1 && this.#nextOffset !== null ? { offset: this.#nextOffset } : null;
  }

  #take(content: TextContent): void {
    const lines = content.text.split('\n');
    // What ends with a line end has no line after it; what was cut inside of a line begins the next part with its rest.
    if (lines.at(-1) === '') lines.pop();
    for (const [at, line] of lines.entries()) this.#lines[content.firstLine - 1 + at] ??= withoutReturn(line);
    const counted = content.totalLines !== null;
    this.count = content.totalLines ?? Math.max(this.count, content.firstLine - 1 + lines.length);
    this.#nextOffset = counted ? null : content.nextOffset;
    // A revealed file is seen once and not read on: its first part is what there is.
    if (this.revealed) this.count = lines.length;
    this.version += 1;
  }
}

const withoutReturn = (line: string): string => (line.endsWith('\r') ? line.slice(0, -1) : line);
