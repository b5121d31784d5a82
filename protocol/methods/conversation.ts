/** conversation.*, queue.*, agent.*: transcripts, and the programs that talk in them. */
import {
  agentCommand,
  agentOption,
  anyEvent,
  blobRef,
  containments,
  enforcements,
  modeInfo,
  stopReasons,
} from '../events.ts';
import { draft } from '../frames.ts';
import { limits } from '../limits.ts';
import { count, list, name, text, time, uuid, z } from '../schema.ts';
import type { Method } from './method.ts';

const conversationId = name(64);

/** The folder a child conversation works in: a copy of its parent's repository at one commit (W-03). */
export const worktreeInfo = z.strictObject({
  parentWorkspaceId: uuid,
  parentWorkspacePath: text(limits.pathBytes),
  branch: text(200),
  commit: text(64),
  removed: z.boolean(),
});

/** Another workspace the agent may read in, and never write. */
export const workspaceReference = z.strictObject({
  workspaceId: uuid,
  path: text(limits.pathBytes),
  name: text(limits.pathBytes),
});
export type WorkspaceReference = z.infer<typeof workspaceReference>;

/** Header state: everything a list row or a header needs without reading events. */
export const conversationSummary = z.strictObject({
  conversationId,
  workspaceId: uuid,
  workspacePath: text(limits.pathBytes),
  /** The conversation it was continued from. */
  parentId: z.optional(conversationId),
  worktree: z.optional(worktreeInfo),
  /** As they were when the conversation was made; one that was closed since is not read. */
  references: z.optional(list(workspaceReference, limits.references)),
  title: text(limits.titleUnits),
  agentId: text(100),
  agentTitle: text(200),
  createdAt: time,
  /** Time of the last event. */
  updatedAt: time,
  lastSeq: count,
  archived: z.boolean(),
  /** What is true right now, from live processes, never from the database (case 8). */
  state: z.enum(['idle', 'starting', 'working', 'waiting', 'stopping']),
  /** The agent process is alive. */
  live: z.boolean(),
  lastStop: z.nullable(z.enum(stopReasons)),
  pendingApprovals: count,
  queue: list(z.strictObject({ queueId: uuid, text: text(2000), attachments: count, at: time }), limits.queue),
  queuePaused: z.boolean(),
  enforcement: z.nullable(z.enum(enforcements)),
  enforcementWhy: z.nullable(text(500)),
  containment: z.nullable(z.enum(containments)),
  agentVersion: z.nullable(text(100)),
  modes: list(modeInfo, 100),
  modeId: z.nullable(text(500)),
  models: list(modeInfo, 500),
  modelId: z.nullable(text(500)),
  options: list(agentOption, 100),
  commands: list(agentCommand, 500),
  images: z.boolean(),
  transcriptBytes: count,
  transcriptFull: z.boolean(),
  /** Why nothing can be sent here, or null: a workspace that is gone, an agent that is not set up. */
  problem: z.nullable(text(500)),
});
export type ConversationSummary = z.infer<typeof conversationSummary>;

/**
 * The transcript is a row of contiguous blocks: one begins at seq 1 and one at every `turn.started`, and each reaches
 * to the next one's start. The outline is their first seqs, ascending; the oldest are merged beyond the bound.
 */
export const outline = list(count, limits.outlineBlocks);

export const promptPart = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: text(limits.promptBytes) }),
  z.strictObject({ type: z.literal('blob'), blob: blobRef }),
  /** A file of the workspace, sent as a link the agent may read. */
  z.strictObject({ type: z.literal('file'), path: text(limits.pathBytes) }),
]);
export type PromptPart = z.infer<typeof promptPart>;

export const agentSummary = z.strictObject({
  agentId: text(100),
  title: text(200),
  /** One line for people: what it is. */
  about: text(500),
  bundled: z.boolean(),
  scripted: z.boolean(),
  enabled: z.boolean(),
  isDefault: z.boolean(),
  state: z.enum(['unknown', 'ready', 'missing', 'signed_out', 'broken']),
  version: z.nullable(text(100)),
  /** Absolute path of what would run, once found. */
  executable: z.nullable(text(limits.pathBytes)),
  /** What is missing, one sentence; and the exact command that mends it. */
  problem: z.nullable(text(500)),
  mendCommand: z.nullable(text(500)),
  enforcement: z.enum(enforcements),
  enforcementWhy: text(500),
  probedAt: z.nullable(time),
  argv: list(text(4096), 100),
  envNames: list(text(200), 100),
});
export type AgentSummary = z.infer<typeof agentSummary>;

const agentErrors = [
  'unknown_agent',
  'agent_missing',
  'agent_start_failed',
  'agent_auth_required',
  'agent_protocol_error',
  'agent_gone',
  'agent_limit',
  'resume_failed',
  'not_trusted',
  'workspace_unknown',
  'workspace_unavailable',
  'workspace_changed',
  'workspace_leased',
] as const;

export const conversationMethods = {
  'agent.add': {
    /** Any ACP program, started without a shell. `env` values never leave the bridge again. */
    params: z.strictObject({
      title: name(200),
      command: name(limits.pathBytes),
      args: list(text(4096), 100),
      env: list(z.strictObject({ name: name(200), value: text(4096) }), 100),
    }),
    result: agentSummary,
    capability: 'agent.manage',
    mutates: true,
    errors: ['agent_missing', 'already_exists'],
  },
  'agent.enable': {
    params: z.strictObject({ agentId: text(100), enabled: z.boolean() }),
    result: agentSummary,
    capability: 'agent.manage',
    mutates: true,
    errors: ['unknown_agent'],
  },
  'agent.list': {
    params: z.strictObject({}),
    result: z.strictObject({ agents: list(agentSummary, 128) }),
    capability: 'agent.read',
    mutates: false,
    errors: [],
  },
  /** Looks for the program and asks for its version; runs nothing else of it. */
  'agent.probe': {
    params: z.strictObject({ agentId: text(100) }),
    result: agentSummary,
    capability: 'agent.read',
    mutates: false,
    errors: ['unknown_agent'],
  },
  'agent.remove': {
    params: z.strictObject({ agentId: text(100) }),
    result: z.strictObject({}),
    capability: 'agent.manage',
    mutates: true,
    errors: ['unknown_agent', 'conversation_active'],
  },
  'agent.setDefault': {
    params: z.strictObject({ agentId: text(100) }),
    result: agentSummary,
    capability: 'agent.manage',
    mutates: true,
    errors: ['unknown_agent'],
  },
  'conversation.archive': {
    params: z.strictObject({ conversationId, archived: z.boolean() }),
    result: conversationSummary,
    capability: 'conversation.write',
    mutates: true,
    errors: ['unknown_conversation', 'conversation_active'],
  },
  'conversation.cancel': {
    /** Ends the running turn: ACP cancel, then the stop ladder (L-31). Finished effects are not undone. */
    params: z.strictObject({ conversationId }),
    result: z.strictObject({}),
    capability: 'conversation.send',
    mutates: true,
    errors: ['unknown_conversation', 'no_turn'],
  },
  'conversation.close': {
    /** Ends the agent process; the history stays. */
    params: z.strictObject({ conversationId }),
    result: conversationSummary,
    capability: 'conversation.write',
    mutates: true,
    errors: ['unknown_conversation'],
  },
  'conversation.create': {
    params: z.strictObject({
      workspaceId: uuid,
      agentId: text(100),
      title: z.optional(text(limits.titleUnits)),
      modeId: z.optional(text(500)),
      /** An unrestricted agent starts only when this says so (G-20). */
      acceptUnrestricted: z.optional(z.boolean()),
      /** The conversation this one continues; of the same workspace. */
      parentId: z.optional(conversationId),
      /** In a copy of the repository at its last commit, made for it; with `parentId` only. */
      worktree: z.optional(z.boolean()),
      /** With what is uncommitted in the folder, as far as it may be taken along; with `worktree` only. */
      uncommitted: z.optional(z.boolean()),
      /** Other open workspaces it may read and never write (W-03); each once, not its own. */
      references: z.optional(list(uuid, limits.references)),
    }),
    result: conversationSummary,
    capability: 'conversation.write',
    mutates: true,
    errors: [
      ...agentErrors,
      'unknown_conversation',
      'reference_closed',
      'git_unavailable',
      'not_git_repository',
      'git_timeout',
      'git_output_too_large',
      'unsupported_git_state',
      'repository_changed',
      'checkpoint_too_large',
    ],
  },
  'conversation.delete': {
    /** Events, blobs and action bytes go; receipts stay. */
    params: z.strictObject({ conversationId }),
    result: z.strictObject({}),
    capability: 'conversation.write',
    mutates: true,
    errors: ['unknown_conversation', 'conversation_active'],
  },
  'conversation.export': {
    params: z.strictObject({ conversationId, format: z.enum(['json', 'md', 'html']) }),
    /** The document as a blob of the conversation. */
    result: z.strictObject({ blob: blobRef }),
    capability: 'conversation.read',
    mutates: false,
    errors: ['unknown_conversation', 'content_too_large'],
  },
  'conversation.get': {
    params: z.strictObject({ conversationId }),
    result: conversationSummary,
    capability: 'conversation.read',
    mutates: false,
    errors: ['unknown_conversation'],
  },
  'conversation.history': {
    /** Exactly one of the two. `aroundSeq` centres; `beforeSeq` ends before. */
    params: z.strictObject({
      conversationId,
      beforeSeq: z.optional(count),
      aroundSeq: z.optional(count),
      limit: z.optional(count),
    }),
    result: z.strictObject({
      /** Ascending, contiguous. */
      events: list(anyEvent, limits.pageEvents),
      firstSeq: count,
      lastSeq: count,
    }),
    capability: 'conversation.read',
    mutates: false,
    errors: ['unknown_conversation'],
  },
  'conversation.list': {
    params: z.strictObject({
      workspaceId: z.optional(uuid),
      archived: z.optional(z.boolean()),
      /** Newest first; pass the last row's `updatedAt` to go on. */
      before: z.optional(time),
      limit: z.optional(count),
    }),
    result: z.strictObject({ conversations: list(conversationSummary, limits.conversationsPage), more: z.boolean() }),
    capability: 'conversation.read',
    mutates: false,
    errors: [],
  },
  'conversation.rename': {
    params: z.strictObject({ conversationId, title: name(limits.titleUnits) }),
    result: conversationSummary,
    capability: 'conversation.write',
    mutates: true,
    errors: ['unknown_conversation'],
  },
  'conversation.restart': {
    /** Starts the agent process again: resume, load, or new with a divider; never twice at once. */
    params: z.strictObject({ conversationId }),
    result: conversationSummary,
    capability: 'conversation.write',
    mutates: true,
    errors: ['unknown_conversation', 'turn_active', ...agentErrors],
  },
  'conversation.search': {
    /** Full text over all conversations, newest first. */
    params: z.strictObject({ query: name(400), conversationId: z.optional(conversationId), limit: z.optional(count) }),
    result: z.strictObject({
      hits: list(
        z.strictObject({
          conversationId,
          title: text(limits.titleUnits),
          seq: count,
          at: time,
          type: text(64),
          /** Marked up with U+0001 and U+0002 around each match; everything else is inert text. */
          snippet: text(1000),
        }),
        limits.searchResults,
      ),
      more: z.boolean(),
    }),
    capability: 'conversation.read',
    mutates: false,
    errors: [],
  },
  'conversation.send': {
    /** Answers once the turn's start (or the queue entry) is stored; it never means done (D-20). */
    params: z.strictObject({
      conversationId,
      delivery: z.enum(['prompt', 'queue']),
      content: list(promptPart, limits.promptBlobs + 1),
      /** Answers for this turn what would be asked; a terminal's operator only, written into each receipt. */
      standing: z.optional(z.enum(['allow', 'deny'])),
    }),
    result: z.strictObject({ turnId: z.optional(uuid), queueId: z.optional(uuid), seq: count }),
    capability: 'conversation.send',
    mutates: true,
    errors: [
      'unknown_conversation',
      'turn_active',
      'queue_full',
      'transcript_full',
      'content_too_large',
      'blob_unknown',
      'invalid_path',
      ...agentErrors,
    ],
  },
  'conversation.setMode': {
    params: z.strictObject({ conversationId, modeId: name(500) }),
    result: conversationSummary,
    capability: 'conversation.send',
    mutates: true,
    errors: ['unknown_conversation', 'agent_gone', 'agent_protocol_error', 'forbidden'],
  },
  'conversation.setModel': {
    params: z.strictObject({ conversationId, modelId: name(500) }),
    result: conversationSummary,
    capability: 'conversation.send',
    mutates: true,
    errors: ['unknown_conversation', 'agent_gone', 'agent_protocol_error'],
  },
  'conversation.setOption': {
    params: z.strictObject({ conversationId, optionId: name(500), value: text(500) }),
    result: conversationSummary,
    capability: 'conversation.send',
    mutates: true,
    errors: ['unknown_conversation', 'agent_gone', 'agent_protocol_error', 'forbidden'],
  },
  'conversation.subscribe': {
    /** With `after`, resumes: everything since, or `snapshot_required` where that is more than a page. */
    params: z.strictObject({
      conversationId,
      after: z.optional(z.strictObject({ lineage: name(64), seq: count })),
    }),
    result: z.strictObject({
      sub: conversationId,
      summary: conversationSummary,
      /** Frozen under the append lock: `events` end here, the live tail begins after it once acknowledged. */
      boundarySeq: count,
      resumed: z.boolean(),
      outline,
      /** Newest page, or everything since `after`; ascending, contiguous up to `boundarySeq`. */
      events: list(anyEvent, limits.pageEvents),
      draft: z.nullable(draft),
    }),
    capability: 'conversation.read',
    mutates: false,
    errors: ['unknown_conversation', 'snapshot_required'],
  },
  'conversation.unsubscribe': {
    params: z.strictObject({ conversationId }),
    result: z.strictObject({}),
    capability: 'conversation.read',
    mutates: false,
    errors: ['unknown_subscription'],
  },
  'queue.remove': {
    params: z.strictObject({ conversationId, queueId: uuid }),
    result: z.strictObject({}),
    capability: 'conversation.send',
    mutates: true,
    errors: ['unknown_conversation', 'not_found'],
  },
  /** Takes up a queue that was paused by a restart, a failure or Stop. */
  'queue.resume': {
    params: z.strictObject({ conversationId }),
    result: z.strictObject({}),
    capability: 'conversation.send',
    mutates: true,
    errors: ['unknown_conversation', ...agentErrors],
  },
} as const satisfies Record<string, Method>;
