/** A new version of the app waits until the operator takes it: a banner, never a surprise (U-21). */
import { scriptUrl } from '#lib/link/trusted.ts';

export class Update {
  ready = $state(false);
  #waiting: ServiceWorker | null = null;
  #reloading = false;

  /** Registers the worker of this build. `onGo` follows a notification's link. */
  async register(onGo: (path: string) => void): Promise<void> {
    if (!('serviceWorker' in navigator) || import.meta.env.DEV) return;
    const { serviceWorker } = navigator;
    serviceWorker.addEventListener('message', (event: MessageEvent<unknown>) => {
      const message = event.data as { kind?: unknown; path?: unknown } | null;
      if (message?.kind === 'go' && typeof message.path === 'string' && message.path.startsWith('/'))
        onGo(message.path);
    });
    serviceWorker.addEventListener('controllerchange', () => {
      if (this.#waiting === null || this.#reloading) return;
      this.#reloading = true;
      location.reload();
    });
    const registration = await serviceWorker.register(scriptUrl('/service-worker.js'), {
      type: 'module',
      updateViaCache: 'none',
    });
    this.#mark(registration.waiting);
    registration.addEventListener('updatefound', () => {
      const worker = registration.installing;
      worker?.addEventListener('statechange', () => {
        if (worker.state === 'installed') this.#mark(worker);
      });
    });
    // Offline, or the new worker did not install: the old shell goes on working.
    addEventListener('focus', () => void registration.update().catch(() => undefined));
  }

  apply(): void {
    this.#waiting?.postMessage('skip-waiting');
  }

  dismiss(): void {
    this.ready = false;
  }

  #mark(worker: ServiceWorker | null): void {
    if (worker === null || navigator.serviceWorker.controller === null) return;
    this.#waiting = worker;
    this.ready = true;
  }
}
