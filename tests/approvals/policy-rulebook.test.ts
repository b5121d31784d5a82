/** The rules with a real ledger, desk and seal: changed, counted, paused, migrated; each change signed. */
import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventOf } from '#protocol/events.ts';
import type { Params } from '#protocol/methods.ts';
import { policyMethods } from '#protocol/methods/policy.ts';
import type { RuleDraft, RuleMatch } from '#protocol/policy.ts';
import { statementSchema } from '#protocol/receipts.ts';
import { z } from '#protocol/schema.ts';
import type { ApprovalRequest, Verdict } from '../../bridge/approvals/contract.ts';
import { describeCommand, describeWrite } from '../../bridge/approvals/describe.ts';
import { describePermission } from '../../bridge/approvals/permission.ts';
import { draftOf } from '../../bridge/approvals/policy/rules.ts';
import { verifyAll } from '../../bridge/approvals/reader.ts';
import type { ReceiptRow, RuleRow } from '../../bridge/ledger/contract.ts';
import { migrations } from '../../bridge/ledger/schema.ts';
import {
  about,
  asked,
  cli,
  commandRequest,
  conversationId,
  openPage,
  openRoom,
  temporary,
  workspaceId,
  writeRequest,
  type Room,
} from './parts.ts';

let directory: ReturnType<typeof temporary>;
let room: Room;
const page = openPage();

beforeEach(async () => {
  directory = temporary();
  room = await openRoom(directory.path);
  await room.ledger.commit((tx) => room.rulebook.install(tx));
});
afterEach(async () => {
  await room.close();
  directory.remove();
});

const code = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => 'ok',
    (error: { code?: string }) => error.code ?? String(error),
  );
const receipts = (kind: string): ReceiptRow[] => [...room.ledger.read.allReceipts()].filter((row) => row.kind === kind);
const draft = (match: RuleMatch, more: Partial<RuleDraft> = {}): RuleDraft => ({
  effect: 'allow',
  agentId: null,
  workspaceId: null,
  match,
  expiresAt: null,
  uses: null,
  limit: null,
  ...more,
});
const put = (of: RuleDraft, ruleId?: string) =>
  room.rulebook.put(page.actor, { draft: of, ...(ruleId === undefined ? {} : { ruleId }) });
const own = () => room.rulebook.get().rules.filter((rule) => rule.source !== 'preset');
const npmTest = draft({ by: 'command', program: 'npm', args: ['test'] });

/** What becomes of a request that is not decided by hand: the verdict, or `asked` (and then withdrawn). */
const fate = async (request: ApprovalRequest): Promise<string> => {
  const { signal, abort } = ((controller) => ({ signal: controller.signal, abort: () => controller.abort() }))(
    new AbortController(),
  );
  const before = room.events('approval.decided').length;
  const asking = room.desk.ask({ ...request, signal });
  await room.ledger.commit(() => undefined);
  if (room.events('approval.decided').length === before) abort();
  const verdict: Verdict = await asking;
  return verdict.value === 'withdrawn' ? 'asked' : verdict.value;
};
const requested = (): EventOf<'approval.requested'>['data'] =>
  room.events('approval.requested').at(-1)!.data as EventOf<'approval.requested'>['data'];

describe('automatic decisions (R-21)', () => {
  it('leave a signed receipt with the rule, a quiet event with the reason, and no card', async () => {
    const { ruleId } = await put(npmTest);
    const verdict = await room.desk.ask(commandRequest(['test']));
    expect(verdict).toMatchObject({ value: 'allow' });
    expect(room.pending()).toEqual([]);
    const [row] = receipts('decision');
    const { predicate } = z.parse(statementSchema, JSON.parse(Buffer.from(row!.payload).toString()));
    expect(predicate).toMatchObject({
      policy: { rule: ruleId, outcome: 'allow' },
      decision: { by: 'rule', proof: { by: 'rule' } },
    });
    expect(predicate.policy?.digest).toBe(room.rulebook.get().digest);
    const because = 'Allowed by the rule “Any agent may run “npm test” in any workspace”.';
    expect(requested().because).toBe(because);
    expect(room.events('approval.decided').at(-1)?.data).toMatchObject({ by: 'rule', rule: `${ruleId} ${because}` });
    expect(own()).toMatchObject([{ hits: 1 }]);
    expect(verifyAll(room.ledger.read, room.key.publicKeySpki, room.ledger.bridgeId).problems).toEqual([]);
  });

  it('say why they asked, on the card and in its view', async () => {
    void room.desk.ask(
      asked(describePermission({ toolCallId: 'c', kind: 'execute', rawInput: '{"command":"ls && id"}' }, about)),
    );
    const [record] = await room.waiting(1);
    const because =
      'Asked because “Any agent may run “ls” with any further arguments in any workspace” would match, but the command has &&.';
    expect(requested().because).toBe(because);
    expect(room.desk.get(record!.approvalId)?.because).toBe(because);
  });

  it('a rule that says no tells the agent no, at once', async () => {
    await put({ ...npmTest, effect: 'reject' });
    expect(await fate(commandRequest(['test']))).toBe('deny');
  });

  it('count uses and limits over requests, and over a restart', async () => {
    await put({ ...npmTest, uses: 2 });
    const write = draft({ by: 'path', glob: 'src/**', effects: ['write'] }, { limit: { count: 2, perMs: 60_000 } });
    await put(write);
    const both = async (): Promise<string[]> => [await fate(commandRequest(['test'])), await fate(writeRequest('x'))];
    expect(await both()).toEqual(['allow', 'allow']);
    expect(await both()).toEqual(['allow', 'allow']);
    await room.close();
    room = await openRoom(directory.path);
    expect(await both()).toEqual(['asked', 'asked']);
    expect(requested().because).toContain('its limit is reached');
    expect(own().map((rule) => rule.uses)).toEqual([0, null]);
    room.clock.wall += 60_001;
    expect(await both()).toEqual(['asked', 'allow']);
  });

  it('an expired rule asks', async () => {
    await put({ ...npmTest, expiresAt: room.clock.wall + 1000 });
    expect(await fate(commandRequest(['test']))).toBe('allow');
    room.clock.wall += 1000;
    expect(await fate(commandRequest(['test']))).toBe('asked');
  });
});

describe('the ground allow rules stand on (R-15, T40)', () => {
  const reading = (): ApprovalRequest =>
    asked(
      describePermission(
        { toolCallId: 'c', kind: 'read', rawInput: '{"a":1}', locations: [{ path: '/w/src/a' }] },
        about,
      ),
    );

  it('without trust allow rules ask; reading inside does not', async () => {
    await put(npmTest);
    room.ground.trusted = false;
    expect(await fate(commandRequest(['test']))).toBe('asked');
    expect(requested().because).toContain('found is not accepted');
    expect(await fate(reading())).toBe('allow');
  });

  it('they pause for the rest of a conversation in which agent configuration was changed, over restarts', async () => {
    await put(npmTest);
    expect(await fate(commandRequest(['test']))).toBe('allow');
    const asking = room.desk.ask(
      asked(describeWrite({ path: '.claude/settings.json', current: null, content: '{}' }, about)),
    );
    await room.decide((await room.waiting(1))[0]!, 'allow', page);
    await asking;
    expect(await fate(commandRequest(['test']))).toBe('asked');
    expect(requested().because).toContain('configuration of agents, editors or git was changed in this conversation');
    await room.close();
    room = await openRoom(directory.path);
    expect(await fate(commandRequest(['test']))).toBe('asked');
    expect(await fate(reading())).toBe('allow');
  });

  it('they pause once what was found in the folder was accepted anew', async () => {
    await put(npmTest);
    expect(await fate(commandRequest(['test']))).toBe('allow');
    await room.ledger.commit((tx) =>
      tx.putTrust({ workspaceId, fingerprint: 'f'.repeat(64), acceptedAt: 1, receiptId: randomUUID() }),
    );
    expect(await fate(commandRequest(['test']))).toBe('asked');
    expect(requested().because).toContain('given or taken back in this conversation');
  });
});

describe('remembering (R-16)', () => {
  const decide = async (value: 'allow' | 'deny', more: Partial<Params<'approval.decide'>>): Promise<string> => {
    const asking = room.desk.ask(commandRequest(['test', 'unit']));
    const [record] = await room.waiting(1);
    const outcome = await code(room.decide(record!, value, page, { remember: true, ...more }));
    if (outcome !== 'ok') await room.desk.withdraw({ conversationId, approvalId: record!.approvalId }, 'agent');
    await asking;
    return outcome;
  };

  it('saves the scope that was chosen, and it decides from then on', async () => {
    const rule = draft({ by: 'command', program: 'npm', args: ['test', '**'] }, { agentId: 'practice', uses: 5 });
    expect(await decide('allow', { rule })).toBe('ok');
    expect(own()).toMatchObject([
      {
        source: 'remembered',
        uses: 5,
        sentence: 'Practice agent may run “npm test” with any further arguments in any workspace, 5 times',
      },
    ]);
    expect(await fate(commandRequest(['test', 'other']))).toBe('allow');
  });

  it('"never" saves the same as a reject', async () => {
    expect(await decide('deny', { rule: draft({ by: 'command', program: 'npm', args: ['test', '**'] }) })).toBe('ok');
    expect(own()).toMatchObject([{ effect: 'reject' }]);
    expect(await fate(commandRequest(['test']))).toBe('deny');
  });

  it.each<[string, RuleDraft]>([
    ['about something else', draft({ by: 'command', program: 'npm', args: ['run', '**'] })],
    ['of another agent', { ...npmTest, match: { by: 'command', program: 'npm', args: ['**'] }, agentId: 'another' }],
    [
      'bound to another program',
      draft(
        { by: 'command', program: 'npm', args: ['**'] },
        { bound: { executable: { path: '/x', sha256: '0'.repeat(64) } } },
      ),
    ],
    ['that is used up', draft({ by: 'command', program: 'npm', args: ['**'] }, { uses: 0 })],
    ['that has expired', draft({ by: 'command', program: 'npm', args: ['**'] }, { expiresAt: 1 })],
  ])('refuses a rule %s, and the card stays', async (_name, rule) => {
    expect(await decide('allow', { rule })).toBe('decision_not_offered');
    expect(own()).toEqual([]);
    expect(receipts('decision')).toEqual([]);
  });

  it('the preview of an editor says whether a rule is about the card', async () => {
    void room.desk.ask(commandRequest(['test']));
    const [record] = await room.waiting(1);
    const request = room.desk.considered(record!.approvalId);
    expect(room.rulebook.preview(npmTest, request)).toMatchObject({
      problem: null,
      matchesRequest: true,
      scope: { matches: ['npm test'] },
    });
    expect(room.rulebook.preview({ ...npmTest, uses: 0 }, null)).toMatchObject({
      problem: 'The rule would have no use left.',
      matchesRequest: null,
    });
    expect(room.rulebook.preview(draft({ by: 'text', text: 'x', cwd: '/w' }), request).matchesRequest).toBe(false);
  });
});

describe('changes (R-19)', () => {
  it('each has a new generation, another digest, a signed receipt, and acts on the next request', async () => {
    const seen = [room.rulebook.get()];
    const step = async (change: Promise<unknown>): Promise<void> => {
      await change;
      seen.push(room.rulebook.get());
    };
    await step(put(npmTest));
    const [{ ruleId } = { ruleId: '' }] = own();
    expect(await fate(commandRequest(['test']))).toBe('allow');
    await step(room.rulebook.forget(cli, { ruleId, change: 'disable' }));
    expect(await fate(commandRequest(['test']))).toBe('asked');
    expect(requested().because).toContain('it is turned off');
    await step(put({ ...npmTest, effect: 'reject' }, ruleId));
    await step(room.rulebook.forget(cli, { ruleId, change: 'enable' }));
    expect(await fate(commandRequest(['test']))).toBe('deny');
    await step(room.rulebook.preset(cli, { preset: 'edits' }));
    expect(await fate(writeRequest('x'))).toBe('allow');
    await step(
      room.rulebook.load(cli, { rules: [draft({ by: 'path', glob: '**', effects: ['write'] }, { effect: 'reject' })] }),
    );
    expect(await fate(writeRequest('x'))).toBe('deny');
    expect(await fate(commandRequest(['test']))).toBe('asked');
    await step(room.rulebook.forget(cli, { ruleId: own()[0]!.ruleId, change: 'remove' }));
    expect(await fate(writeRequest('x'))).toBe('allow');
    expect(seen.map(({ generation }) => generation)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(new Set(seen.map(({ digest }) => digest)).size).toBe(seen.length);
    expect(receipts('policy').map(({ by }) => by)).toEqual([
      'bridge',
      'operator',
      'cli',
      'operator',
      'cli',
      'cli',
      'cli',
      'cli',
    ]);
    for (const answer of seen) expect(z.safeParse(policyMethods['policy.get'].result, answer).success).toBe(true);
    expect(verifyAll(room.ledger.read, room.key.publicKeySpki, room.ledger.bridgeId).problems).toEqual([]);
  });

  it('are the operator’s only, and name what is wrong', async () => {
    const agent = { ...cli, operator: false };
    const [preset] = room.rulebook.get().rules;
    const attempts: [Promise<unknown>, string][] = [
      [room.rulebook.put(agent, { draft: npmTest }), 'forbidden'],
      [room.rulebook.load(agent, { rules: [] }), 'forbidden'],
      [room.rulebook.preset(agent, { preset: 'edits' }), 'forbidden'],
      [room.rulebook.forget(agent, { ruleId: preset!.ruleId, change: 'disable' }), 'forbidden'],
      [put(npmTest, randomUUID()), 'unknown_rule'],
      [room.rulebook.forget(cli, { ruleId: randomUUID(), change: 'remove' }), 'unknown_rule'],
      [put(npmTest, preset!.ruleId), 'invalid_rule'],
      [room.rulebook.forget(cli, { ruleId: preset!.ruleId, change: 'remove' }), 'invalid_rule'],
      [put(draft({ by: 'risk', codes: ['outside'] })), 'invalid_rule'],
      [room.rulebook.load(cli, { rules: [npmTest, { ...npmTest, uses: 0 }] }), 'invalid_rule'],
    ];
    for (const [attempt, expected] of attempts) expect(await code(attempt)).toBe(expected);
    expect(own()).toEqual([]);
    expect(receipts('policy')).toHaveLength(1);
  });

  it('loading again keeps the history of what stayed, and remembered rules', async () => {
    void room.desk.ask(commandRequest(['run', 'x']));
    await room.decide((await room.waiting(1))[0]!, 'allow', page, { remember: true });
    await room.rulebook.load(cli, { rules: [npmTest] });
    expect(await fate(commandRequest(['test']))).toBe('allow');
    await room.rulebook.load(cli, { rules: [npmTest, { ...npmTest, effect: 'ask' }] });
    expect(own().map(({ source, effect, hits }) => [source, effect, hits])).toEqual([
      ['remembered', 'allow', 0],
      ['operator', 'allow', 1],
      ['operator', 'ask', 0],
    ]);
  });

  it('a preset rule that was turned off stays so when the bridge starts again; nothing is signed twice', async () => {
    const rule = room.rulebook.get().rules.find(({ match }) => match.by === 'command' && match.program === 'ls')!;
    await room.rulebook.forget(cli, { ruleId: rule.ruleId, change: 'disable' });
    await room.close();
    room = await openRoom(directory.path);
    await room.ledger.commit((tx) => room.rulebook.install(tx));
    expect(room.rulebook.get().rules.filter(({ enabled }) => !enabled)).toMatchObject([{ ruleId: rule.ruleId }]);
    expect(receipts('policy')).toHaveLength(2);
  });

  it('holds as many rules as fit a page', async () => {
    const many = Array.from({ length: 990 }, (_, index) =>
      draft({ by: 'text', text: `x ${String(index)}`, cwd: '/w' }),
    );
    expect(await code(room.rulebook.load(cli, { rules: many }))).toBe('invalid_rule');
    expect(own()).toEqual([]);
    await room.rulebook.load(cli, { rules: many.slice(0, 900) });
    expect(own()).toHaveLength(900);
  });
});

describe('what a project suggests (R-19)', () => {
  it('is shown for its own workspace, and never acts', async () => {
    const text = JSON.stringify({
      rules: [{ effect: 'allow', workspaceId: randomUUID(), match: { by: 'command', program: 'npm', args: ['test'] } }],
    });
    const { rules, problem } = room.rulebook.suggestions(workspaceId, text);
    expect(problem).toBeNull();
    expect(rules).toMatchObject([{ draft: { workspaceId, agentId: null, uses: null }, saved: false }]);
    expect(await fate(commandRequest(['test']))).toBe('asked');
    await put(rules[0]!.draft);
    expect(room.rulebook.suggestions(workspaceId, text).rules).toMatchObject([{ saved: true }]);
    expect(await fate(commandRequest(['test']))).toBe('allow');
  });

  it.each(['', '[]', '{"rules":[{}]}', '{"rules":[{"effect":"allow","match":{"by":"everything"}}]}', 'null'])(
    '%j says what is wrong',
    (text) => {
      expect(room.rulebook.suggestions(workspaceId, text)).toMatchObject({
        rules: [],
        problem: expect.stringMatching(/^It is not/),
      });
    },
  );
  it('no file says nothing', () =>
    expect(room.rulebook.suggestions(workspaceId, null)).toEqual({ rules: [], problem: null }));
});

describe('trying rules', () => {
  it('on the saved ones, on others instead, with and without trust; nothing is stored', async () => {
    const request = asked(describeCommand({ command: 'git', args: ['status'], env: [], cwd: '/w' }, about));
    const before = room.ledger.read.lastReceipt()?.seq;
    expect(room.rulebook.test(request, true)).toMatchObject({ verdict: 'allow' });
    expect(room.rulebook.test(request, false)).toMatchObject({ verdict: 'ask' });
    expect(room.rulebook.test(request, true, [])).toMatchObject({
      verdict: 'ask',
      because: 'Asked because no rule is about this.',
    });
    const answer = room.rulebook.test(request, true, [
      draft({ by: 'command', program: 'git', args: ['**'] }, { effect: 'reject' }),
    ]);
    expect(answer.verdict).toBe('reject');
    expect(room.ledger.read.lastReceipt()?.seq).toBe(before);
    expect(room.events()).toEqual([]);
  });
});

it('approvals that share a millisecond are all listed, page by page', async () => {
  for (let index = 0; index < 7; index += 1) void room.desk.ask(writeRequest(String(index)));
  await room.waiting(7);
  expect(new Set(room.pending().map(({ requestedAt }) => requestedAt)).size).toBeLessThan(7);
  const seen: string[] = [];
  for (let last: { requestedAt: number; approvalId: string } | undefined; ;) {
    const from = last === undefined ? {} : { before: last.requestedAt, beforeId: last.approvalId };
    const pageOf = room.desk.list({ state: 'all', limit: 2, ...from });
    seen.push(...pageOf.approvals.map(({ approvalId }) => approvalId));
    last = pageOf.approvals.at(-1);
    if (!pageOf.more) break;
  }
  expect([...seen].sort()).toEqual(
    room
      .pending()
      .map(({ approvalId }) => approvalId)
      .sort(),
  );
});

it('exact rules of an earlier version stay, as rules of the rule language', () => {
  const db = new DatabaseSync(':memory:');
  const upTo = migrations.findIndex((text) => text.includes('RENAME TO exactRule'));
  for (const text of migrations.slice(0, upTo)) db.exec(text);
  const digest = 'e'.repeat(64);
  db.prepare('INSERT INTO rule VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').run(
    ...['r', 'reject', 'command', 'practice', workspaceId, digest, 'may not', 5, 2, 7, 0],
  );
  db.exec(migrations[upTo] ?? '');
  const row = db.prepare('SELECT * FROM rule').get() as unknown as RuleRow;
  const kept = { ruleId: 'r', source: 'remembered', sentence: 'may not', createdAt: 5, hits: 2, used: 0, lastHitAt: 7 };
  expect(row).toMatchObject({ ...kept, enabled: 0 });
  expect(draftOf(row)).toEqual(draft({ by: 'exact', digest }, { effect: 'reject', agentId: 'practice', workspaceId }));
  db.close();
});
