/**
 * Tells when a button moved under the pointer (R-13, T38). Reads positions only while a press is possible: the pointer is
 * over the card or the focus in it; a move at any other time is noticed on the way in.
 */
const nearPx = 2;

/** `button` is what must lie still. `onmove` may come often. Returns what stops the watch. */
export const watchStillness = (
  card: HTMLElement,
  button: () => HTMLElement | null,
  onmove: () => void,
): (() => void) => {
  let seen = button()?.getBoundingClientRect() ?? null;
  let frame = 0;
  let over = false;

  const look = (): void => {
    const now = button()?.getBoundingClientRect() ?? null;
    const moved =
      now !== null &&
      (seen === null || Math.abs(now.top - seen.top) > nearPx || Math.abs(now.left - seen.left) > nearPx);
    seen = now;
    if (moved) onmove();
  };
  const each = (): void => {
    look();
    frame = over || card.contains(document.activeElement) ? requestAnimationFrame(each) : 0;
  };
  const begin = (): void => {
    if (frame === 0) each();
  };
  const enter = (): void => {
    over = true;
    begin();
  };
  const leave = (): void => {
    over = false;
  };
  // Focus by a press is the press itself; focus by the keyboard is a new place for held keys to land.
  let pressing = false;
  const down = (): void => {
    pressing = true;
    look();
  };
  const up = (): void => {
    pressing = false;
  };
  const focused = (event: FocusEvent): void => {
    const from = event.relatedTarget;
    if (!pressing && !(from instanceof Node && card.contains(from))) onmove();
    begin();
  };
  const sizes = new ResizeObserver(look);
  sizes.observe(card);
  const passive = { passive: true } as const;
  card.addEventListener('pointerenter', enter);
  card.addEventListener('pointerleave', leave);
  card.addEventListener('pointerdown', down, true);
  addEventListener('pointerup', up, true);
  addEventListener('pointercancel', up, true);
  card.addEventListener('focusin', focused);
  document.addEventListener('scroll', look, { ...passive, capture: true });
  addEventListener('resize', look, passive);
  addEventListener('focus', onmove);
  document.addEventListener('visibilitychange', onmove);
  return () => {
    cancelAnimationFrame(frame);
    sizes.disconnect();
    card.removeEventListener('pointerenter', enter);
    card.removeEventListener('pointerleave', leave);
    card.removeEventListener('pointerdown', down, true);
    removeEventListener('pointerup', up, true);
    removeEventListener('pointercancel', up, true);
    card.removeEventListener('focusin', focused);
    document.removeEventListener('scroll', look, { capture: true });
    removeEventListener('resize', look);
    removeEventListener('focus', onmove);
    document.removeEventListener('visibilitychange', onmove);
  };
};

/** The nearest box that scrolls up and down, or null for the page itself. */
export const scrollerOf = (element: HTMLElement): HTMLElement | null => {
  for (let at = element.parentElement; at !== null; at = at.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(at).overflowY)) return at;
  }
  return null;
};
