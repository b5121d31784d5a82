import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium, type Browser, type BrowserContext, type Page } from '@playwright/test';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, Ground, signIn, type SignedIn } from './parts.ts';

/** A real Chromium against the real gate; the other page is a real server on another loopback port. */
const executablePath =
  process.env['CHROMIUM'] ??
  ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path));
let ground: Ground;
let mine: SignedIn;
let browser: Browser;
let context: BrowserContext;
let stranger: Server;
let strangerOrigin: string;
const strangerSaw: string[] = [];

beforeAll(async () => {
  ground = await new Ground().prepare();
  await ground.start();
  mine = await signIn(ground);
  stranger = createServer((request, response) => {
    strangerSaw.push(request.headers.cookie ?? '');
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>stranger</title>');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => stranger.once('listening', resolve));
  strangerOrigin = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
  const root = process.getuid?.() === 0;
  browser = await chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    args: [...(root ? ['--no-sandbox'] : []), '--host-resolver-rules=MAP evil.test 127.0.0.1'],
  });
  context = await browser.newContext();
  await context.addCookies([
    {
      name: 'cs',
      value: mine.cookie.slice(3),
      domain: '127.0.0.1',
      path: mine.base,
      httpOnly: true,
      sameSite: 'Strict',
    },
  ]);
}, 60_000);
afterAll(async () => {
  await browser.close();
  stranger.close();
  await ground.end();
});

const refusals = (): unknown[] =>
  ground.lines.filter((line) => line['event'] === 'refused').map((line) => line['reason']);
const strangerPage = async (): Promise<Page> => {
  const page = await context.newPage();
  await page.goto(`${strangerOrigin}/`);
  return page;
};

describe('a real browser', () => {
  test('our own page, signed in by cookie, reaches the session', async () => {
    const page = await context.newPage();
    await page.goto(`${ground.gate.origin}/`);
    expect(await page.evaluate(async (path) => (await fetch(path)).status, `${mine.base}session`)).toBe(204);
    expect(await page.evaluate(() => document.cookie)).toBe('');
  });

  test('T05 a rebound name is refused for GET, POST and WebSocket', async () => {
    const page = await context.newPage();
    const answer = await page.goto(`http://evil.test:${ground.gate.port}/`);
    expect(answer?.status()).toBe(421);
    expect(answer?.headers()['set-cookie']).toBeUndefined();
    const told = await page.evaluate(async (base) => {
      const post = await fetch('/launch', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{}',
      }).then(
        (one) => one.status,
        () => 0,
      );
      const socket = await new Promise<string>((resolve) => {
        const made = new WebSocket(`ws://${location.host}${base}socket`);
        made.onopen = () => resolve('open');
        made.onerror = () => resolve('refused');
      });
      return { post, socket };
    }, mine.base);
    // The refusal's own CSP already keeps that page from asking at all; what did reach us was refused.
    expect([0, 421]).toContain(told.post);
    expect(told.socket).toBe('refused');
  });

  test('T07 T10 a page on another port can neither post, connect, read nor include', async () => {
    const page = await strangerPage();
    const before = ground.calls.length;
    const told = await page.evaluate(
      async ({ origin, base }) => {
        const tries: [string, RequestInit][] = [
          [`${base}session`, { mode: 'no-cors', credentials: 'include' }],
          [`${base}session`, { credentials: 'include' }],
          ['/launch', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }],
          [`${base}logout`, { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }],
          [
            `${base}logout`,
            { method: 'POST', credentials: 'include', headers: { 'Content-Type': 'application/json' }, body: '{}' },
          ],
          ['/', { mode: 'no-cors' }],
        ];
        const fetched = await Promise.all(
          tries.map(([path, init]) =>
            fetch(origin + path, init).then(
              () => 'answered',
              () => 'failed',
            ),
          ),
        );
        const socket = await new Promise<string>((resolve) => {
          const made = new WebSocket(`${origin.replace('http', 'ws')}${base}socket`);
          made.onopen = () => resolve('open');
          made.onerror = () => resolve('refused');
        });
        const script = await new Promise<string>((resolve) => {
          const made = document.createElement('script');
          made.src = `${origin}/service-worker.js`;
          made.onload = () => resolve('ran');
          made.onerror = () => resolve('blocked');
          document.head.append(made);
        });
        return { fetched, socket, script };
      },
      { origin: ground.gate.origin, base: mine.base },
    );
    expect(told).toEqual({
      fetched: ['failed', 'failed', 'failed', 'failed', 'failed', 'failed'],
      socket: 'refused',
      script: 'blocked',
    });
    expect(ground.calls).toHaveLength(before);
    expect(refusals()).toEqual(expect.arrayContaining(['origin', 'fetch_site']));
    expect((await ask(ground.gate, 'GET', `${mine.base}session`, { headers: { Cookie: mine.cookie } })).status).toBe(
      204,
    );
  });

  test('T08 a top-level form post from elsewhere is refused and changes nothing', async () => {
    const page = await strangerPage();
    const [answer] = await Promise.all([
      page.waitForResponse((one) => one.url().endsWith('/logout')),
      page.evaluate(
        ({ action }) => {
          const form = document.createElement('form');
          Object.assign(form, { action, method: 'post', enctype: 'text/plain' });
          document.body.append(form);
          form.submit();
        },
        { action: `${ground.gate.origin}${mine.base}logout` },
      ),
    ]);
    expect(answer.status()).toBe(403);
    expect((await ask(ground.gate, 'GET', `${mine.base}session`, { headers: { Cookie: mine.cookie } })).status).toBe(
      204,
    );
  });

  test('T11 the app cannot be framed, and whoever opened it has no handle to it', async () => {
    const page = await strangerPage();
    const told = await page.evaluate(async (origin) => {
      const frame = document.createElement('iframe');
      frame.src = `${origin}/`;
      document.body.append(frame);
      await new Promise((resolve) => (frame.onload = resolve));
      const opened = window.open(`${origin}/`);
      const until = Date.now() + 5000;
      while (opened !== null && !opened.closed && Date.now() < until)
        await new Promise((resolve) => setTimeout(resolve, 50));
      return {
        isBlank: frame.contentDocument === null || frame.contentDocument.body.textContent === '',
        isClosed: opened?.closed ?? true,
      };
    }, ground.gate.origin);
    expect(told.isClosed).toBe(true);
    const framed = page.frames().find((frame) => frame.parentFrame() !== null);
    expect(await framed?.evaluate(() => (window as { boot?: number }).boot).catch(() => undefined)).toBeUndefined();
  });

  test('T18 another port never sees our cookie, though it does see one without a path of its own', async () => {
    await context.addCookies([
      { name: 'weak', value: 'control', domain: '127.0.0.1', path: '/', httpOnly: true, sameSite: 'Strict' },
    ]);
    const page = await strangerPage();
    await page.evaluate(async () => {
      await fetch('/').catch(() => undefined);
      await new Promise((resolve) => {
        const image = new Image();
        image.onerror = image.onload = resolve;
        image.src = '/x.png';
      });
    });
    expect(strangerSaw.length).toBeGreaterThan(2);
    expect(strangerSaw.some((cookie) => cookie.includes('weak=control'))).toBe(true);
    expect(strangerSaw.filter((cookie) => cookie.includes('cs='))).toEqual([]);
  });
});
