import { takeToken } from '#lib/link/launch.ts';
import { beginLaunch } from '#lib/link/start.ts';

/** Runs before the app: the launch token leaves the address bar before any other code can see it (L-02). */
export const init = (): void => {
  beginLaunch(takeToken());
};
