/**
 * Understanding a command: shell text through the parser, argv as it is, trampolines resolved, into the
 * facts a person and a rule go by. The rule not to break: never less than a shell would run. What the parser reports,
 * what only a shell would know, what is too long or too deep is said in `uninspectable`; nothing is run or expanded.
 * Called by `facts.ts`. Pure and synchronous.
 */
import type { CommandReading } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import { Reader } from './reader.ts';
import { isHarmlessDevice, Sheet, TooMuch, type Note, type Place, type Scope } from './sheet.ts';
import { plainWords } from './words.ts';

export type { Note, Place } from './sheet.ts';
export type Command = { readonly argv: readonly string[] } | { readonly text: string };
export interface Surroundings {
  /** Absolute; relative paths are seen from here. */
  readonly cwd: string;
  /** Where an absolute path lies; one that begins with `~` is in a home directory. Grammar only. */
  place(path: string): Place;
}
export interface Read {
  readonly reading: CommandReading;
  /** Paths the command names, in order; absolute where that is certain. */
  readonly paths: readonly { readonly path: string; readonly place: Place }[];
  readonly notes: ReadonlySet<Note>;
}

const isSimple = (sheet: Sheet, text: string | null): boolean => {
  const [program, ...others] = sheet.programs;
  if (program === undefined || others.length > 0 || program.name === null || program.via.length > 0) return false;
  if (program.args.includes(null)) return false;
  const { operators, substitutions, assignments, hereDocuments } = sheet;
  if (operators.length + substitutions.length + assignments.length + hereDocuments > 0) return false;
  if (sheet.uninspectable.length > 0) return false;
  const isHarmless = ({ place, target, operator }: CommandReading['redirections'][number]): boolean =>
    (place === 'inside' && operator === '<') ||
    isHarmlessDevice(target) ||
    (operator.includes('&') && place === 'device');
  if (!sheet.redirections.every(isHarmless)) return false;
  if (/[\r\n]/.test([program.name, ...program.args].join(''))) return false;
  // The second reader must have read the very same words.
  return text === null || JSON.stringify(plainWords(text)) === JSON.stringify([program.name, ...program.args]);
};

/**
 * What a command would do, as far as its words say. Total: never throws; its answer fits the event.
 * `argv` runs without a shell, except where it is one itself.
 */
export const readCommand = (command: Command, about: Surroundings): Read => {
  const sheet = new Sheet((path) => about.place(path));
  const scope: Scope = { cwds: [about.cwd], via: [], elsewhere: false, depth: 0 };
  const text = 'text' in command ? command.text : null;
  const argv = 'text' in command ? [] : command.argv;
  try {
    const units = text?.length ?? argv.reduce((sum, part) => sum + part.length, 0);
    if (units > limits.ruleTextUnits) sheet.blind('The command is too long to be read.');
    else if (text !== null) new Reader(sheet).text(text, scope, 'posix');
    else if (argv.some((part) => part.includes('\0')))
      sheet.blind('Contains a NUL character, where programs may see its end.');
    else
      new Reader(sheet).run(
        argv.map((value) => ({ value, source: value })),
        scope,
        false,
      );
  } catch (error) {
    if (!(error instanceof TooMuch) && !(error instanceof RangeError)) throw error;
    sheet.blind('The command is too large or too deeply nested to be read to its end.');
  }
  if (sheet.evaluates && sheet.dormant) sheet.blind('A value in this text may be run once more when it is evaluated.');
  const { programs, operators, redirections, substitutions, assignments, hereDocuments, install } = sheet;
  return {
    reading: {
      form: text === null ? 'argv' : 'shell',
      programs,
      operators,
      redirections,
      substitutions,
      assignments,
      hereDocuments,
      hosts: [...sheet.hosts],
      ...(install === undefined ? {} : { install }),
      uninspectable: sheet.uninspectable,
      simple: isSimple(sheet, text),
    },
    paths: [...sheet.paths].map(([path, place]) => ({ path, place })),
    notes: sheet.notes,
  };
};
