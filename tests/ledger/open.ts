/** What every test of this room needs: a real ledger in a directory of its own, a conversation in it, a sink that keeps frames. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { delivery, type Delivery } from '#protocol/frames.ts';
import { DatabaseSync } from 'node:sqlite';
import { z } from '#protocol/schema.ts';
import type { EventDraft } from '#protocol/events.ts';
import type { Ledger, Sink, Tx } from '../../bridge/ledger/contract.ts';
import { openLedger, type LedgerOptions } from '../../bridge/ledger/ledger.ts';

export const temporaryDirectory = (): { path: string; remove(): void } => {
  const path = mkdtempSync(join(tmpdir(), 'countersign-ledger-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
};

export const optionsIn = (directory: string): LedgerOptions => {
  mkdirSync(join(directory, 'blobs'), { recursive: true, mode: 0o700 });
  return { directory, blobs: join(directory, 'blobs') };
};
export const openIn = (directory: string, more: Partial<LedgerOptions> = {}): Ledger =>
  openLedger({ ...optionsIn(directory), ...more });

export const putConversation = (tx: Tx, conversationId: string, createdAt = 1_000): void => {
  tx.putConversation({
    conversationId,
    workspaceId: randomUUID(),
    workspacePath: '/w',
    title: `Title of ${conversationId}`,
    agentId: 'practice',
    agentTitle: 'Practice',
    createdAt,
    archived: false,
    sessionId: null,
    lastStop: null,
    header: '{}',
  });
};

export const message = (text: string, messageId = randomUUID()): EventDraft => ({
  type: 'message',
  data: { messageId, role: 'agent', text },
});

export interface Caught extends Sink {
  readonly raw: string[];
  /** Every delivery, checked by its schema; the end of a subscription is kept in `raw` only. */
  deliveries(): Delivery[];
  seqs(): number[];
}
export const sink = (attachmentId: string = randomUUID()): Caught => {
  const raw: string[] = [];
  const deliveries = (): Delivery[] =>
    raw
      .map((text) => JSON.parse(text) as { kind: string })
      .filter((value) => value.kind !== 'error')
      .map((value) => z.parse(delivery, value));
  return {
    attachmentId,
    raw,
    deliver: (encoded, bytes) => {
      if (Buffer.byteLength(encoded) !== bytes) throw new Error('wrong size');
      raw.push(encoded);
    },
    deliveries,
    seqs: () => deliveries().flatMap((one) => (one.kind === 'event' ? one.seq : [])),
  };
};

/** Waits until the words and events of deleted conversations are cleared away. */
export const swept = async (directory: string): Promise<void> => {
  const db = new DatabaseSync(join(directory, 'ledger.db'), { readOnly: true });
  const left = db.prepare(
    "SELECT (SELECT count(*) FROM deletion) + (SELECT count(*) FROM meta WHERE name = 'ledger.merging') AS left",
  );
  while (left.get()?.['left'] !== 0) await new Promise((resolve) => setTimeout(resolve, 10));
  db.close();
};
