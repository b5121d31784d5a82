/** Why there is no list, in words and with the one thing to do about it. Pure. */
import type { Failure } from '#lib/state/contract.ts';
import { words } from '#lib/text/changes.en.ts';
import type { IconName } from '../shell/icons.ts';

export interface Explained {
  readonly icon: IconName;
  readonly title: string;
  readonly hint: string | undefined;
  /** `turn`: what a turn changed can still be looked at. */
  readonly act: 'retry' | 'turn';
}

const { empty } = words;
export const explained = (failure: Failure): Explained => {
  switch (failure.code) {
    case 'not_git_repository':
      return { icon: 'info', title: empty.noRepository, hint: empty.noRepositoryHint, act: 'turn' };
    case 'git_unavailable':
      return { icon: 'warn', title: empty.noGit, hint: empty.noGitHint, act: 'retry' };
    case 'git_output_too_large':
      return { icon: 'warn', title: empty.tooLarge, hint: empty.tooLargeHint, act: 'turn' };
    case 'git_timeout':
      return { icon: 'warn', title: empty.timeout, hint: empty.timeoutHint, act: 'retry' };
    case 'unsupported_git_state':
      // The bridge says what it is that cannot be read.
      return {
        icon: 'shield',
        title: empty.unsupported,
        hint: `${failure.message} ${empty.unsupportedHint}`,
        act: 'turn',
      };
    default:
      return { icon: 'warn', title: failure.message, hint: undefined, act: 'retry' };
  }
};
