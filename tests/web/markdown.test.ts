import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linkTarget } from '../../web/markdown/link.ts';
import { advance, type Parsed } from '../../web/markdown/stream.ts';
import { inlineText, parse, type Block, type Inline } from '../../web/markdown/tree.ts';

const allInlines = (blocks: readonly Block[]): Inline[] => {
  const deep = (nodes: readonly Inline[]): Inline[] =>
    nodes.flatMap((node) => [node, ...('children' in node ? deep(node.children) : [])]);
  return blocks.flatMap((block): Inline[] => {
    if (block.kind === 'paragraph' || block.kind === 'heading') return deep(block.inlines);
    if (block.kind === 'list') return block.items.flatMap((item) => allInlines(item.blocks));
    if (block.kind === 'quote') return allInlines(block.blocks);
    if (block.kind === 'table') return [...block.head, ...block.rows.flat()].flatMap(deep);
    return [];
  });
};
const links = (text: string) => allInlines(parse(text)).filter((node) => node.kind === 'link');
const first = (text: string): Block => {
  const block = parse(text)[0];
  if (block === undefined) throw new Error('no block');
  return block;
};

describe('Markdown tree (U-40)', () => {
  it('keeps HTML as words', () => {
    const text = 'a <img src=x onerror=alert(1)> b\n\n<script>alert(1)</script>\n\n<div>\nhello\n</div>';
    const shown = parse(text).map((block) => (block.kind === 'paragraph' ? inlineText(block.inlines) : block.kind));
    expect(shown).toEqual(['a <img src=x onerror=alert(1)> b', '<script>alert(1)</script>', '<div>\nhello\n</div>']);
  });

  it('honours a longer outer fence (case 38)', () => {
    const text = '````markdown\n```js\na\n```\n\n```\nb\n```\n````\nafter';
    expect(parse(text)).toEqual([
      { kind: 'code', lang: 'markdown', text: '```js\na\n```\n\n```\nb\n```\n' },
      { kind: 'paragraph', tight: false, inlines: [{ kind: 'text', text: 'after' }] },
    ]);
  });

  it('closes an outer fence of three at the first inner one, as the specification says (case 38)', () => {
    const kinds = parse('```markdown\n```js\na\n```\n\n```\nb\n```\n').map((block) => block.kind);
    expect(kinds).toEqual(['code', 'code']);
  });

  it('reads task lists, tight and with other marks inside', () => {
    const block = first('- [x] read **it**\n- [ ] fix\n- plain');
    expect(block).toMatchObject({
      kind: 'list',
      start: null,
      items: [{ done: true }, { done: false }, { done: null }],
    });
    expect(inlineText(allInlines([block]).filter((node) => node.kind === 'text'))).toBe('read itfixplain');
  });

  it('reads tables with their alignment', () => {
    expect(first('| a | b |\n| :-: | --: |\n| 1 | 2 |')).toMatchObject({
      kind: 'table',
      align: ['center', 'end'],
      head: [[{ text: 'a' }], [{ text: 'b' }]],
      rows: [[[{ text: '1' }], [{ text: '2' }]]],
    });
  });

  it('draws an image as words and never as something to fetch (T32)', () => {
    expect(allInlines(parse('![pixel](https://evil.test/x.png?d=secret)'))).toEqual([
      {
        kind: 'image',
        alt: 'pixel',
        href: 'https://evil.test/x.png?d=secret',
        host: 'evil.test',
        source: 'https://evil.test/x.png?d=secret',
      },
    ]);
    expect(allInlines(parse('![p](data:image/png;base64,AAAA)'))[0]).toMatchObject({
      kind: 'image',
      href: null,
      host: null,
    });
  });

  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    '&#106;avascript:alert(1)',
    'data:text/html,<script>1</script>',
    'file:///etc/passwd',
    'vscode://open',
    '//evil.test/x',
    '/local',
    'https://example.com@evil.test/',
    'ws://x.test',
    'blob:https://x/1',
  ])('does not follow %s (T31)', (address) => {
    for (const text of [`[a](<${address}>)`, `[a][r]\n\n[r]: <${address}>`, `<${address}>`]) {
      for (const node of links(text)) expect(node).toMatchObject({ href: '', host: '' });
    }
  });

  it('follows http, https and mailto with the host one would reach', () => {
    expect(links('[docs](https://example.com:8443/a?b) <me@x.test>')).toMatchObject([
      { href: 'https://example.com:8443/a?b', host: 'example.com:8443' },
      { href: 'mailto:me@x.test', host: 'me@x.test' },
    ]);
  });

  it('shows a look-alike host in its coded form', () => {
    expect(linkTarget('https://xn--e1awd7f.com/')?.host).toBe('xn--e1awd7f.com');
    expect(linkTarget('https://еpic.com/')?.host).toMatch(/^xn--/);
  });

  it('makes no link of a file name', () => {
    expect(links('see main.rs and config.py, or https://example.com/x')).toHaveLength(1);
  });

  it('stays quick and whole on hostile text (U-41)', () => {
    const hostile = [
      '> '.repeat(20_000) + 'x',
      '['.repeat(40_000),
      '*a_ '.repeat(20_000),
      '- '.repeat(10_000) + 'x',
      '`'.repeat(60_000),
      '![[]('.repeat(10_000),
      '<'.repeat(60_000),
      '\\'.repeat(60_000),
      '|a'.repeat(20_000),
      `${'1. '.repeat(5000)}x`,
      '&amp;'.repeat(12_000),
      '\0'.repeat(1000),
    ];
    for (const text of hostile) expect(parse(text).length).toBeGreaterThan(0);
  });

  it('gives kinds it knows and nothing else, whatever it is given', () => {
    const kinds = new Set(['text', 'code', 'break', 'strong', 'em', 'strike', 'link', 'image']);
    fc.assert(
      fc.property(fc.string({ maxLength: 400, unit: 'grapheme' }), (text) => {
        for (const node of allInlines(parse(text))) expect(kinds.has(node.kind)).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});

describe('Markdown that streams (U-41, case 38)', () => {
  const grow = (text: string, cuts: readonly number[]): Parsed => {
    let parsed: Parsed | null = null;
    for (const cut of [...cuts.filter((at) => at < text.length).sort((a, b) => a - b), text.length])
      parsed = advance(parsed, text.slice(0, cut));
    return parsed ?? advance(null, text);
  };
  const piece = fc.constantFrom(
    '# ',
    '## a',
    'word ',
    '\n',
    '\n\n',
    '- ',
    '* ',
    '+ ',
    '1. ',
    '2',
    '2. ',
    '3) ',
    '> ',
    '```',
    '```js',
    '````',
    '~~~',
    '    ',
    '  ',
    ' ',
    '---',
    '===',
    '|a|b|',
    '|-|-|',
    '**b**',
    '_',
    '`c`',
    '[x](http://a.b)',
    '[r]',
    '[r]: http://c.d',
    '[ ] ',
    '[x] ',
    '\r\n',
    '\r',
    '\t',
    '<b>',
    '\\',
    'https://e.f/g',
    '!',
    '1',
    '.',
    ')',
    '-',
    'é',
    '👩‍💻',
    '\0',
  );

  it('is the same as reading everything at once', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.array(fc.nat(200), { maxLength: 60 }), (pieces, cuts) => {
        const text = pieces.join('');
        expect(grow(text, cuts).tops).toEqual(advance(null, text).tops);
      }),
      { numRuns: 1500 },
    );
  });

  it('is the same one character at a time, for text with inner fences', () => {
    const text =
      'Here:\n\n````markdown\n```js\na\n```\n\n1. x\n\n2. y\n````\n\n1. a\n\n2. b\n\n| a |\n|---|\n| 1 |\n\nend';
    let parsed: Parsed | null = null;
    for (let at = 1; at <= text.length; at += 1) {
      parsed = advance(parsed, text.slice(0, at));
      expect(parsed.tops).toEqual(advance(null, text.slice(0, at)).tops);
    }
  });

  it('keeps the objects of closed blocks, so that they are not drawn again', () => {
    const before = advance(null, 'one\n\ntwo\n\nthree\n\nfo');
    const after = advance(before, 'one\n\ntwo\n\nthree\n\nfour and more');
    expect(after.tops.slice(0, 2).every((top, index) => top === before.tops[index])).toBe(true);
    expect(after.tops).toHaveLength(4);
  });

  it('reads all again once a link definition shows up, since it reaches back', () => {
    const text = 'see [r]\n\nmore\n\nand\n\n[r]: https://example.com/';
    const parsed = grow(text, [10, 20, text.length - 3]);
    expect(parsed.tops[0]?.block).toMatchObject({ inlines: [{ text: 'see ' }, { kind: 'link', host: 'example.com' }] });
  });
});
