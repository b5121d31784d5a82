/** The inbox and the rules page in a real browser (U-06, R-13): keys that never decide, several at once, rules that act. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { ApprovalView } from '#protocol/methods/approval.ts';
import type { RuleDraft } from '#protocol/policy.ts';
import { bridge as run, type Bridge } from '../bridge/process.ts';
import { expect, make, practiceFolder, test } from './ground.ts';

/** One conversation for each prompt; answers what waits then, oldest first. */
const waitFor = async (bridge: Bridge, prompts: readonly string[]): Promise<ApprovalView[]> => {
  const client = await bridge.client();
  for (const [index, text] of prompts.entries()) {
    const conversationId = await make(bridge);
    await client.change('conversation.send', { conversationId, delivery: 'prompt', content: [{ type: 'text', text }] });
    await expect
      .poll(async () => (await client.call('approval.list', { state: 'pending' })).approvals.length, {
        timeout: 20_000,
      })
      .toBe(index + 1);
  }
  const { approvals } = await client.call('approval.list', { state: 'pending' });
  return approvals.sort((a, b) => a.requestedAt - b.requestedAt);
};
const prompts = ['Run the tests', 'Delete everything', 'Clean up'];

const rows = (page: Page) => page.locator('[data-row]');
const focused = (page: Page): Promise<string | null> =>
  page.evaluate(() => {
    const { activeElement } = document;
    return activeElement instanceof HTMLElement
      ? (activeElement.dataset['row'] ?? activeElement.dataset['approval'] ?? null)
      : null;
  });
const lines = (page: Page) => page.locator('dialog [data-line]');
const goTo = async (page: Page, bridge: Bridge, path: string): Promise<void> => {
  await page.goto(`${bridge.ready.origin}${path}`);
};
const state = async (bridge: Bridge, approvalId: string): Promise<string> =>
  (await (await bridge.client()).call('approval.get', { approvalId })).status.state;

test('U-06: keys move, select and open; A and D decide only inside the open card', async ({ bridge, open }) => {
  const page = await open();
  const [first, second, third] = (await waitFor(bridge, prompts)).map((one) => one.approvalId);
  await goTo(page, bridge, '/approvals');
  await expect(rows(page)).toHaveCount(3);
  await page.keyboard.press('j');
  expect(await focused(page)).toBe(second);
  await page.keyboard.press('x');
  await expect(page.getByText('1 selected')).toBeVisible();
  for (const key of ['a', 'd', 'A', 'D']) await page.keyboard.press(key);
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keys of the inbox' })).toBeVisible();
  await page.keyboard.press('d');
  await page.keyboard.press('Escape');
  expect(await focused(page), 'the focus comes back from the keys').toBe(second);
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect.poll(() => focused(page)).toBe(third);
  await expect(page).toHaveURL(new RegExp(`open=${third}$`));
  await page.keyboard.press('Escape');
  await page.keyboard.press('k');
  await page.keyboard.press('o');
  await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('ARTICLE');
  for (const approvalId of [first, second, third]) expect(await state(bridge, approvalId ?? '')).toBe('pending');
  await page.keyboard.press('d');
  await expect.poll(() => state(bridge, second ?? '')).toBe('denied');

  await expect(page.getByRole('status').filter({ hasText: 'left the selection' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Next one' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect.poll(() => focused(page)).toBe(third);
});

for (const [width, height] of [
  [1440, 900],
  [320, 700],
] as const) {
  test(`R-13: several at once are each decided by themselves, at ${width} px`, async ({ bridge, open }) => {
    const page = await open();
    await page.setViewportSize({ width, height });
    const waiting = await waitFor(bridge, prompts);
    await goTo(page, bridge, '/approvals');
    const boxes = page.getByRole('checkbox', { name: /^Select: / });
    await boxes.first().click();
    await boxes.last().click({ modifiers: ['Shift'] });
    await expect(page.getByText('3 selected')).toBeVisible();

    // The first was opened and is short enough to be seen whole; the others were not looked at.
    await expect(rows(page).first()).toContainText('read');
    await page.getByRole('button', { name: 'Allow…' }).click();
    const dialog = page.getByRole('alertdialog', { name: 'Allow 1 action?' });
    const confirm = dialog.getByRole('button', { name: 'Allow 1' });
    await confirm.evaluate((button: HTMLElement) => button.click());
    await expect(dialog.getByRole('list', { name: 'Need a look' }).getByRole('listitem')).toHaveCount(2);
    await expect(confirm).toBeEnabled();
    await confirm.evaluate((button: HTMLElement) => button.click());
    await expect(lines(page), 'a press that no person made').toHaveCount(0);
    await dialog.getByRole('button', { name: 'Cancel' }).click();

    await page.getByRole('button', { name: 'Deny…' }).click();
    const deny = page.getByRole('alertdialog', { name: 'Deny 3 actions?' }).getByRole('button', { name: 'Deny 3' });
    await expect(deny).toBeEnabled();
    // While the question stands, one is answered elsewhere: it is left out, and the number is asked anew.
    const [gone] = waiting;
    await (
      await bridge.client()
    ).change('approval.decide', {
      approvalId: gone?.approvalId ?? '',
      digest: gone?.digest ?? '',
      optionId: gone?.options.find((option) => option.meaning === 'deny')?.id ?? '',
      value: 'deny',
      yes: true,
    });
    await expect(page.getByText('left out.')).toBeVisible();
    const again = page.getByRole('alertdialog', { name: 'Deny 2 actions?' }).getByRole('button', { name: 'Deny 2' });
    await expect(again).toBeEnabled();
    await again.click();
    await expect(lines(page)).toHaveCount(2);
    for (const line of await lines(page).all()) await expect(line).toHaveAttribute('data-line', 'done');
    for (const one of waiting) expect(await state(bridge, one.approvalId)).toBe('denied');

    const { receipts } = await (await bridge.client()).call('receipt.list', {});
    const decided = receipts.filter((receipt) => receipt.kind === 'decision' && receipt.value === 'deny');
    expect(new Set(decided.map((receipt) => receipt.approvalId))).toEqual(
      new Set(waiting.map((one) => one.approvalId)),
    );
    expect((await run(['verify', '--all', '--json', '--state', bridge.state])).code).toBe(0);
  });
}

const draft = (change: Partial<RuleDraft>): RuleDraft => ({
  effect: 'allow',
  agentId: null,
  workspaceId: null,
  match: { by: 'command', program: 'node', args: ['--test'] },
  expiresAt: null,
  uses: null,
  limit: null,
  ...change,
});

test('R-18: a rule that acted is seen with its uses, turned off, and one is asked again', async ({ bridge, open }) => {
  const page = await open();
  const client = await bridge.client();
  await client.change('policy.put', { draft: draft({ title: 'The tests' }) });
  const conversationId = await make(bridge);
  const send = (text: string) =>
    client.change('conversation.send', { conversationId, delivery: 'prompt', content: [{ type: 'text', text }] });
  await send('Run the tests');
  await expect
    .poll(async () => (await client.call('conversation.get', { conversationId })).state, { timeout: 45_000 })
    .toBe('idle');

  await goTo(page, bridge, '/approvals?show=decided');
  const row = page.getByRole('listitem').filter({ hasText: 'Run node --test' });
  await expect(row).toContainText('Allowed by a rule');
  // The practice tests fail until they are mended.
  await expect(row).toContainText('failed');
  await expect(row.getByRole('link', { name: /receipt: Run node --test$/ })).toHaveCount(2);
  await page.getByRole('combobox', { name: 'By' }).selectOption('operator');
  await expect(row).toHaveCount(0);

  await goTo(page, bridge, '/approvals/rules');
  const rule = page.getByRole('article').filter({ hasText: 'The tests' });
  await expect(rule).toContainText('used 1 time');
  await rule.getByRole('button', { name: /^Turn off/ }).click();
  await expect(rule.getByRole('button', { name: /^Turn on/ })).toBeVisible();
  await send('Run the tests');
  await expect
    .poll(async () => (await client.call('approval.list', { state: 'pending' })).approvals.length, { timeout: 20_000 })
    .toBe(1);

  await rule.getByRole('button', { name: /^Remove/ }).click();
  await expect(rule).toHaveCount(0);
  await page.getByRole('button', { name: 'Put it back' }).press('Enter');
  await expect(rule.getByRole('button', { name: /^Turn on/ })).toBeVisible();
});

test('R-17, R-19: what was tried becomes a rule; what a project suggests acts only once added', async ({
  bridge,
  open,
}) => {
  const page = await open();
  await make(bridge);
  const folder = join(practiceFolder(bridge), '.countersign');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'rules.json'), JSON.stringify({ rules: [draft({})] }));
  await goTo(page, bridge, '/approvals/rules');
  const verdict = page.locator('[data-verdict]');
  const attempt = async (command: string, expected: string): Promise<void> => {
    await page.getByRole('textbox', { name: 'Command line' }).fill(command);
    await page.getByRole('button', { name: 'Try it' }).click();
    await expect(verdict).toHaveAttribute('data-verdict', expected);
  };
  await attempt('git status && id', 'ask');
  await expect(verdict).toContainText('then, if that worked');
  await attempt('node --test', 'ask');

  await page.getByRole('button', { name: /^Add: .*node --test/ }).click();
  const editor = page.getByRole('dialog', { name: 'New rule' });
  await expect(editor.getByRole('button', { name: 'Save rule' })).toBeEnabled();
  await editor.getByRole('button', { name: 'Save rule' }).click();
  await expect(page.getByText('saved already')).toBeVisible();
  await attempt('node --test', 'allow');
  await attempt('node --test x', 'ask');
  await page.getByRole('button', { name: 'Make a rule from this…' }).click();
  await editor.getByRole('combobox', { name: 'Then' }).selectOption('reject');
  await editor.getByRole('button', { name: 'Save rule' }).click();
  await expect(editor).toHaveCount(0);
  await attempt('node --test x', 'reject');
});

test('R-18: a preset is read before it is used', async ({ bridge, open }) => {
  const page = await open();
  await goTo(page, bridge, '/approvals/rules');
  await page.getByRole('button', { name: 'Edits allowed: Look at its rules' }).click();
  const sheet = page.getByRole('dialog', { name: 'Rules of “Edits allowed”' });
  await expect(sheet.getByRole('listitem').filter({ hasText: /write/ }).first()).toBeVisible();
  await sheet.getByRole('button', { name: 'Use Edits allowed' }).click();
  await expect(page.getByRole('listitem').filter({ hasText: 'in use' })).toContainText('Edits allowed');
  expect((await (await bridge.client()).call('policy.get', {})).preset).toBe('edits');
});
