/**
 * Requests on their way (D-11, D-34): they wait for a connection, for the pace the bridge allows and for a free place,
 * and each is settled exactly once. A read lost with its connection is asked again; a change never is, because only
 * its sender can know whether that is wanted: it is settled `uncertain` with its key.
 */
import type { Connection, Reply, Session } from './connection.ts';
import { Refusal } from './errors.ts';
import { limits } from './limits.ts';
import { methods, type MethodName } from './methods.ts';
import { Pace } from './pace.ts';
import type { Platform, Timer } from './platform.ts';
import { explain, z } from './schema.ts';

export interface Asked {
  readonly method: MethodName;
  readonly params: Readonly<Record<string, unknown>>;
  readonly key?: string | undefined;
  /** What a lost connection means: ask again, say uncertain, or tell the owner, who starts over by itself. */
  readonly whenLost: 'again' | 'uncertain' | 'tell';
  readonly settle: (reply: Reply) => void;
}

interface Entry extends Asked {
  state: 'waiting' | 'sent' | 'settled';
  id: number;
  patience: Timer | null;
}

const paceOf = (session: Session, now: number): Pace => {
  const bound = (name: 'inboundPerWindow' | 'inboundWindowMs' | 'inboundBurst'): number =>
    session.limits[name] ?? limits[name];
  return new Pace(
    {
      perWindow: bound('inboundPerWindow'),
      windowMs: bound('inboundWindowMs'),
      burst: Math.min(bound('inboundBurst'), limits.clientBurst),
    },
    now,
  );
};

export class Outbox {
  readonly #platform: Platform;
  #waiting: Entry[] = [];
  #connection: Connection | null = null;
  #session: Session | null = null;
  #pace: Pace | null = null;
  #alarm: Timer | null = null;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** A connection is ready: what waits is sent in order. */
  attach(connection: Connection, session: Session): void {
    this.#connection = connection;
    this.#session = session;
    this.#pace = paceOf(session, this.#platform.now());
    this.#pump();
  }

  /** The connection ended. What was sent is answered `lost` by the connection itself right after. */
  detach(): void {
    this.#connection = null;
    this.#alarm?.cancel();
    this.#alarm = null;
    for (const entry of this.#waiting.filter(({ whenLost }) => whenLost === 'tell'))
      this.#settle(entry, { kind: 'lost' });
  }

  /** Nothing will be sent in the foreseeable future: all that waits is refused. */
  refuseWaiting(refusal: Refusal): void {
    for (const entry of [...this.#waiting]) this.#settle(entry, { kind: 'refused', refusal });
  }

  /**
   * Queues a request; `settle` may be called at once when it is refused here. Returns how to give it up: a read is
   * settled `cancelled`, a change only while it is unsent.
   */
  ask(asked: Asked): () => void {
    const entry: Entry = { ...asked, state: 'waiting', id: 0, patience: null };
    const refusal = this.#objection(asked);
    if (refusal !== null) {
      this.#settle(entry, { kind: 'refused', refusal });
      return () => undefined;
    }
    if (asked.whenLost !== 'tell')
      entry.patience = this.#platform.timer(limits.requestTimeoutMs, () => this.#timedOut(entry));
    this.#waiting.push(entry);
    this.#pump();
    return () => {
      if (entry.state === 'sent' && entry.whenLost === 'uncertain') return;
      this.#giveUp(entry, new Refusal('cancelled'));
    };
  }

  #objection({ method, params }: Asked): Refusal | null {
    const parsed = z.safeParse(methods[method].params, params);
    if (!parsed.success) return new Refusal('bad_request', { details: { field: explain(parsed.error) } });
    const text = JSON.stringify(params);
    // Three bytes are the most a UTF-16 unit takes: only long texts need to be measured. Half is room for the envelope.
    const isLarge = text.length * 3 > limits.pageBytes && this.#platform.utf8(text).length > limits.pageBytes;
    return isLarge ? new Refusal('frame_too_large') : null;
  }

  #timedOut(entry: Entry): void {
    const message = entry.state === 'sent' ? 'The bridge did not answer in time.' : undefined;
    this.#giveUp(entry, new Refusal('offline', message === undefined ? {} : { message }));
  }

  #giveUp(entry: Entry, refusal: Refusal): void {
    const { state, id } = entry;
    this.#settle(entry, { kind: 'refused', refusal });
    if (state === 'sent') this.#connection?.forget(id);
    this.#pump();
  }

  #settle(entry: Entry, reply: Reply): void {
    if (entry.state === 'settled') return;
    if (entry.state === 'waiting') this.#waiting = this.#waiting.filter((other) => other !== entry);
    entry.state = 'settled';
    entry.patience?.cancel();
    entry.settle(reply);
  }

  #pump(): void {
    this.#alarm?.cancel();
    this.#alarm = null;
    for (let entry = this.#waiting[0]; entry !== undefined && this.#connection !== null; entry = this.#waiting[0]) {
      if (this.#connection.openRequests >= limits.pendingRequests - limits.spareRequests) return;
      const { capability } = methods[entry.method];
      if (capability !== 'connection' && this.#session?.granted.includes(capability) !== true) {
        this.#settle(entry, { kind: 'refused', refusal: new Refusal('unsupported_capability') });
        continue;
      }
      const waitMs = this.#pace?.take(this.#platform.now()) ?? 0;
      if (waitMs > 0) {
        this.#alarm = this.#platform.timer(waitMs, () => this.#pump());
        return;
      }
      this.#send(entry, this.#connection);
    }
  }

  #send(entry: Entry, connection: Connection): void {
    this.#waiting.shift();
    entry.state = 'sent';
    // How long a change takes is the agent's business; only its way to the bridge is bounded.
    if (entry.whenLost === 'uncertain') entry.patience?.cancel();
    entry.id = connection.request(entry.method, entry.params, entry.key, (reply) => this.#replied(entry, reply));
  }

  #replied(entry: Entry, reply: Reply): void {
    if (entry.state !== 'sent') return;
    if (reply.kind === 'refused' && reply.refusal.code === 'rate_limited')
      return this.#again(entry, limits.ackIntervalMs);
    if (reply.kind !== 'lost' || entry.whenLost === 'tell') this.#settle(entry, reply);
    else if (entry.whenLost === 'again') this.#again(entry, 0);
    else
      this.#settle(entry, {
        kind: 'refused',
        refusal: new Refusal('uncertain', { details: { key: entry.key ?? null, method: entry.method } }),
      });
    this.#pump();
  }

  /** Back to the head of the queue: refused before anything was done, or a read. */
  #again(entry: Entry, waitMs: number): void {
    entry.state = 'waiting';
    this.#waiting.unshift(entry);
    if (waitMs === 0) return;
    this.#alarm?.cancel();
    this.#alarm = this.#platform.timer(waitMs, () => this.#pump());
  }
}
