import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, openSync, closeSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { bestEffort, chooseHolding } from '../../bridge/agents/containment.ts';
import { closeInherited } from '../../bridge/agents/descriptors.ts';
import { hold } from '../../bridge/agents/process.ts';
import { marked, markerName, parentOf, pids, startTimeOf } from '../../bridge/agents/procfs.ts';
import { alive, noBlob, Recorder, say, stage, until, type Stage } from './recorder.ts';

const containments = ['bubblewrap', 'best_effort'] as const;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

const token = (): string => `token-${randomBytes(8).toString('hex')}`;
/** Processes whose arguments hold the token: found whatever they did to their environment. */
const withToken = (wanted: string): number[] =>
  pids().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').includes(wanted);
    } catch {
      return false;
    }
  });

interface Held {
  readonly holder: ChildProcess;
  readonly recorded: { pid: number; startTime: string; marker: string; directory: string; containment: string };
}
/** A process of its own that holds an agent as the bridge does. */
const holder = async (containment: string, directives: string): Promise<Held> => {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('holder.ts', import.meta.url)), containment, directives],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  cleanups.push(() => child.kill('SIGKILL'));
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    child.once('exit', (code) => reject(new Error(`holder ended with ${code}`)));
  });
  const recorded = JSON.parse(line) as Held['recorded'];
  cleanups.push(() => rmSync(recorded.directory, { recursive: true, force: true }));
  return { holder: child, recorded };
};
const begin = async (containment: (typeof containments)[number]): Promise<Stage> => {
  const on = await stage(containment === 'best_effort' ? { containment } : {});
  cleanups.push(() => on.end());
  return on;
};
const holding = (containment: (typeof containments)[number], hidden: string[] = []) =>
  containment === 'best_effort'
    ? bestEffort(process.execPath, '')
    : chooseHolding('/usr/bin/bwrap', hidden, process.execPath);

describe.each(containments)('a tree held by %s', (containment) => {
  it('is gone after stop, with a grandchild that ignores SIGTERM in a session of its own (case 74, L-31)', async () => {
    const on = await begin(containment);
    const agent = await on.start(await on.scripted({ ignoreTerm: true }), new Recorder());
    expect(agent.ready.containment).toBe(containment);
    const wanted = token();
    await agent.prompt(say(`[[grandchild ${wanted}]]`), noBlob);
    expect(withToken(wanted)).toHaveLength(1);
    await agent.stop();
    expect(withToken(wanted)).toEqual([]);
    expect(marked(agent.marker)).toEqual([]);
    expect(alive(agent.pid)).toBe(false);
  });

  it('is gone after the agent alone was killed (agents.md 6)', async () => {
    const on = await begin(containment);
    const host = new Recorder();
    const agent = await on.start(await on.scripted({}), host);
    const wanted = token();
    await agent.prompt(say(`[[grandchild ${wanted}]]`), noBlob);
    await expect(agent.prompt(say('[[kill SIGKILL]]'), noBlob)).rejects.toMatchObject({ code: 'agent_gone' });
    expect(withToken(wanted)).toEqual([]);
  });

  it('is gone after SIGKILL of the bridge that held it (T76, L-30)', async () => {
    const wanted = token();
    const held = await holder(containment, `[[grandchild ${wanted}]]`);
    expect(held.recorded.containment).toBe(containment);
    expect(withToken(wanted).length).toBeGreaterThan(0);
    held.holder.kill('SIGKILL');
    await until(
      () => withToken(wanted).every((pid) => pid === held.holder.pid) && marked(held.recorded.marker).length === 0,
      'the end of the tree',
    );
  });

  it('sees descriptors 0 to 2 alone (T70, L-32)', async () => {
    closeInherited([]); // as createAgents does
    const marker = token();
    const process_ = await hold(holding(containment), {
      argv: ['/bin/sh', '-c', 'ls -m /proc/$$/fd'],
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', [markerName]: marker },
      marker,
    });
    let output = '';
    process_.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    expect(await process_.gone).toEqual({ code: 0, signal: null });
    expect(output.trim()).toBe('0, 1, 2');
  });

  it('leaves no descriptor and no process behind after many starts', async () => {
    const before = readdirSync('/proc/self/fd').length;
    const markers = Array.from({ length: 5 }, token);
    for (const marker of markers) {
      const process_ = await hold(holding(containment), {
        argv: ['/bin/cat'],
        cwd: '/',
        env: { [markerName]: marker },
        marker,
      });
      process_.terminate();
      await process_.gone;
    }
    expect(markers.flatMap(marked)).toEqual([]);
    await until(() => readdirSync('/proc/self/fd').length <= before, 'the descriptors');
  });

  it('reports code and signal as the program left, and a missing one as a start failure', async () => {
    const marker = token();
    const start = (argv: string[]) =>
      hold(holding(containment), { argv, cwd: '/', env: { PATH: '/usr/bin:/bin', [markerName]: marker }, marker });
    expect(await (await start(['/bin/sh', '-c', 'exit 3'])).gone).toEqual({ code: 3, signal: null });
    expect(await (await start(['/bin/sh', '-c', 'kill -TERM $$'])).gone).toEqual({ code: null, signal: 'SIGTERM' });
    expect((await (await start(['/no/such/program'])).gone).code).toBeGreaterThan(0);
  });
});

it('bubblewrap takes even a process that cleaned its environment with it', async () => {
  const wanted = token();
  const held = await holder('bubblewrap', `[[escape ${wanted}]]`);
  held.holder.kill('SIGKILL');
  await until(() => withToken(wanted).every((pid) => pid === held.holder.pid), 'the end of the escaped one');
});

it('T52: bubblewrap covers the hidden directories, and root inside cannot take the cover off', async () => {
  const hidden = mkdtempSync(join(tmpdir(), 'countersign-hidden-'));
  cleanups.push(() => rmSync(hidden, { recursive: true, force: true }));
  closeSync(openSync(join(hidden, 'key'), 'w'));
  const marker = token();
  const script = `ls ${hidden}; umount ${hidden} 2>/dev/null && echo uncovered; ls ${hidden}; echo end`;
  const process_ = await hold(holding('bubblewrap', [hidden]), {
    argv: ['/bin/sh', '-c', script],
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', [markerName]: marker },
    marker,
  });
  let output = '';
  process_.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await process_.gone;
  expect(output).toBe('end\n');
});

describe('the boot sweep (T77)', () => {
  it('ends what is left when bridge and supervisor were killed together, and nothing else', async () => {
    const wanted = token();
    const held = await holder('best_effort', `[[grandchild ${wanted}]]`);
    held.holder.kill('SIGSTOP');
    process.kill(held.recorded.pid, 'SIGKILL'); // the supervisor
    held.holder.kill('SIGKILL');
    await until(() => !alive(held.recorded.pid), 'the end of the supervisor');
    expect(withToken(wanted).length).toBeGreaterThan(0);
    const on = await begin('best_effort');
    const { pid, startTime, marker } = held.recorded;
    // A pid that belongs to somebody else by now is told by its start time: this very process survives its own number.
    const reused = { pid: process.pid, startTime: '1', marker: token() };
    expect(await on.agents.sweep([{ pid, startTime, marker }, reused])).toBeGreaterThanOrEqual(1);
    expect(marked(marker)).toEqual([]);
    expect(await on.agents.sweep([{ pid, startTime, marker }])).toBe(0);
  });

  it('ends a recorded process that hides its marker, by pid and start time', async () => {
    const child = spawn('/bin/sleep', ['60'], { stdio: 'ignore', env: {} });
    cleanups.push(() => child.kill('SIGKILL'));
    const on = await begin('best_effort');
    const pid = child.pid as number;
    const ended = new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal)));
    expect(await on.agents.sweep([{ pid, startTime: startTimeOf(pid) as string, marker: token() }])).toBe(1);
    expect(await ended).toBe('SIGKILL');
  });
});

it('tells processes inside an agent from others, also those that cleaned their environment (L-35)', async () => {
  const on = await begin('best_effort');
  const agent = await on.start(await on.scripted({}), new Recorder());
  const wanted = token();
  await agent.prompt(say(`[[escape ${wanted}]]`), noBlob);
  const escaped = withToken(wanted)[0] as number;
  cleanups.push(() => alive(escaped) && process.kill(escaped, 'SIGKILL'));
  expect(on.agents.insideAgent(escaped)).toBe(true);
  expect(on.agents.insideAgent(agent.pid)).toBe(true);
  expect(on.agents.insideAgent(process.pid)).toBe(false);
  expect(parentOf(process.pid)).toBe(process.ppid);
});

it('passes a line of 100 MB over in bounded memory, and the agent goes on (T80)', async () => {
  const on = await begin('bubblewrap');
  const host = new Recorder();
  const agent = await on.start(await on.scripted({}), host);
  const before = process.memoryUsage();
  let peak = 0;
  const timer = setInterval(() => {
    const now = process.memoryUsage();
    peak = Math.max(peak, now.external + now.heapUsed - before.external - before.heapUsed);
  }, 5);
  await agent.prompt(say('[[huge 100000000]][[say still here]]'), noBlob);
  clearInterval(timer);
  expect(host.said()).toBe('still here');
  expect(host.notices('agent_noise')).toHaveLength(1);
  expect(peak).toBeLessThan(90_000_000);
});
