/**
 * Trust before spawn in its reduced form (G-23): the files that run code when an agent starts are listed with digests,
 * the operator answers once for exactly these, and any change asks again. The rule not to break: the answer is for a
 * fingerprint over the root's identity and every file, never for a path. Called by conversations before each spawn and
 * by the command table.
 */
import { createHash } from 'node:crypto';
import { Refusal } from '#protocol/errors.ts';
import { canonical } from '#protocol/json.ts';
import type { TrustState } from '#protocol/methods/workspace.ts';
import type { Root } from '../files/contract.ts';
import type { Ledger, TrustRow } from '../ledger/contract.ts';
import type { Trust, TrustPattern } from './contract.ts';
import { scanFiles, type Scan } from './scan.ts';

export interface TrustParts {
  readonly read: Pick<Ledger['read'], 'trust'>;
  /** Asked anew at each scan, since custom agents come and go. */
  readonly patterns: () => readonly TrustPattern[];
  readonly now: () => number;
}

export const createTrust = ({ read, patterns, now }: TrustParts): Trust => {
  const state = (root: Root): TrustState => {
    root.check();
    return stateOf(root, scanFiles(root, patterns()), read.trust(root.workspaceId));
  };
  return {
    state,
    accept: (root, fingerprint) => {
      const current = state(root);
      if (current.fingerprint !== fingerprint) throw new Refusal('digest_mismatch');
      const count = current.files.length;
      return {
        detail: { fingerprint, workspaceId: root.workspaceId, rootSha256: root.rootSha256, files: current.files.map(({ path, sha256 }) => ({ path, sha256 })) },
        sentence: `Agents may start with ${count} ${count === 1 ? 'file' : 'files'} of this workspace that can run code.`,
        store: (tx, receiptId) => {
          tx.putTrust({ workspaceId: root.workspaceId, fingerprint, acceptedAt: now(), receiptId });
        },
      };
    },
    mayStart: (root, agentId, safeUntrusted) => safeUntrusted || isClear(state(root), agentId),
  };
};

/** Answered for, or nothing that this agent reads; a truncated scan may have missed something it reads. */
const isClear = ({ state, files, truncated }: TrustState, agentId: string): boolean =>
  state === 'none_found' || state === 'accepted' || (!truncated && !files.some(({ agents }) => agents.includes(agentId)));

const stateOf = (root: Root, { found, truncated }: Scan, row: TrustRow | null): TrustState => {
  const fingerprint = createHash('sha256')
    .update(canonical({ rootSha256: root.rootSha256, truncated, files: found.map(({ file, mark }) => ({ ...file, mark })) }))
    .digest('hex');
  const base = { workspaceId: root.workspaceId, fingerprint, files: found.map(({ file }) => file), truncated };
  if (found.length === 0 && !truncated) return { ...base, state: 'none_found' };
  if (row === null) return { ...base, state: 'unanswered' };
  if (row.fingerprint !== fingerprint) return { ...base, state: 'changed' };
  return { ...base, state: 'accepted', acceptedAt: row.acceptedAt, receiptId: row.receiptId };
};
