/** A reading in few words, as the corpus of commands has it, and the made-up workspace it is read in. */
import { readFileSync } from 'node:fs';
import {
  readCommand,
  type Command,
  type Place,
  type Read,
  type Surroundings,
} from '../../bridge/approvals/shell/reading.ts';

/** A workspace /w with secrets and agent configuration; all else lies outside. */
const place = (path: string): Place => {
  const relative = path === '/w' ? '' : path.startsWith('/w/') ? path.slice(3) : null;
  const text = relative ?? path;
  if (/(^|\/)(\.env|\.ssh)(\/|$)/.test(text)) return 'secret';
  if (/(^|\/)(\.claude|\.vscode|\.git|\.mcp\.json|\.bashrc)(\/|$)/.test(text)) return 'agent_config';
  return relative === null ? 'outside' : 'inside';
};
export const surroundings: Surroundings = { cwd: '/w', place };
export const read = (command: Command): Read => readCommand(command, surroundings);

/** Empty parts are left out. `programs` are words, with the trampolines passed in front: `["sudo>sh>", "rm", "x"]`. */
export const compact = ({ reading, paths, notes }: Read): Readonly<Record<string, unknown>> => {
  const { install } = reading;
  const all = {
    programs: reading.programs.map(({ name, args, via }) => [
      ...(via.length > 0 ? [via.map((each) => `${each}>`).join('')] : []),
      name,
      ...args,
    ]),
    operators: reading.operators,
    substitutions: reading.substitutions,
    assignments: reading.assignments,
    hosts: reading.hosts,
    redirections: reading.redirections.map((each) => `${each.operator} ${String(each.target)} ${each.place}`),
    hereDocuments: reading.hereDocuments,
    install:
      install === undefined
        ? ''
        : `${install.manager} [${install.packages.join(' ')}]${install.registry === undefined ? '' : ` from ${install.registry}`}${install.global ? ' global' : ''}${install.scripts ? ' scripts' : ''}`,
    paths: Object.fromEntries(paths.map((each) => [each.path, each.place])),
    notes: [...notes].sort(),
    uninspectable: reading.uninspectable,
    simple: reading.simple,
  };
  const isEmpty = (value: unknown): boolean =>
    value === 0 ||
    value === '' ||
    value === false ||
    (typeof value === 'object' && Object.keys(value ?? {}).length === 0);
  return Object.fromEntries(Object.entries(all).filter(([key, value]) => key === 'programs' || !isEmpty(value)));
};

export type Case = Command & Readonly<Record<string, unknown>>;
/** One command a line with its right reading, checked by eye; `hostile` holds those made to be read wrongly. */
export const corpus = (name: 'ordinary' | 'hostile'): readonly Case[] =>
  JSON.parse(readFileSync(new URL(`../fixtures/commands/${name}.json`, import.meta.url), 'utf8')) as Case[];
