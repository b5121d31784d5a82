/** Command lines: one shape for every verb, errors in one sentence, exit code 2. Used by every file beside it. */
import { parseArgs, type ParseArgsConfig } from 'node:util';

export const exits = { ok: 0, failed: 1, usage: 2, unreachable: 3 } as const;

/** Ends the verb with this code; the sentence goes to stderr. */
export class CliError extends Error {
  readonly code: number;
  constructor(message: string, code: number = exits.failed, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = 'CliError';
    this.code = code;
  }
}
export const usage = (message: string): CliError => new CliError(message, exits.usage);

type Options = NonNullable<ParseArgsConfig['options']>;
const common = {
  state: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies Options;

export interface Verb {
  readonly name: string;
  /** One line in the overview. */
  readonly about: string;
  /** Usage line, then an example. */
  readonly help: string;
  run(args: readonly string[]): Promise<number>;
}

/** Values and words of a verb. @throws CliError usage */
export const read = <T extends Options>(args: readonly string[], options: T) => {
  try {
    return parseArgs({ args: [...args], options: { ...common, ...options }, allowPositionals: true, strict: true });
  } catch (error) {
    throw usage(error instanceof Error ? error.message : 'These arguments were not understood.');
  }
};
