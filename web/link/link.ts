/** The connection as the app uses it; made from the protocol's client in bridge.ts, and by hand in tests. */
import type { AnyEvent } from '#protocol/events.ts';
import type { ActivityFrame, Delivery, Draft } from '#protocol/frames.ts';
import type { Answer, MethodName, Params } from '#protocol/methods.ts';
import type { ConnectionState, Failure } from '#lib/state/contract.ts';

export type Topic = Extract<Delivery, { kind: 'invalidate' }>['topic'];

/** What a followed conversation is told, in order. */
export interface Feed {
  /** Replaces everything known of the conversation. */
  opened(answer: Answer<'conversation.subscribe'>): void;
  /** Taken up where it was left; the events in between came before this. */
  resumed(header: Pick<Answer<'conversation.subscribe'>, 'summary' | 'outline' | 'boundarySeq'>): void;
  /** In order, without gaps, each once. */
  event(event: AnyEvent): void;
  activity(frame: Exclude<ActivityFrame, { type: 'text' }>): void;
  /** The message being written as it now stands, or null when there is none. */
  draft(draft: Draft | null): void;
  /** The bridge will not give this conversation; nothing more comes. */
  gone(failure: Failure): void;
}

export interface CallOptions {
  readonly key?: string | undefined;
  /** Of a read: nobody waits for the answer any more, and the bridge stops looking for it. */
  readonly signal?: AbortSignal | undefined;
}
export interface Link {
  /** @throws Refusal from the bridge or the client; anything else means that the answer is not known. */
  call<M extends MethodName>(method: M, params: Params<M>, options?: CallOptions): Promise<Answer<M>>;
  /** A fresh operation key. */
  key(): string;
  /** Follows now and after each reconnect, until the returned function is called; `after` goes on from a copy that ends there. */
  subscribe(conversationId: string, after: number | null, feed: Feed): () => void;
  /** Something may have changed (the page became visible, the network came back): look at once. */
  wake(): void;
  close(): void;
}

export interface LinkEvents {
  state(state: ConnectionState): void;
  /** A connection is ready: the state behind it, and what it offers. */
  session(installation: { readonly bridgeId: string; readonly lineage: string }, granted: ReadonlySet<string>): void;
  changed(topic: Topic): void;
  /** The session was revoked: its offline copy goes too (D-53). */
  revoked(): void;
}
