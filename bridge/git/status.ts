/**
 * Reads what `git status --porcelain=v2 -z` prints (F-21): staged and unstaged apart, conflicts and untracked files among
 * the unstaged. Pure; called by repository.ts.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { ChangeEntry, conflictKinds } from '#protocol/methods/git.ts';
import { entryOf, Fields, unreadable, type RawChange } from './raw.ts';

const none = '000000';
const conflicts: Readonly<Record<string, (typeof conflictKinds)[number]>> = {
  DD: 'both_deleted',
  AU: 'added_by_us',
  UD: 'deleted_by_them',
  UA: 'added_by_them',
  DU: 'deleted_by_us',
  AA: 'both_added',
  UU: 'both_modified',
};

/** The first so many words of a line, and what follows them as bytes. */
const split = (line: Buffer, count: number): { words: string[]; path: Buffer } => {
  // Decoded once: there are thousands of lines. Latin-1 keeps places.
  const words = line.toString('latin1').split(' ', count);
  const end = words.reduce((sum, word) => sum + word.length + 1, 0);
  if (words.length < count || end > line.length) throw unreadable();
  return { words, path: line.subarray(end) };
};

export interface StatusLists {
  readonly staged: ChangeEntry[];
  readonly unstaged: ChangeEntry[];
}

/** @throws Refusal git_output_too_large above `limits.gitEntries` in either list */
export const parseStatus = (output: Buffer, prefix: Buffer, isSecret: (path: Buffer) => boolean): StatusLists => {
  const lists: StatusLists = { staged: [], unstaged: [] };
  const add = (list: ChangeEntry[], change: RawChange, more: Partial<ChangeEntry> = {}): void => {
    if (list.length === limits.gitEntries) throw new Refusal('git_output_too_large');
    list.push({ ...entryOf(change, prefix, isSecret), ...more });
  };
  const fields = new Fields(output);
  while (!fields.ended) {
    const line = fields.next();
    const kind = String.fromCharCode(line[0] ?? 0);
    if (kind === '1' || kind === '2') tracked(line, kind === '2' ? fields : null, lists, add);
    else if (kind === 'u') {
      const { words, path } = split(line, 10);
      const [, xy = '', , , ours = none, theirs = none, folder = none] = words;
      const conflict = conflicts[xy];
      if (conflict === undefined) throw unreadable();
      const mode = [folder, ours, theirs].find((each) => each !== none) ?? '100644';
      add(lists.unstaged, changeOf('U', none, mode, path), { conflict });
    } else if (kind === '?') {
      const path = line.subarray(2);
      // A repository of its own, which git does not look into, ends with a slash.
      const nested = path.at(-1) === 0x2f;
      add(lists.unstaged, changeOf('?', none, nested ? '160000' : '100644', nested ? path.subarray(0, -1) : path));
    } else throw unreadable();
  }
  return lists;
};

const changeOf = (letter: string, oldMode: string, newMode: string, path: Buffer): RawChange => ({
  ...{ oldMode, newMode, oldOid: '', newOid: '', letter, similarity: 0, path, from: null },
});

const tracked = (
  line: Buffer,
  renamed: Fields | null,
  lists: StatusLists,
  add: (list: ChangeEntry[], change: RawChange, more?: Partial<ChangeEntry>) => void,
): void => {
  const { words, path } = split(line, renamed === null ? 8 : 9);
  const [, xy = '', sub = '', head = none, index = none, folder = none, , , score = ''] = words;
  const from = renamed?.next() ?? null;
  const submodule =
    sub.startsWith('S') && sub.length === 4
      ? { submodule: { commitChanged: sub[1] === 'C', modified: sub[2] === 'M', untracked: sub[3] === 'U' } }
      : {};
  const each = (list: ChangeEntry[], letter: string, oldMode: string, newMode: string): void => {
    if (letter === '.') return;
    const two = letter === 'R' || letter === 'C';
    const change = changeOf(letter, oldMode, newMode, path);
    add(list, two ? { ...change, from, similarity: Number(score.slice(1)) } : change, submodule);
  };
  each(lists.staged, xy[0] ?? '.', head, index);
  each(lists.unstaged, xy[1] ?? '.', index, folder);
};
