import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { LaunchTokens } from '../../bridge/gate/launch.ts';
import { Tickets } from '../../bridge/gate/tickets.ts';
import {
  ask,
  attach,
  exchange,
  Ground,
  openSocket,
  pageKey,
  proofOf,
  initializeParams,
  signIn,
  sourceOf,
  type Answer,
} from './parts.ts';

let ground: Ground;
beforeEach(async () => {
  ground = await new Ground().prepare();
});
afterEach(() => ground.end());

const session = async (base: string, cookie: string): Promise<number> =>
  (await ask(ground.gate, 'GET', `${base}session`, { headers: { Cookie: cookie } })).status;
const post = (path: string, cookie: string, body = '{}'): Promise<Answer> =>
  ask(ground.gate, 'POST', path, {
    headers: { Cookie: cookie, Origin: ground.gate.origin, 'Content-Type': 'application/json' },
    body,
  });

describe('T17 launch token', () => {
  test('holds 256 bits and travels in the fragment alone', async () => {
    await ground.start();
    const { url, expiresAt } = ground.gate.launchUrl();
    expect(Buffer.from(new URL(url).hash.slice('#launch='.length), 'base64url')).toHaveLength(32);
    expect(new URL(url).search).toBe('');
    expect(expiresAt).toBe(ground.wall + 60_000);
  });

  test('refuses a launch token used twice, and lets exactly one of 100 at once win', async () => {
    const gate = await ground.start();
    const token = ground.token;
    const key = pageKey().publicKey;
    const answers: Answer[] = [];
    // In waves, below the bound on connections.
    await Promise.all(
      Array.from({ length: 50 }, async () =>
        answers.push(await exchange(gate, token, key), await exchange(gate, token, key)),
      ),
    );
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
    expect(answers.filter((answer) => answer.status === 401)).toHaveLength(99);
    expect(answers.filter((answer) => answer.headers['set-cookie'] !== undefined)).toHaveLength(1);
    expect(ground.ledger.rows.size).toBe(1);
  });

  test('expires after 60 s by a clock that cannot be set back', async () => {
    const gate = await ground.start();
    const [early, late] = [ground.token, ground.token];
    ground.clock = 59_999;
    ground.wall -= 3_600_000;
    expect((await exchange(gate, early, pageKey().publicKey)).status).toBe(200);
    ground.clock = 60_000;
    expect((await exchange(gate, late, pageKey().publicKey)).status).toBe(401);
  });

  test('T21 after 1,000 wrong ones only the terminal opens the exchange again', () => {
    const tokens = new LaunchTokens(() => 0);
    const right = tokens.mint();
    for (let index = 0; index < limits.launchFailures; index += 1) expect(tokens.take(`wrong-${index}`)).toBe(false);
    expect(tokens.isClosed).toBe(true);
    expect(tokens.take(right)).toBe(false);
    const again = tokens.mint();
    expect(tokens.take(again)).toBe(true);
  });

  test('T21 secrets are compared by hash and in constant time', () => {
    for (const file of ['launch.ts', 'sessions.ts', 'judge.ts'])
      expect(sourceOf(`bridge/gate/${file}`)).toContain('timingSafeEqual(');
  });

  test.each([
    ['no key', { token: 'x' }],
    ['a key that is none', { token: 'x', publicKey: 'AAAA' }],
    ['an unknown field', { token: 'x', publicKey: pageKey().publicKey, scope: 'admin' }],
    ['no object', []],
  ])('T26 refuses a body with %s, and the token stays good', async (_name, body) => {
    const gate = await ground.start();
    const token = ground.token;
    const sent = JSON.stringify(Array.isArray(body) ? body : { ...body, token });
    const answer = await ask(gate, 'POST', '/launch', {
      headers: { Origin: gate.origin, 'Content-Type': 'application/json' },
      body: sent,
    });
    expect(answer.status).toBe(400);
    expect((await exchange(gate, token, pageKey().publicKey)).status).toBe(200);
  });
});

describe('session', () => {
  test('T18 the cookie is HttpOnly, Strict, host-only, on a random path, and stored as a hash alone', async () => {
    await ground.start();
    const { base, setCookie, cookie } = await signIn(ground);
    expect(setCookie).toMatch(
      /^cs=[A-Za-z0-9_-]{43}; HttpOnly; SameSite=Strict; Path=\/b\/[A-Za-z0-9_-]{22}\/; Max-Age=2592000$/,
    );
    expect(setCookie).toContain(`Path=${base};`);
    const [row] = ground.ledger.rows.values();
    expect(JSON.stringify(row)).not.toContain(cookie.slice(3));
    expect(row).toMatchObject({
      client: 'Test browser',
      port: ground.gate.port,
      expiresAt: ground.wall + limits.sessionAbsoluteMs,
    });
    expect(ground.news).toMatchObject([{ what: 'created', sessionId: row?.sessionId, keyId: row?.keyId }]);
  });

  test('T23 the exchange always mints, whatever cookie came along', async () => {
    const gate = await ground.start();
    const first = await signIn(ground);
    const key = pageKey();
    for (const planted of [first.cookie, `cs=${'A'.repeat(43)}`]) {
      const answer = await exchange(gate, ground.token, key.publicKey, { Cookie: planted });
      expect(answer.headers['set-cookie']?.[0]).not.toContain(planted);
    }
    expect(ground.ledger.rows.size).toBe(3);
    expect(await session(first.base, `cs=${'A'.repeat(43)}; ${first.cookie}`)).toBe(204);
  });

  test('T22 survives a restart on its port, and no other', async () => {
    const port = (await ground.start()).port;
    const { base, cookie } = await signIn(ground);
    await ground.gate.close();
    await ground.start({ port });
    expect(await session(base, cookie)).toBe(204);
    await ground.gate.close();
    await ground.start();
    expect(ground.gate.port).not.toBe(port);
    expect(await session(base, cookie)).toBe(401);
  });

  test('T22 revoke answers 410 from then on, rotate changes the path', async () => {
    await ground.start();
    const first = await signIn(ground);
    const second = await signIn(ground);
    const [row] = ground.gate.sessions();
    expect(ground.gate.sessions(row?.sessionId).filter((one) => one.current)).toHaveLength(1);
    expect(await ground.gate.revoke(first.setCookie === '' ? null : ([...ground.ledger.rows.keys()][0] ?? null))).toBe(
      1,
    );
    expect(await session(first.base, first.cookie)).toBe(410);
    expect(await session(second.base, second.cookie)).toBe(204);
    expect(ground.gate.sessions()).toHaveLength(1);
    expect(await ground.gate.rotate()).toBe(1);
    expect(await session(second.base, second.cookie)).toBe(401);
    const third = await signIn(ground);
    expect(third.base).not.toBe(first.base);
    expect(await session(third.base, second.cookie)).toBe(410);
  });

  test('ends after 7 idle days and after 30 days at all', async () => {
    await ground.start();
    const { base, cookie } = await signIn(ground);
    ground.wall += limits.sessionIdleMs - 1;
    expect(await session(base, cookie)).toBe(204);
    ground.wall += limits.sessionIdleMs - 1;
    expect(await session(base, cookie)).toBe(204);
    ground.wall += limits.sessionIdleMs;
    expect(await session(base, cookie)).toBe(401);
    const again = await signIn(ground);
    for (let days = 0; days < 5; days += 1) {
      expect(await session(again.base, again.cookie)).toBe(204);
      ground.wall += limits.sessionIdleMs - 1;
    }
    expect(await session(again.base, again.cookie)).toBe(401);
  });

  test('keeps at most 64, the longest unseen one yields', async () => {
    await ground.start();
    const first = await signIn(ground);
    for (let index = 0; index < limits.sessions; index += 1) {
      ground.wall += 1000;
      await signIn(ground);
    }
    expect(ground.gate.sessions()).toHaveLength(limits.sessions);
    expect(await session(first.base, first.cookie)).toBe(410);
  });

  test('logout revokes this session alone, expires our cookie and ends its sockets with 1008', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const other = await signIn(ground);
    const { client } = await attach(ground, mine);
    const answer = await post(`${mine.base}logout`, mine.cookie);
    expect(answer.status).toBe(204);
    expect(answer.headers['set-cookie']).toEqual([`cs=; HttpOnly; SameSite=Strict; Path=${mine.base}; Max-Age=0`]);
    expect(answer.headers['clear-site-data']).toBeUndefined();
    expect((await client.close()).code).toBe(1008);
    expect(await session(mine.base, mine.cookie)).toBe(410);
    expect(await session(other.base, other.cookie)).toBe(204);
  });

  test('T24 forget also clears our storage, never cookies', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const answer = await post(`${mine.base}forget`, mine.cookie);
    expect(answer.status).toBe(204);
    expect(answer.headers['clear-site-data']).toBe('"storage"');
    expect(await session(mine.base, mine.cookie)).toBe(410);
  });

  test('a logout with anything in it is refused and ends nothing', async () => {
    await ground.start();
    const mine = await signIn(ground);
    expect((await post(`${mine.base}logout`, mine.cookie, '{"all":true}')).status).toBe(400);
    expect(await session(mine.base, mine.cookie)).toBe(204);
  });

  test('a revoked session is answered 410 at the socket, an unknown one 401', async () => {
    await ground.start();
    const mine = await signIn(ground);
    await expect(openSocket(ground, { base: mine.base, cookie: `cs=${'A'.repeat(43)}` })).rejects.toThrow('status 401');
    await ground.gate.revoke(null);
    await expect(openSocket(ground, mine)).rejects.toThrow('status 410');
  });
});

describe('possession', () => {
  test('T19 a stolen cookie alone opens nothing', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const thief = { ...mine, key: pageKey() };
    for (const proof of [undefined, 'AAAA', 'signed by another key']) {
      const { client } = await openSocket(ground, mine);
      const hello = await client.hello();
      expect(Object.keys(hello).sort()).toEqual(['bootId', 'kind', 'nonce', 'wire']);
      const sent = proof === undefined ? {} : { proof: proof === 'AAAA' ? proof : proofOf(ground, thief, hello) };
      expect(await client.call('conversation.list')).toMatchObject({
        kind: 'error',
        error: { code: 'not_initialized' },
      });
      expect(await client.call('connection.initialize', initializeParams(sent))).toMatchObject({
        error: { code: 'unauthorized' },
      });
      expect((await client.close()).code).toBe(1008);
    }
    expect(ground.calls).toEqual([]);
    expect(ground.gate.attachments).toBe(0);
    const put = {
      headers: { Cookie: mine.cookie, Origin: ground.gate.origin, 'Content-Type': 'application/octet-stream' },
      body: 'x',
    };
    expect((await ask(ground.gate, 'PUT', `${mine.base}blob?conversation=c1`, put)).status).toBe(401);
    expect((await ask(ground.gate, 'GET', `${mine.base}blob/${'0'.repeat(64)}?conversation=c1`, put)).status).toBe(400);
  });

  test('T20 a nonce is good once, on its own connection, for its own path', async () => {
    await ground.start();
    const mine = await signIn(ground);
    const one = await openSocket(ground, mine);
    const two = await openSocket(ground, mine);
    const hello = await one.client.hello();
    await two.client.hello();
    const proof = proofOf(ground, mine, hello);
    expect(await two.client.call('connection.initialize', initializeParams({ proof }))).toMatchObject({
      error: { code: 'unauthorized' },
    });
    expect((await two.client.close()).code).toBe(1008);
    expect(await one.client.call('connection.initialize', initializeParams({ proof }))).toMatchObject({
      kind: 'result',
    });
    expect(await one.client.call('connection.initialize', initializeParams({ proof }))).toMatchObject({
      error: { code: 'bad_request' },
    });
    const three = await openSocket(ground, mine);
    const elsewhere = proofOf(ground, { ...mine, base: '/b/elsewhere/' }, await three.client.hello());
    expect(await three.client.call('connection.initialize', initializeParams({ proof: elsewhere }))).toMatchObject({
      error: { code: 'unauthorized' },
    });
  });

  test('tickets are good once, for 10 s, for their path and session', () => {
    let clock = 0;
    const tickets = new Tickets(() => clock);
    const ticket = tickets.create('s1', 'blob');
    expect(tickets.take(ticket, 's1', 'blob?conversation=c')).toBe(true);
    expect(tickets.take(ticket, 's1', 'blob?conversation=c')).toBe(false);
    expect(tickets.take(tickets.create('s1', 'blob'), 's2', 'blob')).toBe(false);
    expect(tickets.take(tickets.create('s1', 'blob'), 's1', `blob/${'0'.repeat(64)}`)).toBe(false);
    expect(tickets.take(tickets.create('s1', 'blob?conversation=a'), 's1', 'blob?conversation=b')).toBe(false);
    // The page names it before the browser encodes the quote.
    expect(
      tickets.take(tickets.create('s1', "blob?conversation=a&name=it's"), 's1', 'blob?conversation=a&name=it%27s'),
    ).toBe(true);
    const late = tickets.create('s1', 'blob');
    clock = limits.ticketMs;
    expect(tickets.take(late, 's1', 'blob')).toBe(false);
    for (let index = 0; index < limits.tickets; index += 1) tickets.create('s1', 'blob');
    expect(() => tickets.create('s1', 'blob')).toThrow(expect.objectContaining({ code: 'rate_limited' }) as Error);
  });
});
