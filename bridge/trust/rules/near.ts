/** Looks closer only where something cheap fits, and only so often and so far: a hostile text costs no more. Pure. */

/** Places of one anchor looked at in one text; no honest file has more. */
const maxPlaces = 5000;

/** There is more to look at than a review does: what is left unsaid must be said. */
export class TooMuch extends Error {}

export interface Place {
  /** Where the anchor begins. */
  readonly at: number;
  /** The rest of the line behind the anchor, at most `after`; with `before`, the anchor and so much ahead of it too. */
  readonly slice: string;
}

/** `anchor` must be global and of linear cost; `before` 0 means with the anchor. @throws TooMuch */
export const near = (text: string, anchor: RegExp, after: number, before?: number): Place[] => {
  const places: Place[] = [];
  anchor.lastIndex = 0;
  for (let match = anchor.exec(text); match !== null; match = anchor.exec(text)) {
    if (places.length === maxPlaces) throw new TooMuch();
    const behind = match.index + match[0].length;
    const start = before === undefined ? behind : Math.max(0, match.index - before);
    const ahead = text.slice(start, Math.max(start, match.index)).lastIndexOf('\n') + 1;
    const lineEnd = text.slice(behind, behind + after).indexOf('\n');
    places.push({
      at: match.index,
      slice: text.slice(start + ahead, lineEnd === -1 ? behind + after : behind + lineEnd),
    });
    if (match[0] === '') anchor.lastIndex += 1;
  }
  return places;
};
