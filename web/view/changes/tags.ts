/** What is worth saying about a changed entry beside its name, in plain words. Pure. */
import { words } from '#lib/text/changes.en.ts';
import type { ChangeEntry, FileDiff } from '#protocol/methods/git.ts';

const isExecutable = (mode: string): boolean => (Number.parseInt(mode, 8) & 0o111) !== 0;
const isFile = (mode: string): boolean => mode.startsWith('100');

/** In the order of how much they matter. */
export const entryTags = (entry: ChangeEntry): string[] => {
  const tags: string[] = [];
  const { list } = words;
  if (entry.conflict !== undefined) tags.push(words.conflicts[entry.conflict]);
  if (entry.secret) tags.push(list.secret);
  if (entry.what === 'submodule') tags.push(list.submodule);
  if (entry.submodule !== undefined)
    for (const part of ['commitChanged', 'modified', 'untracked'] as const)
      if (entry.submodule[part]) tags.push(list.submoduleParts[part]);
  if (entry.what === 'symlink') tags.push(list.symlink);
  const { modes } = entry;
  if (modes !== undefined && isFile(modes.old) && isFile(modes.new) && modes.old !== modes.new)
    tags.push(
      isExecutable(modes.old) === isExecutable(modes.new)
        ? list.mode(modes.old, modes.new)
        : isExecutable(modes.new)
          ? list.executable
          : list.notExecutable,
    );
  return tags;
};

/** What holds for the text as a whole. */
export const textTags = (content: Extract<FileDiff['content'], { kind: 'text' }>): string[] => {
  const { eol, onlyEol, replaced } = content;
  const tags: string[] = [];
  const named = (one: typeof eol.old): string => words.diff.eol[one];
  if (onlyEol) tags.push(words.diff.onlyEol);
  if (eol.old !== eol.new && eol.old !== 'none' && eol.new !== 'none')
    tags.push(words.diff.eolChanged(named(eol.old), named(eol.new)));
  else if (eol.new === 'crlf' || (eol.new === 'none' && eol.old === 'crlf')) tags.push(named('crlf'));
  if (replaced) tags.push(words.diff.replaced);
  return tags;
};
