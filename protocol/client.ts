/**
 * The client of the bridge, the same for the app and the CLI: keeps one connection, asks and changes over it, follows
 * conversations, and says truthfully how it stands (D-53). It holds no state of the bridge beyond what it needs to go
 * on where it was. The platform is handed in; nothing here knows a DOM, Node or a socket.
 */
import { Connection, type Ending, type Identity, type Reply, type Session } from './connection.ts';
import { closeCodes, Refusal, type ErrorCode } from './errors.ts';
import type { Delivery, Draft } from './frames.ts';
import { uuidv7 } from './ids.ts';
import { limits } from './limits.ts';
import type { Answer, methods, MethodName, Params } from './methods.ts';
import { Outbox } from './outbox.ts';
import type { Platform, Probe, Signal, Timer } from './platform.ts';
import { Pulse } from './pulse.ts';
import { Subscription, type Cursor, type Link, type Update } from './subscription.ts';

/** D-53. */
export type ConnectionState =
  'connecting' | 'loading' | 'live' | 'reconnecting' | 'offline' | 'signed_out' | 'incompatible';
export interface Status {
  readonly state: ConnectionState;
  /** With `signed_out`: the session was revoked, so the copy kept here must be purged. */
  readonly revoked: boolean;
  /** When the next attempt is made, or null. */
  readonly retryAt: number | null;
}

type Mutating = { [M in MethodName]: (typeof methods)[M]['mutates'] extends true ? M : never }[MethodName];
export type ChangeMethod = Mutating;
export type ReadMethod = Exclude<MethodName, Mutating>;

export type Topic = Extract<Delivery, { kind: 'invalidate' }>['topic'];
export type Attachments = Extract<Delivery, { kind: 'presence' }>['attachments'];
export interface Listeners {
  status?(status: Status): void;
  /** A connection is ready; `bridgeId` and `lineage` name the state behind it. */
  session?(session: Session): void;
  /** A list changed: list it again. After a reconnect every list may have changed. */
  invalidate?(topic: Topic, generation: number): void;
  presence?(attachments: Attachments): void;
}

export interface CallOptions {
  readonly signal?: Signal | undefined;
}
export interface ChangeOptions extends CallOptions {
  /** From `newKey`; the same key asks for the same change again and never makes it twice (D-31). */
  readonly key?: string | undefined;
}

/** What `subscribe` gives: the place reached, the text being written, and the end of it. */
export interface Following {
  readonly conversationId: string;
  readonly cursor: Cursor | null;
  readonly draft: Draft | null;
  close(): void;
}

/** Ends after which trying again at once would only repeat them. */
const troubled: readonly number[] = [closeCodes.tooLarge, closeCodes.internal, closeCodes.tooSlow, closeCodes.rate];
const resting: Partial<Record<ConnectionState, ErrorCode>> = {
  offline: 'offline',
  signed_out: 'unauthorized',
  incompatible: 'unsupported_version',
};

export class Client {
  readonly #platform: Platform;
  readonly #identity: Identity;
  readonly #outbox: Outbox;
  readonly #pulse: Pulse;
  readonly #listeners = new Set<Listeners>();
  readonly #subscriptions = new Map<string, Subscription>();
  /** Conversations whose unsubscribe is on its way: the next subscribe waits for it. */
  readonly #leaving = new Set<string>();
  /** Subscriptions not yet answered on this connection: while there are any, the state is `loading`. */
  readonly #loading = new Set<Subscription>();
  #status: Status = { state: 'connecting', revoked: false, retryAt: null };
  #session: Session | null = null;
  #connection: Connection | null = null;
  #isReady = false;
  #isClosed = false;
  #failures = 0;
  #readyAt = 0;
  #attempt = 0;
  #retry: Timer | null = null;

  constructor(platform: Platform, identity: Identity) {
    this.#platform = platform;
    this.#identity = identity;
    this.#outbox = new Outbox(platform);
    this.#pulse = new Pulse(platform);
  }

  get status(): Status {
    return this.#status;
  }

  /** Of the last connection that was ready, also after it ended. */
  get session(): Session | null {
    return this.#session;
  }

  /** Whether this bridge offers what a control needs (D-13). */
  granted(capability: string): boolean {
    return this.#session?.granted.includes(capability) ?? false;
  }

  /** Returns how to stop listening. */
  on(listeners: Listeners): () => void {
    this.#listeners.add(listeners);
    return () => void this.#listeners.delete(listeners);
  }

  /** Connects, and keeps connected until `close`. Also tries again from `signed_out` and `incompatible`. */
  start(): void {
    if (this.#isClosed || this.#connection !== null) return;
    this.#connect();
  }

  /** For good. What is open is refused: reads `cancelled`, changes `uncertain`. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const subscription of this.#subscriptions.values()) subscription.close();
    this.#subscriptions.clear();
    this.#retry?.cancel();
    this.#connection?.end('replaced');
    this.#outbox.refuseWaiting(new Refusal('cancelled'));
    this.#listeners.clear();
  }

  /** A fresh operation key, for a change that must be named before it is made. */
  newKey(): string {
    return uuidv7(this.#platform.now(), (bytes) => this.#platform.random(bytes));
  }

  /**
   * Reads. Waits for a connection that is being made, is asked again when the connection is lost, and gives up after
   * `limits.requestTimeoutMs`. @throws Refusal; `offline`, `unauthorized`, `unsupported_version` where nobody can be asked
   */
  call<M extends ReadMethod>(method: M, params: Params<M>, options: CallOptions = {}): Promise<Answer<M>> {
    return this.#promise(method, params, undefined, options.signal);
  }

  /**
   * Changes something. @throws Refusal; `uncertain` (details.key) when the connection was lost after it was sent: ask
   * again with the same key after the reconnect, which joins the first attempt or makes it now, never both (D-34).
   */
  change<M extends ChangeMethod>(method: M, params: Params<M>, options: ChangeOptions = {}): Promise<Answer<M>> {
    return this.#promise(method, params, options.key ?? this.newKey(), options.signal);
  }

  /**
   * Follows a conversation until `close` or `gone`; `after` goes on from a copy that ends there. One at a time for each
   * conversation. The listener is called in order. @throws TypeError when followed already
   */
  subscribe(
    conversationId: string,
    options: { after?: Cursor | undefined; listener: (update: Update) => void },
  ): Following {
    if (this.#subscriptions.has(conversationId)) throw new TypeError('this conversation is followed already');
    const subscription = new Subscription(this.#platform, this.#link, conversationId, options.after, options.listener);
    this.#subscriptions.set(conversationId, subscription);
    if (this.#isReady && !this.#leaving.has(conversationId)) subscription.start();
    return {
      conversationId,
      get cursor() {
        return subscription.cursor;
      },
      get draft() {
        return subscription.draft;
      },
      close: () => this.#leave(subscription),
    };
  }

  /** While visible the client beats, so that the bridge knows that someone looks (D-50). */
  setVisible(visible: boolean): void {
    this.#pulse.setVisible(visible);
  }

  /** The page came to the front: a silent socket is found out and replaced at once, a waiting attempt is made now. */
  wake(): void {
    if (this.#isClosed || this.#status.state === 'incompatible') return;
    if (this.#isReady) this.#pulse.ask(limits.handshakeMs, 'replaced');
    else if (this.#connection === null) this.#connect();
  }

  readonly #link: Link = {
    ask: (method, params, done) => void this.#outbox.ask({ method, params, whenLost: 'tell', settle: done }),
    send: (method, params, done) => void this.#connection?.request(method, params, undefined, done),
    lineage: () => this.#session?.lineage ?? null,
    settled: (subscription) => {
      this.#loading.delete(subscription);
      this.#settleLoading();
    },
    gone: (subscription) => this.#forget(subscription),
  };

  #promise<M extends MethodName>(
    method: M,
    params: Params<M>,
    key: string | undefined,
    signal: Signal | undefined,
  ): Promise<Answer<M>> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer<M>>();
    const code = this.#isClosed ? 'cancelled' : resting[this.#status.state];
    if (code !== undefined || signal?.aborted === true) {
      reject(new Refusal(code ?? 'cancelled'));
      return promise;
    }
    const settle = (reply: Reply): void => {
      signal?.removeEventListener('abort', abort);
      if (reply.kind === 'result') resolve(reply.result as Answer<M>);
      else reject(reply.kind === 'refused' ? reply.refusal : new Refusal('offline'));
    };
    let giveUp: (() => void) | null = null;
    const abort = (): void => giveUp?.();
    signal?.addEventListener('abort', abort);
    giveUp = this.#outbox.ask({ method, params, key, whenLost: key === undefined ? 'again' : 'uncertain', settle });
    return promise;
  }

  #connect(): void {
    this.#retry?.cancel();
    this.#retry = null;
    const attempt = (this.#attempt += 1);
    this.#setStatus({ retryAt: null });
    const connection: Connection = new Connection(this.#platform, this.#identity, {
      ready: (session) => this.#ready(connection, session),
      delivery: (frame) => this.#deliver(frame),
      ended: (ending) => this.#ended(ending, attempt),
    });
    this.#connection = connection;
  }

  #ready(connection: Connection, session: Session): void {
    this.#isReady = true;
    this.#readyAt = this.#platform.now();
    this.#session = session;
    this.#setStatus({ state: 'loading', revoked: false });
    this.#tell((listeners) => listeners.session?.(session));
    for (const subscription of this.#subscriptions.values()) {
      this.#loading.add(subscription);
      subscription.start();
    }
    this.#outbox.attach(connection, session);
    this.#settleLoading();
    this.#pulse.attach(connection, session.heartbeatMs);
  }

  #settleLoading(): void {
    if (this.#isReady && this.#loading.size === 0) this.#setStatus({ state: 'live' });
  }

  #deliver(frame: Delivery): void {
    switch (frame.kind) {
      case 'event':
      case 'activity':
        return this.#subscriptions.get(frame.sub)?.receive(frame);
      case 'invalidate':
        return this.#tell((listeners) => listeners.invalidate?.(frame.topic, frame.generation));
      case 'presence':
        return this.#tell((listeners) => listeners.presence?.(frame.attachments));
      default:
        return frame satisfies never;
    }
  }

  #ended(ending: Ending, attempt: number): void {
    this.#connection = null;
    this.#isReady = false;
    this.#pulse.detach();
    this.#loading.clear();
    // Before the outbox: what it tells them then finds them idle.
    for (const subscription of this.#subscriptions.values()) subscription.stop();
    this.#outbox.detach();
    if (this.#isClosed) return;
    switch (ending.cause) {
      case 'incompatible':
        return this.#rest('incompatible');
      case 'signed_out':
      case 'doubted':
      case 'unreachable':
        return void this.#diagnose(ending.cause, attempt);
      case 'replaced':
        return this.#connect();
      default:
        this.#reconnect(ending);
    }
  }

  #reconnect(ending: Ending): void {
    const wasShort = this.#platform.now() - this.#readyAt < limits.reconnectMaxMs;
    const isTroubled =
      !ending.wasReady ||
      wasShort ||
      ending.cause === 'malformed' ||
      (ending.code !== null && troubled.includes(ending.code));
    this.#failures = isTroubled ? this.#failures + 1 : 0;
    if (this.#status.state !== 'connecting' || ending.wasReady) this.#setStatus({ state: 'reconnecting' });
    this.#schedule();
  }

  /** Why there is no connection to be had; the socket itself never tells a page. */
  async #diagnose(cause: 'signed_out' | 'doubted' | 'unreachable', attempt: number): Promise<void> {
    let probe: Probe;
    try {
      probe = (await this.#platform.probe?.()) ?? (cause === 'unreachable' ? 'offline' : 'signed_out');
    } catch {
      probe = 'offline'; // no answer is the answer
    }
    if (this.#isClosed || attempt !== this.#attempt || this.#connection !== null) return;
    if (probe === 'revoked') return this.#rest('signed_out', true);
    // A live cookie with a key that was refused cannot be mended by trying again.
    if (probe === 'signed_out' || (cause === 'signed_out' && probe === 'live')) return this.#rest('signed_out');
    this.#failures += 1;
    this.#setStatus({ state: probe === 'offline' ? 'offline' : 'reconnecting', revoked: false });
    if (probe === 'offline') this.#outbox.refuseWaiting(new Refusal('offline'));
    this.#schedule();
  }

  /** Nothing is tried again until someone asks for it. */
  #rest(state: 'signed_out' | 'incompatible', revoked = false): void {
    this.#setStatus({ state, revoked, retryAt: null });
    this.#outbox.refuseWaiting(new Refusal(resting[state] ?? 'offline'));
  }

  /** Twice as long after every failure, up to a bound, and never in step with other clients. */
  #schedule(): void {
    const [high = 0, low = 0] = this.#platform.random(2);
    const jitter = 0.5 + (high * 256 + low) / 131_072;
    const delayMs = Math.round(
      Math.min(limits.reconnectMaxMs, limits.reconnectMinMs * 2 ** Math.min(this.#failures, 16)) * jitter,
    );
    this.#retry?.cancel();
    this.#retry = this.#platform.timer(delayMs, () => this.#connect());
    this.#setStatus({ retryAt: this.#platform.now() + delayMs });
  }

  #leave(subscription: Subscription): void {
    const { conversationId } = subscription;
    if (this.#subscriptions.get(conversationId) !== subscription) return;
    subscription.close();
    this.#forget(subscription);
    if (!this.#isReady) return;
    this.#leaving.add(conversationId);
    this.#link.ask('conversation.unsubscribe', { conversationId }, () => {
      this.#leaving.delete(conversationId);
      if (this.#isReady) this.#subscriptions.get(conversationId)?.start();
    });
  }

  #forget(subscription: Subscription): void {
    if (this.#subscriptions.get(subscription.conversationId) === subscription)
      this.#subscriptions.delete(subscription.conversationId);
    this.#loading.delete(subscription);
    this.#settleLoading();
  }

  #setStatus(change: Partial<Status>): void {
    const next = { ...this.#status, ...change };
    const { state, revoked, retryAt } = this.#status;
    if (next.state === state && next.revoked === revoked && next.retryAt === retryAt) return;
    this.#status = next;
    this.#tell((listeners) => listeners.status?.(next));
  }

  #tell(what: (listeners: Listeners) => void): void {
    for (const listeners of [...this.#listeners]) what(listeners);
  }
}

/** A client that is not connected yet: add listeners, then `start`. */
export const createClient = (platform: Platform, identity: Identity): Client => new Client(platform, identity);
export type { Cursor, Identity, Session, Update };
