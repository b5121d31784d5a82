import { afterAll, beforeAll, expect, it } from 'vitest';
import { Stage } from '../bridge/stage.ts';

const stage = new Stage();
beforeAll(async () => void (await stage.start()));
afterAll(() => stage.end());

it('an allowed action whose agent never says how it went is uncertain in its receipt, not failed (R-24)', async () => {
  const talk = await stage.scriptedTalk();
  const { turnId } = await talk.send('[[permission quiet]]');
  const asked = await talk.until('the card', () => talk.all('approval.requested')[0]);
  await talk.decide(asked, 'allow');
  await talk.ended(turnId);
  expect(talk.all('receipt').map(({ data }) => [data.kind, data.outcome])).toEqual([
    ['decision', undefined],
    ['outcome', 'uncertain'],
  ]);
  expect(talk.all('tool.updated').at(-1)?.data).toMatchObject({ toolCallId: 'quiet', status: 'failed' });
});
