/** What must not be signed cannot be: cards that changed, moved, ended or were answered elsewhere, in a real browser (T35, T36, T38, cases 10, 13). */
import { fileURLToPath } from 'node:url';
import type { Locator, Page } from '@playwright/test';
import type { Bridge } from '../bridge/process.ts';
import { temporary } from '../bridge/process.ts';
import {
  allow,
  cards,
  composer,
  expect,
  expectVerified,
  idle,
  log,
  practise,
  readToTheEnd,
  refusedConnection,
  send,
  stored,
  test as base,
  waiting,
} from './ground.ts';

const program = fileURLToPath(new URL('../agents/scripted/agent.ts', import.meta.url));
const hurry = new URL('hurry.ts', import.meta.url).href;

interface Scene {
  readonly page: Page;
  readonly conversationId: string;
}
const scripted = base.extend<{ scene: Scene }>({
  bridgeArgs: [],
  scene: async ({ bridge, open }, use) => {
    const folder = temporary('workspace');
    const client = await bridge.client();
    const { workspaceId } = await client.change('workspace.open', { path: folder.path });
    const made = { title: 'Scripted', command: process.execPath, args: [program], env: [] };
    const { agentId } = await client.change('agent.add', made);
    const create = { workspaceId, agentId, acceptUnrestricted: true };
    const { conversationId } = await client.change('conversation.create', create);
    const page = await open();
    await page.goto(`${bridge.ready.origin}/c/${conversationId}`);
    await expect(composer(page)).toBeEnabled();
    await use({ page, conversationId });
    folder.remove();
  },
});

/** What was decided and by which receipt, as stored. */
const decided = async (bridge: Bridge, conversationId: string): Promise<{ value: unknown; digest: unknown }[]> =>
  (await stored(bridge, conversationId)).flatMap(({ type, data }) =>
    type === 'approval.decided' ? [{ value: data['value'], digest: data['digest'] }] : [],
  );
const denyButton = (page: Page) => waiting(page).getByRole('button', { name: 'Deny', exact: true });
const allowButton = (page: Page) => waiting(page).getByRole('button', { name: 'Allow', exact: true });

scripted('T35: a command that becomes another one while its card is open is asked again', async ({ scene, bridge }) => {
  const { page, conversationId } = scene;
  await send(page, '[[switch 1500 echo tidy => rm -rf everything]]');
  await expect(waiting(page)).toContainText('echo tidy');
  const first = (await waiting(page).getAttribute('data-digest')) ?? '';
  await expect(page.locator(`article.card[data-digest="${first}"]`)).toHaveAttribute('data-state', 'withdrawn');
  await expect(waiting(page)).toContainText('rm -rf everything');
  const second = (await waiting(page).getAttribute('data-digest')) ?? '';
  expect(second).not.toBe(first);

  // A hand that was on its way to the first card finds the second one inert, and an answer to the first is refused.
  const client = await bridge.client();
  const list = await client.call('approval.list', { state: 'pending', conversationId });
  const [open] = list.approvals;
  const late = {
    approvalId: open?.approvalId ?? '',
    digest: first,
    optionId: 'yes',
    value: 'allow',
    yes: true,
  } as const;
  await expect(client.change('approval.decide', late)).rejects.toMatchObject({ code: 'digest_mismatch' });

  await waiting(page).getByRole('button', { name: 'Deny', exact: true }).click();
  await expect(cards(page).last()).toHaveAttribute('data-state', 'denied');
  await expect(log(page)).toContainText(': no');
  expect(await decided(bridge, conversationId)).toEqual([{ value: 'deny', digest: second }]);
  await expectVerified(bridge);
});

scripted(
  'case 10: a card whose turn was stopped elsewhere says so, and its late answer changes nothing',
  async ({ scene, bridge }) => {
    const { page, conversationId } = scene;
    await send(page, '[[tool a ls]] [[permission a]]');
    await expect(waiting(page)).toBeVisible();
    const client = await bridge.client();
    const [open] = (await client.call('approval.list', { state: 'pending', conversationId })).approvals;
    await client.change('conversation.cancel', { conversationId });
    await expect(cards(page)).toHaveAttribute('data-state', 'withdrawn');
    await expect(cards(page).getByRole('button', { name: 'Allow', exact: true })).toHaveCount(0);
    const late = {
      approvalId: open?.approvalId ?? '',
      digest: open?.digest ?? '',
      optionId: 'yes',
      value: 'allow',
      yes: true,
    } as const;
    await expect(client.change('approval.decide', late)).rejects.toMatchObject({ code: 'approval_withdrawn' });
    expect(await decided(bridge, conversationId)).toEqual([]);
    await idle(bridge, conversationId);
    await send(page, 'still here?');
    await expect(log(page)).toContainText('You said: still here?');
    await expectVerified(bridge);
  },
);

scripted('case 13: five cards at once are answered one by one, in any order', async ({ scene, bridge }) => {
  const { page, conversationId } = scene;
  await send(page, '[[permissions 5]]');
  await expect(waiting(page)).toHaveCount(5);
  const digests = await waiting(page).evaluateAll((all) => all.map((card) => card.getAttribute('data-digest') ?? ''));
  for (const [turn, index] of [2, 0, 4, 1, 3].entries()) {
    const card = page.locator(`article.card[data-digest="${digests[index]}"]`);
    const [button, state] = turn % 2 === 0 ? ['Allow', 'allowed'] : ['Deny', 'denied'];
    await expect(async () => {
      const lead = card.getByRole('button', { name: 'Read to the end first' });
      if (await lead.isVisible()) await lead.click({ timeout: 2000 });
      if ((await card.getAttribute('data-state')) === 'pending')
        await card.getByRole('button', { name: button, exact: true }).click({ timeout: 2000 });
      await expect(card).toHaveAttribute('data-state', state, { timeout: 2000 });
    }).toPass({ timeout: 20_000 });
    await expect(waiting(page)).toHaveCount(4 - turn);
  }
  const answers = await decided(bridge, conversationId);
  expect(answers.map(({ value }) => value)).toEqual(['allow', 'deny', 'allow', 'deny', 'allow']);
  await expectVerified(bridge);
});

scripted('T36: two tabs that answer at once make one receipt, and both show it', async ({ scene, bridge, context }) => {
  const { page, conversationId } = scene;
  const other = await context.newPage();
  await other.goto(`${bridge.ready.origin}/c/${conversationId}`);
  await expect(composer(other)).toBeEnabled();
  await send(page, '[[shell echo once]]');
  for (const tab of [page, other]) {
    await expect(waiting(tab)).toBeVisible();
    await readToTheEnd(tab);
    await expect(allowButton(tab)).toBeEnabled();
  }
  // The mouse itself: whichever press comes second may find the button gone.
  const spot = async (button: Locator): Promise<[number, number]> => {
    const box = await button.boundingBox();
    return [(box?.x ?? 0) + 20, (box?.y ?? 0) + 10];
  };
  const spots = [await spot(allowButton(page)), await spot(denyButton(other))] as const;
  await Promise.all([page.mouse.click(...spots[0]), other.mouse.click(...spots[1])]);
  await expect(waiting(page)).toHaveCount(0);
  await expect(waiting(other)).toHaveCount(0);
  const answers = await decided(bridge, conversationId);
  expect(answers).toHaveLength(1);
  const state = answers[0]?.value === 'allow' ? 'allowed' : 'denied';
  for (const tab of [page, other]) await expect(cards(tab)).toHaveAttribute('data-state', state);
  await expectVerified(bridge);
});

base('T38: a key held down since before the card, and a card that moved, allow nothing', async ({ open, bridge }) => {
  const page = await open();
  const conversationId = await practise(page);
  await send(page, 'run the tests');
  await expect(waiting(page)).toBeVisible();
  await readToTheEnd(page);
  await expect(allowButton(page)).toBeEnabled();

  // Held in the composer, then the focus moves into the card: what repeats there was not pressed there.
  await composer(page).focus();
  await page.keyboard.down('a');
  await waiting(page).focus();
  for (let repeat = 0; repeat < 5; repeat += 1) await page.keyboard.down('a');
  await page.keyboard.up('a');
  await composer(page).fill('');
  await expect(waiting(page)).toHaveCount(1);

  // Something above grows: the button is elsewhere now, and inert where it is.
  const moved = await page.evaluate(async () => {
    const card = document.querySelector('article.card[data-state="pending"]');
    const button = card?.querySelector('.allow');
    const frame = (): Promise<unknown> => new Promise((next) => requestAnimationFrame(next));
    const above = document.createElement('div');
    above.style.height = '90px';
    card?.parentElement?.insertBefore(above, card);
    await frame();
    await frame();
    await frame();
    return button?.getAttribute('aria-disabled');
  });
  expect(moved).toBe('true');
  expect(await decided(bridge, conversationId)).toEqual([]);
  await allow(page);
});

base.describe('when nobody answers', () => {
  base.use({ bridgeEnv: { NODE_OPTIONS: `--import ${hurry}` } });
  base('R-10: a card expires, the agent is told no, and the denial has its receipt', async ({ open, bridge }) => {
    const page = await open();
    const conversationId = await practise(page);
    await send(page, 'run the tests');
    await expect(waiting(page)).toBeVisible();
    const [card] = (await (await bridge.client()).call('approval.list', { state: 'pending', conversationId }))
      .approvals;
    await expect(cards(page)).toHaveAttribute('data-state', 'expired', { timeout: 15_000 });
    await expect(log(page)).toContainText('That did not happen');
    const late = {
      approvalId: card?.approvalId ?? '',
      digest: card?.digest ?? '',
      optionId: 'allow',
      value: 'allow',
      yes: true,
    } as const;
    await expect((await bridge.client()).change('approval.decide', late)).rejects.toMatchObject({
      code: 'approval_expired',
    });
    await expectVerified(bridge);
  });
});

base(
  'R-10: a bridge restarted under an open card withdraws it, and the page says why',
  async ({ open, bridge, watch }) => {
    watch.allow(refusedConnection);
    const page = await open();
    await practise(page);
    await send(page, 'run the tests');
    await expect(waiting(page)).toBeVisible();
    const { port } = bridge;
    await bridge.kill();
    await bridge.start(port);
    await expect(cards(page)).toHaveAttribute('data-state', 'withdrawn', { timeout: 30_000 });
    await expect(cards(page)).toContainText(/restarted/i);
    await expect(cards(page).getByRole('button', { name: 'Allow', exact: true })).toHaveCount(0);
    await expectVerified(bridge);
  },
);
