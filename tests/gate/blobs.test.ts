import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { sniff } from '../../bridge/gate/blobs.ts';
import { ask, attach, Ground, signIn, type Answer, type Client, type SignedIn } from './parts.ts';

let ground: Ground;
let mine: SignedIn;
let client: Client;
beforeEach(async () => {
  ground = await new Ground().prepare();
  await ground.start();
  mine = await signIn(ground);
  client = (await attach(ground, mine)).client;
});
afterEach(() => ground.end());

const ticket = async (path: string): Promise<string> =>
  String((await client.call('ticket.create', { path })).result?.['ticket']);
const put = async (query: string, body: Buffer | string, headers: Record<string, string> = {}): Promise<Answer> =>
  ask(ground.gate, 'PUT', `${mine.base}blob${query}`, {
    headers: {
      Origin: ground.gate.origin,
      Cookie: mine.cookie,
      'Content-Type': 'application/octet-stream',
      'X-Ticket': await ticket('blob'),
      ...headers,
    },
    body,
  });
const get = async (sha256: string, headers: Record<string, string> = {}): Promise<Answer> =>
  ask(ground.gate, 'GET', `${mine.base}blob/${sha256}?conversation=c1`, {
    headers: { Cookie: mine.cookie, 'X-Ticket': await ticket(`${mine.base}blob/${sha256}`), ...headers },
  });
const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');

describe('D-60 blobs', () => {
  test('an image goes in and comes out checked, inert, inline and unstored', async () => {
    const stored = await put('?conversation=c1&name=shot.png', png);
    const sha256 = createHash('sha256').update(png).digest('hex');
    expect(JSON.parse(stored.body)).toEqual({ sha256, bytes: png.length, mime: 'image/png', name: 'shot.png' });
    const answer = await get(sha256);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'image/png',
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-disposition': "inline; filename*=UTF-8''shot.png",
      'cross-origin-resource-policy': 'same-origin',
    });
  });

  test('what is not a checked image is a download, whatever its name says', async () => {
    const html = '<script>alert(1)</script>';
    const stored = await put(`?conversation=c1&name=${encodeURIComponent('a"b\r\nX: y\'(1).png')}`, html);
    const { sha256, mime } = JSON.parse(stored.body) as { sha256: string; mime: string };
    expect(mime).toBe('text/plain');
    const answer = await get(sha256);
    expect(answer.headers['content-disposition']).toBe(
      "attachment; filename*=UTF-8''a%22b%0D%0AX%3A%20y%27%281%29.png",
    );
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(answer.body).toBe(html);
  });

  test.each([
    ['image/png', png],
    ['image/jpeg', Buffer.from([0xff, 0xd8, 0xff, 0xe0])],
    ['image/gif', Buffer.from('GIF89a....')],
    ['image/webp', Buffer.from('RIFF....WEBPVP8 ')],
    ['application/octet-stream', Buffer.from('RIFF....WAVEfmt\0')],
    ['application/octet-stream', Buffer.from([0xff, 0xfe, 0x41])],
    ['text/plain', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
    ['text/plain', Buffer.from('')],
  ])('%s is told by its first bytes', (mime, bytes) => {
    expect(sniff(bytes)).toBe(mime);
  });

  test('T19 needs a ticket of this path, once', async () => {
    expect((await put('?conversation=c1', 'x', { 'X-Ticket': 'none' })).status).toBe(401);
    expect((await put('?conversation=c1', 'x', { 'X-Ticket': await ticket('blob/other') })).status).toBe(401);
    const once = await ticket('blob');
    expect((await put('?conversation=c1', 'x', { 'X-Ticket': once })).status).toBe(200);
    expect((await put('?conversation=c1', 'x', { 'X-Ticket': once })).status).toBe(401);
  });

  test('unknown conversations and foreign blobs are not told apart from absent ones', async () => {
    const unknown = await put('?conversation=c2', 'x');
    expect([unknown.status, (JSON.parse(unknown.body) as { error: { code: string } }).error.code]).toEqual([
      404,
      'unknown_conversation',
    ]);
    const absent = await get('0'.repeat(64));
    expect([absent.status, (JSON.parse(absent.body) as { error: { code: string } }).error.code]).toEqual([
      404,
      'blob_unknown',
    ]);
    expect((await put(`?conversation=c1&name=${'n'.repeat(256)}`, 'x')).status).toBe(400);
  });

  test('20 MiB pass, with 100-continue as curl does; a byte more is refused unread', async () => {
    const large = Buffer.alloc(limits.blobBytes, 'a');
    const stored = await put('?conversation=c1', large, { Expect: '100-continue' });
    expect(stored.status).toBe(200);
    const response = await put('?conversation=c1', 'x', { 'Content-Length': String(limits.blobBytes + 1) }).catch(
      (error: unknown) => error,
    );
    expect(response).toMatchObject({ status: 413 });
  });
});
