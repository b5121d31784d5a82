/** A real bridge in a process of its own, on a free port, with its own state; ended by pid and removed. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '#protocol/client.ts';
import { connectControl, type Control } from '../../bridge/cli/control.ts';
import { stateDirectories } from '../../bridge/ledger/paths.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const main = join(root, 'bridge', 'main.ts');

export interface Ready {
  readonly origin: string;
  readonly launchUrl: string;
  readonly pid: number;
}

export const temporary = (name: string): { path: string; remove(): void } => {
  const path = mkdtempSync(join(tmpdir(), `countersign-${name}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }) };
};

/** Runs a verb to its end. */
export const bridge = (
  args: readonly string[],
  options: { env?: Record<string, string>; input?: string } = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> =>
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
  #child: ChildProcess | null = null;
  #control: Control | null = null;
  ready: Ready = { origin: '', launchUrl: '', pid: 0 };
  log = '';

  constructor(state: string, args: readonly string[] = ['--practice'], env: Record<string, string> = {}) {
    this.state = state;
    this.#args = args;
    this.#env = { COUNTERSIGN_PRACTICE_PACE: '0', COUNTERSIGN_LOG: '1', ...env };
  }

  /** `port` keeps the origin over a restart. */
  async start(port = 0): Promise<this> {
    const child = spawn(
      process.execPath,
      [main, 'start', '--port', String(port), '--state', this.state, '--json', ...this.#args],
      {
        cwd: root,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...this.#env },
      },
    );
    this.#child = child;
    child.stderr?.on('data', (chunk: Buffer) => (this.log += chunk.toString()));
    this.ready = await new Promise<Ready>((resolve, reject) => {
      let out = '';
      child.stdout?.on('data', (chunk: Buffer) => {
        out += chunk.toString();
        const line = out.split('\n')[0];
        if (out.includes('\n') && line !== undefined) resolve(JSON.parse(line) as Ready);
      });
      child.once('exit', (code) => reject(new Error(`the bridge ended with ${code}: ${this.log}`)));
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

  dropClient(): void {
    this.#control?.close();
    this.#control = null;
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
}
