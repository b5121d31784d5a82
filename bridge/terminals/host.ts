/**
 * The process of one terminal: it alone holds the master of the pseudo-terminal, and the memory of a parser that reads
 * what programs write (L-32). Speaks frames over stdin and stdout; the end of stdin, also by SIGKILL of the bridge, ends
 * the shell and everything under it. Started by `terminal.ts` alone, in a session of its own, with nothing but the
 * marker, and where its own code is kept compiled, in its environment.
 */
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '#protocol/limits.ts';
import type { TerminalSize } from '#protocol/methods/terminal.ts';
import { closeInherited } from '../agents/descriptors.ts';
import { terminalMarkerName } from '../agents/procfs.ts';
import { killTree, signal } from '../agents/tree.ts';
import { encode, encodeJson, FrameReader, headOf, kinds, type OpenMessage } from './frames.ts';
import { Screen } from './screen.ts';
import { Sequences } from './sequences.ts';

/** As much of node-pty as is used; its own types are declared under another name. */
interface Pty {
  readonly pid: number;
  readonly onData: (each: (bytes: Buffer) => void) => unknown;
  readonly onExit: (once: (exit: { exitCode: number; signal?: number }) => void) => unknown;
  write(bytes: Buffer): void;
  resize(columns: number, rows: number): void;
  pause(): void;
  resume(): void;
}
interface Library {
  spawn(
    program: string,
    args: readonly string[],
    options: { name: string; cols: number; rows: number; cwd: string; env: object; encoding: null },
  ): Pty;
}

const marker = process.env[terminalMarkerName];
if (marker === undefined) process.exit(2);
closeInherited([]);
// A closing terminal or a TERM for the group must not take the one who cleans up.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => undefined);
process.stdout.on('error', () => undefined); // the bridge is gone: the end of stdin follows

/** Why the program has to wait. */
type Reason = 'page' | 'parser' | 'pipe' | 'replay';

class Live {
  readonly #pty: Pty;
  readonly #screen: Screen;
  readonly #sequences = new Sequences();
  readonly #reasons = new Set<Reason>();
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  #collected: Buffer[] = [];
  #collectedBytes = 0;
  #isScheduled = false;
  #flushedAt = 0;
  #replays = 0;
  #title: string | null = null;

  constructor(pty: Pty, size: TerminalSize) {
    this.#pty = pty;
    this.#screen = new Screen(
      size,
      (title) => this.#titled(title),
      (isBehind) => this.#hold('parser', isBehind),
    );
    pty.onData((bytes) => this.#read(bytes));
    this.exited = new Promise((resolve) =>
      pty.onExit(({ exitCode, signal: number }) => {
        this.#flush();
        const by = Object.entries(constants.signals).find(([, each]) => each === number)?.[0] ?? null;
        resolve({ code: by === null ? exitCode : null, signal: by });
      }),
    );
  }

  get pid(): number {
    return this.#pty.pid;
  }

  input(bytes: Buffer): void {
    this.#pty.write(bytes);
  }

  resize(size: TerminalSize): void {
    this.#flush();
    this.#pty.resize(size.columns, size.rows);
    this.#screen.resize(size);
    send(encodeJson(kinds.resize, size));
  }

  wait(isWaiting: boolean): void {
    this.#hold('page', isWaiting);
  }

  /** Nothing is read or sent between the state and its frame, so that what follows is exactly what it lacks. */
  replay(id: number): void {
    this.#flush();
    this.#replays += 1;
    this.#hold('replay', true);
    this.#screen.replay((bytes) => {
      const number = Buffer.alloc(4);
      number.writeUInt32BE(id);
      send(encode(kinds.replay, Buffer.concat([number, bytes])));
      this.#replays -= 1;
      if (this.#replays > 0) return;
      this.#hold('replay', false);
      this.#flush();
    });
  }

  /**
   * One read brings 4 KiB at most, and each piece costs every process on its way: what follows another closely goes on
   * with what follows it. The first goes on at once.
   */
  #read(bytes: Buffer): void {
    this.#collected.push(bytes);
    this.#collectedBytes += bytes.length;
    if (this.#collectedBytes >= limits.terminalPieceBytes) return this.#flush();
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const go = (): void => {
      this.#isScheduled = false;
      this.#flush();
    };
    if (performance.now() - this.#flushedAt > limits.terminalPieceMs) setImmediate(go);
    else setTimeout(go, limits.terminalPieceMs);
  }

  #flush(): void {
    if (this.#replays > 0 || this.#collected.length === 0) return;
    const bytes = this.#sequences.take(Buffer.concat(this.#collected));
    this.#collected = [];
    this.#collectedBytes = 0;
    this.#flushedAt = performance.now();
    if (bytes.length === 0) return;
    // Behind its head, not copied to it.
    process.stdout.cork();
    send(headOf(kinds.output, bytes.length));
    send(bytes);
    process.stdout.uncork();
    if (process.stdout.writableLength > limits.terminalPipeBytes && !this.#reasons.has('pipe')) {
      this.#hold('pipe', true);
      process.stdout.once('drain', () => this.#hold('pipe', false));
    }
    this.#screen.write(bytes);
  }

  #hold(reason: Reason, isHolding: boolean): void {
    const was = this.#reasons.size > 0;
    if (isHolding) this.#reasons.add(reason);
    else this.#reasons.delete(reason);
    const is = this.#reasons.size > 0;
    if (is && !was) this.#pty.pause();
    if (was && !is) this.#pty.resume();
  }

  #titled(title: string): void {
    const isWaiting = this.#title !== null;
    this.#title = title.slice(0, limits.terminalTitleUnits * 4);
    if (isWaiting) return;
    setTimeout(() => {
      send(encode(kinds.title, Buffer.from(this.#title ?? '', 'utf8')));
      this.#title = null;
    }, limits.terminalTitleMs).unref();
  }
}

const send = (frame: Buffer): void => void process.stdout.write(frame);
/** Leaves once the last frame is in the pipe. */
const leave = (frame: Buffer): void => void process.stdout.write(frame, () => process.exit(0));

let live: Live | null = null;
let isEnding = false;

/** Hangs up, as a closed terminal does, and then kills what is left. */
const end = async (): Promise<void> => {
  if (isEnding) return;
  isEnding = true;
  if (live !== null) {
    signal(live.pid, 'SIGHUP');
    await Promise.race([live.exited, sleep(limits.terminalHangupMs)]);
  }
  await killTree({ marker, group: live?.pid });
  process.exit(0);
};

const ended = async (exit: { code: number | null; signal: string | null }, group: number): Promise<void> => {
  if (isEnding) return;
  isEnding = true;
  // Nothing outlives its terminal: what was left in the background has nobody to show itself to.
  await killTree({ marker, group });
  leave(encodeJson(kinds.exit, exit));
};

const fail = (why: 'moved' | 'library' | 'program', error: unknown): void => {
  isEnding = true;
  const message = error instanceof Error ? error.message.slice(0, 500) : why;
  leave(encodeJson(kinds.failed, { why, message }));
};

const enter = (cwd: OpenMessage['cwd']): void => {
  process.chdir(cwd.path);
  const stat = statSync('.', { bigint: true });
  if (String(stat.dev) !== cwd.dev || String(stat.ino) !== cwd.ino) throw new Error('another directory is there now');
};

const open = ({ program, env, cwd, size }: OpenMessage): void => {
  try {
    enter(cwd);
  } catch (error) {
    return fail('moved', error);
  }
  let library: Library;
  try {
    library = createRequire(import.meta.url)('node-pty') as Library;
  } catch (error) {
    return fail('library', error);
  }
  try {
    // '.' is the directory this process is in, whatever its path leads to by now.
    const { columns: cols, rows } = size;
    const pty = library.spawn(program, [], { name: 'xterm-256color', cols, rows, cwd: '.', env, encoding: null });
    const started = new Live(pty, size);
    live = started;
    void started.exited.then((exit) => ended(exit, started.pid));
    send(encodeJson(kinds.opened, {}));
  } catch (error) {
    fail('program', error);
  }
};

const json = (body: Buffer): unknown => JSON.parse(body.toString('utf8'));
const reader = new FrameReader((kind, body) => {
  if (isEnding) return;
  if (kind === kinds.open && live === null) open(json(body) as OpenMessage);
  else if (kind === kinds.input) live?.input(Buffer.from(body));
  else if (kind === kinds.resize) live?.resize(json(body) as TerminalSize);
  else if (kind === kinds.replay) live?.replay((json(body) as { id: number }).id);
  else if (kind === kinds.wait || kind === kinds.go) live?.wait(kind === kinds.wait);
});
process.stdin.on('data', (chunk: Buffer) => reader.push(chunk));
process.stdin.on('error', () => undefined); // 'close' follows
process.stdin.on('close', () => void end());
