/** What the trust room gives: which files of a workspace run code when an agent starts, and whether that was answered (G-23, reduced). */
import type { Actor } from '#protocol/actor.ts';
import type { Params } from '#protocol/methods.ts';
import type { TrustState } from '#protocol/methods/workspace.ts';
import type { Tx } from '../ledger/contract.ts';

/** One kind of file an agent reads at its start. `pattern` is a relative glob: `*` within a name, `**` for any depth. */
export interface TrustPattern {
  readonly agentId: string;
  readonly pattern: string;
  readonly what: string;
}

export interface Trust {
  /** Scans anew; bounded by `limits.trustFiles` and `limits.trustEntries`. @throws Refusal as `Workspaces.root` */
  state(workspaceId: string): TrustState;
  /** Null when this agent may be spawned here; otherwise why not, in one sentence. @throws Refusal as `Workspaces.root` */
  obstacle(workspaceId: string, agentId: string): string | null;
  /**
   * The operator's answer for exactly the files of `fingerprint`: row, receipt and `store` in one transaction.
   * @throws Refusal digest_mismatch when the files are no longer those
   */
  accept(
    actor: Actor,
    params: Params<'trust.accept'>,
    store: (tx: Tx, answer: TrustState) => void,
  ): Promise<TrustState>;
}
