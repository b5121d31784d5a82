import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { Client } from '#protocol/client.ts';
import type { AnyEvent } from '#protocol/events.ts';
import { Bridge, bridge, temporary } from './process.ts';

/** mulberry32: the same points in every run. */
const seeded = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};

const whole = async (client: Client, conversationId: string): Promise<AnyEvent[]> => {
  const { lastSeq } = await client.call('conversation.get', { conversationId });
  const events: AnyEvent[] = [];
  for (let before = lastSeq + 1; before > 1;) {
    const page = await client.call('conversation.history', { conversationId, beforeSeq: before });
    events.unshift(...page.events);
    before = page.firstSeq;
  }
  return events;
};

const isAlive = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
/** Processes that carry an agent marker and whose environment names this state's practice directory. */
const file = (state: string): string => join(state, 'practice', 'workspace', 'src', 'dates.js');

describe('SIGKILL of the bridge at any point of the practice conversation (cases 8 and 26, acceptance 4)', () => {
  const state = temporary('crash');
  const running = new Bridge(state.path);
  afterAll(async () => {
    await running.stop();
    state.remove();
  });

  it('loses nothing acknowledged, leaves nothing working, no agent, and no effect without a receipt, 20 times', async () => {
    const random = seeded(20261130);
    for (let round = 0; round < 20; round += 1) {
      await running.start();
      let client = await running.client();
      const { workspaceId } = await client.change('workspace.open', { practice: true });
      await client.change('workspace.reset', { workspaceId });
      const original = readFileSync(file(state.path), 'utf8');
      const { conversationId } = await client.change('conversation.create', { workspaceId, agentId: 'practice' });
      const seen = new Map<number, string>();
      const pids = new Set<number>();
      const take = (event: AnyEvent): void => {
        seen.set(event.seq, JSON.stringify(event));
        if (event.type === 'agent.started' && typeof event.data['pid'] === 'number') pids.add(event.data['pid']);
      };
      client.subscribe(conversationId, {
        listener: (update) => {
          if (update.type === 'snapshot') update.events.forEach(take);
          if (update.type === 'event') take(update.event);
        },
      });
      const content = [{ type: 'text' as const, text: 'Find and fix the failing test' }];
      const sent = await client.change('conversation.send', {
        conversationId,
        delivery: 'prompt',
        content,
        standing: 'allow',
      });
      await sleep(Math.floor(random() * 1500));
      await running.kill();

      await running.start();
      client = await running.client();
      const events = await whole(client, conversationId);
      expect(events.some((event) => event.turnId === sent.turnId && event.type === 'turn.started')).toBe(true);
      for (const [seq, json] of seen) expect(JSON.stringify(events[seq - 1]), `round ${round}, seq ${seq}`).toBe(json);
      const ended = events.filter((event) => event.type === 'turn.ended' && event.turnId === sent.turnId);
      expect(ended, `round ${round}`).toHaveLength(1);
      const summary = await client.call('conversation.get', { conversationId });
      expect(summary).toMatchObject({ state: 'idle', live: false, pendingApprovals: 0 });
      for (const pid of pids) expect(isAlive(pid), `round ${round}: agent ${pid}`).toBe(false);
      if (readFileSync(file(state.path), 'utf8') !== original) {
        const { receipts } = await client.call('receipt.list', { conversationId });
        expect(
          receipts.some((receipt) => receipt.value === 'allow' && receipt.sentence.includes('src/dates.js')),
          `round ${round}`,
        ).toBe(true);
      }
      await running.stop();
    }
    const verified = await bridge(['verify', '--state', state.path, '--all', '--json']);
    expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, problems: [] });
  }, 240_000);
});
