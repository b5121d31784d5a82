/**
 * Where the bridge begins; `main.ts` is a link to this file. Plain JavaScript, so that Node need not load its stripper of
 * types before the cache of compiled code is on (half of a start). That cache runs as code: it lies in the state's own
 * private directory, which must be ours alone, and never where another could plant something.
 */
import { lstatSync, mkdirSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';

const argv = process.argv.slice(2);
const at = argv.indexOf('--state');
const named = at === -1 ? argv.find((each) => each.startsWith('--state='))?.slice('--state='.length) : argv[at + 1];
const { XDG_STATE_HOME } = process.env;
const usual = XDG_STATE_HOME?.startsWith('/') ? XDG_STATE_HOME : `${homedir()}/.local/state`;
const state = named ?? `${usual}/countersign`;
try {
  // Only what uses a state makes one; `help`, or checking a folder with a given key, leaves nothing behind.
  const isMade = /^(start|run)$/.test(argv[0] ?? '') && !argv.includes('--help') && !argv.includes('-h');
  if (isMade) mkdirSync(`${state}/private`, { recursive: true, mode: 0o700 });
  const uid = process.getuid?.();
  const facts = [state, `${state}/private`].map((path) => lstatSync(path));
  if (facts.every((one) => one.isDirectory() && one.uid === uid && (one.mode & 0o077) === 0))
    enableCompileCache(`${state}/private/compile-cache`);
} catch {
  // A state directory that cannot be used is reported by the verb itself, in full.
}
const { perform } = await import('./cli/verbs.ts');
process.exitCode = await perform(argv);
