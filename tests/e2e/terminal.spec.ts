/** The operator's terminals in the browser (P-01 to P-03, T72 to T74, case 59): a real bridge, a real shell. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AxeBuilder } from '@axe-core/playwright';
import type { Locator, Page } from '@playwright/test';
import { temporary } from '../bridge/process.ts';
import { composer, connection, expect, refusedConnection, test as base } from './ground.ts';

const program = fileURLToPath(new URL('../agents/scripted/agent.ts', import.meta.url));

interface Scene {
  readonly page: Page;
  readonly folder: string;
}
const test = base.extend<{ scene: Scene }>({
  bridgeArgs: [],
  // The shell of the one who runs the tests has a prompt, a history and habits of its own.
  bridgeEnv: async ({}, use) => {
    const home = temporary('home');
    writeFileSync(join(home.path, '.bashrc'), "PS1='$ '; unset HISTFILE; bind 'set enable-bracketed-paste off'\n");
    await use({ SHELL: '/bin/bash', HOME: home.path });
    home.remove();
  },
  scene: async ({ bridge, open }, use) => {
    const made = temporary('terminal');
    const client = await bridge.client();
    const { workspaceId } = await client.change('workspace.open', { path: made.path });
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
    await page.keyboard.press('Control+Shift+Y');
    await use({ page, folder: made.path });
    made.remove();
  },
});

const tabs = (page: Page): Locator => page.getByRole('tablist', { name: 'Terminals' }).getByRole('tab');
const panes = (page: Page): Locator => page.locator('.pane');
const keyboard = (page: Page, at = 0): Locator => page.locator('.xterm-helper-textarea').nth(at);
const rows = (page: Page, at = 0): Locator => page.locator('.xterm-rows').nth(at);
const screenText = async (page: Page, at = 0): Promise<string> =>
  (await rows(page, at).locator('> div').allTextContents())
    .map((line) => line.replaceAll('\u00a0', ' ').trimEnd())
    .join('\n')
    .trimEnd();
const expectScreen = (page: Page, what: RegExp | string, at = 0, timeout = 30_000): Promise<void> =>
  expect.poll(() => screenText(page, at), { timeout }).toMatch(what);

/** Opens the first terminal of a workspace and waits for its prompt. */
const begin = async (page: Page): Promise<void> => {
  await page.getByRole('button', { name: 'New terminal', exact: true }).click();
  await expectScreen(page, '$');
  await expect(keyboard(page)).toBeFocused();
};
const type = async (page: Page, text: string): Promise<void> => {
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
};

test('a command is typed once, and its screen survives a reload in the middle of its output', async ({ scene }) => {
  const { page } = scene;
  await expect(page.getByText('Agents cannot read it or type here')).toBeVisible();
  await begin(page);
  await type(page, 'echo "a b  c" | tr a-c x-z');
  await expectScreen(page, /^x y {2}z$/m);
  // Slow output, and a reload while it comes.
  await type(
    page,
    'for i in 1 2 3 4 5 6 7 8 9; do printf "\\033[3%sm line-%s \\033[0m\\n" $i $i; sleep 0.2; done; echo over',
  );
  await expectScreen(page, 'line-3');
  await page.reload();
  await expect(tabs(page)).toHaveCount(1);
  await expectScreen(page, /^over$/m);
  const text = await screenText(page);
  for (const at of [1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(text.match(new RegExp(`^ line-${at}$`, 'gm')), `line ${at}`).toHaveLength(1);
  // Nothing was typed or answered by the replay.
  expect(text.split('\n').at(-1)).toBe('$');
  const before = await screenText(page);
  await page.reload();
  await expectScreen(page, /^over$/m);
  expect(await screenText(page)).toBe(before);
});

test('a terminal has the size of its pane, and follows it', async ({ scene }) => {
  const { page } = scene;
  await begin(page);
  await type(page, 'stty size');
  await expectScreen(page, /^\d+ \d+$/m);
  const first = /^(\d+) (\d+)$/m.exec(await screenText(page));
  await page.setViewportSize({ width: 1440, height: 600 });
  await page.getByRole('separator', { name: /Width of the workspace panel/ }).focus();
  for (let at = 0; at < 6; at += 1) await page.keyboard.press('ArrowLeft');
  await keyboard(page).focus();
  await expect(async () => {
    await type(page, 'clear; stty size');
    const now = /^(\d+) (\d+)$/m.exec(await screenText(page));
    expect(Number(now?.[1])).toBeLessThan(Number(first?.[1]));
    expect(Number(now?.[2])).toBeGreaterThan(Number(first?.[2]));
  }).toPass();
});

test('tabs: renamed, split, divided by keyboard, ended on asking, started again', async ({ scene }) => {
  const { page } = scene;
  await begin(page);
  await tabs(page).first().focus();
  await page.keyboard.press('F2');
  await page.getByRole('textbox', { name: 'Name' }).fill('tests');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(tabs(page).first()).toHaveAccessibleName('tests, running');

  await page.getByRole('button', { name: 'Show another beside it' }).click();
  await expect(panes(page)).toHaveCount(2);
  await expect(tabs(page)).toHaveCount(2);
  await expectScreen(page, '$', 1);
  await keyboard(page, 1).focus();
  await type(page, 'echo second-$((40+2))');
  await expectScreen(page, /^second-42$/m, 1);
  expect(await screenText(page, 0)).not.toContain('second');
  const divider = page.getByRole('separator', { name: 'Share of the two terminals' });
  await divider.focus();
  await page.keyboard.press('ArrowDown');
  await expect(divider).toHaveAttribute('aria-valuenow', '55');

  await keyboard(page, 1).focus();
  await type(page, 'exit 3');
  await expect(
    page.getByRole('tabpanel', { name: 'Terminal' }).getByText('The shell ended with exit code 3.'),
  ).toBeVisible();
  await expect(tabs(page).nth(1)).toHaveAccessibleName(/, ended$/);
  await page.getByRole('button', { name: 'Start again' }).click();
  await expect(tabs(page).nth(1)).toHaveAccessibleName(/, running$/);
  await expectScreen(page, '$', 1);

  await page.getByRole('button', { name: 'End this terminal' }).click();
  await expect(page.getByRole('alertdialog')).toContainText('are ended');
  await page.getByRole('button', { name: 'End it' }).click();
  await expect(tabs(page)).toHaveCount(1);
  await expect(panes(page)).toHaveCount(1);
});

test('after the bridge ended a tab says so', async ({ scene, bridge, watch }) => {
  const { page } = scene;
  watch.allow(refusedConnection);
  await begin(page);
  const { port } = bridge;
  await bridge.stop();
  await bridge.start(port);
  await expect(connection(page, 'live')).toBeVisible({ timeout: 30_000 });
  await expect(page.getByText('It ended with the bridge.')).toBeVisible();
  await page.reload();
  await expect(page.getByText('It ended with the bridge.')).toBeVisible();
  await page.getByRole('button', { name: 'Start again' }).click();
  await expectScreen(page, '$');
});

test('search in what scrolled away; every key but two reaches the shell', async ({ scene }) => {
  const { page } = scene;
  await begin(page);
  await type(page, 'seq -f "row %g" 1 300; echo needle');
  await expectScreen(page, /^needle$/m);
  await page.keyboard.press('Control+Shift+F');
  const find = page.getByRole('textbox', { name: 'Find in this terminal' });
  await find.fill('row 17');
  // 17 and 170 to 179.
  await expect(page.getByRole('search').getByRole('status')).toHaveText(/^\d+ of 11$/);
  await find.press('Enter');
  await find.press('Shift+Enter');
  await find.press('Escape');
  await expect(keyboard(page)).toBeFocused();
  // Escape and Tab are the shell's; the chord leaves.
  await page.keyboard.press('Escape');
  await page.keyboard.press('Tab');
  await expect(keyboard(page)).toBeFocused();
  await page.keyboard.press('Control+Shift+Escape');
  await expect(tabs(page).first()).toBeFocused();
});

const paste = async (page: Page, text: string): Promise<void> =>
  keyboard(page).evaluate((element, value) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', value);
    element.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }, text);

test('several lines are shown before they are pasted, unless the program brackets them (P-03, T74)', async ({
  scene,
}) => {
  const { page } = scene;
  await begin(page);
  await paste(page, 'echo on$((1))e');
  await page.keyboard.press('Enter');
  await expectScreen(page, /^on1e$/m);
  await paste(page, 'echo tw\\o\u202e\nrm -rf nothing\n');
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('Paste 2 lines?');
  await expect(dialog).toContainText('⟨U+202E⟩');
  await expect(dialog.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await expect(keyboard(page)).toBeFocused();
  expect(await screenText(page)).not.toContain('rm -rf');
  await paste(page, 'echo 1$((1))\necho 2$((2))\n');
  await dialog.getByRole('button', { name: 'Paste', exact: true }).click();
  await expectScreen(page, /^22$/m);
  // Bracketed: the end of the bracket inside the text does not end it.
  await type(page, `printf '\\033[?2004h'; stty raw -echo; dd bs=1 count=23 2>/dev/null | od -An -c; stty sane`);
  await page.waitForTimeout(500);
  await paste(page, 'a\n\u001b[201~b!');
  await expect(dialog).toHaveCount(0);
  await expectScreen(page, /033 +\[ +2 +0 +0 +~ +a +\\r +\[ +2 +0/);
});

test('a program asks for the clipboard and the operator decides; links are shown before they open', async ({
  scene,
}) => {
  const { page } = scene;
  await begin(page);
  await page.context().grantPermissions(['clipboard-write']);
  await type(page, `printf '\\033]52;c;%s\\a' "$(printf 'secret words' | base64)"`);
  await expect(page.getByText('The program wants to copy 12 characters:')).toBeVisible();
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await expect(page.getByText('Copied.')).toBeVisible();
  // A question about it is never answered.
  await type(page, `printf '\\033]52;c;?\\a'; echo as''ked`);
  await expectScreen(page, /^asked$/m);
  await expect(page.getByText('wants to copy')).toHaveCount(0);

  await type(page, `clear; printf '\\033]8;;https://example.org/deep?x=1\\033\\\\shown\\033]8;;\\033\\\\\\n'`);
  await expectScreen(page, /^shown$/m);
  const at = await rows(page).locator('> div').first().boundingBox();
  if (at === null) throw new Error('no row');
  await page.mouse.move(at.x + 10, at.y + at.height / 2);
  await page.mouse.move(at.x + 14, at.y + at.height / 2);
  await page.mouse.click(at.x + 14, at.y + at.height / 2);
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('example.org');
  await expect(dialog.getByRole('link', { name: 'Open' })).toHaveAttribute('rel', /noopener/);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
});

test('a question is answered by a terminal that has the keyboard, and by no other (T73)', async ({ scene }) => {
  const { page, folder } = scene;
  // What a terminal answers arrives as if it were typed: read back with a second of patience.
  writeFileSync(
    join(folder, 'ask'),
    `stty -echo -icanon min 0 time 10; sleep 1; printf '\\033[c\\033[6n\\033]11;?\\007'
     said=$(dd bs=1 count=40 2>/dev/null | od -An -c | tr -d ' \\n'); stty sane; echo "said($said)"\n`,
  );
  await begin(page);
  await type(page, '. ./ask');
  await expectScreen(page, /^said\(033\[\?/m);
  await type(page, 'clear; . ./ask');
  await page.keyboard.press('Control+Shift+Escape');
  await expect(tabs(page).first()).toBeFocused();
  await expectScreen(page, /^said\(\)$/m);
});

test('hostile output leaves the page usable (T72)', async ({ scene }) => {
  test.setTimeout(240_000);
  const { page, folder } = scene;
  const huge = 2 ** 31 - 1;
  const finals = ['b', 'S', 'T', 'L', 'M', '@', 'P', 'X', 'I', 'Z', 'C', 'B'];
  writeFileSync(
    join(folder, 'counts'),
    finals
      .map((final) => `x\x1b[${huge}${final}`)
      .join('')
      .repeat(20),
  );
  writeFileSync(join(folder, 'osc'), `\x1b]0;${'t'.repeat(5_000_000)}\x07\x1bP${'d'.repeat(5_000_000)}\x1b\\`);
  writeFileSync(
    join(folder, 'links'),
    Array.from({ length: 50_000 }, (_, at) => `\x1b]8;;https://example.org/${at}\x1b\\l\x1b]8;;\x1b\\`).join(''),
  );
  writeFileSync(join(folder, 'bells'), '\x07'.repeat(1_000_000));
  await begin(page);
  for (const name of ['counts', 'osc', 'links', 'bells']) {
    await type(page, `cat ${name}; printf '\\033c'; echo ok''-${name}`);
    await expectScreen(page, new RegExp(`^ok-${name}$`, 'm'), 0, 60_000);
    // It still takes a key, and a press elsewhere.
    await page.getByRole('button', { name: 'More for this terminal' }).click();
    await page.keyboard.press('Escape');
    await keyboard(page).focus();
  }
});

test('a window that does not own the size says so and can take it over', async ({ scene, context }) => {
  const { page } = scene;
  await begin(page);
  const other = await context.newPage();
  await other.setViewportSize({ width: 1000, height: 500 });
  await other.goto(page.url());
  await expect(other.getByText('Another window has the size of this terminal.')).toBeVisible();
  await other.getByRole('button', { name: 'Take over' }).click();
  await expect(other.getByText('Another window has the size')).toHaveCount(0);
  await expect(page.getByText('Another window has the size of this terminal.')).toBeVisible();
  await keyboard(other).focus();
  await type(other, 'echo from-$((1+1))');
  await expectScreen(page, /^from-2$/m);
});

test('vim opens, survives a reload, and goes', async ({ scene }) => {
  const { page, folder } = scene;
  writeFileSync(join(folder, 'note.txt'), 'one\ntwo\n');
  await begin(page);
  await type(page, 'command -v vim || command -v vi || echo no-editor');
  await expectScreen(page, /^(\/.*vim?|no-editor)$/m);
  test.skip((await screenText(page)).includes('no-editor'), 'no vi on this machine');
  await type(page, '$(command -v vim || command -v vi) note.txt');
  await expectScreen(page, /^~$/m);
  await page.reload();
  await expectScreen(page, /^one\ntwo\n~/m);
  await keyboard(page).focus();
  await page.keyboard.type('Gothree');
  await page.keyboard.press('Escape');
  await expectScreen(page, /^three$/m);
  await type(page, ':q!');
  await expectScreen(page, /\$$/);
  expect(await screenText(page)).not.toMatch(/^~$/m);
});

test('looks: both themes, both widths, without a fault that axe finds', async ({ scene }) => {
  const { page } = scene;
  await begin(page);
  await type(
    page,
    'clear; for i in 0 1 2 3 4 5 6 7; do printf "\\033[3${i}mcolour $i \\033[9${i}mbright\\033[0m \\033[4${i}m back \\033[0m\\n"; done',
  );
  await expectScreen(page, 'colour 7');
  // Its own colours, under the policy: what the library writes as style elements is in force.
  await expect(rows(page).locator('.xterm-fg-1').first()).toHaveCSS('color', /rgb\((?!28, 26, 23)/);
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await page.waitForTimeout(200);
    await page.screenshot({ path: test.info().outputPath(`terminal-${theme}.png`) });
    const found = await new AxeBuilder({ page }).include('.dock').analyze();
    expect(found.violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 200))])).toEqual([]);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('button', { name: 'Terminal' }).click();
  const row = page.getByRole('toolbar', { name: 'Keys' });
  await expect(row).toBeVisible();
  await expectScreen(page, '$');
  await keyboard(page).focus();
  await page.keyboard.type('sleep 50');
  await page.keyboard.press('Enter');
  await row.getByRole('button', { name: 'Ctrl' }).click();
  await expect(row.getByRole('button', { name: 'Ctrl' })).toHaveAttribute('aria-pressed', 'true');
  await expect(keyboard(page)).toBeFocused();
  await page.keyboard.type('c');
  await expectScreen(page, /\^C[\s\S]*\$$/);
  await row.getByRole('button', { name: 'Up' }).click();
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await page.waitForTimeout(200);
    await page.screenshot({ path: test.info().outputPath(`terminal-phone-${theme}.png`) });
  }
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  const box = await row.getByRole('button', { name: 'Esc' }).boundingBox();
  expect(box?.height).toBeGreaterThanOrEqual(44);
  const found = await new AxeBuilder({ page }).include('.dock').analyze();
  expect(found.violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 200))])).toEqual([]);
});
