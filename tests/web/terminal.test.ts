/** What stands between a terminal's socket and its screen (P-02, P-03, T72 to T74), on the real parser. */
import { createRequire } from 'node:module';
import type { Terminal as Core } from '@xterm/headless';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limits } from '#protocol/limits.ts';
import type { TerminalServerFrame } from '#protocol/methods/terminal.ts';
import { boundedSize, TerminalWire, type TerminalSocket, type WireState } from '../../web/link/terminal.ts';
import { ansiRuns } from '../../web/markdown/ansi.ts';
import { DrawQueue } from '../../web/view/terminals/draw.ts';
import { again, clipboardText, guard, type GuardedParser } from '../../web/view/terminals/guard.ts';
import { rowSends, terminalAct, withSticky } from '../../web/view/terminals/keys.ts';
import { linksIn } from '../../web/view/terminals/links.ts';
import { asks, pasted } from '../../web/view/terminals/paste.ts';

const load = createRequire(import.meta.url);
const { Terminal } = load('@xterm/headless') as { Terminal: typeof Core };
const bytes = (length: number, fill = 0): Uint8Array => new Uint8Array(length).fill(fill);

/** Every question that the library answers by itself, and some that others do. */
const questions = [
  ...['\x1b[c', '\x1b[>c', '\x1b[=c', '\x1b[5n', '\x1b[6n', '\x1b[?6n', '\x1b[?15n', '\x1b[>q', '\x1b[18t', '\x1b[21t'],
  ...['\x1b[?2004$p', '\x1b[4$p', '\x1bP$qm\x1b\\', '\x1bP$q"p\x1b\\', '\x1bP+q544e\x1b\\', '\x1b]52;c;?\x07'],
  ...['\x1b]4;1;?\x07', '\x1b]10;?\x07', '\x1b]11;?\x1b\\', '\x1b]12;?\x07', '\x1b[x', '\x1b[?u', '\x05', '\x1bZ'],
];

const guarded = (answers: boolean) => {
  const terminal = new Terminal({ cols: 40, rows: 10, scrollback: 50, allowProposedApi: true, logLevel: 'off' });
  const said: string[] = [];
  const offered: string[] = [];
  const counts: [string, number][] = [];
  terminal.onData((data) => said.push(data));
  guard(terminal.parser as unknown as GuardedParser, {
    size: () => ({ columns: terminal.cols, rows: terminal.rows }),
    answers: () => answers,
    offer: (text) => offered.push(text),
    again: (final, count) => {
      counts.push([final, count]);
      again(terminal, final, count);
    },
  });
  const write = (text: string): Promise<void> => new Promise((resolve) => terminal.write(text, resolve));
  const lines = (): string[] =>
    Array.from({ length: terminal.rows }, (_, at) => terminal.buffer.active.getLine(at)?.translateToString(true) ?? '');
  return { terminal, said, offered, counts, write, lines };
};

describe('what a program may make a terminal do (T72, T73, T74)', () => {
  it('answers no question where nobody may be answered', async () => {
    const { said, offered, write } = guarded(false);
    for (const question of questions) await write(question);
    await write(`\x1b]52;c;${btoa('stolen')}\x07`);
    expect(said).toEqual([]);
    expect(offered).toEqual([]);
  });

  it('answers a live terminal that has the keyboard, so that the test above can fail', async () => {
    const { said, write } = guarded(true);
    for (const question of questions) await write(question);
    expect(said.length).toBeGreaterThanOrEqual(8);
    expect(said.join('')).not.toContain('52;');
  });

  it.each(
    Array.from('STLMB', (final) => [final, 10] as const).concat(Array.from('@PXIZC', (final) => [final, 40] as const)),
  )('does CSI %s as often as the screen is large: %i', async (final, most) => {
    const { counts, write } = guarded(false);
    await write(`ab\x1b[${2 ** 31 - 1}${final}\x1b[3${final}`);
    expect(counts).toEqual([[final, most]]);
  });

  it('repeats a character over the screen at most', async () => {
    const { counts, write, terminal } = guarded(false);
    await write(`x\x1b[${2 ** 31 - 1}b`);
    expect(counts).toEqual([['b', 400]]);
    expect(terminal.buffer.active.length).toBeLessThanOrEqual(60);
  });

  it.each(Array.from('STLM@PXIZCB'))('draws a clamped CSI %s as one without a clamp does', async (final) => {
    const draw = async (clamp: boolean, count: number): Promise<string[]> => {
      const plain = clamp ? guarded(false) : null;
      const terminal = plain?.terminal ?? new Terminal({ cols: 40, rows: 10, scrollback: 50, allowProposedApi: true });
      const text = `${Array.from({ length: 10 }, (_, at) => `line ${at}`).join('\r\n')}\x1b[4;5H\x1b[${count}${final}!`;
      await new Promise<void>((resolve) => terminal.write(text, resolve));
      const { active } = terminal.buffer;
      return Array.from({ length: active.length }, (_, at) => active.getLine(at)?.translateToString(true) ?? '').slice(
        -10,
      );
    };
    expect(await draw(true, 77)).toEqual(await draw(false, 40));
  });

  it('offers text for the clipboard, and nothing else', () => {
    expect(clipboardText(`c;${btoa('words')}`)).toBe('words');
    expect(clipboardText(`;${btoa(String.fromCharCode(...new TextEncoder().encode('naïve')))}`)).toBe('naïve');
    for (const data of ['c;?', 'c;', 'c;!!!', `c;${btoa('\xff\xfe')}`, `c;${'A'.repeat(limits.terminalSequenceBytes)}`])
      expect(clipboardText(data), data.slice(0, 20)).toBeNull();
  });

  it('answers nothing from a transcript, where output is only text (T73)', () => {
    for (const question of questions)
      expect(
        ansiRuns(`a${question}b`)
          .map(({ text }) => text)
          .join(''),
      ).toMatch(/^a[u]?b$/);
  });
});

describe('what is pasted (P-03, T74)', () => {
  it('never ends its own brackets', () => {
    for (const text of ['a\x1b[201~b', 'a\x1b[20\x1b[201~1~b', 'a\x9b201~b'])
      expect(pasted(text).text).not.toMatch(/[\x1b\x9b]/);
  });
  it('keeps tabs and lines, and says what it left out', () =>
    expect(pasted('a\tb\r\nc\rd\x00\x07')).toEqual({ text: 'a\tb\nc\nd', dropped: 2, lines: ['a\tb', 'c', 'd'] }));
  it('leaves no control character, whatever is pasted', () =>
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(pasted(text).text).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
      }),
    ));
  it('asks about several lines, and about one that would run at once, unless they are bracketed', () => {
    expect(asks(pasted('ls'), false)).toBe(false);
    expect(asks(pasted('ls\n'), false)).toBe(true);
    expect(asks(pasted('a\nb'), false)).toBe(true);
    expect(asks(pasted('a\nb'), true)).toBe(false);
  });
});

describe('keys', () => {
  const press = (code: string, held: string, key = ''): Parameters<typeof terminalAct>[0] => ({
    code,
    key,
    ctrlKey: held.includes('c'),
    shiftKey: held.includes('s'),
    altKey: held.includes('a'),
    metaKey: held.includes('m'),
  });
  it('leaves every key of a shell to the shell', () => {
    for (const one of [press('KeyC', 'c'), press('KeyF', 'c'), press('KeyK', 'c'), press('Escape', '', 'Escape')])
      expect(terminalAct(one, false)).toBeNull();
    expect(terminalAct(press('KeyF', 'c'), true)).toBeNull();
  });
  it('knows its own', () => {
    expect(terminalAct(press('KeyC', 'cs'), false)).toBe('copy');
    expect(terminalAct(press('KeyV', 'cs'), false)).toBe('paste');
    expect(terminalAct(press('KeyF', 'cs'), false)).toBe('find');
    expect(terminalAct(press('KeyF', 'm'), true)).toBe('find');
    expect(terminalAct(press('Escape', 'cs', 'Escape'), false)).toBe('leave');
  });
  it('puts the modifiers of the row on the next character alone', () => {
    const ctrl = { ctrl: true, alt: false };
    expect(withSticky('c', ctrl)).toBe('\x03');
    expect(withSticky('C', ctrl)).toBe('\x03');
    expect(withSticky('[', ctrl)).toBe('\x1b');
    expect(withSticky(' ', ctrl)).toBe('\0');
    expect(withSticky('é', ctrl)).toBe('é');
    expect(withSticky('several', ctrl)).toBe('several');
    expect(withSticky('b', { ctrl: false, alt: true })).toBe('\x1bb');
  });
  it('sends the arrows that the program asked for', () => {
    const none = { ctrl: false, alt: false };
    expect(rowSends('up', false, none)).toBe('\x1b[A');
    expect(rowSends('up', true, none)).toBe('\x1bOA');
    expect(rowSends('left', true, { ctrl: true, alt: false })).toBe('\x1b[1;5D');
    expect(rowSends('ctrl', false, none)).toBeNull();
    expect(rowSends('|', false, none)).toBe('|');
  });
});

it('finds addresses of the web, without what belongs to the sentence', () => {
  const found = (line: string): string[] => linksIn(line).map(({ text }) => text);
  expect(found('see https://example.org/a(b)?x=1, or (http://127.0.0.1:80/).')).toEqual([
    'https://example.org/a(b)?x=1',
    'http://127.0.0.1:80/',
  ]);
  expect(found('javascript:alert(1) file:///etc/passwd https://user@host.test/')).toEqual([]);
});

it('keeps a size within the bounds', () => {
  expect(boundedSize(80.9, 24.2)).toEqual({ columns: 80, rows: 24 });
  expect(boundedSize(3, 0.5)).toEqual({ columns: limits.terminalColumnsMin, rows: 24 });
  expect(boundedSize(1e6, 1e6)).toEqual({ columns: limits.terminalColumns, rows: limits.terminalRows });
  expect(boundedSize(NaN, NaN)).toEqual({ columns: 80, rows: 24 });
});

describe('the queue of what is drawn (P-02)', () => {
  const queue = () => {
    const written: { bytes: Uint8Array; drawn: () => void }[] = [];
    const acks: number[] = [];
    const yields: (() => void)[] = [];
    const made = new DrawQueue({
      write: (data, drawn) => written.push({ bytes: data, drawn }),
      ack: (count) => acks.push(count),
      yield: (then) => yields.push(then),
    });
    return { made, written, acks, yields };
  };

  it('writes 64 KiB at most, and the next only when the page had its turn', () => {
    const { made, written, yields } = queue();
    made.push(bytes(150 * 1024));
    expect(written.map((one) => one.bytes.length)).toEqual([64 * 1024]);
    written[0]?.drawn();
    expect(written).toHaveLength(1);
    yields.shift()?.();
    expect(written).toHaveLength(2);
    expect(made.waiting).toBe(22 * 1024);
  });

  it('draws an echo at once', () => {
    const { made, written, yields } = queue();
    made.push(bytes(1));
    written[0]?.drawn();
    made.push(bytes(1));
    expect(written).toHaveLength(2);
    expect(yields).toEqual([]);
  });

  it('acknowledges what was drawn, not what came, and never later than the bridge waits for', () => {
    const { made, written, acks, yields } = queue();
    for (let at = 0; at < 40; at += 1) made.push(bytes(8 * 1024));
    expect(acks).toEqual([]);
    for (let at = 0; at < written.length; at += 1) {
      written[at]?.drawn();
      yields.shift()?.();
    }
    expect(acks.at(-1)).toBe(320 * 1024);
    expect(Math.max(...acks.map((ack, at) => ack - (acks[at - 1] ?? 0)))).toBeLessThanOrEqual(limits.terminalAckBytes);
  });

  it('drops what a replay makes old, counts from behind it, and runs steps where they stand', () => {
    const { made, written, acks, yields } = queue();
    const order: string[] = [];
    made.push(bytes(70 * 1024, 1));
    made.replay(
      bytes(10, 2),
      () => order.push('before'),
      () => order.push('after'),
    );
    made.push(bytes(40 * 1024, 3));
    expect(order).toEqual([]);
    written[0]?.drawn();
    yields.shift()?.();
    expect(order).toEqual(['before']);
    expect(written[1]?.bytes[0]).toBe(2);
    written[1]?.drawn();
    expect(order).toEqual(['before', 'after']);
    expect(written[2]?.bytes[0]).toBe(3);
    written[2]?.drawn();
    expect(acks).toEqual([40 * 1024]);
  });
});

describe('the socket of a terminal (P-02)', () => {
  class Fake implements TerminalSocket {
    binaryType: BinaryType = 'blob';
    readyState = 0;
    readonly sent: (string | Uint8Array)[] = [];
    onopen: (() => void) | null = null;
    onmessage: ((event: { readonly data: unknown }) => void) | null = null;
    onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null = null;
    send(data: string | Uint8Array): void {
      this.sent.push(data);
    }
    close(): void {
      this.readyState = 3;
    }
    open(): void {
      this.readyState = 1;
      this.onopen?.();
    }
    frame(frame: TerminalServerFrame): void {
      this.onmessage?.({ data: JSON.stringify(frame) });
    }
    lost(code: number, reason = ''): void {
      this.readyState = 3;
      this.onclose?.({ code, reason });
    }
  }
  const wired = (tickets: (string | null)[] = []) => {
    const sockets: Fake[] = [];
    const states: WireState[] = [];
    const came: [number, boolean][] = [];
    const timers: { ms: number; then: () => void }[] = [];
    let given = 0;
    const wire = new TerminalWire(
      {
        ticket: async () => (given < tickets.length ? (tickets[given++] ?? null) : `ticket-${(given += 1)}`),
        connect: () => {
          const socket = new Fake();
          sockets.push(socket);
          return socket;
        },
        size: () => ({ columns: 90, rows: 30 }),
        timer: (ms, then) => {
          const timer = { ms, then };
          timers.push(timer);
          return () => void timers.splice(timers.indexOf(timer), 1);
        },
      },
      {
        state: (state) => states.push(state),
        frame: () => undefined,
        bytes: (data, replay) => came.push([data.length, replay]),
      },
    );
    const attach = async (): Promise<Fake> => {
      const socket = sockets.at(-1);
      if (socket === undefined) throw new Error('no socket');
      socket.open();
      await Promise.resolve();
      await Promise.resolve();
      return socket;
    };
    const replay: TerminalServerFrame = { type: 'replay', size: { columns: 90, rows: 30 }, owner: true, bytes: 3 };
    return { wire, sockets, states, came, timers, attach, replay };
  };

  it('sends the ticket and the measured size first, and takes the screen before the output', async () => {
    const { wire, states, came, attach, replay } = wired();
    wire.wake();
    const socket = await attach();
    expect(socket.binaryType).toBe('arraybuffer');
    expect(JSON.parse(String(socket.sent[0]))).toEqual({
      type: 'attach',
      ticket: 'ticket-1',
      size: { columns: 90, rows: 30 },
    });
    socket.frame(replay);
    socket.onmessage?.({ data: bytes(3).buffer });
    socket.onmessage?.({ data: bytes(5).buffer });
    expect(came).toEqual([
      [3, true],
      [5, false],
    ]);
    expect(states).toEqual(['connecting', 'live']);
  });

  it('keeps no key while it is not connected', async () => {
    const { wire, attach, replay } = wired();
    wire.wake();
    const socket = await attach();
    expect(wire.input(bytes(1) as Uint8Array<ArrayBuffer>)).toBe(false);
    socket.frame(replay);
    expect(socket.sent).toHaveLength(1);
    expect(wire.input(bytes(40 * 1024) as Uint8Array<ArrayBuffer>)).toBe(true);
    expect(socket.sent.slice(1).map((sent) => sent.length)).toEqual([16384, 16384, 8192]);
    socket.lost(1006);
    expect(wire.input(bytes(1) as Uint8Array<ArrayBuffer>)).toBe(false);
  });

  it('waits longer each time, at once when woken, and anew after a replay', async () => {
    const { wire, sockets, states, timers, attach, replay } = wired();
    wire.wake();
    const waited: number[] = [];
    for (let at = 0; at < 8; at += 1) {
      sockets.at(-1)?.lost(1006);
      const timer = timers.pop();
      waited.push(timer?.ms ?? -1);
      timer?.then();
    }
    expect(waited).toEqual([250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
    (await attach()).frame(replay);
    sockets.at(-1)?.lost(1006);
    expect(timers.map(({ ms }) => ms)).toEqual([250]);
    wire.wake();
    expect(timers).toEqual([]);
    expect(sockets).toHaveLength(10);
    wire.wake();
    expect(sockets).toHaveLength(10);
    expect(states.at(-1)).toBe('connecting');
  });

  it('is gone for good when the bridge says so, and only then', async () => {
    const { wire, sockets, states, timers, attach, replay } = wired();
    wire.wake();
    (await attach()).frame(replay);
    sockets.at(-1)?.lost(1013, 'slow');
    expect(states.at(-1)).toBe('waiting');
    timers.pop()?.then();
    sockets.at(-1)?.lost(1000, 'gone');
    expect(states.at(-1)).toBe('gone');
    expect(timers).toEqual([]);
    wire.wake();
    expect(sockets).toHaveLength(2);
  });

  it('tries again where no ticket was to be had, or what came was no frame', async () => {
    const { wire, sockets, states, timers, attach, replay } = wired([null]);
    wire.wake();
    await attach();
    expect(states.at(-1)).toBe('waiting');
    timers.pop()?.then();
    const socket = await attach();
    socket.frame(replay);
    socket.onmessage?.({ data: '{"type":"other"}' });
    expect(states.at(-1)).toBe('waiting');
    // What is left behind says nothing more.
    socket.lost(1006);
    expect(timers).toHaveLength(1);
    expect(sockets).toHaveLength(2);
  });

  it('says a size once', async () => {
    const { wire, attach, replay } = wired();
    wire.wake();
    const socket = await attach();
    socket.frame(replay);
    wire.resize({ columns: 90, rows: 30 });
    wire.resize({ columns: 91, rows: 30 });
    wire.resize({ columns: 91, rows: 30 });
    expect(socket.sent.slice(1)).toEqual(['{"type":"resize","size":{"columns":91,"rows":30}}']);
  });
});
