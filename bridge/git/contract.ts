/**
 * What the git room gives: what changed, read without running anything of the repository, and the checkpoints of the
 * files around each turn. Every call is bounded by `limits.gitMs` and `limits.gitBytes` and ends with its signal.
 */
import type { Actor } from '#protocol/actor.ts';
import type { Answer, Params } from '#protocol/methods.ts';
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import type { ChangeSource, CheckpointInfo, WritePlan } from '#protocol/methods/git.ts';
import type { Root } from '../files/contract.ts';
import type { Tx } from '../ledger/contract.ts';

/** Two states of files, as trees in one object store that the bridge owns. */
export interface TreePair {
  /** Absolute path of a bare git directory with the bridge's own configuration. */
  readonly gitDirectory: string;
  readonly from: string;
  readonly to: string;
}

/** Sources that are pairs of trees; who keeps them says which. @throws Refusal checkpoint_unavailable, unknown_conversation */
export type PairOf = (
  root: Root,
  of: Extract<ChangeSource, { kind: 'turn' | 'checkpoints' | 'worktree' }>,
  signal: AbortSignal,
) => Promise<TreePair>;

/** @throws Refusal git_unavailable, not_git_repository, git_timeout, git_output_too_large, unsupported_git_state, repository_changed */
export interface Git {
  status(root: Root, signal: AbortSignal): Promise<Answer<'git.status'>>;
  changes(root: Root, of: ChangeSource, signal: AbortSignal): Promise<Answer<'git.changes'>>;
  diff(root: Root, params: Params<'git.diff'>, signal: AbortSignal): Promise<Answer<'git.diff'>>;
  side(root: Root, params: Params<'git.side'>, signal: AbortSignal): Promise<Answer<'git.side'>>;
  log(root: Root, params: Params<'git.log'>, signal: AbortSignal): Promise<Answer<'git.log'>>;
  show(root: Root, params: Params<'git.show'>, signal: AbortSignal): Promise<Answer<'git.show'>>;
}

/** One run of git under a git directory of the bridge's, with an environment built from empty. */
export type RunGit = (what: {
  readonly gitDirectory: string;
  /** Where files are looked at; null for none. */
  readonly workTree: string | null;
  /** Instead of the git directory's own; may be several, the first is written to. */
  readonly objects?: readonly string[];
  readonly index?: string;
  /** After git's own options; paths only behind `--`. */
  readonly args: readonly string[];
  readonly input?: Uint8Array;
  /** Exit codes that are an answer; only 0 where absent. */
  readonly codes?: readonly number[];
  readonly maxBytes?: number;
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
}) => Promise<{ readonly code: number; readonly stdout: Buffer }>;

/** Folders made for child conversations (W-03). Work of one conversation is in order. */
export interface Worktrees {
  /**
   * A copy of the parent's repository at its last commit, open as a workspace; then `store`, in the transaction that
   * ends it. With `uncommitted` its files are the parent's as they are now, as far as they may be taken along.
   * Nothing is left of one that fails. @throws Refusal not_git_repository, git_*, checkpoint_too_large,
   * repository_changed, workspace_*
   */
  make<T>(
    actor: Actor,
    what: {
      readonly conversationId: string;
      readonly parentId: string;
      readonly title: string;
      readonly uncommitted?: boolean;
    },
    store: (tx: Tx, made: { readonly workspaceId: string; readonly path: string }) => T,
  ): Promise<T>;
  /** Undefined for a conversation that works where it is. */
  info(conversationId: string): ConversationSummary['worktree'];
  /** There is a worktree of it, or one that was made from it. */
  holds(conversationId: string): boolean;
  plan(params: Params<'worktree.plan'>, signal: AbortSignal): Promise<WritePlan>;
  /** Signed before and after (kind `worktree`) in the parent conversation; `store` commits with the second. */
  bring(
    actor: Actor,
    params: Params<'worktree.bring'>,
    store: (tx: Tx, answer: Answer<'worktree.bring'>) => void,
  ): Promise<Answer<'worktree.bring'>>;
  /** Nothing runs in it any more; the caller saw to that. */
  remove(
    actor: Actor,
    params: Params<'worktree.remove'>,
    store: (tx: Tx, answer: Answer<'worktree.remove'>) => void,
  ): Promise<Answer<'worktree.remove'>>;
  /** From what it began with to what it is. @throws Refusal not_found, unknown_conversation */
  pairOf(root: Root, conversationId: string, signal: AbortSignal): Promise<TreePair>;
}

/** What a conversation asks of its checkpoints (F-23). Work of one conversation is in order. */
export interface Checkpoints {
  /**
   * Records the files as they are, unless they are as the last checkpoint recorded them, which is then returned.
   * Null, with a line in the log, where none can be made; then `absent` says why. Never throws for what it finds.
   */
  record(
    conversationId: string,
    why: CheckpointInfo['why'],
    turnId: string | null,
    signal: AbortSignal,
  ): Promise<CheckpointInfo | null>;
  list(conversationId: string): Answer<'checkpoint.list'>;
  plan(params: Params<'checkpoint.plan'>, signal: AbortSignal): Promise<WritePlan>;
  /** Signed before and after (kind `restore`); `store` commits with the second. */
  restore(
    actor: Actor,
    params: Params<'checkpoint.restore'>,
    store: (tx: Tx, answer: Answer<'checkpoint.restore'>) => void,
  ): Promise<Answer<'checkpoint.restore'>>;
  pairOf: PairOf;
  /** Paths that differ between the ends of a turn; none where it has no two ends. @throws Refusal git_* */
  changedPaths(conversationId: string, turnId: string): Promise<string[]>;
  /** The conversation was deleted: its store goes. */
  forget(conversationId: string): Promise<void>;
}
