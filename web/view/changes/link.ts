/** Links to changes (U-12): `/c/<id>?changes=<source>&entry=<entry>`. Loaded when one is followed. */
import { changeSource, type ChangeSource } from '#protocol/methods/git.ts';
import { z } from '#protocol/schema.ts';

/**
 * What a link to changes of a conversation names: `staged`, `unstaged`, `commit:<commit>`, `turn:<turn>`,
 * `checkpoints:<from>` or `checkpoints:<from>:<to>`, `worktree`. Undefined for anything else: nothing is opened by guess.
 */
export const sourceIn = (link: string, conversationId: string): ChangeSource | undefined => {
  const [kind, first, second] = link.split(':');
  const value = {
    staged: { kind },
    unstaged: { kind },
    commit: { kind, commit: first },
    turn: { kind, conversationId, turnId: first },
    checkpoints: { kind, conversationId, from: first, to: second ?? null },
    worktree: { kind, conversationId },
  }[kind ?? ''];
  const parsed = z.safeParse(changeSource, value);
  return parsed.success ? parsed.data : undefined;
};
