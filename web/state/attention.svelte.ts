/** What calls the operator back: the app badge, the title, and a notification while the page is hidden (U-20). */
import { text } from '#lib/text/en.ts';
import { visible } from '#lib/text/format.ts';
import type { ApprovalView } from '#protocol/methods/approval.ts';
import { untrack } from 'svelte';
import type { App } from './app.svelte.ts';

export class Attention {
  #app: App;
  #told = new Set<string>();
  #before = 0;

  constructor(app: App) {
    this.#app = app;
  }

  /** Run as an effect: touches only the outside. */
  show(): void {
    const waiting = this.#app.approvals.items;
    untrack(() => this.#tell(waiting));
  }

  #tell(waiting: readonly ApprovalView[]): void {
    this.#badge(waiting.length);
    if (waiting.length > this.#before) this.#app.toasts.announce(text.approvals.announce(waiting.length));
    this.#before = waiting.length;
    for (const approval of waiting) {
      if (this.#told.has(approval.approvalId)) continue;
      this.#told.add(approval.approvalId);
      void this.#notify(
        approval.approvalId,
        approval.facts.headline,
        approval.conversationTitle,
        `/c/${approval.conversationId}?at=${approval.seq}`,
      );
    }
  }

  #badge(count: number): void {
    if (!('setAppBadge' in navigator)) return;
    // Only an installed app has a badge; elsewhere the browser refuses, which changes nothing.
    void (count > 0 ? navigator.setAppBadge(count) : navigator.clearAppBadge()).catch(() => undefined);
  }

  async #notify(approvalId: string, headline: string, title: string, path: string): Promise<void> {
    if (document.visibilityState === 'visible' || !this.#app.settings.notify || Notification.permission !== 'granted')
      return;
    const registration = await navigator.serviceWorker.getRegistration();
    // The tag keeps two tabs from saying it twice.
    await registration?.showNotification(visible(headline), {
      body: visible(title),
      tag: approvalId,
      data: path,
      icon: '/icon-192.png',
    });
  }
}
