/**
 * Row 17: a key there and back, megabytes a second, `seq 1000000`, and memory in a flood. The floor is node-pty behind a
 * bare WebSocket that does nothing else: no state, no replay, no credit. Both are read by the same client, which parses as
 * a page does (xterm's core, without pixels) and acknowledges what it has parsed.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { parentOf } from '../../bridge/agents/procfs.ts';
import { App, Socket } from '../terminals/bridge.ts';
import { newCore } from '../terminals/parts.ts';
import { root, type Ground } from './ground.ts';
import { figure, quantile, timesFloor, type Row } from './measure.ts';

const size = { columns: 120, rows: 40 };
const floodBytes = 20_000_000;
const runs = 5;

const bareProgram = `
const { WebSocketServer } = require('ws');
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
server.on('connection', (socket) => {
  const pty = require('node-pty').spawn('/bin/bash', [], { name: 'xterm-256color', cols: 120, rows: 40, cwd: process.argv[1], encoding: null });
  pty.onData((bytes) => socket.send(bytes));
  socket.on('message', (data, isBinary) => isBinary && pty.write(data));
  socket.on('close', () => pty.kill());
});
server.on('listening', () => console.log(server.address().port));`;

const rssMiB = (pid: number, what: 'VmRSS' | 'VmHWM' = 'VmRSS'): number =>
  Number(new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024;

/** Draws what comes, as a page would. */
const drawing = (page: Socket): Socket => {
  const core = newCore(size);
  page.draw = (bytes, done) => core.write(bytes, done);
  return page;
};

/** One terminal to measure, and the process whose memory counts. */
interface Side {
  readonly page: Socket;
  readonly pid: number;
}

const bare = async (cwd: string): Promise<Side & { child: ChildProcess }> => {
  const child = spawn(process.execPath, ['-e', bareProgram, cwd], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  const port = await new Promise<number>((resolve) =>
    child.stdout.once('data', (text) => resolve(Number(String(text)))),
  );
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false });
  const page = drawing(new Socket(socket));
  await new Promise((resolve) => socket.once('open', resolve));
  return { page, pid: child.pid ?? 0, child };
};

/** A key to `cat` and its echo from the line discipline, in ms. */
const roundTrips = async ({ page }: Side): Promise<number> => {
  page.type('cat\r');
  await sleep(200);
  const times: number[] = [];
  for (let count = 0; count < 200; count += 1) {
    const begun = performance.now();
    const heard = new Promise<void>((resolve) => (page.heard = () => resolve()));
    page.type('k');
    await heard;
    times.push(performance.now() - begun);
    await sleep(4);
  }
  page.heard = () => undefined;
  page.type('\x03');
  await sleep(100);
  return quantile(times, 0.5);
};

let marks = 0;
/** Until everything the command printed is here, in ms. */
const timeOf = async ({ page }: Side, command: string): Promise<number> => {
  marks += 1;
  page.text = '';
  const begun = performance.now();
  page.type(`${command}; echo all-"of"-${marks}-it\r`);
  await page.until(new RegExp(`all-of-${marks}-it`));
  return performance.now() - begun;
};

interface Measured {
  readonly trip: number[];
  readonly rate: number[];
  readonly seq: number[];
}
const measured = (): Measured => ({ trip: [], rate: [], seq: [] });
const measure = async (side: Side, into: Measured, file: string): Promise<void> => {
  into.trip.push(await roundTrips(side));
  into.rate.push(floodBytes / 1000 / (await timeOf(side, `cat ${file}`)));
  into.seq.push(await timeOf(side, 'seq 1000000'));
};

/** Memory before, and the most while the process passed the file on twice, in MB. */
const flooded = async (side: Side, file: string): Promise<{ before: number; most: number }> => {
  const before = rssMiB(side.pid) * 1.048576;
  writeFileSync(`/proc/${side.pid}/clear_refs`, '5'); // the high-water mark begins anew
  await timeOf(side, `cat ${file}; cat ${file}`);
  return { before, most: rssMiB(side.pid, 'VmHWM') * 1.048576 };
};

export const terminalRows = async (ground: Ground): Promise<Row[]> => {
  const folder = ground.path('terminal-floor');
  const file = join(folder, 'flood');
  const line = `${'The quick brown fox jumps over the lazy dog. '.repeat(2).trim()}\n`;
  writeFileSync(file, line.repeat(Math.ceil(floodBytes / line.length)).slice(0, floodBytes));

  const { bridge } = await ground.bridge('terminal');
  const app = await App.open(bridge);
  const { workspaces } = (await app.call('workspace.list')) as { workspaces: { workspaceId: string }[] };
  const opened = await app.change('terminal.open', { workspaceId: workspaces[0]?.workspaceId, size });
  const page = drawing(await app.socket(String(opened['terminalId']), size));
  const floor = await bare(folder);
  try {
    const ours: Side = { page, pid: bridge.ready.pid };
    page.type('echo shell=$$;\r');
    await page.until(/shell=\d+/);
    const host = parentOf(Number(/shell=(\d+)/.exec(page.text)?.[1])) ?? 0;
    const [floors, mine] = [measured(), measured()];
    // In turns, so that what else runs meanwhile meets both.
    for (let run = 0; run < runs; run += 1) {
      await measure(floor, floors, file);
      await measure(ours, mine, file);
    }
    const bareMemory = await flooded(floor, file);
    const memory: Awaited<ReturnType<typeof flooded>>[] = [];
    for (let run = 0; run < runs; run += 1) memory.push(await flooded(ours, file));
    const row = { row: '17', name: 'terminal' } as const;
    const rate = { floor: figure(floors.rate), ours: figure(mine.rate) };
    return [
      timesFloor(
        { ...row, what: 'terminal: a key and back', unit: 'ms', floor: figure(floors.trip), ours: figure(mine.trip) },
        1.4,
      ),
      {
        ...{ ...row, what: 'terminal: output, MB/s', unit: '/s' as const, ...rate },
        target: '≥ 0.85× floor',
        pass: rate.ours.value >= 0.85 * rate.floor.value,
      },
      timesFloor(
        { ...row, what: 'terminal: seq 1000000', unit: 'ms', floor: figure(floors.seq), ours: figure(mine.seq) },
        1.2,
      ),
      timesFloor(
        {
          ...row,
          what: 'terminal: memory of the bridge in a flood, over before',
          unit: 'MB',
          floor: figure(memory.map(({ before }) => before)),
          ours: figure(memory.map(({ most }) => most)),
          note: `host ${rssMiB(host, 'VmHWM').toFixed(0)} MiB; bare ${bareMemory.before.toFixed(0)} to ${bareMemory.most.toFixed(0)} MB`,
        },
        1.3,
      ),
    ];
  } finally {
    app.end();
    page.socket.terminate();
    floor.page.socket.terminate();
    floor.child.kill();
  }
};
