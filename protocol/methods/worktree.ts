/** worktree.*: what a child conversation changed in its own copy of the repository, brought back and removed (W-03). */
import { limits } from '../limits.ts';
import { list, sha256, text, uuid, z } from '../schema.ts';
import { entryId, sourceErrors, writePlan, writesDone } from './git.ts';
import type { Method } from './method.ts';

const conversationId = uuid;
const ids = z.optional(list(entryId, limits.gitEntries));

export const worktreeMethods = {
  /** Does exactly what `digest` stands for in the parent's folder, after a checkpoint of it; or nothing. */
  'worktree.bring': {
    params: z.strictObject({ conversationId, ids, digest: sha256 }),
    result: writesDone,
    capability: 'git',
    mutates: true,
    errors: [...sourceErrors, 'turn_active', 'digest_mismatch', 'worktree_moved', 'path_denied', 'symlink_refused'],
  },
  /** What bringing back would write into the parent's folder, file by file. `ids` absent: all of it. */
  'worktree.plan': {
    params: z.strictObject({ conversationId, ids }),
    result: writePlan,
    capability: 'git',
    mutates: false,
    errors: [...sourceErrors],
  },
  /** The folder and its branch go; the conversation stays. Without `force` only when nothing in it would be lost. */
  'worktree.remove': {
    params: z.strictObject({ conversationId, force: z.optional(z.boolean()) }),
    result: z.strictObject({ receiptId: uuid, unbrought: list(text(limits.pathBytes), 500) }),
    capability: 'git',
    mutates: true,
    errors: [...sourceErrors, 'conversation_active', 'worktree_unsaved'],
  },
} as const satisfies Record<string, Method>;
