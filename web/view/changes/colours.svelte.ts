/** Colours of the lines in view, made in the worker block by block; looks only, they come when they come. */
import { highlight, type Run } from '#lib/workers/highlight.ts';
import { SvelteMap } from 'svelte/reactivity';
import { isLine, type Line, type Row } from './rows.ts';

/** Rows coloured together: enough above a line for most of what it depends on. */
const blockRows = 120;
/** Longer lines are data; colouring them would hold up all others. */
const maxUnits = 1000;

const key = (line: Line): string => (line.kind === 'removed' ? `o${line.oldLine}` : `n${line.newLine}`);

export class Colours {
  #runs = new SvelteMap<string, readonly Run[]>();
  #asked = new Set<Row>();
  #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  of(line: Line): readonly Run[] | undefined {
    return this.#runs.get(key(line));
  }

  /** Sees to the rows from `first` to `last`. */
  show(rows: readonly Row[], first: number, last: number): void {
    for (let block = Math.floor(Math.max(0, first) / blockRows); block * blockRows <= last; block += 1) {
      const part = rows.slice(block * blockRows, (block + 1) * blockRows);
      if (part.every((row) => this.#asked.has(row))) continue;
      part.forEach((row) => this.#asked.add(row));
      const lines = part.filter(isLine);
      void this.#colour(lines.filter((line) => line.kind !== 'removed'));
      if (lines.some((line) => line.kind === 'removed'))
        void this.#colour(lines.filter((line) => line.kind !== 'added'));
    }
  }

  async #colour(lines: readonly Line[]): Promise<void> {
    const text = lines.map((line) => (line.text.length > maxUnits ? '' : line.text)).join('\n');
    const coloured = await highlight(text, this.#name);
    lines.forEach((line, index) => {
      const runs = coloured?.[index];
      // An unchanged line among removed ones has its colours from the new side.
      if (runs !== undefined && (line.kind === 'removed' || !this.#runs.has(key(line))))
        this.#runs.set(key(line), runs);
    });
  }
}
