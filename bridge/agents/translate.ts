/**
 * ACP updates → canonical items. No input or output, no clock: the only state is what tool calls of a session are known
 * to be, keyed by call id, because permissions are decided on the merged call and agents send it in pieces.
 * What cannot be read becomes a visible `unreadable_event`, never nothing (case 9); what is unknown is kept raw.
 * Used by running.ts, one Translation per session: call ids collide between sessions.
 */
import { createHash } from 'node:crypto';
import {
  toolKinds,
  toolStatuses,
  type PlanEntry,
  type ToolContent,
  type ToolKind,
  type ToolStatus,
} from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import { z } from '#protocol/schema.ts';
import type { AgentItem, ToolCallState } from './contract.ts';
import { configOptions, modeOption } from './options.ts';

/** Exact text of a member of the update (or of the tool call of a permission), undefined where it was not sent. */
export type TextOf = (...path: string[]) => string | undefined;

const nullable = <T extends z.core.$ZodType>(schema: T) => z.optional(z.nullable(schema));
const callFields = {
  toolCallId: z.string().check(z.minLength(1)),
  kind: nullable(z.string()),
  status: nullable(z.string()),
  content: nullable(z.array(z.unknown())),
  locations: nullable(z.array(z.unknown())),
};
const toolCall = z.looseObject({ ...callFields, title: z.string() });
const toolCallUpdate = z.looseObject({ ...callFields, title: nullable(z.string()) });
const chunk = z.looseObject({ content: z.looseObject({ type: z.string() }), messageId: nullable(z.string()) });
const plan = z.looseObject({ entries: z.array(z.looseObject({ content: z.string() })) });
const commands = z.looseObject({
  availableCommands: z.array(
    z.looseObject({
      name: z.string(),
      description: nullable(z.string()),
      input: nullable(z.looseObject({ hint: nullable(z.string()) })),
    }),
  ),
});
const usage = z.looseObject({
  used: z.number(),
  size: nullable(z.number()),
  cost: nullable(z.looseObject({ currency: z.string() })),
});
const title = z.looseObject({ title: nullable(z.string()) });
const mode = z.looseObject({ currentModeId: z.string() });
const options = z.looseObject({ configOptions: z.array(z.unknown()) });
const location = z.looseObject({ path: z.string(), line: nullable(z.number()) });
const textBlock = z.looseObject({ type: z.literal('text'), text: z.string() });
const imageBlock = z.looseObject({ type: z.literal('image'), data: z.string(), mimeType: z.string() });
const linkBlock = z.looseObject({ type: z.literal('resource_link'), uri: z.string(), name: nullable(z.string()) });
const resourceBlock = z.looseObject({
  type: z.literal('resource'),
  resource: z.looseObject({ uri: z.string(), text: z.string() }),
});
const diffBlock = z.looseObject({
  type: z.literal('diff'),
  path: z.string(),
  oldText: nullable(z.string()),
  newText: z.string(),
});
const terminalBlock = z.looseObject({ type: z.literal('terminal'), terminalId: z.string().check(z.minLength(1)) });
const contentBlock = z.looseObject({ type: z.literal('content'), content: z.looseObject({ type: z.string() }) });
const terminalMeta = z.looseObject({
  terminal_output_delta: nullable(z.looseObject({ terminal_id: nullable(z.string()), data: z.string() })),
  terminal_output: nullable(z.looseObject({ terminal_id: nullable(z.string()), data: z.string() })),
  terminal_exit: nullable(
    z.looseObject({ terminal_id: nullable(z.string()), exit_code: nullable(z.number()), signal: nullable(z.string()) }),
  ),
});

const parse = <T extends z.core.$ZodType>(schema: T, value: unknown): z.infer<T> | null => {
  const result = z.safeParse(schema, value);
  return result.success ? result.data : null;
};
const oneOf = <T extends string>(values: readonly T[], value: string | null | undefined): T | undefined =>
  values.find((known) => known === value);

/** Ids are opaque and as long as an agent likes; the log's are bounded. The same id always becomes the same. */
const idBytes = 128;
export const boundedId = (id: string): string =>
  id.length <= idBytes ? id : `sha256-${createHash('sha256').update(id).digest('hex')}`;

const unreadable = (what: string, raw: unknown): AgentItem => ({
  type: 'notice',
  level: 'warn',
  code: 'unreadable_event',
  sentence: `The agent sent ${what} that could not be read.`,
  raw: JSON.stringify(raw)?.slice(0, limits.inlineHeadUnits) ?? '',
});

/** Output of a terminal the agent only shows (its own, never made by terminal/create). */
interface ShownTerminal {
  output: string;
  cutBytes: number;
  /** Units that were shown last: the whole output is sent again only when it grew enough. */
  shownUnits: number;
  exitCode?: number | null;
  signal?: string | null;
}

export class Translation {
  readonly #calls = new Map<string, ToolCallState>();
  readonly #terminals = new Map<string, ShownTerminal>();
  readonly #unknown = new Map<string, number>();

  /** Items of one `update` object of session/update, in order. Never throws. */
  update(update: unknown, textOf: TextOf): AgentItem[] {
    const kind = parse(z.looseObject({ sessionUpdate: z.string() }), update)?.sessionUpdate;
    switch (kind) {
      case 'agent_message_chunk':
        return this.#chunk(update, 'agent');
      case 'agent_thought_chunk':
        return this.#chunk(update, 'thought');
      case 'user_message_chunk':
        return []; // our transcript has what the operator said
      case 'tool_call':
        return this.#called(update, textOf);
      case 'tool_call_update':
        return this.#updated(update, textOf);
      case 'plan':
        return [planItem(update)];
      case 'available_commands_update':
        return [commandsItem(update)];
      case 'current_mode_update': {
        const id = parse(mode, update)?.currentModeId;
        return [id === undefined ? unreadable('a mode', update) : { type: 'mode', modeId: id }];
      }
      case 'config_option_update':
        return optionItems(update);
      case 'session_info_update': {
        const info = parse(title, update);
        if (info === null) return [unreadable('a title', update)];
        return typeof info.title === 'string' && info.title.trim() !== '' ? [{ type: 'title', title: info.title }] : [];
      }
      case 'usage_update':
        return [usageItem(update, textOf)];
      case undefined:
        return [unreadable('an update', update)];
      default:
        return this.#unknownKind(kind, update);
    }
  }

  /**
   * The tool call of a permission request, merged with what was announced. A call that was never announced is kept, so
   * that its later updates find it. Null when it cannot be read at all.
   */
  permission(call: unknown, textOf: TextOf): { call: ToolCallState; announced: boolean; items: AgentItem[] } | null {
    const parsed = parse(toolCallUpdate, call);
    if (parsed === null) return null;
    const id = boundedId(parsed.toolCallId);
    const announced = this.#calls.has(id);
    const { change, items } = this.#read(parsed, textOf);
    const merged = this.#merge(change);
    return {
      call: merged,
      announced,
      items: [{ type: announced ? 'tool.updated' : 'tool.called', call: announced ? change : merged }, ...items],
    };
  }

  #chunk(update: unknown, role: 'agent' | 'thought'): AgentItem[] {
    const parsed = parse(chunk, update);
    if (parsed === null) return [unreadable('a piece of a message', update)];
    const messageId = typeof parsed.messageId === 'string' ? boundedId(parsed.messageId) : null;
    const { content } = parsed;
    const text = blockText(content);
    if (text !== null) return text === '' ? [] : [{ type: 'text', role, messageId, text }];
    const image = parse(imageBlock, content);
    if (image !== null && role === 'agent') return [{ type: 'image', role, mime: image.mimeType, base64: image.data }];
    return [unreadable('a piece of a message', { ...content, data: undefined })];
  }

  #called(update: unknown, textOf: TextOf): AgentItem[] {
    const parsed = parse(toolCall, update);
    if (parsed === null) return [unreadable('a tool call', update)];
    const known = this.#calls.has(boundedId(parsed.toolCallId)); // announced again, or asked about before
    const { change, items } = this.#read(parsed, textOf);
    const call = this.#merge({ status: known ? undefined : 'pending', ...change });
    return [known ? { type: 'tool.updated', call: change } : { type: 'tool.called', call }, ...items];
  }

  #updated(update: unknown, textOf: TextOf): AgentItem[] {
    const parsed = parse(toolCallUpdate, update);
    if (parsed === null) return [unreadable('a tool call update', update)];
    const known = this.#calls.has(boundedId(parsed.toolCallId));
    const { change, items } = this.#read(parsed, textOf);
    const call = this.#merge(change);
    if (!known) return [{ type: 'tool.called', call }, ...items];
    return Object.keys(change).length === 1 ? items : [{ type: 'tool.updated', call: change }, ...items];
  }

  /** The fields that were given, and items that came with them and fit no field. */
  #read(parsed: z.infer<typeof toolCallUpdate>, textOf: TextOf): { change: ToolCallState; items: AgentItem[] } {
    const items: AgentItem[] = [];
    const status: ToolStatus | undefined = oneOf(toolStatuses, parsed.status);
    const kind: ToolKind | undefined =
      typeof parsed.kind === 'string' ? (oneOf(toolKinds, parsed.kind) ?? 'other') : undefined;
    const shown = this.#shownTerminal(parsed, status);
    const content = Array.isArray(parsed.content)
      ? parsed.content.map((item) => this.#content(item, items))
      : undefined;
    const locations = Array.isArray(parsed.locations)
      ? parsed.locations.flatMap((item) => {
          const read = parse(location, item);
          if (read === null) return [];
          return [
            Number.isSafeInteger(read.line) && (read.line as number) >= 0
              ? { path: read.path, line: read.line as number }
              : { path: read.path },
          ];
        })
      : undefined;
    const change: ToolCallState = {
      toolCallId: boundedId(parsed.toolCallId),
      ...defined('title', parsed.title ?? undefined),
      ...defined('kind', kind),
      ...defined('status', status),
      ...defined('locations', locations),
      ...defined('rawInput', notNull(textOf('rawInput'))),
      ...defined('rawOutput', notNull(textOf('rawOutput'))),
      ...defined('content', content ?? (shown === null ? undefined : [shown])),
    };
    return { change, items };
  }

  #merge(change: ToolCallState): ToolCallState {
    const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
    const merged = { ...this.#calls.get(change.toolCallId), ...given, toolCallId: change.toolCallId };
    this.#calls.set(change.toolCallId, merged);
    return merged;
  }

  #content(item: unknown, items: AgentItem[]): ToolContent {
    const block = parse(contentBlock, item);
    if (block !== null) {
      const link = parse(linkBlock, block.content);
      if (link !== null) return { type: 'link', uri: link.uri, name: link.name ?? link.uri };
      const text = blockText(block.content);
      if (text !== null) return { type: 'text', text };
      const image = parse(imageBlock, block.content);
      if (image !== null) {
        items.push({ type: 'image', role: 'agent', mime: image.mimeType, base64: image.data });
        return { type: 'text', text: `(an image, ${image.mimeType}, kept with the messages)` };
      }
    }
    const diff = parse(diffBlock, item);
    if (diff !== null) return { type: 'diff', path: diff.path, oldText: diff.oldText ?? null, newText: diff.newText };
    const terminal = parse(terminalBlock, item);
    if (terminal !== null)
      return terminalContent(boundedId(terminal.terminalId), this.#terminals.get(terminal.terminalId));
    // Of a kind this version does not know: shown as it came.
    return { type: 'text', text: JSON.stringify(item) ?? '' };
  }

  /** Codex, Claude and Pi send the output of their own terminals in `_meta`, piece by piece. */
  #shownTerminal(parsed: z.infer<typeof toolCallUpdate>, status: ToolStatus | undefined): ToolContent | null {
    const meta = parse(terminalMeta, parsed['_meta']);
    const output = meta?.terminal_output_delta ?? meta?.terminal_output;
    const exit = meta?.terminal_exit;
    if (meta === null || (output === undefined && exit === undefined)) return null;
    const id = output?.terminal_id ?? exit?.terminal_id ?? parsed.toolCallId;
    const terminal = this.#terminals.get(id) ?? { output: '', cutBytes: 0, shownUnits: 0 };
    this.#terminals.set(id, terminal);
    if (output !== undefined && output !== null) {
      const all = terminal.output + output.data;
      terminal.output = all.slice(-limits.agentTerminalBytes);
      terminal.cutBytes += all.length - terminal.output.length;
    }
    if (exit !== undefined && exit !== null) {
      terminal.exitCode = Number.isSafeInteger(exit.exit_code) ? (exit.exit_code as number) : null;
      terminal.signal = exit.signal ?? null;
    }
    // Sending the whole for each piece would be quadratic (agents.md 7.14).
    const grown = terminal.output.length + terminal.cutBytes - terminal.shownUnits;
    if (exit === undefined && status === undefined && terminal.shownUnits > 0 && grown < limits.outputUnits)
      return null;
    terminal.shownUnits = terminal.output.length + terminal.cutBytes;
    return terminalContent(boundedId(id), terminal);
  }

  #unknownKind(kind: string, update: unknown): AgentItem[] {
    const seen = (this.#unknown.get(kind) ?? 0) + 1;
    if (this.#unknown.size < limits.unknownUpdates || this.#unknown.has(kind)) this.#unknown.set(kind, seen);
    // A chatty one would bury the transcript; the rest stay in the tee.
    if (seen > limits.unknownUpdates || !this.#unknown.has(kind)) return [];
    const raw = JSON.stringify(update)?.slice(0, limits.inlineHeadUnits) ?? '';
    return [
      {
        type: 'notice',
        level: 'info',
        code: 'unknown_update',
        sentence: 'The agent sent a kind of update that this version does not know.',
        raw,
      },
    ];
  }
}

/** `{ [name]: value }`, or nothing: a field that was not given must not replace the former one. */
const defined = <N extends string, V>(name: N, value: V | undefined): { [K in N]?: V } =>
  value === undefined ? {} : ({ [name]: value } as { [K in N]?: V });
/** An explicit null says nothing more than an absent member. */
const notNull = (text: string | undefined): string | undefined => (text === 'null' ? undefined : text);

const blockText = (block: unknown): string | null => {
  const text = parse(textBlock, block);
  if (text !== null) return text.text;
  const link = parse(linkBlock, block);
  if (link !== null) return link.name === undefined || link.name === null ? link.uri : `${link.name} (${link.uri})`;
  return parse(resourceBlock, block)?.resource.text ?? null;
};

const terminalContent = (terminalId: string, shown: ShownTerminal | undefined): ToolContent => ({
  type: 'terminal',
  terminalId,
  output: shown?.output ?? '',
  ...(shown !== undefined && shown.cutBytes > 0 ? { truncatedBytes: shown.cutBytes } : {}),
  ...(shown?.exitCode === undefined ? {} : { exitCode: shown.exitCode }),
  ...(shown?.signal === undefined || shown.signal === null ? {} : { signal: shown.signal }),
});

const planItem = (update: unknown): AgentItem => {
  const parsed = parse(plan, update);
  if (parsed === null) return unreadable('a plan', update);
  const entries = parsed.entries.map((entry): PlanEntry => ({
    content: entry.content,
    priority: oneOf(['high', 'medium', 'low'], entry['priority'] as string) ?? 'medium',
    status: oneOf(['pending', 'in_progress', 'completed'], entry['status'] as string) ?? 'pending',
  }));
  return { type: 'plan', entries };
};

const commandsItem = (update: unknown): AgentItem => {
  const parsed = parse(commands, update);
  if (parsed === null) return unreadable('a list of commands', update);
  const read = parsed.availableCommands.map((command) => {
    const hint = command.input?.hint;
    return {
      name: command.name,
      description: command.description ?? '',
      ...(typeof hint === 'string' ? { hint } : {}),
    };
  });
  return { type: 'commands', commands: read };
};

const optionItems = (update: unknown): AgentItem[] => {
  const parsed = parse(options, update);
  if (parsed === null) return [unreadable('its options', update)];
  const read = configOptions(parsed.configOptions);
  const modeNow = modeOption(read);
  return [
    { type: 'options', options: read },
    ...(modeNow === null ? [] : [{ type: 'mode', modeId: modeNow.value } as const]),
  ];
};

const usageItem = (update: unknown, textOf: TextOf): AgentItem => {
  const parsed = parse(usage, update);
  if (parsed === null || !(parsed.used >= 0)) return unreadable('its usage', update);
  // The amount is kept as the text received: a sum of money must not pass through a float.
  const amount = textOf('cost', 'amount');
  const cost =
    parsed.cost && amount !== undefined
      ? { amount: amount.replaceAll('"', ''), currency: parsed.cost.currency }
      : undefined;
  return {
    type: 'usage',
    usedTokens: Math.round(parsed.used),
    ...(typeof parsed.size === 'number' && parsed.size >= 0 ? { sizeTokens: Math.round(parsed.size) } : {}),
    ...(cost === undefined ? {} : { cost }),
  };
};
