/** A client in this process (`bridge run` without a bridge): the same frames and checks, over a pair of functions. */
import { randomUUID } from 'node:crypto';
import { createClient } from '#protocol/client.ts';
import type { Channel as ClientChannel } from '#protocol/platform.ts';
import { serveAttachment } from '../gate/attachment.ts';
import type { Channel, ChannelEvents } from '../gate/channel.ts';
import type { Dispatch } from '../gate/contract.ts';
import { Roster } from '../gate/roster.ts';
import { nodePlatform, whenLive, type Control } from './control.ts';
import type { Parts } from './parts.ts';
import { version } from './version.ts';

/** Frames cross on a later turn of the loop, as over a socket: no side re-enters the other. */
const pair = (): { client: ClientChannel; gate: Channel } => {
  let events: ChannelEvents | null = null;
  let isClosed = false;
  const end = (code: number, reason: string): void => {
    if (isClosed) return;
    isClosed = true;
    setImmediate(() => {
      events?.closed();
      client.onClose?.(code, reason);
    });
  };
  const client: ClientChannel = {
    onOpen: null,
    onMessage: null,
    onClose: null,
    send: (text) => void setImmediate(() => events?.text(text)),
    close: (code = 1000, reason = '') => end(code, reason),
  };
  const gate: Channel = {
    open: (given) => {
      events = given;
    },
    send: (text, sent) =>
      void setImmediate(() => {
        if (isClosed) return;
        client.onMessage?.(text);
        sent();
      }),
    pause: () => undefined,
    resume: () => undefined,
    ping: null,
    close: end,
  };
  setImmediate(() => client.onOpen?.());
  return { client, gate };
};

export const connectLocal = async (parts: Parts, dispatch: Dispatch): Promise<Control> => {
  const roster = new Roster(parts.ledger.feed);
  const { bridgeId, lineage, feed } = parts.ledger;
  const connect = (): ClientChannel => {
    const channel = pair();
    serveAttachment(
      channel.gate,
      { kind: 'local', tty: process.stdin.isTTY === true },
      { bridgeId, lineage, bootId: parts.bootId, dispatch, feed, roster, log: parts.log, now: Date.now },
    );
    return channel.client;
  };
  const client = createClient(nodePlatform(connect), { kind: 'cli', version, instanceId: randomUUID() });
  await whenLive(client);
  return { client, close: () => client.close() };
};
