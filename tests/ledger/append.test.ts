import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Ledger, Tx } from '../../bridge/ledger/contract.ts';
import { message, openIn, putConversation, sink, temporaryDirectory } from './open.ts';

let directory: ReturnType<typeof temporaryDirectory>;
let ledger: Ledger;
beforeEach(async () => {
  directory = temporaryDirectory();
  ledger = openIn(directory.path);
  await ledger.commit((tx) => putConversation(tx, 'one'));
});
afterEach(async () => {
  await ledger.close();
  directory.remove();
});

describe('append (D-40, L-21)', () => {
  it('numbers events from 1 without a gap, each stream for itself', async () => {
    await ledger.commit((tx) => putConversation(tx, 'two'));
    await Promise.all(
      ['one', 'two', 'one', 'one', 'two'].map((stream) => ledger.commit((tx) => tx.append(stream, message('x')))),
    );
    expect(ledger.read.events('one', 0, 10).map((event) => event.seq)).toEqual([1, 2, 3]);
    expect(ledger.read.events('two', 0, 10).map((event) => event.seq)).toEqual([1, 2]);
    expect(ledger.read.conversation('one')).toMatchObject({ lastSeq: 3, full: false });
  });

  it('stores exactly what it returned', async () => {
    const turnId = randomUUID();
    const stored = await ledger.commit((tx) => tx.append('one', { ...message('ü "\u0000" \u2028'), turnId }));
    expect(ledger.read.events('one', 0, 1)).toEqual([stored]);
  });

  it('refuses a conversation that does not exist', async () => {
    await expect(ledger.commit((tx) => tx.append('none', message('x')))).rejects.toMatchObject({
      code: 'unknown_conversation',
    });
  });

  it('refuses an event that is not of its schema and names the field, not the value', async () => {
    const bad = { type: 'message', data: { messageId: 'm', role: 'secret-role', text: 'secret-text' } } as never;
    const error: unknown = await ledger.commit((tx) => tx.append('one', bad)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).message).toContain('role');
    expect((error as Error).message).not.toContain('secret');
    expect(ledger.read.conversation('one')?.lastSeq).toBe(0);
  });

  it('refuses UPDATE and DELETE of events and receipts, whoever asks', async () => {
    await ledger.commit((tx) => tx.append('one', message('x')));
    await ledger.commit((tx) => tx.putReceipt(receipt(1)));
    const db = new DatabaseSync(join(directory.path, 'ledger.db'));
    try {
      for (const statement of [
        "UPDATE event SET body = '{}'",
        'DELETE FROM event',
        "REPLACE INTO event SELECT place, id, stream, seq, at, type, block, bytes, '{}' FROM event",
      ]) {
        db.exec('PRAGMA recursive_triggers = ON');
        expect(() => db.exec(statement)).toThrow(/append-only|no gaps/);
      }
      expect(() => db.exec("UPDATE receipt SET sentence = ''")).toThrow('never changed');
      expect(() => db.exec('DELETE FROM receipt')).toThrow('never removed');
    } finally {
      db.close();
    }
    expect(ledger.read.events('one', 0, 1)).toHaveLength(1);
  });

  it('refuses a receipt that leaves a gap', async () => {
    await ledger.commit((tx) => tx.putReceipt(receipt(1)));
    await expect(ledger.commit((tx) => tx.putReceipt(receipt(3)))).rejects.toThrow('no gaps');
    await ledger.commit((tx) => tx.putReceipt(receipt(2)));
    expect([...ledger.read.allReceipts()].map((row) => row.seq)).toEqual([1, 2]);
  });
});

describe('group commit (L-21)', () => {
  it('rolls a throwing work back alone', async () => {
    const works = [1, 2, 3, 4, 5].map((number) =>
      ledger.commit((tx) => {
        tx.append('one', message(`work ${number}`));
        if (number === 3) throw new Refusal('queue_full');
        return number;
      }),
    );
    const settled = await Promise.allSettled(works);
    expect(settled.map((one) => one.status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    expect(ledger.read.events('one', 0, 9).map((event) => [event.seq, event.data['text']])).toEqual([
      [1, 'work 1'],
      [2, 'work 2'],
      [3, 'work 4'],
      [4, 'work 5'],
    ]);
  });

  it('runs works in the order they were asked and resolves them in that order, over many batches', async () => {
    const order: number[] = [];
    const numbers = Array.from({ length: limits.commitWorks * 3 + 7 }, (_, index) => index);
    await Promise.all(
      numbers.map((number) =>
        ledger.commit((tx) => tx.append('one', message(String(number)))).then(() => order.push(number)),
      ),
    );
    expect(order).toEqual(numbers);
    expect(ledger.read.events('one', 0, 1_000).map((event) => event.data['text'])).toEqual(numbers.map(String));
  });

  it('tells subscribers before the promise resolves, and nothing of a work that failed', async () => {
    const caught = sink();
    ledger.feed.subscribe('one', caught);
    ledger.feed.ack('one', caught.attachmentId, 0);
    const failed = ledger.commit((tx) => {
      tx.append('one', message('never'));
      throw new Error('no');
    });
    const done = ledger.commit((tx) => tx.append('one', message('yes'))).then(() => caught.seqs());
    await expect(failed).rejects.toThrow('no');
    expect(await done).toEqual([1]);
    expect(caught.raw.join()).not.toContain('never');
  });

  it('refuses a transaction used after its work, and a work that waits', async () => {
    let kept: Tx | null = null;
    await ledger.commit((tx) => void (kept = tx));
    expect(() => kept?.setMeta('a', 'b')).toThrow('only open inside its work');
    await expect(ledger.commit(() => Promise.resolve())).rejects.toThrow('must not wait');
  });
});

const receipt = (seq: number) => ({
  seq,
  receiptId: randomUUID(),
  kind: 'decision' as const,
  conversationId: 'one',
  approvalId: null,
  at: 5,
  payload: new Uint8Array([1]),
  signature: new Uint8Array([2]),
  keyId: 'k',
  actionSha256: null,
  value: 'allow' as const,
  outcome: null,
  by: 'operator',
  sentence: 'Allowed',
});
