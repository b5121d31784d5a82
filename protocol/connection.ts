/**
 * One connection of a client, from `hello` to its end (D-10, D-11): handshake, numbered requests, and every frame parsed
 * before anyone sees it. It never reconnects, waits or retries; client.ts makes the next one.
 */
import { closeCodes, isErrorCode, Refusal } from './errors.ts';
import {
  delivery,
  failure,
  hello,
  result,
  socketProofText,
  type Delivery,
  type Failure,
  type Hello,
  type Result,
} from './frames.ts';
import { limits } from './limits.ts';
import { methods, type Answer, type MethodName } from './methods.ts';
import type { Channel, Platform, Timer } from './platform.ts';
import { explain, z } from './schema.ts';
import { wire } from './wire.ts';

/** Who connects; the same for every connection of a client. */
export interface Identity {
  readonly kind: 'app' | 'cli';
  readonly version: string;
  /** UUID of this page or process. */
  readonly instanceId: string;
}

/** What `connection.initialize` answered. */
export type Session = Answer<'connection.initialize'> & { readonly bootId: string };

export type Reply =
  | { readonly kind: 'result'; readonly result: Record<string, unknown> }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** The connection ended first: whether it happened is not known. */
  | { readonly kind: 'lost' };

export type Cause =
  | 'closed'
  /** It never opened. */
  | 'unreachable'
  | 'silent'
  /** What came in is not the protocol. */
  | 'malformed'
  | 'incompatible'
  /** Cookie or key were not accepted, by an answer that says so. */
  | 'signed_out'
  /** Closed as 1008, which has more than one reason: ask which. */
  | 'doubted'
  | 'replaced';
export interface Ending {
  readonly cause: Cause;
  readonly code: number | null;
  readonly wasReady: boolean;
}

export interface ConnectionHandlers {
  ready(session: Session): void;
  delivery(frame: Delivery): void;
  /** Once. Afterwards every open request is answered `lost`. */
  ended(ending: Ending): void;
}

const capabilities = [...new Set(Object.values(methods).map(({ capability }) => capability as string))];

const causeOf = (code: number, opened: boolean): Cause => {
  if (!opened) return 'unreachable';
  if (code === closeCodes.signedOut) return 'doubted';
  return code === closeCodes.incompatible ? 'incompatible' : 'closed';
};

/** A page may not send most close codes itself; the reason says why. */
const closeCodeFor = (cause: Cause): number => (cause === 'incompatible' ? closeCodes.incompatible : closeCodes.done);

const refusalOf = ({ error }: Failure): Refusal =>
  isErrorCode(error.code)
    ? new Refusal(error.code, {
        message: error.message,
        ...(error.details === undefined ? {} : { details: error.details }),
      })
    : new Refusal('internal_error');

type Open = { readonly method: MethodName; readonly done: (reply: Reply) => void };

export class Connection {
  readonly #platform: Platform;
  readonly #identity: Identity;
  readonly #handlers: ConnectionHandlers;
  readonly #channel: Channel;
  readonly #open = new Map<number, Open>();
  #lastId = 0;
  #stage: 'opening' | 'handshake' | 'ready' | 'ended' = 'opening';
  #greeted = false;
  #patience: Timer;
  #heardAt: number;

  /** Opens at once. `handlers` are never called from within the constructor. */
  constructor(platform: Platform, identity: Identity, handlers: ConnectionHandlers) {
    this.#platform = platform;
    this.#identity = identity;
    this.#handlers = handlers;
    this.#heardAt = platform.now();
    this.#patience = platform.timer(limits.handshakeMs, () => this.end('unreachable'));
    this.#channel = platform.connect();
    this.#channel.onOpen = () => this.#opened();
    this.#channel.onMessage = (text) => this.#receive(text);
    this.#channel.onClose = (code) => this.#end(causeOf(code, this.#stage !== 'opening'), code);
  }

  /** When the last frame came. */
  get heardAt(): number {
    return this.#heardAt;
  }

  get openRequests(): number {
    return this.#open.size;
  }

  /** Sends at once; the caller keeps to the pace. `done` is called once, from within the frame that answers. */
  request(
    method: MethodName,
    params: Readonly<Record<string, unknown>>,
    key: string | undefined,
    done: (reply: Reply) => void,
  ): number {
    const id = (this.#lastId += 1);
    this.#open.set(id, { method, done });
    this.#send({ kind: 'request', id, method, params, ...(key === undefined ? {} : { key }) });
    return id;
  }

  /** The answer to this request is not wanted any more. */
  forget(id: number): void {
    if (!this.#open.delete(id) || this.#stage !== 'ready') return;
    this.request('connection.cancelRequest', { id }, undefined, () => {
      // Either answer is fine: the request had ended, or it ends now.
    });
  }

  end(cause: Cause): void {
    if (this.#stage !== 'ended') this.#channel.close(closeCodeFor(cause), cause);
    this.#end(cause, null);
  }

  #send(frame: Readonly<Record<string, unknown>>): void {
    this.#channel.send(JSON.stringify(frame));
  }

  #opened(): void {
    if (this.#stage !== 'opening') return;
    this.#stage = 'handshake';
    this.#patience.cancel();
    this.#patience = this.#platform.timer(limits.handshakeMs, () => this.end('silent'));
  }

  #receive(text: string): void {
    if (this.#stage === 'ended') return;
    this.#heardAt = this.#platform.now();
    const frame = text.length > limits.frameBytes ? null : parse(text);
    if (frame === null) return this.end('malformed');
    switch (frame.kind) {
      case 'hello':
        return this.#checked(hello, frame, (value) => this.#greet(value));
      case 'result':
        return this.#checked(result, frame, (value) => this.#answered(value));
      case 'error':
        return this.#checked(failure, frame, (value) => this.#refused(value));
      case 'event':
      case 'activity':
      case 'presence':
      case 'invalidate':
        return this.#checked(delivery, frame, (value) => {
          if (this.#stage === 'ready') this.#handlers.delivery(value);
        });
      default:
        // A kind of frame this version does not know carries nothing it was asked to understand.
        return;
    }
  }

  #checked<T extends z.core.$ZodType>(schema: T, frame: unknown, use: (value: z.infer<T>) => void): void {
    const parsed = z.safeParse(schema, frame);
    if (parsed.success) use(parsed.data);
    else this.end('malformed');
  }

  #greet(greeting: Hello): void {
    if (this.#stage !== 'handshake' || this.#greeted) return this.end('malformed');
    this.#greeted = true;
    if (greeting.wire !== wire) return this.end('incompatible');
    void this.#introduce(greeting).catch(() => this.end('signed_out')); // no key to sign with, or no peer file
  }

  async #introduce({ bootId, nonce }: Hello): Promise<void> {
    const address = this.#platform.address?.() ?? null;
    const proof = address === null ? null : await this.#platform.sign(socketProofText({ ...address, bootId, nonce }));
    const peer = await this.#platform.peer?.(nonce);
    if (this.#stage !== 'handshake') return;
    const params = {
      wire,
      client: { kind: this.#identity.kind, version: this.#identity.version, instanceId: this.#identity.instanceId },
      capabilities,
      ...(proof === null ? {} : { proof }),
      ...(peer === undefined ? {} : { peer }),
    };
    this.request('connection.initialize', params, undefined, (reply) => {
      if (reply.kind === 'lost') return;
      if (reply.kind === 'refused') return this.end(causeOfRefusal(reply.refusal));
      this.#stage = 'ready';
      this.#patience.cancel();
      this.#handlers.ready({ ...(reply.result as Answer<'connection.initialize'>), bootId });
    });
  }

  #answered(frame: Result): void {
    const open = this.#take(frame.id);
    if (open === null) return; // forgotten by us, answered in the meantime
    const parsed = frame.method === open.method ? z.safeParse(methods[open.method].result, frame.result) : null;
    if (parsed?.success === true) open.done({ kind: 'result', result: parsed.data });
    else {
      const details = { field: parsed === null ? 'method' : explain(parsed.error) };
      open.done({ kind: 'refused', refusal: new Refusal('integrity_error', { details }) });
    }
  }

  #refused(frame: Failure): void {
    // One that names no request leaves us not knowing which of ours failed.
    if (frame.id < 0) return this.end('malformed');
    this.#take(frame.id)?.done({ kind: 'refused', refusal: refusalOf(frame) });
  }

  #take(id: number): Open | null {
    const open = this.#open.get(id);
    this.#open.delete(id);
    return open ?? null;
  }

  #end(cause: Cause, code: number | null): void {
    if (this.#stage === 'ended') return;
    const wasReady = this.#stage === 'ready';
    this.#stage = 'ended';
    this.#patience.cancel();
    this.#channel.onOpen = this.#channel.onMessage = this.#channel.onClose = null;
    // First the client knows, so that what is answered `lost` finds it without a connection.
    this.#handlers.ended({ cause, code, wasReady });
    for (const { done } of [...this.#open.values()]) done({ kind: 'lost' });
    this.#open.clear();
  }
}

const causeOfRefusal = (refusal: Refusal): Cause => {
  if (refusal.code === 'unsupported_version') return 'incompatible';
  return refusal.code === 'unauthorized' || refusal.code === 'forbidden' ? 'signed_out' : 'malformed';
};

/** The frame as an object with a kind, or null. */
const parse = (text: string): { readonly kind: string } | null => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null; // said by the caller: malformed
  }
  return typeof value === 'object' && value !== null && typeof (value as { kind?: unknown }).kind === 'string'
    ? (value as { kind: string })
    : null;
};
