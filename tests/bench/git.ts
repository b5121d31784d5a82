/** Row 16: what git itself takes for the status and the differences of a large repository, and what the bridge takes. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Ground } from './ground.ts';
import { atMost, figure, timesFloor, type Row } from './measure.ts';

const folders = 500;
const filesPerFolder = 100;
const changed = 2000;
const runs = 11;

const text = (folder: number, file: number): string =>
  Array.from({ length: 40 }, (_, line) => `export const value${line} = ${folder * file + line};\n`).join('');
export const nameOf = (folder: number, file: number): string => `folder-${folder}/file-${file}.ts`;

/** 50,000 files, of which 2,000 are changed in the folder: every 25th. */
export const makeRepository = (path: string): void => {
  const git = (...args: string[]): void => {
    execFileSync('git', args, { cwd: path, env: environment(path), stdio: 'ignore' });
  };
  git('init', '-q');
  for (let folder = 0; folder < folders; folder += 1) {
    mkdirSync(join(path, `folder-${folder}`));
    for (let file = 0; file < filesPerFolder; file += 1)
      writeFileSync(join(path, nameOf(folder, file)), text(folder, file));
  }
  git('add', '-A');
  git('commit', '-q', '-m', 'everything');
  const every = (folders * filesPerFolder) / changed;
  for (let at = 0; at < folders * filesPerFolder; at += every) {
    const [folder, file] = [Math.floor(at / filesPerFolder), at % filesPerFolder];
    writeFileSync(join(path, nameOf(folder, file)), text(folder, file).replace('value20 ', 'changed '));
  }
};

const environment = (home: string): Record<string, string> => ({
  ...{ PATH: process.env['PATH'] ?? '', HOME: home, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' },
  ...{ GIT_AUTHOR_NAME: 'Ada', GIT_AUTHOR_EMAIL: 'ada@example.org' },
  ...{ GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: 'ada@example.org' },
});

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};

/** One after the other in turn, so that what else the machine does falls on both. */
const compared = async (floor: () => Promise<unknown>, ours: () => Promise<unknown>) => {
  await floor();
  await ours();
  const [floors, own]: [number[], number[]] = [[], []];
  for (let run = 0; run < runs; run += 1) {
    floors.push(await timed(floor));
    own.push(await timed(ours));
  }
  return { floor: figure(floors), ours: figure(own) };
};

export const gitRows = async (ground: Ground): Promise<Row[]> => {
  const path = ground.path('git-work');
  makeRepository(path);
  const git = (...args: string[]): Promise<unknown> =>
    promisify(execFile)('git', args, { cwd: path, env: environment(path), maxBuffer: 1e9 });
  const { bridge } = await ground.bridge('git');
  const client = await bridge.client();
  const { workspaceId } = await client.change('workspace.open', { path });
  const unstaged = { kind: 'unstaged' } as const;
  const file = nameOf(250, 0);
  const id = Buffer.from(file).toString('base64url');

  const status = await compared(
    () => git('status', '--porcelain=v2', '-z', '--untracked-files=all'),
    () => client.call('git.status', { workspaceId }),
  );
  const whole = await compared(
    () => Promise.all([git('status', '--porcelain=v2', '-z', '--untracked-files=all'), git('diff')]),
    () => client.call('git.changes', { workspaceId, of: unstaged }),
  );
  const one = await compared(
    () => git('diff', '--', file),
    () => client.call('git.diff', { workspaceId, of: unstaged, id }),
  );
  const base = { row: '16', name: 'git', unit: 'ms' } as const;
  const size = `${folders * filesPerFolder} files, ${changed} changed`;
  return [
    timesFloor({ ...base, what: 'git status', note: size, ...status }, 1.3),
    timesFloor(
      {
        ...base,
        what: 'all changes with their lines counted',
        note: 'floor: git status and git diff at once',
        ...whole,
      },
      1.3,
    ),
    atMost({ ...base, what: "one file's difference", note: size, ...one }, 15),
  ];
};
