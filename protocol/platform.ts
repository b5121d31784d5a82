/**
 * What a platform hands to the client, so that this ring needs no DOM and no Node: a browser page gives WebSocket and
 * WebCrypto, the CLI a private socket, a test a script. Implemented in web/link and bridge/cli.
 */

/** One connection that carries whole text frames in order. The client sets the three handlers before anything happens. */
export interface Channel {
  /** Only between `onOpen` and `onClose`. */
  send(text: string): void;
  /** Codes a page may give: 1000, or from 4000 on. `onClose` need not be called any more afterwards. */
  close(code?: number, reason?: string): void;
  onOpen: (() => void) | null;
  onMessage: ((text: string) => void) | null;
  /** Once, whatever the cause. Before `onOpen` it means that there is no connection to be had (the upgrade failed). */
  onClose: ((code: number, reason: string) => void) | null;
}

export interface Timer {
  cancel(): void;
}

/** The part of an AbortSignal the client needs. */
export interface Signal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** What `GET <base>session` answered: 204, 401, 410, nothing (D-53). */
export type Probe = 'live' | 'signed_out' | 'revoked' | 'offline';

export interface Platform {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** That many fresh random bytes. */
  random(bytes: number): Uint8Array;
  /** Calls `fn` once after `ms`, never at once. */
  timer(ms: number, fn: () => void): Timer;
  utf8(text: string): Uint8Array;
  sha256?(bytes: Uint8Array): Promise<Uint8Array>;
  /** base64url signature of the page key; null where the transport needs none. A rejection means there is no key: signed out. */
  sign(text: string): Promise<string> | null;
  /** Origin and path of the socket, for the proof (D-10); asked anew for each connection. Null or absent: no proof is sent. */
  address?(): { readonly origin: string; readonly path: string } | null;
  /** Private socket only: opens `<runtime>/peers/<nonce>` and tells who holds it (L-35). */
  peer?(nonce: string): Promise<{ readonly pid: number }>;
  /** A new channel, not open yet. Must not throw. */
  connect(): Channel;
  /** Asked after a failed upgrade; without it the bridge is taken to be off. */
  probe?(): Promise<Probe>;
}
