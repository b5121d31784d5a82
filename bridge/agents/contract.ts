/**
 * What the agents room gives: ACP programs as data, and running ones as objects. Agents never import approvals:
 * permission requests and served effects are callbacks of the host, given by the conversation.
 */
import type {
  AgentCommand,
  AgentOption,
  ApprovalOption,
  Containment,
  Enforcement,
  ModeInfo,
  PlanEntry,
  StopReason,
  ToolContent,
  ToolKind,
  ToolStatus,
} from '#protocol/events.ts';
import type { AgentSummary, PromptPart } from '#protocol/methods/conversation.ts';
import type { Tx } from '../ledger/contract.ts';

/** Merged state of a tool call: what an approval is decided on. */
export interface ToolCallState {
  readonly toolCallId: string;
  readonly title?: string | undefined;
  readonly kind?: ToolKind | undefined;
  readonly status?: ToolStatus | undefined;
  readonly locations?: readonly { path: string; line?: number | undefined }[] | undefined;
  /** Exact JSON text received. */
  readonly rawInput?: string | undefined;
  readonly rawOutput?: string | undefined;
  readonly content?: readonly ToolContent[] | undefined;
}

/** A command as the agent words it, where it asks without its tool's input and the catalogue knows where the words are. */
export interface WordedCommand {
  readonly text: string;
  /** False where the agent showed only the beginning. */
  readonly whole: boolean;
}

/** Canonical items, the pure translation of ACP updates. Unlimited in size here; the conversation and the ledger bound them. */
export type AgentItem =
  | {
      readonly type: 'text';
      readonly role: 'agent' | 'thought';
      readonly messageId: string | null;
      readonly text: string;
    }
  | { readonly type: 'image'; readonly role: 'agent'; readonly mime: string; readonly base64: string }
  | { readonly type: 'tool.called'; readonly call: ToolCallState }
  /** Only the fields that changed. */
  | { readonly type: 'tool.updated'; readonly call: ToolCallState }
  | { readonly type: 'plan'; readonly entries: readonly PlanEntry[] }
  | { readonly type: 'mode'; readonly modeId: string }
  | { readonly type: 'options'; readonly options: readonly AgentOption[] }
  | { readonly type: 'commands'; readonly commands: readonly AgentCommand[] }
  | {
      readonly type: 'usage';
      readonly usedTokens: number;
      readonly sizeTokens?: number | undefined;
      readonly cost?: { amount: string; currency: string } | undefined;
    }
  | { readonly type: 'title'; readonly title: string }
  | {
      readonly type: 'notice';
      readonly level: 'info' | 'warn' | 'error';
      readonly code: string;
      readonly sentence: string;
      readonly raw?: string | undefined;
    };

export interface PermissionRequest {
  /** Merged with what was announced before. */
  readonly call: ToolCallState;
  /** False when no tool call of that id was announced: ask with a generic card. */
  readonly announced: boolean;
  readonly worded?: WordedCommand | undefined;
  readonly options: readonly ApprovalOption[];
  /** Aborts when the agent cancels the request or its connection closes. */
  readonly signal: AbortSignal;
}
export type PermissionAnswer =
  | { readonly outcome: 'selected'; readonly optionId: string; readonly note?: string | undefined }
  | { readonly outcome: 'cancelled' };

export interface ServedTerminal {
  readonly terminalId: string;
}
/** What the conversation does for its agent. A thrown Refusal becomes a JSON-RPC error with its public sentence. */
export interface AgentHost {
  item(item: AgentItem): void;
  permission(request: PermissionRequest): Promise<PermissionAnswer>;
  readTextFile(request: { path: string; line?: number | undefined; limit?: number | undefined }): Promise<string>;
  writeTextFile(request: { path: string; content: string; signal: AbortSignal }): Promise<void>;
  createTerminal(request: {
    command: string;
    args: readonly string[];
    env: readonly { name: string; value: string }[];
    cwd?: string | undefined;
    outputByteLimit?: number | undefined;
    signal: AbortSignal;
  }): Promise<ServedTerminal>;
  terminalOutput(
    terminalId: string,
  ): Promise<{ output: string; truncated: boolean; exit: { code: number | null; signal: string | null } | null }>;
  terminalExit(terminalId: string): Promise<{ code: number | null; signal: string | null }>;
  killTerminal(terminalId: string): Promise<void>;
  releaseTerminal(terminalId: string): Promise<void>;
  progress(state: 'starting' | 'opening_session' | 'resuming', detail: string): void;
  /** The process is gone, for whatever reason; called once. */
  exited(exit: {
    reason: 'stopped' | 'crashed' | 'exited';
    code: number | null;
    signal: string | null;
    sentence: string;
  }): void;
}

/** For receipts and attestation. */
export interface AgentIdentity {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** sha256 of argv[0], and of the interpreter's entry file where argv[0] is one; hex. */
  readonly executableSha256: string;
  readonly entrySha256: string | null;
  readonly model: string | null;
  readonly session: string;
  readonly enforcement: Enforcement;
  readonly containment: Containment;
}

export interface AgentReady {
  readonly name: string;
  readonly version: string;
  readonly sessionId: string;
  readonly how: 'new' | 'resume' | 'load';
  /** Set when the former session could not be taken up and a new one was made. */
  readonly contextLost: string | null;
  readonly enforcement: Enforcement;
  readonly enforcementWhy: string;
  readonly containment: Containment;
  readonly modes: readonly ModeInfo[];
  readonly modeId: string | null;
  readonly models: readonly ModeInfo[];
  readonly modelId: string | null;
  readonly options: readonly AgentOption[];
  readonly images: boolean;
  readonly embeddedContext: boolean;
}

export interface AgentProcess {
  readonly agentId: string;
  readonly pid: number;
  readonly marker: string;
  readonly argv: readonly string[];
  readonly envNames: readonly string[];
  readonly ready: AgentReady;
  identity(): AgentIdentity;
  /** One at a time; the caller serialises (G-04). Images are read through `blob`. @throws Refusal agent_gone, agent_auth_required, agent_protocol_error */
  prompt(
    content: readonly PromptPart[],
    blob: (sha256: string) => Promise<Uint8Array>,
  ): Promise<{ stopReason: StopReason; sentence?: string }>;
  /** Sends session/cancel. Pending permissions must be answered `cancelled` by the host's owner first. */
  cancel(): void;
  /** @throws Refusal forbidden for a mode that no longer asks, agent_protocol_error */
  setMode(modeId: string): Promise<void>;
  setModel(modelId: string): Promise<void>;
  setOption(optionId: string, value: string): Promise<readonly AgentOption[]>;
  /** The ladder (L-31) without its first rung: close stdin and TERM, 2 s, KILL the tree. Idempotent; resolves when gone. */
  stop(): Promise<void>;
  /** Redacted tail of stderr, on the operator's request. */
  stderr(): string;
}

export interface StartRequest {
  readonly agentId: string;
  /** realpath of the workspace. */
  readonly cwd: string;
  /** The agent's former session, or null for a new one. */
  readonly sessionId: string | null;
  readonly modeId?: string | undefined;
  readonly host: AgentHost;
  readonly signal: AbortSignal;
  /** Called as soon as the process exists, before initialize, with what to record for the boot sweep. */
  readonly spawned: (process: {
    pid: number;
    startTime: string;
    marker: string;
    argv: readonly string[];
    envNames: readonly string[];
  }) => Promise<void>;
}

export interface Agents {
  list(): AgentSummary[];
  get(agentId: string): AgentSummary | null;
  probe(agentId: string): Promise<AgentSummary>;
  /** `signed` runs in the transaction that stores it. @throws Refusal already_exists, agent_missing, bad_request */
  add(
    spec: {
      title: string;
      command: string;
      args: readonly string[];
      env: readonly { name: string; value: string }[];
    },
    signed?: (tx: Tx, agentId: string) => void,
  ): Promise<AgentSummary>;
  enable(agentId: string, enabled: boolean): Promise<AgentSummary>;
  setDefault(agentId: string): Promise<AgentSummary>;
  remove(agentId: string): Promise<void>;
  /** @throws Refusal unknown_agent, agent_missing, agent_start_failed, agent_auth_required, agent_protocol_error, resume_failed, cancelled */
  start(request: StartRequest): Promise<AgentProcess>;
  /** Trust-relevant files of this agent (G-23): relative globs with what they can start. */
  trustPatterns(): readonly { readonly agentId: string; readonly pattern: string; readonly what: string }[];
  /** True when this agent is started with a switch that keeps workspace configuration from running. */
  safeUntrusted(agentId: string): boolean;
  containment(): { readonly kind: Containment; readonly why: string };
  /** Kills what earlier bridges left behind, by marker and (pid, start time). Returns how many. */
  sweep(rows: readonly { pid: number; startTime: string; marker: string }[]): Promise<number>;
  /** Whether this pid, or an ancestor, carries an agent marker (L-35). */
  insideAgent(pid: number): boolean;
}
