/** Builds events for tests: ids and times follow from the sequence, so that what a test writes down is all that varies. */
import type { AnyEvent, EventData, EventType } from '#protocol/events.ts';

const number = (group: number, value: number): string =>
  `${group.toString(16).padStart(8, '0')}-0000-7000-8000-${value.toString(16).padStart(12, '0')}`;

export const startedAt = 1_790_000_000_000;
export const conversationId = number(1, 1);
export const turnId = (turn: number): string => number(2, turn);
export const approvalId = (index: number): string => number(3, index);
export const receiptId = (index: number): string => number(4, index);
export const queueId = (index: number): string => number(5, index);
export const key = (index: number): string => number(6, index);
export const digest = (index: number): string => index.toString(16).padStart(64, '0');

export type Step = { [T in EventType]: [type: T, data: EventData<T>, turn?: number] }[EventType];

export const raw = (seq: number, type: string, data: Record<string, unknown>, turn?: number): AnyEvent => ({
  id: number(0, seq),
  conversationId,
  seq,
  at: startedAt + seq * 100,
  ...(turn === undefined ? {} : { turnId: turnId(turn) }),
  type,
  data,
});

/** The steps as stored events from `firstSeq` on, all of `turn` where one is given. */
export const record = (firstSeq: number, turn: number | undefined, steps: readonly Step[]): AnyEvent[] =>
  steps.map(([type, data, own], index) => raw(firstSeq + index, type, data, own ?? turn));

export const requested = (index: number, toolCallId?: string): Step => [
  'approval.requested',
  {
    approvalId: approvalId(index),
    ...(toolCallId === undefined ? {} : { toolCallId }),
    kind: 'file.write',
    digest: digest(index),
    actionBytes: 310,
    facts: {
      headline: `Write src/file-${index}.ts`,
      paths: [{ path: `src/file-${index}.ts`, place: 'inside' }],
      diffs: [
        { path: `src/file-${index}.ts`, source: 'bridge', oldText: 'one\n', newText: 'two\n', added: 1, removed: 1 },
      ],
      risks: [],
      uninspectable: false,
      payloadBytes: 4,
    },
    words: { title: 'Fix the file' },
    options: [
      { id: 'allow', name: 'Allow', kind: 'allow_once', meaning: 'allow' },
      { id: 'deny', name: 'Deny', kind: 'reject_once', meaning: 'deny' },
    ],
    rule: null,
    enforcement: 'mediated',
    containment: 'bubblewrap',
    expiresAt: startedAt + 1_800_000,
  },
];
export const decided = (index: number, value: 'allow' | 'deny', note?: string): Step => [
  'approval.decided',
  {
    approvalId: approvalId(index),
    digest: digest(index),
    value,
    optionId: value,
    by: 'operator',
    ...(note === undefined ? {} : { note }),
    receiptId: receiptId(index),
  },
];
export const receipt = (index: number, seq: number, outcome?: 'ok' | 'failed' | 'cancelled' | 'uncertain'): Step => [
  'receipt',
  {
    receiptId: outcome === undefined ? receiptId(index) : receiptId(100 + index),
    receiptSeq: seq,
    kind: outcome === undefined ? 'decision' : 'outcome',
    approvalId: approvalId(index),
    ...(outcome === undefined ? {} : { outcome }),
  },
];
export const started: Step = ['turn.started', { messageId: 'u1', by: 'operator' }];
export const prompt = (text: string): Step => ['message', { messageId: 'u1', role: 'user', text }];
export const ended = (
  stopReason: EventData<'turn.ended'>['stopReason'] = 'end_turn',
  changedPaths: string[] = [],
): Step => ['turn.ended', { stopReason, durationMs: 1200, changedPaths }];
