/** Rows 1 and 2: how fast the bridge is there, and what it costs while nothing happens. */
import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnBare, spawnShaped } from './floors.ts';
import { freePort, mainFile, type Ground } from './ground.ts';
import { atMost, figure, repeat, timesFloor, type Row } from './measure.ts';

const answers = (port: number, path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.resume();
      resolve((response.statusCode ?? 500) < 300);
    });
    request.on('error', () => resolve(false));
  });

const ended = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await new Promise((resolve) => child.once('exit', resolve));
};

/** From the spawn to the first good answer. */
const timeStart = async (make: (port: number) => ChildProcess, stayMs = 0): Promise<number> => {
  const port = await freePort();
  const began = performance.now();
  const child = make(port);
  try {
    while (!(await answers(port, '/up'))) {
      if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode} before it answered`);
      await sleep(1);
    }
    const took = performance.now() - began;
    await sleep(stayMs);
    return took;
  } finally {
    await ended(child);
  }
};

const spawnOurs =
  (state: string, workspace: string) =>
  (port: number): ChildProcess =>
    spawn(
      process.execPath,
      [mainFile, 'start', '--port', String(port), '--state', state, '--workspace', workspace, '--json'],
      { stdio: 'ignore' },
    );

export const startRows = async (ground: Ground): Promise<Row[]> => {
  const ours = spawnOurs(ground.path('start-state'), ground.path('start-work'));
  // It stays long enough to keep its compiled code, as any start does that is used.
  const first = await timeStart(ours, 4000);
  const floors: number[] = [];
  const times: number[] = [];
  // Alternating, so that what else the machine does falls on both.
  await repeat(9, async () => {
    floors.push(await timeStart(spawnBare));
    times.push(await timeStart(ours));
    return 0;
  });
  return [
    timesFloor(
      {
        row: '1',
        name: 'start',
        what: 'process start → first good answer',
        unit: 'ms',
        floor: figure(floors),
        ours: figure(times),
        note: `the very first start of a state ${first.toFixed(0)} ms`,
      },
      2.2,
    ),
  ];
};

interface Cost {
  readonly cpuMs: number;
  readonly wakeups: number;
}
const costOf = (pid: number): Cost => {
  let cpuNs = 0;
  let wakeups = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    cpuNs += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    wakeups += Number(
      /^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8'))?.[1] ?? 0,
    );
  }
  return { cpuMs: cpuNs / 1e6, wakeups };
};
const residentMB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1000;

/** CPU in percent of one core, and wake-ups a second, over windows of so long. */
const watchIdle = async (
  pid: number,
  windows: number,
  windowMs: number,
): Promise<{ cpu: number[]; wakeups: number[]; memory: number[] }> => {
  const cpu: number[] = [];
  const wakeups: number[] = [];
  const memory: number[] = [];
  let before = costOf(pid);
  for (let window = 0; window < windows; window += 1) {
    await sleep(windowMs);
    const now = costOf(pid);
    cpu.push(((now.cpuMs - before.cpuMs) / windowMs) * 100);
    wakeups.push(((now.wakeups - before.wakeups) / windowMs) * 1000);
    memory.push(residentMB(pid));
    before = now;
  }
  return { cpu, wakeups, memory };
};

export const idleRows = async (ground: Ground): Promise<Row[]> => {
  const barePort = await freePort();
  const shapedPort = await freePort();
  const port = await freePort();
  const bare = spawnBare(barePort);
  const shaped = spawnShaped(shapedPort);
  const spawnOne = spawnOurs(ground.path('start-state'), ground.path('start-work'));
  await timeStart(spawnOne, 4000); // as every start but a state's very first: what it compiled is kept
  const child = spawnOne(port);
  try {
    for (const each of [port, barePort, shapedPort]) while (!(await answers(each, '/up'))) await sleep(20);
    await sleep(5000);
    const [floor, ours] = await Promise.all([watchIdle(bare.pid ?? 0, 5, 4000), watchIdle(child.pid ?? 0, 5, 4000)]);
    return [
      timesFloor(
        {
          row: '2',
          name: 'idle',
          what: 'memory at rest (resident)',
          unit: 'MB',
          floor: figure(floor.memory),
          ours: figure(ours.memory),
          note: `a program that only loads the same libraries ${residentMB(shaped.pid ?? 0).toFixed(1)} MB`,
        },
        1.3,
      ),
      atMost(
        { row: '2', name: 'idle', what: 'CPU at rest', unit: '%', floor: figure(floor.cpu), ours: figure(ours.cpu) },
        0.05,
      ),
      atMost(
        {
          row: '2',
          name: 'idle',
          what: 'wake-ups at rest, all threads',
          unit: '/s',
          floor: figure(floor.wakeups),
          ours: figure(ours.wakeups),
        },
        1,
      ),
    ];
  } finally {
    await Promise.all([ended(bare), ended(shaped), ended(child)]);
  }
};
