/** Looks whether what comments are about is still there, when the files may have changed since (F-24). */
import type { App } from '#lib/state/app.svelte.ts';
import { Difference } from '#lib/state/difference.svelte.ts';
import type { Review, ReviewComment } from '#lib/state/review.svelte.ts';
import { replaced } from './review.ts';
import { knownLines, textRows } from './rows.ts';

/** Files looked at in one go; comments of more are looked at when their file is opened. */
const maxFiles = 50;
/** There is nothing any more that the comments could be about. */
const gone = new Set(['not_found', 'checkpoint_unavailable']);

const checked = async (difference: Difference, comment: ReviewComment): Promise<ReviewComment> => {
  const { diff, failure } = difference;
  if (failure !== null) return gone.has(failure.code) ? { ...comment, state: 'stale' } : comment;
  if (diff === null || (diff.revision === comment.revision && comment.state !== 'stale')) return comment;
  const { content } = diff;
  if (content.kind !== 'text') return content.kind === 'large' ? comment : { ...comment, state: 'stale' };
  const near = replaced(comment, diff.revision, knownLines(textRows(content, difference.unfolded), comment.side));
  // Elsewhere in what the difference shows may not be the nearest place: the file has more lines than that.
  if (near.state !== 'stale' && near.from === comment.from) return near;
  const around = await difference.linesAround(comment.side, comment.from);
  return difference.problem === null ? replaced(comment, diff.revision, around) : comment;
};

/** Brings the comments on one difference up to date with it. */
export const checkAgainst = async (
  review: Review,
  difference: Difference,
  comments: readonly ReviewComment[],
): Promise<void> => {
  const found = new Map<string, ReviewComment>();
  for (const comment of comments) {
    const now = await checked(difference, comment);
    if (now !== comment) found.set(comment.id, now);
  }
  if (found.size === 0) return;
  // Only the place: the words may have been edited meanwhile, and the comment removed.
  review.set(
    review.comments.map((one) => {
      const now = found.get(one.id);
      return now === undefined ? one : { ...one, from: now.from, to: now.to, revision: now.revision, state: now.state };
    }),
  );
};

export const commentsOn = (
  comments: readonly ReviewComment[],
  place: Pick<ReviewComment, 'of' | 'entryId'>,
): readonly ReviewComment[] => {
  const of = JSON.stringify(place.of);
  return comments.filter((one) => one.entryId === place.entryId && JSON.stringify(one.of) === of);
};

/** All comments but those on `open`, whose view looks itself. */
export const recheck = async (
  app: App,
  workspaceId: string,
  review: Review,
  open: Pick<ReviewComment, 'of' | 'entryId'> | null,
): Promise<void> => {
  const own = new Set(open === null ? [] : commentsOn(review.comments, open));
  const files = new Map<string, ReviewComment[]>();
  for (const comment of review.comments) {
    if (own.has(comment)) continue;
    const key = JSON.stringify([comment.of, comment.entryId]);
    files.set(key, [...(files.get(key) ?? []), comment]);
  }
  for (const comments of [...files.values()].slice(0, maxFiles)) {
    const [first] = comments;
    if (first === undefined) continue;
    const { of, entryId, fromId } = first;
    const difference = new Difference(app, { workspaceId, of, id: entryId, fromId });
    await difference.load();
    await checkAgainst(review, difference, comments);
  }
};
