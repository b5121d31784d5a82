/** Hostile and enormous content from a real ACP program stays text and stays quick (cases 9, 33, 36, 38, U-40, T30 to T32). */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from '@playwright/test';
import { temporary } from '../bridge/process.ts';
import { composer, expect, idle, log, send, test as base, waiting } from './ground.ts';

const program = fileURLToPath(new URL('../agents/scripted/agent.ts', import.meta.url));

interface Scene {
  readonly page: Page;
  readonly conversationId: string;
  readonly folder: string;
  /** Lets the scripted agent do what is written, and waits until its turn is over. */
  perform(directives: string): Promise<void>;
}
const test = base.extend<{ scene: Scene }>({
  bridgeArgs: [],
  scene: async ({ bridge, open }, use) => {
    const folder = temporary('workspace');
    const client = await bridge.client();
    const { workspaceId } = await client.change('workspace.open', { path: folder.path });
    const { agentId } = await client.change('agent.add', {
      title: 'Scripted',
      command: process.execPath,
      args: [program],
      env: [],
    });
    const { conversationId } = await client.change('conversation.create', {
      workspaceId,
      agentId,
      acceptUnrestricted: true,
    });
    const page = await open();
    await page.goto(`${bridge.ready.origin}/c/${conversationId}`);
    await expect(composer(page)).toBeEnabled();
    const perform = async (directives: string): Promise<void> => {
      await client.change('conversation.send', {
        conversationId,
        delivery: 'prompt',
        content: [{ type: 'text', text: directives }],
        standing: 'allow',
      });
      await idle(bridge, conversationId);
    };
    await use({ page, conversationId, folder: folder.path, perform });
    folder.remove();
  },
});

/** Each would set `pwned` or fetch from `evil.test` if anything of it ran. */
const payloads = [
  '<script>pwned=1</script>',
  '<img src=x onerror=pwned=1>',
  '<img src="http://evil.test/a.png">',
  '<svg onload=pwned=1>',
  '<svg><script>pwned=1</script></svg>',
  '<svg><a xlink:href="javascript:pwned=1"><text>x</text></a></svg>',
  '<iframe src="javascript:parent.pwned=1"></iframe>',
  '<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>',
  '<object data="javascript:pwned=1"></object>',
  '<embed src="http://evil.test/b.swf">',
  '<link rel=stylesheet href="http://evil.test/c.css">',
  '<style>@import "http://evil.test/d.css";</style>',
  '<meta http-equiv=refresh content="0;url=http://evil.test/">',
  '<base href="http://evil.test/">',
  '<form action="http://evil.test/"><button autofocus>go</button></form>',
  '<body onload=pwned=1>',
  '<video><source onerror=pwned=1></video>',
  '<details open ontoggle=pwned=1>x</details>',
  '<math><mtext><img src=x onerror=pwned=1></mtext></math>',
  '<input autofocus onfocus=pwned=1>',
  '"><img src=x onerror=pwned=1>',
  '</code></pre><script>pwned=1</script>',
  '<!--><img src=x onerror=pwned=1>-->',
  'javascript:pwned=1',
  'data:text/html,<script>parent.pwned=1</script>',
  '{@html "<img src=x onerror=pwned=1>"}',
  '\u202e<img src=x onerror=pwned=1>\u2066',
  'java\tscript:pwned=1',
  '&#106;avascript:pwned=1',
  'vbscript:pwned=1',
];
const places: readonly ((payload: string) => string)[] = [
  (payload) => payload,
  (payload) => `# ${payload}`,
  (payload) => `- ${payload}`,
  (payload) => `| a | b |\n| --- | --- |\n| ${payload.replaceAll('|', '')} | x |`,
  (payload) => `> ${payload}`,
  (payload) => `[link](${payload})`,
  (payload) => `[link](<${payload.replaceAll(/[<>]/g, '')}>)`,
  (payload) => `![image](${payload})`,
  (payload) => `<${payload.replaceAll(/[<>]/g, '')}>`,
  (payload) => `\`${payload}\``,
  (payload) => `\`\`\`html\n${payload}\n\`\`\``,
  (payload) => `**${payload}** [ref]\n\n[ref]: ${payload.replaceAll(/\s/g, '')} "${payload}"`,
];

const expectInert = async (page: Page): Promise<void> => {
  const found = await page.evaluate(() => ({
    pwned: (window as { pwned?: unknown }).pwned,
    elements: [
      ...document.querySelectorAll(
        'main :is(script, iframe, object, embed, form, style, link, meta, base, video, math)',
      ),
    ].map((element) => element.outerHTML.slice(0, 200)),
    images: [...document.querySelectorAll<HTMLImageElement>('main img')]
      .map((image) => image.src)
      .filter((src) => !/^(blob|data):/.test(src)),
    links: [...document.querySelectorAll<HTMLAnchorElement>('main [role=log] a')]
      .map((link) => link.getAttribute('href') ?? '')
      .filter((href) => !/^(https?:|mailto:|\/(receipts|c)\/)/i.test(href)),
    handlers: [...document.querySelectorAll('main *')]
      .filter((element) => element.getAttributeNames().some((name) => /^on/i.test(name)))
      .map((element) => element.outerHTML.slice(0, 200)),
    policies: [...document.querySelectorAll<HTMLAnchorElement>('main [role=log] a[href^=http]')]
      .filter((link) => !/noopener/.test(link.rel))
      .map((link) => link.href),
  }));
  expect(found).toEqual({ pwned: undefined, elements: [], images: [], links: [], handlers: [], policies: [] });
};

test('T30 to T32: 360 attempts in Markdown run nothing, load nothing and lead nowhere', async ({ scene }) => {
  const { page, perform } = scene;
  await page.setViewportSize({ width: 1200, height: 6000 });
  for (const place of places) {
    await perform(`[[say ${payloads.map(place).join('\n\n')}]]`);
    await expect(log(page).locator('article.agent').last()).toContainText(/pwned|link/);
    await expectInert(page);
  }
});

test('T30: names, titles, commands, files and diffs of an agent are text too', async ({ scene, bridge }) => {
  const { page, perform, folder, conversationId } = scene;
  const nasty = '<img src=x onerror=pwned=1>';
  mkdirSync(join(folder, `${nasty}\u202egnp`));
  writeFileSync(join(folder, `a${nasty}.md`.replaceAll('/', '')), `# ${nasty}\n<script>pwned=1</script>\n`);
  await perform(
    `[[title ${nasty}]][[tool t1 ${nasty}]][[done t1]][[think ${nasty}]][[plan]][[shell echo '${nasty}' # \u202e${nasty}]]`,
  );
  await perform(`[[edit ${nasty}.txt ${nasty}<script>pwned=1</script>]]`);
  await send(page, `${nasty} [[permission ${nasty}]]`);
  await expect(waiting(page)).toContainText(nasty);
  await page.keyboard.press('Control+Shift+F');
  await expect(page.getByText(/gnp/).first()).toBeVisible();
  const overrides = await page.evaluate(() =>
    [...document.querySelectorAll('body *:not(.said, article.agent *)')]
      .filter((element) =>
        [...element.childNodes].some(
          (node) => node.nodeType === 3 && /[\u202a-\u202e\u2066-\u2069]/.test(node.textContent ?? ''),
        ),
      )
      .map((element) => element.outerHTML.slice(0, 300)),
  );
  expect(overrides, 'outside of what was said, an override is shown and never takes effect').toEqual([]);
  await page
    .getByText(/^a<img src=x/)
    .first()
    .click();
  await expect(page.getByText('<script>pwned=1</script>').first()).toBeVisible();
  await expectInert(page);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('onerror');
  await expect(page.getByRole('option').filter({ hasText: 'onerror' }).first()).toBeVisible();
  await expectInert(page);
  await page.goto(`${bridge.ready.origin}/approvals`);
  await expect(waiting(page)).toContainText(nasty);
  await expectInert(page);
  await page.goto(`${bridge.ready.origin}/approvals?show=decided`);
  await expect(page.getByText(nasty).first()).toBeVisible();
  await expectInert(page);
  const client = await bridge.client();
  const { receipts } = await client.call('receipt.list', { conversationId });
  await page.goto(`${bridge.ready.origin}/receipts/${receipts[0]?.receiptId ?? ''}`);
  await expect(page.getByText('Verified', { exact: true }).first()).toBeVisible();
  await expectInert(page);
});

test('case 9: what cannot be read is one visible row, and the rest still shows', async ({ scene }) => {
  const { page, perform } = scene;
  await perform('[[say before ]][[malformed]][[garbage 3]][[say after]]');
  await expect(log(page)).toContainText('before');
  await expect(log(page)).toContainText('after');
  await expect(log(page).locator('footer')).toContainText('Finished');
  await expect(
    log(page)
      .locator('.row', { hasText: /could not be read|not understood|unreadable/i })
      .first(),
  ).toBeVisible();
  await expect(page.getByText('This part could not be shown')).toHaveCount(0);
  await perform('[[say and on]]');
  await expect(log(page)).toContainText('and on');
});

test('case 36: colours are colours, titles and links of a terminal are neither shown nor followed', async ({
  scene,
}) => {
  const { page, perform, folder } = scene;
  const esc = '\u001b';
  writeFileSync(
    join(folder, 'out.txt'),
    [
      `${esc}[31mred${esc}[0m ${esc}[48;2;10;20;30mon blue${esc}[0m ${esc}[2mdim${esc}[22m`,
      `${esc}]0;a title${esc}\\plain ${esc}]8;;javascript:pwned=1${esc}\\bad link${esc}]8;;${esc}\\ ${esc}]8;;https://example.test/${esc}\\good link${esc}]8;;${esc}\\`,
      `${esc}P1;2qdevice${esc}\\after ${esc}end ${esc}[1`,
    ].join('\n'),
  );
  await perform('[[shell cat out.txt]]');
  await log(page)
    .getByRole('button', { name: /cat out\.txt/ })
    .first()
    .click();
  const output = log(page).locator('pre', { hasText: 'on blue' });
  await expect(output.first()).toContainText('red on blue dim');
  const shown = await output.first().innerText();
  for (const leak of ['[31m', '[0m', '48;2', '[2m', '[22m', ']0;', 'a title', ']8;;', 'javascript:', 'device', esc])
    expect(shown).not.toContain(leak);
  await expect(output.first()).toContainText('plain bad link good link');
  const colour = await output
    .first()
    .getByText('red', { exact: true })
    .evaluate((element) => getComputedStyle(element).color);
  expect(colour).not.toBe(await output.first().evaluate((element) => getComputedStyle(element).color));
  await expectInert(page);
});

test('case 38: fences inside a longer fence stay inside, whole or in pieces, and copy as written', async ({
  scene,
}) => {
  const { page, perform } = scene;
  // The page may write to the clipboard and never read it, so what it writes is caught here.
  await page.evaluate(() => {
    const copied: string[] = [];
    Object.assign(window, { copied });
    navigator.clipboard.writeText = (text) => Promise.resolve(void copied.push(text));
  });
  const block = '````markdown\nfirst\n```js\nlet a = 1;\n```\nbetween\n```\nplain\n```\nlast\n````\n\nafter';
  const pieces = block.match(/[\s\S]{1,3}/g) ?? [];
  await perform(`[[say ${block}]]`);
  await perform(pieces.map((piece) => `[[say ${piece}]]`).join(''));
  for (const index of [0, 1]) {
    const message = log(page).locator('article.agent').nth(index);
    const code = message.locator('pre');
    await expect(code).toHaveCount(1);
    for (const text of ['first', 'let a = 1;', 'between', 'plain', 'last']) await expect(code).toContainText(text);
    await expect(code).not.toContainText('after');
    await message.hover();
    await message.getByRole('button', { name: 'Copy message' }).click();
    await expect
      .poll(() => page.evaluate(() => (window as unknown as { copied: string[] }).copied))
      .toEqual(Array.from({ length: index + 1 }, () => block));
    await message.getByRole('button', { name: 'Show as written' }).click();
    await expect(message.locator('pre.plain')).toHaveText(block);
  }
});

/** The longest the page did not answer, ms, while something is done. */
const longestTask = async (page: Page, act: () => Promise<void>): Promise<number> => {
  await page.evaluate(() => {
    const tasks: number[] = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({
      type: 'longtask',
    });
    Object.assign(window, { tasks });
  });
  await act();
  await page.waitForTimeout(300);
  return page.evaluate(() => Math.max(0, ...(window as unknown as { tasks: number[] }).tasks));
};

test('case 33: a line of 1 MB, 200,000 lines and deep lists do not freeze the page', async ({ scene }) => {
  const { page, perform } = scene;
  const nested = Array.from(
    { length: 400 },
    (_, depth) => `${' '.repeat((depth % 90) * 2)}- item ${depth} of many`,
  ).join('\n');
  const longest: Record<string, number> = {};
  const step = async (name: string, act: () => Promise<void>): Promise<void> => {
    longest[name] = await longestTask(page, act);
  };
  await step('1 MB line arrives', () => perform('[[tools 1 1000000]]'));
  await step('1 MB line opens', async () => {
    await log(page)
      .getByRole('button', { name: /Tool 1/ })
      .click();
    await expect(log(page).locator('pre', { hasText: 'xxxx' }).first()).toBeVisible();
  });
  await step('200,000 lines arrive', () => perform('[[shell seq 1 200000]]'));
  await step('200,000 lines open', async () => {
    await log(page)
      .getByRole('button', { name: /seq 1 200000/ })
      .first()
      .click();
    await expect(log(page).locator('pre', { hasText: '200000' }).first()).toBeVisible();
  });
  await step('nested lists', async () => {
    await perform(`[[say ${nested}]]`);
    await expect(log(page).getByText('item 399 of many')).toBeVisible();
  });
  test.info().annotations.push({ type: 'longest task, ms', description: JSON.stringify(longest) });
  // The bench holds the exact bound on an idle machine; here many things run at once.
  for (const [name, ms] of Object.entries(longest)) expect(ms, name).toBeLessThan(1000);
  await composer(page).fill('still here');
  await expect(composer(page)).toHaveValue('still here');
});

test('the watch of these tests sees what it is there for', async ({ open, watch, bridge }) => {
  const page = await open();
  await page.evaluate(() => {
    console.error('control: said');
    setTimeout(() => {
      throw new Error('control: thrown');
    });
    new Image().src = 'http://evil.test/control.png';
    const frame = document.createElement('iframe');
    frame.src = 'http://127.0.0.1:9/control';
    document.body.append(frame);
  });
  const seen = (pattern: RegExp) => expect.poll(() => watch.left().some((fault) => pattern.test(fault))).toBe(true);
  await seen(/console: control: said/);
  await seen(/uncaught: .*control: thrown/);
  await seen(/policy violation: img-src/);
  await seen(/policy violation: frame-src/);
  watch.allow(/control|violat/);
  const before = watch.left().length;
  await page
    .context()
    .newPage()
    .then((other) => other.goto(bridge.ready.origin.replace('127.0.0.1', 'localhost')));
  await seen(/request: http:\/\/localhost/);
  expect(watch.left().length).toBeGreaterThan(before);
  watch.allow(/localhost|421/);
});
