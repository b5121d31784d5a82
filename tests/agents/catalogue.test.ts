import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { agentSummary } from '#protocol/methods/conversation.ts';
import { z } from '#protocol/schema.ts';
import { catalogue } from '../../bridge/agents/catalogue.ts';
import { noBlob, Recorder, say, scriptedProgram, stage, until, type Stage } from './recorder.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const modes = (current: string, ...others: string[]) => ({
  currentModeId: current,
  availableModes: [current, ...others].map((id) => ({ id, name: id.toUpperCase() })),
});

/** The scripted agent on PATH under the names of real ones, behind a link and `#!/usr/bin/env node`, as npm installs them. */
const pretend = async (
  programs: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  env: Readonly<Record<string, string>> = {},
): Promise<Stage & { lib: string; home: string }> => {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'countersign-programs-')));
  cleanups.push(() => rm(home, { recursive: true, force: true }));
  const [bin, lib] = [join(home, 'bin'), join(home, 'lib')];
  await mkdir(bin);
  await mkdir(lib);
  await writeFile(join(lib, 'package.json'), JSON.stringify({ name: 'pretended', version: '9.8.7', type: 'module' }));
  for (const [name, script] of Object.entries(programs)) {
    const file = join(lib, `${name}.js`);
    await writeFile(
      file,
      `#!/usr/bin/env node\nprocess.argv[2] = ${JSON.stringify(JSON.stringify(script))};\nawait import(${JSON.stringify(scriptedProgram)});\n`,
    );
    await chmod(file, 0o755);
    await symlink(file, join(bin, name));
  }
  const path = ['relative/bin', bin, dirname(process.execPath), '/usr/bin'].join(delimiter);
  const on = await stage({
    env: { PATH: path, HOME: home, SECRET_OF_THE_BRIDGE: 'x', COUNTERSIGN_PRACTICE_PACE: '0', ...env },
  });
  cleanups.push(() => on.end());
  return Object.assign(on, { lib, home });
};

describe('the catalogue (G-10)', () => {
  it('holds the nine bundled agents, complete enough to be shown', async () => {
    expect(catalogue.map(({ id }) => id)).toEqual([
      'practice',
      'claude',
      'codex',
      'gemini',
      'opencode',
      'pi',
      'qwen',
      'copilot',
      'kimi',
    ]);
    for (const entry of catalogue.filter(({ id }) => id !== 'practice')) {
      expect(entry.install, entry.id).toMatch(/^npm install -g .+@\d/);
      expect(entry.signIn, entry.id).not.toBe('');
      expect(entry.trust.length, entry.id).toBeGreaterThan(0);
      expect(entry.served, entry.id).toBe(false);
      if (entry.asking !== null) expect(entry.asking.safe, entry.id).toContain(entry.asking.modeId);
    }
    const on = await pretend({});
    for (const summary of on.agents.list())
      expect(z.safeParse(agentSummary, summary).success, summary.agentId).toBe(true);
  });

  it('finds a program through its link, runs it by an absolute Node, and reads its version without running it', async () => {
    const on = await pretend({ kimi: {} });
    expect(on.agents.get('kimi')).toMatchObject({ state: 'ready', version: null, executable: join(on.lib, 'kimi.js') });
    const probed = await on.agents.probe('kimi');
    expect(probed).toMatchObject({ version: '9.8.7', state: 'ready', problem: null });
    expect(probed.argv).toEqual([await realpath(process.execPath), join(on.lib, 'kimi.js'), 'acp']);
  });

  it('says what is missing and how to install it, and looks nowhere but on absolute entries of PATH', async () => {
    const on = await pretend({ 'pi-acp': {} });
    expect(on.agents.get('gemini')).toMatchObject({
      state: 'missing',
      executable: null,
      mendCommand: expect.stringContaining('npm install -g @google/gemini-cli'),
    });
    expect(on.agents.get('pi')).toMatchObject({ state: 'missing' }); // pi-acp alone: pi itself is not there
    await expect(on.start('gemini', new Recorder())).rejects.toMatchObject({
      code: 'agent_missing',
      details: { mendCommand: expect.any(String) },
    });
  });

  it('adds, disables, makes default and removes an agent of the operator, and refuses a name twice', async () => {
    const on = await pretend({});
    const spec = {
      title: 'My Agent',
      command: process.execPath,
      args: [scriptedProgram],
      env: [{ name: 'MY_KEY', value: 'v' }],
    };
    const added = await on.agents.add(spec);
    expect(added).toMatchObject({ agentId: 'my-agent', bundled: false, enforcement: 'unrestricted', state: 'ready' });
    expect(added.envNames).toContain('MY_KEY');
    expect(JSON.stringify(added)).not.toContain('"v"');
    await expect(on.agents.add(spec)).rejects.toMatchObject({ code: 'already_exists' });
    await expect(on.agents.add({ ...spec, title: 'Claude' })).rejects.toMatchObject({ code: 'already_exists' });
    await expect(
      on.agents.add({ ...spec, title: 'Other', env: [{ name: 'COUNTERSIGN_RUN', value: 'x' }] }),
    ).rejects.toMatchObject({ code: 'bad_request' });
    expect((await on.agents.setDefault('my-agent')).isDefault).toBe(true);
    expect(on.agents.list().filter(({ isDefault }) => isDefault)).toHaveLength(1);
    expect((await on.agents.enable('my-agent', false)).enabled).toBe(false);
    await expect(on.start('my-agent', new Recorder())).rejects.toMatchObject({ code: 'unknown_agent' });
    await on.agents.remove('my-agent');
    expect(on.agents.get('my-agent')).toBeNull();
    expect(on.agents.get('practice')?.isDefault).toBe(true);
    await expect(on.agents.remove('claude')).rejects.toMatchObject({ code: 'unknown_agent' });
  });

  it('lists the files of a workspace that make agents run code, and which agents a switch keeps from it (G-23)', async () => {
    const on = await pretend({});
    expect(on.agents.trustPatterns()).toContainEqual({
      agentId: 'claude',
      pattern: '.mcp.json',
      what: expect.any(String),
    });
    const safe = catalogue.map(({ id }) => id).filter((id) => on.agents.safeUntrusted(id));
    expect(safe).toEqual(['practice', 'claude', 'gemini', 'pi', 'kimi']);
    await mkdir(join(on.home, '.qwen'));
    await writeFile(join(on.home, '.qwen/settings.json'), '{"security":{"folderTrust":{"enabled":true}}}');
    expect(on.agents.safeUntrusted('qwen')).toBe(true);
    expect(on.agents.safeUntrusted('nobody')).toBe(false);
  });
});

describe('the asking mode (G-20, G-21)', () => {
  it('is forced and verified, modes that do not ask are neither offered nor taken, and an agent that leaves it is put back', async () => {
    const on = await pretend({ kimi: { modes: modes('yolo', 'default', 'plan') } });
    const host = new Recorder();
    const agent = await on.start('kimi', host);
    expect(agent.ready).toMatchObject({ enforcement: 'cooperative', modeId: 'default' });
    expect(agent.ready.modes.map(({ id }) => id)).toEqual(['default', 'plan']);
    await expect(agent.setMode('yolo')).rejects.toMatchObject({ code: 'forbidden' });
    await agent.setMode('plan');
    await agent.prompt(say('[[mode yolo]][[say x]]'), noBlob);
    expect(host.notices('mode_not_asking')).toHaveLength(1);
    await until(() => host.notices('mode_asking').length === 1, 'the forced mode');
    expect(agent.identity().enforcement).toBe('cooperative');
    expect(host.items.filter(({ type }) => type === 'mode')).toEqual([
      { type: 'mode', modeId: 'yolo' },
      { type: 'mode', modeId: 'default' },
    ]);
  });

  it('is forced again after resume, and a wanted mode that asks is kept', async () => {
    const on = await pretend({ kimi: { modes: modes('yolo', 'default', 'plan') } });
    const agent = await on.start('kimi', new Recorder(), { sessionId: 'former', modeId: 'plan' });
    expect(agent.ready).toMatchObject({ how: 'resume', modeId: 'plan', enforcement: 'cooperative' });
  });

  it('leaves the level unrestricted, with the reason, where it cannot be verified', async () => {
    const on = await pretend({
      kimi: { modes: modes('yolo', 'default'), modeSticks: false },
      qwen: { modes: modes('auto') },
      gemini: {},
    });
    expect((await on.start('kimi', new Recorder())).ready).toMatchObject({
      enforcement: 'unrestricted',
      enforcementWhy: expect.stringContaining('did not stay'),
      modeId: 'elsewhere',
    });
    expect((await on.start('qwen', new Recorder())).ready).toMatchObject({
      enforcement: 'unrestricted',
      enforcementWhy: expect.stringContaining('does not offer the mode'),
    });
    expect((await on.start('gemini', new Recorder())).ready.enforcement).toBe('unrestricted');
  });

  it('does not make an agent cooperative that writes inside repositories unasked, also in a folder that becomes one', async () => {
    const on = await pretend({ kimi: { modes: modes('default') }, gemini: { modes: modes('default') } });
    expect((await on.agents.probe('kimi')).enforcement).toBe('unrestricted');
    const host = new Recorder();
    const agent = await on.start('kimi', host);
    expect(agent.ready.enforcement).toBe('cooperative');
    await mkdir(join(on.workspace, '.git'));
    await agent.prompt(say('hello'), noBlob);
    expect(host.notices('mode_not_asking').map(({ sentence }) => sentence)).toEqual([
      expect.stringContaining('inside a git repository without asking'),
    ]);
    expect(agent.identity().enforcement).toBe('unrestricted');
    expect((await on.start('kimi', new Recorder())).ready).toMatchObject({
      enforcement: 'unrestricted',
      enforcementWhy: expect.stringContaining('inside a git repository without asking'),
      modeId: 'default',
    });
    expect((await on.start('gemini', new Recorder())).ready.enforcement).toBe('cooperative');
  });

  it('is not fought over with an agent that insists on another', async () => {
    const on = await pretend({ kimi: { modes: modes('default') } });
    const host = new Recorder();
    const agent = await on.start('kimi', host);
    // The permission holds the agent until it was put back.
    host.answer = async () => {
      await host.seen((item) => item.type === 'mode' && item.modeId === 'default');
      return { outcome: 'cancelled' };
    };
    await agent.prompt(say('[[mode yolo]][[permission a]][[mode yolo]][[mode yolo]]'), noBlob);
    expect(host.items.filter((item) => item.type === 'mode' && item.modeId === 'default')).toHaveLength(1);
    expect(agent.identity().enforcement).toBe('unrestricted');
  });

  it('is set by the option of that category where modes are options, and the answer is the proof', async () => {
    const option = {
      id: 'mode',
      name: 'Mode',
      category: 'mode',
      type: 'select',
      currentValue: 'agent',
      options: [
        { value: 'agent', name: 'Agent' },
        { value: 'read-only', name: 'Read only' },
      ],
    };
    const model = {
      id: 'model',
      name: 'Model',
      category: 'model',
      type: 'select',
      currentValue: 'a',
      options: [
        {
          group: 'g',
          name: 'G',
          options: [
            { value: 'a', name: 'A' },
            { value: 'b', name: 'B' },
          ],
        },
      ],
    };
    const on = await pretend({ 'codex-acp': { configOptions: [option, model] } });
    const agent = await on.start('codex', new Recorder());
    expect(agent.ready).toMatchObject({
      enforcement: 'cooperative',
      modeId: 'read-only',
      modelId: 'a',
      models: [{ id: 'a' }, { id: 'b' }],
    });
    await expect(agent.setOption('mode', 'agent')).rejects.toMatchObject({ code: 'forbidden' });
    await agent.setModel('b');
    expect(agent.identity().model).toBe('b');
  });

  it('keeps a switch that would end asking as it must be', async () => {
    const url = (name: string) => `https://agentclientprotocol.com/protocol/session-modes#${name}`;
    const on = await pretend({
      copilot: {
        modes: modes(url('agent'), url('autopilot')),
        configOptions: [{ id: 'allow_all', name: 'Allow all', type: 'boolean', currentValue: true }],
      },
    });
    const agent = await on.start('copilot', new Recorder());
    expect(agent.ready).toMatchObject({ enforcement: 'cooperative', options: [{ id: 'allow_all', value: 'false' }] });
    await expect(agent.setOption('allow_all', 'true')).rejects.toMatchObject({ code: 'forbidden' });
  });
});

describe('what a known agent is started with', () => {
  it('signs Gemini in with its key where there is one, and names the command where there is none', async () => {
    const script = {
      authRequired: true,
      authMethods: [{ id: 'gemini-api-key', name: 'Key' }],
      modes: modes('default'),
    };
    const keyed = await pretend({ gemini: script, kimi: {} }, { GEMINI_API_KEY: 'a-key' });
    const host = new Recorder();
    const agent = await keyed.start('gemini', host);
    await agent.prompt(say('[[env]]'), noBlob);
    expect(JSON.parse(host.said())).toMatchObject({ GEMINI_API_KEY: 'a-key', GEMINI_CLI_NO_RELAUNCH: 'true' });
    expect(host.said()).not.toContain('SECRET_OF_THE_BRIDGE');
    const other = new Recorder();
    await (await keyed.start('kimi', other)).prompt(say('[[env]]'), noBlob);
    expect(other.said()).not.toContain('GEMINI_API_KEY'); // another provider's key is none of its business
    const bare = await pretend({ gemini: script });
    await expect(bare.start('gemini', new Recorder())).rejects.toMatchObject({
      code: 'agent_auth_required',
      details: { mendCommand: 'gemini' },
    });
    expect(bare.agents.get('gemini')).toMatchObject({ state: 'signed_out', mendCommand: 'gemini' });
  });

  it('keeps the configuration of the workspace from Claude, at new and at resume', async () => {
    const on = await pretend({ 'claude-agent-acp': { modes: modes('auto', 'default') } });
    for (const sessionId of [null, 'former']) {
      const host = new Recorder();
      const agent = await on.start('claude', host, { sessionId });
      await agent.prompt(say('[[params]]'), noBlob);
      expect(JSON.parse(host.said())).toMatchObject({
        cwd: on.workspace,
        mcpServers: [],
        _meta: { claudeCode: { options: { settingSources: [], strictMcpConfig: true } } },
      });
    }
  });

  it('makes OpenCode ask whatever its configuration says', async () => {
    const on = await pretend(
      { opencode: {} },
      { OPENCODE_CONFIG_CONTENT: '{"model":"m","permission":{"edit":"allow"}}' },
    );
    const host = new Recorder();
    await (await on.start('opencode', host)).prompt(say('[[env]]'), noBlob);
    const env = JSON.parse(host.said()) as Record<string, string>;
    expect(JSON.parse(env['OPENCODE_CONFIG_CONTENT'] ?? '')).toMatchObject({
      model: 'm',
      permission: { edit: 'ask', bash: 'ask' },
    });
  });
});
