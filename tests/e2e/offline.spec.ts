/** The installed app with the bridge off (acceptance 5, U-20 to U-22), and a new version of it (case 66). */
import { createHash } from 'node:crypto';
import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type BrowserContext, type Page } from '@playwright/test';
import { temporary, type Bridge } from '../bridge/process.ts';
import {
  ask,
  composer,
  connection,
  expect,
  expectSignedIn,
  log,
  make,
  refusedConnection,
  said,
  test,
  type Watch,
} from './ground.ts';

/** A profile on disk, as an installed app has one; closed and opened again within a test. */
class Profile {
  readonly #dir = temporary('profile');
  readonly #watch: Watch;
  readonly #launch: Parameters<typeof chromium.launchPersistentContext>[1];
  context: BrowserContext | null = null;

  constructor(watch: Watch, launch: Parameters<typeof chromium.launchPersistentContext>[1]) {
    this.#watch = watch;
    this.#launch = launch;
  }

  async open(): Promise<Page> {
    this.context = await chromium.launchPersistentContext(this.#dir.path, this.#launch);
    await this.#watch.attach(this.context);
    return this.context.newPage();
  }

  async close(): Promise<void> {
    await this.context?.close();
    this.context = null;
  }

  async remove(): Promise<void> {
    await this.close();
    this.#dir.remove();
  }
}

const profiles = test.extend<{ profile: Profile }>({
  profile: async ({ watch, launchOptions, viewport }, use) => {
    const profile = new Profile(watch, { ...launchOptions, viewport });
    await use(profile);
    await profile.remove();
  },
});

const root = fileURLToPath(new URL('../..', import.meta.url));
interface Table {
  readonly revision: string;
  readonly files: Record<string, { sha256: string; bytes: number; type: string }>;
}

const signedIn = async (profile: Profile, bridge: Bridge): Promise<Page> => {
  const page = await profile.open();
  await page.goto(bridge.ready.launchUrl);
  await expectSignedIn(page);
  return page;
};

/** Until the worker has the whole shell and the page is its client. */
const controlled = (page: Page): Promise<void> =>
  page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    if (navigator.serviceWorker.controller === null)
      await new Promise((resolve) =>
        navigator.serviceWorker.addEventListener('controllerchange', resolve, { once: true }),
      );
  });

profiles(
  'acceptance 5: read, searched and written in with the bridge off; taken up again without a reload',
  async ({ bridge, profile, watch }) => {
    watch.allow(refusedConnection);
    const first = await make(bridge);
    await ask(bridge, first, 'explain the code');
    const second = await make(bridge);
    await ask(bridge, second, 'plan something');
    const unread = await make(bridge);
    let page = await signedIn(profile, bridge);
    for (const [id, told] of [
      [first, 'daybook'],
      [second, 'The plan is beside this message'],
    ] as const) {
      await page.goto(`${bridge.ready.origin}/c/${id}`);
      await expect(log(page)).toContainText(told);
      // What is read is kept a moment later.
      await page.waitForTimeout(1500);
    }
    await controlled(page);
    const cdp = await page.context().newCDPSession(page);
    expect((await cdp.send('Page.getInstallabilityErrors')).installabilityErrors).toEqual([]);
    const { port, ready } = bridge;
    await profile.close();
    await bridge.stop();

    page = await profile.open();
    await page.goto(`${ready.origin}/`);
    await expect(page.getByText(/Offline copy, last synced/).first()).toBeVisible({ timeout: 20_000 });
    await page
      .getByRole('link', { name: /explain the code/ })
      .first()
      .click();
    await expect(log(page)).toContainText('daybook');
    await expect(said(page)).toHaveCount(1);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('beside this message');
    await expect(page.getByRole('option').filter({ hasText: 'beside this message' }).first()).toBeVisible();
    await expect(page.getByText('Searching the offline copy.')).toBeVisible();
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(new RegExp(`/c/${second}`));
    await page.goto(`${ready.origin}/c/${unread}`);
    await expect(page.getByText('This conversation is not in the offline copy.')).toBeVisible();
    await page.goto(`${ready.origin}/c/${first}`);
    await expect(log(page)).toContainText('daybook');
    await composer(page).fill('hello from the dark');
    await expect(page.getByRole('button', { name: 'Send', exact: true })).toBeDisabled();
    await composer(page).press('Enter');
    await expect(composer(page)).toHaveValue('hello from the dark');
    await page.evaluate(() => Object.assign(window, { same: true }));

    await bridge.start(port);
    await expect(connection(page, 'live')).toBeVisible({ timeout: 45_000 });
    await ask(bridge, first, 'hello from beside');
    await expect(said(page)).toHaveCount(2);
    await expect(said(page).last()).toContainText('hello from beside');
    await expect(log(page).locator('footer')).toHaveCount(2);
    await expect(composer(page)).toHaveValue('hello from the dark');
    await composer(page).press('Enter');
    await expect(said(page)).toHaveCount(3);
    await expect(log(page).locator('footer')).toHaveCount(3, { timeout: 20_000 });
    expect(await page.evaluate(() => (window as { same?: boolean }).same), 'no reload').toBe(true);
  },
);

profiles('a draft survives a closed app and a bridge that is off', async ({ bridge, profile, watch }) => {
  watch.allow(refusedConnection);
  const id = await make(bridge);
  let page = await signedIn(profile, bridge);
  await page.goto(`${bridge.ready.origin}/c/${id}`);
  await composer(page).fill('half a thought');
  await controlled(page);
  await page.waitForTimeout(1000);
  await profile.close();
  await bridge.stop();
  page = await profile.open();
  await page.goto(`${bridge.ready.origin}/c/${id}`);
  await expect(composer(page)).toHaveValue('half a thought', { timeout: 20_000 });
});

/**
 * A checkout of a later version beside this one: the same sources, and a build with another revision in which one chunk
 * of the app has another name, as any change gives it.
 */
const laterVersion = (): { root: string; removed: string; remove: () => void } => {
  const copy = temporary('later');
  for (const part of ['bridge', 'protocol', 'build', 'package.json'])
    cpSync(join(root, part), join(copy.path, part), { recursive: true, verbatimSymlinks: true });
  symlinkSync(join(root, 'node_modules'), join(copy.path, 'node_modules'));
  const build = join(copy.path, 'build');
  const table = JSON.parse(readFileSync(join(build, 'assets.json'), 'utf8')) as Table;
  const removed = Object.keys(table.files).find((path) => /\/chunks\/[\w-]{8}\.js$/.test(path)) ?? '';
  const name = removed.slice(-11, -3);
  const renamed = (text: string): string =>
    text.replaceAll(name, `${name.slice(1)}0`).replaceAll(table.revision, 'later');
  const files: Table['files'] = {};
  for (const [path, { type }] of Object.entries(table.files)) {
    const bytes = readFileSync(join(build, path));
    const next = /^(text|application)\//.test(type) ? Buffer.from(renamed(bytes.toString())) : bytes;
    rmSync(join(build, path));
    writeFileSync(join(build, renamed(path)), next);
    files[renamed(path)] = { sha256: createHash('sha256').update(next).digest('hex'), bytes: next.length, type };
  }
  writeFileSync(join(build, 'assets.json'), JSON.stringify({ ...table, revision: 'later', files }));
  return { root: copy.path, removed, remove: copy.remove };
};

profiles(
  'case 66: a new version waits for a press, keeps the draft, and a chunk that is gone is no page',
  async ({ bridge, profile, watch }) => {
    watch.allow(refusedConnection);
    const later = laterVersion();
    try {
      const id = await make(bridge);
      const page = await signedIn(profile, bridge);
      await page.goto(`${bridge.ready.origin}/c/${id}`);
      await composer(page).fill('half a thought');
      await controlled(page);
      const { port, origin } = { port: bridge.port, origin: bridge.ready.origin };
      expect((await page.request.get(`${origin}${later.removed}`)).status()).toBe(200);
      await bridge.stop();
      bridge.root = later.root;
      await bridge.start(port);
      await expect(connection(page, 'live')).toBeVisible({ timeout: 45_000 });

      const gone = await page.request.get(`${origin}${later.removed}`);
      expect(gone.status()).toBe(404);
      expect(gone.headers()['content-type']).not.toContain('html');
      expect(gone.headers()['cache-control']).toContain('no-store');

      // Coming back to the window looks for a new version; the old one goes on until it is taken.
      await page.evaluate(() => {
        Object.assign(window, { same: true });
        window.dispatchEvent(new Event('focus'));
      });
      await expect(page.getByText('A new version is ready.')).toBeVisible({ timeout: 20_000 });
      expect(await page.evaluate(() => (window as { same?: boolean }).same)).toBe(true);
      await Promise.all([page.waitForEvent('load'), page.getByRole('button', { name: 'Reload' }).click()]);
      await expect(connection(page, 'live')).toBeVisible({ timeout: 20_000 });
      await expect(composer(page)).toHaveValue('half a thought');
      const shells = await page.evaluate(() => caches.keys());
      expect(shells.filter((name) => name.includes('shell'))).toEqual([
        expect.stringMatching(/^countersign-shell-later/),
      ]);
      await page.goto(`${origin}/settings`);
      await expect(page.getByRole('heading', { name: 'Settings' })).toBeVisible();
    } finally {
      later.remove();
    }
  },
);
