/** Row 15: folders of 2,000 and 20,000 entries, listed whole and up to the first screen; a search in contents beside grep. */
import { spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openRoot } from '../../bridge/files/root.ts';
import type { Root } from '../../bridge/files/contract.ts';
import type { Ground } from './ground.ts';
import { atMost, figure, timesFloor, type Row } from './measure.ts';

const sizes = [2000, 20_000] as const;
const runs = 15;

const timed = (work: () => void): number => {
  const began = performance.now();
  work();
  return performance.now() - began;
};

/** Names and what lstat says of each, as the shortest program gets them. */
const bare = (folder: string): void => {
  for (const { name } of readdirSync(folder, { withFileTypes: true })) lstatSync(join(folder, name));
};
const whole = (root: Root, folder: string): void => {
  for (let cursor: string | null | undefined; cursor !== null;) ({ cursor } = root.list(folder, cursor));
};

export const listRows = async (ground: Ground): Promise<Row[]> => {
  const path = ground.path('files');
  for (const size of sizes) {
    mkdirSync(join(path, `of-${size}`));
    for (let file = 0; file < size; file += 1)
      writeFileSync(join(path, `of-${size}`, `file-${(file * 7919) % size}.ts`), '');
  }
  const root = openRoot({ workspaceId: 'bench', path, privateDirectories: [] });
  const rows: Row[] = [];
  try {
    for (const size of sizes) {
      const folder = `of-${size}`;
      const [floor, ours, first]: [number[], number[], number[]] = [[], [], []];
      // By turns, so that what else the machine does meets all of them.
      for (let run = 0; run < runs; run += 1) {
        floor.push(timed(() => bare(join(path, folder))));
        ours.push(timed(() => whole(root, folder)));
        first.push(timed(() => root.list(folder)));
      }
      const floored = figure(floor);
      rows.push(
        timesFloor(
          {
            row: '15',
            name: 'list',
            what: `list ${size} entries, every page`,
            unit: 'ms',
            floor: floored,
            ours: figure(ours),
          },
          3,
        ),
        timesFloor(
          {
            row: '15',
            name: 'list',
            what: `first screen of ${size} entries`,
            unit: 'ms',
            floor: floored,
            ours: figure(first),
          },
          1,
        ),
      );
    }
  } finally {
    root.close();
  }
  return rows;
};

/** Lines with a word in 2,000 files of 200 lines, beside `grep -rn`, which reads as much and decides nothing. */
export const grepRows = async (ground: Ground): Promise<Row[]> => {
  const path = ground.path('grep');
  for (let file = 0; file < 2000; file += 1) {
    if (file % 50 === 0) mkdirSync(join(path, `d${file / 50}`));
    const line = `export const value${file} = compute(${file}); // a line of code as long as most are\n`;
    writeFileSync(join(path, `d${Math.floor(file / 50)}`, `f${file}.ts`), `${line.repeat(199)}needle\n`);
  }
  const root = openRoot({ workspaceId: 'bench', path, privateDirectories: [] });
  const signal = new AbortController().signal;
  const wanted = { query: 'needle', regexp: false, matchCase: false, word: false, include: '' };
  const [floor, ours, first]: [number[], number[], number[]] = [[], [], []];
  try {
    for (let run = 0; run < 7; run += 1) {
      floor.push(timed(() => void spawnSync('grep', ['-rniI', 'needle', path])));
      const began = performance.now();
      const search = root.grep(wanted);
      let page = await search.next(signal);
      first.push(performance.now() - began);
      while (!page.ended) page = await search.next(signal);
      ours.push(performance.now() - began);
      search.end();
    }
  } finally {
    root.close();
  }
  const common = { row: '15', name: 'grep', unit: 'ms' as const, floor: figure(floor) };
  return [
    atMost({ ...common, what: 'search 32 MB in 2,000 files: first answer', ours: figure(first) }, 300),
    timesFloor({ ...common, what: 'search 32 MB in 2,000 files: all lines', ours: figure(ours) }, 20),
  ];
};
