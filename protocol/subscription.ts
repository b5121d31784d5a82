/**
 * One conversation as a client follows it (D-44, D-45): a snapshot, then every event once and in order, whatever the
 * connection does in between. Identical duplicates are ignored; a gap or a contradiction is mended by asking again,
 * never by guessing. Owned by client.ts, which tells it when there is a connection.
 */
import type { Reply } from './connection.ts';
import { addText, coverBy, release, streaming, type Streaming } from './draft.ts';
import { Refusal } from './errors.ts';
import type { AnyEvent } from './events.ts';
import type { ActivityFrame, Delivery, Draft } from './frames.ts';
import { limits } from './limits.ts';
import type { Answer, MethodName, Params } from './methods.ts';
import type { Platform, Timer } from './platform.ts';

type SubscribeAnswer = Answer<'conversation.subscribe'>;
export type Update =
  /** Replaces everything known of the conversation. */
  | ({ readonly type: 'snapshot' } & SubscribeAnswer)
  /** The next event: its seq is the last one's plus one. */
  | { readonly type: 'event'; readonly event: AnyEvent }
  /** Taken up where it was left: the events in between came before this; header state is as the bridge has it now. */
  | ({ readonly type: 'resumed' } & Pick<SubscribeAnswer, 'summary' | 'outline' | 'boundarySeq'>)
  /** Progress and terminal output; streaming text comes as `draft`. */
  | {
      readonly type: 'activity';
      readonly frame: Exclude<ActivityFrame, { type: 'text' }>;
      readonly turnId: string | undefined;
    }
  | { readonly type: 'draft'; readonly draft: Draft | null }
  /** The bridge will not give this conversation; nothing more comes. */
  | { readonly type: 'gone'; readonly refusal: Refusal };

export interface Cursor {
  readonly lineage: string;
  readonly seq: number;
}

/** What a subscription may do with the connection there is. */
export interface Link {
  /** Paced; `lost` when the connection ends first. */
  ask<M extends MethodName>(method: M, params: Params<M>, done: (reply: Reply) => void): void;
  /** At once, beside the pace. */
  send<M extends MethodName>(method: M, params: Params<M>, done: (reply: Reply) => void): void;
  lineage(): string | null;
  /** The first answer on this connection is in. */
  settled(subscription: Subscription): void;
  gone(subscription: Subscription): void;
}

/** Ascending without a gap, of this conversation, ending at the boundary; what follows `after` where one was asked for. */
const isWhole = (answer: SubscribeAnswer, conversationId: string, after: number | null): boolean => {
  const { events, boundarySeq } = answer;
  const first = events[0]?.seq ?? boundarySeq + 1;
  if (after !== null && first !== after + 1) return false;
  if (after === null && events.length === 0 && boundarySeq > 0) return false;
  return (
    boundarySeq === first + events.length - 1 &&
    events.every((event, index) => event.seq === first + index && event.conversationId === conversationId)
  );
};

export class Subscription {
  readonly conversationId: string;
  readonly #platform: Platform;
  readonly #link: Link;
  readonly #listener: (update: Update) => void;
  /** `asking` from the question to its answer: what still comes then belongs to an earlier subscription. */
  #phase: 'idle' | 'asking' | 'live' | 'closed' = 'idle';
  #turn = 0;
  #lineage: string | null;
  #lastSeq: number;
  #ackedSeq = 0;
  #ackTimer: Timer | null = null;
  #releaseTimer: Timer | null = null;
  #strikes = 0;
  #recent = new Map<number, AnyEvent>();
  #streaming: Streaming = streaming(null);

  constructor(
    platform: Platform,
    link: Link,
    conversationId: string,
    after: Cursor | undefined,
    listener: (update: Update) => void,
  ) {
    this.#platform = platform;
    this.#link = link;
    this.conversationId = conversationId;
    this.#listener = listener;
    this.#lineage = after?.lineage ?? null;
    this.#lastSeq = after?.seq ?? 0;
  }

  /** Null before the first snapshot when no place to go on from was given. */
  get cursor(): Cursor | null {
    return this.#lineage === null ? null : { lineage: this.#lineage, seq: this.#lastSeq };
  }

  get draft(): Draft | null {
    return this.#streaming.draft;
  }

  /** There is a new connection. */
  start(): void {
    if (this.#phase !== 'idle') return;
    this.#phase = 'asking';
    const turn = (this.#turn += 1);
    const lineage = this.#link.lineage();
    const after =
      lineage !== null && lineage === this.#lineage && this.#lastSeq > 0 ? { lineage, seq: this.#lastSeq } : undefined;
    const params = { conversationId: this.conversationId, ...(after === undefined ? {} : { after }) };
    this.#link.ask('conversation.subscribe', params, (reply) => {
      if (turn === this.#turn && this.#phase === 'asking') this.#answered(reply, after?.seq ?? null, lineage);
    });
  }

  /** The connection ended. What is shown stays until the next answer. */
  stop(): void {
    if (this.#phase !== 'closed') this.#phase = 'idle';
    this.#ackTimer?.cancel();
    this.#ackTimer = null;
  }

  close(): void {
    this.stop();
    this.#phase = 'closed';
    this.#releaseTimer?.cancel();
  }

  receive(frame: Extract<Delivery, { kind: 'event' | 'activity' }>): void {
    if (this.#phase !== 'live') return;
    if (frame.kind === 'event') this.#event(frame.event, frame.seq);
    else if (frame.frame.type === 'text') this.#stream(addText(this.#streaming, frame.frame, frame.turnId));
    else this.#listener({ type: 'activity', frame: frame.frame, turnId: frame.turnId });
  }

  #answered(reply: Reply, after: number | null, lineage: string | null): void {
    if (reply.kind === 'lost') {
      this.#phase = 'idle';
      return;
    }
    if (reply.kind === 'refused') {
      if (reply.refusal.code === 'snapshot_required' && after !== null) return this.#restart();
      this.#link.settled(this);
      return this.#end(reply.refusal);
    }
    const answer = reply.result as SubscribeAnswer;
    const resumed = answer.resumed && after !== null;
    if (answer.sub !== this.conversationId || !isWhole(answer, this.conversationId, resumed ? after : null))
      return this.#contradiction();
    this.#phase = 'live';
    this.#lineage = lineage;
    this.#ackedSeq = 0;
    if (!resumed) {
      this.#recent = new Map(answer.events.map((event) => [event.seq, event]));
      this.#lastSeq = answer.boundarySeq;
    }
    this.#ack(answer.boundarySeq); // releases the live tail, so first of all
    if (resumed) this.#resumed(answer);
    else this.#listener({ type: 'snapshot', ...answer });
    this.#stream(streaming(answer.draft));
    this.#link.settled(this);
  }

  #resumed({ events, summary, outline, boundarySeq }: SubscribeAnswer): void {
    for (const event of events) {
      if (this.#phase === 'live') this.#accept(event); // a listener may have closed it
    }
    if (this.#phase === 'live') this.#listener({ type: 'resumed', summary, outline, boundarySeq });
  }

  #accept(event: AnyEvent): void {
    this.#lastSeq = event.seq;
    this.#recent.set(event.seq, event);
    const oldest = event.seq - limits.pageEvents;
    this.#recent.delete(oldest);
    this.#strikes = 0;
    this.#listener({ type: 'event', event });
  }

  #event(event: AnyEvent, seq: number): void {
    if (event.seq !== seq || event.conversationId !== this.conversationId) return this.#contradiction();
    if (seq > this.#lastSeq + 1) return this.#again();
    if (seq <= this.#lastSeq) {
      const former = this.#recent.get(seq);
      if (former !== undefined && JSON.stringify(former) !== JSON.stringify(event)) this.#contradiction();
      return;
    }
    this.#accept(event);
    this.#stream(coverBy(this.#streaming, event));
    this.#ackTimer ??= this.#platform.timer(limits.ackIntervalMs, () => {
      this.#ackTimer = null;
      this.#ack(this.#lastSeq);
    });
  }

  #stream(next: Streaming): void {
    const { draft } = this.#streaming;
    this.#streaming = next;
    if (next.next === null) {
      this.#releaseTimer?.cancel();
      this.#releaseTimer = null;
    } else {
      this.#releaseTimer ??= this.#platform.timer(limits.draftMs, () => {
        this.#releaseTimer = null;
        this.#stream(release(this.#streaming));
      });
    }
    if (next.draft !== draft && this.#phase !== 'closed') this.#listener({ type: 'draft', draft: next.draft });
  }

  #ack(seq: number): void {
    if (this.#phase !== 'live' || (seq <= this.#ackedSeq && seq > 0)) return;
    this.#ackedSeq = seq;
    const turn = this.#turn;
    this.#link.send('connection.ack', { sub: this.conversationId, seq }, (reply) => {
      if (turn === this.#turn && reply.kind === 'refused' && reply.refusal.code === 'unknown_subscription')
        this.#again();
    });
  }

  /** What came contradicts what came before: nothing of it can be trusted, so everything is loaded anew. */
  #contradiction(): void {
    this.#strikes += 1;
    if (this.#strikes > limits.integrityStrikes) {
      this.#link.settled(this);
      return this.#end(new Refusal('integrity_error'));
    }
    this.#restart();
  }

  /** Without a place to go on from: the answer is a snapshot. */
  #restart(): void {
    this.#lineage = null;
    this.#lastSeq = 0;
    this.#recent.clear();
    this.#again();
  }

  /** Leaves and asks again on the same connection; one after the other, since an attachment subscribes once. */
  #again(): void {
    if (this.#phase === 'closed' || this.#phase === 'idle') return;
    this.stop();
    this.#phase = 'asking';
    const turn = (this.#turn += 1);
    this.#link.ask('conversation.unsubscribe', { conversationId: this.conversationId }, () => {
      if (turn !== this.#turn || this.#phase !== 'asking') return;
      this.#phase = 'idle';
      this.start();
    });
  }

  #end(refusal: Refusal): void {
    this.close();
    this.#link.gone(this);
    this.#listener({ type: 'gone', refusal });
  }
}
