/** Review comments as text and as places: found again where lines moved, and made into one message (F-24). Pure. */
import type { ChangeSource } from '#protocol/methods/git.ts';
import type { ReviewComment } from '#lib/state/review.svelte.ts';
import { visible } from '#lib/text/format.ts';

/**
 * First line at which `quoted` stands in `lines`, nearest to `from`; null when nowhere. Lines that are all blank are found
 * only where they were: they would be found anywhere.
 */
export const findQuoted = (
  quoted: readonly string[],
  from: number,
  lines: ReadonlyMap<number, string>,
): number | null => {
  const standsAt = (first: number): boolean => quoted.every((text, index) => lines.get(first + index) === text);
  if (standsAt(from)) return from;
  if (quoted.every((text) => text.trim() === '')) return null;
  let found: number | null = null;
  for (const [line, text] of lines) {
    if (text !== quoted[0] || (found !== null && Math.abs(line - from) >= Math.abs(found - from))) continue;
    if (standsAt(line)) found = line;
  }
  return found;
};

/** The comment as it stands in a difference of `revision`, of whose side `lines` are known. */
export const replaced = (
  comment: ReviewComment,
  revision: string,
  lines: ReadonlyMap<number, string>,
): ReviewComment => {
  const from = findQuoted(comment.quoted, comment.from, lines);
  if (from === null) return { ...comment, state: 'stale' };
  const isMoved = from !== comment.from || comment.state === 'moved';
  return {
    ...comment,
    from,
    to: from + comment.quoted.length - 1,
    revision,
    state: isMoved ? 'moved' : 'there',
  };
};

const sourceWords = (of: ChangeSource): string => {
  switch (of.kind) {
    case 'staged':
      return 'staged';
    case 'unstaged':
      return 'not committed';
    case 'commit':
      return `commit ${of.commit.slice(0, 12)}`;
    case 'turn':
      return 'changed in a turn of this conversation';
    case 'checkpoints':
      return 'changed between two checkpoints';
    case 'worktree':
      return 'changed in its worktree';
  }
};

/** A fence longer than any inside, so that what is quoted cannot end it (case 38). */
const fenced = (lines: readonly string[]): string => {
  const body = lines.join('\n');
  const longest = Math.max(2, ...Array.from(body.matchAll(/`+/g), (match) => match[0].length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${body}\n${fence}`;
};

/** A name in one line and between backticks of its own. */
const quotedName = (name: string): string => {
  const line = visible(name).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
  const longest = Math.max(0, ...Array.from(line.matchAll(/`+/g), (match) => match[0].length));
  const marks = '`'.repeat(longest + 1);
  const gap = line.startsWith('`') || line.endsWith('`') ? ' ' : '';
  return `${marks}${gap}${line}${gap}${marks}`;
};

export const placeOf = (comment: Pick<ReviewComment, 'name' | 'from' | 'to'>): string =>
  `${comment.name}:${comment.from}${comment.to === comment.from ? '' : `-${comment.to}`}`;

/** All comments as one message, by file and line; says of each on which side it is, and whether its lines are gone. */
export const reviewMessage = (comments: readonly ReviewComment[]): string => {
  const sorted = [...comments].sort(
    (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0) || a.from - b.from || a.at - b.at,
  );
  const parts = sorted.map((comment, index) => {
    const side = comment.side === 'old' ? 'before the change' : 'after the change';
    const stale = comment.state === 'stale' ? '; these lines have changed since' : '';
    const head = `${index + 1}. ${quotedName(placeOf(comment))} (${side}, ${sourceWords(comment.of)}${stale})`;
    return `${head}\n\n${fenced(comment.quoted)}\n\n${comment.text.trim()}`;
  });
  const count = comments.length === 1 ? '1 review comment' : `${comments.length} review comments`;
  return `${count} on your changes. Please address ${comments.length === 1 ? 'it' : 'each of them'}.\n\n${parts.join('\n\n')}\n`;
};
