/** A clock moved by hand and a bridge in memory that speaks the protocol, for driving the client without a socket. */
import { closeCodes, errors, type ErrorCode } from '#protocol/errors.ts';
import type { AnyEvent } from '#protocol/events.ts';
import { request, type ActivityFrame, type Draft, type Request } from '#protocol/frames.ts';
import { wire } from '#protocol/wire.ts';
import { limits } from '#protocol/limits.ts';
import { isMethod, methods } from '#protocol/methods.ts';
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import { blockStarts } from '#protocol/outline.ts';
import { Pace } from '#protocol/pace.ts';
import type { Channel, Platform, Probe, Timer } from '#protocol/platform.ts';
import { z } from '#protocol/schema.ts';
import { conversationId, raw, startedAt, turnId } from './record.ts';

export class Clock {
  now = startedAt;
  #timers: { at: number; order: number; fn: () => void }[] = [];
  #order = 0;

  timer(ms: number, fn: () => void): Timer {
    const entry = { at: this.now + Math.max(1, ms), order: (this.#order += 1), fn };
    this.#timers.push(entry);
    return { cancel: () => void (this.#timers = this.#timers.filter((other) => other !== entry)) };
  }

  get waiting(): number {
    return this.#timers.length;
  }

  /** Lets `ms` pass, one timer after the other, promises settled in between. */
  async run(ms: number): Promise<void> {
    const end = this.now + ms;
    for (;;) {
      for (let index = 0; index < 12; index += 1) await Promise.resolve();
      const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((entry) => entry !== next);
      this.now = next.at;
      next.fn();
    }
    this.now = end;
  }
}

/** One end of a connection in memory: a frame takes a millisecond each way, order is kept, a drop loses what is under way. */
class Wire {
  readonly channel: Channel;
  readonly #clock: Clock;
  #isAlive = true;
  #isOpen = false;
  receive: (text: string) => void = () => undefined;

  constructor(clock: Clock, closed: () => void) {
    this.#clock = clock;
    this.channel = {
      onOpen: null,
      onMessage: null,
      onClose: null,
      send: (text) => {
        if (!this.#isOpen || !this.#isAlive) return; // as a WebSocket that is closing
        clock.timer(1, () => this.#isAlive && this.receive(text));
      },
      close: () => {
        this.#isAlive = false;
        closed();
      },
    };
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  open(): void {
    this.#clock.timer(1, () => {
      if (!this.#isAlive) return;
      this.#isOpen = true;
      this.channel.onOpen?.();
    });
  }

  send(text: string): void {
    this.#clock.timer(1, () => this.#isAlive && this.channel.onMessage?.(text));
  }

  drop(code = 1006): void {
    if (!this.#isAlive) return;
    this.#isAlive = false;
    this.#clock.timer(1, () => this.channel.onClose?.(code, ''));
  }
}

interface Attached {
  readonly wire: Wire;
  readonly pace: Pace;
  isReady: boolean;
  boundary: number | null;
  acked: boolean;
  tail: string[];
}

const uuid = (value: number): string => `00000009-0000-7000-8000-${value.toString(16).padStart(12, '0')}`;
export const bareSummary: ConversationSummary = {
  conversationId,
  workspaceId: uuid(1),
  workspacePath: '/work',
  title: 'Model',
  agentId: 'practice',
  agentTitle: 'Practice',
  createdAt: startedAt,
  updatedAt: startedAt,
  lastSeq: 0,
  archived: false,
  state: 'idle',
  live: false,
  lastStop: null,
  pendingApprovals: 0,
  queue: [],
  queuePaused: false,
  enforcement: null,
  enforcementWhy: null,
  containment: null,
  agentVersion: null,
  modes: [],
  modeId: null,
  models: [],
  modelId: null,
  options: [],
  commands: [],
  images: false,
  transcriptBytes: 0,
  transcriptFull: false,
  problem: null,
};

export class ModelBridge {
  readonly clock: Clock;
  readonly requests: (Request & { at: number })[] = [];
  readonly applied: string[] = [];
  log: AnyEvent[] = [];
  draft: Draft | null = null;
  lineage = 'lineage-1';
  wire = wire;
  /** `off` refuses every upgrade. */
  isOff = false;
  probeAnswer: Probe = 'offline';
  granted = [...new Set(Object.values(methods).map(({ capability }) => capability as string))];
  limits: Record<string, number> = {};
  /** Answers nothing at all any more, as a socket whose other end is gone. */
  isSilent = false;
  /** Asked before a request is answered: another answer, or null for the model's own. */
  override: (request: Request) => { result: Record<string, unknown> } | { code: ErrorCode } | null = () => null;
  pageEvents: number = limits.pageEvents;
  #attached: Attached | null = null;
  #operations = new Map<string, Record<string, unknown>>();
  rateLimited = 0;
  connections = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  platform(more: Partial<Platform> = {}): Platform {
    let counter = 0;
    return {
      now: () => this.clock.now,
      random: (bytes) => Uint8Array.from({ length: bytes }, () => (counter = (counter * 137 + 41) % 256)),
      timer: (ms, fn) => this.clock.timer(ms, fn),
      utf8: (text) => new TextEncoder().encode(text),
      sign: () => null,
      probe: () => Promise.resolve(this.probeAnswer),
      connect: () => this.#connect(),
      ...more,
    };
  }

  get isConnected(): boolean {
    return this.#attached?.isReady === true && this.#attached.wire.isAlive;
  }

  #connect(): Channel {
    const link = new Wire(this.clock, () => undefined);
    if (this.isOff) {
      link.drop();
      return link.channel;
    }
    this.connections += 1;
    const pace = new Pace(
      { perWindow: limits.inboundPerWindow, windowMs: limits.inboundWindowMs, burst: limits.inboundBurst },
      this.clock.now,
    );
    const attached: Attached = { wire: link, pace, isReady: false, boundary: null, acked: false, tail: [] };
    this.#attached = attached;
    link.receive = (text) => this.#receive(attached, text);
    link.open();
    this.clock.timer(1, () =>
      link.send(JSON.stringify({ kind: 'hello', wire: this.wire, bootId: uuid(2), nonce: 'nonce' })),
    );
    return link.channel;
  }

  drop(code?: number): void {
    this.#attached?.wire.drop(code);
  }

  /** Any frame, as it is. */
  send(frame: unknown): void {
    this.#attached?.wire.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  }

  eventFrame(event: AnyEvent): string {
    return JSON.stringify({ kind: 'event', sub: conversationId, seq: event.seq, cursor: undefined, event });
  }

  activity(frame: ActivityFrame, n = 1): void {
    this.send({ kind: 'activity', sub: conversationId, turnId: turnId(1), n, frame });
  }

  append(type: string, data: Record<string, unknown>, delivered: 'once' | 'twice' | 'never' = 'once'): AnyEvent {
    const event = raw(this.log.length + 1, type, data, 1);
    this.log.push(event);
    for (let times = { once: 1, twice: 2, never: 0 }[delivered]; times > 0; times -= 1)
      this.#deliver(this.eventFrame(event));
    return event;
  }

  /** Old events again, as a bridge does that has not seen the ack. */
  repeat(fromSeq: number): void {
    for (const event of this.log.slice(fromSeq - 1)) this.#deliver(this.eventFrame(event));
  }

  #deliver(text: string): void {
    const attached = this.#attached;
    if (attached?.boundary === null || attached?.boundary === undefined) return;
    if (attached.acked) attached.wire.send(text);
    else attached.tail.push(text);
  }

  #receive(attached: Attached, text: string): void {
    if (this.isSilent) return;
    const frame = z.parse(request, JSON.parse(text));
    this.requests.push({ ...frame, at: this.clock.now });
    const answer = (result: Record<string, unknown>): void =>
      attached.wire.send(JSON.stringify({ kind: 'result', id: frame.id, method: frame.method, result }));
    const refuse = (code: ErrorCode): void =>
      attached.wire.send(
        JSON.stringify({
          kind: 'error',
          id: frame.id,
          method: frame.method,
          error: { code, message: errors[code][0], retryable: errors[code][1] },
        }),
      );
    if (!isMethod(frame.method)) return refuse('bad_request');
    z.parse(methods[frame.method].params, frame.params);
    if (methods[frame.method].mutates !== (frame.key !== undefined)) return refuse('invalid_key');
    if (!attached.isReady && frame.method !== 'connection.initialize') return refuse('not_initialized');
    if (frame.method !== 'connection.ack' && attached.pace.take(this.clock.now) > 0) {
      this.rateLimited += 1;
      return refuse('rate_limited');
    }
    const other = this.override(frame);
    if (other !== null) return 'code' in other ? refuse(other.code) : answer(other.result);
    this.#answer(attached, frame, answer, refuse);
  }

  #answer(
    attached: Attached,
    { method, params, key }: Request,
    answer: (result: Record<string, unknown>) => void,
    refuse: (code: ErrorCode) => void,
  ): void {
    switch (method) {
      case 'connection.initialize':
        if (params['wire'] !== this.wire) return refuse('unsupported_version');
        attached.isReady = true;
        return answer({
          attachmentId: uuid(3),
          bridgeId: 'bridge',
          lineage: this.lineage,
          granted: this.granted,
          limits: this.limits,
          heartbeatMs: limits.pingIntervalMs,
          presenceTimeoutMs: limits.presenceTimeoutMs,
          now: this.clock.now,
        });
      case 'connection.ping':
        return answer({ now: this.clock.now });
      case 'connection.cancelRequest':
        return answer({});
      case 'conversation.subscribe':
        return this.#subscribe(attached, params, answer, refuse);
      case 'conversation.unsubscribe':
        if (attached.boundary === null) return refuse('unknown_subscription');
        attached.boundary = null;
        return answer({});
      case 'connection.ack':
        if (attached.boundary === null) return refuse('unknown_subscription');
        if (!attached.acked && Number(params['seq']) >= attached.boundary) {
          attached.acked = true;
          for (const text of attached.tail.splice(0)) attached.wire.send(text);
        }
        return answer({});
      case 'conversation.get':
        return answer(this.#summary());
      case 'conversation.rename': {
        const before = this.#operations.get(key as string);
        if (before !== undefined) return answer(before);
        this.applied.push(key as string);
        this.append('conversation.renamed', { title: String(params['title']), by: 'operator' });
        const result = { ...this.#summary(), title: String(params['title']) };
        this.#operations.set(key as string, result);
        return answer(result);
      }
      default:
        return refuse('unsupported_capability');
    }
  }

  #summary(): ConversationSummary {
    return { ...bareSummary, lastSeq: this.log.length };
  }

  #subscribe(
    attached: Attached,
    params: Record<string, unknown>,
    answer: (result: Record<string, unknown>) => void,
    refuse: (code: ErrorCode) => void,
  ): void {
    if (params['conversationId'] !== conversationId) return refuse('unknown_conversation');
    if (attached.boundary !== null) return refuse('bad_request'); // an attachment subscribes once
    const after = params['after'] as { lineage: string; seq: number } | undefined;
    if (after !== undefined && (after.lineage !== this.lineage || this.log.length - after.seq > this.pageEvents))
      return refuse('snapshot_required');
    attached.boundary = this.log.length;
    attached.acked = false;
    attached.tail = [];
    const events = after === undefined ? this.log.slice(-this.pageEvents) : this.log.slice(after.seq);
    answer({
      sub: conversationId,
      summary: this.#summary(),
      boundarySeq: this.log.length,
      resumed: after !== undefined,
      outline: blockStarts(this.log),
      events,
      draft: this.draft,
    });
  }
}

export const identity = { kind: 'app', version: '0.1.0', instanceId: uuid(4) } as const;
export { closeCodes, conversationId };
