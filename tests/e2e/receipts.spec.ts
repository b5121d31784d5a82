import { generateKeyPairSync } from 'node:crypto';
import type { Page } from '@playwright/test';
import { expect, refusedConnection, test } from './ground.ts';

const list = (page: Page) => page.locator('a[href^="/receipts/"]');
const goto = async (page: Page): Promise<void> => {
  await page.getByRole('link', { name: 'Receipts', exact: true }).click();
  await expect(page.getByRole('heading', { name: 'Receipts', exact: true })).toBeVisible();
  await expect(list(page).first()).toBeVisible();
};

/** A bridge that lies: every text frame it sends passes through `change`. */
const lying = async (page: Page, change: (frame: string) => string): Promise<void> => {
  await page.routeWebSocket(/\/socket$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => socket.send(typeof message === 'string' ? change(message) : message));
  });
};

/** Turns one bit of the signed statement in the envelope of receipt `seq`, wherever a frame carries it. */
const bent = (frame: string, seq: number): string => {
  const parsed = JSON.parse(frame) as unknown;
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    const members = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, walk(member)]));
    if (members['seq'] !== seq || typeof members['envelope'] !== 'string') return members;
    const envelope = JSON.parse(members['envelope']) as { payload: string };
    const statement = Buffer.from(envelope.payload, 'base64').toString().replace('"clock":"ok"', '"clock":"OK"');
    return {
      ...members,
      envelope: JSON.stringify({ ...envelope, payload: Buffer.from(statement).toString('base64') }),
    };
  };
  return JSON.stringify(walk(parsed));
};

test.describe('receipts verified by the page (R-24, U-23)', () => {
  test('all of them, one of them, and that one again with the bridge off', async ({ bridge, open, watch }) => {
    watch.allow(refusedConnection);
    const page = await open();
    await goto(page);
    await page.getByRole('button', { name: 'Verify all' }).click();
    await expect(page.getByText(/receipts verified in .*none missing, none changed/)).toBeVisible();
    await expect(page.getByText(/3 receipts kept here can be checked/)).toBeVisible();

    await list(page).first().click();
    await expect(page.getByText('Verified', { exact: true })).toBeVisible();
    await expect(page.getByText('The key is the one this browser knows.')).toBeVisible();
    await expect(page.getByText('The bridge finds this receipt valid as well.')).toBeVisible();
    await expect(page.getByText('Kept in this browser')).toBeVisible();
    const opened = page.url();

    await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
    await bridge.stop();
    await page.goto(opened);
    await expect(page.getByText('Verified', { exact: true })).toBeVisible({ timeout: 20_000 });
    await expect(page.getByText('Not asked: the bridge is not running.')).toBeVisible();

    await page.getByRole('link', { name: 'All receipts' }).click();
    await expect(list(page)).toHaveCount(3);
    await page.getByRole('button', { name: 'Verify those kept here' }).click();
    await expect(page.getByText(/3 receipts kept here were verified/)).toBeVisible();
  });

  test('a receipt that was tampered with is named, in the list and on its page', async ({ context, bridge, watch }) => {
    void watch;
    const page = await context.newPage();
    await lying(page, (frame) => bent(frame, 1));
    await page.goto(bridge.ready.launchUrl);
    await goto(page);
    await page.getByRole('button', { name: 'Verify all' }).click();
    const problems = page.getByRole('list', { name: 'Problems found' });
    await expect(problems).toContainText('No. 1');
    await expect(problems).toContainText('The signature is not valid for these bytes');
    await list(page).last().click();
    await expect(page.getByText('Not valid', { exact: true }).first()).toBeVisible();
    await expect(page.getByText('The signature is not valid for these bytes and the given key.')).toBeVisible();
    await expect(page.getByRole('heading', { name: 'What was signed' })).toHaveCount(0);
  });

  test('another key than the pinned one is loud, and taken only by the operator', async ({ context, open, bridge }) => {
    const honest = await open();
    await goto(honest);
    await list(honest).first().click();
    await expect(honest.getByText('Verified', { exact: true })).toBeVisible();
    await honest.close();

    const other = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const page = await context.newPage();
    await lying(page, (frame) =>
      frame.replaceAll(
        /-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----(\\n)?/g,
        JSON.stringify(other).slice(1, -1),
      ),
    );
    await page.goto(`${bridge.ready.origin}/receipts`);
    await list(page).first().click();
    const alert = page.getByRole('alert').filter({ hasText: 'another signing key' });
    await expect(alert).toBeVisible();
    await expect(page.getByText('Not valid', { exact: true }).first()).toBeVisible();
    await page.reload();
    await expect(alert, 'nothing was replaced').toBeVisible();
    await alert.getByRole('button', { name: 'Trust the new key…' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Trust the new key' }).click();
    await page.getByRole('button', { name: 'Verify again' }).click();
    await expect(page.getByText('It names another key than the given one.')).toBeVisible();
  });
});
