/** Ways in: ten tabs at once (case 77), a pasted link when signed out (U-24), a link used twice (L-05). */
import { bridge as run } from '../bridge/process.ts';
import { composer, connection, expect, make, refusedConnection, send, said, test } from './ground.ts';

test('case 77: ten tabs all load, live, and see the same', async ({ open, bridge, context }) => {
  const first = await open();
  const conversationId = await make(bridge);
  const address = `${bridge.ready.origin}/c/${conversationId}`;
  const tabs = await Promise.all(Array.from({ length: 9 }, () => context.newPage()));
  await Promise.all([first, ...tabs].map((page) => page.goto(address)));
  for (const page of [first, ...tabs]) {
    await expect(connection(page, 'live')).toBeVisible({ timeout: 20_000 });
    expect(await page.evaluate(async () => (await fetch('/icon.svg', { cache: 'no-store' })).status)).toBe(200);
  }
  await send(first, 'plan something');
  for (const page of [first, ...tabs]) await expect(said(page)).toHaveCount(1);
});

test('U-24 L-05: signed out, a pasted launch link lets in; a used one says what to do', async ({
  bridge,
  page,
  watch,
}) => {
  watch.allow(/status of 40[13]/);
  await page.goto(bridge.ready.origin);
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
  const field = page.getByLabel('Open the link it prints, or paste it here:');
  await field.fill('http://example.test/#launch=nothing');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toContainText('not a launch link of this bridge');
  await field.fill(bridge.ready.launchUrl);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('heading', { name: 'Your agents ask, you countersign.' })).toBeVisible();
  expect(new URL(page.url()).hash).toBe('');

  const other = await page.context().browser()?.newContext();
  if (other === undefined) throw new Error('no browser');
  await watch.attach(other);
  const stranger = await other.newPage();
  await stranger.goto(bridge.ready.launchUrl);
  await expect(stranger.getByRole('alert')).toContainText('used already or has expired');
  const again = await run(['open', '--json', '--state', bridge.state]);
  const { launchUrl } = JSON.parse(again.stdout) as { launchUrl: string };
  await stranger.getByLabel('Open the link it prints, or paste it here:').fill(launchUrl);
  await stranger.keyboard.press('Enter');
  await expect(stranger.getByRole('heading', { name: 'Your agents ask, you countersign.' })).toBeVisible();
  await other.close();
});

test('signed out from the terminal, the page says so and goes on with a new link, its draft kept', async ({
  bridge,
  open,
  watch,
}) => {
  watch.allow(/status of 4(01|10)/);
  watch.allow(refusedConnection);
  const page = await open();
  const conversationId = await make(bridge);
  await page.goto(`${bridge.ready.origin}/c/${conversationId}`);
  await composer(page).fill('half a thought');
  await page.waitForTimeout(600);
  const told = await run(['revoke', '--all', '--state', bridge.state]);
  expect(told.code, told.stderr).toBe(0);
  const field = page.getByLabel('Open the link it prints, or paste it here:');
  const signIn = page.getByRole('button', { name: 'Sign in' });
  await expect(signIn.first()).toBeVisible({ timeout: 20_000 });
  if (!(await field.isVisible())) await signIn.first().click();
  const again = await run(['open', '--json', '--state', bridge.state]);
  await field.fill((JSON.parse(again.stdout) as { launchUrl: string }).launchUrl);
  await page.keyboard.press('Enter');
  await expect(connection(page, 'live')).toBeVisible();
  await page.goto(`${bridge.ready.origin}/c/${conversationId}`);
  await expect(composer(page)).toBeEnabled();
});
