import { describe, expect, it } from 'vitest';
import type { ApprovalOption } from '#protocol/events.ts';
import type { ApprovalState, ApprovalView } from '#protocol/methods/approval.ts';
import type { ReceiptSummary } from '#protocol/methods/receipt.ts';
import { Batch, type BatchHooks } from '../../web/state/batch.svelte.ts';
import { anyDecision, Decisions, isFound, outcomeOf } from '../../web/state/decisions.svelte.ts';
import { noFilter, oldestFirst, passes, riskOf } from '../../web/state/inbox.ts';
import type { App } from '../../web/state/app.svelte.ts';
import type { Outcome } from '../../web/state/contract.ts';
import { Triage } from '../../web/state/triage.svelte.ts';
import { answersOf } from '../../web/view/conversation/allow.ts';
import { triageKey } from '../../web/view/approvals/keys.ts';

const once: readonly ApprovalOption[] = [
  { id: 'yes', name: 'Yes', kind: 'allow_once', meaning: 'allow' },
  { id: 'no', name: 'No', kind: 'reject_once', meaning: 'deny' },
];
const idOf = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const digestOf = (n: number): string => n.toString(16).padStart(64, '0');

const card = (n: number, change: Partial<ApprovalView> = {}): ApprovalView => ({
  approvalId: idOf(n),
  conversationId: 'c1',
  conversationTitle: 'A talk',
  workspaceId: idOf(901),
  workspacePath: '/home/me/diary',
  agentId: 'practice',
  agentTitle: 'Practice agent',
  kind: 'command',
  digest: digestOf(n),
  actionBytes: 100,
  facts: { headline: `Run ${n}`, paths: [], diffs: [], risks: [], uninspectable: false, payloadBytes: 10 },
  words: {},
  options: [...once],
  rule: null,
  enforcement: 'mediated',
  containment: 'bubblewrap',
  requestedAt: 1000 + n,
  expiresAt: 1_801_000,
  seq: n,
  status: { state: 'pending' },
  ...change,
});

/** A bridge's list that can change under the hand. */
const inboxOf = (...cards: ApprovalView[]) => {
  let items: readonly ApprovalView[] = cards;
  const triage = new Triage(() => items);
  return { triage, become: (...next: ApprovalView[]) => (items = next) };
};
const ids = (cards: readonly ApprovalView[]): string[] => cards.map((one) => one.approvalId);

describe('the inbox: order and filters (U-06)', () => {
  it('puts what waited longest first, and keeps its places within one millisecond', () => {
    const cards = [card(3), card(2, { requestedAt: 5 }), card(1, { requestedAt: 5 })];
    expect(ids(oldestFirst(cards))).toEqual([idOf(1), idOf(2), idOf(3)]);
  });

  it('tells risk by the gravest note, and takes what cannot be inspected for a warning', () => {
    const facts = card(1).facts;
    const note = (level: 'note' | 'warn' | 'stop') => ({ code: level, sentence: level, level });
    expect(riskOf(facts)).toBe('none');
    expect(riskOf({ ...facts, risks: [note('note'), note('stop'), note('warn')] })).toBe('stop');
    expect(riskOf({ ...facts, risks: [note('note')], uninspectable: true })).toBe('warn');
  });

  it.each([
    ['kind', { kind: 'file.write' }],
    ['agent', { agentId: 'claude' }],
    ['workspace', { workspaceId: idOf(902) }],
    ['risk', { risk: 'stop' }],
  ] as const)('filters by %s', (_, change) => {
    const other = card(2, {
      kind: 'file.write',
      agentId: 'claude',
      workspaceId: idOf(902),
      facts: { ...card(2).facts, risks: [{ code: 'x', sentence: 'x', level: 'stop' }] },
    });
    const filter = { ...noFilter, ...change };
    expect([card(1), other].map((one) => passes(one, filter))).toEqual([false, true]);
    expect([card(1), other].every((one) => passes(one, noFilter))).toBe(true);
  });
});

describe('selecting in the inbox (R-13, T35)', () => {
  it('is by id and digest: a card that changed at the same place is not selected, and that is said', () => {
    const { triage, become } = inboxOf(card(1), card(2));
    triage.pick(card(1), { on: true });
    triage.pick(card(2), { on: true });
    become(card(1, { digest: digestOf(77) }), card(2));
    expect(ids(triage.selected)).toEqual([idOf(2)]);
    expect([triage.lost, triage.hidden]).toEqual([1, 0]);
  });

  it('never moves on to the card that takes the place of one that went', () => {
    const { triage, become } = inboxOf(card(1), card(2), card(3));
    triage.pick(card(2), { on: true });
    become(card(1), card(3), card(4));
    expect([triage.selected, triage.lost]).toEqual([[], 1]);
    triage.pick(card(3), { on: true });
    expect([ids(triage.selected), triage.lost]).toEqual([[idOf(3)], 0]);
  });

  it('leaves alone what the filter hides, and says so', () => {
    const { triage } = inboxOf(card(1), card(2, { agentId: 'claude' }));
    triage.pickAll(true);
    triage.filter = { ...noFilter, agentId: 'claude' };
    expect([ids(triage.selected), triage.hidden, triage.lost]).toEqual([[idOf(2)], 1, 0]);
  });

  it('takes everything between two with Shift, in either direction', () => {
    const { triage } = inboxOf(card(1), card(2), card(3), card(4));
    triage.pick(card(4), { on: true });
    triage.pick(card(2), { on: true, range: true });
    expect(ids(triage.selected)).toEqual([idOf(2), idOf(3), idOf(4)]);
    triage.pick(card(3), { on: false, range: true });
    expect(ids(triage.selected)).toEqual([idOf(4)]);
  });

  it('remembers what was seen for that digest alone', () => {
    const { triage } = inboxOf(card(1));
    triage.see(card(1));
    expect(triage.isSeen(card(1))).toBe(true);
    expect(triage.isSeen(card(1, { digest: digestOf(5) }))).toBe(false);
  });
});

const batchOf = (
  value: 'allow' | 'deny',
  triage: Triage,
  answers: (shown: { approvalId: string; digest: string }) => Outcome<{ receiptId: string }> = () => ({
    ok: true,
    value: { receiptId: idOf(500) },
  }),
) => {
  const asked: { approvalId: string; digest: string; value: string; optionId: string }[] = [];
  const hooks: BatchHooks = {
    isWaiting: (one) => triage.isWaiting(one),
    isSeen: (one) => triage.isSeen(one),
    optionFor: (approval, wanted) => answersOf(approval.options)[wanted]?.id ?? null,
    decide: (shown, answer) => {
      asked.push({ ...shown, ...answer });
      return Promise.resolve(answers(shown));
    },
  };
  return { batch: new Batch(value, triage.selected, hooks), asked };
};

describe('answering several at once (R-13, U-06)', () => {
  it('decides each by a request of its own, bound to its own digest and option', async () => {
    const { triage } = inboxOf(card(1), card(2));
    triage.pickAll(true);
    const { batch, asked } = batchOf('deny', triage);
    await batch.run();
    expect(asked).toEqual([
      { approvalId: idOf(1), digest: digestOf(1), value: 'deny', optionId: 'no' },
      { approvalId: idOf(2), digest: digestOf(2), value: 'deny', optionId: 'no' },
    ]);
    expect(batch.lines?.map((line) => [line.state, line.receiptId])).toEqual([
      ['done', idOf(500)],
      ['done', idOf(500)],
    ]);
  });

  it('allows only what was seen whole; the others need a look and stay', async () => {
    const { triage } = inboxOf(card(1), card(2), card(3, { options: once.slice(1) }));
    triage.pickAll(true);
    triage.see(card(1));
    triage.see(card(3));
    const { batch, asked } = batchOf('allow', triage);
    expect(batch.look.map(({ approval, why }) => [approval.approvalId, why])).toEqual([
      [idOf(2), 'unseen'],
      [idOf(3), 'noOption'],
    ]);
    await batch.run();
    expect(asked.map((one) => one.approvalId)).toEqual([idOf(1)]);
  });

  it('needs no look to deny', () => {
    const { triage } = inboxOf(card(1));
    triage.pickAll(true);
    expect(ids(batchOf('deny', triage).batch.take)).toEqual([idOf(1)]);
  });

  it('gives each its own line: taken, already decided, expired', async () => {
    const { triage } = inboxOf(card(1), card(2), card(3));
    triage.pickAll(true);
    const messages = new Map([
      [idOf(2), { code: 'approval_already_decided', message: 'This was already decided.' }],
      [idOf(3), { code: 'approval_expired', message: 'This approval expired; the agent was told no.' }],
    ] as const);
    const { batch } = batchOf('deny', triage, ({ approvalId }) => {
      const failure = messages.get(approvalId);
      return failure === undefined ? { ok: true, value: { receiptId: idOf(500) } } : { ok: false, failure };
    });
    await batch.run();
    expect(batch.lines?.map((line) => [line.state, line.message])).toEqual([
      ['done', ''],
      ['refused', 'This was already decided.'],
      ['refused', 'This approval expired; the agent was told no.'],
    ]);
  });

  it('drops what went or changed between selecting and confirming', () => {
    const { triage, become } = inboxOf(card(1), card(2), card(3));
    triage.pickAll(true);
    const { batch } = batchOf('deny', triage);
    become(card(1), card(2, { digest: digestOf(99) }));
    expect([ids(batch.take), batch.gone]).toEqual([[idOf(1)], 2]);
  });

  it('sends nothing for one that went while others were being sent', async () => {
    const { triage, become } = inboxOf(card(1), card(2));
    triage.pickAll(true);
    const { batch, asked } = batchOf('deny', triage, () => {
      become();
      return { ok: true, value: { receiptId: idOf(500) } };
    });
    await batch.run();
    expect(asked).toHaveLength(1);
    expect(batch.lines?.map((line) => line.state)).toEqual(['done', 'left']);
  });

  it('sends no more when stopped, and never twice', async () => {
    const { triage } = inboxOf(card(1), card(2));
    triage.pickAll(true);
    const { batch, asked } = batchOf('deny', triage, () => {
      batch.stop();
      return { ok: true, value: { receiptId: idOf(500) } };
    });
    await Promise.all([batch.run(), batch.run()]);
    expect(asked).toHaveLength(1);
    expect(batch.lines?.map((line) => line.state)).toEqual(['done', 'stopped']);
  });
});

describe('keys of the inbox (U-06)', () => {
  const press = (key: string, change = {}) => ({
    key,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    repeat: false,
    isComposing: false,
    keyCode: 0,
    ...change,
  });
  it('move, select, open and help; none of them decides', () => {
    expect(['j', 'k', 'x', 'o', '?'].map((key) => triageKey(press(key)))).toEqual([
      'next',
      'previous',
      'select',
      'open',
      'help',
    ]);
    for (const key of ['a', 'd', 'A', 'D', 'Enter', ' ', 'y', 'toString']) expect(triageKey(press(key))).toBeNull();
  });
  it('are no chords, belong to no composition, and only moving repeats', () => {
    for (const change of [
      { ctrlKey: true },
      { metaKey: true },
      { altKey: true },
      { isComposing: true },
      { keyCode: 229 },
    ])
      expect(triageKey(press('x', change))).toBeNull();
    expect(triageKey(press('x', { repeat: true }))).toBeNull();
    expect(triageKey(press('j', { repeat: true }))).toBe('next');
  });
});

const decided = (n: number, status: ApprovalState, change: Partial<ApprovalView> = {}): ApprovalView =>
  card(n, { status, ...change });
const allowed = (change: Partial<Extract<ApprovalState, { state: 'allowed' | 'denied' }>> = {}): ApprovalState => ({
  state: 'allowed',
  by: 'operator',
  at: 50_000,
  receiptId: idOf(600),
  ...change,
});

describe('what was decided (U-06)', () => {
  const withRule = decided(1, allowed({ by: 'rule', rule: 'Allow git status', note: 'Go on' }));
  it.each([
    ['its state', { state: 'denied' as const }, false],
    ['its state', { state: 'allowed' as const }, true],
    ['who answered', { by: 'operator' as const }, false],
    ['who answered', { by: 'rule' as const }, true],
    ['the agent', { agentId: 'claude' }, false],
    ['the kind', { kind: 'tool' as const }, false],
    ['how long ago', { withinMs: 1000 }, false],
    ['how long ago', { withinMs: 100_000 }, true],
    ['words of its headline', { text: 'RUN 1' }, true],
    ['words of its rule and note, in any order', { text: 'go status' }, true],
    ['words that are not there', { text: 'run nothing' }, false],
  ])('is found by %s', (_, change, is) => expect(isFound(withRule, { ...anyDecision, ...change }, 60_000)).toBe(is));

  it('has nobody to name where nobody answered', () => {
    const expired = decided(2, { state: 'expired', at: 5 });
    expect(isFound(expired, { ...anyDecision, by: 'operator' }, 10)).toBe(false);
    expect(isFound(expired, anyDecision, 10)).toBe(true);
  });

  const receipt = (seq: number, approval: number, change: Partial<ReceiptSummary> = {}): ReceiptSummary => ({
    receiptId: idOf(1000 + seq),
    seq,
    kind: 'decision',
    conversationId: 'c1',
    approvalId: idOf(approval),
    at: 1000 + seq,
    sentence: '',
    value: 'allow',
    outcome: null,
    by: 'operator',
    ...change,
  });

  it('joins receipts and outcomes by the exact id, over as many pages as reach back to it (R-14)', async () => {
    const all = Array.from({ length: 450 }, (_, index) =>
      receipt(450 - index, 100 + Math.floor((450 - index) / 2), {
        at: 1000 + 450 - index,
        ...((450 - index) % 2 === 1 ? { kind: 'outcome', outcome: 'failed', value: null } : {}),
      }),
    );
    const asked: unknown[] = [];
    const app: Pick<App, 'call'> = {
      call: ((_method: string, params: { beforeSeq?: number; limit: number }) => {
        asked.push(params.beforeSeq);
        const rest = all.filter((one) => one.seq < (params.beforeSeq ?? Infinity));
        const receipts = rest.slice(0, params.limit);
        return Promise.resolve({ ok: true, value: { receipts, more: rest.length > receipts.length } });
      }) as App['call'],
    };
    const decisions = new Decisions(app);
    decisions.cover([card(250, { requestedAt: 1200 })]);
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(asked).toEqual([undefined, 251]);
    const found = decisions.receiptsOf(idOf(250));
    expect(found.map((one) => [one.seq, one.kind])).toEqual([
      [300, 'decision'],
      [301, 'outcome'],
    ]);
    expect(outcomeOf(found)).toBe('failed');
    expect(decisions.receiptsOf(idOf(9999))).toEqual([]);
  });
});
