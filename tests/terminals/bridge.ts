/** A signed-in page of a bridge that runs in a process of its own, and its sockets to terminals. */
import { randomUUID } from 'node:crypto';
import { WebSocket } from 'ws';
import type { TerminalServerFrame, TerminalSize } from '#protocol/methods/terminal.ts';
import type { Gate } from '../../bridge/gate/gate.ts';
import type { Bridge } from '../bridge/process.ts';
import { attach, Ground, signIn, type Client, type SignedIn } from '../gate/parts.ts';

class RealGround extends Ground {
  readonly #bridge: Bridge;

  constructor(bridge: Bridge) {
    super();
    this.#bridge = bridge;
    const { origin } = bridge.ready;
    this.gate = { origin, port: bridge.port, close: () => Promise.resolve() } as unknown as Gate;
  }

  override get token(): string {
    return new URL(this.#bridge.ready.launchUrl).hash.slice('#launch='.length);
  }
}

export class Socket {
  readonly frames: TerminalServerFrame[] = [];
  readonly socket: WebSocket;
  readonly ended: Promise<number>;
  text = '';
  #isReplay = false;
  #bytes = 0;
  #acked = 0;
  /** Told of each piece of live output, once it was drawn. */
  heard: (bytes: Buffer) => void = () => undefined;
  /** Draws a piece, and says when it has; a page that draws nothing otherwise. */
  draw: (bytes: Buffer, done: () => void) => void = (_, done) => done();

  constructor(socket: WebSocket) {
    this.socket = socket;
    this.ended = new Promise((resolve) => socket.on('close', (code) => resolve(code)));
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.#output(data);
      else this.#frame(JSON.parse(data.toString('utf8')) as TerminalServerFrame);
    });
  }

  #frame(frame: TerminalServerFrame): void {
    this.frames.push(frame);
    this.#isReplay = frame.type === 'replay';
  }

  #output(data: Buffer): void {
    if (this.#isReplay) {
      this.#isReplay = false;
      this.text = data.toString('utf8');
      return;
    }
    this.draw(data, () => this.#drawn(data));
  }

  #drawn(data: Buffer): void {
    this.#bytes += data.length;
    this.text = (this.text + data.subarray(-20_000).toString('utf8')).slice(-20_000);
    this.heard(data);
    if (this.#bytes - this.#acked < 32_768) return;
    this.#acked = this.#bytes;
    this.socket.send(JSON.stringify({ type: 'ack', bytes: this.#bytes }));
  }

  type(keys: string): void {
    this.socket.send(Buffer.from(keys));
  }

  async until(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.text)) await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export class App {
  readonly ground: Ground;
  readonly who: SignedIn;
  readonly client: Client;

  private constructor(ground: Ground, who: SignedIn, client: Client) {
    this.ground = ground;
    this.who = who;
    this.client = client;
  }

  static async open(bridge: Bridge): Promise<App> {
    const ground = new RealGround(bridge);
    const who = await signIn(ground);
    const { client } = await attach(ground, who);
    return new App(ground, who, client);
  }

  async call(method: string, params: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const answer = await this.client.call(method, params);
    if (answer.result === undefined) throw new Error(answer.error?.code);
    return answer.result;
  }

  async change(method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> {
    const answer = await this.client.call(method, params, randomUUID());
    if (answer.result === undefined) throw new Error(answer.error?.code);
    return answer.result;
  }

  async socket(terminalId: string, size: TerminalSize): Promise<Socket> {
    const { ticket } = await this.call('ticket.create', { path: `terminal/${terminalId}` });
    const url = `ws://127.0.0.1:${this.ground.gate.port}${this.who.base}terminal/${terminalId}`;
    const headers = { Origin: this.ground.gate.origin, Cookie: this.who.cookie };
    const socket = new WebSocket(url, { headers, perMessageDeflate: false });
    const page = new Socket(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    socket.send(JSON.stringify({ type: 'attach', ticket, size }));
    return page;
  }

  end(): void {
    this.client.end();
  }
}
