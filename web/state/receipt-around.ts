/** Where a receipt belongs: its neighbours, what it pairs with, and where in the conversation it was asked. For finding the way only. */
import type { ReceiptSummary } from '#protocol/methods/receipt.ts';
import { openEnvelope, statementSchema, type Statement } from '#protocol/receipts.ts';
import { z } from '#protocol/schema.ts';
import type { App } from './app.svelte.ts';

export interface Around {
  readonly previous: string | null;
  readonly next: string | null;
  /** A decision's outcome, or an outcome's decision. */
  readonly pair: string | null;
  /** Of the event that asked for the approval. */
  readonly seq: number | null;
}

/** The statement in an envelope, unchecked; null where there is none. */
export const statementIn = (envelope: string): Statement | null => {
  const opened = openEnvelope(envelope);
  if (opened === null) return null;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(opened.payload);
    const read = z.safeParse(statementSchema, JSON.parse(text));
    return read.success ? read.data : null;
  } catch {
    return null;
  }
};

const outcomeOf = async (app: App, { conversationId, approvalId, seq }: ReceiptSummary): Promise<string | null> => {
  for (let beforeSeq: number | undefined; conversationId !== null && approvalId !== null;) {
    const page = { conversationId, ...(beforeSeq === undefined ? {} : { beforeSeq }) };
    const answer = await app.call('receipt.list', page);
    if (!answer.ok) return null;
    const { receipts, more } = answer.value;
    const found = receipts.find((one) => one.kind === 'outcome' && one.approvalId === approvalId);
    if (found !== undefined) return found.receiptId;
    beforeSeq = receipts.at(-1)?.seq;
    if (!more || beforeSeq === undefined || beforeSeq <= seq) return null;
  }
  return null;
};

const pairOf = async (app: App, summary: ReceiptSummary, envelope: string): Promise<string | null> => {
  if (summary.kind === 'decision') return outcomeOf(app, summary);
  return statementIn(envelope)?.predicate.outcome?.decision.id ?? null;
};

/** With the bridge; whatever it does not answer is simply not offered. */
export const aroundLive = async (app: App, summary: ReceiptSummary, envelope: string): Promise<Around> => {
  const [before, after, pair, approval] = await Promise.all([
    app.call('receipt.list', { beforeSeq: summary.seq, limit: 1 }),
    app.call('receipt.page', { afterSeq: summary.seq, limit: 1 }),
    pairOf(app, summary, envelope),
    summary.approvalId === null || summary.conversationId === null
      ? null
      : app.call('approval.get', { approvalId: summary.approvalId }),
  ]);
  const following = after.ok ? after.value.receipts[0] : undefined;
  return {
    previous: before.ok ? (before.value.receipts[0]?.receiptId ?? null) : null,
    next: following === undefined ? null : (statementIn(following.envelope)?.predicate.receipt.id ?? null),
    pair,
    seq: approval?.ok === true ? approval.value.seq : null,
  };
};

/** Without it: among those kept here. */
export const aroundKept = (kept: readonly ReceiptSummary[], summary: ReceiptSummary): Around => {
  const at = kept.findIndex((one) => one.receiptId === summary.receiptId);
  const isPair = (one: ReceiptSummary): boolean =>
    summary.approvalId !== null &&
    one.approvalId === summary.approvalId &&
    one.receiptId !== summary.receiptId &&
    (one.kind === 'decision' || one.kind === 'outcome');
  return {
    previous: kept[at + 1]?.receiptId ?? null,
    next: at > 0 ? (kept[at - 1]?.receiptId ?? null) : null,
    pair: kept.find(isPair)?.receiptId ?? null,
    seq: null,
  };
};

export const around = async (app: App, summary: ReceiptSummary, envelope: string): Promise<Around> => {
  if (app.live) return aroundLive(app, summary, envelope);
  const kept = (await app.copy?.receipts.list()) ?? [];
  return aroundKept(
    kept.map((one) => one.proof.summary),
    summary,
  );
};
