/** What the trust room gives: which files of a workspace run code when an agent starts, and whether that was answered (G-23, reduced). */
import type { Json } from '#protocol/json.ts';
import type { TrustState } from '#protocol/methods/workspace.ts';
import type { Root } from '../files/contract.ts';
import type { Tx } from '../ledger/contract.ts';

/** One kind of file an agent reads at its start. `pattern` is a relative glob: `*` within a name, `**` for any depth. */
export interface TrustPattern {
  readonly agentId: string;
  readonly pattern: string;
  readonly what: string;
}

export interface Trust {
  /** Scans anew; bounded by `limits.trustFiles` and `limits.trustEntries`. @throws Refusal workspace_changed, workspace_unavailable */
  state(root: Root): TrustState;
  /**
   * Scans anew and compares with what the operator was shown. The caller signs `detail` and calls `store` in one
   * transaction. @throws Refusal digest_mismatch when the files are no longer those
   */
  accept(root: Root, fingerprint: string): { readonly detail: Json; readonly sentence: string; store(tx: Tx, receiptId: string): void };
  /** Whether this agent may be spawned here; `safeUntrusted` when its switch keeps the workspace's configuration from running. */
  mayStart(root: Root, agentId: string, safeUntrusted: boolean): boolean;
}
