/**
 * Who is attached: the bound on attachments and on those still opening, and the presence frame (D-50). It elects no
 * owner. Used by `attachment.ts`; made by `gate.ts`, and by `bridge run` for its one attachment.
 */
import type { Delivery } from '#protocol/frames.ts';
import { limits } from '#protocol/limits.ts';
import type { Feed } from '../ledger/contract.ts';

export interface Attachment {
  readonly id: string;
  readonly sessionId: string | null;
  readonly client: string;
  readonly connectedAt: number;
  readonly seenAt: number;
  /** Ends now. */
  close(code: number, reason: string): void;
  /** Takes no more requests, hears no more events, ends once the open answers are out (bounded). */
  retire(code: number, reason: string): void;
}

export class Roster {
  readonly #feed: Pick<Feed, 'broadcast' | 'subscribed'>;
  readonly #opening = new Set<Attachment>();
  readonly #attached = new Set<Attachment>();
  #isTold = true;

  constructor(feed: Pick<Feed, 'broadcast' | 'subscribed'>) {
    this.#feed = feed;
  }

  get size(): number {
    return this.#attached.size;
  }

  /** Not yet initialized ones are bounded too: the oldest yields. */
  opening(attachment: Attachment, evict: (oldest: Attachment) => void): void {
    const [oldest] = this.#opening;
    if (oldest !== undefined && this.#opening.size >= limits.attachments) evict(oldest);
    this.#opening.add(attachment);
  }

  /** False when full. */
  admit(attachment: Attachment): boolean {
    if (this.#attached.size >= limits.attachments) return false;
    this.#opening.delete(attachment);
    this.#attached.add(attachment);
    this.changed();
    return true;
  }

  remove(attachment: Attachment): void {
    this.#opening.delete(attachment);
    if (this.#attached.delete(attachment)) this.changed();
  }

  all(): Attachment[] {
    return [...this.#opening, ...this.#attached];
  }

  /** Presence goes out once per turn of the event loop, however much changed. */
  changed(): void {
    if (!this.#isTold) return;
    this.#isTold = false;
    setImmediate(() => {
      this.#isTold = true;
      if (this.#attached.size > 0) this.#feed.broadcast(this.#presence());
    });
  }

  #presence(): Delivery {
    const attachments = Array.from(this.#attached, (one) => ({
      attachmentId: one.id,
      client: one.client,
      connectedAt: one.connectedAt,
      seenAt: one.seenAt,
      subscribed: this.#feed.subscribed(one.id).slice(0, 64),
    }));
    return { kind: 'presence', attachments };
  }
}
