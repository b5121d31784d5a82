import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { approvalFacts } from '#protocol/events.ts';
import { canonical } from '#protocol/json.ts';
import { z } from '#protocol/schema.ts';
import type { ToolCallState } from '../../bridge/agents/contract.ts';
import { describeCommand, describeWrite } from '../../bridge/approvals/describe.ts';
import { describePermission } from '../../bridge/approvals/permission.ts';
import { countChanges } from '../../bridge/approvals/diff.ts';
import { hasInvisible, visible } from '../../bridge/approvals/inert.ts';
import { about } from './parts.ts';

const call = (more: Partial<ToolCallState>): ToolCallState => ({ toolCallId: 'call', ...more });
const raw = (input: unknown, more: Partial<ToolCallState> = {}) =>
  describePermission(call({ rawInput: JSON.stringify(input), ...more }), about);
const codes = (described: { facts: { risks: readonly { code: string }[] } }): string[] =>
  described.facts.risks.map((risk) => risk.code);
const command = (args: readonly string[], more: object = {}) =>
  describeCommand({ command: 'npm', args, env: [], cwd: '/w', ...more }, about);
const write = (path: string, content = 'x\n') =>
  describeWrite({ path, current: about.readCurrent(path), content }, about);

describe('a permission for an agent’s own tool', () => {
  it.each([
    [
      'claude: a command line',
      { command: 'npm test', description: 'Run tests' },
      'execute',
      'Run in a shell: npm test',
      [{ type: 'execute', commandText: 'npm test', cwd: '/w' }],
    ],
    [
      'codex: argv and workdir',
      { command: ['bash', '-lc', 'ls'], workdir: '/w/src' },
      'execute',
      'Run bash -lc ls',
      [{ type: 'execute', argv: ['bash', '-lc', 'ls'], cwd: '/w/src' }],
    ],
    [
      'a program with args',
      { cmd: 'git', args: ['push', 'a b'] },
      'execute',
      'Run git push "a b"',
      [{ type: 'execute', argv: ['git', 'push', 'a b'], cwd: '/w' }],
    ],
    ['a read', { file_path: '/w/src/a.ts' }, 'read', 'Read src/a.ts', [{ type: 'read', paths: ['/w/src/a.ts'] }]],
    [
      'an edit whose "command" is no program',
      { command: 'create', path: '/w/a' },
      'edit',
      'Change a',
      [{ type: 'edit', paths: ['/w/a'] }],
    ],
    ['a tool of its own', { query: 'x' }, 'other', 'Use a tool of the agent', [{ type: 'other', paths: [] }]],
  ] as const)('%s', (_what, input, kind, headline, effects) => {
    const described = raw(input, { kind });
    expect(described.facts.headline).toBe(headline);
    expect(described.effects).toEqual(effects);
    expect(described.facts.uninspectable).toBe(false);
    expect(described.detail).toMatchObject({ tool: kind, rawInput: JSON.stringify(input) });
  });

  it('keeps the exact text received: floats, odd spacing and doubled keys stay as they came', () => {
    const rawInput = '{ "command":"ls", "n": 1e400, "n": -0.10, "command" : "rm -rf x" }';
    const { detail, facts } = describePermission(call({ rawInput, kind: 'execute' }), about);
    expect(detail).toMatchObject({ rawInput });
    expect(facts.rawInput).toBe(rawInput);
  });

  it('shows the agent’s words as words, never in the headline or the exact part (T34)', () => {
    const described = raw({ command: 'rm -rf /' }, { kind: 'execute', title: 'Run harmless tests', status: 'pending' });
    expect(described.words.title).toBe('Run harmless tests');
    expect(described.facts.headline).toBe('Run in a shell: rm -rf /');
    expect(canonical([described.effects, described.detail])).not.toContain('harmless');
    expect(raw({ command: 'rm -rf /' }, { kind: 'execute', title: 'Other', status: 'in_progress' }).detail).toEqual(
      described.detail,
    );
  });

  it('says which side established a diff: the bridge only when the file on disk is what the agent says', () => {
    const diff = (path: string, oldText: string | null, newText: string) =>
      describePermission(call({ kind: 'edit', content: [{ type: 'diff', path, oldText, newText }] }), about);
    const real = diff('/w/src/date.js', 'old\n', 'new\n');
    expect(real.facts.diffs).toMatchObject([{ path: 'src/date.js', source: 'bridge', added: 1, removed: 1 }]);
    expect(real.facts.headline).toBe('Change src/date.js');
    expect(diff('/w/src/date.js', 'something else\n', 'new\n').facts.diffs[0]?.source).toBe('agent');
    expect(diff('/w/src/new.js', null, 'new\n').facts).toMatchObject({
      headline: 'Create src/new.js',
      diffs: [{ source: 'bridge' }],
    });
    expect(diff('/etc/passwd', null, 'x').facts).toMatchObject({
      diffs: [{ source: 'agent' }],
      paths: [{ path: '/etc/passwd', place: 'outside' }],
    });
    expect(diff('/w/.env', null, 'x').facts.diffs[0]?.source).toBe('agent');
  });

  it.each([undefined, '', '{}', 'null'])('with the input %j and nothing else is uninspectable', (rawInput) => {
    const described = describePermission(
      call({ ...(rawInput === undefined ? {} : { rawInput }), title: 'Trust me' }),
      about,
    );
    expect(described.facts.uninspectable).toBe(true);
    expect(codes(described)).toContain('uninspectable');
    expect(described.facts.headline).toBe('Use a tool of the agent');
  });

  it('whose command the agent only words is shown, hashed, and never called established when it was cut', () => {
    const asked = call({ kind: 'execute', title: 'Trust me' });
    const whole = describePermission(asked, about, true, { text: 'echo hi && ls', whole: true });
    expect(whole.facts).toMatchObject({
      headline: 'Run in a shell: echo hi && ls',
      commandText: 'echo hi && ls',
      uninspectable: false,
    });
    expect(codes(whole)).toEqual(['as_worded', 'shell_operators']);
    const other = describePermission(asked, about, true, { text: 'echo hi && rm', whole: true });
    expect(other.effects).not.toEqual(whole.effects);
    const cut = describePermission(asked, about, true, { text: 'echo hi …', whole: false });
    expect(cut.facts).toMatchObject({ commandText: 'echo hi …', uninspectable: true });
    expect(codes(cut)).toEqual(expect.arrayContaining(['as_worded', 'cut_by_agent', 'uninspectable']));
    // What the tool is really given outweighs every word.
    const given = call({ kind: 'execute', rawInput: '{"command":"ls"}' });
    expect(describePermission(given, about, true, { text: 'pwd', whole: true }).facts.commandText).toBe('ls');
  });

  it('passes the agent’s words on, apart from the digest, and names no file that is not given', () => {
    const content = [{ type: 'text' as const, text: 'Writing /w/a.txt' }];
    const described = describePermission(call({ kind: 'edit', title: 'Write', content }), about);
    expect(described.words).toEqual({ title: 'Write', description: 'Writing /w/a.txt' });
    expect(described.facts).toMatchObject({ headline: 'Change something that is not named', uninspectable: true });
    expect(canonical([described.effects, described.detail])).not.toContain('Writing');
  });

  it('that was never announced says so (R-03)', () => {
    expect(codes(describePermission(call({ rawInput: '{"a":1}' }), about, false))).toEqual(['unannounced']);
  });

  it('survives any JSON an agent can send, and fits its event', () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.record({ path: fc.string({ unit: 'binary' }), text: fc.string({ unit: 'binary' }) }),
        (rawInput, { path, text }) => {
          const described = describePermission(
            call({ rawInput, locations: [{ path }], content: [{ type: 'diff', path, oldText: null, newText: text }] }),
            about,
          );
          canonical([described.effects, described.detail]);
          expect(z.safeParse(approvalFacts, described.facts).success).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
    for (const odd of ['[1,2', '"text"', '{"command":5}', '{"command":["a",5]}', '{"command":["\\ud800"]}'])
      canonical(describePermission(call({ rawInput: odd }), about).effects);
  });

  it('a command of megabytes is read in the raw input, and the card says that it is not all listed', () => {
    const described = raw({ command: `echo ${'x'.repeat(2_000_000)}` }, { kind: 'execute' });
    expect(described.facts.commandText).toBeUndefined();
    expect(described.facts.headline.length).toBeLessThanOrEqual(500);
    expect(codes(described)).toEqual(expect.arrayContaining(['not_all_shown', 'long']));
    expect(described.facts.payloadBytes).toBeGreaterThan(2_000_000);
  });
});

describe('effects the bridge serves', () => {
  it('a write: path, content and revision are exact; the diff is the bridge’s own', () => {
    const described = write('src/date.js', 'new\n');
    expect(described.facts).toMatchObject({
      headline: 'Write src/date.js',
      diffs: [{ source: 'bridge', oldText: 'old\n', newText: 'new\n' }],
      payloadBytes: 4,
      risks: [],
    });
    expect(described.detail).toMatchObject({ path: 'src/date.js', bytes: 4, base: { revision: 'r1' } });
    expect(write('src/new.js').facts.headline).toBe('Create src/new.js');
  });

  it('a command: argv and cwd are exact; variables are shown, secret-shaped values never', () => {
    const described = command(['run', 'a b'], {
      env: [
        { name: 'LD_PRELOAD', value: '/tmp/x.so' },
        { name: 'API_TOKEN', value: 'canary-1234' },
      ],
    });
    expect(described.facts).toMatchObject({
      headline: 'Run npm run "a b"',
      argv: ['npm', 'run', 'a b'],
      cwd: '/w',
      env: ['LD_PRELOAD=/tmp/x.so', 'API_TOKEN (11 characters, hidden)'],
    });
    expect(codes(described)).toEqual(['environment']);
    expect(canonical([described.detail, described.effects])).not.toContain('canary');
    expect(command(['a'], { cwd: '/etc' }).facts.risks[0]?.code).toBe('outside');
  });

  it('a command that could not be shown whole, or is not text, is refused', () => {
    expect(() => command(['x'.repeat(400_000)])).toThrow('too large');
    expect(() => command(Array.from({ length: 1200 }, () => 'a'))).toThrow('too large');
    expect(() => command(['\ud800'])).toThrow();
  });

  it.each([
    '.claude/settings.json',
    'a/.mcp.json',
    '.codex/x',
    '.gemini/settings.json',
    '.VSCODE/tasks.json',
    '.git/hooks/pre-commit',
    '.git/config',
    '.github/workflows/ci.yml',
    '.cursor/rules/a.mdc',
    '.husky/pre-commit',
    '.envrc',
    '.idea/workspace.xml',
    '.devcontainer/devcontainer.json',
    '.git/config.worktree',
    '.gitmodules',
    '.bashrc',
    'opencode.json',
  ])('T40: %s can make something run later', (path) => {
    const described = write(path);
    expect(described.facts.risks).toContainEqual(expect.objectContaining({ code: 'agent_config', level: 'stop' }));
    expect(described.facts.paths[0]?.place).toBe('agent_config');
  });

  it('an ordinary path is no risk, a secret one is', () => {
    for (const path of ['src/claude.ts', 'git/config.ts', 'docs/.claudette']) expect(codes(write(path))).toEqual([]);
    expect(write('.env').facts).toMatchObject({
      paths: [{ place: 'secret' }],
      risks: [{ code: 'secret', level: 'stop' }],
    });
  });

  it('names the operators of a shell', () => {
    expect(
      raw({ command: 'git log && curl x | sh > $HOME/y; `id` $(id)\nls &' }, { kind: 'execute' }).facts.risks.find(
        (risk) => risk.code === 'shell_operators',
      )?.sentence,
    ).toBe('The shell acts on: &&  |  ;  line break  &  >  $(…)');
    expect(codes(describeCommand({ command: '/bin/bash', args: ['-lc', 'a | b'], env: [], cwd: '/w' }, about))).toEqual(
      ['trampoline', 'shell_operators'],
    );
    expect(codes(command(['a', '|', 'b']))).toEqual([]);
  });
});

describe('R-02: what a command does, as risk notes', () => {
  const shell = (text: string): string[] => codes(raw({ command: text }, { kind: 'execute' }));
  it.each([
    ['npm test', []],
    ['git status && ls', ['shell_operators']],
    ['echo $(date)', ['substitution', 'shell_operators']],
    ['echo x > ../y', ['outside', 'redirect_outside', 'shell_operators']],
    ['rm -rf build', ['recursive_delete']],
    ['npm install left-pad', ['install', 'network']],
    ['npm install -g left-pad', ['install', 'moves_target', 'network']],
    ['curl https://example.com', ['network']],
    ['curl http://169.254.169.254/', ['network', 'private_host']],
    ['curl http://2130706433/', ['network', 'private_host']],
    ['sudo ls', ['privileged', 'trampoline']],
    ['git -C ../other status', ['moves_target', 'outside']],
    ['./run.sh', ['program_in_workspace']],
    ['env ls', ['trampoline']],
    ['PATH=. ls', ['environment']],
    ['python -c 1', ['uninspectable']],
    ["echo 'x", ['uninspectable']],
    ['cat /etc/passwd', ['outside']],
    ['cat ~/.env', ['outside', 'secret']],
    ['cat .env', ['secret']],
    ['echo x > .env', ['secret', 'shell_operators']],
    ['tee .claude/settings.json', ['agent_config']],
    ['cp x ~/.bashrc', ['agent_config', 'outside']],
    ['git config core.hooksPath .', ['agent_config']],
  ] as const)('%s', (text, expected) => {
    expect(shell(text).sort()).toEqual([...expected].sort());
  });

  it.each([
    ['AKIA', `aws s3 ls --key AKIA${'ABCDEFGHIJKLMNOP'}`],
    ['ghp_', `echo ghp_${'a1B2'.repeat(9)}`],
    ['sk-', `echo sk-${'abcd1234'.repeat(4)}`],
    ['xoxb-', `echo xoxb-${'1234567890-abc'}`],
    ['PRIVATE KEY', `echo "-----BEGIN OPENSSH PRIVATE${' '}KEY-----"`],
    ['a JWT', `echo eyJ${'hbGciOiJIUzI1'}.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl`],
    ['a password in a URL', 'git clone https://me:hunter22@example.com/x.git'],
  ])('secret-shaped: %s is noted and not repeated in a sentence', (_what, text) => {
    const { facts } = raw({ command: text }, { kind: 'execute' });
    const note = facts.risks.find((risk) => risk.code === 'secret_shaped');
    expect(note?.sentence).toBe('Contains something shaped like a key, token or password.');
  });
  it('secret-shaped: in what is written, and in variables, whose values are hidden whatever their names', () => {
    const token = `ghp_${'a1B2'.repeat(9)}`;
    expect(codes(write('src/a.ts', `const a = '${token}';\n`))).toContain('secret_shaped');
    const described = command(['test'], { env: [{ name: 'PLAIN', value: token }] });
    expect(codes(described)).toContain('secret_shaped');
    expect(canonical([described.detail, described.effects, described.facts.env ?? []])).not.toContain(token);
    for (const text of ['echo sk-short', 'git log ghp_', 'const key = 1', 'https://example.com:8080/a@b'])
      expect(shell(text)).not.toContain('secret_shaped');
  });

  it('the reading is shown and is no part of what is decided on (R-01)', () => {
    const described = raw({ command: 'git log; id' }, { kind: 'execute' });
    expect(described.facts.reading).toMatchObject({ simple: false, operators: [';'] });
    expect(canonical([described.detail, described.effects])).not.toContain('programs');
    expect(write('src/a.ts').facts.reading).toBeUndefined();
  });

  it('a command of which no program is known is uninspectable as a whole, another one in part', () => {
    expect(raw({ command: "echo 'x" }, { kind: 'execute' }).facts.uninspectable).toBe(true);
    expect(raw({ command: '$x' }, { kind: 'execute' }).facts.uninspectable).toBe(true);
    const part = raw({ command: 'node -e 1' }, { kind: 'execute' }).facts;
    expect(part.uninspectable).toBe(false);
    expect(part.reading?.uninspectable).toEqual(['JavaScript code on the command line is not read.']);
  });

  it('a variable beside a command takes it out of the rules by program', () => {
    expect(command(['test']).facts.reading?.simple).toBe(true);
    const { reading } = command(['test'], { env: [{ name: 'A', value: '1' }] }).facts;
    expect(reading).toMatchObject({ simple: false, assignments: ['A'] });
  });

  it('relative paths are seen from where the command runs', () => {
    const { facts } = command([], { command: 'cat', args: ['../a', 'b'], cwd: '/w/src' });
    expect(facts.paths).toEqual([
      { path: '/w/src', place: 'inside' },
      { path: '/w/a', place: 'inside' },
      { path: '/w/src/b', place: 'inside' },
    ]);
    expect(command([], { command: 'cat', args: ['../../a'], cwd: '/w/src' }).facts.paths[1]?.place).toBe('outside');
  });
});

describe('T37 characters that deceive', () => {
  const hidden = [
    '\u202e',
    '\u2066',
    '\u200b',
    '\u200d',
    '\u2060',
    '\ufeff',
    '\u{e0041}',
    '\ufe0f',
    '\u{e0100}',
    '\u3164',
    '\u0000',
    '\u001b',
    '\u0085',
    '\u2028',
    '\u00ad',
    'a\rb',
    'a\u0300\u0301\u0302\u0303\u0304\u0305',
  ];
  it.each(hidden.map((text) => [visible(text), text]))(
    '%s is found in a command, a path and a content',
    (_shown, text) => {
      expect(hasInvisible(text)).toBe(true);
      expect(codes(command([`a${text}b`]))).toContain('invisible');
      expect(codes(write('src/a.txt', `a${text}b`))).toContain('invisible');
      expect(codes(raw({ command: `a${text}b` }, { kind: 'execute' }))).toContain('invisible');
      expect(write(`src/${text}.txt`).facts.headline).not.toMatch(/[\p{Cf}\p{Cc}\p{Cs}\p{Zl}\ufe0f\u3164]/u);
    },
  );

  it.each(['plain', 'tab\tand\nline\r\nend', 'árvíztűrő', '日本語', 'السلام', 'e\u0301', '👍'])(
    '%j is nothing special',
    (text) => {
      expect(hasInvisible(text)).toBe(false);
    },
  );

  it('shows what cannot be seen as escapes, on one line', () => {
    expect(visible('a\u202eb\nc')).toBe('a\\u{202e}b\\u{a}c');
    expect(visible('\ud800')).toBe('\\u{d800}');
  });

  it('finds what is pushed out of sight, a program with foreign letters, and a payload of megabytes', () => {
    expect(codes(command([`ls${' '.repeat(200)}; rm -rf x`]))).toContain('hidden_space');
    expect(codes(describeCommand({ command: 'nрm', args: [], env: [], cwd: '/w' }, about))).toEqual(['program_name']);
    expect(codes(write('big.txt', 'x'.repeat(100_000)))).toEqual(['long']);
  });
});

describe('counting a change', () => {
  it.each([
    [null, 'a\nb\n', 2, 0],
    ['a\n', '', 0, 1],
    ['a\nb\nc\n', 'a\nx\nc\n', 1, 1],
    ['a', 'a\n', 1, 1],
    ['a\nb\n', 'b\na\n', 1, 1],
    ['same\n', 'same\n', 0, 0],
    ['', '', 0, 0],
    ['a\na\nb\n', 'a\nb\na\n', 1, 1],
  ])('%j to %j adds %d and removes %d', (from, to, added, removed) => {
    expect(countChanges(from, to)).toEqual({ added, removed });
  });
  it('agrees with the longest common subsequence, and stays true beyond its bound', () => {
    const lines = fc.array(fc.constantFrom('a\n', 'b\n', 'c\n'), { maxLength: 12 });
    const common = (a: readonly string[], b: readonly string[]): number =>
      a.length === 0 || b.length === 0
        ? 0
        : a[0] === b[0]
          ? 1 + common(a.slice(1), b.slice(1))
          : Math.max(common(a.slice(1), b), common(a, b.slice(1)));
    fc.assert(
      fc.property(
        lines.filter((each) => each.length < 8),
        lines.filter((each) => each.length < 8),
        (a, b) => {
          const shared = common(a, b);
          expect(countChanges(a.join(''), b.join(''))).toEqual({
            added: b.length - shared,
            removed: a.length - shared,
          });
        },
      ),
      { numRuns: 200 },
    );
    const many = (mark: string): string =>
      Array.from({ length: 3000 }, (_, index) => `${mark}${String(index)}\n`).join('');
    expect(countChanges(`same\n${many('a')}end\n`, `same\n${many('b')}end\n`)).toEqual({ added: 3000, removed: 3000 });
  });
});
