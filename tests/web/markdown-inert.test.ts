import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasHidden, inert, inertSpans } from '../../web/markdown/inert.ts';

describe('inert text (R-13, T37)', () => {
  it.each([
    ['right-to-left override', 'a\u202Eb', 'a⟨U+202E⟩b'],
    ['isolate', '\u2066x\u2069', '⟨U+2066⟩x⟨U+2069⟩'],
    ['zero width space', 'rm\u200B -rf', 'rm⟨U+200B⟩ -rf'],
    ['zero width joiner', 'a\u200Db', 'a⟨U+200D⟩b'],
    ['byte order mark', '\uFEFFx', '⟨U+FEFF⟩x'],
    ['soft hyphen', 'a\u00ADb', 'a⟨U+00AD⟩b'],
    ['tag character', 'a\u{E0041}b', 'a⟨U+E0041⟩b'],
    ['variation selector', 'a\uFE0Fb', 'a⟨U+FE0F⟩b'],
    ['supplementary variation selector', 'a\u{E0100}b', 'a⟨U+E0100⟩b'],
    ['NUL', 'a\0b', 'a⟨U+0000⟩b'],
    ['escape', '\x1b[31mx', '⟨U+001B⟩[31mx'],
    ['carriage return', 'safe\rrm', 'safe⟨U+000D⟩rm'],
    ['new line', 'a\nb', 'a⟨U+000A⟩b'],
    ['line separator', 'a\u2028b', 'a⟨U+2028⟩b'],
    ['no-break space', 'a\u00A0b', 'a⟨U+00A0⟩b'],
    ['ideographic space', 'a\u3000b', 'a⟨U+3000⟩b'],
    ['Hangul filler', 'a\u3164b', 'a⟨U+3164⟩b'],
    ['braille blank', 'a\u2800b', 'a⟨U+2800⟩b'],
    ['lone surrogate', 'a\uD800b', 'a⟨U+D800⟩b'],
    ['private use', 'a\uE000b', 'a⟨U+E000⟩b'],
    ['delete', 'a\x7fb', 'a⟨U+007F⟩b'],
    ['C1 control', 'a\x9bb', 'a⟨U+009B⟩b'],
  ])('writes out a %s', (_, text, shown) => expect(inert(text)).toBe(shown));

  it('stops a tower of marks at the third', () => {
    expect(inert('a\u0301\u0302\u0303\u0304')).toBe('a\u0301\u0302⟨U+0303⟩⟨U+0304⟩');
  });

  it('leaves words, emoji and other scripts alone', () => {
    for (const text of ['src/date.ts', 'Grüße, Жук', '日本語.md', '🎉 done', 'naïve', 'हिन्दी', 'שלום'])
      expect(inert(text)).toBe(text);
  });

  it('keeps new lines and tabs where the place shows them', () => {
    expect(inert('a\n\tb\r', { lines: true })).toBe('a\n\tb⟨U+000D⟩');
    expect(hasHidden('a\n\tb')).toBe(false);
    expect(hasHidden('a\u200Bb')).toBe(true);
  });

  it('never leaves an unseen character, and loses none', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60, unit: 'binary' }), (text) => {
        expect(inert(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
        const back = inertSpans(text)
          .map((span) => (span.escaped ? String.fromCodePoint(Number.parseInt(span.text.slice(3, -1), 16)) : span.text))
          .join('');
        expect(back).toBe(text);
      }),
      { numRuns: 400 },
    );
  });
});
