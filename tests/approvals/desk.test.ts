import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '#protocol/actor.ts';
import type { RuleOffer } from '#protocol/events.ts';
import { approvalView } from '#protocol/methods/approval.ts';
import type { Params } from '#protocol/methods.ts';
import { statementSchema } from '#protocol/receipts.ts';
import { z } from '#protocol/schema.ts';
import type { ReceiptRow } from '../../bridge/ledger/contract.ts';
import { describePermission } from '../../bridge/approvals/permission.ts';
import { verifyAll } from '../../bridge/approvals/reader.ts';
import {
  about,
  agent,
  asked,
  cli,
  commandRequest,
  conversationId,
  openPage,
  openRoom,
  temporary,
  workspaceId,
  writeRequest,
  type Page,
  type Room,
} from './parts.ts';

let directory: ReturnType<typeof temporary>;
let room: Room;
let page: Page;

beforeEach(async () => {
  directory = temporary();
  room = await openRoom(directory.path);
  page = openPage();
});
afterEach(async () => {
  await room.close();
  directory.remove();
});

const receipts = (kind?: string): ReceiptRow[] =>
  [...room.ledger.read.allReceipts()].filter((row) => kind === undefined || row.kind === kind);
const predicateOf = (row: ReceiptRow) =>
  z.parse(statementSchema, JSON.parse(Buffer.from(row.payload).toString())).predicate;
const code = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => 'ok',
    (error: { code?: string }) => error.code ?? String(error),
  );
const valid = (): unknown => verifyAll(room.ledger.read, room.key.publicKeySpki, room.ledger.bridgeId).problems;

describe('R-10, R-11 a decision', () => {
  it('resolves the waiting agent only after event and receipt are committed', async () => {
    const asking = room.desk.ask(writeRequest());
    const [record] = await room.waiting(1);
    const seen: string[] = [];
    void asking.then((verdict) =>
      seen.push(`verdict with ${String(receipts('decision').length)} receipt`, verdict.value),
    );
    const answer = await room.decide(record!, 'allow', page, { note: 'go on' });
    const verdict = await asking;
    expect(verdict).toEqual({
      value: 'allow',
      approvalId: record!.approvalId,
      receiptId: answer.receiptId,
      optionId: 'allow',
      note: 'go on',
    });
    expect(seen).toEqual(['verdict with 1 receipt', 'allow']);
    expect(room.events().map((event) => event.type)).toEqual(['approval.requested', 'approval.decided', 'receipt']);
    expect(room.ledger.read.approval(record!.approvalId)).toMatchObject({
      state: 'allowed',
      by: 'operator',
      note: 'go on',
      receiptId: answer.receiptId,
    });
    expect(valid()).toEqual([]);
  });

  it('signs what was shown: the subject is the action, and the proof is the page’s', async () => {
    void room.desk.ask(writeRequest());
    const [record] = await room.waiting(1);
    await room.decide(record!, 'deny', page);
    const [row] = receipts('decision');
    const predicate = predicateOf(row!);
    expect(predicate.decision).toMatchObject({
      value: 'deny',
      by: 'operator',
      session: page.actor.sessionId,
      shown: { sha256: record!.digest },
    });
    expect(predicate.decision?.proof).toMatchObject({ by: 'browser', keyId: page.actor.keyId });
    expect(predicate.agent).toEqual(agent);
    const action = JSON.parse(Buffer.from(room.ledger.read.action(record!.digest)!).toString()) as Record<
      string,
      unknown
    >;
    expect(Object.keys(action)).toEqual([
      'agent',
      'conversation',
      'detail',
      'effects',
      'kind',
      'nonce',
      'toolCall',
      'turn',
      'workspace',
    ]);
    expect(Buffer.from(row!.payload).toString()).not.toContain('new\\n');
  });

  it('stores the operation’s answer in the same transaction, and nothing when that fails', async () => {
    const asking = room.desk.ask(writeRequest());
    const [record] = await room.waiting(1);
    const params = {
      approvalId: record!.approvalId,
      digest: record!.digest,
      optionId: 'allow',
      value: 'allow' as const,
    };
    const failing = room.desk.decide(page.actor, { ...params, proof: page.proof(params) }, () => {
      throw new Error('no room for the operation');
    });
    await expect(failing).rejects.toThrow('no room');
    expect(room.pending()).toHaveLength(1);
    expect(receipts('decision')).toHaveLength(0);
    await room.desk.decide(page.actor, { ...params, proof: page.proof(params) }, (tx, answer) =>
      tx.setMeta('answer', answer.receiptId),
    );
    expect(room.ledger.read.meta('answer')).toBe(((await asking) as { receiptId: string }).receiptId);
  });
});

describe('R-11 the order of checks', () => {
  type Change = {
    actor?: Actor;
    params?: Partial<Params<'approval.decide'>>;
    before?: (approvalId: string) => Promise<unknown>;
  };
  const outsider: Actor = { ...cli, operator: false };
  const unproven: Actor = { ...cli, tty: false };
  const rejectRule = (): Promise<unknown> =>
    room.ledger.commit((tx) => {
      const record = tx.approvals({ state: 'pending', limit: 1 })[0]!;
      const { rule } = JSON.parse(record.request) as { rule: RuleOffer };
      tx.putRule({
        ruleId: randomUUID(),
        source: 'operator',
        draft: JSON.stringify({ ...rule.scopes[0]!.draft, effect: 'reject' }),
        sentence: 'no',
        createdAt: 1,
        hits: 0,
        used: 0,
        lastHitAt: null,
        enabled: true,
      });
    });
  // Each fault, from the first check to the last. Every row also carries all faults below it that can go together.
  const faults: [string, Change, string][] = [
    ['a peer inside an agent', { actor: outsider }, 'forbidden'],
    ['an unknown approval', { params: { approvalId: randomUUID() } }, 'unknown_approval'],
    [
      'one no longer pending',
      { before: (approvalId) => room.desk.withdraw({ conversationId, approvalId }, 'agent') },
      'approval_withdrawn',
    ],
    ['another digest', { params: { digest: 'f'.repeat(64) } }, 'digest_mismatch'],
    ['no proof and no terminal', { actor: unproven }, 'forbidden'],
    ['an option that was not offered', { params: { optionId: 'always' } }, 'decision_not_offered'],
    ['rules that say no by now', { before: rejectRule }, 'stale_policy'],
  ];
  it.each(faults.map(([name, , expected], index) => [name, expected, index] as const))(
    'names %s before what comes after it (%s)',
    async (_name, expected, from) => {
      void room.desk.ask(writeRequest());
      const [record] = await room.waiting(1);
      const rest = faults.slice(from).map(([, change]) => change);
      for (const change of rest)
        if (from > 2 || change.before !== rejectRule) await change.before?.(record!.approvalId);
      const params = Object.assign({}, ...rest.map((change) => change.params ?? {}).reverse()) as Partial<
        Params<'approval.decide'>
      >;
      const actor = rest.find((change) => change.actor !== undefined)?.actor ?? cli;
      const attempt = room.desk.decide(actor, {
        approvalId: record!.approvalId,
        digest: record!.digest,
        optionId: 'allow',
        value: 'allow',
        ...params,
      });
      expect(await code(attempt)).toBe(expected);
      expect(receipts('decision')).toHaveLength(0);
    },
  );

  it('first wins: of 50 racing decisions one makes a receipt (T36)', async () => {
    const asking = room.desk.ask(writeRequest());
    const [record] = await room.waiting(1);
    const pages = Array.from({ length: 50 }, openPage);
    const results = await Promise.all(
      pages.map((each, index) => code(room.decide(record!, index % 2 === 0 ? 'allow' : 'deny', each))),
    );
    expect(results.filter((result) => result === 'ok')).toHaveLength(1);
    expect(results.filter((result) => result === 'approval_already_decided')).toHaveLength(49);
    expect(receipts('decision')).toHaveLength(1);
    expect((await asking).value).toBe('allow');
    expect(valid()).toEqual([]);
  });

  it('refuses unknown, decided, withdrawn and expired ones by their own code (T36)', async () => {
    const verdicts = ['a', 'b', 'c'].map((content) => room.desk.ask(writeRequest(content)));
    const [decided, withdrawn, expired] = await room.waiting(3);
    await room.decide(decided!, 'deny', page);
    await room.desk.withdraw({ conversationId, approvalId: withdrawn!.approvalId }, 'turn_ended');
    room.fireTimers();
    await Promise.all(verdicts);
    expect(await code(room.decide(decided!, 'allow', page))).toBe('approval_already_decided');
    expect(await code(room.decide(withdrawn!, 'allow', page))).toBe('approval_withdrawn');
    expect(await code(room.decide(expired!, 'allow', page))).toBe('approval_expired');
    expect(await code(room.decide({ ...decided!, approvalId: randomUUID() }, 'allow', page))).toBe('unknown_approval');
  });
});

describe('the proof of a decision', () => {
  const attempt = async (
    change: (params: Params<'approval.decide'>) => Params<'approval.decide'>,
    actor: Actor = page.actor,
  ): Promise<string> => {
    void room.desk.ask(writeRequest());
    const [record] = await room.waiting(1);
    const params = {
      approvalId: record!.approvalId,
      digest: record!.digest,
      optionId: 'allow',
      value: 'allow' as const,
      note: 'yes',
    };
    return code(room.desk.decide(actor, change({ ...params, proof: page.proof(params) })));
  };
  it('is refused absent, by another key, for another note, option or approval', async () => {
    expect(await attempt(({ proof: _, ...params }) => params)).toBe('invalid_proof');
    await room.desk.withdraw({ conversationId }, 'agent');
    const stranger = openPage();
    expect(await attempt((params) => ({ ...params, proof: stranger.proof(params) }))).toBe('invalid_proof');
    await room.desk.withdraw({ conversationId }, 'agent');
    expect(
      await attempt((params) => ({ ...params, proof: { ...stranger.proof(params), keyId: page.actor.keyId } })),
    ).toBe('invalid_proof');
    await room.desk.withdraw({ conversationId }, 'agent');
    expect(await attempt((params) => ({ ...params, note: 'no' }))).toBe('invalid_proof');
    await room.desk.withdraw({ conversationId }, 'agent');
    expect(await attempt((params) => ({ ...params, proof: page.proof({ ...params, approvalId: randomUUID() }) }))).toBe(
      'invalid_proof',
    );
    await room.desk.withdraw({ conversationId }, 'agent');
    expect(await attempt((params) => params)).toBe('ok');
    expect(receipts('decision')).toHaveLength(1);
  });

  it('without a terminal needs --yes, and the receipt says so', async () => {
    const scripted: Actor = { ...cli, tty: false };
    expect(await attempt(({ proof: _, ...params }) => params, scripted)).toBe('forbidden');
    const [record] = room.pending();
    await room.desk.decide(scripted, {
      approvalId: record!.approvalId,
      digest: record!.digest,
      optionId: 'allow',
      value: 'allow',
      yes: true,
    });
    const [row] = receipts('decision');
    expect(predicateOf(row!).decision).toMatchObject({
      by: 'cli',
      session: null,
      proof: { by: 'control-socket', mark: '--yes' },
    });
    expect(valid()).toEqual([]);
  });

  it('has its key in a session receipt that comes before it, once', async () => {
    const verdicts = [room.desk.ask(writeRequest('a')), room.desk.ask(writeRequest('b'))];
    const records = await room.waiting(2);
    for (const record of records) await room.decide(record, 'allow', page);
    await Promise.all(verdicts);
    expect(receipts().map((row) => row.kind)).toEqual(['genesis', 'session', 'decision', 'decision']);
  });
});

describe('the end of an approval without a decision', () => {
  it('case 10: a withdrawn card refuses the late click, and nothing was approved', async () => {
    const asking = room.desk.ask(writeRequest());
    const [record] = await room.waiting(1);
    await room.desk.withdraw({ conversationId }, 'turn_ended');
    expect(await asking).toEqual({ value: 'withdrawn', approvalId: record!.approvalId, reason: 'turn_ended' });
    expect(await code(room.decide(record!, 'allow', page))).toBe('approval_withdrawn');
    expect(receipts().filter((row) => row.value === 'allow')).toHaveLength(0);
    expect(room.events('approval.withdrawn')[0]?.data).toEqual({
      approvalId: record!.approvalId,
      reason: 'turn_ended',
    });
    const again = room.desk.ask(writeRequest());
    await room.decide((await room.waiting(1))[0]!, 'allow', page);
    expect((await again).value).toBe('allow');
  });

  it('T35: content that changed after asking is another action; the old digest is refused', async () => {
    const before = room.desk.ask(writeRequest('harmless\n', { toolCallId: 'call-1' }));
    const [first] = await room.waiting(1);
    await room.desk.withdraw({ conversationId, toolCallId: 'call-1' }, 'changed');
    expect(await before).toMatchObject({ value: 'withdrawn', reason: 'changed' });
    const after = room.desk.ask(writeRequest('harmful\n', { toolCallId: 'call-1' }));
    const [second] = await room.waiting(1);
    expect(await code(room.decide(first!, 'allow', page))).toBe('approval_withdrawn');
    expect(await code(room.decide({ ...second!, digest: first!.digest }, 'allow', page))).toBe('digest_mismatch');
    await room.decide(second!, 'deny', page);
    expect((await after).value).toBe('deny');
  });

  it('an agent that gives up withdraws its own card only', async () => {
    const giving = new AbortController();
    const [first, second] = [
      room.desk.ask(writeRequest('a', { signal: giving.signal })),
      room.desk.ask(writeRequest('b')),
    ];
    await room.waiting(2);
    giving.abort();
    expect(await first).toMatchObject({ value: 'withdrawn', reason: 'agent' });
    await room.decide((await room.waiting(1))[0]!, 'allow', page);
    expect((await second).value).toBe('allow');
  });

  it('withdraws at once what was asked on a signal already aborted', async () => {
    const gone = new AbortController();
    gone.abort();
    expect(await room.desk.ask(writeRequest('a', { signal: gone.signal }))).toMatchObject({
      value: 'withdrawn',
      reason: 'agent',
    });
  });

  it('expires by its timer with a signed denial; a clock that jumps does nothing (T88)', async () => {
    const asking = room.desk.ask(writeRequest());
    const [record] = await room.waiting(1);
    expect(record!.expiresAt - record!.requestedAt).toBe(30 * 60 * 1000);
    room.clock.wall += 365 * 24 * 3_600_000;
    expect(room.pending()).toHaveLength(1);
    room.fireTimers();
    expect((await asking).value).toBe('expired');
    const [row] = receipts('decision');
    expect(predicateOf(row!)).toMatchObject({
      decision: { value: 'deny', by: 'rule' },
      policy: { rule: 'expired' },
      bridge: { clock: 'stepped' },
    });
    expect(room.desk.get(record!.approvalId)?.status).toMatchObject({ state: 'expired', receiptId: row!.receiptId });
    expect(room.timers()).toBe(0);
    expect(valid()).toEqual([]);
  });

  it('keeps a bound on what waits, and forgets nothing that came before (T44)', async () => {
    const asking = Array.from({ length: 300 }, (_, index) =>
      room.desk.ask(writeRequest(`${String(index)}\n`)).then(
        (verdict) => verdict.value,
        (error: { code: string }) => error.code,
      ),
    );
    await room.waiting(256);
    await room.desk.withdraw({ conversationId }, 'turn_ended');
    const results = await Promise.all(asking);
    expect(results.filter((result) => result === 'withdrawn')).toHaveLength(256);
    expect(results.filter((result) => result === 'rate_limited')).toHaveLength(44);
    expect(receipts('decision')).toHaveLength(0);
  });
});

it('case 13: five in parallel, answered 3 1 5 2 4, are five independent decisions', async () => {
  const asking = [1, 2, 3, 4, 5].map((n) => room.desk.ask(writeRequest(`${String(n)}\n`)));
  const records = await room.waiting(5);
  for (const [n, value] of [
    [3, 'allow'],
    [1, 'deny'],
    [5, 'allow'],
    [2, 'allow'],
    [4, 'deny'],
  ] as const)
    await room.decide(records[n - 1]!, value, page);
  const verdicts = await Promise.all(asking);
  expect(verdicts.map((verdict) => verdict.value)).toEqual(['deny', 'allow', 'allow', 'deny', 'allow']);
  expect(verdicts.map((verdict) => verdict.approvalId)).toEqual(records.map((record) => record.approvalId));
  expect(new Set(receipts('decision').map((row) => row.approvalId)).size).toBe(5);
});

describe('R-22 single use', () => {
  it('the same action asked again is a new request with its own nonce and digest', async () => {
    void room.desk.ask(writeRequest());
    const [first] = await room.waiting(1);
    await room.decide(first!, 'allow', page);
    void room.desk.ask(writeRequest());
    const [second] = await room.waiting(1);
    expect(second!.digest).not.toBe(first!.digest);
    expect(await code(room.decide({ ...second!, digest: first!.digest }, 'allow', page))).toBe('digest_mismatch');
  });

  it('signs the outcome of an allowed action once, and none of a denied one', async () => {
    void room.desk.ask(writeRequest('a'));
    void room.desk.ask(writeRequest('b'));
    const [allowed, refused] = await room.waiting(2);
    await room.decide(allowed!, 'allow', page);
    await room.decide(refused!, 'deny', page);
    const result = { startedAt: 1, endedAt: 2, sentence: 'exit code 0' };
    await room.desk.outcome(allowed!.approvalId, 'ok', result);
    await room.desk.outcome(allowed!.approvalId, 'failed', result);
    await room.desk.outcome(refused!.approvalId, 'ok', result);
    const rows = receipts('outcome');
    expect(rows.map((row) => [row.approvalId, row.outcome, row.sentence])).toEqual([
      [allowed!.approvalId, 'ok', 'Done: write src/date.js (exit code 0)'],
    ]);
    expect(room.ledger.read.approval(allowed!.approvalId)?.outcome).toBe('ok');
    expect(valid()).toEqual([]);
  });

  it('a permission for one exact effect is consumed once, and not after its turn (R-01)', async () => {
    const call = {
      toolCallId: 'c',
      kind: 'edit' as const,
      content: [{ type: 'diff' as const, path: '/w/a.txt', oldText: null, newText: 'hello\n' }],
    };
    const effect = {
      type: 'write' as const,
      path: 'a.txt',
      contentSha256: '5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03',
    };
    const allow = async (): Promise<void> => {
      const asking = room.desk.ask(asked(describePermission(call, about), { toolCallId: 'c' }));
      await room.decide((await room.waiting(1))[0]!, 'allow', page);
      await asking;
    };
    await allow();
    expect(room.desk.consume(conversationId, { ...effect, path: 'b.txt' })).toBeNull();
    expect(room.desk.consume(conversationId, { ...effect, contentSha256: '0'.repeat(64) })).toBeNull();
    expect(room.desk.consume(randomUUID(), effect)).toBeNull();
    expect(room.desk.consume(conversationId, effect)).toMatchObject({ receiptId: receipts('decision')[0]!.receiptId });
    expect(room.desk.consume(conversationId, effect)).toBeNull();
    await allow();
    await room.desk.withdraw({ conversationId }, 'turn_ended');
    expect(room.desk.consume(conversationId, effect)).toBeNull();
  });
});

describe('decisions without asking', () => {
  it('a remembered rule decides the same bytes, with a receipt like a human one, and nothing else', async () => {
    void room.desk.ask(commandRequest(['test']));
    const [record] = await room.waiting(1);
    await room.decide(record!, 'allow', page, { remember: true });
    expect(receipts().map((row) => row.kind)).toEqual(['genesis', 'session', 'decision', 'policy']);
    const [rule] = room.rulebook.get().rules;
    expect(rule).toMatchObject({
      effect: 'allow',
      enabled: true,
      sentence: 'Practice agent may run exactly this command in /w: Run npm test',
    });
    expect(await room.desk.ask(commandRequest(['test']))).toMatchObject({ value: 'allow', optionId: 'allow' });
    const automatic = receipts('decision').at(-1)!;
    expect(predicateOf(automatic)).toMatchObject({
      decision: { by: 'rule' },
      policy: { rule: rule!.ruleId, outcome: 'allow', version: 1 },
    });
    expect(room.events('approval.decided').at(-1)?.data).toMatchObject({
      by: 'rule',
      rule: `${rule!.ruleId} Allowed by the rule “${rule!.sentence}”.`,
    });
    expect(room.rulebook.get().rules[0]?.hits).toBe(1);
    const others = [
      commandRequest(['test', '--', 'x']),
      commandRequest(['test'], { agent: { ...agent, executableSha256: 'd'.repeat(64) } }),
      commandRequest(['test'], {
        workspace: { id: workspaceId, rootSha256: 'e'.repeat(64), path: '/w', gitHead: null },
      }),
    ];
    for (const other of others) void room.desk.ask(other);
    await room.waiting(3);
    expect(valid()).toEqual([]);
  });

  it('a rule to write the same content matches again after the file changed', async () => {
    void room.desk.ask(writeRequest('new\n'));
    await room.decide((await room.waiting(1))[0]!, 'allow', page, { remember: true });
    const later = writeRequest('new\n');
    const changed = {
      ...later,
      detail: { ...(later.detail as object), base: { revision: 'r2', sha256: 'f'.repeat(64) } },
    };
    expect((await room.desk.ask(changed)).value).toBe('allow');
    void room.desk.ask(writeRequest('newer\n'));
    await room.waiting(1);
  });

  it('reject rules act before allow rules and standing answers', async () => {
    void room.desk.ask(commandRequest());
    await room.decide((await room.waiting(1))[0]!, 'allow', page, { remember: true });
    const [allowRule] = room.rulebook.get().rules;
    await room.rulebook.forget(page.actor, { ruleId: allowRule!.ruleId, change: 'disable' });
    void room.desk.ask(commandRequest());
    await room.decide((await room.waiting(1))[0]!, 'deny', page, { remember: true });
    await room.rulebook.forget(page.actor, { ruleId: allowRule!.ruleId, change: 'enable' });
    room.desk.standing(conversationId, { value: 'allow', rule: 'cli --allow all' });
    expect((await room.desk.ask(commandRequest())).value).toBe('deny');
    expect(predicateOf(receipts('decision').at(-1)!).policy).toMatchObject({ outcome: 'reject', version: 4 });
  });

  it('a standing answer decides what would be asked, named in the receipt, until it is taken back', async () => {
    room.desk.standing(conversationId, { value: 'allow', rule: 'cli --allow all' });
    expect((await room.desk.ask(writeRequest('a'))).value).toBe('allow');
    room.desk.standing(conversationId, { value: 'deny', rule: 'cli --allow none' });
    expect((await room.desk.ask(writeRequest('b'))).value).toBe('deny');
    expect(receipts('decision').map((row) => predicateOf(row).policy?.rule)).toEqual([
      'cli --allow all',
      'cli --allow none',
    ]);
    expect(room.events().map((event) => event.type)).toEqual([
      'approval.requested',
      'approval.decided',
      'receipt',
      'approval.requested',
      'approval.decided',
      'receipt',
    ]);
    room.desk.standing(conversationId, null);
    void room.desk.ask(writeRequest('c'));
    await room.waiting(1);
    expect(valid()).toEqual([]);
  });

  it('never picks an option of unknown meaning by itself (R-03, T43); the operator may, by its exact id', async () => {
    const options = [
      { id: 'allow_session', name: 'Allow for now', kind: 'allow_for_a_while', meaning: 'other' as const },
    ];
    room.desk.standing(conversationId, { value: 'allow', rule: 'cli --allow all' });
    const asking = room.desk.ask(writeRequest('a', { options }));
    const [record] = await room.waiting(1);
    expect(await code(room.decide(record!, 'allow', page, { optionId: 'allow' }))).toBe('decision_not_offered');
    await room.decide(record!, 'allow', page, { optionId: 'allow_session' });
    expect(await asking).toMatchObject({ value: 'allow', optionId: 'allow_session' });
  });

  it('refuses an option that means the opposite of the value', async () => {
    void room.desk.ask(writeRequest());
    const [record] = await room.waiting(1);
    expect(await code(room.decide(record!, 'deny', page, { optionId: 'allow' }))).toBe('decision_not_offered');
    expect(await code(room.decide(record!, 'allow', page, { optionId: 'deny' }))).toBe('decision_not_offered');
  });

  it('trust that changed while a card was open is reviewed once more', async () => {
    void room.desk.ask(writeRequest());
    const [record] = await room.waiting(1);
    await room.ledger.commit((tx) => {
      tx.putWorkspace({ workspaceId, path: '/w', dev: '1', ino: '2', practice: false, openedAt: 1, forgotten: false });
      tx.putTrust({ workspaceId, fingerprint: 'f'.repeat(64), acceptedAt: 1, receiptId: randomUUID() });
    });
    expect(await code(room.decide(record!, 'allow', page))).toBe('stale_policy');
    expect(await code(room.decide(record!, 'allow', page))).toBe('ok');
  });

  it('nothing is allowed in a folder whose review blocks; denying is (W-14)', async () => {
    void room.desk.ask(writeRequest());
    const [record] = await room.waiting(1);
    room.ground.blocked = 'The review blocks.';
    expect(await code(room.decide(record!, 'allow', page))).toBe('not_trusted');
    expect(await code(room.decide(record!, 'deny', page))).toBe('ok');
  });

  it('changes of rules are signed; an unknown rule is named', async () => {
    void room.desk.ask(writeRequest());
    await room.decide((await room.waiting(1))[0]!, 'allow', page, { remember: true });
    const before = room.rulebook.get();
    await room.rulebook.forget(cli, { ruleId: before.rules[0]!.ruleId, change: 'remove' });
    const after = room.rulebook.get();
    expect(after.rules).toEqual([]);
    expect(after.generation).toBe(before.generation + 1);
    expect(after.digest).not.toBe(before.digest);
    expect(receipts('policy').map((row) => row.sentence.split(':')[0])).toEqual(['Rule saved', 'Rule removed']);
    expect(await code(room.rulebook.forget(cli, { ruleId: before.rules[0]!.ruleId, change: 'remove' }))).toBe(
      'unknown_rule',
    );
    expect(
      await code(
        room.rulebook.forget({ ...cli, operator: false }, { ruleId: before.rules[0]!.ruleId, change: 'remove' }),
      ),
    ).toBe('forbidden');
  });
});

describe('views', () => {
  it('list and get join what people know, newest first, and fit the wire', async () => {
    for (const content of ['a', 'b', 'c']) {
      room.clock.wall += 10;
      void room.desk.ask(writeRequest(content, { toolCallId: 'call' }));
    }
    const [first] = await room.waiting(3);
    await room.decide(first!, 'deny', page, { note: 'not this' });
    const { approvals, more } = room.desk.list({ state: 'all', limit: 2 });
    expect(more).toBe(true);
    expect(approvals.map((view) => view.status.state)).toEqual(['pending', 'pending']);
    for (const view of room.desk.list({ state: 'all' }).approvals)
      expect(z.safeParse(approvalView, view).success).toBe(true);
    expect(room.desk.list({ state: 'decided' }).approvals[0]).toMatchObject({
      conversationTitle: 'Fix the test',
      status: { state: 'denied', by: 'operator', note: 'not this' },
    });
    expect(room.desk.get(randomUUID())).toBeNull();
  });
});

it('an action of megabytes is asked whole: its texts move to blobs, its bytes stay within their bound', async () => {
  void room.desk.ask(writeRequest('line é\n'.repeat(300_000)));
  const [record] = await room.waiting(1);
  const view = room.desk.get(record!.approvalId);
  expect(view?.facts.payloadBytes).toBe(2_400_000);
  expect(view?.facts.diffs[0]).toMatchObject({ newBlob: { bytes: 2_400_000 }, added: 300_000, removed: 1 });
  expect(room.ledger.read.action(record!.digest)!.length).toBeLessThan(2000);
  await room.decide(record!, 'allow', page);
  expect(valid()).toEqual([]);
});
