/** What the parts of the bench stand on: states in a directory of their own, bridges, one browser; all ended and removed. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from '@playwright/test';
import { Bridge } from '../bridge/process.ts';
import { openBrowser } from './browser.ts';
import { servePages, type Bare } from './floors.ts';
import { seed, type Seeded, type Seeding } from './seed.ts';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const mainFile = join(root, 'bridge', 'main.ts');

export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
};

export class Ground {
  readonly directory = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  readonly #bridges: Bridge[] = [];
  #browser: Promise<Browser> | null = null;
  #pages: Promise<Bare> | null = null;
  #shared: Promise<{ bridge: Bridge; seeded: readonly Seeded[] }> | null = null;

  path(name: string): string {
    const path = join(this.directory, name);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return path;
  }

  browser(): Promise<Browser> {
    this.#browser ??= openBrowser();
    return this.#browser;
  }

  pages(): Promise<Bare> {
    this.#pages ??= servePages();
    return this.#pages;
  }

  /** A bridge on a state of its own, with these conversations in it. */
  async bridge(
    name: string,
    seedings: readonly Seeding[] = [],
  ): Promise<{ bridge: Bridge; seeded: readonly Seeded[] }> {
    const state = this.path(`${name}-state`);
    const workspace = this.path(`${name}-work`);
    const seeded = seedings.length === 0 ? [] : await seed(state, workspace, seedings);
    const bridge = new Bridge(state, ['--workspace', workspace], { COUNTERSIGN_LOG: '0' });
    this.#bridges.push(bridge);
    await bridge.start();
    return { bridge, seeded };
  }

  /** The one most parts use: 200, 2,000 and 20,000 messages. */
  shared(): Promise<{ bridge: Bridge; seeded: readonly Seeded[] }> {
    this.#shared ??= this.bridge('shared', [{ messages: 20_000 }, { messages: 2000 }, { messages: 200 }]);
    return this.#shared;
  }

  async end(): Promise<void> {
    if (this.#browser !== null) await (await this.#browser).close();
    if (this.#pages !== null) (await this.#pages).close();
    for (const bridge of this.#bridges) await bridge.stop();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A fresh launch URL that opens `path` at once. */
export const launchAt = async (bridge: Bridge, path: string): Promise<string> => {
  const client = await bridge.client();
  const { launchUrl } = await client.call('bridge.launch', {});
  const url = new URL(launchUrl);
  return `${url.origin}${path}${url.hash}`;
};

export const conversationOf = (seeded: readonly Seeded[], messages: number): Seeded => {
  const found = seeded.find((one) => one.title === `${messages} messages`);
  if (found === undefined) throw new Error(`no conversation of ${messages} messages was seeded`);
  return found;
};
