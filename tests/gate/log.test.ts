import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Refusal } from '#protocol/errors.ts';
import {
  ask,
  attach,
  exchange,
  Ground,
  initializeParams,
  openControl,
  openSocket,
  pageKey,
  proofOf,
  raw,
  signIn,
} from './parts.ts';

let ground: Ground;
beforeEach(async () => {
  ground = await new Ground().prepare();
});
afterEach(() => ground.end());

test('L-15 of 40 planted secrets the log holds none, though every refusal has its reason', async () => {
  const gate = await ground.start();
  const secrets: string[] = [];
  const plant = (text: string = randomBytes(18).toString('base64url')): string => {
    secrets.push(text);
    return text;
  };
  // Ours: token, cookie, segment, key, proof, nonce, ticket.
  const token = plant(ground.token);
  const key = pageKey();
  plant(key.publicKey);
  const launched = await exchange(gate, token, key.publicKey);
  const base = (JSON.parse(launched.body) as { base: string }).base;
  const cookie = launched.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
  plant(base.slice(3, -1));
  plant(cookie.slice(3));
  plant(createHash('sha256').update(cookie.slice(3)).digest('hex'));
  const mine = { key, base, cookie, setCookie: '' };
  const { client } = await openSocket(ground, mine);
  const hello = await client.hello();
  plant(hello.nonce);
  const proof = plant(proofOf(ground, mine, hello));
  await client.call('connection.initialize', initializeParams({ proof }));
  plant(String((await client.call('ticket.create', { path: `blob?name=${plant()}` })).result?.['ticket']));
  await exchange(gate, plant(), key.publicKey);
  await exchange(gate, plant(ground.token), plant());

  // Theirs: heads, targets, bodies, params, prompts, file names, error messages.
  const host = `Host: 127.0.0.1:${gate.port}`;
  await raw(gate.port, `GET /${plant()} HTTP/1.1\r\nHost: ${plant()}\r\n\r\n`);
  await raw(
    gate.port,
    `GET /${plant()}?${plant()} HTTP/1.1\r\n${host}\r\nConnection: close\r\nX-A: ${plant()}\r\n\r\n`,
  );
  await raw(gate.port, `${plant()} /${plant()} HTTP/9.9\r\n${plant()}\r\n\r\n`);
  await ask(gate, 'POST', '/launch', { headers: { Origin: `http://${plant()}` }, body: plant() });
  await ask(gate, 'POST', '/launch', { headers: { Origin: gate.origin, 'Content-Type': plant() }, body: plant() });
  await ask(gate, 'GET', `${base}${plant()}`, { headers: { Cookie: `${cookie}; other=${plant()}` } });
  await ask(gate, 'PUT', `${base}blob?conversation=${plant()}&name=${plant()}`, {
    headers: { Origin: gate.origin, Cookie: cookie, 'Content-Type': 'application/octet-stream', 'X-Ticket': plant() },
    body: plant(),
  });
  client.send(plant());
  client.send({ kind: plant(), id: 3000 });
  client.send({ kind: 'request', id: 3001, method: plant(), params: { [plant()]: plant() } });
  await client.answer(3001);
  const send = { conversationId: plant(), delivery: 'prompt', content: [{ type: 'text', text: plant() }] };
  ground.dispatch = () => Promise.reject(new Error(plant()));
  expect(await client.call('conversation.send', send, randomUUID())).toMatchObject({
    error: { code: 'internal_error' },
  });
  ground.dispatch = () => Promise.reject(new Refusal('unknown_conversation', { cause: new Error(plant()) }));
  expect(await client.call('conversation.send', send, randomUUID())).toMatchObject({
    error: { code: 'unknown_conversation' },
  });
  ground.dispatch = () => Promise.resolve({ secret: plant() });
  await client.call('conversation.list');
  const control = await openControl(ground);
  control.socket.write(`${plant()}\n`);
  await control.client.call('connection.initialize', {
    ...initializeParams(),
    client: { kind: 'cli', version: plant(), instanceId: randomUUID() },
  });
  const second = await signIn(ground);
  plant(second.cookie.slice(3));
  await (await attach(ground, second)).client.call('conversation.list', { workspaceId: plant() });
  await gate.revoke(null);
  await gate.close();

  expect(secrets.length).toBeGreaterThanOrEqual(40);
  const log = ground.lines.map((line) => JSON.stringify(line)).join('\n');
  expect(secrets.filter((secret) => log.includes(secret))).toEqual([]);
  for (const line of ground.lines.filter((one) => one['event'] === 'refused'))
    expect(line['reason']).toMatch(/^[a-z_]+$/);
  const events = new Set(ground.lines.map((line) => line['event']));
  for (const event of [
    'listening',
    'session',
    'attached',
    'detached',
    'request',
    'refused',
    'internal',
    'cause',
    'closed',
  ])
    expect([...events]).toContain(event);
});
