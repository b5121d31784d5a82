import { takeToken } from '#lib/link/launch.ts';
import { beginLaunch } from '#lib/link/start.ts';

/** Runs before the app: the launch token leaves the address bar before any other code can see it (L-02). */
export const init = (): void => {
  beginLaunch(takeToken());
  // The page of a conversation is the largest part: it comes while the app begins. A failure shows when the router asks.
  if (location.pathname.startsWith('/c/')) import('./routes/c/[id]/+page.svelte').catch(() => undefined);
};
