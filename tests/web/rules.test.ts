import { describe, expect, it } from 'vitest';
import type { CommandReading } from '#protocol/events.ts';
import { ruleDraft, type RuleDraft, type RuleView } from '#protocol/policy.ts';
import { z } from '#protocol/schema.ts';
import type { App } from '../../web/state/app.svelte.ts';
import { draftFrom, draftOf, Rules } from '../../web/state/rules.svelte.ts';

const uuid = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const draft: RuleDraft = {
  effect: 'allow',
  agentId: null,
  workspaceId: null,
  match: { by: 'command', program: 'git', args: ['status'] },
  expiresAt: null,
  uses: 3,
  limit: { count: 2, perMs: 3_600_000 },
};
const rule = (n: number, change: Partial<RuleView> = {}): RuleView => ({
  ...draft,
  ruleId: uuid(n),
  source: 'operator',
  enabled: true,
  sentence: `Rule ${n}`,
  workspacePath: '',
  createdAt: 1,
  hits: 0,
  lastHitAt: null,
  ...change,
});

/** A bridge that holds rules, and refuses what it is told to refuse. */
const bridge = (...held: RuleView[]) => {
  let rules: RuleView[] = held;
  let next = 100;
  const calls: [string, unknown][] = [];
  let refuse = '';
  const answer = (method: string, params: Record<string, unknown>): unknown => {
    if (method === 'policy.get') return { generation: 1, digest: 'a'.repeat(64), preset: 'careful', rules };
    if (method === 'policy.put') {
      const made = rule(next++, { ...(params['draft'] as RuleDraft) });
      rules = [...rules, made];
      return { ruleId: made.ruleId, receiptId: uuid(1) };
    }
    if (method === 'policy.forget') {
      const { ruleId, change } = params as { ruleId: string; change: string };
      if (change === 'remove') rules = rules.filter((one) => one.ruleId !== ruleId);
      else rules = rules.map((one) => (one.ruleId === ruleId ? { ...one, enabled: change === 'enable' } : one));
    }
    return { receiptId: uuid(1) };
  };
  const call = (method: string, params: Record<string, unknown>) => {
    calls.push([method, params]);
    return Promise.resolve(
      method === refuse
        ? { ok: false, failure: { code: 'offline', message: 'off' } }
        : { ok: true, value: answer(method, params) },
    );
  };
  const app = { call, tell: call } as unknown as Pick<App, 'call' | 'tell'>;
  return { state: new Rules(app), calls, refuse: (method: string) => (refuse = method) };
};

describe('rules as one sees them (U-06, R-18)', () => {
  it('stand by what they do: refused, always asked, allowed', async () => {
    const { state } = bridge(rule(1), rule(2, { effect: 'reject' }), rule(3, { effect: 'ask' }), rule(4));
    await state.reload();
    expect(state.preset).toBe('careful');
    expect(state.groups.map(({ effect, rules }) => [effect, rules.map((one) => one.ruleId)])).toEqual([
      ['reject', [uuid(2)]],
      ['ask', [uuid(3)]],
      ['allow', [uuid(1), uuid(4)]],
    ]);
  });

  it('are turned off and on by the bridge, and shown as it has them', async () => {
    const { state } = bridge(rule(1));
    await state.turn(rule(1), false);
    expect(state.items.map((one) => one.enabled)).toEqual([false]);
  });

  it('come back as they were after a removal, without their history', async () => {
    const { state, calls } = bridge(rule(1, { title: 'Mine', enabled: false, hits: 9 }));
    await state.reload();
    await state.remove(state.items[0] as RuleView);
    expect([state.items, state.removed?.sentence]).toEqual([[], 'Rule 1']);
    await state.putBack();
    expect(calls.find(([method]) => method === 'policy.put')?.[1]).toEqual({ draft: { ...draft, title: 'Mine' } });
    expect(state.items.map((one) => [one.enabled, one.hits])).toEqual([[false, 0]]);
    expect(state.removed).toBeNull();
  });

  it('can still be put back when the first try fails', async () => {
    const { state, refuse } = bridge(rule(1));
    await state.reload();
    await state.remove(state.items[0] as RuleView);
    refuse('policy.put');
    await state.putBack();
    expect(state.removed?.sentence).toBe('Rule 1');
  });

  it('are not said to be removed when the bridge refuses', async () => {
    const { state, refuse } = bridge(rule(1));
    await state.reload();
    refuse('policy.forget');
    await state.remove(state.items[0] as RuleView);
    expect([state.removed, state.items.length]).toEqual([null, 1]);
  });

  it('become drafts that the bridge takes: nothing but what a person writes', () => {
    const made = draftOf(
      rule(1, { title: 'Mine', bound: { executable: { path: '/usr/bin/git', sha256: 'a'.repeat(64) } } }),
    );
    expect(z.safeParse(ruleDraft, made).success).toBe(true);
    expect(made).not.toHaveProperty('hits');
  });
});

const reading = (change: Partial<CommandReading> = {}): CommandReading => ({
  form: 'shell',
  programs: [{ name: 'git', args: ['push', 'origin'], via: [] }],
  operators: [],
  redirections: [],
  substitutions: [],
  assignments: [],
  hereDocuments: 0,
  hosts: [],
  uninspectable: [],
  simple: true,
  ...change,
});

describe('a rule made from what was tried (R-16)', () => {
  it('matches a simple command by its words', () => {
    const made = draftFrom({ command: 'git push origin', agentId: 'claude', workspaceId: uuid(5) }, reading(), '/w');
    expect(made).toMatchObject({
      agentId: 'claude',
      workspaceId: uuid(5),
      match: { by: 'command', program: 'git', args: ['push', 'origin'] },
    });
    expect(z.safeParse(ruleDraft, made).success).toBe(true);
  });

  it.each([
    ['is joined to another', reading({ simple: false, operators: ['&&'] })],
    ['has a word only the shell would know', reading({ programs: [{ name: 'git', args: ['push', null], via: [] }] })],
    ['has a program only the shell would know', reading({ programs: [{ name: null, args: [], via: [] }] })],
    ['was not read', undefined],
  ])('remembers only the exact text of a command that %s (cases 16, 17)', (_, how) =>
    expect(draftFrom({ command: 'git push && id' }, how, '/w').match).toEqual({
      by: 'text',
      text: 'git push && id',
      cwd: '/w',
    }),
  );

  it('is about the path and what is done to it, or the tool by its name', () => {
    expect(draftFrom({ path: 'src/a.ts' }, undefined, '/w').match).toEqual({
      by: 'path',
      glob: 'src/a.ts',
      effects: ['write'],
    });
    expect(draftFrom({ path: 'src/a.ts', effect: 'delete' }, undefined, '/w').match).toMatchObject({
      effects: ['delete'],
    });
    expect(draftFrom({ tool: 'web_search' }, undefined, '/w').match).toEqual({ by: 'tool', tool: 'web_search' });
  });
});
