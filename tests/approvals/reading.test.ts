import { describe, expect, it } from 'vitest';
import { commandReading } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import { z } from '#protocol/schema.ts';
import { isPrivateHost } from '../../bridge/approvals/shell/hosts.ts';
import { plainWords } from '../../bridge/approvals/shell/words.ts';
import { compact, corpus, read, type Case } from './readings.ts';

const titleOf = (command: Case): string => JSON.stringify('text' in command ? command.text : command.argv);

describe.each(['ordinary', 'hostile'] as const)('R-02, R-16: commands of the corpus (%s)', (name) => {
  it.each(corpus(name).map((each) => [titleOf(each), each] as const))('%s', (_title, command) => {
    const { text, argv, ...expected } = command as Case & { text?: string; argv?: string[] };
    const found = read(text === undefined ? { argv: argv ?? [] } : { text });
    expect(compact(found)).toEqual(expected);
    expect(z.safeParse(commandReading, found.reading).success).toBe(true);
    expect(found.reading.form).toBe(text === undefined ? 'argv' : 'shell');
  });
});

it('the corpus is as large as promised, and no command is in it twice', () => {
  const all = [...corpus('ordinary'), ...corpus('hostile')].map(titleOf);
  expect(all.length).toBeGreaterThanOrEqual(300);
  expect(corpus('hostile').length).toBeGreaterThanOrEqual(60);
  expect(new Set(all).size).toBe(all.length);
});

describe('case 17: what is added to a command takes it out of every rule by program', () => {
  const commands = ['git log', 'npm test', 'ls -la src', "git commit -m 'a b'"];
  const additions = [
    '; id',
    ' && id',
    ' || id',
    ' | sh',
    ' |& sh',
    ' & id',
    '\nid',
    '\r\nid',
    ' $(id)',
    ' `id`',
    ' <(id)',
    ' > x',
    ' <<< x',
    ' *',
    ' ~',
    ' $x',
    ' {a,b}',
    ' #',
  ];
  it.each(commands)('%s', (command) => {
    expect(read({ text: command }).reading.simple).toBe(true);
    for (const addition of additions) expect(read({ text: command + addition }).reading.simple, addition).toBe(false);
    for (const before of ['env ', 'sudo ', 'x=1 ', '! ', 'time ', 'command ', 'npx ', '(', '\\\n'])
      expect(read({ text: before + command }).reading.simple, before).toBe(false);
    expect(read({ argv: ['bash', '-lc', command] }).reading.simple).toBe(false);
  });
});

describe('a text that is too much', () => {
  const deep = (open: string, close: string, times: number): string => open.repeat(times) + 'id' + close.repeat(times);
  it.each([
    ['too long', `echo ${'x '.repeat(limits.ruleTextUnits)}`],
    ['substitutions within substitutions', deep('$(', ')', 2000)],
    ['subshells within subshells', deep('(', ')', 2000)],
    ['groups within groups', deep('{ ', '; }', 500)],
    ['quotes within substitutions', deep('"$(', ')"', 1000)],
    ['arithmetic within arithmetic', deep('$((', '))', 1000)],
    ['evals within evals', `${'eval '.repeat(3000)}id`],
    ['trampolines within trampolines', `${'sudo '.repeat(3000)}id`],
    ['here-documents without end', 'cat <<E '.repeat(1500)],
    ['more programs than are listed', 'id;'.repeat(5000)],
    ['more substitutions than are listed', '`id` '.repeat(3000)],
    ['more redirections than are listed', `id ${'>a '.repeat(3000)}`],
    ['more arguments than are listed', `id ${'a '.repeat(3000)}`],
    [
      'more paths than are listed',
      `cat ${Array.from({ length: 199 }, (_, at) => `a${String(at)}`).join(' ')}; ls b c d`,
    ],
  ])('%s is uninspectable', (_what, text) => {
    const { reading } = read({ text });
    expect(reading.uninspectable.length).toBeGreaterThan(0);
    expect(reading.simple).toBe(false);
    expect(z.safeParse(commandReading, reading).success).toBe(true);
  });

  it('an argument that is too long to be listed is not known', () => {
    const { reading } = read({ argv: ['echo', 'x'.repeat(5000)] });
    expect(reading.programs).toEqual([{ name: 'echo', args: [null], via: [] }]);
    expect(reading).toMatchObject({ simple: false, uninspectable: ['An argument is too long to be listed.'] });
  });
});

describe('the second reader', () => {
  it.each([
    ['git log', ['git', 'log']],
    [' a  b\t', ['a', 'b']],
    [`a 'b c' "d e"f`, ['a', 'b c', 'd ef']],
    ['a 2>&1 >/dev/null b < c', ['a', 'b']],
    ['git diff HEAD~1', ['git', 'diff', 'HEAD~1']],
    [`a ''`, ['a', '']],
    ['árvíz tűrő', ['árvíz', 'tűrő']],
  ])('reads %j as %j', (text, words) => {
    expect(plainWords(text)).toEqual(words);
  });
  it.each([
    'a;b',
    'a\nb',
    'a\rb',
    'a|b',
    'a&',
    'a $b',
    'a `b`',
    'a "$b"',
    'a "`b`"',
    'a "b\\"',
    'a\\ b',
    'a*',
    'a?',
    '[a]',
    '{a,b}',
    '~',
    'a=~',
    '=a',
    '#a',
    '!a',
    'a^b',
    '(a)',
    'a>',
    'a >',
    'a<<b',
    'a > >b',
    'a\u00a0b',
    'a\u200bb',
    "a 'b",
    'a 3>b',
    'a 2>&1b',
    '',
  ])('leaves %j to others', (text) => {
    expect(plainWords(text)).toBeNull();
  });
});

describe('hosts of this machine and its network', () => {
  it.each([
    'localhost',
    'a.localhost',
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '0',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '::1',
    '::',
    'fe80::1',
    'fd00::1',
    '::ffff:127.0.0.1',
    '::ffff:a00:1',
    '64:ff9b::a00:1',
    'metadata.google.internal',
    'db.internal',
    'printer.local',
    'LOCALHOST',
    'localhost.',
  ])('%s is one', (host) => {
    expect(isPrivateHost(host)).toBe(true);
  });
  it.each([
    'example.com',
    '8.8.8.8',
    '172.32.0.1',
    '2606:4700::1111',
    'localhost.example.com',
    'internal.example.com',
    'a b',
    '',
  ])('%j is none', (host) => {
    expect(isPrivateHost(host)).toBe(false);
  });
});

describe('where relative paths lead', () => {
  const places = (text: string): Readonly<Record<string, string>> =>
    Object.fromEntries(read({ text }).paths.map(({ path, place }) => [path, place]));
  it.each([
    ['cd sub && cat ../a', { '/w/sub': 'inside', '/w/a': 'inside' }],
    ['cd /etc && cat passwd', { '/etc': 'outside', '/etc/passwd': 'outside' }],
    ['cd /etc; cat passwd', { '/etc': 'outside', passwd: 'outside' }],
    ['(cd /etc); cat a', { '/etc': 'outside', '/w/a': 'inside' }],
    ['cd /etc || cat a', { '/etc': 'outside', a: 'outside' }],
    ['cd "$x"; cat a', { '"$x"': 'unknown', a: 'unknown' }],
    ['cd; cat a', { '~': 'outside', a: 'unknown' }],
    ['for x in 1 2; do cat a; cd ..; done', { a: 'unknown', '..': 'unknown' }],
    ['f() { cd /; }; f; cat a', { '/': 'outside', a: 'outside' }],
    ['eval "cd /"; cat a', { '/': 'outside', a: 'unknown' }],
    ['git -C sub add x.ts', { '/w/sub': 'inside' }],
    ['git -C /etc show ./x.ts', { '/etc': 'outside', '/etc/x.ts': 'outside' }],
    ['ssh host cat /etc/passwd', {}],
  ])('%s', (text, expected) => {
    expect(places(text)).toEqual(expected);
  });
});
