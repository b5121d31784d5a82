/** One file as the viewer reads it: part by part, guarded by its revision (F-03). */
import type { FileRead } from '#protocol/methods/workspace.ts';
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';

export type Encoding = 'utf-16le' | 'utf-16be' | 'windows-1252';
export const encodings: readonly Encoding[] = ['utf-16le', 'utf-16be', 'windows-1252'];
type TextContent = Extract<FileRead['content'], { kind: 'text' }>;

export class File {
  /** First part; its `content` says what kind of file it is. */
  read = $state.raw<FileRead | null>(null);
  /** Of a text file, all parts read so far. */
  lines = $state.raw<readonly string[]>([]);
  text = $state('');
  nextOffset = $state<number | null>(null);
  loading = $state(true);
  failure = $state.raw<Failure | null>(null);
  revealed = $state(false);
  #encoding: Encoding | null = null;
  #app: App;
  readonly workspaceId: string;
  readonly path: string;

  constructor(app: App, workspaceId: string, path: string) {
    this.#app = app;
    this.workspaceId = workspaceId;
    this.path = path;
    void this.reload();
  }

  async reload(encoding: Encoding | null = null): Promise<void> {
    this.#encoding = encoding;
    this.loading = true;
    const { workspaceId, path } = this;
    const outcome = await this.#app.call('files.read', {
      workspaceId,
      path,
      ...(encoding === null ? {} : { encoding }),
    });
    this.loading = false;
    this.failure = outcome.ok ? null : outcome.failure;
    if (outcome.ok) this.#begin(outcome.value);
  }

  async more(): Promise<void> {
    if (this.nextOffset === null || this.read === null || this.loading) return;
    this.loading = true;
    const outcome = await this.#app.call('files.read', {
      workspaceId: this.workspaceId,
      path: this.path,
      offset: this.nextOffset,
      revision: this.read.revision,
      ...(this.#encoding === null ? {} : { encoding: this.#encoding }),
    });
    this.loading = false;
    if (!outcome.ok) {
      this.failure = outcome.failure;
      return;
    }
    if (outcome.value.content.kind === 'text') this.#append(outcome.value.content);
  }

  /** Reads on until `line` is in, within a bound; then the viewer can show it. */
  async until(line: number): Promise<void> {
    for (let parts = 0; parts < 16 && this.lines.length < line && this.nextOffset !== null; parts += 1)
      await this.more();
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

  #begin(read: FileRead): void {
    this.read = read;
    this.text = '';
    this.lines = [];
    this.nextOffset = null;
    if (read.content.kind === 'text') this.#append(read.content);
  }

  #append(content: TextContent): void {
    this.text += content.text;
    const lines = this.text.split(/\r\n|\r|\n/);
    // A file that ends with a line end has no line after it.
    if (lines.at(-1) === '' && lines.length > 1) lines.pop();
    this.lines = lines;
    this.nextOffset = content.nextOffset;
  }
}
