/** Changes of a real repository, reviewed: files, differences, comments that go to the agent as one message (F-20 to F-24, U-07). */
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { temporary } from '../bridge/process.ts';
import { composer, expect, idle, said, send, stored, storedMessages, test as base } from './ground.ts';

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=A Person', '-c', 'user.email=a@example.test', ...args], {
    cwd,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', HOME: cwd, GIT_CONFIG_NOSYSTEM: '1' },
  });
const numbered = (count: number): string =>
  Array.from({ length: count }, (_, index) => `export const value${index + 1} = ${index + 1};\n`).join('');
/** One red pixel, and one of another shade. */
const png = (shade: string): Buffer =>
  Buffer.from(
    `iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8${shade}AAAMBAQAY3Y2wAAAAAElFTkSuQmCC`,
    'base64',
  );

interface Scene {
  readonly page: Page;
  readonly conversationId: string;
  readonly folder: string;
}
const test = base.extend<{ scene: Scene }>({
  bridgeArgs: [],
  scene: async ({ bridge, open }, use) => {
    const folder = temporary('workspace');
    const at = (name: string): string => join(folder.path, name);
    mkdirSync(at('src'));
    writeFileSync(at('src/values.ts'), numbered(80));
    writeFileSync(at('src/date.ts'), 'export const read = (text: string): Date => {\n  return new Date(text);\n};\n');
    writeFileSync(at('README.md'), '# A repository\n\nIt reads dates.\n');
    writeFileSync(at('old-name.txt'), numbered(20));
    writeFileSync(at('logo.png'), png('BQ'));
    git(folder.path, 'init', '-q', '-b', 'main');
    git(folder.path, 'add', '.');
    git(folder.path, 'commit', '-q', '-m', 'Begin');
    const client = await bridge.client();
    const { workspaceId } = await client.change('workspace.open', { path: folder.path });
    const { conversationId } = await client.change('conversation.create', { workspaceId, agentId: 'practice' });
    const page = await open();
    await page.goto(`${bridge.ready.origin}/c/${conversationId}`);
    await expect(composer(page)).toBeEnabled();
    await use({ page, conversationId, folder: folder.path });
    folder.remove();
  },
});

/** Three files as an agent would leave them, one of them staged; and one that is new. */
const change = (folder: string): void => {
  const at = (name: string): string => join(folder, name);
  const values = readFileSync(at('src/values.ts'), 'utf8');
  writeFileSync(
    at('src/values.ts'),
    values.replace('value40 = 40', 'value40 = 41').replace('value70 = 70', 'value70 = 0'),
  );
  writeFileSync(
    at('src/date.ts'),
    'export const read = (text: string): Date => {\n  return parseISO(text);\n};\nexport const now = (): Date => new Date();\n',
  );
  git(folder, 'add', 'src/date.ts');
  appendFileSync(at('README.md'), '\nMore words.\n');
  writeFileSync(at('notes "draft"\t1.txt'), 'new\n');
};
const panel = (page: Page) => page.getByRole('tabpanel', { name: 'Changes' });
const listed = (page: Page, name: string | RegExp) =>
  panel(page).getByRole('group', { name: 'Changed files' }).getByRole('button', { name });
const diff = (page: Page, name: string) =>
  panel(page)
    .getByRole('region', { name: `Changes of ${name}`, exact: true })
    .last();
const openChanges = async (page: Page): Promise<void> => {
  await page.keyboard.press('Control+Shift+G');
  await expect(panel(page).getByRole('button', { name: 'Look again' })).toBeVisible();
};
/** A press on the number of a line of the side after the change. */
const commentOn = async (page: Page, line: string, text: string): Promise<void> => {
  const row = panel(page).locator('.row', { hasText: line }).last();
  await row.locator('[data-side="new"]').click();
  await panel(page)
    .getByRole('textbox', { name: /^Comment on line/ })
    .fill(text);
  await panel(page).getByRole('button', { name: 'Add comment' }).click();
};

test('F-20 to F-24: three changed files, two comments, one message', async ({ scene, bridge }) => {
  const { page, conversationId, folder } = scene;
  change(folder);
  await openChanges(page);
  await expect(panel(page)).toContainText('main');
  for (const heading of ['Staged 1', 'Not staged 2', 'Untracked 1'])
    await expect(panel(page).getByRole('button', { name: heading })).toBeVisible();

  await listed(page, /src\/values\.ts/).click();
  const values = diff(page, 'values.ts');
  await expect(values).toContainText('value40 = 41');
  await expect(values.locator('mark', { hasText: '41' })).toBeVisible();
  // Colours come from a worker, after the text.
  await expect(values.locator('.x-keyword').first()).toBeVisible({ timeout: 30_000 });
  await values.getByRole('button', { name: /^Show 2\d unchanged lines/ }).click();
  await expect(values).toContainText('value52 = 52');
  await commentOn(page, 'value40 = 41', 'Why not 42?');
  await expect(values.getByText('Why not 42?')).toBeVisible();

  await page.keyboard.press('Escape');
  await listed(page, /date\.ts/).click();
  await expect(diff(page, 'date.ts')).toContainText('parseISO');
  await commentOn(page, 'export const now', 'Is this used?');

  // Kept across a reload, with nothing sent; beside the composer too.
  await expect(panel(page).getByRole('button', { name: '2 review comments' })).toBeVisible();
  await page.getByRole('button', { name: 'Close the workspace panel' }).click();
  await page.reload();
  const review = page.getByRole('region', { name: 'Review comments' });
  await expect(review.getByRole('button', { name: '2 review comments' })).toBeVisible();
  await review.getByRole('button', { name: 'Send to agent' }).click();
  await expect(said(page).last()).toContainText('Why not 42?');
  await expect(said(page).last()).toContainText('Is this used?');
  await expect(review).toHaveCount(0);
  await idle(bridge, conversationId);
  const messages = storedMessages(await stored(bridge, conversationId), 'user');
  expect(messages).toHaveLength(1);
  expect(messages[0]).toContain('`src/values.ts:40`');
  expect(messages[0]).toContain('```\nexport const value40 = 41;\n```\n\nWhy not 42?');
  expect(messages[0]).toContain('`src/date.ts:4`');
});

test('keys: files, lines, changes, a range with its comment, and back', async ({ scene }) => {
  const { page, folder } = scene;
  change(folder);
  await openChanges(page);
  await listed(page, /date\.ts/).focus();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await expect(listed(page, /README\.md/)).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  const values = diff(page, 'values.ts');
  await expect(values).toBeFocused();
  await expect(values.locator('.row.current')).toContainText('value40 = 40');
  await page.keyboard.press('n');
  await expect(values.locator('.row.current')).toContainText('value70 = 70');
  await page.keyboard.press('p');
  await page.keyboard.press('j');
  await page.keyboard.press('Shift+ArrowDown');
  await page.keyboard.press('Shift+ArrowDown');
  await page.keyboard.press('c');
  await page.getByRole('textbox', { name: 'Comment on lines 40–42' }).fill('These three.');
  await page.keyboard.press('Control+Enter');
  await expect(values.getByText('These three.')).toBeVisible();
  await expect(values).toBeFocused();
  // Past the last change comes the next file.
  await page.keyboard.press('n');
  await page.keyboard.press('n');
  await expect(diff(page, 'notes "draft"\\x091.txt')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(listed(page, /notes/)).toBeFocused();
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keys in Changes' })).toBeVisible();
  await page.keyboard.press('Escape');
  await listed(page, /values\.ts/).focus();
  await page.keyboard.press('o');
  await expect(page.getByRole('tab', { name: 'Files' })).toHaveAttribute('aria-selected', 'true');
});

test('F-24: a comment follows its lines, and is stale when they are gone', async ({ scene, bridge }) => {
  const { page, folder, conversationId } = scene;
  change(folder);
  await openChanges(page);
  await listed(page, /src\/values\.ts/).click();
  await commentOn(page, 'value40 = 41', 'Look here.');
  const path = join(folder, 'src/values.ts');
  const before = readFileSync(path, 'utf8');
  writeFileSync(path, `// one more line\n${before}`);
  await panel(page).getByRole('button', { name: 'Look again' }).click();
  await expect(diff(page, 'values.ts').getByText('the lines moved')).toBeVisible();
  await expect(diff(page, 'values.ts')).toContainText('line 41');
  writeFileSync(path, before.replace('value40 = 41', 'value40 = 42'));
  await panel(page).getByRole('button', { name: 'Look again' }).click();
  await expect(diff(page, 'values.ts').getByText('these lines have changed since')).toBeVisible();
  await expect(panel(page).getByText('1 stale')).toBeVisible();
  // While a turn runs it waits in the queue; a link opens the file again.
  await page.goto(
    `${bridge.ready.origin}/c/${conversationId}?changes=staged&entry=${Buffer.from('src/date.ts').toString('base64url')}`,
  );
  await expect(diff(page, 'date.ts')).toContainText('parseISO');
});

test('kinds of changes are told in words; commits and side by side', async ({ scene }) => {
  const { page, folder } = scene;
  const at = (name: string): string => join(folder, name);
  renameSync(at('old-name.txt'), at('new-name.txt'));
  appendFileSync(at('new-name.txt'), 'one more\n');
  git(folder, 'add', '-A');
  writeFileSync(at('logo.png'), png('AA'));
  writeFileSync(at('data.bin'), Buffer.from([0, 1, 2, 255, 0, 7]));
  writeFileSync(at('.env'), 'TOKEN=not-shown-anywhere\n');
  writeFileSync(at('README.md'), readFileSync(at('README.md'), 'utf8').replaceAll('\n', '\r\n'));
  writeFileSync(at('many.txt'), 'x\n'.repeat(4000));
  rmSync(at('src/date.ts'));
  await openChanges(page);
  await listed(page, /new-name\.txt/).click();
  await expect(panel(page)).toContainText('renamed');
  await expect(panel(page).getByRole('heading')).toContainText('old-name.txt → new-name.txt');
  await page.keyboard.press('Escape');
  await listed(page, /logo\.png/).click();
  await expect(panel(page).getByRole('img', { name: 'Before: logo.png' })).toBeVisible();
  await expect(panel(page).getByRole('img', { name: 'After: logo.png' })).toBeVisible();
  for (const [name, words] of [
    [/data\.bin/, 'Binary file'],
    [/\.env/, 'This file is kept secret'],
    [/README\.md/, 'Nothing but the ends of the lines changed.'],
    [/many\.txt/, 'A large change'],
    [/date\.ts/, 'deleted'],
  ] as const) {
    await panel(page).getByRole('button', { name: 'Back to the list' }).click();
    await listed(page, name).click();
    await expect(panel(page)).toContainText(words);
  }
  await expect(page.getByText('not-shown-anywhere')).toHaveCount(0);
  await panel(page).getByRole('button', { name: 'Back to the list' }).click();
  await listed(page, /many\.txt/).click();
  await panel(page).getByRole('button', { name: 'Show it' }).click();
  const many = diff(page, 'many.txt');
  await expect(many).toContainText('x');
  expect(await many.locator('.row').count()).toBeLessThan(200);

  // Wider, the list stands beside it; then two columns fit.
  await page.getByRole('separator', { name: 'Width of the workspace panel' }).focus();
  for (let press = 0; press < 30; press += 1) await page.keyboard.press('ArrowLeft');
  await listed(page, /new-name\.txt/).click();
  await panel(page).getByRole('button', { name: 'Side by side' }).click();
  const pairOf = diff(page, 'new-name.txt').locator('.row.pair').last();
  await expect(pairOf.locator('[data-half="new"]')).toContainText('one more');
  await expect(pairOf.locator('[data-half="old"] code')).toHaveCount(0);

  await panel(page).getByRole('button', { name: 'Not committed' }).click();
  await page.getByRole('menuitemradio', { name: /Begin/ }).click();
  await expect(listed(page, /src\/values\.ts/)).toBeVisible();
  await expect(panel(page).getByText('Begin').first()).toBeVisible();
});

test('without a repository it says so, and what still works', async ({ scene }) => {
  const { page, folder } = scene;
  rmSync(join(folder, '.git'), { recursive: true });
  await openChanges(page);
  await expect(panel(page)).toContainText('This folder is not in a git repository');
});

test('a queued review waits for the turn that runs', async ({ scene, bridge }) => {
  const { page, folder, conversationId } = scene;
  change(folder);
  await openChanges(page);
  await listed(page, /README\.md/).click();
  await commentOn(page, 'More words.', 'Which ones?');
  await send(page, 'run the tests');
  await expect(page.locator('article.card[data-state="pending"]')).toBeVisible({ timeout: 20_000 });
  // What changes meanwhile belongs to this turn.
  await panel(page).getByRole('button', { name: 'Not committed' }).click();
  await page.getByRole('menuitemradio', { name: /^This turn/ }).click();
  writeFileSync(join(folder, 'src/values.ts'), numbered(80).replace('= 12;', '= 13;'));
  await panel(page).getByRole('button', { name: 'Look again' }).click();
  await listed(page, /values\.ts/).click();
  await expect(diff(page, 'values.ts')).toContainText('value12 = 13');
  await panel(page).getByRole('button', { name: 'Queue for the agent' }).click();
  await expect(page.getByRole('group', { name: /1 message waits|queued/i })).toContainText('Which ones?');
  await expect(panel(page).getByRole('region', { name: 'Review comments' })).toHaveCount(0);
  const client = await bridge.client();
  expect((await client.call('conversation.get', { conversationId })).queue).toHaveLength(1);
});

test('U-41: colours stay when the list is read anew and this file is as it was', async ({ scene }) => {
  const { page, folder } = scene;
  change(folder);
  await openChanges(page);
  await listed(page, /values\.ts/).click();
  await expect(diff(page, 'values.ts').locator('.x-keyword').first()).toBeVisible({ timeout: 30_000 });
  for (const word of ['one', 'two', 'three']) {
    appendFileSync(join(folder, 'README.md'), `${word}\n`);
    await panel(page).getByRole('button', { name: 'Look again' }).click();
    // What was coloured may not lose it a moment later, and nothing on the page tells when the list has come.
    await page.waitForTimeout(700);
    await expect(diff(page, 'values.ts').locator('.x-keyword').first()).toBeVisible();
  }
});

for (const theme of ['light', 'dark'] as const)
  test(`U-50: no fault for a screen reader or a keyboard, ${theme}`, async ({ scene }) => {
    const { page, folder } = scene;
    change(folder);
    await page.emulateMedia({ colorScheme: theme });
    await openChanges(page);
    const clean = async (): Promise<void> => {
      const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
      expect(violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 200)}`))).toEqual(
        [],
      );
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    };
    await expect(listed(page, /values\.ts/)).toBeVisible();
    await clean();
    await listed(page, /values\.ts/).click();
    await expect(diff(page, 'values.ts').locator('.x-keyword').first()).toBeVisible({ timeout: 30_000 });
    await commentOn(page, 'value40 = 41', 'Look here.');
    await clean();
    for (const [width, height] of [
      [390, 844],
      [320, 640],
    ] as const) {
      await page.setViewportSize({ width, height });
      await expect(panel(page).getByRole('button', { name: 'Back to the list' })).toBeVisible();
      await clean();
    }
  });
