/**
 * The walk over a workspace that searches share: breadth first, folders opened one by one and nothing else, without
 * secret folders, `node_modules` and what ignore files name. Called by search.ts and the seeker.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Beneath, Directory, Segments } from './beneath.ts';
import { ignoredIn, isIgnored, isIgnoreFile, type Ignored } from './ignore.ts';
import { namesOf, type Name } from './list.ts';
import { isSecretPath } from './secrets.ts';

export type Plain = Name & { readonly text: string };
export interface Level {
  readonly segments: Segments;
  readonly names: readonly Plain[];
  /** The folder has more entries than are looked at, or the walk ends here though more folders wait. */
  readonly truncated: boolean;
}
interface Place {
  readonly segments: Segments;
  readonly ignored: Ignored;
}

/** A folder at a time, near the root first, so that what is near is found before `limits.searchEntries` is reached. */
export function* levels(beneath: Beneath): Generator<Level> {
  const queue: Place[] = [{ segments: [], ignored: [] }];
  let seen = 0;
  for (const place of queue) {
    const level = look(beneath, place);
    for (const { folder, text } of level.names)
      if (folder && place.segments.length + 1 < limits.pathDepth)
        queue.push({ segments: [...place.segments, text], ignored: level.ignored });
    seen += level.names.length;
    const over = seen >= limits.searchEntries;
    yield { ...level, segments: place.segments, truncated: level.truncated || (over && queue.at(-1) !== place) };
    if (over) return;
  }
}

type Looked = Omit<Level, 'segments'> & { readonly ignored: Ignored };

const look = (beneath: Beneath, { segments, ignored }: Place): Looked => {
  try {
    return beneath.directory(segments, (directory) => visible(beneath, directory, segments, ignored));
  } catch (error) {
    // Gone, replaced by a link, private or mounted since its name was read: not part of what can be found.
    if (error instanceof Refusal && error.code !== 'workspace_unavailable')
      return { names: [], ignored, truncated: false };
    throw error;
  }
};

const visible = (beneath: Beneath, directory: Directory, segments: Segments, above: Ignored): Looked => {
  const { names, truncated } = namesOf(directory);
  const present = names.some(({ text }) => text !== null && isIgnoreFile(text));
  const ignored = ignoredIn(beneath, segments, above, present);
  const isVisible = (name: Name): name is Plain =>
    name.text !== null &&
    !(name.folder && (name.text === 'node_modules' || isSecretPath([name.text]))) &&
    !isIgnored(ignored, [...segments, name.text], name.folder);
  return { names: names.filter(isVisible), ignored, truncated };
};
