/**
 * Terminal output as styled runs (case 36). Colours and weights (SGR) are kept, links (OSC 8) only to http and https,
 * everything else a terminal would obey is dropped, never shown and never acted on. Carriage returns overwrite their
 * line as a terminal would, so that a progress bar is one line.
 */
import { linkTarget } from './link.ts';

/** A palette index (0–255) or a true colour `#rrggbb`. */
export type Colour = number | string;
export interface Style {
  readonly fg?: Colour;
  readonly bg?: Colour;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly strike?: boolean;
  readonly inverse?: boolean;
  readonly href?: string;
}
export interface Run {
  readonly text: string;
  readonly style: Style;
}

const none: Style = {};
/* One escape sequence at `lastIndex`. A string sequence ends at BEL, ST or, when cut off, at the end of the text. */
const leads = /[\x1b\x90\x98\x9b\x9d\x9e\x9f]/g;
const csi = /[0-?]*[ -/]*[@-~]/y;
const stringEnd = /\x07|\x1b\\|\x9c/g;

const hex = (part: number): string => Math.min(255, Math.max(0, part)).toString(16).padStart(2, '0');

/** `38;5;n`, `38;2;r;g;b` and their colon forms; answers how many further parameters were used. */
const extended = (params: readonly number[], at: number): { colour: Colour | undefined; used: number } => {
  const mode = params[at + 1];
  if (mode === 5) {
    const index = params[at + 2];
    return { colour: index !== undefined && index <= 255 ? index : undefined, used: 2 };
  }
  if (mode !== 2) return { colour: undefined, used: 1 };
  const [r = 0, g = 0, b = 0] = params.slice(at + 2, at + 5);
  return { colour: `#${hex(r)}${hex(g)}${hex(b)}`, used: 4 };
};

const without = (style: Style, ...keys: (keyof Style)[]): Style => {
  if (!keys.some((key) => key in style)) return style;
  const next = { ...style };
  for (const key of keys) delete (next as Record<string, unknown>)[key];
  return next;
};

const one = (style: Style, code: number): Style => {
  if (code === 0) return style.href === undefined ? none : { href: style.href };
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 3) return { ...style, italic: true };
  if (code === 4 || code === 21) return { ...style, underline: true };
  if (code === 7) return { ...style, inverse: true };
  if (code === 9) return { ...style, strike: true };
  if (code === 22) return without(style, 'bold', 'dim');
  if (code === 23) return without(style, 'italic');
  if (code === 24) return without(style, 'underline');
  if (code === 27) return without(style, 'inverse');
  if (code === 29) return without(style, 'strike');
  if (code >= 30 && code <= 37) return { ...style, fg: code - 30 };
  if (code === 39) return without(style, 'fg');
  if (code >= 40 && code <= 47) return { ...style, bg: code - 40 };
  if (code === 49) return without(style, 'bg');
  if (code >= 90 && code <= 97) return { ...style, fg: code - 82 };
  if (code >= 100 && code <= 107) return { ...style, bg: code - 92 };
  return style;
};

/** `38:2::r:g:b` has a colour space between; the semicolon form has not. */
const parameters = (text: string): number[] =>
  text
    .replace(/([34]8):2:[0-9]*:(\d+):(\d+):(\d+)/g, '$1;2;$2;$3;$4')
    .replace(/(?<![\d])4:0/g, '24')
    .replace(/(?<![\d])4:[1-9]/g, '4')
    .split(/[;:]/)
    .map((part) => (part === '' ? 0 : Number.parseInt(part, 10)));

const restyle = (style: Style, text: string): Style => {
  const params = parameters(text);
  let next = style;
  for (let at = 0; at < params.length; at += 1) {
    const code = params[at] ?? 0;
    if (code !== 38 && code !== 48) {
      next = one(next, code);
      continue;
    }
    const { colour, used } = extended(params, at);
    if (colour !== undefined) next = { ...next, [code === 38 ? 'fg' : 'bg']: colour };
    at += used;
  }
  return next;
};

const linked = (style: Style, body: string): Style => {
  const target = /^8;[^;]*;(.*)$/s.exec(body)?.[1];
  if (target === undefined) return style;
  const link = linkTarget(target, ['http:', 'https:']);
  return link === null ? without(style, 'href') : { ...style, href: link.href };
};

type Op = Run | { readonly erase: string };
const unseen = /[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

/** A line with overwrites, cell by cell: what a terminal would show in the end. */
const settle = (ops: readonly Op[]): Run[] => {
  let cells: Run[] = [];
  let column = 0;
  for (const op of ops) {
    if ('erase' in op) {
      if (op.erase === '2') cells = [];
      else if (op.erase === '' || op.erase === '0') cells.length = Math.min(cells.length, column);
      continue;
    }
    for (const char of op.text) {
      if (char === '\r') column = 0;
      else if (char === '\b') column = Math.max(0, column - 1);
      else {
        while (cells.length < column) cells.push({ text: ' ', style: none });
        cells[column] = { text: char, style: op.style };
        column += 1;
      }
    }
  }
  return cells;
};

/** Collects what is written; a line is settled at its end. */
class Lines {
  readonly runs: Run[] = [];
  private ops: Op[] = [];
  private moves = false;

  write(text: string, style: Style): void {
    const lines = text.replace(unseen, '').replaceAll('\r\n', '\n').split('\n');
    lines.forEach((line, index) => {
      if (index > 0) this.end('\n');
      if (line === '') return;
      this.moves ||= /[\r\b]/.test(line);
      this.ops.push({ text: line, style });
    });
  }

  erase(mode: string): void {
    this.moves = true;
    this.ops.push({ erase: mode });
  }

  end(close: '' | '\n'): void {
    const line = this.moves ? settle(this.ops) : (this.ops as Run[]);
    for (const run of line) this.push(run.text, run.style);
    if (close !== '') this.push(close, this.runs.at(-1)?.style ?? none);
    this.ops = [];
    this.moves = false;
  }

  private push(text: string, style: Style): void {
    const last = this.runs.at(-1);
    if (last?.style === style) this.runs[this.runs.length - 1] = { text: last.text + text, style };
    else this.runs.push({ text, style });
  }
}

/** Pure: the same text gives the same runs. Linear in the length of `text`. */
export const ansiRuns = (text: string): readonly Run[] => {
  const lines = new Lines();
  let style = none;
  let at = 0;
  while (at < text.length) {
    leads.lastIndex = at;
    const next = leads.exec(text)?.index;
    const escape = next ?? text.length;
    if (escape > at) lines.write(text.slice(at, escape), style);
    if (next === undefined) break;
    const lead = text[escape] ?? '';
    const kind = lead === '\x1b' ? (text[escape + 1] ?? '') : ({ '\x9b': '[', '\x9d': ']' }[lead] ?? 'P');
    const body = escape + (lead === '\x1b' ? 2 : 1);
    if (kind === '[') {
      csi.lastIndex = body;
      const found = csi.exec(text);
      if (found === null) {
        at = body;
        continue;
      }
      at = csi.lastIndex;
      if (found[0].endsWith('m') && /^[\d;:]*m$/.test(found[0])) style = restyle(style, found[0].slice(0, -1));
      else if (found[0].endsWith('K')) lines.erase(found[0].slice(0, -1));
      continue;
    }
    if (']PX^_'.includes(kind) && kind !== '') {
      stringEnd.lastIndex = body;
      const found = stringEnd.exec(text);
      if (found !== null && kind === ']') style = linked(style, text.slice(body, found.index));
      at = found === null ? text.length : stringEnd.lastIndex;
      continue;
    }
    // Two-character escapes and charset choices (`ESC ( B`): dropped whole; a lone ESC takes nothing with it.
    at = /[ -/]/.test(kind) ? body + 1 : /[0-Zc-~\\]/.test(kind) ? body : escape + 1;
  }
  lines.end('');
  return lines.runs;
};

export const stripAnsi = (text: string): string =>
  ansiRuns(text)
    .map((run) => run.text)
    .join('');
