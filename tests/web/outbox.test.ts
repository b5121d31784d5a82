import { describe, expect, it } from 'vitest';
import type { AnyEvent } from '#protocol/events.ts';
import type { Outcome } from '../../web/state/contract.ts';
import { Outbox, type Shipment } from '../../web/state/outbox.svelte.ts';

type Sent = { turnId?: string; queueId?: string; seq: number };
const stored = (turnId: string, operationId?: string): AnyEvent => ({
  id: '00000000-0000-7000-8000-000000000001',
  conversationId: 'c',
  seq: 2,
  at: 2,
  turnId,
  ...(operationId === undefined ? {} : { operationId }),
  type: 'message',
  data: { messageId: 'm', role: 'user', text: 'hello' },
});
const content = [{ type: 'text' as const, text: 'hello' }];

const ground = () => {
  const shipped: Shipment[] = [];
  const answers: ((outcome: Outcome<Sent>) => void)[] = [];
  let keys = 0;
  const outbox = new Outbox(
    (shipment) => {
      shipped.push(shipment);
      return new Promise((resolve) => answers.push(resolve));
    },
    () => `key-${++keys}`,
  );
  return { outbox, shipped, answers };
};
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

describe('prompts on their way (case 2)', () => {
  it('is replaced by the stored row that names its operation, never shown beside it', async () => {
    const { outbox, answers } = ground();
    void outbox.send(content, 'prompt');
    expect(outbox.items.map(({ text, state }) => [text, state])).toEqual([['hello', 'sending']]);
    outbox.note(stored('turn-1', 'key-1'));
    expect(outbox.items).toEqual([]);
    answers[0]?.({ ok: true, value: { turnId: 'turn-1', seq: 1 } });
    await settled();
    expect(outbox.items).toEqual([]);
  });

  it('stays until the stored row is in when the answer comes first', async () => {
    const { outbox, answers } = ground();
    void outbox.send(content, 'prompt');
    answers[0]?.({ ok: true, value: { turnId: 'turn-1', seq: 1 } });
    await settled();
    expect(outbox.items).toHaveLength(1);
    outbox.note(stored('turn-1'));
    expect(outbox.items).toEqual([]);
  });

  it('goes when the row came before the answer and only the turn names it', async () => {
    const { outbox, answers } = ground();
    void outbox.send(content, 'prompt');
    outbox.note(stored('turn-1'));
    answers[0]?.({ ok: true, value: { turnId: 'turn-1', seq: 1 } });
    await settled();
    expect(outbox.items).toEqual([]);
  });

  it('asks again by the same key after a lost connection (D-34)', async () => {
    const { outbox, answers, shipped } = ground();
    void outbox.send(content, 'prompt');
    answers[0]?.({ ok: false, failure: { code: 'uncertain', message: 'unknown' } });
    await settled();
    expect(outbox.items[0]?.state).toBe('uncertain');
    outbox.resume();
    expect(shipped.map(({ key }) => key)).toEqual(['key-1', 'key-1']);
  });

  it('takes a new key after a refusal, and keeps the words', async () => {
    const { outbox, answers, shipped } = ground();
    void outbox.send(content, 'prompt');
    answers[0]?.({ ok: false, failure: { code: 'turn_active', message: 'busy' } });
    await settled();
    expect(outbox.items[0]).toMatchObject({ state: 'failed', text: 'hello' });
    void outbox.retry('key-1');
    expect(shipped.map(({ key }) => key)).toEqual(['key-1', 'key-2']);
  });

  it('never resends a refused prompt by itself', async () => {
    const { outbox, answers, shipped } = ground();
    void outbox.send(content, 'prompt');
    answers[0]?.({ ok: false, failure: { code: 'queue_full', message: 'full' } });
    await settled();
    outbox.resume();
    expect(shipped).toHaveLength(1);
  });

  it('leaves agent messages alone', () => {
    const { outbox } = ground();
    void outbox.send(content, 'prompt');
    const agent = stored('turn-1', 'key-1');
    outbox.note({ ...agent, data: { ...agent.data, role: 'agent' } });
    expect(outbox.items).toHaveLength(1);
  });
});
