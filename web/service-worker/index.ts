/**
 * Keeps the shell of one version, whole or not at all (U-21). It never touches what lies under the bridge's base path,
 * the launch exchange or /up: it answers only what it precached, and the page for navigations.
 */
import { version } from '$app/env';
import { assets, immutable } from '$app/manifest';
import { self } from '$app/service-worker';

const prefix = 'countersign-shell-';
const page = '/';
const urlOf = (entry: { path: string }): string => `/${entry.path.replace(/^\//, '')}`;
// Pictures for the browser's install dialog are no part of the shell.
const isShown = (url: string): boolean => !url.startsWith('/screenshots/');
const shell = [page, ...new Set([...immutable, ...assets].map(urlOf).filter(isShown))];
const known = new Set(shell);

/** FNV-1a of the list of files: two builds of one version never share a cache, so none is overwritten while in use. */
const fingerprint = (text: string): string => {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
};
const cacheName = `${prefix}${version}-${fingerprint(shell.join('\n'))}`;

const isHtml = (answer: Response): boolean => (answer.headers.get('content-type') ?? '').startsWith('text/html');

/** Fetches past the HTTP cache and refuses what is not what its name says: HTML for a script would break the app. */
const fetched = async (url: string): Promise<[string, Response]> => {
  const answer = await fetch(new Request(url, { cache: 'reload' }));
  if (!answer.ok || answer.redirected || isHtml(answer) !== (url === page))
    throw new TypeError(`The shell is not complete: ${url}`);
  return [url, answer];
};

const install = async (): Promise<void> => {
  // All first, then the cache: a failed update leaves the old shell as it was.
  const answers = await Promise.all(shell.map(fetched));
  const cache = await caches.open(cacheName);
  await Promise.all(answers.map(([url, answer]) => cache.put(url, answer)));
};

const activate = async (): Promise<void> => {
  const names = await caches.keys();
  await Promise.all(
    names.filter((name) => name.startsWith(prefix) && name !== cacheName).map((name) => caches.delete(name)),
  );
  await self.clients.claim();
};

const cached = async (key: string, request: Request): Promise<Response> => {
  const answer = await (await caches.open(cacheName)).match(key);
  return answer ?? fetch(request);
};

self.addEventListener('install', (event) => event.waitUntil(install()));
self.addEventListener('activate', (event) => event.waitUntil(activate()));
self.addEventListener('message', (event) => {
  if (event.data === 'skip-waiting') void self.skipWaiting();
});
self.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== self.location.origin) return;
  if (url.pathname.startsWith('/b/') || url.pathname === '/launch' || url.pathname === '/up') return;
  if (request.mode === 'navigate') event.respondWith(cached(page, request));
  else if (known.has(url.pathname)) event.respondWith(cached(url.pathname, request));
});
self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  const path = typeof event.notification.data === 'string' ? event.notification.data : '/approvals';
  const show = async (): Promise<void> => {
    const open = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
    const client = open[0];
    if (client === undefined) return void (await self.clients.openWindow(path));
    client.postMessage({ kind: 'go', path });
    await client.focus();
  };
  event.waitUntil(show());
});
