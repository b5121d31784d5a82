/**
 * Reads the hunks of one file's patch and what they say about line ends. The counts of each header decide where a hunk
 * ends, never what its lines look like. Pure; used by compare.ts.
 */
import { isUtf8 } from 'node:buffer';
import { limits } from '#protocol/limits.ts';
import type { DiffHunk } from '#protocol/methods/git.ts';

export interface LineEnds {
  readonly lines: number;
  readonly lf: number;
  readonly crlf: number;
}

export interface Patch {
  readonly hunks: DiffHunk[];
  /** Git took a side for binary. */
  readonly binary: boolean;
  /** Lines that begin with `-` or `+`. */
  readonly changed: number;
  readonly total: number;
  /** What the lines cost on the wire. */
  readonly bytes: number;
  readonly replaced: boolean;
  readonly old: LineEnds;
  readonly new: LineEnds;
  readonly onlyEol: boolean;
}

const header = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/s;

/** How often each end occurs in a whole text; a last line without an end counts as a line. */
export const endsOf = (bytes: Uint8Array): LineEnds => {
  let [lf, crlf] = [0, 0];
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = buffer.indexOf(0x0a); at !== -1; at = buffer.indexOf(0x0a, at + 1)) {
    if (at > 0 && buffer[at - 1] === 0x0d) crlf += 1;
    else lf += 1;
  }
  const open = buffer.length > 0 && buffer.at(-1) !== 0x0a;
  return { lines: lf + crlf + (open ? 1 : 0), lf, crlf };
};

/** The other side's ends, from one side's and what was taken away and added. */
export const otherEnds = (one: LineEnds, minus: LineEnds, plus: LineEnds): LineEnds => ({
  lines: Math.max(0, one.lines - minus.lines + plus.lines),
  lf: Math.max(0, one.lf - minus.lf + plus.lf),
  crlf: Math.max(0, one.crlf - minus.crlf + plus.crlf),
});

export const eolName = ({ lf, crlf }: LineEnds): 'lf' | 'crlf' | 'mixed' | 'none' =>
  lf > 0 && crlf > 0 ? 'mixed' : crlf > 0 ? 'crlf' : lf > 0 ? 'lf' : 'none';

class Ends {
  lines = 0;
  lf = 0;
  crlf = 0;
  /** Without carriage returns at their ends, to tell a change of ends alone. */
  readonly texts: string[] = [];

  add(line: Buffer): void {
    this.lines += 1;
    const ended = line.at(-1) === 0x0d;
    if (ended) this.crlf += 1;
    else this.lf += 1;
    this.texts.push((ended ? line.subarray(0, -1) : line).toString('latin1'));
  }

  /** The line just added has no line feed. */
  open(crlf: boolean): void {
    if (crlf) this.crlf -= 1;
    else this.lf -= 1;
  }
}

export const parsePatch = (patch: Buffer): Patch => {
  const lines = new Lines(patch);
  const old = new Ends();
  const fresh = new Ends();
  const hunks: DiffHunk[] = [];
  let [binary, replaced, changed, total, bytes] = [false, false, 0, 0, 0];

  const show = (line: Buffer): string => {
    replaced ||= !isUtf8(line);
    const text = shown(line);
    total += 1;
    bytes += Buffer.byteLength(JSON.stringify(text));
    return text;
  };
  const hunkOf = (match: RegExpExecArray): DiffHunk => {
    const [oldStart, oldLines, newStart, newLines] = [match[1], match[2] ?? '1', match[3], match[4] ?? '1'].map(Number);
    const hunk = { oldStart: oldStart ?? 0, oldLines: oldLines ?? 0, newStart: newStart ?? 0, newLines: newLines ?? 0 };
    const body: string[] = [];
    let [oldLeft, newLeft] = [hunk.oldLines, hunk.newLines];
    let last: { sides: readonly Ends[]; crlf: boolean } = { sides: [], crlf: false };
    for (let line = lines.peek(); line !== null; line = lines.peek()) {
      const sign = String.fromCharCode(line[0] ?? 0x20);
      if (sign !== '\\' && oldLeft <= 0 && newLeft <= 0) break;
      lines.skip();
      body.push(show(line));
      if (sign === '\\') {
        for (const side of last.sides) side.open(last.crlf);
        continue;
      }
      const sides = sign === '-' ? [old] : sign === '+' ? [fresh] : [];
      if (sign !== '+') oldLeft -= 1;
      if (sign !== '-') newLeft -= 1;
      changed += sides.length;
      const text = line.subarray(1);
      for (const side of sides) side.add(text);
      last = { sides, crlf: text.at(-1) === 0x0d };
    }
    return { ...hunk, section: (match[5] ?? '').toWellFormed().slice(0, 500), lines: body };
  };

  for (let line = lines.peek(); line !== null; line = lines.peek()) {
    lines.skip();
    const match = line[0] === 0x40 ? header.exec(line.toString('utf8')) : null;
    if (match !== null) hunks.push(hunkOf(match));
    // A type change is two patches one after the other; the first is the one that was asked about.
    else if (hunks.length > 0) break;
    else if (line.subarray(0, 13).toString('latin1') === 'Binary files ') binary = true;
  }
  const onlyEol = changed > 0 && old.texts.length === fresh.texts.length && same(old.texts, fresh.texts);
  return { hunks, binary, changed, total, bytes, replaced, old, new: fresh, onlyEol };
};

const same = (a: readonly string[], b: readonly string[]): boolean => a.every((text, at) => text === b[at]);

/** One line as it is sent: replacement characters for what is not UTF-8, cut where it is longer than one reads. */
export const shown = (line: Buffer): string => {
  // Four bytes are at most two units: what is cut off need not be decoded.
  const text = line.subarray(0, limits.diffLineUnits * 4).toString('utf8');
  return text.length <= limits.diffLineUnits ? text : `${text.slice(0, limits.diffLineUnits - 1).toWellFormed()}…`;
};

/** A whole file as a patch: of one that is new to git, or that is gone. As git does, NUL near the start makes it binary. */
export const wholePatch = (bytes: Buffer, sign: '+' | '-'): Buffer => {
  if (bytes.subarray(0, 8000).includes(0)) return Buffer.from('Binary files differ\n');
  if (bytes.length === 0) return Buffer.alloc(0);
  const { lines } = endsOf(bytes);
  const range = sign === '+' ? `-0,0 +1,${lines}` : `-1,${lines} +0,0`;
  const ended = bytes.at(-1) === 0x0a;
  const text = (ended ? bytes.subarray(0, -1) : bytes).toString('latin1').replaceAll('\n', `\n${sign}`);
  return Buffer.from(`@@ ${range} @@\n${sign}${text}\n${ended ? '' : '\\ No newline at end of file\n'}`, 'latin1');
};

class Lines {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  peek(): Buffer | null {
    return this.#at >= this.#bytes.length ? null : this.#bytes.subarray(this.#at, this.#end());
  }

  skip(): void {
    this.#at = this.#end() + 1;
  }

  #end(): number {
    const end = this.#bytes.indexOf(0x0a, this.#at);
    return end === -1 ? this.#bytes.length : end;
  }
}
