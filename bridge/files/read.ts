/**
 * Reads one file, bounded (F-03): text cut at UTF-8 and line boundaries, images by magic, everything else named.
 * The rule not to break: bytes are never repaired. What is not valid UTF-8 is refused, or shown as a labelled preview of
 * an encoding that was asked for. Called by root.ts; the policy on secrets is the caller's.
 */
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { fstatSync, type BigIntStats } from 'node:fs';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { FileRead } from '#protocol/methods/workspace.ts';
import type { Leaf } from './beneath.ts';
import { readAt, scan, type Encoding, type LineIndex, type LineIndexes } from './lines.ts';
import { revisionOf } from './revision.ts';

type Content = FileRead['content'];
type Preview = Exclude<Encoding, 'utf-8'>;

/** Runs `use` on the content and refuses when the file changed meanwhile; three tries, for files being written to. */
export const steady = <T>(
  leaf: Leaf,
  use: (fd: number, size: number) => T,
  tries = 3,
): { value: T; stat: BigIntStats } =>
  leaf.content((fd) => {
    for (let left = tries; left > 0; left -= 1) {
      const before = fstatSync(fd, { bigint: true });
      const value = use(fd, Number(before.size));
      const stat = fstatSync(fd, { bigint: true });
      if (revisionOf(stat) === revisionOf(before)) return { value, stat };
    }
    throw new Refusal('file_changed');
  });

/** The whole content, exactly. @throws Refusal content_too_large above `maxBytes`, file_changed */
export const readWhole = (leaf: Leaf, maxBytes: number): { bytes: Buffer; revision: string } => {
  const { value, stat } = steady(leaf, (fd, size) => {
    if (size > maxBytes) throw new Refusal('content_too_large');
    return readAt(fd, 0, size);
  });
  return { bytes: value, revision: revisionOf(stat) };
};

/**
 * One page from byte `offset`, which is 0 or a `nextOffset` given before, or from a line.
 * @throws Refusal file_changed, invalid_encoding, content_too_large, bad_request for an offset beyond the end
 */
export const readContent = (
  leaf: Leaf,
  options: {
    readonly offset: number | undefined;
    readonly line: number | undefined;
    readonly revision: string | undefined;
    readonly encoding: Preview | undefined;
  },
  indexes: LineIndexes,
): { content: Content; stat: BigIntStats } => {
  const { value, stat } = steady(leaf, (fd, size) => {
    const revision = revisionOf(fstatSync(fd, { bigint: true }));
    if (options.revision !== undefined && revision !== options.revision) throw new Refusal('file_changed');
    const { offset = 0, line, encoding } = options;
    if (offset > size) throw new Refusal('bad_request');
    const head = readAt(fd, 0, Math.min(size, limits.sniffBytes));
    const text = (as: Encoding): Content =>
      textPage(fd, size, { as, head, offset, line, index: indexes.of(fd, size, as, revision) });
    if (encoding !== undefined) return text(encoding);
    const mime = imageMime(head);
    if (mime !== null && size <= limits.scanBytes) return image(fd, size, mime);
    if (mime !== null) return binary(mime, head);
    const mark = utf16Mark(head);
    if (mark !== null) throw new Refusal('invalid_encoding', { details: { encoding: mark } });
    if (head.includes(0)) return binary(binarySniff(head), head);
    return text('utf-8');
  });
  return { content: value, stat };
};

const binary = (sniff: string, head: Buffer): Content => ({
  kind: 'binary',
  sniff,
  head: head.toString('base64', 0, limits.binaryHeadBytes),
});

const image = (fd: number, size: number, mime: string): Content => {
  const hash = createHash('sha256');
  scan(fd, 0, size, (piece) => hash.update(piece));
  const inline =
    size <= limits.imageBytes ? { dataUrl: `data:${mime};base64,${readAt(fd, 0, size).toString('base64')}` } : {};
  return { kind: 'image', mime, sha256: hash.digest('hex'), bytes: size, ...inline };
};

interface TextPlace {
  readonly as: Encoding;
  readonly head: Buffer;
  readonly offset: number;
  readonly line: number | undefined;
  readonly index: LineIndex;
}

const textPage = (fd: number, size: number, { as: encoding, head, offset, line, index }: TextPlace): Content => {
  const place = line === undefined ? offset : (index.offsetOf(fd, Math.max(1, line)) ?? size);
  if (place > limits.scanBytes) throw new Refusal('content_too_large');
  const width = encoding.startsWith('utf-16') ? 2 : 1;
  const bomBytes = markBytes(head, encoding);
  const start = Math.max(place, bomBytes);
  const bytes = readAt(fd, start, Math.min(limits.readBytes, size - start));
  const atEnd = start + bytes.length === size;
  const whole = atEnd ? bytes : bytes.subarray(0, characterEnd(bytes, encoding));
  const text = cut(decode(whole, encoding), atEnd);
  const used = encoding === 'utf-8' ? Buffer.byteLength(text) : Math.min(text.length * width, whole.length);
  const next = start + used;
  const lines = count(text, '\n') + (text === '' || text.endsWith('\n') ? 0 : 1);
  return {
    kind: 'text',
    text,
    encoding,
    preview: encoding !== 'utf-8',
    bom: bomBytes > 0,
    eol: eolOf(text),
    firstLine: index.lineAt(fd, start),
    lines,
    nextOffset: next < size ? next : null,
    totalLines: index.total,
  };
};

const decode = (bytes: Buffer, encoding: Encoding): string => {
  if (encoding !== 'utf-8') return new TextDecoder(encoding, { ignoreBOM: true }).decode(bytes);
  if (!isUtf8(bytes)) throw new Refusal('invalid_encoding');
  return bytes.toString('utf8');
};

/** The first lead byte of a character longer than this many bytes. */
const leads = [0, 0xc0, 0xe0, 0xf0];

/** Length of the longest prefix that does not end inside a character. Malformed bytes are kept, for the decoder to judge. */
const characterEnd = (bytes: Buffer, encoding: Encoding): number => {
  if (encoding === 'windows-1252') return bytes.length;
  if (encoding !== 'utf-8') {
    const even = bytes.length - (bytes.length % 2);
    const last = even < 2 ? 0 : encoding === 'utf-16le' ? bytes.readUInt16LE(even - 2) : bytes.readUInt16BE(even - 2);
    return last >= 0xd800 && last <= 0xdbff ? even - 2 : even;
  }
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte >= 0xc0) return byte >= (leads[back] ?? 0) ? bytes.length - back : bytes.length;
    if (byte < 0x80) return bytes.length;
  }
  return bytes.length;
};

/** At most `limits.readLines` lines and what fits a frame once escaped as JSON; whole lines where there is more than one. */
const cut = (text: string, atEnd: boolean): string => {
  const fitting = text.slice(0, fittingUnits(text));
  let end = 0;
  for (let line = 0; line < limits.readLines; line += 1) {
    const at = fitting.indexOf('\n', end);
    if (at === -1) {
      // What follows the last line break is whole only at the end of the file; alone it is given all the same.
      const whole = (atEnd && fitting.length === text.length) || end === 0;
      return whole ? fitting : fitting.slice(0, end);
    }
    end = at + 1;
  }
  return fitting.slice(0, end);
};

const fittingUnits = (text: string): number => {
  if (text.length * 6 <= limits.pageBytes || Buffer.byteLength(JSON.stringify(text)) <= limits.pageBytes)
    return text.length;
  let [fits, over] = [0, text.length];
  while (over - fits > 1) {
    const middle = (fits + over) >> 1;
    if (Buffer.byteLength(JSON.stringify(text.slice(0, middle))) <= limits.pageBytes) fits = middle;
    else over = middle;
  }
  return isHighSurrogate(text, fits - 1) ? fits - 1 : fits;
};

const isHighSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xd800;

const count = (text: string, sign: string): number => text.split(sign).length - 1;

const eolOf = (text: string): 'lf' | 'crlf' | 'mixed' | 'none' => {
  const crlf = count(text, '\r\n');
  const lf = count(text, '\n') - crlf;
  return crlf > 0 && lf > 0 ? 'mixed' : crlf > 0 ? 'crlf' : lf > 0 ? 'lf' : 'none';
};

const utf16Mark = (head: Buffer): 'utf-16le' | 'utf-16be' | null =>
  head[0] === 0xff && head[1] === 0xfe ? 'utf-16le' : head[0] === 0xfe && head[1] === 0xff ? 'utf-16be' : null;

/** Length of the byte order mark of this encoding at the start of the file. */
const markBytes = (head: Buffer, encoding: Encoding): number => {
  if (encoding === 'utf-8') return head.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf])) ? 3 : 0;
  return utf16Mark(head) === encoding ? 2 : 0;
};

type Magic = readonly [name: string, at: number, bytes: string];
/** Bytes as latin1 text. SVG is text and stays so: it can carry script. */
const images: readonly Magic[] = [
  ['image/png', 0, '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', 0, '\xff\xd8\xff'],
  ['image/gif', 0, 'GIF8'],
  ['image/webp', 8, 'WEBP'],
  ['image/avif', 4, 'ftypavif'],
];
const binaries: readonly Magic[] = [
  ['ELF program', 0, '\x7fELF'],
  ['PDF document', 0, '%PDF-'],
  ['ZIP archive', 0, 'PK\x03\x04'],
  ['gzip archive', 0, '\x1f\x8b'],
  ['WebAssembly module', 0, '\0asm'],
  ['SQLite database', 0, 'SQLite format 3\0'],
];
const matching = (table: readonly Magic[], head: Buffer): string | null =>
  table.find(([, at, bytes]) => head.subarray(at, at + bytes.length).equals(Buffer.from(bytes, 'latin1')))?.[0] ?? null;
/** By magic; null for what is no image. */
export const imageMime = (head: Buffer): string | null => matching(images, head);
const binarySniff = (head: Buffer): string => matching(binaries, head) ?? 'binary data';
