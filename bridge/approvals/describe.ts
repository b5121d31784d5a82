/**
 * What an action is, made from a request, pure: the exact part that is hashed and the facts a person sees (R-01, R-02).
 * The rule not to break: the headline and every fact are the bridge's own; the agent's title and description go
 * only into `words`. Nothing is left out in silence: what is cut or not understood becomes a risk.
 * Called by the conversations room through its `Describe`; about looks at files only through the walker handed in.
 */
import { createHash } from 'node:crypto';
import { basename, isAbsolute, join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import type { ApprovalFacts, CardDiff, ToolContent, ToolKind } from '#protocol/events.ts';
import type { Json } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import type { ToolCallState, WordedCommand } from '../agents/contract.ts';
import type { About, CurrentText, Described } from './contract.ts';
import { countChanges } from './diff.ts';
import { hasHiddenSpace, hasInvisible, shellOperators, visible } from './inert.ts';

type Risk = ApprovalFacts['risks'][number];
type Place = ApprovalFacts['paths'][number]['place'];

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const cut = (text: string, units: number): string =>
  text.length <= units ? text : `${text.slice(0, units - 1).toWellFormed()}…`;
const bytesOf = (text: string): number => Buffer.byteLength(text, 'utf8');

/** Files that make an agent, an editor or git run something: writing them is a way out of every later question (T40). */
const agentConfiguration =
  /(^|\/)(\.claude|\.codex|\.gemini|\.qwen|\.kimi|\.pi|\.opencode|\.cursor|\.copilot|\.vscode|\.idea|\.husky|\.envrc|\.mcp\.json|opencode\.jsonc?|\.git\/(hooks|config|info)|\.github\/(copilot|hooks|workflows))(\/|$)/i;
const secretName = /token|secret|passw|credential|api_?key|private_?key|auth|cookie/i;
/** Variables that change which program or which code really runs. */
const steeringName =
  /^(PATH|LD_.*|DYLD_.*|NODE_OPTIONS|BASH_ENV|ENV|PYTHON(PATH|STARTUP)|PERL5(LIB|OPT)|RUBYOPT|GIT_.*|npm_config_.*|SHELL|IFS|PROMPT_COMMAND)$/i;
const shells = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'fish']);

const placeOf = (path: string, about: About): Place => {
  const relative = about.relative(path);
  if (relative === null) return 'outside';
  if (about.isSecret(relative)) return 'secret';
  return agentConfiguration.test(relative) ? 'agent_config' : 'inside';
};

const sentences = {
  outside: ['warn', 'Reaches outside the workspace.'],
  secret: ['stop', 'Touches a file that is kept secret.'],
  agent_config: ['stop', 'Changes files that can make an agent, an editor or git run something later.'],
  invisible: ['warn', 'Contains characters that cannot be seen or that reorder text; they are shown as escapes.'],
  hidden_space: ['warn', 'Contains a long run of spaces that could push something out of sight.'],
  long: ['note', 'Is very long; read it to its end.'],
  not_all_shown: ['stop', 'Holds more than is listed here; the whole of it is in the raw input.'],
  program_name: ['warn', 'The name of the program has letters outside ASCII, and may look like another.'],
  environment: ['warn', 'Changes environment variables that decide which code runs.'],
  unannounced: ['warn', 'The agent asked without announcing what it is about to do.'],
  uninspectable: ['warn', 'What this does could not be established: uninspectable.'],
  as_worded: ['warn', 'The agent gave no input for this; the command is shown as the agent words it.'],
  cut_by_agent: ['stop', 'The agent shows only the beginning of this command; the rest of it is not known.'],
} as const satisfies Record<string, readonly [Risk['level'], string]>;
type RiskCode = keyof typeof sentences;

interface Findings {
  readonly headline: string;
  readonly argv?: readonly string[];
  readonly commandText?: string;
  readonly cwd?: string;
  readonly env?: readonly string[];
  readonly paths: readonly string[];
  readonly diffs: readonly CardDiff[];
  readonly rawInput?: string | undefined;
  readonly risks: readonly RiskCode[];
  readonly payloadBytes: number;
}

const scriptOf = (argv: readonly string[]): string | null => {
  const flag = argv.findIndex((part, index) => index > 0 && /^-\w*c$/.test(part));
  return shells.has(basename(argv[0] ?? '')) && flag > 0 ? (argv[flag + 1] ?? null) : null;
};

const risksOf = (found: Findings, places: readonly Place[]): Risk[] => {
  const command = [...(found.argv ?? []), ...(found.commandText === undefined ? [] : [found.commandText])];
  const texts = [
    ...command,
    ...found.paths,
    ...(found.env ?? []),
    found.rawInput ?? '',
    ...found.diffs.map((diff) => diff.newText),
  ];
  const codes = new Set<RiskCode>(found.risks);
  for (const place of places) if (place !== 'inside' && place !== 'unknown') codes.add(place);
  if (found.paths.some((path) => agentConfiguration.test(path))) codes.add('agent_config');
  if (texts.some(hasInvisible)) codes.add('invisible');
  if ([...command, ...found.paths].some(hasHiddenSpace)) codes.add('hidden_space');
  if (/[^\x20-\x7e]/.test(found.argv?.[0] ?? '')) codes.add('program_name');
  if (found.payloadBytes > limits.outputUnits) codes.add('long');
  const risks = [...codes].map((code): Risk => ({ code, level: sentences[code][0], sentence: sentences[code][1] }));
  const script = found.commandText ?? scriptOf(found.argv ?? []);
  const operators = script === null ? [] : shellOperators(script);
  if (operators.length === 0) return risks;
  return [...risks, { code: 'shell_operators', level: 'note', sentence: `The shell acts on: ${operators.join('  ')}` }];
};

const factsOf = (found: Findings, about: About): ApprovalFacts => {
  const paths = [...new Set(found.paths)].map((path) => ({
    path: cut(path.toWellFormed(), limits.pathBytes),
    place: placeOf(path, about),
  }));
  const isCut = paths.length > 200 || found.diffs.length > 100;
  const risks = risksOf(
    isCut ? { ...found, risks: [...found.risks, 'not_all_shown'] } : found,
    paths.map(({ place }) => place),
  );
  return {
    headline: cut(visible(found.headline), 500),
    ...(found.argv === undefined ? {} : { argv: found.argv.map((part) => part.toWellFormed()) }),
    ...(found.commandText === undefined ? {} : { commandText: found.commandText.toWellFormed() }),
    ...(found.cwd === undefined ? {} : { cwd: cut(found.cwd.toWellFormed(), limits.pathBytes) }),
    ...(found.env === undefined ? {} : { env: [...found.env] }),
    paths: paths.slice(0, 200),
    diffs: found.diffs.slice(0, 100),
    ...(found.rawInput === undefined ? {} : { rawInput: found.rawInput }),
    risks,
    uninspectable: found.risks.includes('uninspectable'),
    payloadBytes: found.payloadBytes,
  };
};

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

const shownVariable = ({ name, value }: { readonly name: string; readonly value: string }): string =>
  secretName.test(name) ? `${name} (${String(value.length)} characters, hidden)` : `${name}=${value}`;

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
  if (variables.some((variable) => variable.length > 200)) risks.push('not_all_shown');
  return {
    kind: 'command',
    effects: [{ type: 'execute', argv, cwd: command.cwd }],
    detail: {
      argv,
      cwd: command.cwd,
      env: command.env.map(({ name, value }) =>
        secretName.test(name) ? { name, sha256: sha256(value) } : { name, value },
      ),
    },
    facts: factsOf(
      {
        headline: `Run ${shown(argv)}`,
        argv,
        cwd: command.cwd,
        env: variables.map((variable) => cut(variable, 200)),
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
