/** What was opened by a press comes into view, without a jump where it already is. */
export const intoView = (element: HTMLElement): void => element.scrollIntoView({ block: 'nearest' });
