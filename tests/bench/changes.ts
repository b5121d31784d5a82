/** Row 16, in the app: 50,000 files of which 2,000 are changed; the list, and a file's difference from its click on. */
import type { Page } from '@playwright/test';
import { openCold, paintedAt, type Wanted } from './browser.ts';
import { makeRepository, nameOf } from './git.ts';
import { launchAt, type Ground } from './ground.ts';
import { atMost, figure, repeat, type Row } from './measure.ts';

const runs = 9;
const panel = '[role="tabpanel"]';
const rowOf = (file: string): string => `${panel} button[data-index][title^="${file}"]`;
const drawn: Wanted = { selector: `${panel} .row.added mark` };

/** Presses what `selector` names; how long until `wanted` is painted. */
const pressed = async (page: Page, selector: string, wanted: Wanted): Promise<number> => {
  const began = await page.evaluate(
    ({ selector: what, wanted: then }) => {
      const button = document.querySelector<HTMLElement>(what);
      if (button === null) throw new Error(`${what} is not there`);
      window.bench.await(then);
      const at = performance.now();
      button.click();
      return at;
    },
    { selector, wanted },
  );
  return (await paintedAt(page)) - began;
};

export const changesRows = async (ground: Ground): Promise<Row[]> => {
  const path = ground.path('changes-work');
  makeRepository(path);
  const { bridge } = await ground.bridge('changes');
  const client = await bridge.client();
  const { workspaceId } = await client.change('workspace.open', { path });
  const { conversationId } = await client.change('conversation.create', { workspaceId, agentId: 'practice' });
  const opened = await openCold(
    await ground.browser(),
    await launchAt(bridge, `/c/${conversationId}?changes=unstaged`),
    {
      selector: rowOf(nameOf(0, 0)),
    },
  );
  const { page } = opened;
  await page.waitForTimeout(1000);

  const lists = await repeat(runs, async () => {
    const files = '#dock-tab-files';
    await pressed(page, files, { selector: `${files}[aria-selected="true"]` });
    await page.waitForTimeout(300);
    return pressed(page, '#dock-tab-changes', { selector: rowOf(nameOf(0, 0)) });
  });
  // Each another file, in view and never looked at before; the first also loads what draws it.
  const first = await pressed(page, rowOf(nameOf(0, 0)), drawn);
  const clicks: number[] = [];
  for (let run = 1; run <= runs; run += 1) {
    // In the order of the list: folder-0, folder-1, folder-10, four of each.
    const file = nameOf([0, 1, 10][Math.floor(run / 4)] ?? 0, (run % 4) * 25);
    await page.keyboard.press('Escape');
    await page.locator(rowOf(file)).waitFor();
    await page.waitForTimeout(300);
    clicks.push(await pressed(page, rowOf(file), drawn));
  }
  const elements = await page.evaluate(() => document.getElementsByTagName('*').length);
  await opened.context.close();
  const base = { row: '16', name: 'changes', unit: 'ms', floor: null } as const;
  return [
    atMost(
      {
        ...base,
        what: 'a file’s difference painted, from its click',
        ours: figure(clicks),
        note: `the very first ${first.toFixed(0)} ms; the list ${figure(lists).value.toFixed(0)} ms from the tab’s press; ${elements} elements`,
      },
      300,
    ),
  ];
};
