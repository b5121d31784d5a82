/** Rows a text selection reaches over, so that the virtual list keeps them while one scrolls (U-41). */

/** Rows a selection may keep drawn; beyond, its far end is let go rather than the page. */
const maxRows = 600;

const rowOf = (node: Node | null, box: HTMLElement): number | null => {
  const element = node instanceof Element ? node : (node?.parentElement ?? null);
  if (element === null || !box.contains(element)) return null;
  const at = element.closest<HTMLElement>('[data-row]')?.dataset['row'];
  return at === undefined ? null : Number(at);
};

/** First and last row, or null without a selection in `box`. */
export const selectedRows = (box: HTMLElement, selection: Selection | null): readonly [number, number] | null => {
  if (selection === null || selection.isCollapsed) return null;
  const anchor = rowOf(selection.anchorNode, box);
  const focus = rowOf(selection.focusNode, box);
  if (anchor === null && focus === null) return null;
  const from = Math.min(anchor ?? focus ?? 0, focus ?? anchor ?? 0);
  const to = Math.max(anchor ?? focus ?? 0, focus ?? anchor ?? 0);
  return [from, Math.min(to, from + maxRows)];
};
