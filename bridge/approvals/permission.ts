/**
 * A permission an agent asks for its own tool, described, pure (R-01 to R-03): the exact part that is hashed and the facts
 * a person sees. The rule not to break: the agent's title and description go only into `words`. Called by the
 * conversations room through its `Describe`.
 */
import { isAbsolute, join } from 'node:path';
import type { CardDiff, ToolContent, ToolKind } from '#protocol/events.ts';
import type { Json } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import type { ToolCallState, WordedCommand } from '../agents/contract.ts';
import type { About, Described } from './contract.ts';
import { countChanges } from './diff.ts';
import { bytesOf, cut, factsOf, named, sha256, shown } from './facts.ts';
import type { RiskCode } from './risks.ts';

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
