import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ansiRuns, stripAnsi } from '../../web/markdown/ansi.ts';

describe('terminal output (case 36, T31)', () => {
  it('renders colours and weights as styles', () => {
    expect(ansiRuns('\x1b[1;31mred\x1b[0m plain \x1b[38;5;208mo\x1b[39m \x1b[48;2;1;2;3mt\x1b[m')).toEqual([
      { text: 'red', style: { bold: true, fg: 1 } },
      { text: ' plain ', style: {} },
      { text: 'o', style: { fg: 208 } },
      { text: ' ', style: {} },
      { text: 't', style: { bg: '#010203' } },
    ]);
  });

  it.each([
    ['bright', '\x1b[92mx', { fg: 10 }],
    ['bright background', '\x1b[103mx', { bg: 11 }],
    ['colon form', '\x1b[38:2::255:0:7mx', { fg: '#ff0007' }],
    ['inverse off', '\x1b[7m\x1b[27mx', {}],
    ['dim, then neither', '\x1b[1;2m\x1b[22mx', {}],
    ['curly underline', '\x1b[4:3mx', { underline: true }],
    ['a colour index that is none', '\x1b[38;5;900mx', {}],
    ['a cut colour', '\x1b[38mx', {}],
    ['an unknown code', '\x1b[777mx', {}],
  ])('reads %s', (_, text, style) => expect(ansiRuns(text)).toEqual([{ text: 'x', style }]));

  it.each([
    ['a title', '\x1b]0;owned\x07ok'],
    ['a title ended by ST', '\x1b]2;owned\x1b\\ok'],
    ['a clipboard write', '\x1b]52;c;b3duZWQ=\x07ok'],
    ['DCS', '\x1bPq#0;2;0;0;0owned\x1b\\ok'],
    ['APC', '\x1b_Gowned\x1b\\ok'],
    ['PM', '\x1b^owned\x1b\\ok'],
    ['SOS', '\x1bXowned\x1b\\ok'],
    ['8-bit OSC', '\x9d0;owned\x9cok'],
    ['8-bit DCS', '\x90owned\x9cok'],
    ['8-bit CSI', '\x9b31mok'],
    ['cursor moves', '\x1b[2J\x1b[10;10H\x1b[?25lok\x1b[?25h'],
    ['a private marker', '\x1b[>4;2mok'],
    ['a charset choice', '\x1b(Bok'],
    ['a lone escape', 'ok\x1b'],
    ['a cut sequence', 'ok\x1b['],
    ['bells and other controls', 'o\x07\x00\x0ek'],
  ])('drops %s', (_, text) => expect(stripAnsi(text)).toBe('ok'));

  it('never shows the rest of an unfinished string', () => {
    expect(stripAnsi('ok\x1b]0;owned')).toBe('ok');
  });

  it('links only to http and https', () => {
    const link = (target: string) => ansiRuns(`\x1b]8;;${target}\x07here\x1b]8;;\x07 after`);
    expect(link('https://example.com/a')).toEqual([
      { text: 'here', style: { href: 'https://example.com/a' } },
      { text: ' after', style: {} },
    ]);
    for (const target of [
      'javascript:alert(1)',
      'file:///etc/passwd',
      'data:text/html,x',
      'mailto:a@b.c',
      'vscode://x',
    ]) {
      expect(link(target)).toEqual([{ text: 'here after', style: {} }]);
    }
  });

  it('keeps a link over a change of colour and an SGR reset', () => {
    expect(ansiRuns('\x1b]8;id=1;http://a.test/\x1b\\\x1b[31ma\x1b[0mb')).toEqual([
      { text: 'a', style: { href: 'http://a.test/', fg: 1 } },
      { text: 'b', style: { href: 'http://a.test/' } },
    ]);
  });

  it('overwrites a line as a terminal would', () => {
    expect(stripAnsi('10 %\r50 %\r100 %\ndone')).toBe('100 %\ndone');
    expect(stripAnsi('loading\r\x1b[Kok\r\n')).toBe('ok\n');
    expect(stripAnsi('abc\b\bX')).toBe('aXc');
    expect(stripAnsi('long line\rshort')).toBe('shortline');
  });

  it('reads a CRLF as one line end and does not empty the line', () => {
    expect(stripAnsi('a\r\nb\r\n')).toBe('a\nb\n');
  });

  it('leaves plain text as it is', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200, unit: 'grapheme' }), (text) => {
        const plain = text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '');
        expect(stripAnsi(plain)).toBe(plain);
      }),
    );
  });

  it('lets no control character through, whatever comes', () => {
    const unit = fc.constantFrom(
      '\x1b',
      '[',
      ']',
      '8;;',
      'http://a.b',
      'm',
      '31',
      ';',
      '\x07',
      '\x9b',
      '\x9d',
      '\x9c',
      'P',
      '\\',
      '\r',
      '\n',
      '\b',
      'K',
      'x',
      '38;2;',
      '?',
      '\x90',
      '\0',
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 60 }), (units) => {
        expect(stripAnsi(units.join(''))).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
      }),
      { numRuns: 1000 },
    );
  });

  it('takes a megabyte in one line, and many sequences (case 33)', () => {
    expect(ansiRuns('x'.repeat(1_000_000))).toHaveLength(1);
    expect(ansiRuns('\x1b[31mx\x1b[0my'.repeat(20_000))).toHaveLength(40_000);
  });
});
