/** The one Trusted Types policy of the app: script URLs of our own origin, below /_app/ or the service worker. */
const allowed = (url: string): string => {
  const target = new URL(url, location.origin);
  const known = target.pathname === '/service-worker.js' || target.pathname.startsWith('/_app/') || import.meta.env.DEV;
  if (target.origin !== location.origin || !known) throw new TypeError('This script URL is not one of the app.');
  return target.href;
};

interface Factory {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): unknown };
}

const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
const policy = factory?.createPolicy('countersign-script-url', { createScriptURL: allowed });

/** `url` as something `new Worker` and `serviceWorker.register` accept under `require-trusted-types-for 'script'`. */
export const scriptUrl = (url: string): string =>
  policy === undefined ? allowed(url) : (policy.createScriptURL(url) as string);
