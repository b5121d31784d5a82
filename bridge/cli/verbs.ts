/** argv → verb; each verb loads only what it needs. Called by `bridge/main.js`, after the compile cache is on. */
import { Refusal } from '#protocol/errors.ts';
import { CliError, exits, type Verb } from './args.ts';

const verbs: Readonly<Record<string, () => Promise<Verb>>> = {
  agents: async () => (await import('./agents.ts')).agents,
  anchor: async () => (await import('./anchor.ts')).anchor,
  approvals: async () => (await import('./approvals.ts')).approvals,
  conversations: async () => (await import('./conversations.ts')).conversations,
  doctor: async () => (await import('./doctor.ts')).doctor,
  keys: async () => (await import('./keys.ts')).keys,
  open: async () => (await import('./session.ts')).open,
  policy: async () => (await import('./policy.ts')).policy,
  receipts: async () => (await import('./receipts.ts')).receipts,
  revoke: async () => (await import('./session.ts')).revoke,
  run: async () => (await import('./run.ts')).run,
  sessions: async () => (await import('./session.ts')).sessions,
  start: async () => (await import('./start.ts')).start,
  status: async () => (await import('./session.ts')).status,
  stop: async () => (await import('./session.ts')).stop,
  verify: async () => (await import('./verify.ts')).verify,
};

const overview = async (): Promise<string> => {
  const all = await Promise.all(Object.values(verbs).map((load) => load()));
  const lines = all.map((verb) => `  ${verb.name.padEnd(14)}${verb.about}`);
  return `bridge VERB [options]\n\n${lines.join('\n')}\n\n"bridge VERB --help" says more. --state DIR and --json work everywhere.\n`;
};

const dispatch = async (argv: readonly string[]): Promise<number> => {
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
  return (await load()).run(args);
};

const sentence = (error: unknown): string => {
  if (error instanceof CliError || error instanceof Refusal) return error.message;
  return `Something went wrong that should not: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
};

/** Runs the verb to its end; answers the exit code, and says on stderr what went wrong. */
export const perform = async (argv: readonly string[]): Promise<number> => {
  // A reader that has seen enough (`| head`) is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  try {
    return await dispatch(argv);
  } catch (error) {
    process.stderr.write(`${sentence(error)}\n`);
    return error instanceof CliError ? error.code : exits.failed;
  }
};
