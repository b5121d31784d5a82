/**
 * Review comments of one conversation (F-24): this browser's own until they are sent, kept across reload, cleared only
 * once the bridge has taken the message that holds them.
 */
import type { ChangeSource } from '#protocol/methods/git.ts';
import type { App } from './app.svelte.ts';
import type { Outcome } from './contract.ts';
import { done } from './failure.ts';

export interface ReviewComment {
  readonly id: string;
  readonly of: ChangeSource;
  /** Of the entry, and of where it was renamed from. */
  readonly entryId: string;
  readonly fromId: string | null;
  readonly name: string;
  readonly side: 'old' | 'new';
  readonly from: number;
  /** Included. */
  readonly to: number;
  /** The lines as they were when the comment was written. */
  readonly quoted: readonly string[];
  readonly text: string;
  /** Of the difference the place was last found in. */
  readonly revision: string;
  /** `moved`: found again elsewhere in the file. `stale`: not found any more. */
  readonly state: 'there' | 'moved' | 'stale';
  readonly at: number;
}

/** More than anyone writes; the message they make is bounded by the prompt's own limit. */
export const maxComments = 200;

export class Review {
  comments = $state.raw<readonly ReviewComment[]>([]);
  sending = $state(false);
  failure = $state<string | null>(null);
  readonly stale = $derived(this.comments.filter((comment) => comment.state === 'stale').length);
  #app: App;
  #conversationId: string;
  /** Of a message whose fate is not known: the same words are then the same operation, sent at most once. */
  #uncertain: { readonly key: string; readonly text: string } | null = null;

  constructor(app: App, conversationId: string) {
    this.#app = app;
    this.#conversationId = conversationId;
    void this.#load();
  }

  /** False when there are too many already. */
  add(comment: Omit<ReviewComment, 'id' | 'at' | 'state'>): boolean {
    if (this.comments.length >= maxComments) return false;
    const added: ReviewComment = { ...comment, id: crypto.randomUUID(), at: Date.now(), state: 'there' };
    this.set([...this.comments, added]);
    return true;
  }
  edit(id: string, text: string): void {
    this.set(this.comments.map((one) => (one.id === id ? { ...one, text } : one)));
  }
  remove(id: string): void {
    this.set(this.comments.filter((one) => one.id !== id));
  }
  set(comments: readonly ReviewComment[]): void {
    this.comments = comments;
    this.failure = null;
    this.#app.copy?.putReview(this.#conversationId, comments);
  }

  /** One message; the comments go when the bridge has stored it, and stay when it has not. */
  async send(text: string, delivery: 'prompt' | 'queue'): Promise<Outcome> {
    const sent = this.comments;
    const key = this.#uncertain?.text === text ? this.#uncertain.key : crypto.randomUUID();
    this.sending = true;
    this.failure = null;
    const outcome = await this.#app.call(
      'conversation.send',
      { conversationId: this.#conversationId, delivery, content: [{ type: 'text', text }] },
      { key },
    );
    this.sending = false;
    if (!outcome.ok) {
      const unsure = outcome.failure.code === 'offline' || outcome.failure.code === 'uncertain';
      this.#uncertain = unsure ? { key, text } : null;
      this.failure = outcome.failure.message;
      return outcome;
    }
    this.#uncertain = null;
    // What was written meanwhile was not in the message.
    this.set(this.comments.filter((one) => !sent.includes(one)));
    return done(undefined);
  }

  async #load(): Promise<void> {
    const kept = (await this.#app.copy?.review(this.#conversationId)) ?? [];
    const own = new Set(this.comments.map((one) => one.id));
    if (kept.length > 0) this.comments = [...kept.filter((one) => !own.has(one.id)), ...this.comments];
  }
}
