/**
 * One flush per animation frame; a hidden page gets no frames, so there at most every 250 ms (02, data's path). The first
 * change after a quiet frame does not wait for the next: its work is then done before that frame begins.
 */
const hiddenMs = 250;
const frameMs = 16;

export class Flush {
  #run: () => void;
  #frame: number | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #ranAt = -Infinity;
  #soon = false;

  constructor(run: () => void) {
    this.#run = run;
  }

  /** Asks for a flush soon; many asks are one flush. */
  ask(): void {
    // The timer also stands in when a page becomes hidden after its frame was asked for.
    this.#timer ??= setTimeout(this.now, hiddenMs);
    if (document.visibilityState !== 'visible') return;
    if (performance.now() - this.#ranAt < frameMs) this.#frame ??= requestAnimationFrame(this.now);
    else if (!this.#soon) {
      this.#soon = true;
      queueMicrotask(() => this.#soon && this.now());
    }
  }

  now = (): void => {
    this.cancel();
    this.#ranAt = performance.now();
    this.#run();
  };

  cancel(): void {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#frame = null;
    this.#timer = null;
    this.#soon = false;
  }
}
