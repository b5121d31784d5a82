/** How many letters fit, before there is a terminal that could say it exactly. */
import type { TerminalSize } from '#protocol/methods/terminal.ts';
import { boundedSize } from '#lib/link/terminal.ts';

const letters = 40;
const lineHeight = 1.2;
/** What the scroll bar and the margins of a pane take, in pixels. */
const [besideWidth, besideHeight] = [22, 8] as const;

export const sizeIn = (box: HTMLElement, fontSize: number): TerminalSize => {
  const probe = document.createElement('i');
  probe.textContent = 'W'.repeat(letters);
  probe.style.cssText = `position:absolute;visibility:hidden;font:normal ${fontSize}px var(--mono);line-height:normal;white-space:pre`;
  box.append(probe);
  const { width, height } = probe.getBoundingClientRect();
  probe.remove();
  const columns = (box.clientWidth - besideWidth) / (width / letters);
  return boundedSize(columns, (box.clientHeight - besideHeight) / (height * lineHeight));
};
