/**
 * What an action is, made from a request, pure: the exact part that is hashed and the facts a person sees (R-01, R-02).
 * The rule not to break: the headline and every fact are the bridge's own; the agent's title and description go
 * only into `words`. Nothing is left out in silence: what is cut or not understood becomes a risk.
 * Called by the conversations room through its `Describe`; about looks at files only through the walker handed in.
 */
import { createHash } from 'node:crypto';
import { isAbsolute, join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import type { ApprovalFacts, CardDiff, ToolContent, ToolKind } from '#protocol/events.ts';
import type { Json } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import type { ToolCallState, WordedCommand } from '../agents/contract.ts';
import type { About, CurrentText, Described } from './contract.ts';
import { countChanges } from './diff.ts';
import { hasHiddenSpace, hasInvisible, visible } from './inert.ts';
import { agentConfiguration, codesOf, hasSecretShape, risk, signsOf, type Risk, type RiskCode } from './risks.ts';
import { readCommand, type Read } from './shell/reading.ts';
import { steeringName } from './shell/sheet.ts';

type Place = ApprovalFacts['paths'][number]['place'];

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const cut = (text: string, units: number): string =>
  text.length <= units ? text : `${text.slice(0, units - 1).toWellFormed()}…`;
const bytesOf = (text: string): number => Buffer.byteLength(text, 'utf8');

const secretName = /token|secret|passw|credential|api_?key|private_?key|auth|cookie/i;
const isConfiguration = (path: string): boolean => agentConfiguration.test(path);

/** `path` is absolute, relative to the workspace, or begins with `~`, which is a home directory. */
const placeOf = (path: string, about: About): Place => {
  const relative = path.startsWith('~') ? null : about.relative(path);
  if (about.isSecret(relative ?? path.replace(/^[~/]+/, ''))) return 'secret';
  if (isConfiguration(relative ?? path)) return 'agent_config';
  return relative === null ? 'outside' : 'inside';
};

interface Findings {
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

const factsOf = (found: Findings, about: About): ApprovalFacts => {
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

const named = (path: string, about: About): string => {
  const relative = about.relative(path);
  return relative === null ? path : relative === '' ? 'the workspace folder' : relative;
};
const shown = (argv: readonly string[]): string =>
  argv.map((part) => (/^[\w@%+=:,./-]+$/.test(part) ? part : JSON.stringify(part))).join(' ');

// ---- Effects the bridge serves itself

/** A file write over ACP (F-05); `path` is relative. The diff is the bridge's own: it read the file. */
export const describeWrite = (
  write: { readonly path: string; readonly current: CurrentText | null; readonly content: string },
  about: About,
): Described => {
  const { path, current, content } = write;
  const contentSha256 = sha256(content);
  const oldText = current?.text ?? null;
  const diff: CardDiff = { path, source: 'bridge', oldText, newText: content, ...countChanges(oldText, content) };
  return {
    kind: 'file.write',
    effects: [{ type: 'write', path, contentSha256 }],
    detail: {
      path,
      contentSha256,
      bytes: bytesOf(content),
      // What it was before is part of this decision, but not of a rule to write the same again.
      base: current === null ? null : { revision: current.revision, sha256: current.sha256 },
    },
    facts: factsOf(
      {
        headline: `${current === null ? 'Create' : 'Write'} ${path}`,
        paths: [path],
        diffs: [diff],
        risks: [],
        payloadBytes: bytesOf(content),
      },
      about,
    ),
    words: {},
  };
};

const isSecretVariable = ({ name, value }: { readonly name: string; readonly value: string }): boolean =>
  secretName.test(name) || hasSecretShape(value);
const shownVariable = ({ name, value }: { readonly name: string; readonly value: string }): string =>
  isSecretVariable({ name, value }) ? `${name} (${String(value.length)} characters, hidden)` : `${name}=${value}`;

/**
 * A command over ACP (P-04), run without a shell. `cwd` is absolute.
 * @throws Refusal content_too_large when it could not be shown whole, bad_request when it is not text.
 */
export const describeCommand = (
  command: {
    readonly command: string;
    readonly args: readonly string[];
    readonly env: readonly { readonly name: string; readonly value: string }[];
    readonly cwd: string;
  },
  about: About,
): Described => {
  const argv = [command.command, ...command.args];
  const exact = JSON.stringify([argv, command.env]);
  if (exact.length > limits.eventBytes / 4 || argv.length > 1000 || command.env.length > 200)
    throw new Refusal('content_too_large');
  if (
    ![...argv, command.cwd, ...command.env.flatMap(({ name, value }) => [name, value])].every((part) =>
      part.isWellFormed(),
    )
  )
    throw new Refusal('bad_request');
  const variables = command.env.map(shownVariable);
  const risks: RiskCode[] = [];
  if (command.env.some(({ name }) => steeringName.test(name))) risks.push('environment');
  if (command.env.some(({ value }) => hasSecretShape(value))) risks.push('secret_shaped');
  if (variables.some((variable) => variable.length > 200)) risks.push('not_all_shown');
  return {
    kind: 'command',
    effects: [{ type: 'execute', argv, cwd: command.cwd }],
    detail: {
      argv,
      cwd: command.cwd,
      env: command.env.map(({ name, value }) =>
        isSecretVariable({ name, value }) ? { name, sha256: sha256(value) } : { name, value },
      ),
    },
    facts: factsOf(
      {
        headline: `Run ${shown(argv)}`,
        argv,
        cwd: command.cwd,
        env: variables.map((variable) => cut(variable, 200)),
        variables: command.env.map(({ name }) => name),
        paths: [command.cwd],
        diffs: [],
        risks,
        payloadBytes: bytesOf(exact),
      },
      about,
    ),
    words: {},
  };
};

// ---- Permissions an agent asks for its own tools

type Input = Readonly<Record<string, unknown>>;
const strings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'string');
const texts = (input: Input, names: readonly string[]): string[] =>
  names.flatMap((name) => (typeof input[name] === 'string' && input[name] !== '' ? [input[name]] : []));

const inputOf = (rawInput: string | undefined): Input => {
  try {
    const parsed: unknown = JSON.parse(rawInput ?? 'null');
    return parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed) ? (parsed as Input) : {};
  } catch {
    return {}; // not JSON: shown as it came, nothing is established from it
  }
};

/** Tools whose `command` names an operation of their own, not a program. */
const notPrograms: ReadonlySet<ToolKind> = new Set([
  'read',
  'edit',
  'delete',
  'move',
  'search',
  'think',
  'fetch',
  'switch_mode',
]);

type Command = { readonly argv: readonly string[] } | { readonly commandText: string };
const commandOf = (call: ToolCallState, input: Input): Command | null => {
  for (const name of ['command', 'cmd', 'argv']) {
    const value = input[name];
    if (strings(value)) return { argv: value };
    if (typeof value !== 'string' || value === '' || notPrograms.has(call.kind ?? 'other')) continue;
    return strings(input['args']) ? { argv: [value, ...input['args']] } : { commandText: value };
  }
  return null;
};

const cardDiffOf = (content: Extract<ToolContent, { type: 'diff' }>, about: About): CardDiff => {
  const relative = about.relative(content.path);
  const established =
    relative !== null && !about.isSecret(relative) && (about.readCurrent(relative)?.text ?? null) === content.oldText;
  const { oldText, newText } = content;
  return {
    path: cut(relative ?? content.path, limits.pathBytes).toWellFormed(),
    source: established ? 'bridge' : 'agent',
    oldText,
    newText,
    ...countChanges(oldText, newText),
  };
};

const kindWords: Partial<Record<ToolKind, string>> = {
  read: 'Read',
  edit: 'Change',
  delete: 'Delete',
  move: 'Move',
  search: 'Search',
  fetch: 'Fetch from the network',
  switch_mode: 'Change how the agent works',
};

/** These say nothing without what they are done to. */
const unnamed: ReadonlySet<ToolKind> = new Set(['read', 'edit', 'delete', 'move']);

const headlineOf = (
  call: ToolCallState,
  command: Command | null,
  diffs: readonly CardDiff[],
  paths: readonly string[],
  about: About,
): string => {
  if (command !== null && 'argv' in command) return `Run ${shown(command.argv)}`;
  if (command !== null) return `Run in a shell: ${command.commandText}`;
  const [first] = diffs.length > 0 ? diffs.map((diff) => diff.path) : paths;
  const others = new Set(diffs.length > 0 ? diffs.map((diff) => diff.path) : paths).size - 1;
  const verb = diffs.length > 0 ? (diffs[0]?.oldText === null ? 'Create' : 'Change') : kindWords[call.kind ?? 'other'];
  if (first === undefined && unnamed.has(call.kind ?? 'other')) return `${verb} something that is not named`;
  if (verb === undefined)
    return first === undefined ? 'Use a tool of the agent' : `Use a tool of the agent on ${named(first, about)}`;
  return `${verb}${first === undefined ? '' : ` ${named(first, about)}`}${others > 0 ? ` and ${String(others)} more` : ''}`;
};

const effectsOf = (
  call: ToolCallState,
  command: Command | null,
  cwd: string,
  diffs: readonly CardDiff[],
  paths: readonly string[],
): Json[] => {
  const writes = diffs.map((diff) => ({ type: 'write', path: diff.path, contentSha256: sha256(diff.newText) }));
  const execute = command === null ? [] : [{ type: 'execute', ...command, cwd }];
  if (writes.length + execute.length > 0) return [...execute, ...writes];
  return [{ type: call.kind ?? 'other', paths: [...new Set(paths)].map((path) => path.toWellFormed()) }];
};

/** Well-formed everywhere: canonical JSON and UTF-8 have no place for half a character. */
const repaired = (command: Command | null): Command | null =>
  command === null
    ? null
    : 'argv' in command
      ? { argv: command.argv.map((part) => part.toWellFormed()) }
      : { commandText: command.commandText.toWellFormed() };

/** Long commands are read in the raw input, which is paged; a fact that large would not fit its event. */
const fits = (command: Command | null): boolean =>
  command === null ||
  (JSON.stringify(command).length <= limits.eventBytes / 4 && (!('argv' in command) || command.argv.length <= 1000));

/**
 * A permission request for the agent's own tool. `announced` false: no tool call of that id came before (R-03).
 * `worded`: the command in the agent's words where there is no input; one that was cut is never called established.
 * Status, title and `_meta` are no part of the exact part; input, kind, locations and diffs are.
 */
export const describePermission = (
  call: ToolCallState,
  about: About,
  announced = true,
  worded?: WordedCommand,
): Described => {
  const input = inputOf(call.rawInput);
  const rawInput = call.rawInput?.toWellFormed();
  const given = commandOf(call, input);
  const command = repaired(given ?? (worded === undefined ? null : { commandText: worded.text }));
  const [asked = about.workspacePath] = texts(input, ['cwd', 'workdir', 'working_directory', 'directory']);
  const cwd = (isAbsolute(asked) ? asked : join(about.workspacePath, asked)).toWellFormed();
  const diffs = (call.content ?? []).filter((part) => part.type === 'diff').map((part) => cardDiffOf(part, about));
  const locations = call.locations ?? [];
  const paths = [
    ...locations.map(({ path }) => path),
    ...texts(input, ['path', 'file_path', 'filePath', 'abs_path']),
    ...diffs.map((diff) => diff.path),
  ];
  const bare = ['', '{}', 'null', '[]'].includes((rawInput ?? '').trim());
  const risks: RiskCode[] = [];
  if (!announced) risks.push('unannounced');
  if (bare && command === null && diffs.length === 0) risks.push('uninspectable');
  if (given === null && worded !== undefined) risks.push('as_worded');
  if (given === null && worded?.whole === false) risks.push('cut_by_agent', 'uninspectable');
  const isShown = fits(command);
  if (!isShown) risks.push('not_all_shown');
  return {
    kind: 'tool',
    effects: effectsOf(call, command, cwd, diffs, paths),
    detail: {
      tool: call.kind ?? null,
      rawInput: rawInput ?? null,
      locations: locations.map(({ path, line }) => ({ path: path.toWellFormed(), line: line ?? null })),
      diffs: diffs.map((diff) => ({
        path: diff.path,
        oldSha256: diff.oldText === null ? null : sha256(diff.oldText),
        newSha256: sha256(diff.newText),
      })),
    },
    facts: factsOf(
      {
        headline: headlineOf(call, command, diffs, paths, about),
        ...(isShown ? command : {}),
        ...(command === null ? {} : { cwd }),
        paths: command === null ? paths : [...paths, cwd],
        diffs,
        rawInput,
        risks,
        payloadBytes: bytesOf(rawInput ?? '') + diffs.reduce((sum, diff) => sum + bytesOf(diff.newText), 0),
      },
      about,
    ),
    words: wordsOf(call),
  };
};

const wordsOf = ({ title, content }: ToolCallState): Described['words'] => {
  const said = (content ?? []).flatMap((part) => (part.type === 'text' && part.text !== '' ? [part.text] : []));
  return {
    ...(title === undefined ? {} : { title: cut(title, 2000) }),
    ...(said.length === 0 ? {} : { description: cut(said.join('\n').toWellFormed(), 16_000) }),
  };
};

/** The three, as the conversations room takes them. */
export const describe = { permission: describePermission, write: describeWrite, command: describeCommand } as const;
