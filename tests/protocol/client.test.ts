import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createClient, type Client, type ConnectionState, type Update } from '#protocol/client.ts';
import { Refusal } from '#protocol/errors.ts';
import { socketProofText } from '#protocol/frames.ts';
import { limits } from '#protocol/limits.ts';
import type { Platform } from '#protocol/platform.ts';
import { Clock, conversationId, identity, ModelBridge } from './model.ts';
import { key } from './record.ts';

interface Scene {
  readonly clock: Clock;
  readonly bridge: ModelBridge;
  readonly client: Client;
  readonly states: ConnectionState[];
}
const scene = (more: (bridge: ModelBridge) => Partial<Platform> = () => ({})): Scene => {
  const clock = new Clock();
  const bridge = new ModelBridge(clock);
  const client = createClient(bridge.platform(more(bridge)), identity);
  const states: ConnectionState[] = [];
  client.on({ status: ({ state }) => states.at(-1) !== state && states.push(state) });
  onTestFinished(() => client.close());
  return { clock, bridge, client, states };
};
/** A client that is live. */
const live = async (): Promise<Scene> => {
  const made = scene();
  made.client.start();
  await made.clock.run(50);
  expect(made.client.status.state).toBe('live');
  return made;
};
const say = (text: string): [string, Record<string, unknown>] => [
  'message',
  { messageId: `m-${text}`, role: 'agent', text },
];

/** What the app would hold: snapshots replace, events add. */
class Copy {
  seqs: number[] = [];
  readonly updates: Update[] = [];
  listener = (update: Update): void => {
    this.updates.push(update);
    if (update.type === 'snapshot') this.seqs = update.events.map(({ seq }) => seq);
    if (update.type === 'event') this.seqs.push(update.event.seq);
  };
  get types(): string[] {
    return this.updates.map(({ type }) => type);
  }
  get draft(): string | null {
    const last = this.updates.findLast((update) => update.type === 'draft');
    return last?.draft?.text ?? null;
  }
}
const whole = (length: number): number[] => Array.from({ length }, (_, index) => index + 1);
/** The refusal a promise ends in. */
const refusal = (promise: Promise<unknown>): Promise<Refusal> =>
  promise.then(
    () => Promise.reject(new Error('was not refused')),
    (error: unknown) => (error instanceof Refusal ? error : Promise.reject(error as Error)),
  );

describe('connection (D-03, D-10, D-53)', () => {
  test('goes from connecting over loading to live', async () => {
    const { clock, client, states } = scene();
    client.start();
    await clock.run(50);
    expect(states).toEqual(['loading', 'live']);
    expect(client.session?.bridgeId).toBe('bridge');
  });

  test('signs the proof over origin, path, boot id and nonce', async () => {
    const signed: string[] = [];
    const { clock, bridge, client } = scene(() => ({
      address: () => ({ origin: 'http://127.0.0.1:7433', path: '/b/x/socket' }),
      sign: (text) => Promise.resolve(signed.push(text) === 1 ? 'c2lnbmVk' : ''),
    }));
    client.start();
    await clock.run(50);
    const params = bridge.requests[0]?.params as { proof: string };
    expect(params.proof).toBe('c2lnbmVk');
    expect(signed).toEqual([
      socketProofText({
        origin: 'http://127.0.0.1:7433',
        path: '/b/x/socket',
        bootId: '00000009-0000-7000-8000-000000000002',
        nonce: 'nonce',
      }),
    ]);
  });

  test('a bridge of another wire version ends as incompatible, before anything is asked, and is not tried again', async () => {
    const { clock, bridge, client } = scene();
    bridge.wire = 99;
    client.start();
    await clock.run(60_000);
    expect(client.status.state).toBe('incompatible');
    expect([bridge.requests.length, bridge.connections]).toEqual([0, 1]);
    expect((await refusal(client.call('workspace.list', {}))).code).toBe('unsupported_version');
  });

  test.each([
    ['signed_out', 'signed_out', false],
    ['revoked', 'signed_out', true],
    ['offline', 'offline', false],
    ['live', 'reconnecting', false],
  ] as const)('a failed upgrade with the session %s shows %s', async (probe, state, revoked) => {
    const { clock, bridge, client } = scene();
    bridge.isOff = true;
    bridge.probeAnswer = probe;
    client.start();
    await clock.run(100);
    expect(client.status).toMatchObject({ state, revoked });
  });

  test('possession that failed is signed out, although the cookie is live', async () => {
    const { clock, bridge, client } = scene();
    bridge.probeAnswer = 'live';
    bridge.override = ({ method }) => (method === 'connection.initialize' ? { code: 'unauthorized' } : null);
    client.start();
    await clock.run(60_000);
    expect(client.status.state).toBe('signed_out');
    expect(bridge.connections).toBe(1);
  });

  test.each([
    ['live', 'live', 2],
    ['signed_out', 'signed_out', 1],
  ] as const)('a socket closed as 1008 whose session is %s becomes %s', async (probe, state, connections) => {
    const { clock, bridge, client } = await live();
    bridge.probeAnswer = probe;
    bridge.drop(1008);
    await clock.run(20_000);
    expect([client.status.state, bridge.connections]).toEqual([state, connections]);
  });

  test('a key that cannot sign is signed out', async () => {
    const { clock, bridge, client } = scene(() => ({
      address: () => ({ origin: 'o', path: 'p' }),
      sign: () => Promise.reject(new Error('no key')),
    }));
    bridge.probeAnswer = 'signed_out';
    client.start();
    await clock.run(100);
    expect(client.status.state).toBe('signed_out');
  });

  test('comes back by itself when the bridge does, waiting longer each time and never longer than the bound', async () => {
    const { clock, bridge, client, states } = scene();
    bridge.isOff = true;
    const attempts: number[] = [];
    client.on({ status: ({ retryAt }) => retryAt !== null && attempts.push(retryAt - clock.now) });
    client.start();
    await clock.run(120_000);
    expect(client.status.state).toBe('offline');
    expect(Math.max(...attempts)).toBeLessThanOrEqual(limits.reconnectMaxMs);
    expect(attempts.length).toBeLessThan(40);
    expect(attempts.at(-1)).toBeGreaterThan(limits.reconnectMaxMs / 4);
    bridge.isOff = false;
    await clock.run(limits.reconnectMaxMs + 100);
    expect(states).toEqual(['offline', 'loading', 'live']);
  });

  test('a woken client tries at once', async () => {
    const { clock, bridge, client } = scene();
    bridge.isOff = true;
    client.start();
    await clock.run(60_000);
    bridge.isOff = false;
    client.wake();
    await clock.run(20);
    expect(client.status.state).toBe('live');
  });

  test('a woken client replaces a silent socket', async () => {
    const { clock, bridge, client } = await live();
    bridge.isSilent = true;
    client.wake();
    await clock.run(limits.handshakeMs - 100);
    expect(bridge.connections).toBe(1);
    bridge.isSilent = false;
    bridge.override = ({ method }) => (method === 'connection.ping' ? { result: { now: 1 } } : null);
    await clock.run(200);
    expect([bridge.connections, client.status.state]).toEqual([2, 'live']);
  });

  test('an answer within the tick of the clock is an answer', async () => {
    const { clock, bridge, client } = scene((made) => ({ now: () => Math.floor(made.clock.now / 1000) * 1000 }));
    client.start();
    await clock.run(50);
    client.wake();
    await clock.run(2 * limits.handshakeMs);
    expect([bridge.connections, client.status.state]).toEqual([1, 'live']);
  });

  test('beats only while visible', async () => {
    const { clock, bridge, client } = await live();
    const pings = (): number => bridge.requests.filter(({ method }) => method === 'connection.ping').length;
    await clock.run(5 * limits.pingIntervalMs);
    expect(pings()).toBe(0);
    client.setVisible(true);
    await clock.run(5 * limits.pingIntervalMs + 10);
    expect(pings()).toBe(5);
    client.setVisible(false);
    await clock.run(5 * limits.pingIntervalMs);
    expect(pings()).toBe(5);
  });

  test('a handshake that does not end is given up', async () => {
    const { clock, bridge, client } = scene();
    bridge.isSilent = true;
    client.start();
    await clock.run(limits.handshakeMs + 20);
    bridge.isSilent = false;
    await clock.run(2 * limits.reconnectMinMs + 20);
    expect([bridge.connections, client.status.state]).toEqual([2, 'live']);
  });

  test('leaves no timer behind', async () => {
    const { clock, bridge, client } = await live();
    client.subscribe(conversationId, { listener: () => undefined });
    client.setVisible(true);
    await clock.run(100);
    bridge.append(...say('x'));
    const open = refusal(client.call('workspace.list', {}));
    client.close();
    expect((await open).code).toBe('cancelled');
    await clock.run(10);
    expect(clock.waiting).toBe(0);
  });
});

describe('frames (D-02)', () => {
  test.each([
    ['not JSON', '{'],
    ['no kind', '{"a":1}'],
    ['an unknown field', '{"kind":"invalidate","topic":"agents","generation":1,"more":1}'],
    [
      'an error that names no request',
      '{"kind":"error","id":-1,"error":{"code":"bad_request","message":"x","retryable":false}}',
    ],
    ['a second hello', '{"kind":"hello","wire":1,"bootId":"00000009-0000-7000-8000-000000000002","nonce":"n"}'],
    ['more than a frame', `"${'x'.repeat(limits.frameBytes)}"`],
  ])('a malformed frame ends the connection, and a new one is made: %s', async (_, text) => {
    const { clock, bridge, client, states } = await live();
    bridge.send(text);
    await clock.run(2000);
    expect([bridge.connections, client.status.state]).toEqual([2, 'live']);
    expect(states).toContain('reconnecting');
  });

  test('an unknown kind of frame is ignored', async () => {
    const { clock, bridge, client } = await live();
    bridge.send({ kind: 'weather', rain: true });
    await clock.run(2000);
    expect([bridge.connections, client.status.state]).toEqual([1, 'live']);
  });

  test('invalidate and presence reach their listeners', async () => {
    const { clock, bridge, client } = await live();
    const heard: unknown[] = [];
    client.on({
      invalidate: (topic, generation) => heard.push([topic, generation]),
      presence: (attachments) => heard.push(attachments.length),
    });
    bridge.send({ kind: 'invalidate', topic: 'approvals', generation: 7 });
    bridge.send({ kind: 'presence', attachments: [] });
    await clock.run(10);
    expect(heard).toEqual([['approvals', 7], 0]);
  });
});

describe('calls (D-11, D-13)', () => {
  test('answers with the checked result', async () => {
    const { clock, client } = await live();
    const answer = client.call('conversation.get', { conversationId });
    await clock.run(10);
    expect((await answer).title).toBe('Model');
  });

  test('an answer that does not fit its schema is an integrity error naming the field, never the value', async () => {
    const { clock, bridge, client } = await live();
    bridge.override = ({ method }) =>
      method === 'workspace.list' ? { result: { workspaces: [{ workspaceId: 'secret' }] } } : null;
    const answer = refusal(client.call('workspace.list', {}));
    await clock.run(10);
    expect(await answer).toMatchObject({
      code: 'integrity_error',
      details: { field: expect.stringMatching(/^workspaces\[0\]/) as string },
    });
    expect(JSON.stringify((await answer).details)).not.toContain('secret');
  });

  test('a refusal of the bridge keeps its code; a code outside the closed list becomes internal_error', async () => {
    const { clock, bridge, client } = await live();
    bridge.override = ({ method }) => (method === 'conversation.get' ? { code: 'unknown_conversation' } : null);
    const known = refusal(client.call('conversation.get', { conversationId }));
    await clock.run(10);
    expect((await known).code).toBe('unknown_conversation');
    bridge.isSilent = true;
    const unknown = refusal(client.call('workspace.list', {}));
    await clock.run(1);
    bridge.send({ kind: 'error', id: 3, error: { code: 'sunspots', message: 'x', retryable: true } });
    await clock.run(10);
    expect((await unknown).code).toBe('internal_error');
  });

  test('what was not granted is not asked', async () => {
    const { clock, bridge, client } = scene();
    bridge.granted = ['connection', 'conversation.read'];
    client.start();
    await clock.run(50);
    const answer = refusal(client.call('workspace.list', {}));
    await clock.run(10);
    expect((await answer).code).toBe('unsupported_capability');
    expect(bridge.requests.map(({ method }) => method)).toEqual(['connection.initialize']);
    expect([client.granted('conversation.read'), client.granted('workspace')]).toEqual([true, false]);
  });

  test('params that do not fit are refused here, and a frame that is too large is not sent', async () => {
    const { clock, bridge, client } = await live();
    expect((await refusal(client.call('conversation.history', { conversationId: '' }))).code).toBe('bad_request');
    const content = Array.from({ length: 8 }, () => ({ type: 'text' as const, text: 'x'.repeat(limits.promptBytes) }));
    expect(
      (await refusal(client.change('conversation.send', { conversationId, delivery: 'prompt', content }))).code,
    ).toBe('frame_too_large');
    await clock.run(10);
    expect(bridge.requests.length).toBe(1);
  });

  test('an unanswered read is given up in time and cancelled', async () => {
    const { clock, bridge, client } = await live();
    bridge.isSilent = true;
    const answer = refusal(client.call('workspace.list', {}));
    await clock.run(10);
    bridge.isSilent = false;
    await clock.run(limits.requestTimeoutMs + 10);
    expect((await answer).code).toBe('offline');
    expect(bridge.requests.at(-1)).toMatchObject({ method: 'connection.cancelRequest', params: { id: 2 } });
  });

  test('a read given up by its caller is cancelled at the bridge', async () => {
    const { clock, bridge, client } = await live();
    const controller = new AbortController();
    bridge.isSilent = true;
    const answer = refusal(client.call('workspace.list', {}, { signal: controller.signal }));
    await clock.run(10);
    bridge.isSilent = false;
    controller.abort();
    await clock.run(10);
    expect((await answer).code).toBe('cancelled');
    expect(bridge.requests.at(-1)).toMatchObject({ method: 'connection.cancelRequest', params: { id: 2 } });
    expect((await refusal(client.call('workspace.list', {}, { signal: controller.signal }))).code).toBe('cancelled');
  });

  test('a read whose connection is lost is asked again on the next one', async () => {
    const { clock, bridge, client } = await live();
    const answer = client.call('conversation.get', { conversationId });
    bridge.drop();
    await clock.run(2000);
    expect((await answer).title).toBe('Model');
  });

  test('a hundred calls at once keep to the pace of the bridge and all succeed', async () => {
    const { clock, bridge, client } = await live();
    const answers = Promise.all(Array.from({ length: 100 }, () => client.call('conversation.get', { conversationId })));
    await clock.run(12_000);
    expect((await answers).length).toBe(100);
    expect(bridge.rateLimited).toBe(0);
  });

  test('a call the bridge held back for its rate waits instead of failing', async () => {
    const { clock, bridge, client } = await live();
    let times = 0;
    bridge.override = ({ method }) =>
      method === 'conversation.get' && (times += 1) < 3 ? { code: 'rate_limited' } : null;
    const answer = client.call('conversation.get', { conversationId });
    await clock.run(5000);
    expect((await answer).title).toBe('Model');
  });

  test('without a bridge a call is refused at once; while it is being reached again it waits', async () => {
    const { clock, bridge, client } = await live();
    bridge.isOff = true;
    bridge.drop();
    const waiting = refusal(client.call('workspace.list', {}));
    await clock.run(5000);
    expect((await waiting).code).toBe('offline');
    expect((await refusal(client.call('workspace.list', {}))).code).toBe('offline');
  });
});

describe('changes (D-30, D-31, D-34)', () => {
  test('carries a fresh UUIDv7 key', async () => {
    const { clock, bridge, client } = await live();
    const answer = client.change('conversation.rename', { conversationId, title: 'New' });
    await clock.run(10);
    expect((await answer).title).toBe('New');
    expect(bridge.requests.at(-1)?.key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });

  test.each([
    ['before the bridge had it', 0],
    ['after the bridge had done it', 1],
  ])('lost %s it is uncertain, and the same key makes it exactly once', async (_, afterMs) => {
    const { clock, bridge, client } = await live();
    const rename = { conversationId, title: 'New' };
    const answer = refusal(client.change('conversation.rename', rename, { key: key(1) }));
    await clock.run(afterMs);
    bridge.drop();
    await clock.run(10);
    expect(await answer).toMatchObject({ code: 'uncertain', details: { key: key(1) } });
    expect(bridge.applied.length).toBe(afterMs);
    await clock.run(2000);
    const again = client.change('conversation.rename', rename, { key: key(1) });
    await clock.run(10);
    expect((await again).title).toBe('New');
    expect(bridge.applied).toEqual([key(1)]);
  });

  test('one that was never sent is not uncertain', async () => {
    const { clock, bridge, client } = await live();
    bridge.isOff = true;
    bridge.drop();
    await clock.run(1);
    const answer = refusal(client.change('conversation.rename', { conversationId, title: 'New' }));
    await clock.run(5000);
    expect((await answer).code).toBe('offline');
    expect(bridge.applied).toEqual([]);
  });

  test('is never given up for taking long', async () => {
    const { clock, bridge, client } = await live();
    bridge.isSilent = true;
    let isSettled = false;
    const answer = client
      .change('conversation.rename', { conversationId, title: 'New' })
      .catch((error: unknown) => ((isSettled = true), error));
    await clock.run(10 * limits.requestTimeoutMs);
    expect(isSettled).toBe(false);
    bridge.drop();
    await clock.run(10);
    expect(await answer).toMatchObject({ code: 'uncertain' });
  });
});

describe('following a conversation (D-44, D-45)', () => {
  const following = async (events = 3): Promise<Scene & { copy: Copy }> => {
    const made = await live();
    for (let index = 0; index < events; index += 1) made.bridge.append(...say(String(index)));
    const copy = new Copy();
    made.client.subscribe(conversationId, { listener: copy.listener });
    await made.clock.run(20);
    return { ...made, copy };
  };
  const acks = (bridge: ModelBridge): number[] =>
    bridge.requests.filter(({ method }) => method === 'connection.ack').map(({ params }) => Number(params['seq']));

  test('gives a snapshot, acknowledges its boundary at once, then every event', async () => {
    const { clock, bridge, copy } = await following();
    expect(acks(bridge)).toEqual([3]);
    bridge.append(...say('a'));
    bridge.append(...say('b'));
    await clock.run(10);
    expect(copy.types).toEqual(['snapshot', 'event', 'event']);
    expect(copy.seqs).toEqual(whole(5));
  });

  test('acknowledges at most once a second', async () => {
    const { clock, bridge } = await following();
    for (let index = 0; index < 50; index += 1) {
      bridge.append(...say(`n${index}`));
      await clock.run(100);
    }
    await clock.run(2000);
    expect(acks(bridge).length).toBeLessThanOrEqual(7);
    expect(acks(bridge).at(-1)).toBe(53);
  });

  test('resumes by cursor after the connection was lost: nothing doubled, nothing missing (case 1)', async () => {
    const { clock, bridge, client, copy } = await following();
    for (let index = 0; index < 3; index += 1) {
      bridge.drop();
      bridge.append(...say(`lost-${index}`));
      await clock.run(30_000);
      bridge.append(...say(`live-${index}`));
      await clock.run(10);
    }
    expect(copy.seqs).toEqual(whole(9));
    expect(copy.types.filter((type) => type === 'snapshot').length).toBe(1);
    expect(copy.types.filter((type) => type === 'resumed').length).toBe(3);
    expect(client.status.state).toBe('live');
  });

  test('goes on from a copy kept offline', async () => {
    const { clock, bridge, client } = await live();
    for (let index = 0; index < 5; index += 1) bridge.append(...say(String(index)));
    const copy = new Copy();
    const subscription = client.subscribe(conversationId, {
      after: { lineage: 'lineage-1', seq: 3 },
      listener: copy.listener,
    });
    await clock.run(10);
    expect([copy.seqs, copy.types]).toEqual([
      [4, 5],
      ['event', 'event', 'resumed'],
    ]);
    expect(subscription.cursor).toEqual({ lineage: 'lineage-1', seq: 5 });
  });

  test('a copy of another lineage, or too far behind, gets a snapshot', async () => {
    for (const after of [
      { lineage: 'old', seq: 3 },
      { lineage: 'lineage-1', seq: 1 },
    ]) {
      const { clock, bridge, client } = await live();
      bridge.pageEvents = 3;
      for (let index = 0; index < 5; index += 1) bridge.append(...say(String(index)));
      const copy = new Copy();
      client.subscribe(conversationId, { after, listener: copy.listener });
      await clock.run(20);
      expect([copy.types, copy.seqs]).toEqual([['snapshot'], [3, 4, 5]]);
    }
  });

  test('a restored bridge (new lineage) is loaded anew', async () => {
    const { clock, bridge, copy } = await following();
    bridge.lineage = 'lineage-2';
    bridge.log = bridge.log.slice(0, 2);
    bridge.drop();
    await clock.run(2000);
    expect(copy.types).toEqual(['snapshot', 'snapshot']);
    expect(copy.seqs).toEqual(whole(2));
  });

  test('identical duplicates are ignored', async () => {
    const { clock, bridge, copy } = await following();
    bridge.append(...say('twice'), 'twice');
    bridge.repeat(1);
    await clock.run(10);
    expect(copy.seqs).toEqual(whole(4));
    expect(copy.types).not.toContain('resumed');
  });

  test('an altered duplicate is not believed: everything is loaded from scratch', async () => {
    const { clock, bridge, copy } = await following();
    const [first] = bridge.log;
    bridge.send(bridge.eventFrame({ ...first!, data: { messageId: 'm-0', role: 'agent', text: 'altered' } }));
    await clock.run(20);
    expect(copy.types).toEqual(['snapshot', 'snapshot']);
    expect(copy.seqs).toEqual(whole(3));
  });

  test('a bridge that goes on contradicting itself is given up', async () => {
    const { clock, bridge, copy } = await following();
    bridge.override = ({ method, id }) =>
      method === 'conversation.subscribe' && id > 0
        ? {
            result: {
              ...(copy.updates[0] as Record<string, unknown>),
              type: undefined,
              events: [bridge.log[0], bridge.log[2]],
            } as Record<string, unknown>,
          }
        : null;
    bridge.drop();
    await clock.run(5000);
    const last = copy.updates.at(-1);
    expect(last).toMatchObject({ type: 'gone', refusal: { code: 'integrity_error' } });
  });

  test('a gap is mended by asking from the last event', async () => {
    const { clock, bridge, copy } = await following();
    bridge.append(...say('lost'), 'never');
    bridge.append(...say('seen'));
    await clock.run(20);
    expect(copy.seqs).toEqual(whole(5));
    expect(copy.types).toEqual(['snapshot', 'event', 'event', 'resumed']);
  });

  test('an acknowledgement of an unknown subscription asks again', async () => {
    const { clock, bridge, copy } = await following();
    let isOnce = true;
    bridge.override = ({ method }) =>
      method === 'connection.ack' && isOnce ? ((isOnce = false), { code: 'unknown_subscription' }) : null;
    bridge.append(...say('x'));
    await clock.run(2000);
    expect(copy.types).toEqual(['snapshot', 'event', 'resumed']);
  });

  test('a conversation the bridge does not give is gone, and may be followed anew', async () => {
    const { clock, client } = await live();
    const copy = new Copy();
    client.subscribe('elsewhere', { listener: copy.listener });
    await clock.run(10);
    expect(copy.updates).toMatchObject([{ type: 'gone', refusal: { code: 'unknown_conversation' } }]);
    expect(() => client.subscribe('elsewhere', { listener: copy.listener })).not.toThrow();
  });

  test('left and followed again at once, the former listener hears nothing and the new one everything', async () => {
    const { clock, bridge, client } = await live();
    const former = new Copy();
    const copy = new Copy();
    const first = client.subscribe(conversationId, { listener: former.listener });
    await clock.run(10);
    first.close();
    const second = client.subscribe(conversationId, { listener: copy.listener });
    expect(() => client.subscribe(conversationId, { listener: copy.listener })).toThrow(TypeError);
    bridge.append(...say('between'));
    await clock.run(20);
    bridge.append(...say('after'));
    await clock.run(20);
    expect([former.types, copy.seqs]).toEqual([['snapshot'], whole(2)]);
    second.close();
    await clock.run(10);
    bridge.append(...say('unheard'));
    await clock.run(10);
    expect(copy.seqs).toEqual(whole(2));
    const asked = bridge.requests.map(({ method }) => method).filter((method) => method.endsWith('ubscribe'));
    expect(asked).toEqual([
      'conversation.subscribe',
      'conversation.unsubscribe',
      'conversation.subscribe',
      'conversation.unsubscribe',
    ]);
  });

  test('progress reaches the listener with its turn', async () => {
    const { clock, bridge, copy } = await following();
    bridge.activity({ type: 'status', state: 'working', since: 5 });
    await clock.run(10);
    expect(copy.updates.at(-1)).toMatchObject({ type: 'activity', frame: { state: 'working' } });
  });

  describe('streaming text (D-43)', () => {
    const text = (offset: number, value: string, part = 0) =>
      ({ type: 'text', messageId: 'a1', role: 'agent', part, offset, text: value }) as const;

    test('grows by offset, ignoring overlaps, and is superseded by its event', async () => {
      const { clock, bridge, copy } = await following();
      for (const frame of [text(0, 'Once'), text(4, ' upon'), text(2, 'ce upon a'), text(0, 'On')])
        bridge.activity(frame);
      await clock.run(10);
      expect(copy.draft).toBe('Once upon a');
      bridge.append('message', { messageId: 'a1', role: 'agent', text: 'Once upon a time' });
      bridge.activity(text(4, ' late'));
      bridge.activity(text(0, 'late'));
      await clock.run(10);
      expect(copy.draft).toBeNull();
    });

    test('a gap drops the text and waits for the event', async () => {
      const { clock, bridge, copy } = await following();
      bridge.activity(text(0, 'Once'));
      bridge.activity(text(9, 'lost'));
      bridge.activity(text(13, 'more'));
      await clock.run(10);
      expect(copy.draft).toBeNull();
    });

    test('the next segment waits for the event of the one before, but not for ever', async () => {
      const { clock, bridge, copy } = await following();
      bridge.activity(text(0, 'First'));
      bridge.activity(text(0, 'Second', 1));
      await clock.run(10);
      expect(copy.draft).toBe('First');
      bridge.append('message', { messageId: 'a1', role: 'agent', text: 'First' });
      await clock.run(10);
      expect(copy.draft).toBe('Second');
      bridge.activity(text(0, 'Third', 2));
      await clock.run(limits.draftMs + 10);
      expect(copy.draft).toBe('Third');
    });

    test('comes with the subscription and is replaced after a reconnect', async () => {
      const { clock, bridge, client, copy } = await following(0);
      bridge.activity(text(0, 'Once'));
      await clock.run(10);
      bridge.draft = { messageId: 'a1', role: 'agent', part: 0, text: 'Once upon a time' };
      bridge.drop();
      await clock.run(2000);
      expect(copy.draft).toBe('Once upon a time');
      expect(client.status.state).toBe('live');
    });
  });

  test('whatever the connection does, the copy is the log, nothing doubled, and a change happens once (case 1)', async () => {
    const action = fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('once', 'twice', 'never') },
      { weight: 2, arbitrary: fc.constantFrom('drop', 'drop late', 'repeat', 'off', 'on', 'wake') },
      { weight: 2, arbitrary: fc.constant('change') },
    );
    const script = fc.array(fc.tuple(action, fc.constantFrom(0, 1, 2, 3, 40, 900)), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(script, async (steps) => {
        const { clock, bridge, client } = scene();
        client.start();
        const copy = new Copy();
        client.subscribe(conversationId, { listener: copy.listener });
        let changes = 0;
        const unsure = new Set<string>();
        const settled: Promise<void>[] = [];
        const change = (name: string): void => {
          const done = client.change('conversation.rename', { conversationId, title: 'New' }, { key: name }).then(
            () => void unsure.delete(name),
            (error: unknown) =>
              void expect(error).toMatchObject({ code: expect.stringMatching(/^(uncertain|offline)$/) as string }),
          );
          settled.push(done);
        };
        for (const [name, waitMs] of steps) {
          if (name === 'once' || name === 'twice' || name === 'never')
            bridge.append(...say(String(bridge.log.length)), name);
          if (name === 'drop') bridge.drop();
          if (name === 'drop late') clock.timer(2, () => bridge.drop(1013));
          if (name === 'repeat') bridge.repeat(1);
          if (name === 'off' || name === 'on') bridge.isOff = name === 'off';
          if (name === 'off') bridge.drop();
          if (name === 'wake') client.wake();
          if (name === 'change') {
            const own = key((changes += 1));
            unsure.add(own);
            change(own);
          }
          await clock.run(waitMs);
        }
        bridge.isOff = false;
        await clock.run(60_000);
        for (const name of [...unsure]) change(name);
        // A last event shows a gap at the very end, which nothing else could.
        bridge.append(...say('last'));
        await clock.run(60_000);
        await Promise.all(settled);
        expect(copy.seqs).toEqual(whole(bridge.log.length));
        expect([...bridge.applied].sort()).toEqual(
          Array.from({ length: changes }, (_, index) => key(index + 1)).sort(),
        );
        expect(unsure.size).toBe(0);
        expect(client.status.state).toBe('live');
        expect(bridge.rateLimited).toBe(0);
        client.close();
      }),
      { numRuns: 60 },
    );
  });
});
