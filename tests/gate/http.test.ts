import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { brotliCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadAssets } from '../../bridge/gate/assets.ts';
import { startGate } from '../../bridge/gate/gate.ts';
import { openPorch } from '../../bridge/gate/porch.ts';
import { ask, buildAssets, exchange, Ground, pageKey, raw, shell, signIn, sourceOf, statusOf } from './parts.ts';

let ground: Ground;
beforeEach(async () => {
  ground = await new Ground().prepare();
});
afterEach(() => ground.end());

const listenersOf = (port: number): string[] => {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((table) => readFileSync(table, 'utf8').split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[1]?.endsWith(suffix) && fields[3] === '0A')
    .map((fields) => fields[1] ?? '');
};

describe('listening', () => {
  test('T01 listens on 127.0.0.1 and nowhere else', async () => {
    const gate = await ground.start();
    expect(listenersOf(gate.port)).toEqual([`0100007F:${gate.port.toString(16).toUpperCase().padStart(4, '0')}`]);
  });

  test('T02 a taken port is an error that names the holder, and drops every session (L-03)', async () => {
    await ground.start();
    const { base } = await signIn(ground);
    await ground.gate.close();
    const program =
      'const s = require("net").createServer().listen(0, "127.0.0.1", () => console.log(s.address().port));';
    const holder = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    ground.onEnd(() => holder.kill('SIGKILL'));
    const [port] = (await once(holder.stdout, 'data')) as [Buffer];
    await expect(startGate(ground.deps({ port: Number(String(port)) }))).rejects.toMatchObject({
      name: 'PortTaken',
      message: expect.stringContaining(`(pid ${holder.pid})`) as string,
      holder: { pid: holder.pid, uid: process.getuid?.() },
    });
    expect([...ground.ledger.rows.values()].every((row) => row.revoked)).toBe(true);
    expect(`/b/${ground.ledger.kept.get('segment')}/`).not.toBe(base);
    expect(ground.news.at(-1)).toMatchObject({ what: 'revoked', why: 'port_taken' });
  });

  test('T16 no flag, variable or option turns the guards off', () => {
    const sources = readdirSync(new URL('../../bridge/gate', import.meta.url))
      .map((name) => sourceOf(`bridge/gate/${name}`))
      .join('\n');
    expect(sources).not.toMatch(/process\.env|process\.argv|0\.0\.0\.0|noAuth|no-auth|insecure(?!HTTPParser: false)/i);
    expect(sources.match(/\.listen\(/g)).toHaveLength(2);
  });
});

describe('every answer', () => {
  const places: readonly (readonly [string, string, Record<string, string>])[] = [
    ['GET', '/', {}],
    ['GET', '/c/0198-abc', {}],
    ['GET', '/_app/immutable/start.js', {}],
    ['GET', '/service-worker.js', {}],
    ['GET', '/up', {}],
    ['GET', '/missing.js', {}],
    ['OPTIONS', '/', {}],
    ['OPTIONS', '/launch', { Origin: 'http://evil.test', 'Access-Control-Request-Method': 'POST' }],
    ['POST', '/launch', {}],
    ['GET', '/', { Host: 'evil.test' }],
  ];
  test('T08 T09 T10 T11 carries the security headers and no Access-Control header', async () => {
    const gate = await ground.start();
    const { base, cookie } = await signIn(ground);
    const answers = [
      ...(await Promise.all(places.map(([method, path, headers]) => ask(gate, method, path, { headers })))),
      await ask(gate, 'GET', `${base}session`, { headers: { Cookie: cookie } }),
      await ask(gate, 'GET', `${base}session`),
      await exchange(gate, 'wrong', pageKey().publicKey),
    ];
    const hash = createHash('sha256').update('window.boot = 1;').digest('base64');
    for (const { headers } of answers) {
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      expect(headers['content-security-policy']).toContain(
        "default-src 'none'; script-src 'self' 'sha256-" + hash + "';",
      );
      expect(headers['content-security-policy']).toContain(
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html countersign-script-url",
      );
      expect(headers['content-security-policy']).toContain("img-src 'self' data: blob:;");
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      });
      expect(headers['permissions-policy']).toMatch(/camera=\(\).*clipboard-write=\(self\)$/);
    }
  });

  test('T29 nothing under base, nor the launch, may be stored', async () => {
    const gate = await ground.start();
    const { base, cookie } = await signIn(ground);
    const launched = await exchange(gate, ground.token, pageKey().publicKey);
    const answers = [
      launched,
      await ask(gate, 'GET', `${base}session`, { headers: { Cookie: cookie } }),
      await ask(gate, 'GET', `${base}nothing`, { headers: { Cookie: cookie } }),
    ];
    for (const answer of answers) expect(answer.headers['cache-control']).toBe('no-store');
    expect(launched.status).toBe(200);
  });

  test('protocol errors carry them too', async () => {
    const gate = await ground.start();
    const answer = await raw(gate.port, 'GET / HTTP/1.1\r\nHost: a\nb\r\n: x\r\n\r\n');
    expect(statusOf(answer)).toBe(400);
    expect(answer).toMatch(/Content-Security-Policy: default-src 'none'/);
    expect(answer).toMatch(/Cross-Origin-Resource-Policy: same-origin/);
  });
});

describe('T12 smuggling over a real socket', () => {
  test('each is refused and the next request is fine', async () => {
    const gate = await ground.start();
    const host = `Host: 127.0.0.1:${gate.port}`;
    const origin = `Origin: ${gate.origin}`;
    const post = `POST /launch HTTP/1.1\r\n${host}\r\n${origin}\r\nContent-Type: application/json\r\n`;
    const cases: Record<string, readonly [string, readonly number[]]> = {
      'TE and CL': [
        `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /up HTTP/1.1\r\n\r\n`,
        [400],
      ],
      xchunked: [`${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, [400]],
      'chunked alone': [`${post}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, [400]],
      'bare LF': [`GET / HTTP/1.1\n${host}\n\n`, [400]],
      'obs-fold': [`GET / HTTP/1.1\r\n${host}\r\nX-A: b\r\n c\r\n\r\n`, [400]],
      NUL: [`GET / HTTP/1.1\r\n${host}\r\nX-A: \0\r\n\r\n`, [400]],
      '17 KB header': [`GET / HTTP/1.1\r\n${host}\r\nX-A: ${'a'.repeat(17 * 1024)}\r\n\r\n`, [431]],
      '2,001 headers': [`GET / HTTP/1.1\r\n${host}\r\n${'a:b\r\n'.repeat(2001)}\r\n`, [431]],
      'second Host behind 100 others': [
        `GET / HTTP/1.1\r\n${host}\r\n${'a:b\r\n'.repeat(98)}Host: evil.test\r\n\r\n`,
        [421],
      ],
      'absolute-form': [`GET http://127.0.0.1:${gate.port}/ HTTP/1.1\r\n${host}\r\n\r\n`, [400]],
      CONNECT: [`CONNECT 127.0.0.1:80 HTTP/1.1\r\n${host}\r\n\r\n`, [405]],
      TRACE: [`TRACE / HTTP/1.1\r\n${host}\r\n\r\n`, [405]],
      asterisk: [`OPTIONS * HTTP/1.1\r\n${host}\r\n${origin}\r\n\r\n`, [400]],
      'HTTP/1.0 without Host': ['GET / HTTP/1.0\r\n\r\n', [421]],
      'HTTP/1.0': [`GET / HTTP/1.0\r\n${host}\r\n\r\n`, [505]],
      'no Host': ['GET / HTTP/1.1\r\n\r\n', [421]],
      'two Hosts': [`GET / HTTP/1.1\r\n${host}\r\n${host}\r\n\r\n`, [421]],
      h2c: [`GET / HTTP/1.1\r\n${host}\r\n${origin}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`, [404]],
      'HTTP/2 preface': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400]],
      TLS: ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', [400]],
    };
    for (const [name, [bytes, statuses]] of Object.entries(cases)) {
      const answer = await raw(gate.port, Buffer.from(bytes, 'latin1'));
      expect(statuses, `${name}: ${answer.slice(0, 60)}`).toContain(statusOf(answer));
      expect(answer.match(/HTTP\/1\.1 /g), name).toHaveLength(1);
      expect((await ask(gate, 'GET', '/up')).status).toBe(204);
    }
  });

  test('T13 20,000 seeded heads throw nothing and leak nothing', async () => {
    let refused = 0;
    const gate = await ground.start({ log: (line) => void (refused += line['event'] === 'refused' ? 1 : 0) });
    const uncaught: unknown[] = [];
    const onUncaught = (error: unknown): void => void uncaught.push(error);
    process.on('uncaughtException', onUncaught);
    ground.onEnd(() => process.off('uncaughtException', onUncaught));
    let seed = 20_261_130;
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((seed / 2 ** 32) * below);
    };
    const alphabet = Buffer.from('abcXYZ019 ./:=;,-_%"\\\t\x00\x7f\x80\xff[]{}\r\n@', 'latin1').toString('latin1');
    const junk = (): string => Array.from({ length: random(24) }, () => alphabet[random(alphabet.length)]).join('');
    const names = [
      'Host',
      'Origin',
      'Cookie',
      'Sec-WebSocket-Key',
      'Sec-WebSocket-Version',
      'Sec-WebSocket-Protocol',
      'Sec-WebSocket-Extensions',
      'Upgrade',
      'Connection',
      'Content-Length',
      'Transfer-Encoding',
      'Expect',
    ];
    const good: Record<string, string> = {
      Host: `127.0.0.1:${gate.port}`,
      Origin: gate.origin,
      Cookie: `cs=${'a'.repeat(43)}`,
      Upgrade: 'websocket',
      Connection: 'Upgrade',
    };
    const head = (): string => {
      const lines = Array.from({ length: 1 + random(6) }, () => {
        const name = names[random(names.length)] ?? 'Host';
        return `${name}: ${random(2) === 0 ? (good[name] ?? junk()) : junk()}\r\n`;
      });
      return `GET ${random(2) === 0 ? '/up' : `/b/${'s'.repeat(22)}/socket`} HTTP/1.1\r\nHost: ${good['Host']}\r\n${lines.join('')}\r\n`;
    };
    const send = (count: number): Promise<void> =>
      new Promise((resolve) => {
        const socket = connect(gate.port, '127.0.0.1');
        socket.on('error', () => undefined);
        socket.on('close', () => resolve());
        socket.resume();
        socket.end(Array.from({ length: count }, head).join(''), 'latin1');
      });
    const cases = 20_000;
    const perSocket = 5;
    let left = cases / perSocket;
    const worker = async (): Promise<void> => {
      while (left-- > 0) await send(perSocket);
    };
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const heldBytes = (): number => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    for (let index = 0; index < 200; index += 1) await send(perSocket);
    const before = heldBytes();
    await Promise.all(Array.from({ length: 24 }, worker));
    expect(uncaught).toEqual([]);
    expect((await ask(gate, 'GET', '/up')).status).toBe(204);
    expect(refused).toBeGreaterThan(cases / perSocket / 2);
    await expect.poll(() => heldBytes() - before, { timeout: 5000 }).toBeLessThan(20 * 1024 * 1024);
  });
});

describe('T14 slow and many connections', () => {
  test('500 half-open sockets do not keep a real client out', async () => {
    const gate = await ground.start();
    const sockets = Array.from({ length: 500 }, () => connect(gate.port, '127.0.0.1'));
    ground.onEnd(() => sockets.forEach((socket) => socket.destroy()));
    await Promise.all(
      sockets.map((socket) => {
        socket.on('error', () => undefined);
        socket.write('GET / HTT');
        return once(socket, 'connect');
      }),
    );
    expect((await ask(gate, 'GET', '/up')).status).toBe(204);
    expect((await ask(gate, 'GET', '/')).body).toBe(shell);
    await expect.poll(() => sockets.filter((socket) => !socket.destroyed).length).toBeLessThanOrEqual(64);
  });

  test('a head that does not arrive in time is answered 408', async () => {
    const gate = await ground.start();
    const answer = await raw(gate.port, `GET / HTTP/1.1\r\nHost: 127.0.0.1:${gate.port}\r\n`, 9000);
    expect(statusOf(answer)).toBe(408);
  });
});

describe('T15 case 66 static files', () => {
  test('only names of the table are served, by exact lookup', async () => {
    const gate = await ground.start();
    writeFileSync(join(ground.directory, 'build', 'secret.txt'), 'secret');
    for (const path of [
      '/secret.txt',
      '/../control.sock',
      '/%2e%2e/assets.json',
      '/..%2fassets.json',
      '/assets.json',
      '/_app/immutable/start.js.br',
      '/_app/immutable/start.js.map',
      '/_app/immutable/start.js?raw??',
      '/_app/immutable/start.js%00',
      '/_app//immutable/start.js',
      '/_app\\immutable\\start.js',
      '/%252e%252e/',
      '/index.html/',
      '//',
      '/constructor',
      '/__proto__',
    ]) {
      const answer = await ask(gate, 'GET', path);
      expect(answer.status, path).toBe(404);
      expect(answer.body).toBe('Not found\n');
    }
  });

  test('case 66 a missing script is a small text 404 that is not stored, never HTML', async () => {
    const gate = await ground.start();
    const answer = await ask(gate, 'GET', '/_app/immutable/gone.3f2a.js', {
      headers: { 'Sec-Fetch-Dest': 'script', Accept: '*/*' },
    });
    expect(answer).toMatchObject({ status: 404, body: 'Not found\n' });
    expect(answer.headers).toMatchObject({ 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' });
  });

  test('the shell answers the built routes, with a fresh check each time', async () => {
    const gate = await ground.start();
    for (const path of ['/', '/?source=pwa', '/index.html', '/rules', '/c/0198a-b_c.d']) {
      const answer = await ask(gate, 'GET', path);
      expect(answer).toMatchObject({ status: 200, body: shell });
      expect(answer.headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' });
    }
    for (const path of ['/c/', '/c/a/b', '/c/%2e', '/rulesX', '/other'])
      expect((await ask(gate, 'GET', path)).status).toBe(404);
    const tag = (await ask(gate, 'GET', '/')).headers.etag ?? '';
    expect(await ask(gate, 'GET', '/', { headers: { 'If-None-Match': tag } })).toMatchObject({ status: 304, body: '' });
  });

  test('hashed files are immutable, the rest is not', async () => {
    const gate = await ground.start();
    expect((await ask(gate, 'GET', '/_app/immutable/start.js')).headers['cache-control']).toBe(
      'public, max-age=31536000, immutable',
    );
    expect((await ask(gate, 'GET', '/service-worker.js')).headers['cache-control']).toBe('no-cache');
    expect((await ask(gate, 'GET', '/manifest.webmanifest')).headers['cache-control']).toBe('no-cache');
    const br = await ask(gate, 'GET', '/_app/immutable/start.js', { headers: { 'Accept-Encoding': 'gzip, br;q=1.0' } });
    expect(br.headers).toMatchObject({ 'content-encoding': 'br', vary: 'Accept-Encoding' });
  });

  test('a file altered after the start is never sent', async () => {
    const gate = await ground.start();
    writeFileSync(join(ground.directory, 'build', '_app/immutable/start.js'), 'alert(1)');
    expect((await ask(gate, 'GET', '/_app/immutable/start.js')).body).toContain('export const started');
  });

  test('a packed file that holds another than its twin is not unpacked to anyone', async () => {
    const directory = join(ground.directory, 'build');
    const br = brotliCompressSync('alert(1)');
    await buildAssets(directory, (table) => {
      const files = table['files'] as Record<string, Record<string, unknown>>;
      const file = files['/service-worker.js'];
      if (file !== undefined) file['br'] = { sha256: createHash('sha256').update(br).digest('hex'), bytes: br.length };
    });
    writeFileSync(join(directory, 'service-worker.js.br'), br);
    const gate = await ground.start();
    const answer = await ask(gate, 'GET', '/service-worker.js');
    expect(answer).toMatchObject({ status: 500 });
    expect(answer.body).not.toContain('alert');
  });

  test.each([
    [
      'an altered byte',
      (directory: string) => writeFileSync(join(directory, 'service-worker.js'), 'self.skipWaitinG;\n'),
      'altered',
    ],
    [
      'an altered compressed twin',
      (directory: string) => writeFileSync(join(directory, 'service-worker.js.br'), 'x'),
      'altered',
    ],
    ['a missing file', (directory: string) => execFileSync('rm', [join(directory, 'service-worker.js')]), 'missing'],
    ['no table', (directory: string) => execFileSync('rm', [join(directory, 'assets.json')]), 'not been built'],
    ['a table that is not JSON', (directory: string) => writeFileSync(join(directory, 'assets.json'), '{'), 'not JSON'],
  ])('%s refuses the start and names the mend', async (_name, break_, word) => {
    const directory = join(ground.directory, 'build');
    break_(directory);
    await expect(startGate(ground.deps())).rejects.toThrow(new RegExp(`${word}.*npm start.*npm run build`, 's'));
  });

  test('a table of another wire, or with a name that climbs, refuses the start', async () => {
    const directory = join(ground.directory, 'build');
    await buildAssets(directory, (table) => (table['wire'] = 2));
    expect(() => loadAssets(directory)).toThrow(/another version/);
    await buildAssets(directory, (table) => {
      (table['files'] as Record<string, unknown>)['/../up.js'] = {
        sha256: '0'.repeat(64),
        bytes: 0,
        type: 'text/plain',
      };
    });
    expect(() => loadAssets(directory)).toThrow(/not a name/);
  });

  test.each([
    ['no files', (table: Record<string, unknown>) => delete table['files']],
    [
      'a file without a hash',
      (table: Record<string, unknown>) => (table['files'] = { '/a.js': { bytes: 1, type: 'x' } }),
    ],
    ['a route that is no text', (table: Record<string, unknown>) => (table['routes'] = [1])],
    ['a wire that is no number', (table: Record<string, unknown>) => (table['wire'] = '1')],
  ])('a table with %s is not understood', async (_name, change) => {
    const directory = join(ground.directory, 'build');
    await buildAssets(directory, change);
    expect(() => loadAssets(directory)).toThrow(/not understood/);
  });

  test('before the rooms are there, the porch hands out the app and keeps the rest waiting', async () => {
    const { assetsDirectory } = ground.deps();
    const porch = await openPorch({ port: 0, assetsDirectory, log: () => undefined, segment: null });
    const { port } = porch.listener;
    ground.onEnd(() => porch.listener.server.close());
    const at = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`);
    expect((await at('/up')).status).toBe(204);
    expect((await at('/')).headers.get('content-type')).toContain('text/html');
    expect((await at(`/b/${'A'.repeat(22)}/session`)).status).toBe(401);
    let answered = false;
    const launching = fetch(`http://127.0.0.1:${port}/launch`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Origin: `http://127.0.0.1:${port}` },
      body: '{}',
    }).then((response) => {
      answered = true;
      return response.status;
    });
    expect((await at('/up')).status).toBe(204);
    expect(answered).toBe(false);
    porch.enter({
      answer: async (allowed, _request, response) =>
        void response.writeHead(allowed.kind === 'launch' ? 202 : 500).end(),
      upgrade: () => 404,
      base: () => '/b/x/',
    });
    expect(await launching).toBe(202);
  });

  test('GET /up says that a bridge is here and nothing else', async () => {
    const gate = await ground.start();
    const answer = await ask(gate, 'GET', '/up');
    expect(answer).toMatchObject({ status: 204, body: '' });
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.headers['set-cookie']).toBeUndefined();
  });
});

describe('case 69 pages elsewhere', () => {
  test('no endpoint answers another origin, whatever form the request takes', async () => {
    const gate = await ground.start();
    const { base, cookie } = await signIn(ground);
    const other = { Origin: 'http://127.0.0.1:9', Cookie: cookie, 'Sec-Fetch-Site': 'same-site' };
    for (const path of [
      'session',
      'socket',
      'logout',
      'forget',
      'blob?conversation=c1',
      `blob/${'0'.repeat(64)}?conversation=c1`,
    ].map((rest) => `${base}${rest}`)) {
      expect([403], `GET ${path}`).toContain((await ask(gate, 'GET', path, { headers: other })).status);
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json']) {
        const answer = await ask(gate, 'POST', path, { headers: { ...other, 'Content-Type': type }, body: '{}' });
        expect(answer.status, `POST ${path} ${type}`).toBe(403);
        expect(answer.headers['access-control-allow-origin']).toBeUndefined();
      }
    }
    expect(ground.calls).toEqual([]);
    expect((await ask(gate, 'GET', `${base}session`, { headers: { Cookie: cookie } })).status).toBe(204);
  });

  test('another program on [::1] of our port changes nothing we print (T03)', async () => {
    const gate = await ground.start();
    const stranger = createServer().listen({ host: '::1', port: gate.port });
    const outcome = await Promise.race([
      once(stranger, 'listening').then(() => 'taken'),
      once(stranger, 'error').then(() => 'no ipv6'),
    ]);
    ground.onEnd(() => stranger.close());
    expect(['taken', 'no ipv6']).toContain(outcome);
    expect(gate.launchUrl().url).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:${gate.port}/#launch=[A-Za-z0-9_-]{43}$`));
    expect((await ask(gate, 'GET', '/up')).status).toBe(204);
  });
});
