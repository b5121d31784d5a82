/** Lines picked with a pointer: a press on a number, a drag over several, Shift for more (F-24). */
import type { Side } from './rows.ts';

export interface Picking {
  /** The row pressed first, and the side whose number it was. */
  readonly start: (index: number, side: Side | null, extend: boolean) => void;
  readonly move: (index: number) => void;
  readonly end: () => void;
}

const rowAt = (target: Element | null): number =>
  Number(target?.closest<HTMLElement>('[data-item]')?.dataset['item'] ?? -1);

/** Listens on a box whose rows carry `data-item` and whose numbers carry `data-side`. */
export const picking =
  (on: Picking) =>
  (box: HTMLElement): (() => void) => {
    let pressed: number | null = null;
    const down = (event: PointerEvent): void => {
      const number = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-side]') : null;
      const index = rowAt(number);
      if (number === null || index < 0 || event.button !== 0) return;
      event.preventDefault();
      box.focus({ preventScroll: true });
      pressed = event.pointerId;
      const side = number.dataset['side'];
      on.start(index, side === 'old' || side === 'new' ? side : null, event.shiftKey);
    };
    const move = (event: PointerEvent): void => {
      if (event.pointerId !== pressed) return;
      const index = rowAt(document.elementFromPoint(event.clientX, event.clientY));
      if (index >= 0) on.move(index);
    };
    const up = (event: PointerEvent): void => {
      if (event.pointerId !== pressed) return;
      pressed = null;
      if (event.type === 'pointerup') on.end();
    };
    box.addEventListener('pointerdown', down);
    box.addEventListener('pointermove', move);
    // The pointer may be let go anywhere.
    window.addEventListener('pointerup', up);
    window.addEventListener('pointercancel', up);
    return () => {
      box.removeEventListener('pointerdown', down);
      box.removeEventListener('pointermove', move);
      window.removeEventListener('pointerup', up);
      window.removeEventListener('pointercancel', up);
    };
  };
