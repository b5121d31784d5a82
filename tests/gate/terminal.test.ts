import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { limits } from '#protocol/limits.ts';
import type { TerminalSize } from '#protocol/methods/terminal.ts';
import { Bucket } from '../../bridge/gate/bucket.ts';
import type { TerminalViewer } from '../../bridge/terminals/contract.ts';
import { attach, ask, Ground, signIn, type SignedIn } from './parts.ts';

const size: TerminalSize = { columns: 80, rows: 24 };
const terminalId = randomUUID();
const other = randomUUID();

interface End {
  readonly code: number;
  readonly reason: string;
}
class Page {
  readonly socket: WebSocket;
  readonly got: (string | Buffer)[] = [];
  readonly ended: Promise<End>;
  readonly opened: Promise<number>;

  constructor(ground: Ground, path: string, headers: Record<string, string>) {
    this.socket = new WebSocket(`ws://127.0.0.1:${ground.gate.port}${path}`, { headers, perMessageDeflate: false });
    this.socket.on('message', (data: Buffer, isBinary) => this.got.push(isBinary ? data : data.toString('utf8')));
    this.ended = new Promise((resolve) =>
      this.socket.on('close', (code, reason) => resolve({ code, reason: String(reason) })),
    );
    this.opened = new Promise((resolve) => {
      this.socket.on('open', () => resolve(101));
      this.socket.on('unexpected-response', (_, response) => resolve(response.statusCode ?? 0));
      this.socket.on('error', () => undefined);
    });
    ground.onEnd(() => this.socket.terminate());
  }

  send(frame: object): void {
    this.socket.send(JSON.stringify(frame));
  }
}

describe('the socket of a terminal', () => {
  let ground: Ground;
  let who: SignedIn;
  /** What reached the room. */
  let asked: { terminalId: string; size: TerminalSize; viewer: TerminalViewer }[];
  let done: unknown[];
  beforeEach(async () => {
    ground = await new Ground().prepare();
    asked = [];
    done = [];
    ground.attachTerminal = async (id, at, viewer) => {
      asked.push({ terminalId: id, size: at, viewer });
      await sleep(20);
      if (id !== terminalId) return null;
      return {
        input: (bytes) => void done.push(['input', Buffer.from(bytes).toString('latin1')]),
        resize: (next) => void done.push(['resize', next]),
        own: () => void done.push(['own']),
        ack: (bytes) => void done.push(['ack', bytes]),
        detach: () => void done.push(['detach']),
      };
    };
    await ground.start();
    who = await signIn(ground);
  });
  afterEach(() => ground.end());

  const headers = (of: SignedIn): Record<string, string> => ({ Origin: ground.gate.origin, Cookie: of.cookie });
  const open = async (of: SignedIn = who, id = terminalId): Promise<Page> => {
    const page = new Page(ground, `${of.base}terminal/${id}`, headers(of));
    expect(await page.opened).toBe(101);
    return page;
  };
  const ticket = async (of: SignedIn = who, id = terminalId): Promise<string> => {
    const { client } = await attach(ground, of);
    const answer = await client.call('ticket.create', { path: `terminal/${id}` });
    return answer.result?.['ticket'] as string;
  };
  const until = async (look: () => boolean): Promise<void> => {
    while (!look()) await sleep(5);
  };

  it('carries keys in and output out once its ticket was taken', async () => {
    const page = await open();
    page.send({ type: 'attach', ticket: await ticket(), size });
    page.socket.send(Buffer.from('early'));
    await until(() => asked.length === 1);
    expect(asked[0]).toMatchObject({ terminalId, size });
    asked[0]?.viewer.frame({ type: 'replay', size, owner: true, bytes: 2 });
    asked[0]?.viewer.bytes(Buffer.from([0xff, 0]));
    page.socket.send(Buffer.from('ls\r'));
    page.send({ type: 'resize', size: { columns: 100, rows: 30 } });
    page.send({ type: 'own' });
    page.send({ type: 'ack', bytes: 2 });
    await until(() => done.length === 5);
    expect(done).toEqual([
      ['input', 'early'],
      ['input', 'ls\r'],
      ['resize', { columns: 100, rows: 30 }],
      ['own'],
      ['ack', 2],
    ]);
    expect(page.got).toEqual([JSON.stringify({ type: 'replay', size, owner: true, bytes: 2 }), Buffer.from([0xff, 0])]);
    page.socket.close();
    await until(() => done.length === 6);
    expect(done.at(-1)).toEqual(['detach']);
  });

  it('hears nothing before its ticket, and not for long (T75)', async () => {
    const early = await open();
    early.socket.send(Buffer.from('rm -rf /\r'));
    expect(await early.ended).toMatchObject({ code: 1008 });
    const wrong = await open();
    wrong.send({ type: 'own' });
    expect(await wrong.ended).toMatchObject({ code: 1008 });
    expect(asked).toEqual([]);
  });

  it('closes one that brings no ticket in time', async () => {
    await ground.gate.close();
    await ground.start({ timing: { handshakeMs: 50 } });
    const page = await open(await signIn(ground));
    expect(await page.ended).toEqual({ code: 1008, reason: 'no ticket in time' });
  });

  it('refuses a ticket used twice, of another terminal, of another session, and an invented one (T75)', async () => {
    const used = await ticket();
    const first = await open();
    first.send({ type: 'attach', ticket: used, size });
    await until(() => asked.length === 1);
    const stranger = await signIn(ground);
    for (const [of, id, text] of [
      [who, terminalId, used],
      [who, terminalId, await ticket(who, other)],
      [stranger, terminalId, await ticket(who)],
      [who, terminalId, 'x'.repeat(43)],
    ] as const) {
      const page = await open(of, id);
      page.send({ type: 'attach', ticket: text, size });
      expect(await page.ended).toEqual({ code: 1008, reason: 'ticket' });
    }
    expect(asked).toHaveLength(1);
  });

  it('is refused before it is one: foreign Origin, no cookie, a stale session, no upgrade (T75)', async () => {
    const path = `${who.base}terminal/${terminalId}`;
    const status = (given: Record<string, string>, at = path): Promise<number> => new Page(ground, at, given).opened;
    expect(await status({ ...headers(who), Origin: 'http://127.0.0.1:1' })).toBe(403);
    expect(await status({ Cookie: who.cookie })).toBe(403);
    expect(await status({ Origin: ground.gate.origin })).toBe(401);
    expect(await status({ ...headers(who), Cookie: `cs=${'A'.repeat(43)}` })).toBe(401);
    expect(await status(headers(who), `${who.base}terminal/..%2fsocket`)).toBe(404);
    expect(await status(headers(who), `/b/${'A'.repeat(22)}/terminal/${terminalId}`)).toBe(401);
    const plain = await ask(ground.gate, 'GET', path, { headers: { Cookie: who.cookie } });
    expect(plain.status).toBe(426);
    expect(asked).toEqual([]);
  });

  it('ends with its session, and with the bridge', async () => {
    const stranger = await signIn(ground);
    const pages = [await open(who), await open(stranger)];
    for (const [index, of] of [who, stranger].entries())
      pages[index]?.send({ type: 'attach', ticket: await ticket(of), size });
    await until(() => asked.length === 2);
    const [mine = ''] = ground.ledger.rows.keys();
    await ground.gate.revoke(mine);
    expect(await pages[0]?.ended).toEqual({ code: 1008, reason: 'signed out' });
    await until(() => done.length === 1);
    expect(done).toEqual([['detach']]);
    await ground.gate.close();
    expect(await pages[1]?.ended).toMatchObject({ code: 1001 });
  });

  it('says that a terminal is gone, that a page was too slow, and that a frame is none of its', async () => {
    const gone = await open(who, other);
    gone.send({ type: 'attach', ticket: await ticket(who, other), size });
    expect(await gone.ended).toEqual({ code: 1000, reason: 'gone' });
    const slow = await open();
    slow.send({ type: 'attach', ticket: await ticket(), size });
    await until(() => asked.length === 2);
    asked[1]?.viewer.close('slow');
    expect(await slow.ended).toMatchObject({ code: 1013 });
    const odd = await open();
    odd.send({ type: 'attach', ticket: await ticket(), size });
    odd.send({ type: 'resize', size: { columns: 1, rows: 1 } });
    expect(await odd.ended).toMatchObject({ code: 1008 });
    const large = await open();
    large.send({ type: 'attach', ticket: await ticket(), size });
    large.socket.send(Buffer.alloc(limits.terminalInputBytes + 1));
    expect(await large.ended).toMatchObject({ code: 1009 });
  });

  it('loses nothing of a page that types faster than its bucket', async () => {
    const page = await open();
    page.send({ type: 'attach', ticket: await ticket(), size });
    await until(() => asked.length === 1);
    const words = Array.from({ length: limits.terminalInputFrames + 60 }, (_, index) => `${index} `);
    for (const word of words) page.socket.send(Buffer.from(word));
    await until(() => done.length === words.length);
    page.socket.send(Buffer.from('last'));
    await until(() => done.length === words.length + 1);
    expect(done.map((one) => (one as string[])[1]).join('')).toBe(`${words.join('')}last`);
  });

  it('counts what was typed beyond the bucket as a debt that time pays', () => {
    const bucket = new Bucket({ perWindow: 200, windowMs: 1000, burst: 200 }, 0);
    for (let taken = 0; taken < 200; taken += 1) expect(bucket.owe(0, 1)).toBe(0);
    expect(bucket.owe(0, 1)).toBe(5);
    expect(bucket.owe(0, 199)).toBe(1000);
    expect(bucket.owe(1000, 0)).toBe(0);
    expect(bucket.owe(1000, 2)).toBe(10);
  });
});
