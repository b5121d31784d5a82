import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { noBlob, Recorder, say, stage, type Stage } from './recorder.ts';

let on: Stage | null = null;
afterEach(async () => {
  await on?.end();
  on = null;
});

const testsPass = (workspace: string): boolean => {
  const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, ...env } = process.env;
  try {
    execFileSync(process.execPath, ['--test'], { cwd: workspace, stdio: 'ignore', env });
    return true;
  } catch {
    return false;
  }
};

describe.each([undefined, 'best_effort'] as const)('the practice agent (G-12), containment %s', (containment) => {
  const begin = async (host: Recorder) => {
    on = await stage({ containment });
    return on.start('practice', host);
  };

  it('finds and fixes the failing test, and the tests really pass afterwards', async () => {
    const host = new Recorder();
    const agent = await begin(host);
    expect(testsPass((on as Stage).workspace)).toBe(false);
    const end = await agent.prompt(say('Find and fix the failing test'), noBlob);
    expect(end).toEqual({ stopReason: 'end_turn' });
    expect(host.said()).toMatch(/^I am the practice agent: a script/);
    expect(host.said()).toContain('every fourth century is a leap year again');
    expect(host.said()).toContain('All tests pass.');
    expect(host.commands).toEqual(['node --test', 'node --test']);
    expect(host.written).toEqual([join((on as Stage).workspace, 'src/dates.js')]);
    expect(host.items.some((item) => item.type === 'plan')).toBe(true);
    expect(host.said('thought')).not.toBe('');
    expect(testsPass((on as Stage).workspace)).toBe(true);
    expect(agent.ready.enforcement).toBe('mediated');
    expect(agent.ready.containment).toBe(containment ?? 'bubblewrap');
  });
});

describe('the practice agent (G-12)', () => {
  const begin = async (host: Recorder) => {
    on = await stage();
    return on.start('practice', host);
  };

  it('says so and ends the turn after a denial, and writes nothing', async () => {
    const host = new Recorder();
    host.allow = false;
    const agent = await begin(host);
    expect(await agent.prompt(say('fix the failing test'), noBlob)).toEqual({ stopReason: 'end_turn' });
    expect(host.said()).toContain('The operator denied this.');
    expect(host.written).toEqual([]);
    const calls = host.items.filter((item) => item.type === 'tool.updated' && item.call.status === 'failed');
    expect(calls).toHaveLength(1);
  });

  it('is cancelled in the middle of a stream', async () => {
    const host = new Recorder();
    const agent = await begin(host);
    const turn = agent.prompt(say('count to 10000 slowly'), noBlob);
    await host.seen((item) => item.type === 'text' && item.text === '3\n\n');
    agent.cancel();
    expect(await turn).toEqual({ stopReason: 'cancelled' });
    expect(await agent.prompt(say('make a plan'), noBlob)).toEqual({ stopReason: 'end_turn' });
  });

  it('is cancelled while a command waits for the operator, and its request is withdrawn', async () => {
    const host = new Recorder();
    const agent = await begin(host);
    const asked = new Promise<AbortSignal>((resolve) => {
      host.createTerminal = ({ signal }) => {
        resolve(signal);
        return new Promise(() => undefined);
      };
    });
    const turn = agent.prompt(say('run the tests'), noBlob);
    const signal = await asked;
    agent.cancel();
    expect(await turn).toEqual({ stopReason: 'cancelled' });
    expect(signal.aborted).toBe(true);
  });

  it('remembers a conversation after its process was killed, by resume', async () => {
    const first = new Recorder();
    const agent = await begin(first);
    await agent.prompt(say('make a plan'), noBlob);
    process.kill(agent.pid, 'SIGKILL');
    const host = new Recorder();
    const again = await (on as Stage).start('practice', host, { sessionId: agent.ready.sessionId });
    expect(again.ready).toMatchObject({ how: 'resume', contextLost: null, sessionId: agent.ready.sessionId });
    await again.prompt(say('what did I ask you?'), noBlob);
    expect(host.said()).toContain('make a plan');
    expect(host.said()).not.toContain('I am the practice agent');
  });

  it('remembers what it was asked when it was killed in the middle of the answer', async () => {
    const agent = await begin(new Recorder());
    const turn = agent.prompt(say('count to 500'), noBlob).catch((error: unknown) => error);
    await sleep(600);
    process.kill(agent.pid, 'SIGKILL');
    await turn;
    const host = new Recorder();
    const again = await (on as Stage).start('practice', host, { sessionId: agent.ready.sessionId });
    await again.prompt(say('what did I ask you?'), noBlob);
    expect(host.said()).toContain('count to 500');
  });

  it('adds a note at a time, each a write of its own', async () => {
    const host = new Recorder();
    const agent = await begin(host);
    await agent.prompt(say('note: water the plants'), noBlob);
    await agent.prompt(say('note: feed the cat'), noBlob);
    expect(await readFile(join((on as Stage).workspace, 'NOTES.md'), 'utf8')).toBe(
      '# Notes\n\n- water the plants\n- feed the cat\n',
    );
  });

  it('asks to clean up with a compound command, and the command is refused', async () => {
    const host = new Recorder();
    host.allow = false;
    const agent = await begin(host);
    await agent.prompt(say('clean up'), noBlob);
    expect(host.commands).toEqual([expect.stringContaining('rm -rf ./test')]);
    expect(await readFile(join((on as Stage).workspace, 'test/slug.test.js'), 'utf8')).toContain('slugify');
  });

  it('explains, renames, and says what it can do', async () => {
    const host = new Recorder();
    const agent = await begin(host);
    await agent.prompt(say('/explain'), noBlob);
    expect(host.said()).toContain('| `slugify` |');
    await agent.prompt(say('rename slugify to makeSlug'), noBlob);
    expect(await readFile(join((on as Stage).workspace, 'src/slug.js'), 'utf8')).toContain('function makeSlug');
    expect(host.said()).toContain('every fourth century');
    await agent.prompt(say('sing a song'), noBlob);
    expect(host.said()).toContain('I can do these');
    expect(host.items.some((item) => item.type === 'commands')).toBe(true);
  });

  it('asks for the command that would delete everything, and the command is refused', async () => {
    const host = new Recorder();
    host.allow = false;
    const agent = await begin(host);
    await agent.prompt(say('delete everything'), noBlob);
    expect(host.commands).toEqual(['rm -rf src test']);
    expect(await readFile(join((on as Stage).workspace, 'src/slug.js'), 'utf8')).toContain('slugify');
  });
});
