/**
 * The one way out: events after their commit, live text and progress without waiting for one. A frame is encoded once
 * and handed to every subscriber; nothing here waits, stores or drops an event. Called by ledger.ts (publish) and, as
 * `Feed`, by the rooms and the gate.
 */
import type { AnyEvent } from '#protocol/events.ts';
import { errors, Refusal, type ErrorCode } from '#protocol/errors.ts';
import type { ActivityFrame, Delivery, Draft, Failure } from '#protocol/frames.ts';
import { limits } from '#protocol/limits.ts';
import type { Feed, Sink, Subscription } from './contract.ts';
import { draftFrame, type Drafts, type Piece } from './drafts.ts';
import { pageAfter, pageBefore, pageBounds } from './pages.ts';
import type { Statements } from './statements.ts';

interface Frame {
  readonly encoded: string;
  readonly bytes: number;
}
interface Subscriber {
  readonly sink: Sink;
  readonly boundarySeq: number;
  /** What came since the boundary; null once the client has acknowledged that and is live. */
  tail: Frame[] | null;
  tailBytes: number;
}
interface Channel {
  readonly subscribers: Map<string, Subscriber>;
  /** Activity frames so far. */
  n: number;
  /** UTF-16 units of the current draft that went out. */
  sentUnits: number;
  sentAt: number;
  timer: NodeJS.Timeout | null;
}

const frame = (value: Delivery | Failure): Frame => encoded(JSON.stringify(value));
const encoded = (text: string): Frame => ({ encoded: text, bytes: Buffer.byteLength(text) });
const firstPage = { bytes: limits.firstPageBytes, events: limits.firstPageEvents };

export class LedgerFeed implements Feed {
  readonly #sql: Statements;
  readonly #lineage: string;
  readonly #drafts: Drafts;
  readonly #settle: () => void;
  readonly #isReadOnly: () => boolean;
  readonly #sinks = new Map<string, Sink>();
  readonly #ends = new Map<string, readonly (() => void)[]>();
  readonly #channels = new Map<string, Channel>();
  readonly #generations = new Map<string, number>();

  /** `settle` runs the works queued so far, so that a draft whose end is already queued is really ended. */
  constructor(parts: {
    sql: Statements;
    lineage: string;
    drafts: Drafts;
    settle: () => void;
    isReadOnly: () => boolean;
  }) {
    this.#sql = parts.sql;
    this.#lineage = parts.lineage;
    this.#drafts = parts.drafts;
    this.#settle = parts.settle;
    this.#isReadOnly = parts.isReadOnly;
  }

  attach(sink: Sink): void {
    this.#sinks.set(sink.attachmentId, sink);
  }

  detach(attachmentId: string): void {
    this.#sinks.delete(attachmentId);
    const ends = this.#ends.get(attachmentId) ?? [];
    this.#ends.delete(attachmentId);
    for (const run of ends) run();
    for (const channel of this.#channels.values()) channel.subscribers.delete(attachmentId);
  }

  whenDetached(attachmentId: string, run: () => void): void {
    if (!this.#sinks.has(attachmentId)) return run();
    this.#ends.set(attachmentId, [...(this.#ends.get(attachmentId) ?? []), run]);
  }

  subscribe(conversationId: string, sink: Sink, after?: { lineage: string; seq: number }): Subscription {
    const stream = this.#sql.get<{ lastSeq: number }>('SELECT lastSeq FROM stream WHERE stream = ?', conversationId);
    if (stream === null) throw new Refusal('unknown_conversation');
    const boundarySeq = stream.lastSeq;
    // One synchronous step from here to the end: no commit can come between the page and the tail.
    const events = this.#firstEvents(conversationId, boundarySeq, after);
    const channel = this.#channel(conversationId);
    // What waits for its window goes to the others now, so that the draft given here and the next frame meet exactly.
    this.#sendText(conversationId, channel);
    channel.subscribers.set(sink.attachmentId, { sink, boundarySeq, tail: [], tailBytes: 0 });
    return {
      boundarySeq,
      resumed: after !== undefined,
      outline: this.#outline(conversationId),
      events,
      draft: this.draft(conversationId),
    };
  }

  ack(conversationId: string, attachmentId: string, seq: number): boolean {
    const subscriber = this.#channels.get(conversationId)?.subscribers.get(attachmentId);
    if (subscriber === undefined) return false;
    if (subscriber.tail === null || seq < subscriber.boundarySeq) return true;
    const tail = subscriber.tail;
    subscriber.tail = null;
    for (const one of tail) subscriber.sink.deliver(one.encoded, one.bytes);
    return true;
  }

  unsubscribe(conversationId: string, attachmentId: string): boolean {
    return this.#channels.get(conversationId)?.subscribers.delete(attachmentId) ?? false;
  }

  subscribed(attachmentId: string): string[] {
    return [...this.#channels]
      .filter(([, channel]) => channel.subscribers.has(attachmentId))
      .map(([conversationId]) => conversationId);
  }

  activity(conversationId: string, turnId: string | null, activity: Exclude<ActivityFrame, { type: 'text' }>): void {
    this.#send(conversationId, this.#channel(conversationId), turnId, activity);
  }

  text(conversationId: string, piece: Piece): void {
    if (!this.#drafts.grow(conversationId, piece)) {
      this.#settle();
      // Nothing can be stored any more; what the agent still says is shown, one message at a time.
      if (this.#isReadOnly()) this.#forget(conversationId);
      if (!this.#drafts.grow(conversationId, piece))
        throw new Error('a streaming message must be ended before another begins');
    }
    const channel = this.#channel(conversationId);
    if (channel.timer !== null) return;
    const waitMs = Math.min(limits.liveTextMs, channel.sentAt + limits.liveTextMs - performance.now());
    if (waitMs <= 0) return this.#sendText(conversationId, channel);
    channel.timer = setTimeout(() => this.#sendText(conversationId, channel), waitMs);
  }

  draft(conversationId: string): Draft | null {
    const piece = this.#drafts.get(conversationId);
    return piece === null ? null : draftFrame(piece);
  }

  invalidate(topic: Extract<Delivery, { kind: 'invalidate' }>['topic'], attachmentId?: string): void {
    const generation = (this.#generations.get(topic) ?? 0) + 1;
    this.#generations.set(topic, generation);
    const delivery: Delivery = { kind: 'invalidate', topic, generation };
    if (attachmentId === undefined) return this.broadcast(delivery);
    const one = frame(delivery);
    this.#sinks.get(attachmentId)?.deliver(one.encoded, one.bytes);
  }

  broadcast(delivery: Delivery): void {
    const one = frame(delivery);
    for (const sink of this.#sinks.values()) sink.deliver(one.encoded, one.bytes);
  }

  /** A committed event; `body` is its stored JSON text. */
  publish(conversationId: string, seq: number, body: string): void {
    const channel = this.#channels.get(conversationId);
    if (channel === undefined || channel.subscribers.size === 0) return;
    const sub = JSON.stringify(conversationId);
    this.#deliver(conversationId, channel, encoded(`{"kind":"event","sub":${sub},"seq":${seq},"event":${body}}`));
  }

  #forget(conversationId: string): void {
    this.#drafts.drop(conversationId);
    this.draftEnded(conversationId);
  }

  /** The draft became an event, which covers what was not sent yet. */
  draftEnded(conversationId: string): void {
    const channel = this.#channels.get(conversationId);
    if (channel === undefined) return;
    this.#stopTimer(channel);
    channel.sentUnits = 0;
  }

  /** The conversation is gone. */
  drop(conversationId: string): void {
    const channel = this.#channels.get(conversationId);
    if (channel === undefined) return;
    this.#stopTimer(channel);
    this.#channels.delete(conversationId);
  }

  close(): void {
    for (const channel of this.#channels.values()) this.#stopTimer(channel);
    this.#channels.clear();
    this.#sinks.clear();
  }

  #firstEvents(
    conversationId: string,
    boundarySeq: number,
    after: { lineage: string; seq: number } | undefined,
  ): AnyEvent[] {
    if (after === undefined) return parse(pageBefore(this.#sql, conversationId, boundarySeq + 1, firstPage).bodies);
    if (after.lineage !== this.#lineage || after.seq > boundarySeq) throw new Refusal('snapshot_required');
    const page = pageAfter(this.#sql, conversationId, after.seq, boundarySeq, pageBounds);
    if (!page.whole) throw new Refusal('snapshot_required');
    return parse(page.bodies);
  }

  #outline(conversationId: string): number[] {
    const newest = this.#sql
      .all<{ seq: number }>(
        'SELECT seq FROM event WHERE stream = ? AND block = 1 ORDER BY seq DESC LIMIT ?',
        conversationId,
        limits.outlineBlocks,
      )
      .map((row) => row.seq)
      .reverse();
    // The first block is then everything before the second that is listed.
    if (newest.length === limits.outlineBlocks) newest[0] = 1;
    return newest;
  }

  #channel(conversationId: string): Channel {
    const known = this.#channels.get(conversationId);
    if (known !== undefined) return known;
    const made: Channel = { subscribers: new Map(), n: 0, sentUnits: 0, sentAt: -Infinity, timer: null };
    this.#channels.set(conversationId, made);
    return made;
  }

  #sendText(conversationId: string, channel: Channel): void {
    this.#stopTimer(channel);
    const draft = this.#drafts.get(conversationId);
    if (draft === null || draft.text.length <= channel.sentUnits) return;
    const { messageId, role, part } = draft;
    const offset = channel.sentUnits;
    channel.sentUnits = draft.text.length;
    channel.sentAt = performance.now();
    this.#send(conversationId, channel, draft.turnId, {
      type: 'text',
      messageId,
      role,
      part,
      offset,
      text: draft.text.slice(offset),
    });
  }

  #send(conversationId: string, channel: Channel, turnId: string | null, activity: ActivityFrame): void {
    channel.n += 1;
    if (channel.subscribers.size === 0) return;
    const turn = turnId === null ? {} : { turnId };
    this.#deliver(
      conversationId,
      channel,
      frame({ kind: 'activity', sub: conversationId, ...turn, n: channel.n, frame: activity }),
    );
  }

  #deliver(conversationId: string, channel: Channel, one: Frame): void {
    for (const [attachmentId, subscriber] of channel.subscribers) {
      if (subscriber.tail === null) {
        subscriber.sink.deliver(one.encoded, one.bytes);
        continue;
      }
      subscriber.tail.push(one);
      subscriber.tailBytes += one.bytes;
      if (subscriber.tailBytes <= limits.tailBytes && subscriber.tail.length <= limits.tailFrames) continue;
      // It never acknowledged its first page: it must subscribe anew rather than miss an event.
      channel.subscribers.delete(attachmentId);
      const told = ended('snapshot_required', conversationId);
      subscriber.sink.deliver(told.encoded, told.bytes);
    }
  }

  #stopTimer(channel: Channel): void {
    if (channel.timer !== null) clearTimeout(channel.timer);
    channel.timer = null;
  }
}

const parse = (bodies: readonly string[]): AnyEvent[] => bodies.map((body) => JSON.parse(body) as AnyEvent);

/** A subscription that the bridge ended; no request can be named. */
const ended = (code: ErrorCode, conversationId: string): Frame => {
  const [message, retryable] = errors[code];
  return frame({
    kind: 'error',
    id: -1,
    method: 'conversation.subscribe',
    error: { code, message, retryable, details: { conversationId } },
  });
};
