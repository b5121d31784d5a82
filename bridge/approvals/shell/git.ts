/**
 * What a call of git does that its name does not say: settings and options that run programs, aliases, the network, its
 * own configuration. The rule not to break: a subcommand or option that is not known here is said to be so. Pure.
 */
import { word, wordSet, type Scope, type Sheet, type Word } from './sheet.ts';

const gitNetwork = wordSet('clone fetch pull push ls-remote remote submodule archive');
const gitKnown = wordSet(
  'add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap checkout cherry ' +
    'cherry-pick clean clone commit commit-graph config count-objects describe diff diff-files diff-index diff-tree ' +
    'fetch format-patch for-each-ref fsck gc grep hash-object help init log ls-files ls-remote ls-tree maintenance ' +
    'merge merge-base merge-file merge-tree mktree mv name-rev notes pack-refs prune pull push range-diff read-tree ' +
    'rebase reflog remote repack replace rerere reset restore rev-list rev-parse revert rm shortlog show show-branch ' +
    'show-ref sparse-checkout stage stash status submodule switch symbolic-ref tag update-index update-ref var ' +
    'verify-commit verify-tag version whatchanged worktree write-tree',
);
const harmlessGitSetting =
  /^(user\.(name|email)|color\.[\w.]+|core\.(quotepath|autocrlf|abbrev)|advice\.\w+|init\.defaultbranch|log\.\w+|diff\.(algorithm|renames)|pull\.(rebase|ff)|commit\.gpgsign|tag\.gpgsign)(=|$)/i;
/** Options of git itself, before the subcommand, and whether they have a value. */
const gitOptions =
  /^(-[pP]|--(version|help|html-path|man-path|info-path|paginate|no-pager|no-replace-objects|no-lazy-fetch|no-optional-locks|no-advice|bare|literal-pathspecs|glob-pathspecs|noglob-pathspecs|icase-pathspecs)|--(git-dir|work-tree|namespace|super-prefix)=.*)$/;
const gitValued = /^(-C|-c|--git-dir|--work-tree|--namespace|--super-prefix)$/;

/** Notes them; `args` are all the arguments of git. */
export const noteGit = (sheet: Sheet, args: readonly Word[], scope: Scope): void => {
  let at = 0;
  for (; at < args.length; at += 1) {
    const text = args[at]?.value ?? null;
    if (text === null || !text.startsWith('-')) break;
    if (gitValued.test(text)) {
      const value = args[(at += 1)]?.value ?? '';
      if (text === '-c' && !harmlessGitSetting.test(value))
        sheet.blind('A setting of git given with -c can run a program.');
    } else if (!gitOptions.test(text)) return sheet.blind(`git may run another program with ${text}.`);
  }
  const rest = args.slice(at + 1).map(({ value }) => value);
  const verb = args[at]?.value;
  if (verb === undefined) return;
  if (verb === null || !gitKnown.has(verb))
    sheet.blind('This is no subcommand of git that is known here; it may be an alias that runs anything.');
  if (
    rest.some(
      (text) =>
        text !== null &&
        /^(--(upload-pack|receive-pack|exec|extcmd|open-files-in-pager|ext-diff|textconv)\b|ext::)|^-O/.test(text),
    ) ||
    (verb === 'rebase' && rest.some((text) => /^-x/.test(text ?? ''))) ||
    (/^(clone|fetch|pull|ls-remote)$/.test(verb ?? '') && rest.includes('-u')) ||
    (verb === 'clone' && rest.some((text) => /^(-c|--config|--template)/.test(text ?? ''))) ||
    /^(filter-branch|difftool|mergetool|hook)$/.test(verb ?? '')
  )
    sheet.blind('An option of git can run another program here.');
  if (gitNetwork.has(verb ?? '') && !(verb === 'remote' && (rest.length === 0 || rest[0] === '-v')))
    sheet.notes.add('network');
  const isReading = rest.length === 1 || rest.some((text) => /^(-l|--list|--get|get$|list$)/.test(text ?? ''));
  if (verb !== 'config' || isReading) return;
  if (rest.some((text) => /^--(global|system)$/.test(text ?? ''))) {
    sheet.path({ value: null, source: '~/.gitconfig' }, scope);
    sheet.notes.add('moves_target');
  } else sheet.path(word('.git/config'), scope);
};
