/** A conversation that may read a second workspace: chosen, seen, browsed, added to a message (W-03), in a real browser. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import { composer, expect, test } from './ground.ts';

for (const [width, height, scheme] of [
  [1440, 900, 'light'],
  [390, 844, 'dark'],
] as const) {
  test.describe(`at ${width}×${height}`, () => {
    test.use({ viewport: { width, height }, colorScheme: scheme });

    test('W-03: a second workspace is chosen, named, browsed and added by its absolute path', async ({
      bridge,
      open,
    }) => {
      test.setTimeout(45_000);
      const page = await open();
      const folder = join(bridge.state, 'library');
      mkdirSync(join(folder, 'src'), { recursive: true });
      writeFileSync(join(folder, 'src', 'shared.ts'), 'export const shared = 1;\n');
      const client = await bridge.client();
      const { workspaceId } = await client.change('workspace.open', { path: folder });
      const practice = (await client.call('workspace.list', {})).workspaces.find((each) => each.practice);

      await page.getByRole('main').getByRole('button', { name: 'New conversation' }).click();
      const sheet = page.getByRole('dialog');
      await sheet.getByLabel('Workspace', { exact: true }).selectOption(practice?.workspaceId ?? '');
      await sheet.getByText('Also read from…').first().click();
      await sheet.getByRole('checkbox', { name: /^library/ }).check();
      await expect(sheet.getByText('1 chosen')).toBeVisible();
      expect((await new AxeBuilder({ page }).setLegacyMode(true).include('dialog').analyze()).violations).toEqual([]);
      await sheet.getByRole('button', { name: 'Start' }).click();

      await page.getByRole('button', { name: 'reads 1 more. May also read: library' }).click();
      const panel = page.getByRole('tabpanel', { name: 'Files' });
      const which = panel.getByRole('combobox', { name: 'Workspace whose files are shown' });
      await expect(which).toHaveValue(workspaceId);
      await expect(panel.getByText('Read only')).toBeVisible();
      await panel.getByRole('treeitem', { name: /^src/ }).click();
      await panel.getByRole('treeitem', { name: /^shared.ts/ }).click();
      await expect(panel).toContainText('export const shared');
      await panel.getByRole('button', { name: 'Add to message' }).click();
      expect((await new AxeBuilder({ page }).setLegacyMode(true).include('#dock-panel').analyze()).violations).toEqual(
        [],
      );

      await which.selectOption({ index: 0 });
      await expect(panel.getByText('Read only')).toHaveCount(0);
      await expect(panel.getByRole('treeitem', { name: /^package.json/ })).toBeVisible();
      if (width < 760) await page.getByRole('button', { name: 'Close the workspace panel' }).click();
      await expect(composer(page)).toHaveValue(`@${join(folder, 'src', 'shared.ts')} `);

      // Any use opens a workspace again: the page must have heard of the end before it is asked to show it.
      if (width < 760)
        await page.getByRole('navigation', { name: 'Sections' }).getByRole('button', { name: 'Files' }).click();
      await client.change('workspace.close', { workspaceId });
      await expect(which.getByRole('option', { name: 'library (closed)' })).toBeDisabled();
      if (width >= 760) await page.getByRole('button', { name: /^reads 1 more/ }).click();
      await expect(panel.getByText('Read only')).toHaveCount(0);
    });
  });
}
