/** The colours of a file, part by part where somebody looks (U-41). Looks only: they come when the worker is done. */
import { paintPart, type Run } from '#lib/workers/highlight.ts';
import { languageOf, type Language } from '#lib/workers/languages.ts';
import type { File } from './file.svelte.ts';

/** Lines of one part: a few screens, some milliseconds of work. */
const partLines = 200;
/** Parts painted on the way from the nearest painted one; from further away the grammar begins anew just before. */
const mostBetween = 20;
let made = 0;

export class Colours {
  /** Rises when a part was painted. */
  version = $state(0);
  #parts = new Map<number, readonly (readonly Run[])[]>();
  #file: File;
  #language: Language | null;
  #document = '';
  #edition = -1;
  #wanted: readonly [number, number] = [0, 0];
  #painting = false;

  constructor(file: File) {
    this.#file = file;
    this.#language = languageOf(file.path);
  }

  of(place: number): readonly Run[] | undefined {
    return this.#edition === this.#file.edition
      ? this.#parts.get(Math.floor(place / partLines))?.[place % partLines]
      : undefined;
  }

  /** Paints what is between two places and was read; what is wanted last is painted first. */
  async need(first: number, last: number): Promise<void> {
    if (this.#language === null) return;
    if (this.#edition !== this.#file.edition) {
      this.#edition = this.#file.edition;
      this.#parts = new Map();
      this.#document = `${(made += 1)}`;
    }
    this.#wanted = [Math.floor(first / partLines), Math.floor(last / partLines)];
    if (this.#painting) return;
    this.#painting = true;
    for (let part = this.#next(); part !== null; part = this.#next()) await this.#paint(part, this.#language);
    this.#painting = false;
  }

  /** The part to paint now, or null where all is painted that can be. */
  #next(): number | null {
    const [first, last] = this.#wanted;
    for (let part = first; part <= last; part += 1) {
      if (this.#parts.has(part) || this.#textOf(part) === null) continue;
      let start = part;
      while (start > 0 && part - start < mostBetween && !this.#parts.has(start - 1) && this.#textOf(start - 1) !== null)
        start -= 1;
      // Too far from anything painted: one part before is enough to get most of it right.
      return start === 0 || this.#parts.has(start - 1) || part - start < mostBetween ? start : part - 1;
    }
    return null;
  }

  #textOf(part: number): string | null {
    return this.#file.range(part * partLines, (part + 1) * partLines)?.join('\n') ?? null;
  }

  async #paint(part: number, language: Language): Promise<void> {
    const [document, text] = [this.#document, this.#textOf(part)];
    if (text === null) return;
    const lines = await paintPart(document, part, text, language);
    if (document !== this.#document) return;
    this.#parts.set(part, lines ?? []);
    this.version += 1;
  }
}
