import { readFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { noBlob, Recorder, say, stage, until, type Stage } from './recorder.ts';

let on: Stage | null = null;
afterEach(async () => {
  await on?.end();
  on = null;
});

const begin = async (
  script: Readonly<Record<string, unknown>> = {},
  host = new Recorder(),
  env: { name: string; value: string }[] = [],
) => {
  on ??= await stage();
  const agentId = await on.scripted(script, env);
  return { host, agentId, agent: await on.start(agentId, host), on };
};
const fails = async (script: Readonly<Record<string, unknown>>, more: { sessionId?: string } = {}) => {
  on ??= await stage();
  const host = new Recorder();
  const agentId = await on.scripted(script);
  const error: unknown = await on.start(agentId, host, more).then(
    () => null,
    (refusal: unknown) => refusal,
  );
  expect(error).toMatchObject({ name: 'Refusal' });
  expect(host.exits).toHaveLength(1);
  return { host, error: error as Error & { code: string; details?: Record<string, unknown> }, agentId };
};

describe('starting', () => {
  it('waits for an agent that takes 3 s to answer initialize (case 7)', async () => {
    const { host, agent } = await begin({ initializeDelayMs: 3000 });
    expect(host.progressed[0]).toMatch(/^starting: Waiting for the first answer/);
    expect(await agent.prompt(say('hello'), noBlob)).toEqual({ stopReason: 'end_turn' });
    expect(host.said()).toBe('You said: hello');
  });

  it('names the reason when initialize is answered with an error, an exit or another version (case 76, L-33)', async () => {
    const answered = await fails({ initializeError: { code: -32603, message: 'no \u202e such thing' } });
    expect(answered.error.code).toBe('agent_start_failed');
    expect(answered.error.message).toMatch(/“no such thing” \(-32603\)/);
    const data = { details: 'No previous sessions found.' };
    const detailed = await fails({ initializeError: { code: -32603, message: 'Internal error', data } });
    expect(detailed.error.message).toContain('“Internal error: No previous sessions found.” (-32603)');
    const exited = await fails({ exitAtOnce: 0 });
    expect(exited.error.message).toMatch(/ended by itself\.$/);
    expect((await fails({ exitAtOnce: 3 })).error.message).toMatch(/ended by itself with code 3/);
    const version = await fails({ protocolVersion: 2 });
    expect(version.error.code).toBe('agent_protocol_error');
    expect(version.error.message).toMatch(/speaks version 2 of ACP; this bridge speaks 1/);
  });

  it('can still end an agent that closed its input, or its output (case 76)', async () => {
    const { agent, host, on: current } = await begin();
    const turn = expect(agent.prompt(say('[[close-stdin]][[say deaf]][[never]]'), noBlob)).rejects.toMatchObject({
      code: 'agent_gone',
    });
    await host.seen((item) => item.type === 'text' && item.text === 'deaf');
    await agent.stop();
    await turn;
    // What holds the agent keeps the pipe open, so nothing but the time limit or the operator tells.
    const mute = new Recorder();
    const controller = new AbortController();
    const starting = current.start(await current.scripted({ closeStdout: true }), mute, { signal: controller.signal });
    await until(() => mute.progressed.length > 0, 'the start');
    controller.abort();
    await expect(starting).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('gets over garbage, a 10 MB line and invalid UTF-8 before the first answer, and counts them out (case 76)', async () => {
    const { host, agent } = await begin({ garbageLines: 20, hugeLineBytes: 10_000_000, binaryLine: true });
    await agent.prompt(say('hello'), noBlob);
    expect(host.said()).toBe('You said: hello');
    expect(host.notices('agent_noise').map(({ sentence }) => sentence)).toEqual([
      expect.stringContaining('not ACP'),
      expect.stringContaining('not UTF-8'),
    ]);
  });

  it('stops an agent that writes more lines of garbage than allowed (T80)', async () => {
    const { error } = await fails({ tinyLines: 1_000_000 });
    expect(error.message).toContain(`more than ${limits.agentGarbageLines} lines`);
  });

  it('is cancelled by its signal, and the process is gone', async () => {
    on = await stage();
    const agentId = await on.scripted({ initializeDelayMs: 60_000 });
    const host = new Recorder();
    const controller = new AbortController();
    const starting = on.start(agentId, host, { signal: controller.signal });
    await until(() => host.progressed.length > 0, 'the start');
    controller.abort();
    await expect(starting).rejects.toMatchObject({ code: 'cancelled' });
    expect(host.exits).toMatchObject([{ reason: 'stopped' }]);
  });

  it('says that the agent is not signed in, and how to mend it', async () => {
    const { error, agentId } = await fails({ authRequired: true });
    expect(error).toMatchObject({ code: 'agent_auth_required', details: { mendCommand: expect.any(String) } });
    expect(on?.agents.get(agentId)).toMatchObject({
      state: 'signed_out',
      problem: expect.stringContaining('not signed in'),
    });
  });

  it('refuses an unknown agent, and a program that is not there', async () => {
    on = await stage();
    await expect(on.start('nobody', new Recorder())).rejects.toMatchObject({ code: 'unknown_agent' });
    await expect(
      on.agents.add({ title: 'Ghost', command: '/no/such/program', args: [], env: [] }),
    ).rejects.toMatchObject({ code: 'agent_missing' });
  });
});

describe('sessions (G-30)', () => {
  it('resumes without replay', async () => {
    const { agent, agentId } = await begin();
    await agent.stop();
    const again = await (on as Stage).start(agentId, new Recorder(), { sessionId: agent.ready.sessionId });
    expect(again.ready).toMatchObject({ how: 'resume', contextLost: null });
  });

  it.each(['replay', 'replay_late'])('loads with its %s left out where resume is not offered', async (takeUp) => {
    const host = new Recorder();
    on = await stage();
    const agentId = await on.scripted({ takeUp, capabilities: { loadSession: true } });
    const agent = await on.start(agentId, host, { sessionId: 'former' });
    expect(agent.ready).toMatchObject({ how: 'load', sessionId: 'former' });
    expect(host.items).toEqual([]);
    await agent.prompt(say('[[done old]]'), noBlob);
    expect(host.items).toMatchObject([{ type: 'tool.updated', call: { toolCallId: 'old', status: 'completed' } }]);
  });

  it('begins anew and says what was lost when the agent does not know the session any more (case 23)', async () => {
    on = await stage();
    const agentId = await on.scripted({ takeUp: 'not_found' });
    const agent = await on.start(agentId, new Recorder(), { sessionId: 'former' });
    expect(agent.ready.how).toBe('new');
    expect(agent.ready.contextLost).toMatch(/“session not found”/);
  });

  it('says resume_failed when the agent exits on it (case 23)', async () => {
    const { error } = await fails({ exitOn: 'session/resume' }, { sessionId: 'former' });
    expect(error).toMatchObject({ code: 'resume_failed', message: expect.stringContaining('code 1') });
  });
});

describe('a turn', () => {
  it('answers five permissions at once, each by its own id, in the order 3, 1, 5, 2, 4 (case 13)', async () => {
    const host = new Recorder();
    const answers = new Map<string, (optionId: string) => void>();
    host.answer = ({ call }) =>
      new Promise((resolve) => answers.set(call.toolCallId, (optionId) => resolve({ outcome: 'selected', optionId })));
    const { agent } = await begin({}, host);
    const turn = agent.prompt(say('[[permissions 5]]'), noBlob);
    await until(() => answers.size === 5, 'five permissions');
    for (const [id, optionId] of [
      ['p3', 'yes'],
      ['p1', 'no'],
      ['p5', 'yes'],
      ['p2', 'yes'],
      ['p4', 'no'],
    ] as const) {
      answers.get(id)?.(optionId);
      await host.seen((item) => item.type === 'text' && item.text.startsWith(id));
    }
    await turn;
    expect(host.said()).toBe('p3: yes\np1: no\np5: yes\np2: yes\np4: no\n');
    expect(
      host.permissions.every(
        ({ announced, call }) => announced && call.title === `Call ${call.toolCallId}` && call.kind === 'edit',
      ),
    ).toBe(true);
  });

  it('hides allow_always, keeps an unknown kind as it is, and never selects what was not offered (G-21, R-03)', async () => {
    const { host, agent } = await begin();
    await agent.prompt(say('[[permission-kind a allow_forever]]'), noBlob);
    expect(host.permissions[0]?.options).toEqual([
      { id: 'odd', name: 'Something else', kind: 'allow_forever', meaning: 'other' },
      { id: 'yes', name: 'Allow', kind: 'allow_once', meaning: 'allow' },
      { id: 'no', name: 'Reject', kind: 'reject_once', meaning: 'deny' },
    ]);
    host.answer = () => Promise.resolve({ outcome: 'selected', optionId: 'always' });
    await agent.prompt(say('[[permission b]]'), noBlob);
    expect(host.said()).toBe('a: yes\nb: cancelled\n');
  });

  it('asks about a tool call that was never announced, with the exact text of its input', async () => {
    const { host, agent } = await begin();
    const input = '{"n":12345678901234567890,"f":1e400,"z":0.10,"s":"\\u0041 }]\\""}';
    await agent.prompt(
      say(
        `[[raw {"jsonrpc":"2.0","id":"r1","method":"session/request_permission","params":{"sessionId":"{{session}}","toolCall":{"toolCallId":"u","title":"Odd","kind":7,"rawInput" : ${input} },"options":[]}}]]`,
      ),
      noBlob,
    );
    // A numeric kind makes the call unreadable: it is still asked about, with everything received.
    await until(() => host.permissions.length === 1, 'the permission');
    expect(host.permissions[0]).toMatchObject({ announced: false, options: [] });
    expect(host.permissions[0]?.call.rawInput).toContain(input);
    await agent.prompt(
      say(
        `[[raw {"jsonrpc":"2.0","id":"r2","method":"session/request_permission","params":{"sessionId":"{{session}}","toolCall":{"toolCallId":"v","rawInput" : ${input} },"options":null}}]]`,
      ),
      noBlob,
    );
    await until(() => host.permissions.length === 2, 'the second permission');
    expect(host.permissions[1]?.call).toEqual({ toolCallId: 'v', rawInput: input });
  });

  it('shows a malformed tool call as one unreadable event and goes on (case 9)', async () => {
    const { host, agent } = await begin();
    expect(await agent.prompt(say('[[malformed]][[say on we go]]'), noBlob)).toEqual({ stopReason: 'end_turn' });
    expect(host.notices('unreadable_event')).toMatchObject([{ raw: expect.stringContaining('"kind":7') }]);
    expect(host.said()).toBe('on we go');
  });

  it('shows an update of an unknown kind raw', async () => {
    const { host, agent } = await begin();
    await agent.prompt(
      say(
        '[[raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{{session}}","update":{"sessionUpdate":"hologram","depth":3}}}]][[say x]]',
      ),
      noBlob,
    );
    expect(host.notices('unknown_update')).toMatchObject([{ raw: '{"sessionUpdate":"hologram","depth":3}' }]);
  });

  it('refuses fs and terminal calls that were not advertised, and every unknown request (G-25)', async () => {
    const { host, agent } = await begin();
    await agent.prompt(say('[[fs-write evil.txt x]][[run id]][[call craft/drainMidTurnQueue {}]]'), noBlob);
    expect(host.said().match(/error -32601/g)).toHaveLength(3);
    expect(host.notices('refused_call')).toHaveLength(3);
    await expect(readFile(join((on as Stage).workspace, 'evil.txt'))).rejects.toThrow();
  });

  it('takes updates after the prompt was answered (G-03)', async () => {
    const { host, agent } = await begin();
    await agent.prompt(say('[[say first]][[late 30 later]]'), noBlob);
    await host.seen((item) => item.type === 'text' && item.text === 'later');
  });

  it('calls an end_turn without a word a failure, and an error what it is (G-04)', async () => {
    const { agent } = await begin();
    expect(await agent.prompt(say('[[silent]]'), noBlob)).toEqual({
      stopReason: 'failed',
      sentence: expect.stringContaining('without a word'),
    });
    expect(await agent.prompt(say('[[error -32603 model fell over]]'), noBlob)).toEqual({
      stopReason: 'failed',
      sentence: expect.stringContaining('model fell over'),
    });
    expect(await agent.prompt(say('[[say x]][[stop because]]'), noBlob)).toMatchObject({ stopReason: 'failed' });
    expect(await agent.prompt(say('[[say x]][[stop max_tokens]]'), noBlob)).toEqual({ stopReason: 'max_tokens' });
    await expect(agent.prompt(say('[[error -32000 sign in]]'), noBlob)).rejects.toMatchObject({
      code: 'agent_auth_required',
    });
  });

  it('says cancelled by its own mark, and leaves how an open tool call went unsaid (agents.md 7.5, 7.11)', async () => {
    const { host, agent } = await begin();
    const turn = agent.prompt(
      say('[[ignore-cancel]][[tool t Long one]][[wait 200]][[error -32603 confused by cancel]]'),
      noBlob,
    );
    await host.seen((item) => item.type === 'tool.called');
    agent.cancel();
    expect(await turn).toEqual({ stopReason: 'cancelled' });
    expect(host.items.filter((item) => item.type === 'tool.updated')).toEqual([]);
  });

  it('sends images and files as blocks, and refuses what the agent does not take', async () => {
    const { host, agent } = await begin();
    const sha256 = 'a'.repeat(64);
    await agent.prompt(
      [
        ...say('see'),
        { type: 'blob', blob: { sha256, bytes: 3, mime: 'image/png' } },
        { type: 'file', path: 'src/index.js' },
      ],
      () => Promise.resolve(new Uint8Array([1, 2, 3])),
    );
    expect(host.said()).toBe('You said: see <image> <resource_link>');
    const zip = { type: 'blob', blob: { sha256, bytes: 3, mime: 'application/zip' } } as const;
    await expect(agent.prompt([zip], () => Promise.resolve(new Uint8Array(3)))).rejects.toMatchObject({
      code: 'blob_unsupported',
    });
  });

  it('fails alone when the agent dies, exits or will not stop in the middle of a turn', async () => {
    const killed = await begin();
    await expect(killed.agent.prompt(say('[[kill SIGKILL]]'), noBlob)).rejects.toMatchObject({
      code: 'agent_gone',
      message: expect.stringContaining('SIGKILL'),
    });
    expect(killed.host.exits).toMatchObject([{ reason: 'crashed', signal: 'SIGKILL' }]);
    const exited = await begin();
    await expect(exited.agent.prompt(say('[[exit 7]]'), noBlob)).rejects.toMatchObject({
      message: expect.stringContaining('code 7'),
    });
    const stubborn = await begin({ ignoreTerm: true });
    const turn = expect(stubborn.agent.prompt(say('[[never]]'), noBlob)).rejects.toMatchObject({ code: 'agent_gone' });
    await stubborn.agent.stop();
    await turn;
    expect(stubborn.host.exits).toMatchObject([{ reason: 'stopped' }]);
    await expect(stubborn.agent.prompt(say('x'), noBlob)).rejects.toMatchObject({ code: 'agent_gone' });
  });

  it('takes plans, usage with its exact amount, commands, titles and images', async () => {
    const { host, agent } = await begin();
    await agent.prompt(say('[[plan]][[usage]][[commands]][[title A name]][[image]][[think hm]]'), noBlob);
    expect(host.items).toEqual([
      {
        type: 'plan',
        entries: [
          { content: 'first', priority: 'high', status: 'in_progress' },
          { content: 'second', priority: 'low', status: 'pending' },
        ],
      },
      { type: 'usage', usedTokens: 1200, sizeTokens: 200_000, cost: { amount: '0.10', currency: 'USD' } },
      { type: 'commands', commands: [{ name: 'go', description: 'Goes', hint: 'where' }] },
      { type: 'title', title: 'A name' },
      { type: 'image', role: 'agent', mime: 'image/png', base64: 'iVBORw0KGgo=' },
      { type: 'text', role: 'thought', messageId: null, text: 'hm' },
    ]);
  });
});

describe('what an agent can see (L-34)', () => {
  it('gets the environment by name only, and no secret of the bridge', async () => {
    const { host, agent } = await begin({}, new Recorder(), [{ name: 'MY_KEY', value: 'given-to-it' }]);
    await agent.prompt(say('[[env]]'), noBlob);
    const env = JSON.parse(host.said()) as Record<string, string>;
    expect(Object.keys(env).sort()).toEqual([...agent.envNames]);
    expect(env).toMatchObject({ MY_KEY: 'given-to-it', TERM: 'dumb', COUNTERSIGN_RUN: agent.marker });
    expect(Object.keys(env).filter((name) => /NODE_OPTIONS|VITEST|COUNTERSIGN_(?!RUN)/.test(name))).toEqual([]);
  });

  it('does not see the hidden directories when contained', async () => {
    on = await stage();
    await mkdir(join(on.directory, 'private'), { recursive: true });
    await writeFile(join(on.directory, 'private/key'), 'secret');
    const { host, agent } = await begin();
    expect(agent.ready.containment).toBe('bubblewrap');
    await agent.prompt(say(`[[ls ${join(on.directory, 'private')}]][[ls ${on.workspace}]]`), noBlob);
    expect(host.said()).toMatch(/^\[\]\[".*"src"/);
  });

  it('gives stderr back without what looks like a secret', async () => {
    const { agent } = await begin({}, new Recorder(), [{ name: 'API_KEY', value: 'hunter2-hunter2' }]);
    await agent.prompt(say('[[stderr key hunter2-hunter2 and Bearer abcdefghijklmnop]][[say x]]'), noBlob);
    await until(() => agent.stderr() !== '', 'stderr');
    expect(agent.stderr()).toBe('key [redacted] and [redacted]\n');
  });
});

describe('the frozen identity of an agent (G-24)', () => {
  it('hashes the program and its entry file', async () => {
    const { agent } = await begin();
    expect(agent.identity()).toMatchObject({
      name: 'Scripted agent',
      version: '0.0.1',
      executableSha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      entrySha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      enforcement: 'unrestricted',
      session: agent.ready.sessionId,
    });
  });
});
