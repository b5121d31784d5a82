/** Sentences of putting files back (U-52). */
import { formatCount } from './format.ts';

const files = (count: number): string => `${formatCount(count)} ${count === 1 ? 'file' : 'files'}`;

export const words = {
  review: 'Review changes',
  restore: 'Restore…',
  undo: 'Undo…',
  title: 'Put files back',
  undoTitle: 'Undo putting files back',
  intro: 'As they were before this turn. What is there now is recorded first, so that this can be undone.',
  undoIntro: 'As they were just before files were put back. This, too, can be undone.',
  loading: 'Comparing with the files as they are…',
  nothing: 'Nothing to put back: the files are as they were.',
  all: (chosen: number, count: number) => `${formatCount(chosen)} of ${files(count)}`,
  allLabel: 'Choose all files',
  what: { write: 'put back', create: 'bring back', remove: 'remove' },
  refused: (why: string) => `Not done. ${why}`,
  movedHint: 'Files that changed since are not chosen unless you choose them.',
  put: (count: number) => (count === 0 ? 'Put files back' : `Put ${files(count)} back`),
  working: 'Putting files back…',
  stale: 'The files changed while this was open. Look again at what would be done.',
  again: 'Look again',
  done: (written: number, removed: number) =>
    [
      ...(written > 0 ? [`${files(written)} put back`] : []),
      ...(removed > 0 ? [`${files(removed)} removed`] : []),
    ].join(', ') + '.',
  undone: 'Undone: the files are as they were before.',
  bringTitle: 'Bring back from the worktree',
  bringIntro:
    'Into the folder this conversation was continued from. What is there now is recorded first, so that this can be undone.',
  bringNothing: 'Nothing to bring back: all of it is in the folder already.',
  bringMovedHint: 'Where both changed, the changes are put together; choose those files to bring them, too.',
  bringWorking: 'Bringing files back…',
  bring: (count: number) => (count === 0 ? 'Bring files back' : `Bring ${files(count)} back`),
  brought: (written: number, removed: number) =>
    [
      ...(written > 0 ? [`${files(written)} brought back`] : []),
      ...(removed > 0 ? [`${files(removed)} removed`] : []),
    ].join(', ') + '.',
  receipt: 'Receipt',
  undoNow: 'Undo',
  close: 'Done',
} as const;
