/**
 * Trust before spawn in its reduced form (G-23): the files that run code when an agent starts are listed with digests,
 * the operator answers once for exactly these, and any change asks again. The rule not to break: the answer is for a
 * fingerprint over the root's identity and every file, never for a path. Called by conversations before each spawn and
 * by the command table.
 */
import { createHash } from 'node:crypto';
import { Refusal } from '#protocol/errors.ts';
import { canonical, type Json } from '#protocol/json.ts';
import type { TrustState } from '#protocol/methods/workspace.ts';
import type { Seal } from '../approvals/contract.ts';
import type { Root } from '../files/contract.ts';
import type { Ledger, TrustRow } from '../ledger/contract.ts';
import type { Trust, TrustPattern } from './contract.ts';
import { scanFiles, type Scan } from './scan.ts';

export interface TrustParts {
  readonly ledger: Pick<Ledger, 'commit'> & { readonly read: Pick<Ledger['read'], 'trust'> };
  readonly seal: Pick<Seal, 'sign'>;
  readonly root: (workspaceId: string) => Root;
  /** Asked anew at each scan, since custom agents come and go. */
  readonly patterns: () => readonly TrustPattern[];
  /** True when the agent is started with a switch that keeps workspace configuration from running. */
  readonly safeUntrusted: (agentId: string) => boolean;
  readonly now: () => number;
}

export const createTrust = ({ ledger, seal, root, patterns, safeUntrusted, now }: TrustParts): Trust => {
  const look = (held: Root): TrustState =>
    stateOf(held, scanFiles(held, patterns()), ledger.read.trust(held.workspaceId));
  return {
    state: (workspaceId) => look(root(workspaceId)),
    obstacle: (workspaceId, agentId) => (safeUntrusted(agentId) ? null : obstacleOf(look(root(workspaceId)), agentId)),
    accept: async (actor, { workspaceId, fingerprint, note }, store) => {
      const held = root(workspaceId);
      const current = look(held);
      if (current.fingerprint !== fingerprint) throw new Refusal('digest_mismatch');
      return ledger.commit((tx) => {
        const what = {
          kind: 'trust',
          actor,
          detail: detailOf(held, current, note),
          sentence: sentenceOf(current),
        } as const;
        const { receiptId } = seal.sign(tx, what);
        const acceptedAt = now();
        tx.putTrust({ workspaceId, fingerprint, acceptedAt, receiptId });
        const answer: TrustState = { ...current, state: 'accepted', acceptedAt, receiptId };
        store(tx, answer);
        return answer;
      });
    },
  };
};

const detailOf = (
  root: Root,
  { workspaceId, fingerprint, files, truncated }: TrustState,
  note: string | undefined,
): Json => ({
  ...{ workspaceId, fingerprint, truncated, rootSha256: root.rootSha256 },
  files: files.map(({ path, sha256, bytes }) => ({ path, sha256, bytes })),
  ...(note !== undefined && { note }),
});

const sentenceOf = ({ files: { length } }: TrustState): string =>
  `Agents may start in this workspace, which has ${length} ${length === 1 ? 'file' : 'files'} that can run code then.`;

/** A truncated scan may have missed something that the agent reads, so it stops every agent until it is answered. */
const obstacleOf = ({ state, files, truncated }: TrustState, agentId: string): string | null => {
  if (state === 'none_found' || state === 'accepted') return null;
  const mine = files.filter(({ agents }) => agents.includes(agentId));
  if (mine.length === 0 && !truncated) return null;
  const what =
    mine.length === 1 ? '1 file' : mine.length > 1 ? `${mine.length} files` : 'more files than could be looked through';
  const when = state === 'changed' ? ', changed since you last reviewed them' : '';
  return `This folder has ${what} that can run code when the agent starts${when}. Review them first.`;
};

const stateOf = (root: Root, { found, truncated }: Scan, row: TrustRow | null): TrustState => {
  const fingerprint = createHash('sha256')
    .update(
      canonical({ rootSha256: root.rootSha256, truncated, files: found.map(({ file, mark }) => ({ ...file, mark })) }),
    )
    .digest('hex');
  const base = { workspaceId: root.workspaceId, fingerprint, files: found.map(({ file }) => file), truncated };
  if (found.length === 0 && !truncated) return { ...base, state: 'none_found' };
  if (row === null) return { ...base, state: 'unanswered' };
  if (row.fingerprint !== fingerprint) return { ...base, state: 'changed' };
  return { ...base, state: 'accepted', acceptedAt: row.acceptedAt, receiptId: row.receiptId };
};
