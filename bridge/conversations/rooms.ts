/** What main hands to conversations: the rooms below, and what time and chance are. Types only; no room is imported. */
import type { ToolCallState, WordedCommand, Agents } from '../agents/contract.ts';
import type { About, CurrentText, Described, Desk, Program, Rulebook, Seal } from '../approvals/contract.ts';
import type { Looks, Root, Workspaces } from '../files/contract.ts';
import type { Ledger } from '../ledger/contract.ts';
import type { Checkpoints, Git, Worktrees } from '../git/contract.ts';
import type { Terminals } from '../terminals/contract.ts';
import type { ApprovalFacts } from '#protocol/events.ts';
import type { Trust as TrustRoom } from '../trust/contract.ts';

export interface Describe {
  permission(call: ToolCallState, about: About, announced?: boolean, worded?: WordedCommand): Described;
  write(write: { path: string; current: CurrentText | null; content: string }, about: About): Described;
  command(
    command: { command: string; args: readonly string[]; env: readonly { name: string; value: string }[]; cwd: string },
    about: About,
  ): Described;
}

export interface RunningCommand {
  readonly pid: number;
  readonly exit: Promise<{ code: number | null; signal: string | null }>;
  /** TERM, then KILL the tree; resolves when gone. */
  kill(): Promise<void>;
}

/** Starts a command for an agent under the same containment as agents, without a shell. @throws Refusal not_found */
export type RunCommand = (command: {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly output: (chunk: Uint8Array) => void;
}) => Promise<RunningCommand>;

export type Trust = Pick<TrustRoom, 'fresh' | 'get' | 'obstacle' | 'blocked'>;

export interface Rooms {
  readonly ledger: Ledger;
  readonly desk: Desk;
  readonly rulebook: Rulebook;
  readonly seal: Seal;
  readonly agents: Agents;
  readonly workspaces: Workspaces;
  readonly looks: Looks;
  readonly trust: Trust;
  readonly git: Git;
  readonly checkpoints: Checkpoints;
  readonly worktrees: Worktrees;
  readonly terminals: Terminals;
  readonly describe: Describe;
  /** What a command would run; null where it is not known. Answers come in the order of the questions. */
  readonly programOf: (facts: ApprovalFacts) => Promise<Program | null>;
  /** Effective trust: the review of the folder found nothing, or what it found was accepted. */
  readonly trusted: (workspaceId: string) => boolean;
  readonly runCommand: RunCommand;
  readonly now: () => number;
  readonly uuid: () => string;
  readonly log: (line: Record<string, unknown>) => void;
  /** Agent processes that may live at once. */
  readonly processLimit: number;
}

export type { Root };
