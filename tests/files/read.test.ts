import { appendFileSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { fileRead } from '#protocol/methods/workspace.ts';
import { Beneath } from '../../bridge/files/beneath.ts';
import type { Root } from '../../bridge/files/contract.ts';
import { steady } from '../../bridge/files/read.ts';
import { atEnd, codeOf, makeRoot } from './parts.ts';

type Text = Extract<ReturnType<Root['read']>['content'], { kind: 'text' }>;
const page = (root: Root, path: string, options: Parameters<Root['read']>[1] = {}): Text => {
  const read = root.read(path, options);
  expect(fileRead.safeParse(read).success).toBe(true);
  expect(Buffer.byteLength(JSON.stringify(read))).toBeLessThan(limits.frameBytes);
  if (read.content.kind !== 'text') throw new Error(`read as ${read.content.kind}`);
  return read.content;
};
/** All pages one after the other. */
const whole = (root: Root, path: string, options: Parameters<Root['read']>[1] = {}): Text[] => {
  const pages: Text[] = [];
  for (let offset: number | null = 0; offset !== null;) {
    const next: Text = page(root, path, { ...options, offset });
    pages.push(next);
    offset = next.nextOffset;
  }
  return pages;
};

describe('F-03 reading text', () => {
  test('cuts at 2,000 lines and goes on where it stopped', () => {
    const text = Array.from({ length: 4500 }, (_, line) => `line ${line + 1}\n`).join('');
    const { root } = makeRoot({ 'long.txt': text });
    const pages = whole(root, 'long.txt');
    expect(pages.map(({ firstLine, lines, totalLines }) => [firstLine, lines, totalLines])).toEqual([
      [1, 2000, 4500],
      [2001, 2000, 4500],
      [4001, 500, 4500],
    ]);
    expect(pages.map((each) => each.text).join('')).toBe(text);
  });

  test.each([
    ['one line of emoji', '😀'.repeat(700_000)],
    ['two-byte letters behind one byte', `a${'é'.repeat(1_500_000)}`],
    ['lines that double when escaped', `${'"\\'.repeat(300)}\n`.repeat(1900)],
    ['a line of controls', '\u0001'.repeat(400_000)],
  ])('cuts %s between characters, within a frame, and loses nothing', (_, text) => {
    const { root } = makeRoot({ f: text });
    const pages = whole(root, 'f');
    expect(pages.length).toBeGreaterThan(1);
    expect(pages.map((each) => each.text).join('') === text).toBe(true);
  });

  test('reports the last line without a break, an empty file, and line ends', () => {
    const { root } = makeRoot({ a: 'x\ny', empty: '', crlf: 'a\r\nb\r\n', mixed: 'a\r\nb\n', none: 'abc' });
    expect(page(root, 'a')).toMatchObject({ lines: 2, totalLines: 2, eol: 'lf', nextOffset: null });
    expect(page(root, 'empty')).toMatchObject({ text: '', lines: 0, totalLines: 0, eol: 'none', firstLine: 1 });
    expect(['crlf', 'mixed', 'none'].map((name) => page(root, name).eol)).toEqual(['crlf', 'mixed', 'none']);
  });

  test('case 49 tells a byte order mark and shows the text without it', () => {
    const { root } = makeRoot({ bom: '\ufeffárvíztűrő\r\n' });
    expect(page(root, 'bom')).toMatchObject({ text: 'árvíztűrő\r\n', bom: true, eol: 'crlf', nextOffset: null });
  });

  test('invalid UTF-8 is refused, not repaired', () => {
    const { root } = makeRoot({
      latin: Buffer.from('caf\xe9\n', 'latin1'),
      cut: Buffer.from([0x61, 0xc3]),
      surrogate: Buffer.from([0xed, 0xa0, 0x80]),
    });
    for (const name of ['latin', 'cut', 'surrogate']) {
      expect(codeOf(() => root.read(name))).toBe('invalid_encoding');
      expect(codeOf(() => root.readText(name, 100))).toBe('invalid_encoding');
    }
  });

  test('another encoding that was asked for is a labelled preview', () => {
    const { root } = makeRoot({ latin: Buffer.from('caf\xe9 \x80\n', 'latin1') });
    expect(page(root, 'latin', { encoding: 'windows-1252' })).toMatchObject({
      text: 'café €\n',
      encoding: 'windows-1252',
      preview: true,
    });
  });

  test('UTF-16 says which it is and pages by characters', () => {
    const text = `${'zeile 😀\n'.repeat(3000)}Ende\u0a0a`;
    const le = Buffer.from(`\ufeff${text}`, 'utf16le');
    const { root } = makeRoot({ le: le, be: Buffer.from(le).swap16() });
    expect(codeOf(() => root.read('le'))).toBe('invalid_encoding');
    for (const encoding of ['utf-16le', 'utf-16be'] as const) {
      const pages = whole(root, encoding.slice(-2), { encoding });
      expect(pages.map((each) => each.text).join('')).toBe(text);
      expect(pages.map(({ firstLine, totalLines, bom }) => [firstLine, totalLines, bom])).toEqual([
        [1, 3001, true],
        [2001, 3001, true],
      ]);
    }
  });
});

describe('F-03 any line at once', () => {
  test('a page begins at the line that was asked for, whatever the encoding, and at the end beyond the last', () => {
    const lines = Array.from({ length: 5_500 }, (_, line) => `${'é'.repeat(line % 40)} ${line + 1}`);
    const text = lines.join('\n');
    const le = Buffer.from(`\ufeff${text}`, 'utf16le');
    const { root } = makeRoot({ 'utf-8': text, 'utf-16le': le, 'utf-16be': Buffer.from(le).swap16() });
    for (const encoding of [undefined, 'utf-16le', 'utf-16be'] as const) {
      const from = (line: number): Text => page(root, encoding ?? 'utf-8', { encoding, line });
      for (const line of [1, 2, 1000, 1001, 2500, 5_499, 5_500]) {
        expect(from(line)).toMatchObject({ firstLine: line, totalLines: 5_500 });
        expect(from(line).text.split('\n')[0]).toBe(lines[line - 1]);
      }
      expect(from(5_501)).toMatchObject({ text: '', nextOffset: null });
      expect(from(0).text.split('\n')[0]).toBe(lines[0]);
    }
  });

  test('the line after one that is cut is found, and places are not kept for a file that changed', () => {
    const { root, path } = makeRoot({ f: `${'x'.repeat(limits.readBytes + 10)}\nsecond\nthird\n` });
    expect(page(root, 'f')).toMatchObject({ firstLine: 1, lines: 1, totalLines: 3 });
    expect(page(root, 'f', { line: 2 })).toMatchObject({ text: 'second\nthird\n', firstLine: 2, nextOffset: null });
    writeFileSync(join(path, 'f'), 'one\ntwo\n');
    expect(page(root, 'f', { line: 2 })).toMatchObject({ text: 'two\n', totalLines: 2 });
  });
});

describe('F-03 other content', () => {
  test('binary is named by its first bytes, never shown', () => {
    const long = Buffer.alloc(limits.binaryHeadBytes + 100, 7);
    long[0] = 0;
    const { root } = makeRoot({ elf: Buffer.from('\x7fELF\0\0', 'latin1'), any: Buffer.from([1, 0, 2]), long });
    expect(root.read('elf').content).toEqual({ kind: 'binary', sniff: 'ELF program', head: 'f0VMRgAA' });
    expect(root.read('any').content).toEqual({ kind: 'binary', sniff: 'binary data', head: 'AQAC' });
    const read = root.read('long');
    expect(fileRead.safeParse(read).success).toBe(true);
    const head = read.content.kind === 'binary' ? Buffer.from(read.content.head ?? '', 'base64') : null;
    expect(head).toEqual(long.subarray(0, limits.binaryHeadBytes));
  });

  test('an image is told by its magic, whatever its name, and sent when small', () => {
    const png = Buffer.from('\x89PNG\r\n\x1a\n\0\0', 'latin1');
    const { root } = makeRoot({
      'picture.txt': png,
      'big.png': Buffer.concat([png, Buffer.alloc(limits.imageBytes)]),
      'fake.png': 'no picture',
      'x.svg': '<svg onload="x"/>',
    });
    expect(root.read('picture.txt').content).toMatchObject({
      kind: 'image',
      mime: 'image/png',
      dataUrl: `data:image/png;base64,${png.toString('base64')}`,
    });
    expect(root.read('big.png').content).not.toHaveProperty('dataUrl');
    expect(root.read('fake.png').content.kind).toBe('text');
    expect(root.read('x.svg').content.kind).toBe('text');
  });

  test('the largest inline image fits a frame', () => {
    const { root } = makeRoot({ p: Buffer.concat([Buffer.from('GIF89a'), Buffer.alloc(limits.imageBytes - 6)]) });
    const read = root.read('p');
    expect(fileRead.safeParse(read).success).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(read))).toBeLessThan(limits.frameBytes);
  });
});

describe('T56 sizes and changes', () => {
  test('a sparse file of a tebibyte is answered from its head', () => {
    const { root, path } = makeRoot({ sparse: '', text: 'head\n'.repeat(3000) });
    truncateSync(join(path, 'sparse'), 2 ** 40);
    truncateSync(join(path, 'text'), 2 ** 40);
    expect(root.read('sparse').content).toMatchObject({ kind: 'binary', sniff: 'binary data' });
    expect(page(root, 'text')).toMatchObject({ lines: 2000, totalLines: null });
    expect(codeOf(() => root.read('text', { offset: limits.scanBytes + 1 }))).toBe('content_too_large');
    expect(codeOf(() => root.readText('text', limits.readBytes))).toBe('content_too_large');
  });

  test('a file that changes while it is read is refused, after three tries', () => {
    const { path } = makeRoot({ log: 'x' });
    const beneath = new Beneath(path, () => new Set());
    atEnd(() => beneath.close());
    let tries = 0;
    const grow = (): void =>
      beneath.leaf(['log'], (leaf) => void steady(leaf, () => appendFileSync(join(path, 'log'), String((tries += 1)))));
    expect(codeOf(grow)).toBe('file_changed');
    expect(tries).toBe(3);
    const shrinkOnce = beneath.leaf(['log'], (leaf) =>
      steady(leaf, (_, size) => (size > 1 ? truncateSync(join(path, 'log'), 1) : undefined)),
    );
    expect(shrinkOnce.stat.size).toBe(1n);
  });

  test('another revision than was shown is refused, also with the old time put back', () => {
    const { root, path } = makeRoot({ f: 'one' });
    utimesSync(join(path, 'f'), 1000, 1000);
    const { revision } = root.read('f');
    expect(root.read('f', { revision }).revision).toBe(revision);
    writeFileSync(join(path, 'f'), 'two');
    utimesSync(join(path, 'f'), 1000, 1000);
    expect(root.stat('f').modifiedAt).toBe(1_000_000);
    expect(codeOf(() => root.read('f', { revision }))).toBe('file_changed');
  });

  test('an offset beyond the end is refused', () => {
    const { root } = makeRoot({ f: 'abc' });
    expect(codeOf(() => root.read('f', { offset: 4 }))).toBe('bad_request');
  });
});
