/** The connection as the app uses it; made from the protocol's client in bridge.ts, and by hand in tests. */
import type { AnyEvent } from '#protocol/events.ts';
import type { ActivityFrame, Delivery, Draft } from '#protocol/frames.ts';
import type { Answer, MethodName, Params } from '#protocol/methods.ts';
import type { ConnectionState, Failure } from '#lib/state/contract.ts';

export type Topic = Extract<Delivery, { kind: 'invalidate' }>['topic'];

/** What a subscribed conversation is told, in this order for each connection: one `opened`, then events and activity. */
export interface Feed {
  /** A snapshot, or what came since the cursor where `resumed`; transient text before it is void. */
  opened(answer: Answer<'conversation.subscribe'>): void;
  /** In order, without gaps, each once. */
  event(event: AnyEvent): void;
  activity(frame: ActivityFrame): void;
  /** The message being written as it now stands, or null when there is none. */
  draft(draft: Draft | null): void;
  failed(failure: Failure): void;
}

export interface Link {
  /** @throws Refusal from the bridge or the client; anything else means that the answer is not known. */
  call<M extends MethodName>(method: M, params: Params<M>, options?: { key?: string }): Promise<Answer<M>>;
  /** A fresh operation key. */
  key(): string;
  /** Subscribes now and after each reconnect, until the returned function is called. */
  subscribe(conversationId: string, after: number | null, feed: Feed): () => void;
  /** Something may have changed (the page became visible, the network came back): look at once. */
  wake(): void;
  close(): void;
}

export interface LinkEvents {
  state(state: ConnectionState): void;
  granted(capabilities: ReadonlySet<string>): void;
  changed(topic: Topic): void;
  /** The session was revoked: its offline copy goes too (D-53). */
  revoked(): void;
}
