/**
 * How the describers look at a workspace: through its guarded root, never past it. Used for real requests
 * (effects.ts) and for the made-up ones that rules are tried on (samples.ts), so that both find the same facts.
 */
import { createHash } from 'node:crypto';
import type { ApprovalFacts } from '#protocol/events.ts';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { About } from '../approvals/contract.ts';
import type { Root } from '../files/contract.ts';

export const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export const aboutRoot = (root: Root): About => ({
  workspacePath: root.path,
  relative: (path) => root.relative(path),
  isSecret: (relative) => root.isSecret(relative),
  readCurrent: (relative) => {
    try {
      const file = root.readText(relative, limits.readBytes);
      return file === null ? null : { text: file.text, revision: file.revision, sha256: sha256(file.text) };
    } catch (error) {
      if (error instanceof Refusal) return null;
      throw error;
    }
  },
});

/** Whether a path that lies inside by its name is, or leads through, a symbolic link. */
export const leadsThroughLink = (root: Root, { paths }: ApprovalFacts): boolean =>
  paths.some(({ path, place }) => {
    const relative = place === 'inside' ? root.relative(path) : null;
    if (relative === null) return false;
    try {
      return root.stat(relative).type === 'symlink';
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return error.code === 'symlink_refused';
    }
  });
