import { describe, expect, test } from 'vitest';
import { judge, type Head, type Verdict } from '../../bridge/gate/judge.ts';

const port = 7433;
const base = `/b/${'s'.repeat(22)}/`;
const origin = `http://127.0.0.1:${port}`;
const cookie = `cs=${'a'.repeat(43)}`;
const json = ['Content-Type', 'application/json', 'Content-Length', '2'];

const headOf = (method: string, url: string, headers: readonly string[], more: Partial<Head> = {}): Head => ({
  method,
  url,
  httpVersion: '1.1',
  rawHeaders: ['Host', `127.0.0.1:${port}`, ...headers],
  upgrade: false,
  ...more,
});
const judged = (head: Head): Verdict => judge(head, { port, base });
const statusOf = (verdict: Verdict): number => (verdict.kind === 'refuse' ? verdict.status : 200);
const judge1 = (method: string, url: string, headers: readonly string[], more: Partial<Head> = {}): number =>
  statusOf(judged(headOf(method, url, headers, more)));

const foreignHosts = [
  [],
  ['Host', `127.0.0.1:${port}`, 'Host', `127.0.0.1:${port}`],
  ...[
    `localhost:${port}`,
    '127.0.0.1',
    '127.0.0.1:7434',
    `127.0.0.1:${port}.evil`,
    `x@127.0.0.1:${port}`,
    `[::ffff:127.0.0.1]:${port}`,
    `0.0.0.0:${port}`,
    `2130706433:${port}`,
    `127.1:${port}`,
    `127.0.0.1.:${port}`,
    `127.0.0.1:${port}.`,
    `LOCALHOST:${port}`,
    `evil.test:${port}`,
    '',
    ` 127.0.0.1:${port}`,
    `127.0.0.1:0${port}`,
  ].map((host) => ['Host', host]),
];
const foreignOrigins = [
  [],
  ['Origin', origin, 'Origin', origin],
  ...[
    'null',
    'http://127.0.0.1:7434',
    `https://127.0.0.1:${port}`,
    `${origin}.evil`,
    `${origin}0`,
    `http://localhost:${port}`,
    'chrome-extension://abcdefgh',
    'file://',
    `${origin}/`,
    ` ${origin}`,
    origin.toUpperCase(),
  ].map((value) => ['Origin', value]),
];

describe('T04 Host', () => {
  test.each(foreignHosts.map((headers) => [headers.join(' ') || 'absent', headers]))(
    'refuses %s with 421',
    (_name, headers) => {
      for (const [method, url] of [
        ['GET', '/'],
        ['POST', '/launch'],
        ['GET', `${base}session`],
        ['OPTIONS', '/'],
      ] as const) {
        const head = headOf(method, url, ['Origin', origin, 'Cookie', cookie], {
          rawHeaders: [...headers, 'Origin', origin, 'Cookie', cookie],
        });
        expect(statusOf(judged(head))).toBe(421);
      }
    },
  );
  test('counts raw headers whatever their case', () => {
    expect(judge1('GET', '/', ['hOsT', `127.0.0.1:${port}`])).toBe(421);
  });
  test('the exact Host, once, passes', () => {
    expect(judged(headOf('GET', '/up', []))).toEqual({ kind: 'up' });
  });
});

describe('T06 Origin', () => {
  test.each(foreignOrigins.map((headers) => [headers.join(' ') || 'absent', headers]))(
    'refuses %s with 403 on everything but GET, and on upgrades',
    (_name, headers) => {
      expect(judge1('POST', '/launch', [...headers, ...json])).toBe(403);
      expect(judge1('POST', `${base}logout`, [...headers, ...json, 'Cookie', cookie])).toBe(403);
      expect(
        judge1('PUT', `${base}blob?conversation=c`, [
          ...headers,
          'Content-Type',
          'application/octet-stream',
          'Content-Length',
          '1',
          'Cookie',
          cookie,
        ]),
      ).toBe(403);
      expect(
        judge1('GET', `${base}socket`, [...headers, 'Cookie', cookie, 'Upgrade', 'websocket'], { upgrade: true }),
      ).toBe(403);
      for (const method of ['OPTIONS', 'HEAD', 'DELETE', 'PATCH']) expect(judge1(method, '/', headers)).toBe(403);
    },
  );
  test('the exact Origin, once, passes', () => {
    expect(judged(headOf('POST', '/launch', ['Origin', origin, ...json]))).toEqual({ kind: 'launch', bytes: 2 });
    expect(
      judged(headOf('GET', `${base}socket`, ['Origin', origin, 'Cookie', cookie], { upgrade: true })),
    ).toMatchObject({ kind: 'base', route: 'socket' });
  });
});

describe('T12 what could be read in two ways', () => {
  test.each([
    ['CONNECT', headOf('CONNECT', `127.0.0.1:${port}`, []), 405],
    ['TRACE', headOf('TRACE', '/', ['Origin', origin]), 405],
    ['absolute-form', headOf('GET', `${origin}/`, []), 400],
    ['asterisk-form', headOf('OPTIONS', '*', ['Origin', origin]), 400],
    [
      'chunked',
      headOf('POST', '/launch', ['Origin', origin, 'Content-Type', 'application/json', 'Transfer-Encoding', 'chunked']),
      400,
    ],
    [
      'xchunked',
      headOf('POST', '/launch', ['Origin', origin, 'Transfer-Encoding', 'xchunked', 'Content-Length', '2']),
      400,
    ],
    ['two lengths', headOf('POST', '/launch', ['Origin', origin, ...json, 'Content-Length', '2']), 411],
    ['no length', headOf('POST', '/launch', ['Origin', origin, 'Content-Type', 'application/json']), 411],
    ['a GET with a body', headOf('GET', '/', ['Content-Length', '1']), 400],
    ['HTTP/1.0', headOf('GET', '/', [], { httpVersion: '1.0' }), 505],
    ['an odd expectation', headOf('GET', '/', ['Expect', 'more']), 400],
    ['101 headers', headOf('GET', '/', Array.from({ length: 101 }, (_, index) => [`X-${index}`, 'y']).flat()), 431],
    ['a space in the target', headOf('GET', '/a b', []), 400],
    ['a byte outside ASCII in the target', headOf('GET', '/\xff', []), 400],
  ] as const)('refuses %s', (_name, head, status) => {
    expect(statusOf(judged(head))).toBe(status);
  });
});

describe('under base', () => {
  const get = (url: string, headers: readonly string[]): number => judge1('GET', url, headers);
  test('asks for a cookie of our form', () => {
    expect(get(`${base}session`, [])).toBe(401);
    expect(get(`${base}session`, ['Cookie', 'cs=short; other=1'])).toBe(401);
    expect(get(`${base}session`, ['Cookie', cookie])).toBe(200);
  });
  test('T23 takes planted cookies of the same name as mere candidates', () => {
    const verdict = judged(
      headOf('GET', `${base}session`, ['Cookie', `cs=${'p'.repeat(43)}; ${cookie}`, 'Cookie', `cs=${'q'.repeat(43)}`]),
    );
    expect(verdict).toMatchObject({ cookies: ['p'.repeat(43), 'a'.repeat(43), 'q'.repeat(43)] });
  });
  test.each(['cross-site', 'same-site', 'none', ''])('T10 refuses Sec-Fetch-Site %s', (site) => {
    expect(get(`${base}session`, ['Cookie', cookie, 'Sec-Fetch-Site', site])).toBe(403);
  });
  test('T10 same-origin fetches pass', () => {
    expect(get(`${base}session`, ['Cookie', cookie, 'Sec-Fetch-Site', 'same-origin'])).toBe(200);
  });
  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/json2',
    'application/octet-stream',
  ])('case 69 refuses a POST of %s', (type) => {
    const headers = ['Origin', origin, 'Content-Type', type, 'Content-Length', '2', 'Cookie', cookie];
    expect(judge1('POST', `${base}logout`, headers)).toBe(415);
    expect(judge1('POST', '/launch', headers)).toBe(415);
  });
  test('case 69 refuses a POST without, or with two, content types', () => {
    expect(judge1('POST', '/launch', ['Origin', origin, 'Content-Length', '2'])).toBe(415);
    expect(judge1('POST', '/launch', ['Origin', origin, ...json, 'Content-Type', 'application/json'])).toBe(415);
  });
  test('knows its routes and no others', () => {
    expect(get(`${base}`, ['Cookie', cookie])).toBe(404);
    expect(get(`${base}session/`, ['Cookie', cookie])).toBe(404);
    expect(get(`${base}logout`, ['Cookie', cookie])).toBe(405);
    expect(get(`${base}socket`, ['Cookie', cookie])).toBe(426);
    expect(get(`${base}blob/${'0'.repeat(64)}?conversation=c`, ['Cookie', cookie])).toBe(200);
    expect(get(`${base}blob/${'0'.repeat(63)}?conversation=c`, ['Cookie', cookie])).toBe(404);
    expect(judge1('GET', `${base}session`, ['Origin', origin, 'Cookie', cookie], { upgrade: true })).toBe(400);
    expect(judge1('GET', '/', ['Origin', origin], { upgrade: true })).toBe(404);
  });
  test('another segment is answered as signed out, whatever the rest says', () => {
    for (const rest of ['session', 'nothing'])
      expect(judge1('GET', `/b/${'t'.repeat(22)}/${rest}`, ['Cookie', cookie])).toBe(401);
    expect(judge1('GET', `/b/${'t'.repeat(21)}/session`, ['Cookie', cookie])).toBe(200); // a mere path: the table has no such name
    expect(judge1('GET', `/b/${'t'.repeat(22)}/socket`, ['Cookie', cookie, 'Origin', origin], { upgrade: true })).toBe(
      401,
    );
  });
  test('bounds bodies before they are read', () => {
    const length = (bytes: number): readonly string[] => [
      'Origin',
      origin,
      'Cookie',
      cookie,
      'Content-Type',
      'application/json',
      'Content-Length',
      String(bytes),
    ];
    expect(judge1('POST', '/launch', length(4096))).toBe(200);
    expect(judge1('POST', '/launch', length(4097))).toBe(413);
    expect(judge1('POST', `${base}logout`, length(65_537))).toBe(413);
    const put = [
      'Origin',
      origin,
      'Cookie',
      cookie,
      'Content-Type',
      'application/octet-stream',
      'Content-Length',
      String(20 * 1024 * 1024 + 1),
    ];
    expect(judge1('PUT', `${base}blob?conversation=c`, put)).toBe(413);
  });
});
