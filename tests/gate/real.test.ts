import { createHash, randomBytes, randomUUID, sign } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { Client } from '#protocol/client.ts';
import { Refusal } from '#protocol/errors.ts';
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import type { Channel, Platform, Probe } from '#protocol/platform.ts';
import type { Call } from '../../bridge/gate/contract.ts';
import { startGate, type Gate } from '../../bridge/gate/gate.ts';
import type { Ledger } from '../../bridge/ledger/contract.ts';
import { openLedger } from '../../bridge/ledger/ledger.ts';
import { ask, Ground, signIn, type SignedIn } from './parts.ts';

/** The gate between the real ledger and the real protocol client; only the rooms behind `dispatch` are three lines here. */
let ground: Ground;
let ledger: Ledger;
let gate: Gate;
const conversationId = randomUUID();
const summary: ConversationSummary = {
  conversationId,
  workspaceId: randomUUID(),
  workspacePath: '/w',
  title: 'T',
  agentId: 'practice',
  agentTitle: 'Practice',
  createdAt: 1,
  updatedAt: 1,
  lastSeq: 0,
  archived: false,
  state: 'idle',
  live: false,
  lastStop: null,
  pendingApprovals: 0,
  queue: [],
  queuePaused: false,
  enforcement: null,
  enforcementWhy: null,
  containment: null,
  agentVersion: null,
  modes: [],
  modeId: null,
  models: [],
  modelId: null,
  options: [],
  commands: [],
  images: false,
  transcriptBytes: 0,
  transcriptFull: false,
  problem: null,
};

const openAll = async (port: number): Promise<void> => {
  ledger = openLedger({ directory: ground.directory, blobs: join(ground.directory, 'blobs') });
  const dispatch = async (call: Call): Promise<Record<string, unknown>> => {
    if (call.method === 'conversation.subscribe') {
      const { after } = call.params as { after?: { lineage: string; seq: number } };
      return { sub: conversationId, summary, ...ledger.feed.subscribe(conversationId, call.sink, after) };
    }
    throw new Refusal('forbidden');
  };
  gate = await startGate({ ...ground.deps({ port }), ledger, feed: ledger.feed, dispatch, checkAnswers: true });
  ground.gate = gate;
};
const closeAll = async (): Promise<void> => {
  await gate.close();
  await ledger.close();
};
const write = (count: number): Promise<unknown> =>
  Promise.all(
    Array.from({ length: count }, () =>
      ledger.commit((tx) =>
        tx.append(conversationId, {
          type: 'message',
          data: { messageId: randomUUID(), role: 'agent', text: 'A line of an answer. '.repeat(20) },
        }),
      ),
    ),
  );

beforeEach(async () => {
  ground = await new Ground().prepare();
  mkdirSync(join(ground.directory, 'blobs'), { mode: 0o700 });
  await openAll(0);
  await ledger.commit((tx) => {
    tx.putConversation({
      conversationId,
      workspaceId: randomUUID(),
      workspacePath: '/w',
      title: 'T',
      agentId: 'practice',
      agentTitle: 'Practice',
      createdAt: 1,
      archived: false,
      sessionId: null,
      lastStop: null,
      header: '{}',
    });
  });
});
afterEach(async () => {
  await closeAll();
  await ground.end();
});

const platformOf = (who: SignedIn): Platform => ({
  now: Date.now,
  random: (bytes) => new Uint8Array(randomBytes(bytes)),
  timer: (ms, fn) => {
    const timer = setTimeout(fn, ms);
    return { cancel: () => clearTimeout(timer) };
  },
  utf8: (text) => new TextEncoder().encode(text),
  sha256: async (bytes) => new Uint8Array(createHash('sha256').update(bytes).digest()),
  sign: async (text) => sign(null, Buffer.from(text), who.key.privateKey).toString('base64url'),
  address: () => ({ origin: gate.origin, path: `${who.base}socket` }),
  connect: () => {
    const socket = new WebSocket(`ws://127.0.0.1:${gate.port}${who.base}socket`, {
      headers: { Origin: gate.origin, Cookie: who.cookie },
    });
    const channel: Channel = {
      onOpen: null,
      onMessage: null,
      onClose: null,
      send: (text) => socket.send(text),
      close: (code, reason) => socket.close(code, reason),
    };
    socket.on('open', () => channel.onOpen?.());
    socket.on('message', (data) => channel.onMessage?.(String(data)));
    socket.on('close', (code, reason) => channel.onClose?.(code, String(reason)));
    socket.on('error', () => undefined);
    return channel;
  },
  probe: async () => {
    const answer = await ask(gate, 'GET', `${who.base}session`, { headers: { Cookie: who.cookie } }).catch(() => null);
    const told: Record<number, Probe> = { 204: 'live', 401: 'signed_out', 410: 'revoked' };
    return told[answer?.status ?? 0] ?? 'offline';
  },
});

const clientOf = (who: SignedIn): Client => {
  const client = new Client(platformOf(who), { kind: 'app', version: 'test', instanceId: randomUUID() });
  client.start();
  ground.onEnd(() => client.close());
  return client;
};

test('every event reaches the real client once and in order, over a restart of the bridge too', async () => {
  const client = clientOf(await signIn(ground));
  const seqs: number[] = [];
  const following = client.subscribe(conversationId, {
    listener: (update) => void (update.type === 'event' && seqs.push(update.event.seq)),
  });
  await expect.poll(() => client.status.state).toBe('live');
  await expect.poll(() => following.cursor?.seq).toBe(0);
  await write(1500);
  await expect.poll(() => seqs.length, { timeout: 8000 }).toBe(1500);

  const { port } = gate;
  await closeAll();
  await openAll(port);
  await write(50);
  await expect.poll(() => seqs.length, { timeout: 8000 }).toBe(1550);
  expect(seqs).toEqual(Array.from({ length: 1550 }, (_, index) => index + 1));
  expect(client.status.state).toBe('live');
});

test('a revoked session is told so, and does not come back', async () => {
  const who = await signIn(ground);
  const client = clientOf(who);
  await expect.poll(() => client.status.state).toBe('live');
  expect(await gate.revoke(null)).toBe(1);
  await expect.poll(() => client.status, { timeout: 5000 }).toMatchObject({ state: 'signed_out', revoked: true });
  expect(gate.sessions()).toEqual([]);
});

test('after a rotation the old path is answered as signed out', async () => {
  const who = await signIn(ground);
  const client = clientOf(who);
  await expect.poll(() => client.status.state).toBe('live');
  expect(await gate.rotate()).toBe(1);
  await expect.poll(() => client.status.state, { timeout: 5000 }).toBe('signed_out');
  expect((await signIn(ground)).base).not.toBe(who.base);
});
