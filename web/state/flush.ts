/** One flush per animation frame; a hidden page gets no frames, so there at most every 250 ms (02, data's path). */
const hiddenMs = 250;

export class Flush {
  #run: () => void;
  #frame: number | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(run: () => void) {
    this.#run = run;
  }

  /** Asks for a flush soon; many asks are one flush. */
  ask(): void {
    // The timer also stands in when a page becomes hidden after its frame was asked for.
    this.#timer ??= setTimeout(this.now, hiddenMs);
    if (document.visibilityState === 'visible') this.#frame ??= requestAnimationFrame(this.now);
  }

  now = (): void => {
    this.cancel();
    this.#run();
  };

  cancel(): void {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#frame = null;
    this.#timer = null;
  }
}
