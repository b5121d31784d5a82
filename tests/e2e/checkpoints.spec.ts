/** A turn's files in a real browser: reviewed, put back, and brought back again (F-23). */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { allow, expect, expectVerified, log, practiceFolder, practise, send, stored, test } from './ground.ts';

const footer = (page: Page) => log(page).locator('footer').last();
const dialog = (page: Page) => page.getByRole('dialog');

for (const [width, height] of [
  [1440, 900],
  [390, 844],
] as const) {
  test.describe(`at ${width}×${height}`, () => {
    test.use({ viewport: { width, height } });

    test('F-23: a turn is reviewed, put back and undone, each with a receipt', async ({ bridge, open }) => {
      const page = await open();
      const folder = practiceFolder(bridge);
      const conversationId = await practise(page);
      await send(page, 'note: the first line');
      await allow(page);
      await expect(footer(page)).toContainText('1 file changed', { timeout: 20_000 });
      const [path = ''] = (await stored(bridge, conversationId)).flatMap(({ type, data }) =>
        type === 'turn.ended' ? (data['changedPaths'] as string[]) : [],
      );
      const file = join(folder, path);
      const written = readFileSync(file, 'utf8');
      expect(written).toContain('the first line');

      await footer(page).getByRole('button', { name: 'Review changes' }).click();
      await expect(page.getByRole('tabpanel', { name: 'Changes' })).toContainText('NOTES.md');
      if (width < 760) await page.getByRole('button', { name: 'Close the workspace panel' }).click();

      // Something of the operator's in the same file: it is named, and not chosen.
      writeFileSync(file, `${written}mine\n`);
      await footer(page).getByRole('button', { name: 'Restore…' }).click();
      await expect(dialog(page)).toContainText('Changed after this turn ended.');
      await expect(dialog(page).getByRole('button', { name: 'Put files back' })).toBeDisabled();
      expect((await new AxeBuilder({ page }).setLegacyMode(true).include('dialog').analyze()).violations).toEqual([]);
      await page.keyboard.press('Escape');
      writeFileSync(file, written);

      await footer(page).getByRole('button', { name: 'Restore…' }).click();
      const put = dialog(page).getByRole('button', { name: 'Put 1 file back' });
      await expect(put).toBeEnabled();
      expect(readFileSync(file, 'utf8'), 'nothing is written before the answer').toBe(written);
      await put.click();
      await expect(dialog(page).getByRole('status')).toContainText(/1 file (put back|removed)\./);
      const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
      expect(before).not.toContain('the first line');
      await expect(log(page)).toContainText('Put 1 file back: NOTES.md.');

      await dialog(page).getByRole('button', { name: 'Undo', exact: true }).click();
      await expect(dialog(page).getByRole('status')).toContainText('Undone');
      expect(readFileSync(file, 'utf8')).toBe(written);
      await expect(log(page)).toContainText('Undid putting files back: NOTES.md.');
      await dialog(page).getByRole('link', { name: 'Receipt' }).click();
      await expect(page).toHaveURL(/\/receipts\//);
      await expect(page.getByText('Verified', { exact: true }).first()).toBeVisible();
      const kinds = (await stored(bridge, conversationId)).flatMap(({ type, data }) =>
        type === 'receipt' && data['kind'] === 'restore' ? [data['sentence']] : [],
      );
      expect(kinds).toHaveLength(4);
      await expectVerified(bridge);
    });
  });
}
