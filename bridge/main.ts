/**
 * The bridge: argv → verb. The compile cache lives in our own private directory (a planted cache would run other code),
 * so it is enabled before the rooms are loaded; each verb loads only what it needs.
 */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { CliError, exits, type Verb } from './cli/args.ts';
import { stateDirectories } from './ledger/paths.ts';

const verbs: Readonly<Record<string, () => Promise<Verb>>> = {
  agents: async () => (await import('./cli/agents.ts')).agents,
  anchor: async () => (await import('./cli/anchor.ts')).anchor,
  approvals: async () => (await import('./cli/approvals.ts')).approvals,
  conversations: async () => (await import('./cli/conversations.ts')).conversations,
  doctor: async () => (await import('./cli/doctor.ts')).doctor,
  keys: async () => (await import('./cli/keys.ts')).keys,
  open: async () => (await import('./cli/session.ts')).open,
  policy: async () => (await import('./cli/policy.ts')).policy,
  revoke: async () => (await import('./cli/session.ts')).revoke,
  run: async () => (await import('./cli/run.ts')).run,
  sessions: async () => (await import('./cli/session.ts')).sessions,
  start: async () => (await import('./cli/start.ts')).start,
  status: async () => (await import('./cli/session.ts')).status,
  stop: async () => (await import('./cli/session.ts')).stop,
  verify: async () => (await import('./cli/verify.ts')).verify,
};

const overview = async (): Promise<string> => {
  const all = await Promise.all(Object.values(verbs).map((load) => load()));
  const lines = all.map((verb) => `  ${verb.name.padEnd(14)}${verb.about}`);
  return `bridge VERB [options]\n\n${lines.join('\n')}\n\n"bridge VERB --help" says more. --state DIR and --json work everywhere.\n`;
};

/** As the verb itself will read it: `--state DIR` or `--state=DIR`. */
const stateOption = (args: readonly string[]): string | undefined => {
  const joined = args.find((each) => each.startsWith('--state='));
  const at = args.indexOf('--state');
  return joined?.slice('--state='.length) ?? (at === -1 ? undefined : args[at + 1]);
};

const cacheCompiledCode = (args: readonly string[]): void => {
  try {
    enableCompileCache(join(stateDirectories(stateOption(args)).private, 'compile-cache'));
  } catch {
    // A state directory that cannot be used is reported by the verb itself, in full.
  }
};

const main = async (argv: readonly string[]): Promise<number> => {
  const [name, ...args] = argv;
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    process.stdout.write(await overview());
    return name === undefined ? exits.usage : exits.ok;
  }
  const load = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (load === undefined) throw new CliError(`There is no verb "${name}". Run "bridge help".`, exits.usage);
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${(await load()).help}\n`);
    return exits.ok;
  }
  cacheCompiledCode(args);
  return (await load()).run(args);
};

const sentence = (error: unknown): string => {
  if (error instanceof CliError || error instanceof Refusal) return error.message;
  return `Something went wrong that should not: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
};

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${sentence(error)}\n`);
  process.exitCode = error instanceof CliError ? error.code : exits.failed;
}
