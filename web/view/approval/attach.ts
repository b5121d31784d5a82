/** What a press opened comes into view. */
import { scrollerOf } from '../conversation/still.ts';

/** Of the box that scrolls, what the answers of a card and the space above take, px. */
const takenPx = 160;

/**
 * Whole, without a jump where it already is; from its beginning, where there is no room for all of it. Two frames later,
 * because a list measures what grew before it can scroll to it. Returns what gives it up.
 */
export const intoView = (element: HTMLElement): (() => void) => {
  const show = (): void => {
    const roomPx = (scrollerOf(element)?.clientHeight ?? innerHeight) - takenPx;
    element.scrollIntoView({ block: element.offsetHeight > roomPx ? 'start' : 'nearest' });
  };
  let frame = requestAnimationFrame(() => (frame = requestAnimationFrame(show)));
  return () => cancelAnimationFrame(frame);
};
