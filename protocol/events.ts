/**
 * The immutable records of a conversation's log (D-40, D-41): one schema per type, closed here, open on reading:
 * a type this version does not know is kept whole and shown as a safe generic row.
 */
import { limits } from './limits.ts';
import { ruleScope } from './policy.ts';
import { count, list, name, sha256, text, time, uuid, z } from './schema.ts';

const id = name(128);
/** Agent text: opaque until rendered inert. */
const words = text(limits.eventBytes);
/** A path as the agent or the bridge gave it; shown, never opened without the walker. */
const path = text(limits.pathBytes);

/** Content kept outside the event. `head` and `tail` are what the first look shows. */
export const blobRef = z.strictObject({
  sha256,
  bytes: count,
  mime: text(128),
  name: z.optional(text(limits.nameBytes)),
  head: z.optional(text(limits.inlineHeadUnits)),
  tail: z.optional(text(limits.inlineTailUnits)),
});
export type BlobRef = z.infer<typeof blobRef>;

export const stopReasons = [
  'end_turn',
  'max_tokens',
  'max_turn_requests',
  'refusal',
  'cancelled',
  /** The process ended, or the bridge did, before the agent said how the turn ended. */
  'interrupted',
  /** The agent answered the prompt with an error, or with end_turn and not a word. */
  'failed',
] as const;
export type StopReason = (typeof stopReasons)[number];

export const toolKinds = [
  'read',
  'edit',
  'delete',
  'move',
  'search',
  'execute',
  'think',
  'fetch',
  'switch_mode',
  'other',
] as const;
export type ToolKind = (typeof toolKinds)[number];
export const toolStatuses = ['pending', 'in_progress', 'completed', 'failed', 'cancelled'] as const;
export type ToolStatus = (typeof toolStatuses)[number];

/** `mediated` · `cooperative` · `unrestricted`: how far the agent's effects must pass through the bridge (G-20). */
export const enforcements = ['mediated', 'cooperative', 'unrestricted'] as const;
export type Enforcement = (typeof enforcements)[number];
/** How surely the process tree ends with the bridge and is kept from its secrets (L-30). */
export const containments = ['bubblewrap', 'best_effort'] as const;
export type Containment = (typeof containments)[number];

const location = z.strictObject({ path, line: z.optional(count) });
/** A change as the agent or the bridge describes it. Texts above the inline bound are blobs. */
const diffContent = z.strictObject({
  type: z.literal('diff'),
  path,
  oldText: z.nullable(words),
  newText: words,
  oldBlob: z.optional(blobRef),
  newBlob: z.optional(blobRef),
});
export const toolContent = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: words, blob: z.optional(blobRef) }),
  diffContent,
  z.strictObject({ type: z.literal('image'), blob: blobRef }),
  z.strictObject({ type: z.literal('link'), uri: text(4096), name: text(500) }),
  /** Output of a terminal the bridge ran for the agent (P-04), or of one the agent shows. */
  z.strictObject({
    type: z.literal('terminal'),
    terminalId: id,
    command: z.optional(words),
    output: words,
    truncatedBytes: z.optional(count),
    exitCode: z.optional(z.nullable(z.int())),
    signal: z.optional(z.nullable(text(32))),
    blob: z.optional(blobRef),
  }),
]);
export type ToolContent = z.infer<typeof toolContent>;

const toolFields = {
  toolCallId: id,
  title: z.optional(text(2000)),
  kind: z.optional(z.enum(toolKinds)),
  status: z.optional(z.enum(toolStatuses)),
  locations: z.optional(list(location, 200)),
  /** The exact JSON text received, cut with a blob beside it when large. */
  rawInput: z.optional(words),
  rawInputBlob: z.optional(blobRef),
  rawOutput: z.optional(words),
  rawOutputBlob: z.optional(blobRef),
  content: z.optional(list(toolContent, 500)),
};

export const planEntry = z.strictObject({
  content: text(4000),
  priority: z.enum(['high', 'medium', 'low']),
  status: z.enum(['pending', 'in_progress', 'completed']),
});
export const modeInfo = z.strictObject({ id: text(500), name: text(500), description: z.optional(text(4000)) });
export const optionChoice = z.strictObject({ value: text(500), name: text(500), description: z.optional(text(4000)) });
export const agentOption = z.strictObject({
  id: text(500),
  name: text(500),
  category: z.optional(text(100)),
  type: z.enum(['select', 'boolean']),
  /** For `boolean`: "true" or "false". */
  value: text(500),
  choices: list(optionChoice, 500),
});
export const agentCommand = z.strictObject({
  name: text(200),
  description: text(4000),
  hint: z.optional(text(500)),
});
export type PlanEntry = z.infer<typeof planEntry>;
export type ModeInfo = z.infer<typeof modeInfo>;
export type AgentOption = z.infer<typeof agentOption>;
export type AgentCommand = z.infer<typeof agentCommand>;

/** An option offered for a permission, kind kept raw: unknown kinds are shown and never chosen for the operator. */
export const approvalOption = z.strictObject({
  id: text(500),
  name: text(500),
  kind: text(100),
  /** What choosing it means to us; `other` asks with a generic card. `hidden` options are never offered (G-21). */
  meaning: z.enum(['allow', 'deny', 'other']),
});
export type ApprovalOption = z.infer<typeof approvalOption>;

export const actionKinds = ['tool', 'file.write', 'command', 'trust', 'reveal', 'agent.add'] as const;
export type ActionKind = (typeof actionKinds)[number];

/** A change on the card. `source` says who established it: `bridge` read the file itself, `agent` merely says so. */
export const cardDiff = z.strictObject({
  path,
  source: z.enum(['bridge', 'agent']),
  oldText: z.nullable(words),
  newText: words,
  oldBlob: z.optional(blobRef),
  newBlob: z.optional(blobRef),
  added: count,
  removed: count,
});
export type CardDiff = z.infer<typeof cardDiff>;

/**
 * What a shell parser, or an argv by itself, says of a command. Everything is text of the command itself, never
 * run or expanded; null where only the shell would know.
 */
export const commandReading = z.strictObject({
  form: z.enum(['argv', 'shell']),
  /** In order. `name` as it would be looked up, after trampolines were resolved; `via` the trampolines passed, outermost first. */
  programs: list(
    z.strictObject({
      name: z.nullable(text(1000)),
      args: list(z.nullable(text(4000)), 200),
      via: list(text(100), 20),
    }),
    100,
  ),
  /** `&&` `||` `|` `|&` `;` `&` `newline` `subshell` `group` `!`, and `if` `for` `while` `case` `function` `coproc` `[[` `((`, in order of appearance. */
  operators: list(text(20), 200),
  redirections: list(
    z.strictObject({
      operator: text(8),
      target: z.nullable(text(limits.pathBytes)),
      place: z.enum(['inside', 'outside', 'secret', 'agent_config', 'device', 'unknown']),
    }),
    100,
  ),
  /** Text inside `$(…)`, backquotes and `<(…)`. */
  substitutions: list(text(1000), 50),
  /** Variables set for a program or by assignment; names only. */
  assignments: list(text(200), 100),
  hereDocuments: count,
  /** Host names and addresses in URLs and in the arguments of programs known to connect. */
  hosts: list(text(300), 50),
  install: z.optional(
    z.strictObject({
      manager: text(40),
      packages: list(text(300), 100),
      registry: z.optional(text(500)),
      global: z.boolean(),
      /** Lifecycle scripts of packages may run. */
      scripts: z.boolean(),
    }),
  ),
  /** Why it cannot be read to its end; plain sentences; empty when it can. */
  uninspectable: list(text(300), 20),
  /**
   * One program of words that are all known, no operator, substitution, assignment, trampoline, line break; nothing
   * redirected but input from inside, descriptors and /dev/null. Only this may match by program.
   */
  simple: z.boolean(),
});
export type CommandReading = z.infer<typeof commandReading>;

/** What the bridge itself established about an action (principle 2); the agent's words are kept apart. */
export const approvalFacts = z.strictObject({
  /** One plain sentence by the bridge: "Write src/date.ts", "Run npm test". Never the agent's title. */
  headline: text(500),
  argv: z.optional(list(text(limits.actionBytes), 1000)),
  /** A command line whose parts are not known as argv (an agent's own shell tool). */
  commandText: z.optional(words),
  cwd: z.optional(path),
  /** What `argv` or `commandText` would do, as parsed. */
  reading: z.optional(commandReading),
  env: z.optional(list(text(200), 200)),
  paths: list(z.strictObject({ path, place: z.enum(['inside', 'outside', 'secret', 'agent_config', 'unknown']) }), 200),
  diffs: list(cardDiff, 100),
  /** Exact JSON text of the tool's input, when there is one. */
  rawInput: z.optional(words),
  rawInputBlob: z.optional(blobRef),
  /** Plain sentences: "Writes outside the workspace", "Contains invisible characters". */
  risks: list(z.strictObject({ code: text(64), sentence: text(500), level: z.enum(['note', 'warn', 'stop']) }), 50),
  /** Nothing about the effect could be established: say "uninspectable" on the card. */
  uninspectable: z.boolean(),
  payloadBytes: count,
});
export type ApprovalFacts = z.infer<typeof approvalFacts>;

/** What an "always" could save: the first scope is the narrowest, and the one `remember` alone saves. */
export const ruleOffer = z.strictObject({ scopes: list(ruleScope, 6).check(z.minLength(1)) });
export type RuleOffer = z.infer<typeof ruleOffer>;

export const withdrawReasons = ['agent', 'turn_ended', 'conversation_closed', 'bridge_restarted', 'changed'] as const;
export type WithdrawReason = (typeof withdrawReasons)[number];
export const outcomes = ['ok', 'failed', 'cancelled', 'uncertain'] as const;
export type Outcome = (typeof outcomes)[number];
export const receiptKinds = [
  'genesis',
  'decision',
  'outcome',
  'policy',
  'trust',
  'reveal',
  'restore',
  'worktree',
  'session',
  'key-rotation',
  'recovery',
] as const;
export type ReceiptKind = (typeof receiptKinds)[number];

export const eventData = {
  'conversation.created': z.strictObject({
    workspaceId: text(100),
    workspacePath: path,
    agentId: text(100),
    agentTitle: text(200),
    title: text(limits.titleUnits),
    /** The conversation it continues. */
    parentId: z.optional(text(100)),
    /** Workspaces it may read beside its own. */
    references: z.optional(list(text(100), limits.references)),
  }),
  'conversation.renamed': z.strictObject({
    title: text(limits.titleUnits),
    by: z.enum(['operator', 'agent', 'prompt']),
  }),
  'conversation.archived': z.strictObject({ archived: z.boolean() }),
  /** The agent process was closed on request; the history stays. */
  'conversation.closed': z.strictObject({ by: z.enum(['operator', 'bridge_stopped', 'idle']) }),
  /** The retained transcript reached its cap; later output is unsaved. */
  'conversation.limit': z.strictObject({ bytes: count, capBytes: count }),

  'agent.started': z.strictObject({
    agentId: text(100),
    containment: z.enum(containments),
    /** Executable and arguments, for the operator; no environment values. */
    argv: list(text(4096), 100),
    envNames: list(text(200), 200),
    how: z.enum(['new', 'resume', 'load']),
    pid: z.optional(count),
  }),
  'agent.ready': z.strictObject({
    agentId: text(100),
    name: text(200),
    version: text(100),
    sessionId: text(500),
    enforcement: z.enum(enforcements),
    /** Why the level is what it is, one sentence. */
    enforcementWhy: text(500),
    containment: z.enum(containments),
    modes: list(modeInfo, 100),
    modeId: z.optional(text(500)),
    options: list(agentOption, 100),
    models: list(modeInfo, 500),
    modelId: z.optional(text(500)),
    /** Prompt capabilities the composer may use. */
    images: z.boolean(),
    embeddedContext: z.boolean(),
  }),
  'agent.resumed': z.strictObject({ how: z.enum(['resume', 'load']) }),
  'agent.exited': z.strictObject({
    reason: z.enum(['stopped', 'idle', 'crashed', 'exited', 'bridge_stopped', 'bridge_killed']),
    code: z.optional(z.nullable(z.int())),
    signal: z.optional(z.nullable(text(32))),
    sentence: text(1000),
  }),
  /** Start, authentication or protocol failure with its exact reason and the command that mends it (G-05). */
  'agent.error': z.strictObject({
    code: text(64),
    sentence: text(2000),
    mend: z.optional(text(1000)),
    mendCommand: z.optional(text(1000)),
  }),
  'agent.contextLost': z.strictObject({ sentence: text(1000) }),

  /** The user message of the turn is the `message` event that follows in the same transaction. */
  'turn.started': z.strictObject({ messageId: id, by: z.enum(['operator', 'queue', 'cli']) }),
  'turn.ended': z.strictObject({
    stopReason: z.enum(stopReasons),
    durationMs: count,
    sentence: z.optional(text(1000)),
    /** Paths written by approved actions of this turn. */
    changedPaths: list(path, 500),
  }),
  message: z.strictObject({
    messageId: id,
    role: z.enum(['user', 'agent', 'thought']),
    text: words,
    blob: z.optional(blobRef),
    attachments: z.optional(list(blobRef, limits.promptBlobs)),
    interrupted: z.optional(z.boolean()),
    /** A part of a message that was cut at a tool call or a limit; the next part has the same messageId and a higher part. */
    part: z.optional(count),
  }),
  'tool.called': z.strictObject(toolFields),
  /** Each field given replaces the former value; fields not given stay. */
  'tool.updated': z.strictObject(toolFields),
  plan: z.strictObject({ entries: list(planEntry, 200) }),
  mode: z.strictObject({ modeId: text(500), by: z.enum(['operator', 'agent', 'bridge']) }),
  model: z.strictObject({ modelId: text(500), by: z.enum(['operator', 'agent']) }),
  option: z.strictObject({ options: list(agentOption, 100) }),
  commands: z.strictObject({ commands: list(agentCommand, 500) }),
  usage: z.strictObject({
    usedTokens: count,
    sizeTokens: z.optional(count),
    /** Decimal text, so that it can be signed and added without floats. */
    cost: z.optional(z.strictObject({ amount: text(40), currency: text(10) })),
  }),

  'approval.requested': z.strictObject({
    approvalId: uuid,
    toolCallId: z.optional(id),
    kind: z.enum(actionKinds),
    /** sha256 of the canonical action bytes; a decision must carry it. */
    digest: sha256,
    actionBytes: count,
    facts: approvalFacts,
    /** The agent's own words, outside the digest, labelled as such. */
    words: z.strictObject({ title: z.optional(text(2000)), description: z.optional(text(16_000)) }),
    options: list(approvalOption, 50),
    rule: z.nullable(ruleOffer),
    /** Why it was asked or decided, by the bridge: R-15. */
    because: z.optional(text(1000)),
    enforcement: z.enum(enforcements),
    containment: z.enum(containments),
    expiresAt: time,
  }),
  'approval.decided': z.strictObject({
    approvalId: uuid,
    digest: sha256,
    value: z.enum(['allow', 'deny']),
    optionId: text(500),
    by: z.enum(['operator', 'rule', 'cli']),
    /** The rule's id and sentence, when a rule decided. */
    rule: z.optional(text(1000)),
    note: z.optional(text(limits.noteUnits)),
    remembered: z.optional(z.boolean()),
    receiptId: uuid,
  }),
  'approval.withdrawn': z.strictObject({ approvalId: uuid, reason: z.enum(withdrawReasons) }),
  'approval.expired': z.strictObject({ approvalId: uuid, receiptId: z.optional(uuid) }),
  receipt: z.strictObject({
    receiptId: uuid,
    receiptSeq: count,
    kind: z.enum(receiptKinds),
    approvalId: z.optional(uuid),
    outcome: z.optional(z.enum(outcomes)),
    sentence: z.optional(text(500)),
  }),

  'queue.added': z.strictObject({
    queueId: uuid,
    text: words,
    blob: z.optional(blobRef),
    attachments: z.optional(list(blobRef, limits.promptBlobs)),
  }),
  'queue.removed': z.strictObject({ queueId: uuid, why: z.enum(['operator', 'sent', 'cleared']) }),
  'queue.paused': z.strictObject({ paused: z.boolean(), why: z.enum(['restart', 'failure', 'stop', 'operator']) }),

  /** The files were recorded in the conversation's private store (F-23). */
  checkpoint: z.strictObject({
    checkpointId: uuid,
    why: z.enum(['before_turn', 'after_turn', 'before_restore']),
    files: count,
    bytes: count,
    skipped: count,
  }),
  /** Files were put back to a checkpoint, or brought from a child's worktree. */
  restored: z.strictObject({
    /** Null for what was brought back. */
    checkpointId: z.nullable(uuid),
    /** The child conversation it was brought from. */
    fromConversationId: z.optional(uuid),
    undoCheckpointId: z.nullable(uuid),
    paths: list(path, 500),
    written: count,
    removed: count,
    outcome: z.enum(outcomes),
    receiptId: uuid,
    sentence: z.optional(text(500)),
  }),

  'trust.changed': z.strictObject({
    workspaceId: text(100),
    state: z.enum(['accepted', 'changed', 'none_found', 'withdrawn']),
    files: count,
    receiptId: z.optional(uuid),
  }),
  'operator.reveal': z.strictObject({ path, receiptId: z.optional(uuid) }),
  /** Something the operator should see that is none of the above: an unreadable event of the agent, a refused call. */
  notice: z.strictObject({
    level: z.enum(['info', 'warn', 'error']),
    code: text(64),
    sentence: text(2000),
    /** What was received, cut to a bound; shown as inert text on request. */
    raw: z.optional(text(16_000)),
  }),
} as const satisfies Record<string, z.core.$ZodType>;

export type EventType = keyof typeof eventData;
export type EventData<T extends EventType> = z.infer<(typeof eventData)[T]>;
export const eventTypes = Object.keys(eventData) as readonly EventType[];

const envelope = {
  id: uuid,
  /** A conversation id, or `bridge` for the bridge's own stream. */
  conversationId: name(64),
  seq: count,
  at: time,
  turnId: z.optional(uuid),
  operationId: z.optional(uuid),
};
/** The envelope of any event; `data` is checked by `knownEvent` where the type is known. */
export const anyEvent = z.strictObject({ ...envelope, type: name(64), data: z.record(z.string(), z.unknown()) });
export type AnyEvent = z.infer<typeof anyEvent>;

type Envelope = Omit<AnyEvent, 'type' | 'data'>;
export type EventOf<T extends EventType> = Envelope & { readonly type: T; readonly data: EventData<T> };
/** A known event, discriminated by `type`. */
export type Event = { [T in EventType]: EventOf<T> }[EventType];
/** What a room asks the ledger to append; the ledger adds id, seq and time. */
export type EventDraft = {
  [T in EventType]: { type: T; data: EventData<T>; turnId?: string | undefined; operationId?: string | undefined };
}[EventType];

/** The event with checked data, or null where the type or its data is not of this version (shown as a generic row). */
export const knownEvent = (event: AnyEvent): Event | null => {
  const schema = Object.hasOwn(eventData, event.type) ? eventData[event.type as EventType] : undefined;
  if (schema === undefined || !z.safeParse(schema, event.data).success) return null;
  return event as unknown as Event;
};
