/**
 * The one front door (L-10): raw request head → verdict. Pure; nothing is parsed or allocated before its answer, and
 * no handler runs without one. It counts raw headers and never trusts Node's joined ones. Called by `listen.ts` alone.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { limits } from '#protocol/limits.ts';

export interface Head {
  readonly method: string;
  readonly url: string;
  readonly httpVersion: string;
  /** Name, value, name, value … as received. */
  readonly rawHeaders: readonly string[];
  /** The peer asks to leave HTTP. */
  readonly upgrade: boolean;
}
/** Where we stand. `base` is `/b/<segment>/`. */
export interface Ground {
  readonly port: number;
  readonly base: string;
}
export type BaseRoute = 'session' | 'socket' | 'terminal' | 'logout' | 'forget' | 'blob.put' | 'blob.get';
export type Verdict =
  | { readonly kind: 'refuse'; readonly status: number; readonly reason: string }
  | { readonly kind: 'up' }
  | { readonly kind: 'asset'; readonly url: string }
  | { readonly kind: 'launch'; readonly bytes: number }
  /** `cookies` are well-formed candidates, unproven; `rest` is the path below base with its query. */
  | {
      readonly kind: 'base';
      readonly route: BaseRoute;
      readonly rest: string;
      readonly cookies: readonly string[];
      readonly bytes: number;
    };

export const cookieName = 'cs';
/** Another local program may plant cookies of our name on wider paths; they are candidates, never an error. */
const cookieCandidates = 4;
const cookiePattern = /^[A-Za-z0-9_-]{43}$/;
const basePattern = /^(\/b\/[A-Za-z0-9_-]{22}\/)(.*)$/;
const jsonPattern = /^application\/json(?:; ?charset=utf-8)?$/i;

export const originOf = (port: number): string => `http://127.0.0.1:${port}`;
const refuse = (status: number, reason: string): Verdict => ({ kind: 'refuse', status, reason });

const valuesOf = (head: Head, name: string): string[] => {
  const found: string[] = [];
  for (let index = 0; index + 1 < head.rawHeaders.length; index += 2) {
    if (head.rawHeaders[index]?.toLowerCase() === name) found.push(head.rawHeaders[index + 1] ?? '');
  }
  return found;
};
const isExactly = (values: readonly string[], wanted: string): boolean => values.length === 1 && values[0] === wanted;

/** Equal in time that does not depend on where the texts differ. */
export const isSame = (a: string, b: string): boolean =>
  timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest());

/** The head as HTTP, before anything about us: null when it is plain HTTP/1.1 addressed to exactly this listener. */
const judgeHttp = (head: Head, ground: Ground): Verdict | null => {
  if (head.method === 'CONNECT' || head.method === 'TRACE') return refuse(405, 'method');
  if (head.rawHeaders.length / 2 > limits.headCount) return refuse(431, 'header_count');
  if (!isExactly(valuesOf(head, 'host'), `127.0.0.1:${ground.port}`)) return refuse(421, 'host');
  if (head.httpVersion !== '1.1') return refuse(505, 'http_version');
  // Origin-form only: absolute-form and asterisk-form would carry a second opinion about the host.
  if (!/^\/[\x21-\x7e]*$/.test(head.url) || head.url.length > limits.pathBytes) return refuse(400, 'target');
  // Our clients send Content-Length; two notions of a body's end are how requests are smuggled.
  if (valuesOf(head, 'transfer-encoding').length > 0) return refuse(400, 'transfer_encoding');
  const expect = valuesOf(head, 'expect');
  if (expect.length > 0 && !isExactly(expect, '100-continue')) return refuse(400, 'expect');
  return null;
};

/** Bytes of the body, or null when the head does not say so exactly once. */
const bodyBytes = (head: Head): number | null => {
  const lengths = valuesOf(head, 'content-length');
  return lengths.length === 1 && /^\d{1,15}$/.test(lengths[0] ?? '') ? Number(lengths[0]) : null;
};

const cookiesOf = (head: Head): string[] =>
  valuesOf(head, 'cookie')
    .flatMap((line) => line.split(';'))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${cookieName}=`))
    .map((pair) => pair.slice(cookieName.length + 1))
    .filter((value) => cookiePattern.test(value))
    .slice(0, cookieCandidates);

const routes: readonly {
  readonly path: RegExp;
  readonly method: string;
  readonly route: BaseRoute;
  readonly type: RegExp | null;
}[] = [
  { path: /^session$/, method: 'GET', route: 'session', type: null },
  { path: /^socket$/, method: 'GET', route: 'socket', type: null },
  { path: /^terminal\/[0-9a-f-]{36}$/, method: 'GET', route: 'terminal', type: null },
  { path: /^logout$/, method: 'POST', route: 'logout', type: jsonPattern },
  { path: /^forget$/, method: 'POST', route: 'forget', type: jsonPattern },
  { path: /^blob\?[^?]*$/, method: 'PUT', route: 'blob.put', type: /^application\/octet-stream$/i },
  { path: /^blob\/[0-9a-f]{64}\?[^?]*$/, method: 'GET', route: 'blob.get', type: null },
];
const maxBytes: Record<BaseRoute, number> = {
  session: 0,
  socket: 0,
  terminal: 0,
  logout: limits.postBodyBytes,
  forget: limits.postBodyBytes,
  'blob.put': limits.blobBytes,
  'blob.get': 0,
};

const hasType = (head: Head, type: RegExp): boolean => {
  const types = valuesOf(head, 'content-type');
  return types.length === 1 && type.test(types[0] ?? '');
};

const judgeBase = (head: Head, rest: string, bytes: number): Verdict => {
  const site = valuesOf(head, 'sec-fetch-site');
  if (site.length > 0 && !isExactly(site, 'same-origin')) return refuse(403, 'fetch_site');
  const cookies = cookiesOf(head);
  if (cookies.length === 0) return refuse(401, 'cookie');
  const here = routes.filter((row) => row.path.test(rest));
  const row = here.find((one) => one.method === head.method);
  if (row === undefined) return here.length > 0 ? refuse(405, 'method') : refuse(404, 'path');
  if ((row.route === 'socket' || row.route === 'terminal') !== head.upgrade)
    return refuse(head.upgrade ? 400 : 426, 'upgrade');
  if (row.type !== null && !hasType(head, row.type)) return refuse(415, 'content_type');
  if (bytes > maxBytes[row.route]) return refuse(413, 'body_bytes');
  return { kind: 'base', route: row.route, rest, cookies, bytes };
};

/** The verdict on one request head. Total: never throws, whatever the bytes were. */
export const judge = (head: Head, ground: Ground): Verdict => {
  const http = judgeHttp(head, ground);
  if (http !== null) return http;
  const isGet = head.method === 'GET';
  if ((!isGet || head.upgrade) && !isExactly(valuesOf(head, 'origin'), originOf(ground.port)))
    return refuse(403, 'origin');
  if (!isGet && head.method !== 'POST' && head.method !== 'PUT') return refuse(405, 'method');
  const bytes = isGet && valuesOf(head, 'content-length').length === 0 ? 0 : bodyBytes(head);
  if (bytes === null) return refuse(isGet ? 400 : 411, 'content_length');
  if (isGet && bytes > 0) return refuse(400, 'body');

  const below = basePattern.exec(head.url);
  // A segment that was rotated away is answered like a session that ended, so that the app asks to sign in again.
  if (below !== null)
    return isSame(below[1] ?? '', ground.base) ? judgeBase(head, below[2] ?? '', bytes) : refuse(401, 'segment');
  if (head.upgrade) return refuse(404, 'path');
  if (head.url === '/launch') {
    if (head.method !== 'POST') return refuse(405, 'method');
    if (!hasType(head, jsonPattern)) return refuse(415, 'content_type');
    return bytes > limits.launchBodyBytes ? refuse(413, 'body_bytes') : { kind: 'launch', bytes };
  }
  if (!isGet) return refuse(405, 'method');
  return head.url === '/up' ? { kind: 'up' } : { kind: 'asset', url: head.url };
};
