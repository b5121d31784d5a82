/** The files panel (F-01 to F-07, U-07, U-12): find, search, read, add to the message; both widths; nothing of it runs. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { temporary } from '../bridge/process.ts';
import { composer, expect, test as base } from './ground.ts';

const program = fileURLToPath(new URL('../agents/scripted/agent.ts', import.meta.url));
/** A red square of 2 × 2. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR42mP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==',
  'base64',
);

interface Scene {
  readonly page: Page;
  readonly folder: string;
  readonly conversationId: string;
  readonly origin: string;
}
const test = base.extend<{ scene: Scene }>({
  bridgeArgs: [],
  scene: async ({ bridge, open }, use) => {
    const made = temporary('files');
    const folder = made.path;
    const write = (path: string, content: string | Uint8Array): void => {
      mkdirSync(join(folder, path, '..'), { recursive: true });
      writeFileSync(join(folder, path), content);
    };
    write('README.md', '# Dates\n\nParses dates.\n');
    write(
      'src/date.ts',
      Array.from({ length: 400 }, (_, at) => `export const day${at + 1} = ${at + 1}; // date\n`).join(''),
    );
    write('src/deep/er/parse.ts', '/** Parses. */\nexport const parseDate = (text: string) => new Date(text);\n');
    write('src/deep/er/windows.txt', '\ufeffone\r\ntwo\r\n');
    write('.env', 'TOKEN=do-not-show\n');
    write('.gitignore', 'dist/\n');
    write('dist/built.js', 'parseDate\n');
    write('logo.png', png);
    write('blob.bin', Buffer.from(Array.from({ length: 600 }, (_, at) => at % 256)));
    symlinkSync('/etc', join(folder, 'outside'));
    const client = await bridge.client();
    const { workspaceId } = await client.change('workspace.open', { path: folder });
    const { agentId } = await client.change('agent.add', {
      title: 'Scripted',
      command: process.execPath,
      args: [program],
      env: [],
    });
    const asked = { workspaceId, agentId, acceptUnrestricted: true };
    const { conversationId } = await client.change('conversation.create', asked);
    const page = await open();
    await page.goto(`${bridge.ready.origin}/c/${conversationId}`);
    await expect(composer(page)).toBeEnabled();
    await use({ page, folder, conversationId, origin: bridge.ready.origin });
    made.remove();
  },
});

const panel = (page: Page) => page.getByRole('tabpanel');
const tree = (page: Page) => page.getByRole('tree');
const item = (page: Page, name: string) => page.getByRole('treeitem').filter({ hasText: name });
const find = (page: Page) => page.getByRole('combobox', { name: 'Find a file by name' });
const line = (page: Page, text: string) => panel(page).locator('.line').filter({ hasText: text });
const show = async (page: Page): Promise<void> => {
  await page.keyboard.press('Control+Shift+F');
  await expect(item(page, 'README.md')).toBeVisible();
};
const expectAccessible = async (page: Page): Promise<void> => {
  const found = await new AxeBuilder({ page }).include('#dock-panel').analyze();
  expect(found.violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
};
/** For looking at, when asked for. */
const shoot = async (page: Page, name: string): Promise<void> => {
  const folder = process.env['SHOTS'];
  if (folder === undefined) return;
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.screenshot({ path: join(folder, `${name}-${scheme}.png`) });
  }
};

test('the tree opens in place by mouse and keyboard, and is as it was left', async ({ scene: { page } }) => {
  await show(page);
  await shoot(page, 'tree');
  await expectAccessible(page);
  await item(page, 'src').click();
  await expect(item(page, 'deep')).toHaveAttribute('aria-level', '2');
  await expect(item(page, 'date.ts')).toBeVisible();
  await tree(page).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await expect(item(page, 'er')).toHaveAttribute('aria-expanded', 'false');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await expect(item(page, 'parse.ts')).toHaveAttribute('aria-level', '4');
  await page.keyboard.type('wind');
  await expect(item(page, 'windows.txt')).toHaveAttribute('aria-selected', 'true');
  await page.keyboard.press('Enter');
  await expect(line(page, 'two')).toBeVisible();
  await expect(panel(page).getByLabel('About this file')).toContainText('UTF-8 · BOM · CRLF');
  await panel(page).getByRole('button', { name: 'Back to the list' }).click();
  await tree(page).focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowLeft');
  await expect(item(page, 'outside')).toContainText('/etc');
  await expect(item(page, 'outside')).toContainText('leads outside');
  await shoot(page, 'tree-open');
  await page.waitForTimeout(900);
  await page.reload();
  await expect(item(page, 'parse.ts')).toBeVisible();
});

test('a file is found by letters of its name, read, and its lines go into the message', async ({ scene }) => {
  const { page, conversationId } = scene;
  await show(page);
  await tree(page).focus();
  await page.keyboard.press('Control+p');
  await find(page).fill('srcdate');
  const first = page.getByRole('option').first();
  await expect(first).toHaveAttribute('title', 'src/date.ts');
  await shoot(page, 'names');
  await expectAccessible(page);
  await page.keyboard.press('Enter');
  await expect(line(page, 'day3 = 3')).toBeVisible();
  await expect(panel(page).locator('.x-keyword').first()).toBeVisible();
  await panel(page).locator('[data-line="3"]').click();
  await panel(page)
    .locator('[data-line="5"]')
    .click({ modifiers: ['Shift'] });
  await shoot(page, 'file');
  await expectAccessible(page);
  await panel(page).getByRole('button', { name: 'Add lines 3–5 to message' }).click();
  await expect(composer(page)).toHaveValue(/@src\/date\.ts:3-5\n```\nexport const day3 = 3;.*\n.*\n.*day5.*\n```/);
  await panel(page).getByRole('textbox', { name: 'Go to line' }).fill('390');
  await page.keyboard.press('Enter');
  await expect(line(page, 'day390 =')).toBeVisible();
  await page.goto(`${scene.origin}/c/${conversationId}?file=src%2Fdate.ts&line=250`);
  await expect(line(page, 'day250 =')).toBeVisible();
  await expect(line(page, 'day250 =')).toHaveClass(/picked/);
});

test('contents are searched, and a line that was found is opened', async ({ scene: { page } }) => {
  await show(page);
  await panel(page).getByRole('button', { name: 'Contents' }).click();
  await page.getByRole('textbox', { name: 'Search in files' }).fill('parsedate');
  await page.keyboard.press('Enter');
  const found = page.getByRole('option');
  await expect(found).toHaveCount(1);
  await expect(found).toContainText('parseDate');
  await expect(panel(page).getByRole('status')).toContainText('1 line in 1 file');
  await page.getByRole('textbox', { name: 'Search in files' }).fill('day[12] = |Parses');
  await panel(page).getByRole('button', { name: 'Regular expression' }).click();
  await page.getByRole('textbox', { name: 'Search in files' }).press('Enter');
  await expect(found).toHaveCount(4);
  await shoot(page, 'contents');
  await expectAccessible(page);
  await panel(page).getByRole('listbox').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(panel(page)).toContainText('1 of 4');
  await panel(page).getByRole('button', { name: 'Next place' }).click();
  await expect(panel(page)).toContainText('2 of 4');
  await shoot(page, 'place');
  await expectAccessible(page);
  await panel(page).getByRole('button', { name: 'Back to the results' }).click();
  await expect(found).toHaveCount(4);
});

test('a pattern without an end is ended and said, and the next search works', async ({ scene: { page, folder } }) => {
  writeFileSync(join(folder, 'evil.txt'), `${'x'.repeat(80)}\n`);
  await show(page);
  await panel(page).getByRole('button', { name: 'Contents' }).click();
  await panel(page).getByRole('button', { name: 'Regular expression' }).click();
  const box = page.getByRole('textbox', { name: 'Search in files' });
  await box.fill('(x+x+)+y');
  await box.press('Enter');
  await expect(panel(page).getByRole('status')).toContainText('takes too long', { timeout: 40_000 });
  await box.fill('pars(e|es) dates');
  await box.press('Enter');
  await expect(page.getByRole('option')).toHaveCount(1);
});

test('pictures, bytes, secrets and files of any length have their own view', async ({ scene: { page, folder } }) => {
  writeFileSync(join(folder, 'large.log'), `${'x'.repeat(60)}\n`.repeat(300_000));
  await show(page);
  const view = async (name: string): Promise<void> => {
    const back = panel(page).getByRole('button', { name: 'Back to the list' });
    if (await back.isVisible()) await back.click();
    await item(page, name).click();
  };
  await view('logo.png');
  await expect(page.getByRole('img', { name: 'logo.png' })).toBeVisible();
  await expect(panel(page)).toContainText('2 × 2');
  await panel(page).getByRole('button', { name: 'Actual size' }).click();
  await shoot(page, 'picture');
  await expectAccessible(page);
  await view('blob.bin');
  await expect(panel(page).locator('pre')).toContainText('000040  40 41 42');
  await shoot(page, 'bytes');
  await expectAccessible(page);
  await view('.env');
  await expect(panel(page)).toContainText('This file is kept secret');
  await expect(page.getByText('do-not-show')).toHaveCount(0);
  await shoot(page, 'secret');
  await view('large.log');
  await expect(panel(page).getByLabel('About this file')).toContainText('300,000 lines');
  await panel(page).getByRole('textbox', { name: 'Go to line' }).fill('299999');
  await page.keyboard.press('Enter');
  await expect(panel(page).locator('[data-line="299999"]')).toBeVisible();
  await expect(
    panel(page)
      .locator('.line')
      .filter({ has: page.locator('[data-line="299999"]') }),
  ).toContainText('xxxx');
});

test('a folder of 20,000 entries scrolls to its end', async ({ scene: { page, folder } }) => {
  mkdirSync(join(folder, 'many'));
  for (let file = 1; file <= 20_000; file += 1)
    writeFileSync(join(folder, 'many', `file-${String(file).padStart(5, '0')}.txt`), '');
  await show(page);
  await item(page, 'many').click();
  await expect(item(page, 'file-00001.txt')).toBeVisible();
  await tree(page).focus();
  await page.keyboard.press('End');
  await expect(item(page, 'README.md')).toBeVisible();
  expect(await page.getByRole('treeitem').count()).toBeLessThan(200);
  await tree(page).evaluate((box) => box.scrollTo({ top: 28 * 10_000 }));
  await expect(item(page, 'file-10000.txt')).toBeVisible();
  await shoot(page, 'many');
});

test('what changes on disk is noticed, in the tree and in the file that is read', async ({
  scene: { page, folder },
}) => {
  await show(page);
  await page.waitForTimeout(600); // until the watch is taken
  writeFileSync(join(folder, 'new.txt'), '');
  await expect(item(page, 'new.txt')).toBeVisible();
  rmSync(join(folder, 'new.txt'));
  await expect(item(page, 'new.txt')).toHaveCount(0);
  await item(page, 'README.md').click();
  await expect(line(page, '# Dates')).toBeVisible();
  await page.waitForTimeout(600);
  appendFileSync(join(folder, 'README.md'), 'added later\n');
  await expect(panel(page)).toContainText('This file changed on disk.');
  await shoot(page, 'changed');
  await panel(page).getByRole('button', { name: 'Read again' }).click();
  await expect(line(page, 'added later')).toBeVisible();
  await expect(panel(page)).not.toContainText('This file changed on disk.');
});

test('what git says stands beside the names, and with room the tree stays beside the file', async ({ scene }) => {
  const { page, folder } = scene;
  const git = (...argv: string[]): void =>
    void execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...argv], { cwd: folder });
  git('init', '-q');
  git('add', '.');
  git('commit', '-q', '-m', 'one');
  appendFileSync(join(folder, 'src/date.ts'), 'export const last = 0;\n');
  writeFileSync(join(folder, 'src/new.ts'), '');
  await show(page);
  await expect(item(page, 'src').getByLabel('has changes')).toBeVisible();
  await item(page, 'src').click();
  await expect(item(page, 'date.ts').getByLabel('modified')).toHaveText('M');
  await expect(item(page, 'new.ts').getByLabel('new')).toHaveText('N');
  await item(page, 'date.ts').click();
  await page.getByRole('separator').focus();
  for (let step = 0; step < 20; step += 1) await page.keyboard.press('ArrowLeft');
  await expect(line(page, 'day1 =')).toBeVisible();
  await expect(item(page, 'new.ts')).toBeVisible();
  await shoot(page, 'wide');
  await expectAccessible(page);
  git('commit', '-q', '-am', 'two');
  await expect(item(page, 'date.ts').getByLabel('modified')).toHaveCount(0, { timeout: 20_000 });
});

test('on a phone one thing is seen at a time, and nothing is wider than the screen', async ({ scene: { page } }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole('navigation', { name: 'Sections' }).getByText('Files').click();
  await expect(item(page, 'README.md')).toBeVisible();
  await shoot(page, 'phone-tree');
  await expectAccessible(page);
  await item(page, 'src').click();
  await item(page, 'date.ts').click();
  await expect(line(page, 'day1 =')).toBeVisible();
  await expect(item(page, 'date.ts')).toBeHidden();
  await shoot(page, 'phone-file');
  await expectAccessible(page);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await panel(page).getByRole('button', { name: 'Back to the list' }).click();
  await expect(item(page, 'date.ts')).toBeVisible();
  await panel(page).getByRole('button', { name: 'Contents' }).click();
  await page.getByRole('textbox', { name: 'Search in files' }).fill('Parses');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('option').first()).toBeVisible();
  await shoot(page, 'phone-contents');
  await expectAccessible(page);
});
