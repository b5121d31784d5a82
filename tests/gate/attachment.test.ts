import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { errorCodes, Refusal } from '#protocol/errors.ts';
import { fromBridge } from '#protocol/frames.ts';
import { limits } from '#protocol/limits.ts';
import { methodNames, methods } from '#protocol/methods.ts';
import { z } from '#protocol/schema.ts';
import type { Channel, ChannelEvents } from '../../bridge/gate/channel.ts';
import { Outbox } from '../../bridge/gate/outbox.ts';
import { serveAttachment } from '../../bridge/gate/attachment.ts';
import { attach, Client, Ground, initializeParams, openControl, openSocket, proofOf, signIn } from './parts.ts';

let ground: Ground;
beforeEach(async () => {
  ground = await new Ground().prepare();
});
afterEach(() => ground.end());

const never = (): Promise<Record<string, unknown>> => new Promise(() => undefined);
const browser = async (): Promise<Client> => (await attach(ground, await signIn(ground))).client;

describe('D-10 opening', () => {
  test('hello comes first, then initialize tells who and what', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const { client, result } = await attach(ground, mine);
    expect(client.frames[0]?.kind).toBe('hello');
    expect(result).toMatchObject({
      bridgeId: 'bridge-1',
      lineage: 'lineage-1',
      heartbeatMs: 20_000,
      presenceTimeoutMs: 60_000,
    });
    expect(result['granted']).toContain('conversation.send');
    expect(result['granted']).not.toContain('bridge.operate');
    await client.until(() => client.frames.find((frame) => frame.kind === 'presence'));
    for (const frame of client.frames) expect(z.safeParse(fromBridge, frame).success).toBe(true);
    expect(ground.gate.attachments).toBe(1);
  });

  test('before it only initialize and ping are answered', async () => {
    await ground.start();
    const { client } = await openSocket(ground, await signIn(ground));
    expect(await client.call('connection.ping')).toMatchObject({ kind: 'result' });
    for (const method of ['conversation.list', 'bridge.info', 'ticket.create', 'connection.ack', 'nothing']) {
      expect(await client.call(method)).toMatchObject({ kind: 'error', error: { code: 'not_initialized' } });
    }
    expect(ground.calls).toEqual([]);
  });

  test('a socket that does not open itself in time is closed', async () => {
    await ground.start({ timing: { handshakeMs: 60 } });
    const { client } = await openSocket(ground, await signIn(ground));
    expect((await client.close()).code).toBe(1008);
  });

  test('another wire ends with unsupported_version and 4001, whatever else that version sends (D-03)', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const { client } = await openSocket(ground, mine);
    const proof = proofOf(ground, mine, await client.hello());
    expect(
      await client.call('connection.initialize', { ...initializeParams({ proof }), wire: 2, novelty: true }),
    ).toMatchObject({ error: { code: 'unsupported_version' } });
    expect((await client.close()).code).toBe(4001);
  });

  test('T26 claiming capabilities, roles or a pid changes nothing', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const { client } = await openSocket(ground, mine);
    const proof = proofOf(ground, mine, await client.hello());
    const answer = await client.call(
      'connection.initialize',
      initializeParams({ proof, capabilities: ['bridge.operate'], peer: { pid: process.pid } }),
    );
    expect(answer.result?.['granted']).not.toContain('bridge.operate');
    for (const method of methodNames.filter((name) => methods[name].capability === 'bridge.operate')) {
      expect(await client.call(method, {}, methods[method].mutates ? randomUUID() : undefined)).toMatchObject({
        error: { code: 'unsupported_capability' },
      });
    }
    expect(await client.call('connection.ping', { scope: 'admin' })).toMatchObject({ error: { code: 'bad_request' } });
    expect(ground.calls).toEqual([]);
  });

  test('the 17th attachment is refused, and a place that comes free is taken', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const first = await attach(ground, mine);
    for (let index = 1; index < limits.attachments; index += 1) await attach(ground, mine);
    await expect(attach(ground, mine)).rejects.toThrow('rate_limited');
    first.client.end();
    await first.client.close();
    await expect.poll(() => ground.gate.attachments).toBe(limits.attachments - 1);
    await attach(ground, mine);
  });
});

describe('D-11 requests', () => {
  test('names the safe path of what is wrong and never the value', async () => {
    await ground.start();
    const client = await browser();
    const secret = 'hunter2-secret-value';
    const answers = [
      await client.call('conversation.rename', { conversationId: 'c1', title: { secret } }, randomUUID()),
      await client.call('conversation.list', { limit: secret }),
      await client.call('connection.ack', { sub: 'c1', seq: -1 }),
    ];
    expect(answers.map((answer) => [answer.error?.code, answer.error?.details?.['where']])).toEqual([
      ['bad_request', 'params.title: invalid_type'],
      ['bad_request', 'params.limit: invalid_type'],
      ['bad_request', 'params.seq: too_small'],
    ]);
    expect(JSON.stringify(answers)).not.toContain(secret);
    expect(JSON.stringify(ground.lines)).not.toContain(secret);
  });

  test('what is no request is answered with id −1', async () => {
    await ground.start();
    const client = await browser();
    for (const text of ['nonsense', '[]', 'null', '{"kind":"request"}', '{"kind":"hello","id":"x"}']) {
      client.send(text);
      expect(await client.until(() => client.frames.splice(0).find((frame) => frame.kind === 'error'))).toMatchObject({
        id: -1,
        error: { code: 'bad_request' },
      });
    }
    client.send({ kind: 'request', id: 900, method: 'conversation.list', params: {}, extra: 1 });
    expect(await client.answer(900)).toMatchObject({ error: { code: 'bad_request' } });
  });

  test('every method is checked: a key exactly where something changes (D-30)', async () => {
    await ground.start();
    const client = await browser();
    expect(await client.call('conversation.archive', { conversationId: 'c1', archived: true })).toMatchObject({
      error: { code: 'invalid_key' },
    });
    expect(await client.call('conversation.list', {}, randomUUID())).toMatchObject({ error: { code: 'invalid_key' } });
    expect(await client.call('conversation.nothing')).toMatchObject({ error: { code: 'unsupported_capability' } });
    expect(ground.calls).toEqual([]);
  });

  test('hands over typed values and the actor, never a request', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const { client, result } = await attach(ground, mine);
    const key = randomUUID();
    await client.call('conversation.archive', { conversationId: 'c1', archived: true }, key);
    expect(ground.calls).toHaveLength(1);
    expect(ground.calls[0]).toMatchObject({
      method: 'conversation.archive',
      params: { conversationId: 'c1', archived: true },
      key,
    });
    const [row] = ground.ledger.rows.values();
    expect(ground.calls[0]?.actor).toEqual({
      kind: 'browser',
      attachmentId: result['attachmentId'],
      sessionId: row?.sessionId,
      keyId: row?.keyId,
      publicKeySpki: row?.publicKeySpki,
    });
    expect(ground.calls[0]?.sink.attachmentId).toBe(result['attachmentId']);
  });

  test('a refusal of an allowed code is told; everything else is internal_error with an id found in the log', async () => {
    await ground.start();
    const client = await browser();
    const allowed = new Set<string>(['unknown_conversation']);
    for (const code of errorCodes.filter((one) =>
      ['unknown_conversation', 'digest_mismatch', 'blob_unknown'].includes(one),
    )) {
      ground.dispatch = () => Promise.reject(new Refusal(code));
      const answer = await client.call('conversation.get', { conversationId: 'c1' });
      expect(answer.error?.code).toBe(allowed.has(code) ? code : 'internal_error');
    }
    ground.dispatch = () => Promise.reject(new Error('leaks /home/secret'));
    const answer = await client.call('conversation.get', { conversationId: 'c1' });
    expect(answer.error?.code).toBe('internal_error');
    expect(ground.lines).toContainEqual(
      expect.objectContaining({ event: 'internal', correlation: answer.error?.details?.['correlation'] }),
    );
    expect(JSON.stringify([answer, ground.lines])).not.toContain('/home/secret');
  });

  test('an answer that breaks its schema never leaves (D-02)', async () => {
    await ground.start();
    const client = await browser();
    ground.dispatch = () => Promise.resolve({ conversations: [], more: 'perhaps' });
    expect(await client.call('conversation.list')).toMatchObject({ error: { code: 'internal_error' } });
  });

  test('cancelRequest aborts one request, closing aborts all', async () => {
    await ground.start();
    const { client, socket } = await attach(ground, await signIn(ground));
    ground.dispatch = (call) =>
      new Promise((_resolve, reject) => call.signal.addEventListener('abort', () => reject(new Refusal('cancelled'))));
    client.send({ kind: 'request', id: 500, method: 'conversation.list', params: {} });
    client.send({ kind: 'request', id: 501, method: 'conversation.list', params: {} });
    await client.call('connection.cancelRequest', { id: 500 });
    expect(await client.answer(500)).toMatchObject({ error: { code: 'cancelled' } });
    expect(ground.calls[1]?.signal.aborted).toBe(false);
    socket.terminate();
    await expect.poll(() => ground.calls[1]?.signal.aborted).toBe(true);
    await expect.poll(() => ground.gate.attachments).toBe(0);
    expect(ground.sinks.size).toBe(0);
  });

  test('an id may not be used again while it is open', async () => {
    await ground.start();
    const client = await browser();
    ground.dispatch = never;
    client.send({ kind: 'request', id: 500, method: 'conversation.list', params: {} });
    client.send({ kind: 'request', id: 500, method: 'conversation.list', params: {} });
    expect(await client.answer(500)).toMatchObject({
      error: { code: 'bad_request', details: { where: 'id: in use' } },
    });
  });

  test('acks go to the feed, and an unknown subscription says so', async () => {
    await ground.start();
    const { client, result } = await attach(ground, await signIn(ground));
    expect(await client.call('connection.ack', { sub: 'c1', seq: 7 })).toMatchObject({ kind: 'result' });
    expect(await client.call('connection.ack', { sub: 'c2', seq: 7 })).toMatchObject({
      error: { code: 'unknown_subscription' },
    });
    expect(ground.acks).toEqual([
      ['c1', result['attachmentId'], 7],
      ['c2', result['attachmentId'], 7],
    ]);
  });

  test('the rate is bounded, acks apart, and who never stops is closed 4002', async () => {
    await ground.start();
    const client = await browser();
    const burst = Array.from({ length: limits.inboundBurst + 10 }, (_, index) => 1000 + index);
    for (const id of burst) client.send({ kind: 'request', id, method: 'connection.ping', params: {} });
    const answers = await Promise.all(burst.map((id) => client.answer(id)));
    expect(
      answers.filter((answer) => answer.error?.code === 'rate_limited' && answer.error.retryable).length,
    ).toBeGreaterThan(5);
    expect(await client.call('connection.ack', { sub: 'c1', seq: 1 })).toMatchObject({ kind: 'result' });
    for (let id = 2000; id < 2000 + 3 * limits.inboundPerWindow; id += 1)
      client.send({ kind: 'request', id, method: 'connection.ping', params: {} });
    expect((await client.close()).code).toBe(4002);
  });

  test('a frame above the bound closes 1009, a binary one 1008', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const large = await attach(ground, mine);
    large.socket.send('x'.repeat(limits.frameBytes + 1));
    expect((await large.client.close()).code).toBe(1009);
    const binary = await attach(ground, mine);
    binary.socket.send(Buffer.from('{}'));
    expect((await binary.client.close()).code).toBe(1008);
  });

  test('tickets come from a proven socket only', async () => {
    await ground.start();
    const client = await browser();
    const answer = await client.call('ticket.create', { path: 'blob' });
    expect(answer.result).toEqual({
      ticket: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/) as string,
      expiresAt: ground.wall + 10_000,
    });
    const control = await openControl(ground);
    await control.client.call('connection.initialize', initializeParams());
    expect((await control.client.call('ticket.create', { path: 'blob' })).error?.code).toBe('forbidden');
  });
});

describe('D-47 slow attachments', () => {
  const frameOf = (kilobytes: number): readonly [string, number] => {
    const text = JSON.stringify({
      kind: 'invalidate',
      topic: 'conversations',
      generation: 1,
      filler: 'x'.repeat(kilobytes * 1024),
    });
    return [text, Buffer.byteLength(text)];
  };

  test('one that does not read is closed 1013; nobody else notices', async () => {
    await ground.start({ timing: { slowDrainMs: 150 } });
    const mine = await signIn(ground);
    const slow = await attach(ground, mine);
    const quick = await attach(ground, mine);
    slow.socket.pause();
    const slowSink = ground.sinks.get(String(slow.result['attachmentId']));
    const quickSink = ground.sinks.get(String(quick.result['attachmentId']));
    // The kernel's buffers on loopback take some megabytes before anything waits with us.
    let sent = 0;
    for (const [text, bytes] = frameOf(256); ground.gate.attachments === 2 && sent < 200; sent += 1) {
      slowSink?.deliver(text, bytes);
      if (sent % 50 === 0) quickSink?.deliver(text, bytes);
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    expect(ground.gate.attachments).toBe(1);
    expect(ground.lines).toContainEqual(expect.objectContaining({ event: 'detached', code: 1013 }));
    slow.socket.resume();
    expect((await slow.client.close()).code).toBe(1013);
    expect(await quick.client.call('connection.ping')).toMatchObject({ kind: 'result' });
    expect(quick.client.frames.filter((frame) => frame.kind === 'invalidate').length).toBeGreaterThan(0);
  });

  const stub = (): { channel: Channel; taken: (() => void)[]; log: string[] } => {
    const taken: (() => void)[] = [];
    const log: string[] = [];
    const channel: Channel = {
      open: () => undefined,
      send: (_text, sent) => void taken.push(sent),
      pause: () => void log.push('pause'),
      resume: () => void log.push('resume'),
      ping: null,
      close: () => void log.push('close'),
    };
    return { channel, taken, log };
  };

  test('reading stops at 1,024 waiting frames and goes on below half', () => {
    const { channel, taken, log } = stub();
    const outbox = new Outbox(channel, 10_000, () => log.push('slow'));
    for (let index = 0; index < limits.tailFrames - 1; index += 1) outbox.push('x', 1);
    expect(log).toEqual([]);
    outbox.push('x', 1);
    expect(log).toEqual(['pause']);
    for (const sent of taken.splice(0, limits.tailFrames / 2)) sent();
    expect(log).toEqual(['pause']);
    taken.shift()?.();
    expect(log).toEqual(['pause', 'resume']);
    outbox.close();
  });

  test('reading stops at 4 MiB, and twice that is the end at once', () => {
    const { channel, taken, log } = stub();
    const outbox = new Outbox(channel, 10_000, () => log.push('slow'));
    outbox.push('x', limits.tailBytes);
    expect(log).toEqual(['pause']);
    outbox.push('x', limits.tailBytes);
    expect(log).toEqual(['pause', 'slow']);
    outbox.push('x', 1);
    expect(taken).toHaveLength(1);
  });

  test('counts stay exact over many more frames than the bound', () => {
    const { channel, taken, log } = stub();
    const outbox = new Outbox(channel, 10_000, () => log.push('slow'));
    for (let index = 0; index < 10 * limits.tailFrames; index += 1) {
      outbox.push('x', 4096);
      taken.shift()?.();
    }
    expect(log).toEqual([]);
  });
});

describe('endings', () => {
  test('closing the bridge tells every client 1001', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const clients = [await attach(ground, mine), await attach(ground, mine)];
    await ground.gate.close();
    for (const { client } of clients) expect((await client.close()).code).toBe(1001);
    await ground.gate.close();
  });

  test('revoking from the socket itself is answered before it ends with 1008', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const client = (await attach(ground, mine)).client;
    ground.dispatch = async (call) => ({
      revoked: call.method === 'bridge.revoke' ? await ground.gate.revoke(null) : 0,
    });
    expect(await client.call('bridge.revoke', { sessionId: null }, randomUUID())).toMatchObject({
      result: { revoked: 1 },
    });
    expect((await client.close()).code).toBe(1008);
    expect(ground.sinks.size).toBe(0);
  });

  test('a session that ends while its socket is open ends the socket', async () => {
    await ground.start({ timing: { pingIntervalMs: 40 } });
    const client = await browser();
    ground.wall += limits.sessionAbsoluteMs;
    expect((await client.close()).code).toBe(1008);
  });

  test('a peer that answers no ping is let go', async () => {
    await ground.start({ timing: { pingIntervalMs: 40 } });
    const { socket } = await attach(ground, await signIn(ground));
    socket.pause();
    ground.wall += limits.presenceTimeoutMs + 1;
    await expect.poll(() => ground.gate.attachments).toBe(0);
  });
});

test('an in-process client is served by the same code', async () => {
  await ground.start();
  let events: ChannelEvents | null = null;
  const client: Client = new Client(
    (text) => queueMicrotask(() => events?.text(text)),
    () => events?.closed(),
  );
  const channel: Channel = {
    open: (given) => (events = given),
    send: (text, sent) => queueMicrotask(() => (client.got(text), sent())),
    pause: () => undefined,
    resume: () => undefined,
    ping: null,
    close: (code, reason) => client.ended(code, reason),
  };
  const attachment = serveAttachment(channel, { kind: 'local', tty: true }, ground.gate.attachmentDeps);
  const answer = await client.call('connection.initialize', initializeParams());
  expect(answer.result?.['granted']).toContain('bridge.operate');
  await client.call('conversation.list');
  expect(ground.calls[0]?.actor).toEqual({ kind: 'local', attachmentId: attachment.id, tty: true });
  attachment.close(1000, 'done');
  expect(ground.gate.attachments).toBe(0);
});
