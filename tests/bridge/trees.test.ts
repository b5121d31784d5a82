import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isAlive, withArgument } from './process.ts';
import type { Talk } from './stage.ts';
import { Stage, until } from './stage.ts';

const gone = (token: string): Promise<void> => until(`${token} to be gone`, () => withArgument(token).length === 0);

const ways = [
  ['held by bubblewrap', 'bubblewrap', () => new Stage()],
  ['best effort', 'best_effort', () => new Stage({}, 'best_effort')],
] as const;

describe.each(ways)('a grandchild that ignores TERM (case 74), %s', (_name, containment, make) => {
  const stage = make();
  beforeAll(async () => void (await stage.start()));
  afterEach(() => stage.quiet());
  afterAll(() => stage.end());

  /** Grandchildren in sessions of their own; the one that cleaned its environment is bubblewrap's to end. */
  const forked = async (): Promise<{ talk: Talk; tokens: string[] }> => {
    const talk = await stage.scriptedTalk({ ignoreTerm: true });
    const tokens = [randomUUID(), randomUUID()];
    const escape = containment === 'bubblewrap' ? `[[escape ${tokens[1]}]]` : `[[grandchild ${tokens[1]}]]`;
    expect((await talk.turn(`[[grandchild ${tokens[0]}]]${escape}[[say forked]]`)).data.stopReason).toBe('end_turn');
    expect((await talk.summary()).containment).toBe(containment);
    for (const token of tokens) expect(withArgument(token).length).toBeGreaterThan(0);
    return { talk, tokens };
  };

  it('is gone after close', async () => {
    const { talk, tokens } = await forked();
    await talk.client.change('conversation.close', { conversationId: talk.conversationId });
    for (const token of tokens) expect(withArgument(token)).toEqual([]);
    expect(talk.all('agent.exited')).toHaveLength(1);
  });

  it('is gone after Stop of a turn whose agent does not listen', async () => {
    const { talk, tokens } = await forked();
    const { turnId } = await talk.send('[[ignore-cancel]][[say busy]][[never]]');
    await talk.until('its word', () => talk.drafts.includes('busy'));
    await talk.client.change('conversation.cancel', { conversationId: talk.conversationId });
    expect((await talk.ended(turnId)).data.stopReason).toBe('cancelled');
    for (const token of tokens) await gone(token);
    expect((await talk.turn('hello')).data.stopReason).toBe('end_turn');
  });

  it('is gone after SIGKILL of its agent', async () => {
    const { talk, tokens } = await forked();
    process.kill(talk.all('agent.started').at(-1)?.data.pid ?? 0, 'SIGKILL');
    await talk.until('the exit', () => talk.all('agent.exited')[0]);
    for (const token of tokens) await gone(token);
  });

  it('is gone after an orderly stop of the bridge', async () => {
    const { tokens } = await forked();
    await stage.bridge.stop();
    for (const token of tokens) expect(withArgument(token)).toEqual([]);
    await stage.start();
  });

  it('is gone after SIGKILL of the bridge, before another starts', async () => {
    const { talk, tokens } = await forked();
    const pids = talk.all('agent.started').flatMap(({ data }) => data.pid ?? []);
    await stage.bridge.kill();
    for (const token of tokens) await gone(token);
    await until('the agent to be gone', () => !pids.some(isAlive));
    await stage.start();
  });

  it('left by a bridge and a supervisor that were killed together is swept at the next start', async () => {
    const { talk, tokens } = await forked();
    const pids = talk.all('agent.started').flatMap(({ data }) => data.pid ?? []);
    for (const pid of [stage.bridge.ready.pid, ...pids]) process.kill(pid, 'SIGSTOP');
    await stage.bridge.kill();
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await stage.start();
    for (const token of tokens) await gone(token);
  });
});
