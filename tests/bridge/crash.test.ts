import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from '#protocol/client.ts';
import { Bridge, bridge, isAlive, temporary } from './process.ts';
import { Talk, until } from './stage.ts';

/** mulberry32: the same points in every run. */
const seeded = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};

describe('SIGKILL of the bridge at any point of the practice conversation (cases 8 and 26, acceptance 4)', () => {
  const rounds = 20;
  /** About as many updates as the whole conversation has: points are places in it, not times, so that load moves none. */
  const updates = 90;
  const state = temporary('crash');
  const running = new Bridge(state.path);
  const file = join(state.path, 'practice', 'workspace', 'src', 'dates.js');
  const random = seeded(20261130);
  beforeAll(async () => void (await running.start()));
  afterAll(async () => {
    await running.stop();
    state.remove();
  });

  const converse = async (client: Client): Promise<{ talk: Talk; turnId: string; original: string }> => {
    const { workspaceId } = await client.change('workspace.open', { practice: true });
    await client.change('workspace.reset', { workspaceId });
    const { conversationId } = await client.change('conversation.create', { workspaceId, agentId: 'practice' });
    const original = readFileSync(file, 'utf8');
    const talk = new Talk(client, conversationId);
    const { turnId } = await talk.send('Find and fix the failing test', { standing: 'allow' });
    return { talk, turnId, original };
  };

  it.each(Array.from({ length: rounds }, (_, round) => round + 1))('point %i', async () => {
    const { talk, turnId, original } = await converse(await running.client());
    const point = Math.floor(random() * updates);
    await talk.until('the point', () => talk.updates >= point || talk.all('turn.ended').length > 0);
    await sleep(random() * 20);
    await running.kill();
    const seen = talk.events.map((event) => JSON.stringify(event));
    const pids = talk.all('agent.started').flatMap(({ data }) => data.pid ?? []);

    await running.start();
    const after = new Talk(await running.client(), talk.conversationId);
    const stored = await after.stored();
    expect(stored.some((event) => event.turnId === turnId && event.type === 'turn.started')).toBe(true);
    expect(stored.slice(0, seen.length).map((event) => JSON.stringify(event))).toEqual(seen);
    expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index + 1));
    expect(stored.filter((event) => event.type === 'turn.ended' && event.turnId === turnId)).toHaveLength(1);
    expect(await after.summary()).toMatchObject({ state: 'idle', live: false, pendingApprovals: 0 });
    await until('the agent to be gone', () => !pids.some(isAlive));
    if (readFileSync(file, 'utf8') !== original) {
      const { receipts } = await after.client.call('receipt.list', { conversationId: talk.conversationId });
      expect(receipts.some(({ value, sentence }) => value === 'allow' && sentence.includes('src/dates.js'))).toBe(true);
    }
    after.close();
  });

  it('every receipt of it verifies', async () => {
    const verified = await bridge(['verify', '--state', state.path, '--all', '--json']);
    expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, problems: [] });
    expect(running.log).not.toContain('MaxListeners');
  });
});
