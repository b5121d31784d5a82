/** The main job in a real browser (acceptance 2): from the launch URL to a receipt that verifies. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { bridge as run, temporary, type Bridge } from '../bridge/process.ts';
import {
  allow,
  cards,
  composer,
  expect,
  exported,
  log,
  practiceFolder,
  practise,
  said,
  expectVerified,
  send,
  test,
  waiting,
} from './ground.ts';

const source = (bridge: Bridge): string => readFileSync(join(practiceFolder(bridge), 'src/dates.js'), 'utf8');
const mended = 'return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;';

/** The digests signed as shown, of the decisions of a conversation; each is also the hash of its action's bytes. */
const signedDigests = async (bridge: Bridge, conversationId: string): Promise<string[]> => {
  const folder = temporary('receipts');
  try {
    const told = await run([
      'conversations',
      'receipts',
      conversationId,
      '--state',
      bridge.state,
      '--out',
      folder.path,
    ]);
    expect(told.code, told.stderr).toBe(0);
    const decisions = exported(folder.path).filter((receipt) => receipt.kind === 'decision');
    for (const receipt of decisions) expect(receipt.shown).toBe(receipt.subject);
    return decisions.map((receipt) => receipt.subject);
  } finally {
    folder.remove();
  }
};

for (const [width, height] of [
  [1440, 900],
  [390, 844],
] as const) {
  test.describe(`at ${width}×${height}`, () => {
    test.use({ viewport: { width, height } });

    test('T34 acceptance 2: the practice conversation from the first click to a verified receipt', async ({
      bridge,
      open,
    }) => {
      const page = await open();
      expect(new URL(page.url()).hash, 'the launch token leaves the address').toBe('');
      const conversationId = await practise(page);
      await expect(composer(page)).toHaveValue('Find and fix the failing test');
      await page.getByRole('button', { name: 'Send', exact: true }).click();

      await expect(said(page)).toHaveCount(1);
      await expect(log(page)).toContainText('I run the tests first, to see what really fails.');
      const command = waiting(page);
      await expect(command).toContainText('node --test');
      const digests = [await allow(page)];

      const edit = waiting(page);
      await expect(edit).toContainText('src/dates.js');
      await expect(edit).toContainText('return year % 4 === 0 && year % 100 !== 0;');
      await expect(edit).toContainText(mended);
      expect(source(bridge), 'nothing is written before the answer').not.toContain(mended);
      digests.push(await allow(page));
      await expect.poll(() => source(bridge)).toContain(mended);

      await expect(waiting(page)).toContainText('node --test');
      digests.push(await allow(page));
      await expect(log(page)).toContainText('All tests pass.', { timeout: 20_000 });
      const footer = log(page).locator('footer');
      await expect(footer).toContainText('Finished');
      await expect(footer).toContainText('1 file changed');
      await expect(footer.getByRole('link')).toHaveCount(6);
      await expect(cards(page)).toHaveCount(3);
      expect(await signedDigests(bridge, conversationId)).toEqual(digests);

      await footer.getByRole('link').nth(2).click();
      await expect(page).toHaveURL(/\/receipts\//);
      await expect(page.getByText('Verified', { exact: true }).first()).toBeVisible();
      await expectVerified(bridge);

      await page.goBack();
      await expect(log(page).locator('footer')).toContainText('Finished');
      await page.reload();
      await expect(said(page)).toHaveCount(1);
      await expect(cards(page)).toHaveCount(3);
      await expect(log(page).locator('footer')).toHaveCount(1);
    });
  });
}

/** Presses a key until the focus is inside what is looked for; fails after more presses than a person would bear. */
const press = async (page: Page, key: string, selector: string): Promise<void> => {
  for (let times = 0; times < 40; times += 1) {
    if (await page.evaluate((wanted) => document.activeElement?.closest(wanted) !== null, selector)) return;
    await page.keyboard.press(key);
  }
  throw new Error(`${key} never reached ${selector}`);
};
const focusName = (page: Page): Promise<string> =>
  page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');

test('acceptance 2: the same with the keyboard alone', async ({ bridge, open }) => {
  const page = await open();
  for (let times = 0; times < 40 && !(await focusName(page)).startsWith('Try it'); times += 1)
    await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(composer(page)).toHaveValue('Find and fix the failing test');
  await press(page, 'Tab', '[data-composer]');
  await page.keyboard.press('Enter');

  // The first by its key, the second by its button, the third by the key again.
  const card = 'article.card[data-state="pending"]';
  for (const way of ['key', 'button', 'key'] as const) {
    await expect(waiting(page)).toBeVisible({ timeout: 20_000 });
    const digest = (await waiting(page).getAttribute('data-digest')) ?? '';
    await press(page, 'Shift+Tab', way === 'key' ? card : `${card} .allow`);
    await expect(waiting(page).getByRole('button', { name: 'Allow', exact: true })).toBeEnabled();
    await page.keyboard.press(way === 'key' ? 'a' : 'Enter');
    await expect(page.locator(`article.card[data-digest="${digest}"]`)).toHaveAttribute('data-state', 'allowed');
    await page.keyboard.press('/');
    await expect(composer(page)).toBeFocused();
  }
  await expect(log(page).locator('footer')).toContainText('Finished', { timeout: 20_000 });
  await expect.poll(() => source(bridge)).toContain(mended);
  await press(page, 'Shift+Tab', 'footer a[href^="/receipts/"]');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Verified', { exact: true }).first()).toBeVisible();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('Settings');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/settings$/);
  await expectVerified(bridge);
});

test('R-12: denied with a note, nothing runs and the agent says so in its answer', async ({ bridge, open }) => {
  const page = await open();
  await practise(page);
  await send(page, 'delete everything');
  await expect(waiting(page)).toContainText('rm');
  await waiting(page).getByRole('button', { name: 'With a note…' }).click();
  await page.getByRole('textbox', { name: 'Note to the agent' }).fill('leave my sources be');
  await page.getByRole('button', { name: 'Deny with note' }).click();
  await expect(cards(page)).toHaveAttribute('data-state', 'denied');
  await expect(log(page)).toContainText('That did not happen');
  await expect(log(page).locator('article.agent').last()).toContainText('leave my sources be');
  expect(source(bridge)).toContain('isLeapYear');
  await expect(log(page).locator('footer')).toContainText('Finished');
  await expectVerified(bridge);
});

test('T38 R-13 case 42: only a deliberate press inside the card decides', async ({ open, bridge }) => {
  const page = await open();
  await practise(page);
  await page.addInitScript(() => {
    const seen = { early: 0, firstInert: null as boolean | null, appearedMs: 0, readyMs: 0 };
    Object.assign(window, { seen });
    document.addEventListener(
      'click',
      (event) => {
        const button = (event.target as Element).closest('.allow');
        if (button?.getAttribute('aria-disabled') === 'true' && event.isTrusted) seen.early += 1;
      },
      true,
    );
    new MutationObserver(() => {
      const button = document.querySelector('article.card .allow');
      if (button === null) return;
      const isInert = button.getAttribute('aria-disabled') === 'true';
      if (seen.firstInert === null) Object.assign(seen, { firstInert: isInert, appearedMs: performance.now() });
      if (!isInert && seen.readyMs === 0) seen.readyMs = performance.now();
    }).observe(document, { subtree: true, childList: true, attributes: true });
  });
  await send(page, 'run the tests');
  await expect(waiting(page)).toBeVisible();
  const box = await waiting(page).getByRole('button', { name: 'Allow', exact: true }).boundingBox();
  expect(box).not.toBeNull();
  const spot = [(box?.x ?? 0) + 20, (box?.y ?? 0) + 10] as const;
  type Seen = { early: number; firstInert: boolean; appearedMs: number; readyMs: number };
  const seen = (): Promise<Seen> => page.evaluate(() => (window as unknown as { seen: Seen }).seen);

  // A hand that is already clicking there when the card comes up approves nothing.
  for (let attempt = 0; attempt < 5; attempt += 1) {
    await page.reload({ waitUntil: 'commit' });
    const until = Date.now() + 5000;
    while (Date.now() < until && !(await seen()).early && !(await seen()).readyMs) await page.mouse.click(...spot);
    await expect.poll(async () => (await seen()).readyMs).toBeGreaterThan(0);
    if ((await seen()).early > 0) break;
  }
  const timing = await seen();
  expect(timing.early, 'a real click landed on the inert button').toBeGreaterThan(0);
  expect(timing.firstInert).toBe(true);
  expect(timing.readyMs - timing.appearedMs).toBeGreaterThanOrEqual(480);
  await expect(waiting(page)).toHaveCount(1);

  // What a script clicks is not a press.
  await page.evaluate(() => {
    const button = document.querySelector<HTMLElement>('article.card .allow');
    button?.click();
    button?.focus();
    button?.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true }));
    button?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  });

  // Enter in the composer writes to the agent, whatever waits.
  await composer(page).fill('and then?');
  await composer(page).press('Enter');
  await expect(page.getByText('1 message queued')).toBeVisible();
  await composer(page).press('a');
  await composer(page).press('Control+Enter');
  await composer(page).fill('');

  // The Enter that confirms an input method's candidate sends nothing, approves nothing and chooses nothing.
  const composing = { key: 'Enter', bubbles: true, cancelable: true } as const;
  const candidate = async (selector: string): Promise<void> => {
    await page.locator(selector).evaluate((field, press) => {
      field.dispatchEvent(new CompositionEvent('compositionstart', { bubbles: true }));
      field.dispatchEvent(new KeyboardEvent('keydown', { ...press, isComposing: true }));
      field.dispatchEvent(new CompositionEvent('compositionend', { bubbles: true }));
      field.dispatchEvent(new KeyboardEvent('keydown', { ...press, keyCode: 229 }));
    }, composing);
  };
  await composer(page).fill('とうきょう');
  await candidate('[data-composer]');
  await expect(composer(page)).toHaveValue('とうきょう');
  await candidate('article.card .allow');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('settings');
  await candidate('dialog [role=combobox]');
  await expect(page.getByRole('combobox')).toBeVisible();
  await page.keyboard.press('Escape');

  await expect(waiting(page)).toHaveCount(1);
  await expect(said(page)).toHaveCount(1);
  const client = await bridge.client();
  expect((await client.call('approval.list', { state: 'pending' })).approvals).toHaveLength(1);
  await allow(page);
});
