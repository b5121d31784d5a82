/**
 * Finds what would be run for an agent: PATH is searched here, links are resolved, and a Node script is run by a Node
 * that is new enough, named by its absolute path. Never a shell, never npx: what is found is what is hashed and shown.
 * Used by registry.ts. Reads the file system; runs nothing but `node --version`.
 */
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import { limits } from '#protocol/limits.ts';

export interface Found {
  /** argv[0] is absolute. */
  readonly argv: readonly string[];
  /** The script that argv[0] interprets, or null where argv[0] is the program itself. */
  readonly entry: string | null;
}

const isFile = (file: string): boolean => {
  try {
    return statSync(file).isFile();
  } catch {
    return false;
  }
};
const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
};

/** Absolute path of `name` on `path`, links not resolved, or null. Relative entries of PATH are passed over. */
export const onPath = (name: string, path: string): string | null => {
  if (isAbsolute(name)) return isExecutable(name) ? name : null;
  if (name.includes('/')) return null;
  return (
    path
      .split(delimiter)
      .filter(isAbsolute)
      .map((directory) => join(directory, name))
      .find(isExecutable) ?? null
  );
};

/** Words after `#!`, or null. */
const shebang = (file: string): string[] | null => {
  const bytes = Buffer.alloc(limits.nameBytes);
  const fd = openSync(file, 'r');
  try {
    const length = readSync(fd, bytes, 0, bytes.length, 0);
    const line = bytes.subarray(0, length).toString('latin1').split('\n')[0] ?? '';
    return line.startsWith('#!') ? line.slice(2).trim().split(/\s+/) : null;
  } finally {
    closeSync(fd);
  }
};

/** Flags for Node of a script that asks for it, or null for anything else. */
const nodeFlags = (words: readonly string[] | null): string[] | null => {
  if (words === null) return null;
  const rest = words[0]?.endsWith('/env') === true ? words.slice(1).filter((word) => word !== '-S') : words;
  const interpreter = rest[0] ?? '';
  return interpreter === 'node' || interpreter.endsWith('/node') ? rest.slice(1) : null;
};

const majorOf = (node: string): number => {
  const { stdout } = spawnSync(node, ['--version'], {
    encoding: 'utf8',
    env: {},
    timeout: limits.probeMs,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return Number(/^v(\d+)\./.exec(stdout ?? '')?.[1] ?? 0);
};

/** The first `node` on PATH that is new enough, or the bridge's own. */
export class Interpreters {
  readonly #own: string;
  readonly #majors = new Map<string, number>();

  constructor(ownNode: string) {
    this.#own = ownNode;
  }

  pick(path: string, leastMajor: number): string {
    const candidate = onPath('node', path);
    if (candidate === null) return this.#own;
    const node = realpathSync(candidate);
    const major = this.#majors.get(node) ?? majorOf(node);
    this.#majors.set(node, major);
    return major >= leastMajor ? node : this.#own;
  }
}

/** What running `file` (absolute) with `args` means, links resolved. @throws when the file cannot be read */
export const resolveProgram = (file: string, args: readonly string[], nodeFor: () => string): Found => {
  const real = realpathSync(file);
  const flags = nodeFlags(shebang(real));
  if (flags === null) {
    // `node script.js` given as a command: what runs is the script, so that is hashed too.
    const script =
      basename(real) === 'node' && args[0] !== undefined && isAbsolute(args[0]) && isFile(args[0])
        ? realpathSync(args[0])
        : null;
    return { argv: [real, ...args], entry: script };
  }
  return { argv: [nodeFor(), ...flags, real, ...args], entry: real };
};

/** Whether a directory lies in a git repository: it or one above it has a `.git`, whatever that is. */
export const insideRepository = (directory: string): boolean => {
  const parent = dirname(directory);
  return existsSync(join(directory, '.git')) || (parent !== directory && insideRepository(parent));
};

/** Version of the nearest package.json above a script, or null. */
export const packageVersion = (entry: string): string | null => {
  let directory = dirname(entry);
  for (let depth = 0; depth < 6; depth += 1) {
    try {
      const found = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as { version?: unknown };
      if (typeof found.version === 'string') return found.version.slice(0, 100);
    } catch {
      // none here, or not one of ours to judge: the next one up
    }
    directory = dirname(directory);
  }
  return null;
};
