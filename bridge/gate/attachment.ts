/**
 * One attached client, whatever its transport (D-10 to D-13, D-47, L-04). Every frame is parsed by a schema, every
 * method checked against what was granted, every answer against the codes its method may give. It tells nothing
 * about the bridge before the client proved who it is. Called by `socket.ts`, `control.ts` and `bridge run`.
 */
import { createPublicKey, randomBytes, randomUUID, verify } from 'node:crypto';
import type { Actor } from '#protocol/actor.ts';
import { closeCodes, errors, Refusal, type ErrorCode, type ErrorDetails } from '#protocol/errors.ts';
import { request, socketProofText, type Hello } from '#protocol/frames.ts';
import { limits } from '#protocol/limits.ts';
import { isMethod, methods, type MethodName, type Params } from '#protocol/methods.ts';
import { explain, z } from '#protocol/schema.ts';
import { wire } from '#protocol/wire.ts';
import type { Feed, Sink } from '../ledger/contract.ts';
import { Bucket } from './bucket.ts';
import type { Channel } from './channel.ts';
import type { Dispatch } from './contract.ts';
import { grantedTo, isAllowedCode, mayCall } from './grants.ts';
import { Outbox } from './outbox.ts';
import { examinePeer, type PeerDeps } from './peer.ts';
import type { Attachment, Roster } from './roster.ts';

export type LogLine = Readonly<Record<string, string | number | boolean | null>>;

/** What the transport already knows about its peer. */
export type Who =
  | {
      readonly kind: 'browser';
      readonly sessionId: string;
      readonly keyId: string;
      readonly publicKeySpki: Uint8Array;
      readonly origin: string;
      /** Path of this socket: part of what the page signs. */
      readonly path: string;
      /** Asked at every ping, and notes the use: a session may end while its socket is open. */
      readonly isLive: () => boolean;
      /** One-use ticket for a path below base, bound to this session. */
      readonly ticket: (path: string) => string;
    }
  | ({ readonly kind: 'control' } & PeerDeps)
  | { readonly kind: 'local'; readonly tty: boolean };

export interface AttachmentDeps {
  readonly bridgeId: string;
  readonly lineage: string;
  readonly bootId: string;
  readonly dispatch: Dispatch;
  readonly feed: Pick<Feed, 'attach' | 'detach' | 'ack'>;
  readonly roster: Roster;
  readonly log: (line: LogLine) => void;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
  /** Parse what is sent, too: tests and development. */
  readonly checkAnswers?: boolean | undefined;
  /** For tests; the limits otherwise. */
  readonly timing?:
    { readonly handshakeMs?: number; readonly slowDrainMs?: number; readonly pingIntervalMs?: number } | undefined;
}

const safeId = (json: unknown): number => {
  const id = typeof json === 'object' && json !== null && 'id' in json ? json.id : null;
  return Number.isSafeInteger(id) && Number(id) >= 0 ? Number(id) : -1;
};
const memberOf = (json: unknown, name: string): unknown =>
  typeof json === 'object' && json !== null ? (json as Record<string, unknown>)[name] : undefined;

/** Where an error came from, without its message: messages carry values, and the log must not. */
const originOfError = (error: unknown): string =>
  error instanceof Error
    ? `${error.name} ${(error.stack ?? '')
        .split('\n')
        .filter((line) => /^\s+at /.test(line))
        .slice(0, 6)
        .map((line) => line.trim())
        .join(' < ')}`
    : typeof error;

class Attached implements Attachment {
  readonly id = randomUUID();
  readonly connectedAt: number;
  seenAt: number;
  client = 'unknown';
  readonly #channel: Channel;
  readonly #who: Who;
  readonly #deps: AttachmentDeps;
  readonly #outbox: Outbox;
  readonly #sink: Sink;
  readonly #pending = new Map<number, AbortController>();
  readonly #requests: Bucket;
  readonly #acks: Bucket;
  #nonce: string | null = randomBytes(limits.nonceBytes).toString('base64url');
  #actor: Actor | null = null;
  #refusedInARow = 0;
  #handshake: NodeJS.Timeout | null = null;
  #pings: NodeJS.Timeout | null = null;
  #retired: { code: number; reason: string; timer: NodeJS.Timeout } | null = null;
  #isClosed = false;

  constructor(channel: Channel, who: Who, deps: AttachmentDeps) {
    this.#channel = channel;
    this.#who = who;
    this.#deps = deps;
    this.connectedAt = deps.now();
    this.seenAt = this.connectedAt;
    const rate = { perWindow: limits.inboundPerWindow, windowMs: limits.inboundWindowMs };
    this.#requests = new Bucket({ ...rate, burst: limits.inboundBurst }, performance.now());
    this.#acks = new Bucket({ ...rate, burst: limits.inboundPerWindow }, performance.now());
    this.#outbox = new Outbox(channel, deps.timing?.slowDrainMs ?? limits.slowDrainMs, () =>
      this.close(closeCodes.tooSlow, 'too slow; resume from your cursor'),
    );
    this.#sink = { attachmentId: this.id, deliver: (encoded, bytes) => this.#outbox.push(encoded, bytes) };
  }

  get sessionId(): string | null {
    return this.#who.kind === 'browser' ? this.#who.sessionId : null;
  }

  begin(): void {
    this.#deps.roster.opening(this, (oldest) =>
      oldest.close(closeCodes.signedOut, 'another connection needed the place'),
    );
    this.#channel.open({
      text: (text) => this.#receive(text),
      seen: () => this.#seen(),
      closed: () => this.#ended('peer'),
    });
    this.#handshake = setTimeout(
      () => this.close(closeCodes.signedOut, 'not initialized in time'),
      this.#deps.timing?.handshakeMs ?? limits.handshakeMs,
    );
    const nonce = this.#nonce ?? '';
    this.#send({ kind: 'hello', wire, bootId: this.#deps.bootId, nonce } satisfies Hello);
  }

  close(code: number, reason: string): void {
    if (this.#isClosed) return;
    this.#ended(reason, code);
    this.#channel.close(code, reason);
  }

  retire(code: number, reason: string): void {
    if (this.#isClosed || this.#retired !== null) return;
    this.#deps.feed.detach(this.id);
    // The answer to the very request that revoked us is still on its way.
    this.#retired = { code, reason, timer: setTimeout(() => this.close(code, reason), limits.retireMs) };
    if (this.#pending.size === 0) this.close(code, reason);
  }

  /** Runs once: everything that hangs on this attachment ends here. Operations already accepted go on without it. */
  #ended(reason: string, code: number | null = null): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#handshake !== null) clearTimeout(this.#handshake);
    if (this.#pings !== null) clearInterval(this.#pings);
    if (this.#retired !== null) clearTimeout(this.#retired.timer);
    this.#outbox.close();
    if (this.#actor !== null) this.#deps.feed.detach(this.id);
    for (const controller of this.#pending.values()) controller.abort();
    this.#pending.clear();
    this.#deps.roster.remove(this);
    this.#deps.log({ event: 'detached', attachment: this.id, reason, code });
  }

  #seen(): void {
    this.seenAt = this.#deps.now();
  }

  #send(frame: object): number {
    const encoded = JSON.stringify(frame);
    const bytes = Buffer.byteLength(encoded);
    this.#outbox.push(encoded, bytes);
    return bytes;
  }

  #fail(
    id: number,
    method: MethodName | undefined,
    code: ErrorCode,
    about: { message?: string; details?: ErrorDetails } = {},
  ): void {
    const details = about.details === undefined ? {} : { details: about.details };
    const error = { code, message: about.message ?? errors[code][0], retryable: errors[code][1], ...details };
    this.#send({ kind: 'error', id, ...(method === undefined ? {} : { method }), error });
  }

  #receive(text: string): void {
    if (this.#isClosed) return;
    this.#seen();
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      json = undefined; // answered below as what it is: not a request
    }
    const bucket = memberOf(json, 'method') === 'connection.ack' ? this.#acks : this.#requests;
    if (!bucket.take(performance.now())) {
      this.#refusedInARow += 1;
      if (this.#refusedInARow > limits.inboundPerWindow) this.close(closeCodes.rate, 'too many requests');
      else this.#fail(safeId(json), undefined, 'rate_limited');
      return;
    }
    this.#refusedInARow = 0;
    const frame = z.safeParse(request, json);
    if (!frame.success) {
      this.#fail(safeId(json), undefined, 'bad_request', { details: { where: explain(frame.error).slice(0, 200) } });
      return;
    }
    try {
      this.#accept(frame.data);
    } catch (error) {
      this.#failed(frame.data.id, isMethod(frame.data.method) ? frame.data.method : undefined, error);
    }
  }

  /** The staircase: each step refuses by one code, the last hands over. */
  #accept(frame: z.infer<typeof request>): void {
    const { id, key } = frame;
    if (!isMethod(frame.method))
      return this.#fail(id, undefined, this.#actor === null ? 'not_initialized' : 'unsupported_capability');
    const method = frame.method;
    if (this.#retired !== null) return this.#fail(id, method, 'unauthorized');
    const isOpen = method === 'connection.initialize' || method === 'connection.ping';
    if (this.#actor === null && !isOpen) return this.#fail(id, method, 'not_initialized');
    // Before the schema: another version may well have other fields, and must hear that it is another version.
    if (method === 'connection.initialize' && Number.isInteger(frame.params['wire']) && frame.params['wire'] !== wire) {
      this.#fail(id, method, 'unsupported_version');
      return this.close(closeCodes.incompatible, 'another version');
    }
    const params = z.safeParse(methods[method].params, frame.params);
    if (!params.success)
      return this.#fail(id, method, 'bad_request', {
        details: { where: `params.${explain(params.error)}`.slice(0, 200) },
      });
    if (methods[method].mutates !== (key !== undefined)) return this.#fail(id, method, 'invalid_key');
    if (method === 'connection.initialize') return this.#initialize(id, params.data as Params<'connection.initialize'>);
    if (this.#actor === null) return void this.#answer(id, method, { now: this.#deps.now() });
    if (!mayCall(this.#actor, method)) {
      return this.#fail(id, method, this.#actor.kind === 'browser' ? 'unsupported_capability' : 'forbidden');
    }
    if (this.#pending.has(id)) return this.#fail(id, method, 'bad_request', { details: { where: 'id: in use' } });
    if (this.#pending.size >= limits.pendingRequests) return this.#fail(id, method, 'rate_limited');
    void this.#perform(id, method, params.data as Record<string, unknown>, key, this.#actor);
  }

  #initialize(id: number, params: Params<'connection.initialize'>): void {
    const method = 'connection.initialize';
    const nonce = this.#nonce;
    if (nonce === null)
      return this.#fail(id, method, 'bad_request', { details: { where: 'method: already initialized' } });
    this.#nonce = null; // used up by the first attempt, right or wrong
    const actor = this.#identify(params, nonce);
    if (actor === null) {
      const code = this.#who.kind === 'browser' ? 'unauthorized' : 'forbidden';
      this.#deps.log({
        event: 'refused',
        reason: this.#who.kind === 'browser' ? 'possession' : 'inside_agent',
        attachment: this.id,
      });
      this.#fail(id, method, code);
      return this.close(closeCodes.signedOut, 'possession not proven');
    }
    this.client = params.client.kind;
    if (!this.#deps.roster.admit(this)) {
      this.#deps.log({ event: 'refused', reason: 'attachments', attachment: this.id });
      this.#fail(id, method, 'rate_limited', { message: 'Too many windows and terminals are connected. Close one.' });
      return this.close(closeCodes.tooSlow, 'too many attachments');
    }
    if (this.#handshake !== null) clearTimeout(this.#handshake);
    this.#actor = actor;
    this.#deps.feed.attach(this.#sink);
    this.#pings = setInterval(() => this.#beat(), this.#deps.timing?.pingIntervalMs ?? limits.pingIntervalMs);
    this.#deps.log({
      event: 'attached',
      attachment: this.id,
      client: actor.kind,
      operator: actor.kind === 'browser' || actor.kind === 'local' || actor.operator,
    });
    this.#answer(id, method, {
      attachmentId: this.id,
      bridgeId: this.#deps.bridgeId,
      lineage: this.#deps.lineage,
      granted: grantedTo(actor),
      limits: { ...limits },
      heartbeatMs: limits.pingIntervalMs,
      presenceTimeoutMs: limits.presenceTimeoutMs,
      now: this.#deps.now(),
    });
  }

  /** Null: not who it must be. */
  #identify(params: Params<'connection.initialize'>, nonce: string): Actor | null {
    const who = this.#who;
    if (who.kind === 'local') return { kind: 'local', attachmentId: this.id, tty: who.tty };
    if (who.kind === 'control') {
      const peer = examinePeer(params.peer?.pid ?? null, nonce, who);
      return peer.isInside
        ? null
        : { kind: 'cli', attachmentId: this.id, pid: peer.pid, operator: peer.isOperator, tty: peer.hasTty };
    }
    const text = socketProofText({ origin: who.origin, path: who.path, bootId: this.#deps.bootId, nonce });
    const key = createPublicKey({ key: Buffer.from(who.publicKeySpki), format: 'der', type: 'spki' });
    const isProven = who.isLive() && verify(null, Buffer.from(text), key, Buffer.from(params.proof ?? '', 'base64url'));
    return isProven
      ? {
          kind: 'browser',
          attachmentId: this.id,
          sessionId: who.sessionId,
          keyId: who.keyId,
          publicKeySpki: who.publicKeySpki,
        }
      : null;
  }

  #beat(): void {
    if (this.#who.kind === 'browser' && !this.#who.isLive()) return this.close(closeCodes.signedOut, 'signed out');
    if (this.#channel.ping === null) return;
    if (this.#deps.now() - this.seenAt > limits.presenceTimeoutMs) {
      return this.close(closeCodes.done, 'silent');
    }
    this.#channel.ping();
  }

  async #perform(
    id: number,
    method: MethodName,
    params: Record<string, unknown>,
    key: string | undefined,
    actor: Actor,
  ): Promise<void> {
    const controller = new AbortController();
    this.#pending.set(id, controller);
    const startedAt = performance.now();
    let code = 'ok';
    let bytes = 0;
    try {
      const answer = await (this.#own(method, params) ??
        this.#deps.dispatch({ method, params, key, actor, sink: this.#sink, signal: controller.signal }));
      if (!this.#isClosed) bytes = this.#answer(id, method, answer);
    } catch (error) {
      code = this.#failed(id, method, error);
    }
    this.#pending.delete(id);
    this.#deps.log({
      event: 'request',
      attachment: this.id,
      method,
      code,
      bytes,
      ms: Math.round(performance.now() - startedAt),
    });
    if (method === 'conversation.subscribe' || method === 'conversation.unsubscribe') this.#deps.roster.changed();
    if (this.#retired !== null && this.#pending.size === 0) this.close(this.#retired.code, this.#retired.reason);
  }

  /** The gate's own methods; null is somebody else's. */
  #own(method: MethodName, params: Record<string, unknown>): Record<string, unknown> | null {
    if (method === 'connection.ping') return { now: this.#deps.now() };
    if (method === 'connection.cancelRequest') {
      this.#pending.get(Number(params['id']))?.abort();
      return {};
    }
    if (method === 'connection.ack') {
      const { sub, seq } = params as Params<'connection.ack'>;
      if (!this.#deps.feed.ack(sub, this.id, seq)) throw new Refusal('unknown_subscription');
      return {};
    }
    if (method !== 'ticket.create') return null;
    if (this.#who.kind !== 'browser') throw new Refusal('forbidden');
    return {
      ticket: this.#who.ticket((params as Params<'ticket.create'>).path),
      expiresAt: this.#deps.now() + limits.ticketMs,
    };
  }

  #answer(id: number, method: MethodName, result: Record<string, unknown>): number {
    if (this.#deps.checkAnswers === true) {
      const parsed = z.safeParse(methods[method].result, result);
      if (!parsed.success) throw new TypeError(`the answer to ${method} breaks its schema at ${explain(parsed.error)}`);
    }
    return this.#send({ kind: 'result', id, method, result });
  }

  /** Says only what this method may say; the rest is internal, with an id to find it by in the log. */
  #failed(id: number, method: MethodName | undefined, error: unknown): string {
    if (error instanceof Refusal && isAllowedCode(method, error.code)) {
      if (error.cause !== undefined)
        this.#deps.log({
          event: 'cause',
          attachment: this.id,
          method: method ?? null,
          code: error.code,
          from: originOfError(error.cause),
        });
      if (!this.#isClosed)
        this.#fail(id, method, error.code, {
          message: error.message,
          ...(error.details === undefined ? {} : { details: error.details }),
        });
      return error.code;
    }
    const correlation = randomUUID();
    this.#deps.log({
      event: 'internal',
      attachment: this.id,
      method: method ?? null,
      correlation,
      code: error instanceof Refusal ? error.code : null,
      from: originOfError(error),
    });
    if (!this.#isClosed) this.#fail(id, method, 'internal_error', { details: { correlation } });
    return 'internal_error';
  }
}

/** Serves one client on `channel` until either side ends it. Returns at once; the hello is already on its way. */
export const serveAttachment = (channel: Channel, who: Who, deps: AttachmentDeps): Attachment => {
  const attached = new Attached(channel, who, deps);
  attached.begin();
  return attached;
};
