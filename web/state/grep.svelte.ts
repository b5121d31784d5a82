/** One search in contents as the panel shows it: lines come in while it goes on, grouped by their files (F-06). */
import type { Answer, Params } from '#protocol/methods.ts';
import type { FoundLine } from '#protocol/methods/workspace.ts';
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';

export type GrepRow =
  | { readonly kind: 'file'; readonly id: string; readonly path: string; readonly lines: number }
  | { readonly kind: 'line'; readonly id: string; readonly line: FoundLine };
type Progress = Pick<Answer<'files.grep'>, 'files' | 'skipped' | 'stopped'>;

export class Grep {
  query = $state('');
  regexp = $state(false);
  matchCase = $state(false);
  word = $state(false);
  include = $state('');
  lines = $state.raw<readonly FoundLine[]>([]);
  progress = $state.raw<Progress>({ files: 0, skipped: 0, stopped: null });
  state = $state<'none' | 'running' | 'cancelled' | 'done'>('none');
  failure = $state.raw<Failure | null>(null);
  /** Place in `rows` of the line that is looked at, −1 before any. */
  at = $state(-1);
  readonly rows: readonly GrepRow[] = $derived.by(() => grouped(this.lines));
  readonly fileCount = $derived(this.rows.length - this.lines.length);
  #app: App;
  #workspaceId: string;
  #running: AbortController | null = null;

  constructor(app: App, workspaceId: string) {
    this.#app = app;
    this.#workspaceId = workspaceId;
  }

  async start(): Promise<void> {
    this.#running?.abort();
    this.lines = [];
    this.at = -1;
    this.failure = null;
    this.progress = { files: 0, skipped: 0, stopped: null };
    if (this.query === '') {
      this.state = 'none';
      return;
    }
    const running = new AbortController();
    this.#running = running;
    this.state = 'running';
    const { query, regexp, matchCase, word, include } = this;
    const asked: Params<'files.grep'> = { workspaceId: this.#workspaceId, query, regexp, matchCase, word, include };
    for (let cursor: string | null | undefined = undefined; cursor !== null;) {
      const params: Params<'files.grep'> = cursor === undefined ? asked : { ...asked, cursor };
      const outcome = await this.#app.call('files.grep', params, { signal: running.signal });
      if (running.signal.aborted) return;
      if (!outcome.ok) {
        this.failure = outcome.failure;
        break;
      }
      const { lines, files, skipped, stopped } = outcome.value;
      if (lines.length > 0) this.lines = [...this.lines, ...lines];
      this.progress = { files, skipped, stopped };
      cursor = outcome.value.cursor;
    }
    this.state = 'done';
  }

  stop(): void {
    this.#running?.abort();
    if (this.state === 'running') this.state = 'cancelled';
  }

  /** The next line in that direction; round at the ends. */
  move(step: number): FoundLine | null {
    const { rows } = this;
    if (this.lines.length === 0) return null;
    let at = this.at;
    do at = (at + step + rows.length) % rows.length;
    while (rows[at]?.kind !== 'line');
    this.at = at;
    const row = rows[at];
    return row?.kind === 'line' ? row.line : null;
  }

  /** Which of the lines the place is, from 1. */
  get number(): number {
    return this.rows.slice(0, this.at + 1).filter(({ kind }) => kind === 'line').length;
  }
}

const grouped = (lines: readonly FoundLine[]): GrepRow[] => {
  const byFile = new Map<string, FoundLine[]>();
  for (const line of lines) {
    const known = byFile.get(line.path);
    if (known === undefined) byFile.set(line.path, [line]);
    else known.push(line);
  }
  return [...byFile].flatMap(([path, found]): GrepRow[] => [
    { kind: 'file', id: path, path, lines: found.length },
    ...found.map((line): GrepRow => ({ kind: 'line', id: `${path}\0${line.line}`, line })),
  ]);
};
