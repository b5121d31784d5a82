/** What the trust room gives: the review of a workspace, the operator's answer to it, and what follows for agents. */
import type { Actor } from '#protocol/actor.ts';
import type { Params } from '#protocol/methods.ts';
import type { TrustState } from '#protocol/methods/trust.ts';
import type { Tx } from '../ledger/contract.ts';

/** One kind of file an agent reads at its start. `pattern` is a relative glob: `*` within a name, `**` for any depth. */
export interface TrustPattern {
  readonly agentId: string;
  readonly pattern: string;
  readonly what: string;
}

type Store = (tx: Tx, answer: TrustState) => void;

export interface Trust {
  /**
   * Reviews where that is due: never done, old, another root, or watched files that changed. Resolves at once otherwise.
   * Before anything is started here. @throws Refusal as `Workspaces.root`
   */
  fresh(workspaceId: string): Promise<void>;
  /** As `fresh`, but waits no longer than `limits.trustWaitMs`; the answer then says that a review is under way. */
  get(workspaceId: string): Promise<TrustState>;
  /** Reviews now, files that did not change aside. */
  review(workspaceId: string): Promise<TrustState>;
  /** Why this agent may not be prompted here, in one sentence; null when it may. By the last review and the files as they are. */
  obstacle(workspaceId: string, agentId: string): string | null;
  /** Why nothing may be allowed here: blocked and not accepted. Null otherwise. Never throws. */
  blocked(workspaceId: string): string | null;
  /** Effective trust is `trusted`, and no watched file changed since the review. False for what cannot be looked at. */
  trusted(workspaceId: string): boolean;
  /**
   * The operator's answer for exactly what `fingerprint` is of: row, event, receipt and `store` in one transaction.
   * @throws Refusal digest_mismatch when there is something else by now
   */
  accept(actor: Actor, params: Params<'trust.accept'>, store: Store): Promise<TrustState>;
  /** @throws Refusal not_found where nothing is accepted */
  withdraw(actor: Actor, params: Params<'trust.withdraw'>, store: Store): Promise<TrustState>;
  /** Ends reviews and scans under way. */
  close(): Promise<void>;
}

/** A program run under the bridge's supervision, its whole tree ended by `kill`. Handed over by the composition. */
export type RunScanner = (command: {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly output: (chunk: Uint8Array) => void;
}) => Promise<{ readonly exit: Promise<{ code: number | null; signal: string | null }>; kill(): Promise<void> }>;

/** A malware scanner found on this machine. */
export interface Scanner {
  readonly engine: 'clamdscan' | 'clamscan';
  /** Absolute. */
  readonly program: string;
}
