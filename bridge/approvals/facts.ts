/**
 * What a person sees of an action, made from what a describer found: places of paths, the command as read, risk
 * notes. Pure. The rule not to break: every fact is the bridge's own, and nothing is left out in silence: what is cut or
 * not understood becomes a risk. Used by `describe.ts` and `permission.ts`.
 */
import { createHash } from 'node:crypto';
import type { ApprovalFacts, CardDiff } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { About } from './contract.ts';
import { hasHiddenSpace, hasInvisible, visible } from './inert.ts';
import { agentConfiguration, codesOf, hasSecretShape, risk, signsOf, type Risk, type RiskCode } from './risks.ts';
import { readCommand, type Read } from './shell/reading.ts';

type Place = ApprovalFacts['paths'][number]['place'];

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
export const cut = (text: string, units: number): string =>
  text.length <= units ? text : `${text.slice(0, units - 1).toWellFormed()}…`;
export const bytesOf = (text: string): number => Buffer.byteLength(text, 'utf8');

const isConfiguration = (path: string): boolean => agentConfiguration.test(path);

/** `path` is absolute, relative to the workspace, or begins with `~`, which is a home directory. */
const placeOf = (path: string, about: About): Place => {
  const relative = path.startsWith('~') ? null : about.relative(path);
  if (about.isSecret(relative ?? path.replace(/^[~/]+/, ''))) return 'secret';
  if (isConfiguration(relative ?? path)) return 'agent_config';
  return relative === null ? 'outside' : 'inside';
};

export interface Findings {
  readonly headline: string;
  readonly argv?: readonly string[];
  readonly commandText?: string;
  readonly cwd?: string;
  readonly env?: readonly string[];
  /** Names of the variables a command is given. */
  readonly variables?: readonly string[];
  readonly paths: readonly string[];
  readonly diffs: readonly CardDiff[];
  readonly rawInput?: string | undefined;
  readonly risks: readonly RiskCode[];
  readonly payloadBytes: number;
}

/** The command as read; null where there is none. Variables given beside it count as set by it. */
const readOf = (found: Findings, about: About): Read | null => {
  const { argv, commandText, cwd = about.workspacePath, variables = [] } = found;
  if (argv === undefined && commandText === undefined) return null;
  const command = argv === undefined ? { text: commandText ?? '' } : { argv };
  const read = readCommand(command, { cwd, place: (path) => placeOf(path, about) });
  if (variables.length === 0) return read;
  const assignments = [...variables, ...read.reading.assignments].map((name) => cut(name, 200)).slice(0, 100);
  return { ...read, reading: { ...read.reading, assignments, simple: false } };
};

const risksOf = (found: Findings, paths: ApprovalFacts['paths'], read: Read | null, about: About): Risk[] => {
  const command = [...(found.argv ?? []), ...(found.commandText === undefined ? [] : [found.commandText])];
  const texts = [
    ...command,
    ...found.paths,
    ...(found.env ?? []),
    found.rawInput ?? '',
    ...found.diffs.map((diff) => diff.newText),
  ];
  const codes = new Set<RiskCode>(found.risks);
  for (const { path, place } of paths) {
    if (place !== 'inside' && place !== 'unknown') codes.add(place);
    if (place !== 'unknown' && (path.startsWith('~') || about.relative(path) === null)) codes.add('outside');
    if (isConfiguration(path)) codes.add('agent_config');
  }
  if (texts.some(hasInvisible)) codes.add('invisible');
  if ([...command, ...found.paths].some(hasHiddenSpace)) codes.add('hidden_space');
  if (texts.some(hasSecretShape)) codes.add('secret_shaped');
  const programs = [found.argv?.[0], ...(read?.reading.programs ?? []).map(({ name }) => name)];
  if (programs.some((name) => /[^\x20-\x7e]/.test(name ?? ''))) codes.add('program_name');
  if (found.payloadBytes > limits.outputUnits) codes.add('long');
  if (read !== null) for (const code of codesOf(read)) codes.add(code);
  if (read?.reading.redirections.some(({ place }) => place === 'secret')) codes.add('secret');
  if (read?.reading.redirections.some(({ place }) => place === 'agent_config')) codes.add('agent_config');
  const risks = [...codes].map((code) => risk(code));
  const signs = read === null ? [] : signsOf(read.reading);
  return signs.length === 0
    ? risks
    : [...risks, risk('shell_operators', `The shell acts on: ${cut(signs.join('  '), 400)}`)];
};

export const factsOf = (found: Findings, about: About): ApprovalFacts => {
  const read = readOf(found, about);
  const places = new Map(found.paths.map((path) => [cut(path.toWellFormed(), limits.pathBytes), placeOf(path, about)]));
  for (const { path, place } of read?.paths ?? []) if (!places.has(path)) places.set(path, place);
  const paths = [...places].map(([path, place]) => ({ path, place }));
  const isCut = paths.length > 200 || found.diffs.length > 100;
  const risks = risksOf(isCut ? { ...found, risks: [...found.risks, 'not_all_shown'] } : found, paths, read, about);
  return {
    headline: cut(visible(found.headline), 500),
    ...(found.argv === undefined ? {} : { argv: found.argv.map((part) => part.toWellFormed()) }),
    ...(found.commandText === undefined ? {} : { commandText: found.commandText.toWellFormed() }),
    ...(found.cwd === undefined ? {} : { cwd: cut(found.cwd.toWellFormed(), limits.pathBytes) }),
    ...(read === null ? {} : { reading: read.reading }),
    ...(found.env === undefined ? {} : { env: [...found.env] }),
    paths: paths.slice(0, 200),
    diffs: found.diffs.slice(0, 100),
    ...(found.rawInput === undefined ? {} : { rawInput: found.rawInput }),
    risks,
    // A command of which not even the programs are known; of others the reading says which part is not.
    uninspectable: found.risks.includes('uninspectable') || (read !== null && isUnread(read)),
    payloadBytes: found.payloadBytes,
  };
};

const isUnread = ({ reading }: Read): boolean =>
  reading.uninspectable.length > 0 && !reading.programs.some(({ name }) => name !== null);

export const named = (path: string, about: About): string => {
  const relative = about.relative(path);
  return relative === null ? path : relative === '' ? 'the workspace folder' : relative;
};
export const shown = (argv: readonly string[]): string =>
  argv.map((part) => (/^[\w@%+=:,./-]+$/.test(part) ? part : JSON.stringify(part))).join(' ');
