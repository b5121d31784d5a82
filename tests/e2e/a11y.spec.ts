/** Every screen: axe clean at both sizes, light and dark; nothing wider than the window from 320 px; 200 % zoom (U-30, U-50). */
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import type { Bridge } from '../bridge/process.ts';
import { allow, composer, expect, log, make, practise, readToTheEnd, send, test, waiting } from './ground.ts';

interface Screen {
  readonly name: string;
  /** Opens it and waits until it shows what belongs there. */
  readonly show: (page: Page, at: Place) => Promise<void>;
}
interface Place {
  readonly origin: string;
  readonly conversationId: string;
  readonly receiptId: string;
}

const goto = async (page: Page, address: string, heading: string | RegExp): Promise<void> => {
  await page.goto(address);
  await expect(page.getByRole('heading', { name: heading }).first()).toBeVisible();
};
const screens: readonly Screen[] = [
  {
    name: 'conversation with a card',
    show: async (page, { origin, conversationId }) => {
      await page.goto(`${origin}/c/${conversationId}`);
      await expect(waiting(page)).toBeVisible();
      await readToTheEnd(page);
      await expect(waiting(page).getByRole('button', { name: 'Allow', exact: true })).toBeEnabled();
    },
  },
  {
    name: 'approvals',
    show: async (page, { origin }) => {
      await goto(page, `${origin}/approvals`, 'Approvals');
      await expect(waiting(page)).toBeVisible();
    },
  },
  {
    name: 'decided',
    show: async (page, { origin }) => {
      await goto(page, `${origin}/approvals?show=decided`, 'Approvals');
      await expect(page.getByText('node --test').first()).toBeVisible();
    },
  },
  {
    name: 'rules',
    show: async (page, { origin }) => {
      await goto(page, `${origin}/approvals/rules`, 'Rules');
      await expect(page.getByRole('button', { name: 'Turn off' }).first()).toBeVisible();
    },
  },
  {
    name: 'receipt',
    show: async (page, { origin, receiptId }) => {
      await goto(page, `${origin}/receipts/${receiptId}`, 'What was checked');
    },
  },
  {
    name: 'agents',
    show: async (page, { origin }) => {
      await goto(page, `${origin}/agents`, 'Agents');
      await expect(page.getByText('Practice agent').first()).toBeVisible();
    },
  },
  { name: 'settings', show: (page, { origin }) => goto(page, `${origin}/settings`, 'Settings') },
  {
    name: 'new conversation',
    show: async (page, { origin }) => {
      await goto(page, `${origin}/settings`, 'Settings');
      await page.keyboard.press('Control+Shift+O');
      await expect(page.getByRole('dialog', { name: 'New conversation' }).getByRole('radio').first()).toBeVisible();
    },
  },
  {
    name: 'palette',
    show: async (page, { origin }) => {
      await goto(page, `${origin}/settings`, 'Settings');
      await page.keyboard.press('Control+k');
      await page.getByRole('dialog').getByRole('combobox').fill('test');
      await expect(page.getByRole('dialog').getByRole('option').first()).toBeVisible();
    },
  },
  {
    name: 'files',
    show: async (page, { origin, conversationId }) => {
      await page.goto(`${origin}/c/${conversationId}`);
      await expect(waiting(page)).toBeVisible();
      await page.keyboard.press('Control+Shift+F');
      await expect(page.getByText('package.json').first()).toBeVisible();
    },
  },
];

/** A finished turn with a rule made on the way, and a second one that waits. */
const furnish = async (page: Page, bridge: Bridge): Promise<Place> => {
  const conversationId = await practise(page);
  await composer(page).press('Enter');
  await expect(waiting(page)).toBeVisible({ timeout: 20_000 });
  await waiting(page).getByRole('button', { name: 'Always…' }).click();
  await allow(page, 'Save rule and allow');
  await allow(page);
  await expect(log(page).locator('footer')).toContainText('Finished', { timeout: 30_000 });
  await send(page, 'delete everything');
  await expect(waiting(page)).toBeVisible();
  const client = await bridge.client();
  const { receipts } = await client.call('receipt.list', { conversationId });
  const other = await make(bridge);
  await client.change('conversation.rename', {
    conversationId: other,
    title: 'A second conversation with a title that is too long for one line of the rail',
  });
  return { origin: bridge.ready.origin, conversationId, receiptId: receipts[0]?.receiptId ?? '' };
};

const expectClean = async (page: Page, what: string, rules?: readonly string[]): Promise<void> => {
  const axe = new AxeBuilder({ page }).setLegacyMode(true);
  const { violations } = await (rules === undefined ? axe : axe.withRules([...rules])).analyze();
  const told = violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary ?? ''}`),
  );
  expect.soft(told, what).toEqual([]);
};

/** What reaches over the window's edge: the page itself, or a control that is in no box of its own that scrolls. */
const overflowing = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const wide =
      document.documentElement.scrollWidth > innerWidth ? [`page ${document.documentElement.scrollWidth}`] : [];
    const scrolls = (element: Element): boolean => {
      for (let at = element.parentElement; at !== null && at !== document.body; at = at.parentElement)
        if (/auto|scroll/.test(getComputedStyle(at).overflowX) && at.scrollWidth > at.clientWidth) return true;
      return false;
    };
    const controls = [...document.querySelectorAll('a, button, input, select, textarea, h1, h2, h3, p')].filter(
      (element) => {
        const box = element.getBoundingClientRect();
        if (box.width === 0 || box.height === 0 || element.closest('.skip, .hidden-text') !== null) return false;
        if (getComputedStyle(element).visibility === 'hidden') return false;
        return (box.right > innerWidth + 1 || box.left < -1) && !scrolls(element);
      },
    );
    return [
      ...wide,
      ...controls.map(
        (element) => `${element.outerHTML.slice(0, 140)} ${Math.round(element.getBoundingClientRect().right)}`,
      ),
    ];
  });

/** The layout may still be settling after a change of size. */
const expectFits = (page: Page, what: string): Promise<void> =>
  expect
    .configure({ soft: true })
    .poll(() => overflowing(page), { message: what, timeout: 3000 })
    .toEqual([]);

const judge = async (page: Page, name: string, show: () => Promise<void>): Promise<void> => {
  for (const [width, height] of [
    [1440, 900],
    [390, 844],
  ] as const) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: 'light' });
    await show();
    await expectClean(page, `${name}, ${width}, light`);
    // Only the colours differ.
    await page.emulateMedia({ colorScheme: 'dark' });
    await expectClean(page, `${name}, ${width}, dark`, ['color-contrast']);
    await expectFits(page, `${name} at ${width}`);
  }
  await page.setViewportSize({ width: 320, height: 640 });
  await expectFits(page, `${name} at 320`);
};

test('U-50 U-30: each screen is axe clean, light and dark, wide and narrow, and fits from 320 px', async ({
  open,
  bridge,
}) => {
  test.setTimeout(300_000);
  const page = await open();
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await judge(page, 'first run', async () => {
    await page.goto(bridge.ready.origin);
    await expect(page.getByText('Practice agent').first()).toBeVisible();
  });
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: 'light' });
  const place = await furnish(page, bridge);
  for (const { name, show } of screens) await judge(page, name, () => show(page, place));
  // On a phone the list of conversations is a page of its own.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${place.origin}/c/${place.conversationId}`);
  await page.getByRole('link', { name: 'Chats' }).click();
  await expect(page.getByRole('link', { name: /Find and fix/ }).first()).toBeVisible();
  await expectClean(page, 'chats');
  await page.setViewportSize({ width: 320, height: 640 });
  await expectFits(page, 'chats at 320');
});

test('the sign-in page is axe clean', async ({ page, bridge, watch }) => {
  watch.allow(/status of 401/);
  for (const [width, height] of [
    [1440, 900],
    [390, 844],
    [320, 640],
  ] as const) {
    await page.setViewportSize({ width, height });
    await page.goto(bridge.ready.origin);
    await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
    await expectClean(page, `${width}, light`);
    await expectFits(page, `at ${width}`);
    await page.emulateMedia({ colorScheme: 'dark' });
    await expectClean(page, `${width}, dark`, ['color-contrast']);
    await page.emulateMedia({ colorScheme: 'light' });
  }
});

test.describe('at 200 % zoom', () => {
  // 1440×900 with every CSS pixel doubled.
  test.use({ viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 });

  test('U-50: a card can be read and answered, and nothing is cut off', async ({ open, bridge }) => {
    const page = await open();
    const zoomed = page.viewportSize();
    await page.setViewportSize({ width: 1440, height: 900 });
    const place = await furnish(page, bridge);
    if (zoomed !== null) await page.setViewportSize(zoomed);
    for (const name of ['conversation with a card', 'receipt', 'settings', 'new conversation'])
      await test.step(name, async () => {
        await screens.find((screen) => screen.name === name)?.show(page, place);
        await expectFits(page, name);
      });
    await page.goto(`${place.origin}/c/${place.conversationId}`);
    const deny = waiting(page).getByRole('button', { name: 'Deny' });
    await expect(deny).toBeInViewport();
    await expect(composer(page)).toBeInViewport();
    await allow(page);
  });
});
