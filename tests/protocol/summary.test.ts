import { describe, expect, test } from 'vitest';
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import { conversationSummary } from '#protocol/methods/conversation.ts';
import { z } from '#protocol/schema.ts';
import { applyEvent } from '#protocol/summary.ts';
import { bareSummary } from './model.ts';
import { decided, ended, prompt, queueId, raw, record, requested, started, startedAt, type Step } from './record.ts';

const after = (steps: readonly Step[], from: ConversationSummary = bareSummary): ConversationSummary =>
  record(from.lastSeq + 1, 1, steps).reduce(applyEvent, from);

describe('header state from events (D-46)', () => {
  test('every event moves lastSeq and the time on, and one already covered changes nothing', () => {
    const summary = after([started, prompt('Go')]);
    expect([summary.lastSeq, summary.updatedAt]).toEqual([2, startedAt + 200]);
    expect(applyEvent(summary, record(2, 1, [ended()])[0]!)).toBe(summary);
  });

  test('a turn works, waits for approvals, works again and ends', () => {
    const states: unknown[] = [];
    let summary = bareSummary;
    for (const step of [
      started,
      requested(1),
      requested(2),
      decided(1, 'allow'),
      decided(2, 'deny'),
      ended('cancelled'),
    ]) {
      summary = after([step], summary);
      states.push([summary.state, summary.pendingApprovals]);
    }
    expect(states).toEqual([
      ['working', 0],
      ['waiting', 1],
      ['waiting', 2],
      ['waiting', 1],
      ['working', 0],
      ['idle', 0],
    ]);
    expect(summary.lastStop).toBe('cancelled');
  });

  test('the agent brings its modes, models, options and enforcement, and takes its life away', () => {
    const ready: Step = [
      'agent.ready',
      {
        agentId: 'practice',
        name: 'Practice',
        version: '1.2.3',
        sessionId: 's',
        enforcement: 'mediated',
        enforcementWhy: 'Every effect passes through the bridge.',
        containment: 'bubblewrap',
        modes: [{ id: 'ask', name: 'Ask' }],
        modeId: 'ask',
        options: [],
        models: [{ id: 'm', name: 'M' }],
        images: true,
        embeddedContext: false,
      },
    ];
    const began = after([
      ['agent.started', { agentId: 'practice', containment: 'bubblewrap', argv: ['x'], envNames: [], how: 'new' }],
    ]);
    expect([began.state, began.live]).toEqual(['starting', true]);
    const summary = after(
      [
        ready,
        ['mode', { modeId: 'code', by: 'agent' }],
        ['model', { modelId: 'm', by: 'operator' }],
        ['commands', { commands: [{ name: 'test', description: 'Tests' }] }],
      ],
      began,
    );
    expect(summary).toMatchObject({
      state: 'idle',
      live: true,
      modeId: 'code',
      modelId: 'm',
      enforcement: 'mediated',
      agentVersion: '1.2.3',
      images: true,
      commands: [{ name: 'test' }],
    });
    expect(after([['agent.exited', { reason: 'crashed', sentence: 'It crashed.' }]], summary).live).toBe(false);
  });

  test('the queue gains, loses and pauses, each entry once', () => {
    const added: Step = ['queue.added', { queueId: queueId(1), text: 'x'.repeat(3000) }];
    const summary = after([
      added,
      added,
      ['queue.added', { queueId: queueId(2), text: 'two' }],
      ['queue.paused', { paused: true, why: 'stop' }],
    ]);
    expect(summary.queue.map(({ queueId: id, text }) => [id, text.length])).toEqual([
      [queueId(1), 2000],
      [queueId(2), 3],
    ]);
    expect(summary.queuePaused).toBe(true);
    expect(
      after([['queue.removed', { queueId: queueId(1), why: 'sent' }]], summary).queue.map(({ queueId: id }) => id),
    ).toEqual([queueId(2)]);
  });

  test('title, archive and a full transcript', () => {
    const summary = after([
      ['conversation.renamed', { title: 'Dates', by: 'agent' }],
      ['conversation.archived', { archived: true }],
      ['conversation.limit', { bytes: 70, capBytes: 64 }],
    ]);
    expect(summary).toMatchObject({ title: 'Dates', archived: true, transcriptFull: true, transcriptBytes: 70 });
    expect(z.safeParse(conversationSummary, summary).success).toBe(true);
  });

  test('an event it cannot read only moves it on', () => {
    expect(applyEvent(bareSummary, raw(1, 'conversation.renamed', { title: 7 }))).toEqual({
      ...bareSummary,
      lastSeq: 1,
      updatedAt: startedAt + 100,
    });
  });
});
