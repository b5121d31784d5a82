/** The protocol's client over a browser page, as the app's Link. One client per tab. */
import { version } from '$app/env';
import { createClient, type ChangeMethod, type Client, type ReadMethod } from '#protocol/client.ts';
import { methods, type Answer, type MethodName, type Params } from '#protocol/methods.ts';
import type { Identity } from './identity.ts';
import type { CallOptions, Feed, Link, LinkEvents } from './link.ts';
import { pagePlatform } from './platform.ts';

/** Named by kind alone, for the operator's list of sessions. */
const appVersion = version.slice(0, 64);

const call = async <M extends MethodName>(
  client: Client,
  method: M,
  params: Params<M>,
  options: CallOptions = {},
): Promise<Answer<M>> =>
  methods[method].mutates
    ? ((await client.change(method as ChangeMethod, params as Params<ChangeMethod>, { key: options.key })) as Answer<M>)
    : ((await client.call(method as ReadMethod, params as Params<ReadMethod>, {
        signal: options.signal,
      })) as Answer<M>);

const follow = (
  client: Client,
  lineage: string,
  conversationId: string,
  afterSeq: number | null,
  feed: Feed,
): (() => void) => {
  const after = afterSeq === null ? undefined : { lineage, seq: afterSeq };
  const following = client.subscribe(conversationId, {
    after,
    listener: (update) => {
      switch (update.type) {
        case 'snapshot':
          return feed.opened(update);
        case 'resumed':
          return feed.resumed(update);
        case 'event':
          return feed.event(update.event);
        case 'activity':
          return feed.activity(update.frame);
        case 'draft':
          return feed.draft(update.draft);
        case 'gone':
          return feed.gone({ code: update.refusal.code, message: update.refusal.message });
      }
    },
  });
  return () => following.close();
};

/** Connects at once and keeps connected until `close`. */
export const connectBridge = (identity: Identity, events: LinkEvents): Link => {
  const client = createClient(pagePlatform(identity), {
    kind: 'app',
    version: appVersion,
    instanceId: crypto.randomUUID(),
  });
  client.on({
    status: (status) => {
      events.state(status.state);
      if (status.state === 'signed_out' && status.revoked) events.revoked();
    },
    session: (session) => {
      events.session({ bridgeId: session.bridgeId, lineage: session.lineage }, new Set(session.granted));
    },
    invalidate: (topic) => events.changed(topic),
  });
  const seen = (): void => client.setVisible(document.visibilityState === 'visible');
  seen();
  client.start();
  return {
    call: (method, params, options) => call(client, method, params, options),
    key: () => client.newKey(),
    subscribe: (conversationId, after, feed) => follow(client, identity.session.lineage, conversationId, after, feed),
    wake: () => {
      seen();
      if (document.visibilityState === 'visible') client.wake();
    },
    close: () => client.close(),
  };
};
