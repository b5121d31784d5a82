/**
 * Prompts on their way (case 2): each is shown until the stored row made by the same operation is in, then it is gone;
 * never both, never neither.
 */
import type { AnyEvent, BlobRef } from '#protocol/events.ts';
import type { Answer } from '#protocol/methods.ts';
import type { PromptPart } from '#protocol/methods/conversation.ts';
import type { Failure, Outcome, Sending } from './contract.ts';

export interface Shipment extends Sending {
  readonly content: readonly PromptPart[];
  readonly delivery: 'prompt' | 'queue';
}

type Sent = Answer<'conversation.send'>;
type Ship = (shipment: Shipment) => Promise<Outcome<Sent>>;

const textOf = (content: readonly PromptPart[]): string =>
  content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n');
const blobsOf = (content: readonly PromptPart[]): readonly BlobRef[] =>
  content.flatMap((part) => (part.type === 'blob' ? [part.blob] : []));

export class Outbox {
  items = $state.raw<readonly Shipment[]>([]);
  #ship: Ship;
  #newKey: () => string;
  /** Turn or queue ids of answers whose events are not in yet, by key. */
  #awaited = new Map<string, string>();
  /** Seen before the answer that names them. */
  #seen = new Set<string>();

  constructor(ship: Ship, newKey: () => string) {
    this.#ship = ship;
    this.#newKey = newKey;
  }

  async send(content: readonly PromptPart[], delivery: 'prompt' | 'queue'): Promise<Outcome<Sent>> {
    const shipment: Shipment = {
      key: this.#newKey(),
      text: textOf(content),
      attachments: blobsOf(content),
      state: 'sending',
      content,
      delivery,
    };
    this.items = [...this.items, shipment];
    return this.#go(shipment);
  }

  /** The same operation again where its fate is not known; a new one where it was refused. */
  async retry(key: string): Promise<void> {
    const shipment = this.items.find((one) => one.key === key);
    if (shipment === undefined || shipment.state === 'sending') return;
    const again: Shipment = {
      ...shipment,
      key: shipment.state === 'failed' ? this.#newKey() : key,
      state: 'sending',
      failure: undefined,
    };
    this.items = this.items.map((one) => (one.key === key ? again : one));
    await this.#go(again);
  }

  /** After a reconnect: asks by key what became of those that were under way. */
  resume(): void {
    for (const shipment of this.items) if (shipment.state === 'uncertain') void this.retry(shipment.key);
  }

  discard(key: string): void {
    this.#awaited.delete(key);
    this.items = this.items.filter((one) => one.key !== key);
  }

  /** A stored event: what it stores is no longer on its way. */
  note(event: AnyEvent): void {
    const { operationId } = event;
    const stores = event.type === 'message' || event.type === 'queue.added';
    if (!stores || (event.type === 'message' && event.data.role !== 'user')) return;
    const id = event.type === 'queue.added' ? event.data.queueId : event.turnId;
    if (typeof id === 'string') this.#seen.add(id);
    if (this.items.length === 0) return;
    const key = [...this.#awaited].find(([, awaited]) => awaited === id)?.[0] ?? operationId;
    if (key !== undefined) this.discard(key);
  }

  async #go(shipment: Shipment): Promise<Outcome<Sent>> {
    const outcome = await this.#ship(shipment);
    if (!outcome.ok) {
      this.#fail(shipment.key, outcome.failure);
      return outcome;
    }
    const id = outcome.value.turnId ?? outcome.value.queueId;
    if (id !== undefined && !this.#seen.has(id)) this.#awaited.set(shipment.key, id);
    else this.discard(shipment.key);
    return outcome;
  }

  #fail(key: string, failure: Failure): void {
    const unsure = failure.code === 'offline' || failure.code === 'uncertain';
    this.items = this.items.map((one) =>
      one.key === key ? { ...one, state: unsure ? 'uncertain' : 'failed', failure } : one,
    );
  }
}
