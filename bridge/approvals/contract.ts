/** What the approvals room gives: the desk where every action waits, and the seal that signs what became of it. */
import type { Actor } from '#protocol/actor.ts';
import type { ActionKind, ApprovalFacts, ApprovalOption, Outcome, WithdrawReason } from '#protocol/events.ts';
import type { Json } from '#protocol/json.ts';
import type { ApprovalView } from '#protocol/methods/approval.ts';
import type { Answer, MethodName, Params } from '#protocol/methods.ts';
import type { PolicyAnswer, RuleDraft } from '#protocol/policy.ts';
import type { AgentIdentity } from '../agents/contract.ts';
import type { ReceiptRow, Tx } from '../ledger/contract.ts';
import type { PolicyRequest } from './policy/request.ts';

/** Who runs the action, for the action bytes and the receipt. */
export type ActingAgent = AgentIdentity;
export interface ActingWorkspace {
  readonly id: string;
  /** Digest of canonical path, dev and ino. */
  readonly rootSha256: string;
  readonly path: string;
  /** Commit the walker read from .git, or null. */
  readonly gitHead: string | null;
}

/** A text file as it is now. */
export interface CurrentText {
  readonly text: string;
  readonly revision: string;
  readonly sha256: string;
}
/** What a describer may look at to establish facts. */
export interface About {
  readonly workspacePath: string;
  /** Relative to the workspace, or null outside of it; grammar only. */
  relative(path: string): string | null;
  isSecret(relative: string): boolean;
  /** Null where there is no such text file, or it may not be read. */
  readCurrent(relative: string): CurrentText | null;
}

/** What the pure describers (`describe.ts`, `permission.ts`) make of a request: the exact part and the shown part. */
export interface Described {
  readonly kind: ActionKind;
  readonly effects: readonly Json[];
  /** Exact: argv, cwd, environment changes; path, revision, content hash; tool and rawInput text. */
  readonly detail: Json;
  readonly facts: ApprovalFacts;
  readonly words: { readonly title?: string | undefined; readonly description?: string | undefined };
}

/** A program as it is on disk: what a rule about a command is bound to. */
export interface Program {
  /** realpath. */
  readonly path: string;
  readonly sha256: string;
}

export interface ApprovalRequest extends Described {
  readonly conversationId: string;
  readonly turnId: string | null;
  readonly toolCallId: string | null;
  readonly agent: ActingAgent;
  readonly workspace: ActingWorkspace;
  /** As the agent offered them (hidden ones already dropped), or the bridge's own allow/deny for served effects. */
  readonly options: readonly ApprovalOption[];
  /** What the command would run; absent or null where it is not known. */
  readonly program?: Program | null | undefined;
  /** A path it names leads through a symbolic link: only exact rules may allow it. */
  readonly linked?: boolean | undefined;
  /** Aborts: withdrawn{agent}. */
  readonly signal?: AbortSignal | undefined;
}

export type Verdict =
  | {
      readonly value: 'allow' | 'deny';
      readonly approvalId: string;
      readonly receiptId: string;
      readonly optionId: string;
      readonly note?: string | undefined;
    }
  | { readonly value: 'withdrawn'; readonly approvalId: string; readonly reason: WithdrawReason }
  | { readonly value: 'expired'; readonly approvalId: string };

/** How `bridge run --allow all|none` answers what would be asked, in a conversation it owns. Reject rules still act. */
export type StandingAnswer = { readonly value: 'allow' | 'deny'; readonly rule: string };

export interface Desk {
  /**
   * Makes the action and its digest, asks the policy, and otherwise waits for the operator. Resolves only after the
   * decision and its receipt are durable. Never rejects for a decision; rejects with Refusal read_only or when full.
   */
  ask(request: ApprovalRequest): Promise<Verdict>;
  /** Check order R-11. `store` runs in the same transaction, so that the operation's answer commits with the decision. */
  decide(
    actor: Actor,
    params: Params<'approval.decide'>,
    store?: (tx: Tx, answer: { receiptId: string; receiptSeq: number }) => void,
  ): Promise<{ receiptId: string; receiptSeq: number }>;
  /** Pending approvals of a conversation (or one of them) become withdrawn; the waiting `ask` resolves. */
  withdraw(
    where: { conversationId: string; approvalId?: string; toolCallId?: string },
    reason: WithdrawReason,
  ): Promise<void>;
  /** Signs what came of an allowed action, exactly once; later calls for the same approval are ignored. */
  outcome(
    approvalId: string,
    outcome: Outcome,
    result: { resultSha256?: string | undefined; startedAt: number; endedAt: number; sentence?: string | undefined },
  ): Promise<void>;
  /** An allowed, unused permission of this conversation that names the same effect; consumed by this call. */
  consume(
    conversationId: string,
    effect:
      | { type: 'write'; path: string; contentSha256: string }
      | { type: 'execute'; argv: readonly string[]; cwd: string },
  ): { approvalId: string; receiptId: string } | null;
  standing(conversationId: string, answer: StandingAnswer | null): void;
  list(params: Params<'approval.list'>): { approvals: ApprovalView[]; more: boolean };
  get(approvalId: string): ApprovalView | null;
  /** What the rules see of an approval that waits; null for any other. */
  considered(approvalId: string): PolicyRequest | null;
  /** At boot, in one transaction with the rest of recovery: pending → withdrawn{bridge_restarted}. */
  recover(tx: Tx): void;
  close(): void;
}

/** Stores the operation's answer in the transaction of the change. */
type Store<M extends MethodName> = (tx: Tx, answer: Answer<M>) => void;

/**
 * The rules: kept in the ledger, each change of them signed by a `policy` receipt in its transaction, in force for the
 * next request. Changing them is for the operator: Refusal forbidden for anyone inside an agent.
 */
export interface Rulebook {
  get(): Answer<'policy.get'>;
  presets(): Answer<'policy.presets'>;
  put(actor: Actor, params: Params<'policy.put'>, store?: Store<'policy.put'>): Promise<Answer<'policy.put'>>;
  forget(
    actor: Actor,
    params: Params<'policy.forget'>,
    store?: Store<'policy.forget'>,
  ): Promise<Answer<'policy.forget'>>;
  load(actor: Actor, params: Params<'policy.load'>, store?: Store<'policy.load'>): Promise<Answer<'policy.load'>>;
  preset(
    actor: Actor,
    params: Params<'policy.preset'>,
    store?: Store<'policy.preset'>,
  ): Promise<Answer<'policy.preset'>>;
  /** `request`: of the approval it is tried on. */
  preview(draft: RuleDraft, request: PolicyRequest | null): Answer<'policy.preview'>;
  /** `text` of `.countersign/rules.json`, null where there is none; hostile. Bounded by the caller. */
  suggestions(workspaceId: string, text: string | null): Omit<Answer<'policy.suggestions'>, 'path'>;
  /** Tries a request on the rules, or on `drafts` instead of them. */
  test(request: ApprovalRequest, trusted: boolean, drafts?: readonly RuleDraft[]): PolicyAnswer;
  /** At boot: the chosen preset as this version has it, `careful` on a new installation. */
  install(tx: Tx): void;
}

/** Receipts that are not about an approval: genesis, session, trust, reveal, policy, recovery. Signed inside the caller's transaction. */
export interface Seal {
  readonly keyId: string;
  readonly publicKeyPem: string;
  sign(tx: Tx, what: SealInput): ReceiptRow;
  /**
   * Genesis, once per installation; called at boot before listening.
   * @throws Refusal unsafe_key when the receipts so far were signed by another key.
   */
  genesis(tx: Tx): void;
  /** The receipt that carries a session's page key, which its decisions are checked with; once per session, later calls do nothing. */
  session(
    tx: Tx,
    session: { readonly sessionId: string; readonly keyId: string; readonly publicKeySpki: Uint8Array },
  ): void;
}
export interface SealInput {
  readonly kind: 'policy' | 'trust' | 'reveal' | 'restore' | 'worktree' | 'recovery' | 'session';
  readonly conversationId?: string | undefined;
  readonly actor: Actor | null;
  /** Canonical detail; becomes the action bytes of the receipt. No prompt or file text, no secret. */
  readonly detail: Json;
  readonly sentence: string;
}
export interface ReceiptReader {
  list(params: Params<'receipt.list'>): Answer<'receipt.list'>;
  /** @throws Refusal unknown_receipt */
  get(receiptId: string): Answer<'receipt.get'>;
  page(params: Params<'receipt.page'>): Answer<'receipt.page'>;
  /** Under the newest checkpoint. @throws Refusal unknown_receipt, read_only where none holds it yet */
  proof(receiptId: string): Answer<'receipt.proof'>;
  /** One receipt with those it depends on. @throws Refusal unknown_receipt */
  verify(receiptId: string): Answer<'receipt.verify'>;
  /** @throws Refusal unknown_receipt for sizes the log does not have */
  consistency(params: Params<'log.consistency'>): Answer<'log.consistency'>;
}
