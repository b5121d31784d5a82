/** Sentences of what a new worktree begins with (W-03); not part of the first page. */
import { limits } from '#protocol/limits.ts';
import { formatCount } from './format.ts';

const files = (count: number): string => `${formatCount(count)} ${count === 1 ? 'file' : 'files'}`;

export const words = {
  own: 'In its own worktree',
  about:
    'Works in a copy of this repository at its last commit, on a branch of its own. This folder stays as it is until you bring something back.',
  at: (branch: string | null, commit: string) => (branch === null ? `At ${commit}.` : `From ${branch} at ${commit}.`),
  uncommitted: (count: number) =>
    `${files(count)} with uncommitted changes ${count === 1 ? 'is' : 'are'} not in it as ${count === 1 ? 'it is' : 'they are'} now.`,
  along: (count: number) => `With the uncommitted changes (${files(count)})`,
  alongAbout: 'Files are taken as they are in this folder when you start; nothing is staged there.',
  conflicts: (count: number) => `${files(count)} in conflict ${count === 1 ? 'keeps its' : 'keep their'} marks.`,
  left: (secret: number, repositories: number, names: number) => {
    const left = [
      secret > 0 ? `${files(secret)} kept secret` : '',
      repositories > 0
        ? repositories === 1
          ? 'a repository within this one'
          : `${formatCount(repositories)} repositories within this one`
        : '',
      names > 0 ? `${files(names)} with ${names === 1 ? 'a name' : 'names'} that cannot be written` : '',
    ].filter((each) => each !== '');
    return left.length === 0 ? '' : `Left out: ${left.join(', ')}.`;
  },
  alongLeft: `Files over ${limits.checkpointFileBytes / 1024 / 1024} MiB and links that lead out are left out too; the conversation says what was.`,
  filters: 'Files that a program of the repository would fetch (LFS) stay pointers.',
  unborn: 'There is no commit in this repository yet, so there is nothing to begin with.',
} as const;
