/** Row 16: what recording the files before a turn takes, beside what git takes to add the same. */
import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { limits } from '#protocol/limits.ts';
import { openStage, uuid } from '../git/checkpoint-stage.ts';
import type { Ground } from './ground.ts';
import { figure, timesFloor, type Row } from './measure.ts';

const folders = 200;
const filesPerFolder = 100;
const runs = 7;

const text = (folder: number, file: number): string =>
  Array.from({ length: 40 }, (_, line) => `export const value${line} = ${folder * file + line};\n`).join('');
const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};

export const checkpointRows = async (ground: Ground): Promise<Row[]> => {
  const path = ground.path('checkpoint');
  const folder = join(path, 'workspace');
  for (let at = 0; at < folders; at += 1) {
    mkdirSync(join(folder, `folder-${at}`), { recursive: true, mode: 0o700 });
    for (let file = 0; file < filesPerFolder; file += 1)
      writeFileSync(join(folder, `folder-${at}/file-${file}.ts`), text(at, file));
  }
  const floorStore = join(path, 'floor.git');
  const git = (...args: string[]): Promise<unknown> =>
    promisify(execFile)('git', args, {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', HOME: path, GIT_DIR: floorStore, GIT_WORK_TREE: folder },
      maxBuffer: 1e9,
    });
  const add = async (): Promise<void> => {
    await git('add', '-A');
    await git('write-tree');
  };
  const change = (run: number): void => writeFileSync(join(folder, 'folder-7/file-7.ts'), `changed ${run}\n`);

  // Neither keeps what it just read for settled: both are given the time they ask for.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  await git('init', '-q');
  const firstFloor = await timed(add);
  const stage = await openStage(path);
  try {
    const record = (): Promise<unknown> => stage.record('before_turn');
    // Not as a turn waits for it, which gives up after a while and begins without.
    const whole = AbortSignal.timeout(limits.checkpointScanMs);
    const { shelf } = stage.room;
    const first = await timed(() =>
      shelf.inOrder(stage.conversationId, (place) => shelf.scan(place, stage.root, uuid(), whole)),
    );
    // Files that were written so shortly before are read once more.
    await record();
    const [none, one]: { floor: number[]; ours: number[] }[] = [
      { floor: [], ours: [] },
      { floor: [], ours: [] },
    ];
    for (let run = 0; run < runs; run += 1) {
      none?.floor.push(await timed(add));
      none?.ours.push(await timed(record));
      change(run);
      one?.floor.push(await timed(add));
      one?.ours.push(await timed(record));
    }
    const base = { row: '16', name: 'checkpoint', unit: 'ms' } as const;
    const note = `${folders * filesPerFolder} files; floor: git add -A and git write-tree`;
    const row = (what: string, floor: readonly number[], ours: readonly number[], most: number): Row =>
      timesFloor({ ...base, what, note, floor: figure(floor), ours: figure(ours) }, most);
    return [
      row('a checkpoint where nothing changed', none?.floor ?? [], none?.ours ?? [], 3),
      row('a checkpoint where one file changed', one?.floor ?? [], one?.ours ?? [], 3),
      row('the first checkpoint', [firstFloor], [first], 2),
    ];
  } finally {
    await stage.close();
    rmSync(path, { recursive: true, force: true });
  }
};
