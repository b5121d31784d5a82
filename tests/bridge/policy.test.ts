/** Rules with a real bridge, a scripted agent and the command line. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from '#protocol/client.ts';
import { bridge, type Ran } from './process.ts';
import { Stage, type Talk } from './stage.ts';

const stage = new Stage();
let client: Client;
const cli = (...args: string[]): Promise<Ran> => bridge(['policy', ...args, '--state', stage.bridge.state]);
const file = (name: string, value: unknown): string => {
  const path = join(stage.directory, name);
  writeFileSync(path, JSON.stringify(value));
  return path;
};
beforeAll(async () => {
  client = await stage.start();
  mkdirSync(join(stage.workspace, 'src'));
  writeFileSync(join(stage.workspace, 'src', 'a.txt'), 'inside\n');
  symlinkSync('/etc/hosts', join(stage.workspace, 'hosts'));
});
afterEach(() => stage.quiet());
afterAll(() => stage.end());

/** Sends; what was asked is denied; how each request ended, in order. */
const fates = async (talk: Talk, text: string): Promise<string[]> => {
  const { turnId } = await talk.send(text);
  const answered = new Set<string>();
  const ended = talk.ended(turnId);
  for (;;) {
    const next = await Promise.race([
      ended.then(() => null),
      talk.until('a card', () =>
        talk
          .all('approval.requested', turnId)
          .find(
            ({ data }) =>
              !answered.has(data.approvalId) &&
              !talk.all('approval.decided', turnId).some((each) => each.data.approvalId === data.approvalId),
          ),
      ),
    ]);
    if (next === null) break;
    answered.add(next.data.approvalId);
    await talk.decide(next, 'deny').catch(() => undefined); // a rule may just have been first
  }
  return talk.all('approval.decided', turnId).map(({ data }) => `${data.by} ${data.value}`);
};

describe('careful, as the bridge begins', () => {
  it('runs what only reads, inside, with a receipt and no card; everything else asks', async () => {
    const talk = await stage.scriptedTalk();
    const run = await fates(
      talk,
      '[[shell ls src]] [[shell cat src/a.txt]] [[shell cat hosts]] [[shell cat /etc/hosts]] [[shell node --version]] [[edit new.txt x]]',
    );
    expect(run).toEqual(['rule allow', 'rule allow', 'cli deny', 'cli deny', 'cli deny', 'cli deny']);
    const because = talk.all('approval.requested').map(({ data }) => data.because);
    expect(because[0]).toBe(
      'Allowed by the rule “Any agent may run “ls” with any further arguments in any workspace”.',
    );
    expect(because[2]).toContain('a path leads through a symbolic link');
    expect(because[3]).toBe('Asked because of the rule “Outside the workspace”.');
    expect(because[4]).toBe('Asked because no rule is about this.');
    const { receipts } = await client.call('receipt.list', { conversationId: talk.conversationId });
    expect(receipts.filter(({ kind }) => kind === 'decision')).toHaveLength(6);
    expect((await client.call('approval.list', { state: 'pending' })).approvals).toEqual([]);
    // A link that leaves the folder is a caution, under which what follows would only ask.
    rmSync(join(stage.workspace, 'hosts'));
  });

  it('offers scopes bound to the program as it is on disk, and the one chosen decides', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[shell git init --quiet]]');
    const [asked] = await talk.asked();
    const scopes = asked?.data.rule?.scopes ?? [];
    expect(scopes.map(({ draft }) => draft.match.by)).toEqual(['exact', 'text', 'command', 'command']);
    expect(scopes[3]?.draft).toMatchObject({
      match: { program: 'git', args: ['init', '**'] },
      bound: { executable: { path: expect.stringMatching(/\/git$/) } },
    });
    const { draft } = scopes[3]!;
    const preview = await client.call('policy.preview', { draft, approvalId: asked!.data.approvalId });
    expect(preview).toMatchObject({ problem: null, matchesRequest: true });
    await talk.decide(asked!, 'allow', { remember: true, rule: draft });
    await talk.ended(turnId);
    expect(await fates(talk, '[[shell git init other]] [[shell git clean -n]]')).toEqual(['rule allow', 'cli deny']);
  });

  it('the practice agent is asked for its edit and its commands as before', async () => {
    const { workspaceId } = await client.change('workspace.open', { practice: true });
    const { conversationId } = await client.change('conversation.create', { workspaceId, agentId: 'practice' });
    const sent = await client.change('conversation.send', {
      conversationId,
      delivery: 'prompt',
      content: [{ type: 'text', text: 'find and fix the failing test' }],
      standing: 'allow',
    });
    const events = async () =>
      (await client.call('conversation.history', { conversationId, beforeSeq: Number.MAX_SAFE_INTEGER })).events;
    while (!(await events()).some(({ type, turnId }) => type === 'turn.ended' && turnId === sent.turnId))
      await new Promise((done) => setTimeout(done, 50));
    const requested = (await events())
      .filter(({ type }) => type === 'approval.requested')
      .map(({ data }) => data['because']);
    expect(requested).toEqual(Array(3).fill('Asked because no rule is about this.'));
    await client.change('conversation.close', { conversationId });
  });
});

describe('configuration that appears without being asked about (T41, CVE-2026-25725)', () => {
  it('is seen at once: rules pause, the folder is untrusted until it is reviewed, and every window is told', async () => {
    const talk = await stage.scriptedTalk();
    const { workspaceId } = stage;
    expect(await client.call('trust.get', { workspaceId })).toMatchObject({ raw: 'trusted', found: 0 });
    const match = { by: 'path', glob: 'notes.txt', effects: ['write'] } as const;
    const draft = {
      effect: 'allow',
      agentId: null,
      workspaceId,
      match,
      expiresAt: null,
      uses: null,
      limit: null,
    } as const;
    const { ruleId } = await client.change('policy.put', {
      draft: { ...draft, match: { ...match, effects: [...match.effects] } },
    });
    expect(await fates(talk, '[[edit notes.txt one]]')).toEqual(['rule allow']);

    const told = new Promise((resolve) => client.on({ invalidate: (topic) => topic === 'trust' && resolve(topic) }));
    const hooks = '{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"id"}]}]}}';
    expect(await fates(talk, `[[sneak .claude/settings.json ${hooks}]] [[edit notes.txt two]]`)).toEqual(['cli deny']);
    expect(talk.all('approval.requested').at(-1)?.data.because).toContain('what the trust review of this folder found');
    await told;
    expect(await client.call('trust.get', { workspaceId })).toMatchObject({
      effective: 'caution',
      findings: [{ rule: 'agent.hook', path: '.claude/settings.json' }],
      files: [{ path: '.claude/settings.json' }],
    });
    rmSync(join(stage.workspace, '.claude'), { recursive: true });
    await client.change('policy.forget', { ruleId, change: 'remove' });
  });
});

describe('bridge policy', () => {
  const samples = [{ command: 'ls' }, { argv: ['cat', 'src/a.txt'] }, { path: 'src/a.txt', effect: 'read' }];

  it('shows the rules, and as JSON what policy.get answers', async () => {
    expect((await cli()).stdout).toContain('Preset careful');
    const shown = await cli('show', '--json');
    expect(JSON.parse(shown.stdout)).toEqual(await client.call('policy.get', {}));
  });

  it('test: exit 0 when every verdict is the expected one, 1 when one differs', async () => {
    const reads = file('reads.json', samples);
    expect(await cli('test', reads, '--expect', 'allow')).toMatchObject({ code: 0, stderr: '' });
    const one = file('one.json', { command: 'ls && id' });
    const ran = await cli('test', one, '--expect', 'allow');
    expect(ran).toMatchObject({ code: 1, stderr: '1 of 1 are not allow.\n' });
    expect(ran.stdout).toContain('but the command has &&');
    const lines = (await cli('test', reads, '--json')).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toMatchObject(samples.map((sample) => ({ sample, verdict: 'allow' })));
  });

  it('test --rules tries a file instead, and changes nothing', async () => {
    const before = await client.call('policy.get', {});
    const rules = file('rules.json', {
      rules: [{ effect: 'reject', match: { by: 'command', program: 'ls', args: ['**'] } }],
    });
    expect(
      (await cli('test', file('ls.json', { command: 'sudo ls' }), '--rules', rules, '--expect', 'reject')).code,
    ).toBe(0);
    expect(await client.call('policy.get', {})).toEqual(before);
  });

  it('set and preset change the rules at once, with a receipt', async () => {
    const rules = file('own.json', {
      rules: [{ effect: 'reject', title: 'No lists', match: { by: 'command', program: 'ls', args: ['**'] } }],
    });
    const set = JSON.parse((await cli('set', rules, '--json')).stdout) as { receiptId: string };
    expect((await client.call('receipt.get', { receiptId: set.receiptId })).summary).toMatchObject({
      kind: 'policy',
      by: 'cli',
    });
    expect((await cli('test', file('ls.json', { command: 'ls' }), '--expect', 'reject')).stdout).toContain(
      '“No lists”',
    );
    await cli('set', file('none.json', { rules: [] }));
    expect((await cli('preset', 'edits')).stdout).toBe('The preset edits is in force.\n');
    expect((await cli('test', file('edit.json', { path: 'src/a.txt' }), '--expect', 'allow')).code).toBe(0);
    expect((await cli('preset', 'careful')).code).toBe(0);
    expect((await cli('test', file('edit.json', { path: 'src/a.txt' }), '--expect', 'ask')).code).toBe(0);
  });

  it('suggestions of a project are read through the guarded root, bounded, and never act', async () => {
    const suggest = (): Promise<Ran> => cli('suggestions', stage.workspaceId);
    expect((await suggest()).stdout).toBe('.countersign/rules.json suggests nothing.\n');
    mkdirSync(join(stage.workspace, '.countersign'));
    const path = join(stage.workspace, '.countersign', 'rules.json');
    writeFileSync(
      path,
      JSON.stringify({ rules: [{ effect: 'allow', match: { by: 'command', program: 'node', args: ['**'] } }] }),
    );
    expect((await suggest()).stdout).toContain(
      `Any agent may run “node” with any further arguments in ${stage.workspace}`,
    );
    expect((await cli('test', file('node.json', { argv: ['node', 'x'] }), '--expect', 'ask')).code).toBe(0);
    writeFileSync(path, ' '.repeat(70_000));
    expect((await suggest()).stdout).toBe('.countersign/rules.json: This is too large.\n');
  });

  it.each([
    [['test'], 2],
    [['test', 'nowhere.json'], 1],
    [['preset', 'wild'], 2],
    [['bogus'], 2],
    [['show', 'a', 'b'], 2],
  ])('%j ends with one sentence and code %i', async (args, code) => {
    const ran = await cli(...args);
    expect(ran).toMatchObject({ code, stdout: '' });
    expect(ran.stderr.trim().split('\n')).toHaveLength(1);
  });

  it('adding an agent leaves a signed receipt without the values of its variables', async () => {
    const before = (await client.call('receipt.list', { limit: 1 })).receipts[0]?.seq ?? 0;
    await stage.scripted({}, [{ name: 'MY_TOKEN', value: 'do-not-write-this' }]);
    const [receipt] = (await client.call('receipt.list', { limit: 1 })).receipts;
    expect(receipt).toMatchObject({
      seq: before + 1,
      kind: 'trust',
      sentence: expect.stringContaining('Added the agent'),
    });
    const { action } = await client.call('receipt.get', { receiptId: receipt!.receiptId });
    expect(action).toContain('MY_TOKEN');
    expect(action).not.toContain('do-not-write-this');
  });
});
