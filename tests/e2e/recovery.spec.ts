/** What the page survives: a closed tab, dropped sockets, a restarted bridge, a killed one (cases 1, 2, 26). */
import type { Page } from '@playwright/test';
import type { Bridge } from '../bridge/process.ts';
import {
  ask,
  composer,
  connection,
  expect,
  idle,
  log,
  make,
  practise,
  refusedConnection,
  said,
  send,
  stored,
  storedMessages,
  test,
} from './ground.ts';

// Tall enough that no row of these transcripts is left out of the document.
test.use({ viewport: { width: 1200, height: 9000 } });

const plain = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();
/** What the page shows is what is stored: each message once, in its order, whole. */
const expectInStep = async (page: Page, bridge: Bridge, conversationId: string): Promise<void> => {
  const events = await stored(bridge, conversationId);
  const users = storedMessages(events, 'user').map(plain);
  await expect.poll(async () => (await said(page).locator('.said').allTextContents()).map(plain)).toEqual(users);
  const agents = log(page).locator('article.agent');
  await expect(agents).toHaveCount(storedMessages(events, 'agent').length);
  await expect(log(page).locator('footer')).toHaveCount(events.filter((event) => event.type === 'turn.ended').length);
  expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
};
/** The highest number of the practice agent's count that is on the page. */
const counted = async (page: Page): Promise<number> => {
  const texts = await log(page).locator('article.agent').allInnerTexts();
  return Math.max(0, ...[...texts.join('\n').matchAll(/^(\d+)$/gm)].map((match) => Number(match[1])));
};

test('the tab closed in the middle of an answer finds it whole when it comes back', async ({
  open,
  bridge,
  context,
}) => {
  const first = await open();
  const conversationId = await practise(first);
  await send(first, 'count to 120');
  await expect.poll(() => counted(first)).toBeGreaterThan(5);
  await first.close();
  const page = await context.newPage();
  await page.goto(`${bridge.ready.origin}/c/${conversationId}`);
  await expect(said(page)).toHaveCount(1);
  await expect.poll(() => counted(page), { timeout: 30_000 }).toBe(120);
  await idle(bridge, conversationId);
  const text = plain(await log(page).locator('article.agent').last().innerText());
  expect(text).toContain(Array.from({ length: 120 }, (_, index) => index + 1).join(' '));
  await expectInStep(page, bridge, conversationId);
});

test('case 1: sockets dropped three times show nothing twice', async ({ open, bridge, context }) => {
  await context.addInitScript(() => {
    const sockets: WebSocket[] = [];
    Object.assign(window, { sockets });
    window.WebSocket = class extends WebSocket {
      constructor(...args: ConstructorParameters<typeof WebSocket>) {
        super(...args);
        sockets.push(this);
      }
    };
  });
  const page = await open();
  await page.setViewportSize({ width: 1280, height: 8000 }); // every row is drawn, so that each can be counted
  const conversationId = await make(bridge);
  for (let number = 1; number <= 20; number += 1) await ask(bridge, conversationId, `count to 1, ${number}`);
  await page.goto(`${bridge.ready.origin}/c/${conversationId}`);
  await expect(said(page)).toHaveCount(20);
  await send(page, 'count to 80');
  const opened = (): Promise<number> =>
    page.evaluate(() => (window as unknown as { sockets: WebSocket[] }).sockets.length);
  for (let drop = 1; drop <= 3; drop += 1) {
    const before = await opened();
    await page.evaluate(() =>
      (window as unknown as { sockets: WebSocket[] }).sockets.forEach((socket) => socket.close()),
    );
    await expect.poll(opened).toBeGreaterThan(before);
    await expect(connection(page, 'live')).toBeVisible();
  }
  await idle(bridge, conversationId);
  await expectInStep(page, bridge, conversationId);
});

test('case 2: a bridge restarted under an open page shows each message once', async ({ open, bridge, watch }) => {
  watch.allow(refusedConnection);
  const page = await open();
  const conversationId = await practise(page);
  await send(page, 'count to 200');
  await expect.poll(() => counted(page)).toBeGreaterThan(5);
  const { port } = bridge;
  await bridge.stop();
  await expect(connection(page, '(reconnecting|offline)')).toBeVisible();
  // Typed while nobody listens; it is sent by hand afterwards.
  await composer(page).fill('hello again');
  await bridge.start(port);
  await expect(connection(page, 'live')).toBeVisible({ timeout: 40_000 });
  await expect(composer(page)).toHaveValue('hello again');
  await expectInStep(page, bridge, conversationId);
  await expect(log(page).locator('footer')).toContainText('Interrupted');
  await composer(page).press('Enter');
  await expect(log(page).locator('article.agent').last()).toContainText('I can do these', {
    timeout: 20_000,
  });
  await idle(bridge, conversationId);
  await expect(said(page)).toHaveCount(2);
  await expectInStep(page, bridge, conversationId);
});

test('case 26, acceptance 4: after SIGKILL in mid-stream the page recovers by itself and keeps what it showed', async ({
  open,
  bridge,
  watch,
}) => {
  watch.allow(refusedConnection);
  const page = await open();
  const conversationId = await practise(page);
  await send(page, 'count to 200');
  await expect.poll(() => counted(page), { timeout: 30_000 }).toBeGreaterThan(60);
  const shown = await counted(page);
  await page.waitForTimeout(300);
  const { port } = bridge;
  await bridge.kill();
  await bridge.start(port);
  await expect(connection(page, 'live')).toBeVisible({ timeout: 40_000 });
  await expectInStep(page, bridge, conversationId);
  await expect(log(page).locator('footer')).toContainText('Interrupted');
  const kept = storedMessages(await stored(bridge, conversationId), 'agent').join('\n');
  expect(kept).toContain(`\n${shown}\n`);
  await expect.poll(() => counted(page)).toBeGreaterThanOrEqual(shown);
  await send(page, 'hello again');
  await idle(bridge, conversationId);
  await expectInStep(page, bridge, conversationId);
});
