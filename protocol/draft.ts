/**
 * The streaming text of one subscription (D-43): transient frames by offset, superseded by the `message` event of the
 * same message, role and part. Pure: state in, state out. Used by subscription.ts alone.
 */
import type { AnyEvent } from './events.ts';
import { knownEvent } from './events.ts';
import type { ActivityFrame, Draft } from './frames.ts';
import { limits } from './limits.ts';

type TextFrame = Extract<ActivityFrame, { type: 'text' }>;
type Segment = Pick<Draft, 'messageId' | 'role' | 'part'>;

export interface Streaming {
  /** What is shown. */
  readonly draft: Draft | null;
  /** The segment after it, kept back until the event of `draft` is in, so that no text vanishes for a moment. */
  readonly next: Draft | null;
  /** Segments whose event is in, newest last: late frames of theirs are ignored. */
  readonly covered: readonly Segment[];
}

export const streaming = (draft: Draft | null): Streaming => ({ draft, next: null, covered: [] });

const isSame = (a: Segment, b: Segment): boolean =>
  a.messageId === b.messageId && a.role === b.role && a.part === b.part;

/** The draft grown by `frame`; null where text is missing in between. */
const grow = (draft: Draft, { offset, text }: TextFrame): Draft | null => {
  const have = draft.text.length;
  if (offset > have) return null;
  return offset + text.length <= have ? draft : { ...draft, text: draft.text + text.slice(have - offset) };
};

const begin = ({ messageId, role, part, text }: TextFrame, turnId: string | undefined): Draft => ({
  messageId,
  ...(turnId === undefined ? {} : { turnId }),
  role,
  part,
  text,
});

export const addText = (state: Streaming, frame: TextFrame, turnId: string | undefined): Streaming => {
  const { draft, next, covered } = state;
  if (covered.some((segment) => isSame(segment, frame))) return state;
  if (next !== null && isSame(next, frame)) return { ...state, next: grow(next, frame) };
  if (draft !== null && isSame(draft, frame)) {
    const grown = grow(draft, frame);
    if (grown === null) return { ...state, draft: next, next: null };
    return grown === draft ? state : { ...state, draft: grown };
  }
  // Text from the middle of a segment whose beginning is not here: wait for its event.
  if (frame.offset > 0) return state;
  const begun = begin(frame, turnId);
  return draft === null ? { ...state, draft: begun } : { ...state, draft: next ?? draft, next: begun };
};

export const coverBy = (state: Streaming, event: AnyEvent): Streaming => {
  if (event.type !== 'message') return state;
  const readable = knownEvent(event);
  if (readable?.type !== 'message' || readable.data.role === 'user') return state;
  const { messageId, role, part = 0 } = readable.data;
  const segment: Segment = { messageId, role, part };
  const covered = [...state.covered.slice(1 - limits.draftSegments), segment];
  if (state.draft !== null && isSame(state.draft, segment)) return { draft: state.next, next: null, covered };
  if (state.next !== null && isSame(state.next, segment)) return { ...state, next: null, covered };
  return { ...state, covered };
};

/** Shows the segment kept back: the event of the one before it did not come in time. */
export const release = (state: Streaming): Streaming =>
  state.next === null ? state : { ...state, draft: state.next, next: null };
