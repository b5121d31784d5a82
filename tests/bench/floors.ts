/** Bare programs that do nothing else: what each figure is compared with. */
import { spawn, type ChildProcess } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { WebSocketServer } from 'ws';
import { wallMs } from './clock.ts';

/** A bare HTTP server, as the shortest program that answers 204. */
export const spawnBare = (port: number): ChildProcess =>
  spawn(
    process.execPath,
    ['-e', `require('node:http').createServer((q,s)=>s.writeHead(204).end()).listen(${port},'127.0.0.1')`],
    { stdio: 'ignore' },
  );

/** The same with the libraries loaded that any bridge of this shape needs, and nothing done with them. */
export const spawnShaped = (port: number): ChildProcess =>
  spawn(
    process.execPath,
    [
      '-e',
      `for (const name of ['crypto','child_process','worker_threads','ws']) require(name);
      new (require('node:sqlite').DatabaseSync)(':memory:');
      import('zod/mini').then(() => require('node:http').createServer((q,s)=>s.writeHead(204).end()).listen(${port},'127.0.0.1'))`,
    ],
    { stdio: 'ignore', cwd: fileURLToPath(new URL('../..', import.meta.url)) },
  );

const listen = async (server: Server): Promise<string> => {
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

export interface Bare {
  readonly origin: string;
  close(): void;
}

const style =
  'html,body{height:100%;margin:0;font:15px/24px sans-serif}#box{height:100%;overflow:auto}.row{max-width:720px;margin:0 auto;padding:6px 24px}';
const page = (body: string, script = ''): string =>
  `<!doctype html><meta charset="utf-8"><title>bare</title><style>${style}</style><div id="box">${body}</div>${script === '' ? '' : `<script>${script}</script>`}`;

const words =
  'the parser reads a date from each line and keeps its zone while tests compare both sides of the change '.repeat(4);
const rowsOf = (count: number): string =>
  Array.from(
    { length: count },
    (_, at) => `<div class="row" data-row="${at}">${at} ${words}${at === count - 1 ? 'last of all' : ''}</div>`,
  ).join('');

/** Fetches the rows of one page and shows their end, as any client of a transcript has to. */
const fetched = `fetch('/rows').then(r=>r.json()).then(rows=>{const box=document.getElementById('box');
for(const [at,text] of rows.entries()){const row=document.createElement('div');row.className='row';row.dataset.row=at;row.textContent=text;box.append(row)}
box.scrollTop=box.scrollHeight})`;

const onClick = `document.getElementById('open').onclick=()=>{${fetched}}`;

/**
 * `/list`: a static list of 200 rows. `/transcript`: 100 rows over one fetch, at their end. `/later`: the same after a
 * click. `/long`: 2,000 static rows
 * to scroll through.
 */
export const servePages = async (): Promise<Bare> => {
  const rows = JSON.stringify(
    Array.from({ length: 100 }, (_, at) => `${at} ${words}${at === 99 ? 'last of all' : ''}`),
  );
  const pages: Readonly<Record<string, readonly [string, string]>> = {
    '/list': ['text/html', page(rowsOf(200))],
    '/transcript': ['text/html', page('', fetched)],
    '/later': ['text/html', page('<button id="open">Open</button>', onClick)],
    '/long': ['text/html', page(rowsOf(2000))],
    '/rows': ['application/json', rows],
  };
  const server = createServer((request, response) => {
    const [type, body] = pages[request.url ?? ''] ?? ['text/plain', ''];
    response.writeHead(200, { 'content-type': type }).end(body);
  });
  const origin = await listen(server);
  return {
    origin,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

const echoScript = `const row=document.querySelector('.row');const text=row.firstChild;
new WebSocket(location.origin.replace('http','ws')).onmessage=e=>{text.appendData(e.data)}`;

export interface BareStream extends Bare {
  /** Sends `c1~ c2~ …` to every page and says when each was sent (wall clock, ms). */
  stream(count: number, everyMs: number): Promise<number[]>;
}

/** One chunk a message, appended to one text node. */
export const serveStream = async (): Promise<BareStream> => {
  const server = createServer((_, response) => {
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end(page('<div class="row" data-row="0"> </div>', echoScript));
  });
  const sockets = new WebSocketServer({ server, perMessageDeflate: false });
  const origin = await listen(server);
  return {
    origin,
    stream: async (count, everyMs) => {
      const times: number[] = [];
      const began = performance.now();
      for (let number = 1; number <= count; number += 1) {
        const due = began + number * everyMs - performance.now();
        if (due > 0) await new Promise((resolve) => setTimeout(resolve, due));
        times.push(wallMs());
        for (const socket of sockets.clients) socket.send(`c${number}~ `);
      }
      return times;
    },
    close: () => {
      for (const socket of sockets.clients) socket.terminate();
      sockets.close();
      server.closeAllConnections();
      server.close();
    },
  };
};
