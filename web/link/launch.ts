/** The launch exchange: a one-time token from the URL fragment (or pasted) becomes a session bound to the page's key. */
import { makeKeys, type Identity, type Session } from './identity.ts';

export type LaunchResult =
  | { readonly ok: true; readonly identity: Identity }
  | { readonly ok: false; readonly why: 'used' | 'unreachable' | 'unsupported' };

/** Takes the token out of the address bar. Must run before anything else can read or send the URL. */
export const takeToken = (): string | null => {
  const token = tokenIn(location.href);
  if (location.hash.startsWith('#launch='))
    history.replaceState(history.state, '', location.pathname + location.search);
  return token;
};

/** The token of a launch URL for this very origin, or of a bare token; null when it is something else. */
export const tokenIn = (pasted: string): string | null => {
  const trimmed = pasted.trim();
  if (/^[A-Za-z0-9_-]{43}$/.test(trimmed)) return trimmed;
  if (!URL.canParse(trimmed)) return null;
  const url = new URL(trimmed);
  if (url.origin !== location.origin) return null;
  return /^#launch=([A-Za-z0-9_-]{43})$/.exec(url.hash)?.[1] ?? null;
};

const isSession = (value: unknown): value is Session => {
  if (typeof value !== 'object' || value === null) return false;
  const { base, bridgeId, lineage } = value as Record<string, unknown>;
  return (
    typeof base === 'string' &&
    /^\/b\/[A-Za-z0-9_-]+\/$/.test(base) &&
    typeof bridgeId === 'string' &&
    typeof lineage === 'string'
  );
};

/** Exchanges `token` for a session, which the caller keeps. The token is spent whatever comes of it. */
export const exchange = async (token: string): Promise<LaunchResult> => {
  let made;
  try {
    made = await makeKeys();
  } catch {
    return { ok: false, why: 'unsupported' };
  }
  let answer;
  try {
    answer = await fetch('/launch', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token, publicKey: made.publicKey }),
      cache: 'no-store',
      redirect: 'error',
      signal: AbortSignal.timeout(10_000),
    });
  } catch {
    return { ok: false, why: 'unreachable' };
  }
  if (!answer.ok) return { ok: false, why: 'used' };
  const session: unknown = await answer.json();
  if (!isSession(session)) return { ok: false, why: 'used' };
  const { base, bridgeId, lineage } = session;
  return { ok: true, identity: { keys: made.keys, keyId: made.keyId, session: { base, bridgeId, lineage } } };
};
