/**
 * What a conversation keeps beside its log: the header, its queue, and outcomes on their way. Each changes in the
 * transaction of the event that tells it.
 */
import type { Outcome } from '#protocol/events.ts';
import type { PromptPart } from '#protocol/methods/conversation.ts';
import type { Desk } from '../approvals/contract.ts';
import type { Tx } from '../ledger/contract.ts';
import { promptBlobs, promptText, type Header, type QueuedPrompt } from './header.ts';

export class HeaderState {
  readonly #conversationId: string;
  #current: Header;

  constructor(conversationId: string, header: Header) {
    this.#conversationId = conversationId;
    this.#current = header;
  }

  get current(): Header {
    return this.#current;
  }

  change(tx: Tx, change: Partial<Header>): void {
    this.#current = { ...this.#current, ...change };
    tx.updateConversation(this.#conversationId, { header: JSON.stringify(this.#current) });
  }
}

/** Prompts that wait for the turn before them (G-32). */
export class PromptQueue {
  readonly #conversationId: string;
  readonly #header: HeaderState;
  readonly #uuid: () => string;
  readonly #now: () => number;

  constructor(conversationId: string, header: HeaderState, parts: { uuid: () => string; now: () => number }) {
    this.#conversationId = conversationId;
    this.#header = header;
    this.#uuid = parts.uuid;
    this.#now = parts.now;
  }

  get waiting(): readonly QueuedPrompt[] {
    return this.#header.current.queue;
  }
  get paused(): boolean {
    return this.#header.current.queuePaused;
  }

  add(tx: Tx, content: readonly PromptPart[], place: 'first' | 'last'): { queueId: string; seq: number } {
    const queued: QueuedPrompt = { queueId: this.#uuid(), at: this.#now(), content };
    const attachments = promptBlobs(content);
    const event = tx.append(this.#conversationId, {
      type: 'queue.added',
      data: {
        queueId: queued.queueId,
        text: promptText(content),
        ...(attachments.length > 0 ? { attachments } : {}),
      },
    });
    this.#header.change(tx, { queue: place === 'first' ? [queued, ...this.waiting] : [...this.waiting, queued] });
    return { queueId: queued.queueId, seq: event?.seq ?? 0 };
  }

  remove(tx: Tx, queueId: string, why: 'operator' | 'sent' | 'cleared'): void {
    tx.append(this.#conversationId, { type: 'queue.removed', data: { queueId, why } });
    this.#header.change(tx, { queue: this.waiting.filter((each) => each.queueId !== queueId) });
  }

  pause(tx: Tx, why: 'restart' | 'failure' | 'stop'): void {
    if (this.waiting.length === 0 || this.paused) return;
    tx.append(this.#conversationId, { type: 'queue.paused', data: { paused: true, why } });
    this.#header.change(tx, { queuePaused: true });
  }

  resume(tx: Tx): void {
    if (!this.paused) return;
    tx.append(this.#conversationId, { type: 'queue.paused', data: { paused: false, why: 'operator' } });
    this.#header.change(tx, { queuePaused: false });
  }
}

/** Outcome receipts being signed: a turn ends only after those of its actions are durable. */
export class Outcomes {
  readonly #desk: Pick<Desk, 'outcome'>;
  readonly #log: (line: Record<string, unknown>) => void;
  readonly #open = new Set<Promise<void>>();

  constructor(desk: Pick<Desk, 'outcome'>, log: (line: Record<string, unknown>) => void) {
    this.#desk = desk;
    this.#log = log;
  }

  record(approvalId: string, outcome: Outcome, result: Parameters<Desk['outcome']>[2]): Promise<void> {
    const recorded = this.#desk.outcome(approvalId, outcome, result).catch((error: unknown) => {
      this.#log({ event: 'outcome_failed', approval: approvalId, error });
    });
    this.#open.add(recorded);
    return recorded.finally(() => void this.#open.delete(recorded));
  }

  /** Of what is still open, and of what opens meanwhile. */
  async settle(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open);
  }
}
