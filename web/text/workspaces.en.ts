/** Sentences of conversations in a worktree of their own, and of closing a workspace (U-52). */
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import { formatCount } from './format.ts';

const files = (count: number): string => `${formatCount(count)} ${count === 1 ? 'file' : 'files'}`;

export const words = {
  continue: 'Continue in a worktree…',
  looking: 'Looking at the repository…',
  making: 'Making the worktree…',
  child: 'In a worktree',
  of: 'Worktree of',
  unknownParent: 'another conversation',
  review: 'Review changes',
  bring: 'Bring back…',
  remove: 'Remove worktree…',
  removed: 'Worktree removed',
  removeTitle: 'Remove this worktree?',
  removeBody: 'Its folder and its branch go, with every commit on it. The conversation and its receipts stay.',
  nothingLost: 'Nothing in it would be lost: all changes were brought back.',
  lost: (count: number) => `Not brought back: ${files(count)}.`,
  more: (count: number) => `and ${formatCount(count)} more`,
  unknown: 'What was not brought back cannot be told:',
  removeButton: 'Remove worktree',
  removeAnyway: 'Remove it anyway',
  active: 'Still active in it:',
  terminal: 'terminal',
  doing: (state: ConversationSummary['state'], waiting: number) =>
    waiting > 0
      ? waiting === 1
        ? 'an approval waits'
        : `${formatCount(waiting)} approvals wait`
      : state === 'idle'
        ? 'its agent is running, and idle'
        : state,
  activeCount: (count: number) => `${formatCount(count)} ${count === 1 ? 'conversation' : 'conversations'} at work`,
  waitingCount: (count: number) => `${formatCount(count)} ${count === 1 ? 'approval waits' : 'approvals wait'}`,
  worktree: 'Worktree',
  profile: {
    manifests: 'Manifests',
    notable: 'Notable',
    topLevel: 'Top level',
    head: 'Git head',
    looked: (count: number, more: boolean) => `${files(count)} looked at${more ? '; there are more.' : '.'}`,
    untrusted: 'No text of its files is part of it, since the folder is not trusted.',
    attach: 'Attach the workspace’s profile',
    file: 'workspace-profile.txt',
    remove: 'Remove the profile',
    failed: 'The profile was not attached.',
  },
} as const;
