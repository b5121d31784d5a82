/** A conversation continued in a worktree of its own, brought back and removed, in a real browser (W-03, U-14). */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { temporary } from '../bridge/process.ts';
import { plainGit } from '../git/worktree-stage.ts';
import { allow, composer, expect, expectVerified, practiceFolder, practise, send, test, waiting } from './ground.ts';

const dialog = (page: Page) => page.getByRole('dialog').or(page.getByRole('alertdialog'));
const commit = (folder: string): void => {
  plainGit(folder, 'init', '-q', '-b', 'main');
  plainGit(folder, 'add', '-A');
  plainGit(folder, 'commit', '-q', '-m', 'first');
};
const continueElsewhere = async (page: Page): Promise<void> => {
  await page.getByRole('button', { name: 'Conversation menu' }).click();
  await page.getByRole('menuitem', { name: 'Continue in a worktree…' }).click();
};
const expectAccessible = async (page: Page): Promise<void> => {
  expect((await new AxeBuilder({ page }).setLegacyMode(true).include('dialog').analyze()).violations).toEqual([]);
};

for (const [width, height] of [
  [1440, 900],
  [390, 844],
] as const) {
  test.describe(`at ${width}×${height}`, () => {
    test.use({ viewport: { width, height } });

    test('W-03, U-14: continued in a worktree, reviewed, brought back, removed', async ({ bridge, open }) => {
      test.setTimeout(120_000);
      const page = await open();
      const folder = practiceFolder(bridge);
      const parentId = await practise(page);
      commit(folder);
      writeFileSync(join(folder, 'uncommitted.txt'), 'mine\n');

      await continueElsewhere(page);
      await expect(dialog(page).getByRole('checkbox', { name: 'In its own worktree' })).toBeChecked();
      await expect(dialog(page)).toContainText('1 file with uncommitted changes is not in it');
      await expectAccessible(page);
      await dialog(page).getByRole('button', { name: 'Start' }).click();
      await expect(page).not.toHaveURL(new RegExp(parentId), { timeout: 30_000 });
      await expect(page.getByRole('link', { name: /^Worktree of/ })).toHaveAttribute('href', `/c/${parentId}`);
      await expect(composer(page)).toBeEnabled();

      await send(page, 'note: from the worktree');
      await allow(page);
      await expect(page.getByRole('button', { name: 'Bring back…' })).toBeEnabled({ timeout: 20_000 });
      expect(existsSync(join(folder, 'NOTES.md')), 'the folder of the parent stays as it is').toBe(false);

      await page.getByRole('button', { name: 'Review changes' }).first().click();
      await expect(page.getByRole('tabpanel', { name: 'Changes' })).toContainText('NOTES.md');
      if (width < 760) await page.getByRole('button', { name: 'Close the workspace panel' }).click();

      await page.getByRole('button', { name: 'Remove worktree…' }).click();
      await expect(dialog(page)).toContainText('Not brought back: 1 file.');
      await expectAccessible(page);
      await page.keyboard.press('Escape');

      await page.getByRole('button', { name: 'Bring back…' }).click();
      await dialog(page).getByRole('button', { name: 'Bring 1 file back' }).click();
      await expect(dialog(page).getByRole('status')).toContainText('1 file brought back.');
      expect(readFileSync(join(folder, 'NOTES.md'), 'utf8')).toContain('from the worktree');
      await dialog(page).getByRole('button', { name: 'Done' }).click();

      await page.getByRole('button', { name: 'Remove worktree…' }).click();
      await expect(dialog(page)).toContainText('Nothing in it would be lost');
      await dialog(page).getByRole('button', { name: 'Remove worktree', exact: true }).click();
      await expect(page.getByRole('link', { name: /^Worktree removed/ })).toBeVisible();
      await expect(page.getByText('Its worktree was removed.').first()).toBeVisible();
      await page.getByRole('link', { name: /^Worktree removed/ }).click();
      await expect(page).toHaveURL(new RegExp(parentId));
      await expect(page.getByRole('log', { name: 'Conversation' })).toContainText('Brought 1 file back');
      await expectVerified(bridge);
    });

    test('W-03: the uncommitted changes are taken along when asked, and what is left out is said', async ({
      bridge,
      open,
    }) => {
      test.setTimeout(120_000);
      const page = await open();
      const folder = practiceFolder(bridge);
      const parentId = await practise(page);
      commit(folder);
      writeFileSync(join(folder, 'uncommitted.txt'), 'mine\n');
      writeFileSync(join(folder, 'README.md'), 'changed\n');
      writeFileSync(join(folder, '.env'), 'KEY=1\n');

      await continueElsewhere(page);
      const along = dialog(page).getByRole('checkbox', { name: 'With the uncommitted changes (2 files)' });
      await expect(along).not.toBeChecked();
      await expect(dialog(page)).toContainText('3 files with uncommitted changes are not in it');
      await along.check();
      await expect(dialog(page)).not.toContainText('are not in it');
      await expect(dialog(page)).toContainText('Left out: 1 file kept secret.');
      await expectAccessible(page);
      await dialog(page).getByRole('button', { name: 'Start' }).click();
      await expect(page).not.toHaveURL(new RegExp(parentId), { timeout: 30_000 });
      await expect(page.getByRole('log', { name: 'Conversation' })).toContainText(
        'with the uncommitted changes of 2 files; left out: 1 kept secret (.env).',
      );

      await page.getByRole('button', { name: 'Review changes' }).first().click();
      const changes = page.getByRole('tabpanel', { name: 'Changes' });
      await expect(changes, 'the child itself has done nothing yet').toContainText('No file changed between the two');
      await changes.getByRole('button', { name: 'Its own worktree' }).click();
      await page.getByRole('menuitemradio', { name: 'Not committed' }).click();
      for (const name of ['uncommitted.txt', 'README.md']) await expect(changes).toContainText(name);
      const client = await bridge.client();
      const [child] = (await client.call('conversation.list', {})).conversations.filter(({ worktree }) => worktree);
      const at = child?.workspacePath ?? '';
      expect(readFileSync(join(at, 'uncommitted.txt'), 'utf8')).toBe('mine\n');
      expect(readFileSync(join(at, 'README.md'), 'utf8')).toBe('changed\n');
      expect(existsSync(join(at, '.env'))).toBe(false);
    });
  });
}

test('W-03: a folder that is no repository says so, and a worktree is not offered to start', async ({ open }) => {
  const page = await open();
  await practise(page);
  await continueElsewhere(page);
  await expect(dialog(page).getByRole('alert')).toContainText('not in a git repository');
  await expect(dialog(page).getByRole('button', { name: 'Start' })).toBeDisabled();
  await dialog(page).getByRole('checkbox', { name: 'In its own worktree' }).uncheck();
  await expect(dialog(page).getByRole('button', { name: 'Start' })).toBeEnabled();
});

test('W-03: the rail shows a child below the conversation it was continued from', async ({ bridge, open }) => {
  const page = await open();
  const parentId = await practise(page);
  commit(practiceFolder(bridge));
  await send(page, 'help');
  await continueElsewhere(page);
  await dialog(page).getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('link', { name: /^Worktree of/ })).toBeVisible({ timeout: 30_000 });
  const rows = page.getByRole('region', { name: 'Conversations' }).getByRole('link');
  await expect(rows).toHaveCount(2);
  await expect(rows.first()).toHaveAttribute('href', `/c/${parentId}`);
  await expect(rows.last().getByRole('img', { name: 'In a worktree' })).toBeVisible();
});

test('W-05: the profile of a workspace goes along when it is attached, and can be removed', async ({ open }) => {
  const page = await open();
  await page.getByRole('main').getByRole('button', { name: 'New conversation' }).click();
  const attach = dialog(page).getByRole('button', { name: 'Attach the workspace’s profile' });
  await attach.click();
  await dialog(page).getByRole('button', { name: 'Remove the profile' }).click();
  await attach.click();
  await expectAccessible(page);
  await dialog(page).getByRole('button', { name: 'Start' }).click();
  await expect(page).toHaveURL(/\/c\//);
  await expect(page.getByRole('region', { name: 'Message' })).toContainText('workspace-profile.txt');
});

test('W-07: a link to a conversation of another folder leads to it among its own', async ({ bridge, open }) => {
  const page = await open();
  await practise(page);
  const { path, remove } = temporary('another');
  const client = await bridge.client();
  const { workspaceId } = await client.change('workspace.open', { path });
  const { conversationId } = await client.change('conversation.create', { workspaceId, agentId: 'practice' });
  await page.goto(`${bridge.ready.origin}/c/${conversationId}`);
  const rows = page.getByRole('region', { name: 'Conversations' }).getByRole('link');
  await expect(rows).toHaveCount(1);
  await expect(rows).toHaveAttribute('href', `/c/${conversationId}`);
  // Another one chosen afterwards stays chosen.
  await page.getByRole('button', { name: /^countersign-another/ }).click();
  await page.getByRole('menuitemradio', { name: /^Practice folder/ }).click();
  await expect(page).toHaveURL(`${bridge.ready.origin}/`);
  await expect(rows).not.toHaveAttribute('href', `/c/${conversationId}`);
  remove();
});

test('W-04: closing a workspace says what is active in it, then ends that', async ({ bridge, open }) => {
  const page = await open();
  const conversationId = await practise(page);
  await send(page, 'note: wait for me');
  await expect(waiting(page)).toBeVisible({ timeout: 20_000 });
  await page.getByRole('button', { name: /^Practice folder/ }).click();
  await expect(page.getByRole('menu').getByRole('img', { name: '1 approval waits' })).toBeVisible();
  await page.getByRole('menuitem', { name: 'Close workspace…' }).click();
  await expect(dialog(page)).toContainText('an approval waits');
  await expectAccessible(page);
  await dialog(page).getByRole('button', { name: 'Close workspace' }).click();
  await expect(dialog(page)).toBeHidden();
  const client = await bridge.client();
  expect(await client.call('conversation.get', { conversationId })).toMatchObject({ live: false, pendingApprovals: 0 });
});
