/** How a parsed command is laid out: what joins what, and whether it says more than its own text. Pure. */
import type { CommandReading } from '#protocol/events.ts';

const joining: ReadonlySet<string> = new Set(['&&', '||', '|', '|&', ';', '&', 'newline']);

/**
 * What stands before each program but the first, where that is certain: a flat row of programs. Null where the command
 * nests, so that no operator is shown between programs it does not join.
 */
export const joinsOf = (reading: CommandReading): readonly string[] | null =>
  reading.operators.length === reading.programs.length - 1 &&
  reading.operators.every((operator) => joining.has(operator)) &&
  reading.substitutions.length === 0 &&
  reading.assignments.length === 0
    ? reading.operators
    : null;

/** False where the command itself already says all of it. */
export const saysMore = (reading: CommandReading): boolean =>
  !reading.simple ||
  reading.programs.length !== 1 ||
  reading.programs.some((program) => program.name === null || program.via.length > 0 || program.args.includes(null)) ||
  reading.redirections.length > 0 ||
  reading.hereDocuments > 0 ||
  reading.hosts.length > 0 ||
  reading.install !== undefined ||
  reading.uninspectable.length > 0;

/** `2>>` is the operator `>>` for output number 2. */
export const bareOperator = (operator: string): string => operator.replace(/^(\d+|\{\w+\})(?=[<>])/, '');

/** Each once, in order of appearance. */
export const once = (list: readonly string[]): string[] => [...new Set(list)];

/** A parsed word stands whole in the command above; here a long one is named by its beginning. */
const wordUnits = 240;
export const beginning = (word: string): string =>
  word.slice(0, /[\uD800-\uDBFF]/.test(word[wordUnits - 1] ?? '') ? wordUnits - 1 : wordUnits);
