/** For any sequence of requests, decisions, withdrawals, restarts and changes of rules: what ran was allowed once, exactly. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonical } from '#protocol/json.ts';
import type { RuleDraft } from '#protocol/policy.ts';
import { statementSchema } from '#protocol/receipts.ts';
import { z } from '#protocol/schema.ts';
import type { ApprovalRequest } from '../../bridge/approvals/contract.ts';
import { verifyAll } from '../../bridge/approvals/reader.ts';
import type { ReceiptRow } from '../../bridge/ledger/contract.ts';
import {
  cli,
  commandRequest,
  conversationId,
  openPage,
  openRoom,
  temporary,
  writeRequest,
  type Room,
} from './parts.ts';

const requests: readonly (() => ApprovalRequest)[] = [
  () => commandRequest(['test']),
  () => commandRequest(['run', 'lint']),
  () => writeRequest('one\n'),
  () => writeRequest('two\n', { toolCallId: 'call' }),
];
const rule = (effect: RuleDraft['effect'], match: RuleDraft['match']): RuleDraft => ({
  ...{ effect, match, agentId: null, workspaceId: null, expiresAt: null, uses: null },
  limit: effect === 'allow' ? { count: 2, perMs: 60_000 } : null,
});
const rules: readonly RuleDraft[] = [
  rule('allow', { by: 'command', program: 'npm', args: ['**'] }),
  rule('reject', { by: 'command', program: 'npm', args: ['run', '**'] }),
  rule('allow', { by: 'path', glob: 'src/**', effects: ['write'] }),
  rule('ask', { by: 'effect', effects: ['write'] }),
];

const index = fc.nat({ max: 3 });
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('ask' as const), which: index }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('decide' as const),
      which: index,
      allow: fc.boolean(),
      remember: fc.boolean(),
      times: fc.constantFrom(1, 1, 5),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('outcome' as const), which: index, ok: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('withdraw' as const), which: index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('end' as const, 'expire' as const, 'restart' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rule' as const), which: index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const), which: index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('preset' as const), edits: fc.boolean() }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** What an agent would have done with its answers: the effects it ran, by approval. */
type Ran = Map<string, string>;

const open = async (directory: string): Promise<Room> => {
  const room = await openRoom(directory);
  await room.ledger.commit((tx) => room.rulebook.install(tx));
  return room;
};
/** A refusal is an answer like another; anything else is a fault. */
const refused = (error: unknown): void => {
  if (!(error instanceof Error) || error.name !== 'Refusal') throw error;
};

const perform = async (directory: string, steps: readonly Step[]): Promise<{ room: Room; ran: Ran }> => {
  const page = openPage();
  const ran: Ran = new Map();
  let room = await open(directory);
  let asking: Promise<unknown>[] = [];
  const one = async (at: Step): Promise<void> => {
    const pending = room.pending();
    const card = 'which' in at ? pending[at.which % Math.max(pending.length, 1)] : undefined;
    switch (at.do) {
      case 'ask': {
        const request = requests[at.which]?.() ?? commandRequest();
        const asked = room.desk.ask(request).then((verdict) => {
          if (verdict.value === 'allow') ran.set(verdict.approvalId, canonical(request.effects));
        }, refused);
        asking.push(asked);
        break;
      }
      case 'decide':
        if (card === undefined) break;
        await Promise.all(
          Array.from({ length: at.times }, () =>
            room
              .decide(card, at.allow ? 'allow' : 'deny', page, { remember: at.remember })
              .then(() => undefined, refused),
          ),
        );
        break;
      case 'outcome': {
        const approvalId = [...ran.keys()][at.which];
        if (approvalId !== undefined)
          await room.desk.outcome(approvalId, at.ok ? 'ok' : 'failed', { startedAt: 1, endedAt: 2 });
        break;
      }
      case 'withdraw':
        if (card !== undefined) await room.desk.withdraw({ conversationId, approvalId: card.approvalId }, 'agent');
        break;
      case 'end':
        await room.desk.withdraw({ conversationId }, 'turn_ended');
        break;
      case 'expire':
        room.fireTimers();
        break;
      case 'rule': {
        const draft = rules[at.which];
        if (draft !== undefined) await room.rulebook.put(cli, { draft }).then(() => undefined, refused);
        break;
      }
      case 'forget': {
        const saved = room.rulebook.get().rules.filter(({ source }) => source !== 'preset')[at.which];
        if (saved !== undefined) await room.rulebook.forget(cli, { ruleId: saved.ruleId, change: 'remove' });
        break;
      }
      case 'preset':
        await room.rulebook.preset(cli, { preset: at.edits ? 'edits' : 'careful' });
        break;
      case 'restart':
        await room.close();
        await Promise.all(asking);
        asking = [];
        room = await open(directory);
    }
    // Whatever was asked is in the ledger before the next step looks.
    if (at.do !== 'restart') await room.ledger.commit(() => undefined);
  };
  for (const at of steps) await one(at);
  await one({ do: 'restart' });
  return { room, ran };
};

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const grouped = (rows: readonly ReceiptRow[]): Map<string, ReceiptRow[]> =>
  Map.groupBy(rows, (row) => row.approvalId ?? '');

it(
  'every executed action has exactly one allow receipt whose subject is its bytes, and exactly one outcome (R-11, R-21, R-22)',
  { timeout: 120_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
        const directory = temporary();
        const { room, ran } = await perform(directory.path, steps);
        try {
          const all = [...room.ledger.read.allReceipts()];
          const decisions = grouped(all.filter(({ kind }) => kind === 'decision'));
          const outcomes = grouped(all.filter(({ kind }) => kind === 'outcome'));
          for (const rows of [...decisions.values(), ...outcomes.values()]) expect(rows).toHaveLength(1);
          for (const [approvalId, effects] of ran) {
            const [row] = decisions.get(approvalId) ?? [];
            expect(row?.value).toBe('allow');
            const statement = z.parse(statementSchema, JSON.parse(Buffer.from(row!.payload).toString()));
            const bytes = room.ledger.read.action(row!.actionSha256 ?? '')!;
            expect([statement.subject[0]?.digest.sha256, room.ledger.read.approval(approvalId)?.digest]).toEqual([
              sha256(bytes),
              sha256(bytes),
            ]);
            expect(canonical((JSON.parse(Buffer.from(bytes).toString()) as { effects: unknown }).effects)).toBe(
              effects,
            );
          }
          // After a restart each allowed action has its end, if only that it is uncertain; and nothing else has one.
          const allowed = [...decisions]
            .filter(([, [row]]) => row?.value === 'allow')
            .map(([approvalId]) => approvalId);
          expect([...outcomes.keys()].sort()).toEqual(allowed.sort());
          expect(room.pending()).toEqual([]);
          expect(verifyAll(room.ledger.read, room.key.publicKeySpki, room.ledger.bridgeId).problems).toEqual([]);
        } finally {
          await room.close();
          directory.remove();
        }
      }),
      { numRuns: 12 },
    );
  },
);
