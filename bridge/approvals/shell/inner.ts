/**
 * What a trampoline answers, and the common shapes of trampolines. The rule not to break: `blind` unless it is certain
 * what would run. Used by the tables of trampolines beside it, walked by `reader.ts`. Pure.
 */
import { split, valueOf, type Grammar } from './options.ts';
import { word, type Word } from './sheet.ts';

/** Which shell reads a text; `other` has its own language in parts. */
export type Dialect = 'bash' | 'posix' | 'other';
export type Inner =
  | {
      readonly is: 'argv';
      readonly words: readonly Word[];
      readonly cwd?: Word | undefined;
      readonly elsewhere?: boolean;
      /** The first word is a file that is run, with or without a slash. */
      readonly script?: boolean;
    }
  | { readonly is: 'text'; readonly text: Word; readonly dialect: Dialect; readonly elsewhere?: boolean }
  | { readonly is: 'blind'; readonly why: string }
  /** The program acts for itself, too. */
  | { readonly is: 'self' }
  | { readonly is: 'assignment'; readonly name: string }
  | { readonly is: 'fetch'; readonly package: string }
  | { readonly is: 'host'; readonly name: string };
export type Trampoline = (args: readonly Word[], name: string) => readonly Inner[];

export const blind = (why: string): Inner => ({ is: 'blind', why });
export const unclear = (name: string): readonly Inner[] => [
  { is: 'self' },
  blind(`Which command ${name} runs cannot be told from its arguments.`),
];
export const self: readonly Inner[] = [{ is: 'self' }];
export const isCertain = (words: readonly Word[], count: number): boolean =>
  words.slice(0, count).every(({ value }) => value !== null);

/** Words put into one line, as `ssh`, `watch` and `eval` do. */
export const line = (words: readonly Word[]): Word =>
  words.every(({ value }) => value !== null)
    ? word(words.map(({ value }) => value).join(' '))
    : { value: null, source: words.map(({ source }) => source).join(' ') };

/** A command after options and so many operands of its own. */
export const prefix =
  (grammar: Grammar, operands = 0): Trampoline =>
  (args, name) => {
    const found = split(args, grammar);
    if (found === null || !isCertain(found.rest, operands)) return unclear(name);
    const words = found.rest.slice(operands);
    return words.length === 0
      ? self
      : [{ is: 'argv', words, cwd: valueOf(found.options, 'chdir', 'working-directory') }];
  };

/** Trampolines by their first words: `pnpm dlx`, `docker exec`, `git bisect run`. Anything else is the program itself. */
export const subcommands =
  (table: Readonly<Record<string, Trampoline>>): Trampoline =>
  (args, name) => {
    for (const [verbs, trampoline] of Object.entries(table)) {
      const parts = verbs.split(' ');
      if (parts.every((part, index) => args[index]?.value === part))
        return trampoline(args.slice(parts.length), `${name} ${verbs}`);
    }
    return self;
  };
