/** Hands the outcome of the launch from the hook, which runs before the app, to the app. */
import { exchange, type LaunchResult } from './launch.ts';

let launch: Promise<LaunchResult> | null = null;

/** Starts the exchange of the token found in the URL, if one was; the app awaits it through `launched`. */
export const beginLaunch = (token: string | null): void => {
  launch = token === null ? null : exchange(token);
};

/** The launch of this page load, or null when the URL carried no token. */
export const launched = (): Promise<LaunchResult> | null => launch;
