import { describe, expect, it } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { Screen } from '../../bridge/terminals/screen.ts';
import { Sequences } from '../../bridge/terminals/sequences.ts';
import { drawn, newCore, size, stateOf } from './parts.ts';

const replayOf = (screen: Screen): Promise<Buffer> => new Promise((resolve) => screen.replay(resolve));

const newScreen = (at = size): Screen =>
  new Screen(
    at,
    () => undefined,
    () => undefined,
  );

/** Reattaches after `before`, then goes on with `after`; the page must look as one that saw it all. */
const reattached = async (before: string | Buffer, after: string | Buffer = ''): Promise<void> => {
  const screen = newScreen(size);
  const sequences = new Sequences();
  const [all, late] = [newCore(), newCore()];
  const first = sequences.take(Buffer.from(before as string));
  screen.write(first);
  await drawn(late, await replayOf(screen));
  const rest = sequences.take(Buffer.from(after as string));
  await drawn(late, rest);
  await drawn(all, first);
  await drawn(all, rest);
  expect(stateOf(late)).toEqual(stateOf(all));
};

describe('a replay', () => {
  it('keeps a surrogate pair behind 65,535 letters whole (case 59)', () => reattached('a'.repeat(65_535) + '😀', 'b'));

  it('is right wherever the bytes were cut (case 59)', async () => {
    const bytes = Buffer.from('café — 🎉 完了\r\n', 'utf8');
    for (let cut = 0; cut <= bytes.length; cut += 1) await reattached(bytes.subarray(0, cut), bytes.subarray(cut));
  });

  it('is right when it came in the middle of a sequence', async () => {
    const bytes = Buffer.from('one \x1b[1;31mtwo\x1b[0m \x1b]0;title\x07three \x1b[2;10Hfour', 'utf8');
    for (let cut = 0; cut <= bytes.length; cut += 1) await reattached(bytes.subarray(0, cut), bytes.subarray(cut));
  });

  it.each([
    ['colours, styles and wide letters', '\x1b[1;4;38;2;10;20;30m完\x1b[48;5;200m了\x1b[0m x'.repeat(40), '\x1b[mend'],
    ['scrollback', Array.from({ length: 6000 }, (_, line) => `line ${line}\r\n`).join(''), 'next'],
    ['a wrapped line', 'w'.repeat(500), 'w'.repeat(100)],
    ['a full last column', 'x'.repeat(80), 'y'],
    ['the alternate screen', 'shell\r\n\x1b[?1049h\x1b[H\x1b[2Jeditor\x1b[5;5Hhere', '\x1b[?1049lback'],
    ['bracketed paste, application cursor and keypad', '\x1b[?2004h\x1b[?1h\x1b=', 'x'],
    ['mouse reports', '\x1b[?1002h\x1b[?1006h', 'x'],
    ['a scroll region', '\x1b[5;10r\x1b[10;3Hat its end', '\n\n\nbelow'],
    ['the origin inside a region', '\x1b[5;10r\x1b[?6h\x1b[2;4Hx', 'y\x1b[1;1Hz'],
    ['insert mode and no wrapping', 'abc\x1b[H\x1b[4h\x1b[?7l', 'XY'],
    ['a cursor in the middle', 'one\r\ntwo\r\nthree\x1b[2;2H', 'X'],
  ])('restores %s', (_, before, after) => reattached(before, after));

  it('restores a hidden cursor, its style and the encoding of mouse reports', async () => {
    const screen = newScreen(size);
    screen.write(Buffer.from('\x1b[?25l\x1b[5 q\x1b[?1003h\x1b[?1006h'));
    const late = newCore();
    await drawn(late, await replayOf(screen));
    const inside = (late as unknown as { _core: Record<string, Record<string, unknown>> })._core;
    expect(inside['coreService']?.['isCursorHidden']).toBe(true);
    expect(inside['coreMouseService']?.['activeEncoding']).toBe('SGR');
    expect(inside['coreMouseService']?.['activeProtocol']).toBe('ANY');
    expect(inside['coreService']?.['decPrivateModes']).toMatchObject({ cursorStyle: 'bar', cursorBlink: true });
  });

  it('replaces what a page shows already', async () => {
    const screen = newScreen(size);
    screen.write(Buffer.from('new'));
    const late = newCore();
    await drawn(late, 'old\r\n'.repeat(300));
    await drawn(late, await replayOf(screen));
    expect(late.buffer.active.length).toBe(size.rows);
    expect(late.buffer.active.getLine(0)?.translateToString(true)).toBe('new');
  });

  it('holds no query, and asks none of the page that draws it (T73)', async () => {
    const screen = newScreen(size);
    const queries = '\x1b[c\x1b[>c\x1b[5n\x1b[6n\x1b[?6n\x1b[?2026$p\x1bP$q q\x1b\\\x1b[14t\x1b]10;?\x07\x1b]4;1;?\x07';
    screen.write(Buffer.from(`before ${queries}after`));
    const late = newCore();
    let answered = '';
    late.onData((text) => (answered += text));
    await drawn(late, await replayOf(screen));
    expect(answered).toBe('');
    expect(late.buffer.active.getLine(0)?.translateToString(true)).toBe('before after');
    // The same bytes, live, are asked of a page: the test can fail.
    await drawn(late, queries);
    expect(answered).not.toBe('');
  });

  it('stays within its bound, with as much scrollback as fits', async () => {
    const wide = { columns: limits.terminalColumns, rows: limits.terminalRows };
    const screen = newScreen(wide);
    const line = Array.from({ length: wide.columns }, (_, at) => `\x1b[38;2;${at % 256};${(at * 7) % 256};9mx`).join(
      '',
    );
    for (let row = 0; row < 900; row += 1) screen.write(Buffer.from(`${line}\r\n`));
    const replay = await replayOf(screen);
    expect(replay.length).toBeLessThanOrEqual(limits.terminalReplayBytes);
    expect(replay.length).toBeGreaterThan(limits.terminalReplayBytes / 4);
  });
});
