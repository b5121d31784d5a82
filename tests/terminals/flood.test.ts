import { createRequire } from 'node:module';
import fc from 'fast-check';
import type { Terminal as Core } from '@xterm/headless';
import { describe, expect, it } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { isPlain, lastOf } from '../../bridge/terminals/flood.ts';
import { Screen } from '../../bridge/terminals/screen.ts';
import { Sequences } from '../../bridge/terminals/sequences.ts';
import { drawn, newCore, size, stateOf } from './parts.ts';

const load = createRequire(import.meta.url);
const { Terminal } = load('@xterm/headless') as { Terminal: typeof Core };
const { SerializeAddon } = load('@xterm/addon-serialize') as {
  SerializeAddon: new () => Parameters<Core['loadAddon']>[0] & { serialize(): string };
};

const small = { cols: 12, rows: 4, scrollback: 10 };
/** As it must be called for a screen of that size. */
const lines = small.scrollback + 2 * small.rows;

/** What is left of a flood that came in one piece. */
const lastOfOne = (bytes: Buffer): Buffer | null => {
  const last = isPlain(bytes) ? lastOf([bytes], lines) : null;
  return last && Buffer.concat(last);
};

/** Text, wrapping, cursor and modes, and every colour. */
const allOf = async (core: Core, ...pieces: readonly (string | Buffer)[]): Promise<unknown> => {
  const serializer = new SerializeAddon();
  core.loadAddon(serializer);
  for (const piece of pieces) await drawn(core, piece);
  return [stateOf(core), serializer.serialize()];
};
const inSmall = (...pieces: readonly (string | Buffer)[]): Promise<unknown> =>
  allOf(new Terminal({ ...small, allowProposedApi: true, logLevel: 'off' }), ...pieces);

const colour = fc.constantFrom(
  '\x1b[m',
  '\x1b[0m',
  '\x1b[31m',
  '\x1b[1;4m',
  '\x1b[48;5;20m',
  '\x1b[38:2::1:2:3m',
  '\x1b[22m',
);
const text = fc.constantFrom('a', 'word ', 'ü', '完了', '🎉', '\t', 'x'.repeat(15), '[31m', '€');
const lineEnd = fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r', '\r\r\n', '\n\r\n');
const line = fc
  .tuple(fc.array(fc.oneof({ weight: 4, arbitrary: text }, colour), { maxLength: 5 }), lineEnd)
  .map(([parts, end]) => parts.join('') + end);
/** What may stand before a flood: any state the screen can be in but another region, origin or screen. */
const before = fc.constantFrom(
  '',
  'half a line',
  '\x1b[3;5H',
  '\x1b[4h',
  '\x1b[?7l',
  '\x1b[20h',
  '\x1b7',
  '\x1b[41mred',
  'a\r\n'.repeat(20),
);
const after = fc.constantFrom('', 'x', '\x1b8here', '\x1b[2;2Hx', '\x1b[2J', '\x1b[5bx', '\n\n', '\x1b[1;3r\n\n');

describe('a flood of which the parser is spared the beginning (P-02)', () => {
  it('leads to the same screen, scrollback and colours', async () => {
    let spared = 0;
    await fc.assert(
      fc.asyncProperty(before, fc.array(line, { minLength: 30, maxLength: 90 }), after, async (first, flood, rest) => {
        const bytes = Buffer.from(flood.join(''), 'utf8');
        const pieces = flood.map((each) => Buffer.from(each, 'utf8'));
        const ofMany = pieces.every(isPlain) ? lastOf(pieces, lines) : null;
        const all = await inSmall(first, bytes, rest);
        for (const last of [lastOfOne(bytes), ofMany && Buffer.concat(ofMany)]) {
          if (last === null) continue;
          spared += 1;
          expect(last.length).toBeLessThan(bytes.length);
          expect(await inSmall(first, last, rest)).toEqual(all);
        }
      }),
      { numRuns: 400 },
    );
    expect(spared).toBeGreaterThan(100);
  });

  const plain = Array.from({ length: 60 }, (_, n) => `line ${n}\r\n`).join('');
  it.each([
    ['moves the cursor', '\x1b[2A'],
    ['clears', '\x1b[2J'],
    ['sets a region', '\x1b[2;3r'],
    ['goes to the other screen', '\x1b[?1049h'],
    ['is a title', '\x1b]0;title\x07'],
    ['is a link', '\x1b]8;;http://x\x07'],
    ['is a C1 control', '\x9b2A'],
    ['changes the letters', '\x0e'],
    ['steps back', '\b'],
    ['queries', '\x1b[>0;1m'],
    ['resets everything', '\x1bc'],
  ])('is parsed whole when something in it %s', (_what, sequence) => {
    expect(lastOfOne(Buffer.from(plain))).not.toBeNull();
    for (const at of [0, 80, plain.length]) {
      const bytes = Buffer.from(plain.slice(0, at) + sequence + plain.slice(at), 'utf8');
      expect(lastOfOne(bytes)).toBeNull();
    }
  });

  it('is parsed whole when its last lines do not begin at the first column, or there are too few', () => {
    expect(lastOfOne(Buffer.from('line\n'.repeat(60)))).toBeNull();
    expect(lastOfOne(Buffer.from('line\r\n'.repeat(lines)))).toBeNull();
    expect(lastOfOne(Buffer.from('no end'))).toBeNull();
  });

  it('carries colours on, to a bound', () => {
    const coloured = Buffer.from(`\x1b[1m\x1b[31m${plain}`);
    expect(lastOfOne(coloured)?.toString().startsWith('\x1b[1m\x1b[31mline ')).toBe(true);
    const many = Buffer.from('\x1b[31m'.repeat(limits.terminalColourBytes / 5 + 1) + plain);
    expect(lastOfOne(many)).toBeNull();
  });
});

describe('a screen in a flood', () => {
  const seen = async (pieces: readonly string[]): Promise<void> => {
    const screen = new Screen(
      size,
      () => undefined,
      () => undefined,
    );
    const sequences = new Sequences();
    const [all, late] = [newCore(), newCore()];
    for (const piece of pieces) {
      const bytes = sequences.take(Buffer.from(piece, 'utf8'));
      screen.write(bytes);
      await drawn(all, bytes);
    }
    await drawn(late, await new Promise<Buffer>((resolve) => screen.replay(resolve)));
    // Where a full scrollback begins in the middle of a line, the line before it is gone and so is the join.
    const inner = (core: Core): string => JSON.stringify(stateOf(core)).replaceAll('["+', '[" ');
    expect(inner(late)).toBe(inner(all));
  };
  const pieces = (line: (n: number) => string): string[] =>
    Array.from({ length: 60 }, (_, at) => Array.from({ length: 1000 }, (__, n) => line(at * 1000 + n)).join(''));
  const wide = 'The quick brown fox jumps over the lazy dog. '.repeat(2);

  it.each<[string, (n: number) => string]>([
    ['plain lines', (n) => `${n} ${wide}\r\n`],
    ['coloured lines', (n) => `\x1b[3${n % 8}m${n}\x1b[0m ${wide}\r\n`],
    ['lines that redraw themselves', (n) => `\r\x1b[K${n} ${wide}${n % 7 === 0 ? '\r\n' : ''}`],
    ['very long lines', (n) => `${n}${'x'.repeat(400)}\r\n`],
  ])('shows after %s what one that parsed all shows', async (_what, line) => {
    await seen(['prompt$ ', ...pieces(line), 'prompt$ ']);
  });

  it('inside another screen, a region or the origin shows the same too', async () => {
    for (const set of ['\x1b[?1049h', '\x1b[3;9r', '\x1b[3;9r\x1b[?6h'])
      await seen([set, ...pieces((n) => `${n} ${wide}\r\n`).slice(0, 25), '\x1b[?1049l\x1b[r']);
  });
});
