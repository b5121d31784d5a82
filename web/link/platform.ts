/** What a browser page gives to the protocol's client: a WebSocket, the page key, clocks and the probe. */
import type { Channel, Platform, Probe } from '#protocol/platform.ts';
import { signText, type Identity } from './identity.ts';

const channel = (url: string): Channel => {
  const socket = new WebSocket(url);
  const made: Channel = {
    // Between the start of an ending and `onClose` a socket takes nothing more and complains aloud; the client asks again.
    send: (text) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close: (code, reason) => socket.close(code, reason),
    onOpen: null,
    onMessage: null,
    onClose: null,
  };
  socket.onopen = () => made.onOpen?.();
  // A binary frame is not of this protocol; the client ends the connection over what it cannot read.
  socket.onmessage = (event: MessageEvent<unknown>) =>
    made.onMessage?.(typeof event.data === 'string' ? event.data : '');
  socket.onclose = (event) => made.onClose?.(event.code, event.reason);
  return made;
};

const answers: Readonly<Record<number, Probe>> = { 204: 'live', 401: 'signed_out', 410: 'revoked' };

/** 204 live, 401 expired, 410 revoked, anything else or nothing: the bridge is off. */
const probe = async (base: string): Promise<Probe> => {
  try {
    const answer = await fetch(`${base}session`, {
      cache: 'no-store',
      redirect: 'error',
      signal: AbortSignal.timeout(5000),
    });
    return answers[answer.status] ?? 'offline';
  } catch {
    return 'offline';
  }
};

export const pagePlatform = (identity: Identity): Platform => {
  const path = `${identity.session.base}socket`;
  return {
    now: () => Date.now(),
    random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
    timer: (ms, fn) => {
      const handle = setTimeout(fn, ms);
      return { cancel: () => clearTimeout(handle) };
    },
    utf8: (text) => new TextEncoder().encode(text),
    sha256: async (bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array(bytes))),
    sign: (text) => signText(identity, text),
    address: () => ({ origin: location.origin, path }),
    connect: () => channel(`${location.origin.replace(/^http/, 'ws')}${path}`),
    probe: () => probe(identity.session.base),
  };
};
