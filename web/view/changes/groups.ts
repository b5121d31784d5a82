/** The changed files as one flat list with headings, for the virtual list. Pure. */
import type { ChangeEntry, ChangeSource, GitStatus } from '#protocol/methods/git.ts';

export type GroupName = 'conflicts' | 'staged' | 'unstaged' | 'untracked' | 'all';
export interface Group {
  readonly name: GroupName;
  /** What an entry's difference is asked of. */
  readonly of: ChangeSource;
  readonly entries: readonly ChangeEntry[];
}
export type ListRow =
  | { readonly kind: 'group'; readonly key: string; readonly group: Group }
  | { readonly kind: 'entry'; readonly key: string; readonly of: ChangeSource; readonly entry: ChangeEntry };

const unstaged: ChangeSource = { kind: 'unstaged' };

/** Conflicts first: they have to be looked at before anything else. Empty groups are left out. */
export const statusGroups = (status: Pick<GitStatus, 'staged' | 'unstaged'>): Group[] => {
  const is = (state: ChangeEntry['state']) => status.unstaged.filter((entry) => entry.state === state);
  const groups: Group[] = [
    { name: 'conflicts', of: unstaged, entries: is('conflict') },
    { name: 'staged', of: { kind: 'staged' }, entries: status.staged },
    {
      name: 'unstaged',
      of: unstaged,
      entries: status.unstaged.filter((entry) => entry.state !== 'conflict' && entry.state !== 'untracked'),
    },
    { name: 'untracked', of: unstaged, entries: is('untracked') },
  ];
  return groups.filter((group) => group.entries.length > 0);
};

/** One group needs no heading. `folded` are not listed. */
export const listRows = (groups: readonly Group[], folded: ReadonlySet<string>): ListRow[] =>
  groups.flatMap((group): ListRow[] => {
    const entries = group.entries.map((entry): ListRow => ({
      kind: 'entry',
      key: `${group.of.kind}/${entry.id}`,
      of: group.of,
      entry,
    }));
    if (group.name === 'all') return entries;
    const head: ListRow = { kind: 'group', key: `group/${group.name}`, group };
    return folded.has(group.name) ? [head] : [head, ...entries];
  });

/** The next row with a file from `from` on in direction `step`; −1 when there is none. */
export const nextEntry = (rows: readonly ListRow[], from: number, step: 1 | -1): number => {
  for (let index = from + step; index >= 0 && index < rows.length; index += step)
    if (rows[index]?.kind === 'entry') return index;
  return -1;
};

/** The same source, so that a list need not be asked for again. */
export const sameSource = (a: ChangeSource | null, b: ChangeSource | null): boolean =>
  JSON.stringify(a) === JSON.stringify(b);

/** Staged and unstaged are looked at together: both are what is not committed. */
export const isUncommitted = (of: ChangeSource | null): boolean =>
  of === null || of.kind === 'staged' || of.kind === 'unstaged';
