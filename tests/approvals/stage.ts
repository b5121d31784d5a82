/** A record made by hand (history.ts) put into a real ledger, as a bridge would leave it, and exported from there. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { checkpointText, noteOf, rootOf } from '#protocol/log.ts';
import { receiptOrigin } from '#protocol/receipts.ts';
import { inSync } from '#protocol/steps.ts';
import { appendToLog } from '../../bridge/approvals/checkpoints.ts';
import { exportReceipts, type Signing } from '../../bridge/approvals/export.ts';
import type { ReceiptKey } from '../../bridge/approvals/keys.ts';
import { nodePlatform } from '../../bridge/approvals/reader.ts';
import { openLedger } from '../../bridge/ledger/ledger.ts';
import { bridgeId, conversationId, installationKey, signed, signedBy, type Draft } from './history.ts';

export interface Stage {
  /** Holds ledger.db. */
  readonly directory: string;
  /** The conversation's receipts, exported. */
  readonly folder: string;
  readonly origin: string;
  readonly checkpoint: Signing['checkpoint'];
}

export const signCheckpoint = (origin: string, size: number, root: Uint8Array, key: ReceiptKey): string => {
  const text = checkpointText(origin, size, root);
  const signature = signedBy(key.privateKey, Buffer.from(text));
  return inSync(noteOf(nodePlatform, text, origin, signature, key.publicKeySpki));
};

export const stage = async (
  directory: string,
  drafts: readonly Draft[],
  { key = installationKey, id = bridgeId }: { readonly key?: ReceiptKey; readonly id?: string } = {},
): Promise<Stage> => {
  mkdirSync(join(directory, 'blobs'), { recursive: true, mode: 0o700 });
  const ledger = openLedger({ directory, blobs: join(directory, 'blobs') });
  const origin = receiptOrigin(id);
  const rows = signed(drafts, { key, bridgeId: id });
  const checkpoint = await ledger.commit((tx) => {
    tx.setMeta('ledger.bridgeId', id);
    const conversation = { conversationId, workspaceId: 'w', workspacePath: '/home/u/project', title: 'Release' };
    const more = { agentId: 'practice', agentTitle: 'Practice agent', createdAt: 1, header: '{}' };
    tx.putConversation({ ...conversation, ...more, archived: false, sessionId: null, lastStop: null });
    rows.forEach((row, index) => {
      const draft = drafts[index];
      if (draft !== undefined) tx.putAction(row.actionSha256 ?? '', draft.action, row.conversationId);
      tx.putReceipt(row);
      appendToLog(tx, row, (draft?.key ?? key).publicKeySpki);
      const session = row.kind === 'session' ? (draft?.body([]).session?.id ?? null) : null;
      if (session !== null) tx.setMeta(`receipts.session.${session}`, row.receiptId);
    });
    const root = inSync(rootOf(nodePlatform, rows.length, tx.logNode));
    const note = signCheckpoint(origin, rows.length, root, key);
    const made = { size: rows.length, root, note, at: rows.at(-1)?.at ?? 0, place: 'here' };
    tx.putCheckpoint(made);
    return made;
  });
  const folder = join(directory, 'receipts');
  exportReceipts(ledger.read, conversationId, folder, { key, checkpoint });
  await ledger.close();
  return { directory, folder, origin, checkpoint };
};
