import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Ground, Page, stateOf } from './parts.ts';

describe('a terminal', () => {
  const ground = new Ground();
  beforeAll(async () => void (await ground.start()));
  afterAll(() => ground.end());

  it('runs the shell in the workspace', async () => {
    const { terminalId, page } = await ground.page();
    page.type('pwd; echo done-$((40+2))\r');
    await page.until(() => page.text().includes('done-42'));
    expect(page.text()).toContain(`\n${ground.directory}\n`);
    const second = await new Page().attach(ground.terminals, terminalId);
    await second.until(() => second.text().includes('done-42'));
    expect(stateOf(second.core)).toEqual(stateOf(page.core));
    page.type('exit 3\r');
    await page.until(() => page.closed !== null);
    expect(page.frames.at(-1)).toEqual({ type: 'ended', code: 3, signal: null });
  });
});
