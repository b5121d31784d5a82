/** A real bridge in a process of its own, on a free port, with its own state; ended by pid and removed. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '#protocol/client.ts';
import { connectControl, type Control } from '../../bridge/cli/control.ts';
import { stateDirectories } from '../../bridge/ledger/paths.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
export const main = join(root, 'bridge', 'main.ts');

export interface Ready {
  readonly origin: string;
  readonly launchUrl: string;
  readonly pid: number;
}
export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export const temporary = (name: string): { path: string; remove(): void } => {
  const path = realpathSync(mkdtempSync(join(tmpdir(), `countersign-${name}-`)));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }) };
};

/** Runs a verb to its end. */
export const bridge = (
  args: readonly string[],
  options: { env?: Record<string, string>; input?: string } = {},
): Promise<Ran> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...args], {
      cwd: root,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, COUNTERSIGN_PRACTICE_PACE: '0', ...options.env },
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdin.end(options.input ?? '');
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });

export class Bridge {
  readonly state: string;
  readonly #args: readonly string[];
  readonly #env: Record<string, string>;
  /** The checkout that runs; another one is another version. */
  root = root;
  #child: ChildProcess | null = null;
  #control: Control | null = null;
  #others: Control[] = [];
  ready: Ready = { origin: '', launchUrl: '', pid: 0 };
  log = '';

  constructor(state: string, args: readonly string[] = ['--practice'], env: Record<string, string> = {}) {
    this.state = state;
    this.#args = args;
    this.#env = { COUNTERSIGN_PRACTICE_PACE: '0', COUNTERSIGN_LOG: '1', ...env };
  }

  /** `port` keeps the origin over a restart. @throws Error with its code and what it said, when it does not start */
  async start(port = 0): Promise<this> {
    const args = [
      join(this.root, 'bridge', 'main.ts'),
      'start',
      '--port',
      String(port),
      '--state',
      this.state,
      '--json',
      ...this.#args,
    ];
    const child = spawn(process.execPath, args, {
      cwd: this.root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.#env },
    });
    this.#child = child;
    child.stderr.on('data', (chunk: Buffer) => (this.log += chunk.toString()));
    this.ready = await new Promise<Ready>((resolve, reject) => {
      let out = '';
      child.stdout.on('data', (chunk: Buffer) => {
        out += chunk.toString();
        const line = out.split('\n')[0];
        if (out.includes('\n') && line !== undefined) resolve(JSON.parse(line) as Ready);
      });
      child.once('close', (code) => reject(new Error(`the bridge ended with ${code}: ${this.log}`)));
    });
    return this;
  }

  get port(): number {
    return Number(new URL(this.ready.origin).port);
  }

  /** A client over the private socket, as the CLI has it. */
  async client(): Promise<Client> {
    this.#control ??= await connectControl(stateDirectories(this.state));
    return this.#control.client;
  }

  /** One more client, with a connection of its own. */
  async another(): Promise<Client> {
    const control = await connectControl(stateDirectories(this.state));
    this.#others.push(control);
    return control.client;
  }

  dropClient(): void {
    for (const control of [this.#control, ...this.#others]) control?.close();
    this.#control = null;
    this.#others = [];
  }

  async #gone(): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    await new Promise((resolve) => child.once('exit', resolve));
  }

  /** SIGKILL: nothing is said, nothing is flushed. */
  async kill(): Promise<void> {
    this.dropClient();
    this.#child?.kill('SIGKILL');
    await this.#gone();
  }

  async stop(): Promise<void> {
    this.dropClient();
    this.#child?.kill('SIGTERM');
    await this.#gone();
  }

  /** Of the bridge process, now. */
  residentBytes(): number {
    const line = /^VmRSS:\s+(\d+) kB/m.exec(readProcess(this.ready.pid, 'status') ?? '');
    return Number(line?.[1] ?? 0) * 1024;
  }
}

/** A file of /proc/<pid>, or null when there is no such process. */
export const readProcess = (pid: number, file: string): string | null => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return null;
  }
};

/** Whether the process runs; a zombie does not. */
export const isAlive = (pid: number): boolean => {
  const status = readProcess(pid, 'status');
  return status !== null && !/^State:\s+Z/m.test(status);
};

/** Processes that have this word on their command line. */
export const withArgument = (word: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && isAlive(pid))
    .filter((pid) => readProcess(pid, 'cmdline')?.split('\0').includes(word) === true);
