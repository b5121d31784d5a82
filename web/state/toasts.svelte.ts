/** Short messages at the edge, and what a screen reader is told. */
export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: 'plain' | 'ok' | 'stop';
}

const announceEveryMs = 2000;
const stayMs = 5000;

export class Toasts {
  items = $state.raw<readonly Toast[]>([]);
  /** Content of the polite live region. */
  announcement = $state('');
  #next = 1;
  #waiting: string[] = [];
  #timer: ReturnType<typeof setTimeout> | null = null;

  show(text: string, tone: Toast['tone'] = 'plain'): void {
    const toast: Toast = { id: this.#next++, text, tone };
    this.items = [...this.items.slice(-2), toast];
    setTimeout(() => this.dismiss(toast.id), tone === 'stop' ? stayMs * 2 : stayMs);
  }

  dismiss(id: number): void {
    this.items = this.items.filter((toast) => toast.id !== id);
  }

  /** Says `text` to a screen reader; at most one message every two seconds, later ones joined (U-50). */
  announce(text: string): void {
    if (this.#waiting.at(-1) !== text) this.#waiting.push(text);
    this.#timer ??= setTimeout(() => this.#speak(), 50);
  }

  #speak(): void {
    const text = this.#waiting.splice(0).join('. ');
    // The same words twice are not announced by themselves: a trailing space makes them new.
    this.announcement = text === this.announcement ? `${text} ` : text;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#waiting.length > 0) this.#speak();
    }, announceEveryMs);
  }
}
