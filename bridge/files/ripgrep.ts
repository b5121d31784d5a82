/**
 * Asks ripgrep which files may have a pattern, where it is installed (F-06). It is only ever a guide to the seeker, which
 * opens each file through the walker and decides for itself: whatever it follows or prints, nothing else is shown.
 * The rule not to break: no shell, no configuration, no preprocessor, no unpacking, and an environment built from empty.
 */
import { spawn } from 'node:child_process';
import { isUtf8 } from 'node:buffer';
import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { limits } from '#protocol/limits.ts';
import type { Wanted } from './pattern.ts';

/** The program by its real path, or null. Never one that lies in the workspace. */
export const findRipgrep = (searchPath: string, workspace: string): string | null => {
  for (const directory of searchPath.split(delimiter).filter(isAbsolute)) {
    try {
      const file = realpathSync.native(join(directory, 'rg'));
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile() && !file.startsWith(`${workspace}/`)) return file;
    } catch {
      continue; // not there, or not to be run
    }
  }
  return null;
};

const argumentsFor = ({ query, regexp, matchCase }: Wanted): string[] => [
  ...['--no-config', '--files-with-matches', '--null', '--no-messages', '--color=never', '--hidden', '--no-follow'],
  ...['--no-pre', '--no-search-zip', '--no-ignore-global', '--no-ignore-parent', '--no-require-git', '--crlf'],
  ...[
    '--glob=!.git',
    `--max-filesize=${limits.scanBytes}`,
    '--threads=2',
    matchCase ? '--case-sensitive' : '--ignore-case',
  ],
  ...(regexp ? [] : ['--fixed-strings']),
  ...[`--regexp=${query}`, '--', './'],
];

/**
 * Hands over the files as they are named, relative to `directory`. `ended` is called once, with false when ripgrep could
 * not do it (another dialect of patterns, or it failed). Killed with `signal`; then `ended` is not called.
 */
export const askRipgrep = (
  program: string,
  directory: string,
  wanted: Wanted,
  signal: AbortSignal,
  named: (paths: string[]) => void,
  ended: (done: boolean) => void,
): void => {
  const child = spawn(program, argumentsFor(wanted), {
    cwd: directory,
    env: { LC_ALL: 'C.UTF-8' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  let rest = Buffer.alloc(0);
  child.stdout.on('data', (chunk: Buffer) => {
    const all = Buffer.concat([rest, chunk]);
    const end = all.lastIndexOf(0) + 1;
    rest = all.subarray(end);
    const names = isUtf8(all.subarray(0, end))
      ? all.toString('utf8', 0, end).split('\0').slice(0, -1)
      : utf8Names(all.subarray(0, end));
    named(names.map((name) => name.replace(/^\.\//, '')));
  });
  let failed = false;
  child.on('error', () => (failed = true));
  child.on('close', (code) => {
    signal.removeEventListener('abort', kill);
    if (!signal.aborted) ended(!failed && (code === 0 || code === 1));
  });
};

/** A name that is not UTF-8 has no path here. */
const utf8Names = (bytes: Buffer): string[] => {
  const names: string[] = [];
  for (let start = 0, end = bytes.indexOf(0); end !== -1; start = end + 1, end = bytes.indexOf(0, start))
    if (isUtf8(bytes.subarray(start, end))) names.push(bytes.toString('utf8', start, end));
  return names;
};
