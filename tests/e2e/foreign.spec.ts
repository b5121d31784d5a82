/** A page of somebody else on another loopback port (acceptance 6, case 69, T07): it gets nothing and changes nothing. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, make, stored, test } from './ground.ts';

interface Tried {
  readonly fetched: Record<string, string>;
  readonly socket: string;
}

/** Runs in a page: asks in every simple way, with cookies, and says what came back. */
const tryAll = async ({ origin, base }: { origin: string; base: string }): Promise<Tried> => {
  const answered = async (path: string, init: RequestInit): Promise<string> => {
    try {
      const answer = await fetch(origin + path, { credentials: 'include', ...init });
      return answer.type === 'opaque' ? 'opaque' : String(answer.status);
    } catch {
      return 'failed';
    }
  };
  const json = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ method: 'conversation.list', params: {} });
  const fetched: Record<string, string> = {};
  for (const path of [`${base}session`, `${base}blobs`, `${base}logout`, '/launch', '/', '/up']) {
    fetched[`GET ${path}`] = await answered(path, {});
    fetched[`GET no-cors ${path}`] = await answered(path, { mode: 'no-cors' });
    fetched[`POST text/plain ${path}`] = await answered(path, { method: 'POST', mode: 'no-cors', body });
    fetched[`POST json ${path}`] = await answered(path, { method: 'POST', headers: json, body });
  }
  const socket = await new Promise<string>((resolve) => {
    const made = new WebSocket(`${origin.replace('http', 'ws')}${base}socket`);
    made.onopen = () => resolve('open');
    made.onerror = () => resolve('refused');
  });
  return { fetched, socket };
};

test.describe('T07 case 69', () => {
  let server: Server;
  let stranger: string;
  test.beforeAll(async () => {
    server = createServer((request, response) => {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>stranger</title><h1>stranger</h1>');
      request.resume();
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    stranger = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  test.afterAll(() => void server.close());

  test('a page on another port cannot read, post or connect while the operator is signed in', async ({
    open,
    bridge,
    context,
    watch,
  }) => {
    const conversationId = await make(bridge);
    const own = await open();
    const before = await stored(bridge, conversationId);
    const { origin } = bridge.ready;
    const base = (await context.cookies()).find((cookie) => cookie.path.startsWith('/b/'))?.path ?? '';
    expect(base).toMatch(/^\/b\/.+\/$/);

    // The control: from the app's own page the same attempts do get through.
    const mine = await own.evaluate(tryAll, { origin, base });
    expect(mine.fetched[`GET ${base}session`]).toBe('204');
    expect(mine.socket).toBe('open');

    watch.trust(stranger);
    watch.allow(new RegExp(`console: .*${stranger.slice(-5)}|ERR_|WebSocket connection|CORS|Failed to load resource`));
    let page = await context.newPage();
    await page.goto(stranger);
    const logged = bridge.log.length;
    const theirs = await page.evaluate(tryAll, { origin, base });
    expect(theirs.socket).toBe('refused');
    for (const [what, came] of Object.entries(theirs.fetched)) expect(came, what).toBe('failed');

    // A form is not held back by the browser, so the bridge must.
    for (const [path, enctype] of [
      [`${base}logout`, 'text/plain'],
      ['/launch', 'application/x-www-form-urlencoded'],
    ] as const) {
      page = await context.newPage();
      await page.goto(stranger);
      const [answer] = await Promise.all([
        page.waitForResponse((one) => one.url() === origin + path),
        page.evaluate(
          ({ action, type }) => {
            const form = document.createElement('form');
            Object.assign(form, { action, method: 'post', enctype: type });
            const field = document.createElement('input');
            Object.assign(field, { name: '{"token":"', value: 'x"}' });
            form.append(field);
            document.body.append(form);
            form.submit();
          },
          { action: origin + path, type: enctype },
        ),
      ]);
      expect(answer.status(), path).toBeGreaterThanOrEqual(400);
      expect(answer.headers()['access-control-allow-origin']).toBeUndefined();
    }
    expect(bridge.log.slice(logged)).toMatch(/refused/);

    // Nothing happened: signed in as before, nothing stored, and the page still lives.
    expect(await stored(bridge, conversationId)).toEqual(before);
    expect(await own.evaluate(async (path) => (await fetch(path)).status, `${base}session`)).toBe(204);
    await own.goto(`${origin}/c/${conversationId}`);
    await expect(own.getByRole('textbox', { name: 'Message', exact: true })).toBeVisible();
  });
});
