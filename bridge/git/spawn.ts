/**
 * The only place that starts git: no shell, an environment built from empty, three descriptors, a group of its own that is
 * killed at its bounds (F-20). The rule not to break: git is only ever pointed at a git directory whose configuration the
 * bridge wrote; flags alone do not keep a repository's helpers from running. Called by this room and by checkpoints.
 */
import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { RunGit } from './contract.ts';

type What = Parameters<RunGit>[0];

/** Nothing is inherited: a GIT_* of the operator's shell would point git, or its helpers, elsewhere (T67). */
const environment = (program: string, what: What): Record<string, string> => {
  const [objects, ...alternates] = what.objects ?? [];
  return {
    PATH: dirname(program),
    HOME: '/nonexistent',
    LC_ALL: 'C',
    GIT_DIR: what.gitDirectory,
    ...(what.workTree !== null && { GIT_WORK_TREE: what.workTree }),
    ...(what.index !== undefined && { GIT_INDEX_FILE: what.index }),
    ...(objects !== undefined && { GIT_OBJECT_DIRECTORY: objects }),
    ...(alternates.length > 0 && { GIT_ALTERNATE_OBJECT_DIRECTORIES: alternates.map(quoted).join(':') }),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_CEILING_DIRECTORIES: '/',
    // Author and committer of what a checkpoint writes; nothing is asked of the system.
    GIT_AUTHOR_NAME: 'Countersign',
    GIT_AUTHOR_EMAIL: 'countersign@localhost',
    GIT_COMMITTER_NAME: 'Countersign',
    GIT_COMMITTER_EMAIL: 'countersign@localhost',
  };
};

// The list is separated by colons; git reads a quoted element as a C string.
const quoted = (path: string): string =>
  /[:"\\\n]/.test(path) ? `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"` : path;

/** stderr is kept for the log alone, short and without anything that acts on a screen. */
const stderrBytes = 2048;
const inert = (stderr: Buffer): string => stderr.toString('latin1').replace(/[^\x20-\x7e]+/g, ' ');

/** `program` is the absolute path of git, null where there is none. At most `limits.gitProcesses` run at once. */
export const makeRunGit = (parts: { readonly program: string | null }): RunGit => {
  const places = new Places(limits.gitProcesses);
  return async (what) => {
    const { program } = parts;
    if (program === null) throw new Refusal('git_unavailable');
    await places.take(what.signal);
    try {
      return await runOnce(program, what);
    } finally {
      places.leave();
    }
  };
};

const runOnce = (program: string, what: What): ReturnType<RunGit> =>
  new Promise((resolve, reject) => {
    const maxBytes = what.maxBytes ?? limits.gitBytes;
    const child = spawn(program, ['--no-pager', '--no-optional-locks', ...what.args], {
      cwd: what.workTree ?? what.gitDirectory,
      env: environment(program, what),
      detached: true,
      stdio: [what.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    let refusal: Refusal | null = null;
    const stop = (because: Refusal): void => {
      refusal ??= because;
      killGroup(child.pid);
    };
    const timer = setTimeout(() => {
      stop(new Refusal('git_timeout'));
    }, what.timeoutMs ?? limits.gitMs);
    const cancel = (): void => {
      stop(new Refusal('cancelled'));
    };
    what.signal.addEventListener('abort', cancel, { once: true });

    const chunks: Buffer[] = [];
    let bytes = 0;
    child.stdout?.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) stop(new Refusal('git_output_too_large'));
      else if (refusal === null) chunks.push(chunk);
    });
    let complaint = Buffer.alloc(0);
    child.stderr?.on('data', (chunk: Buffer) => {
      complaint = Buffer.concat([complaint, chunk]).subarray(0, stderrBytes);
    });
    // A git that ends before it read everything tells why by its exit.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(what.input);

    const done = (): void => {
      clearTimeout(timer);
      what.signal.removeEventListener('abort', cancel);
    };
    child.once('error', (cause) => {
      done();
      reject(new Refusal('git_unavailable', { cause }));
    });
    child.once('close', (code, by) => {
      done();
      if (refusal !== null) reject(refusal);
      else if (code !== null && (what.codes ?? [0]).includes(code)) resolve({ code, stdout: Buffer.concat(chunks) });
      else reject(failed(what.args[0] ?? '', code ?? by, complaint));
    });
    if (what.signal.aborted) cancel();
  });

const failed = (command: string, end: number | string | null, stderr: Buffer): Refusal =>
  new Refusal('unsupported_git_state', {
    message: 'Git could not read this repository: it is damaged, incomplete, or of an unusual kind.',
    cause: new Error(`git ${command} ended with ${end ?? 'nothing'}: ${inert(stderr)}`),
  });

const killGroup = (pid: number | undefined): void => {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended already; its exit is on the way.
  }
};

/** So many at once; the others wait in order, and leave when they are cancelled. */
class Places {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(free: number) {
    this.#free = free;
  }

  async take(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new Refusal('cancelled');
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', cancel);
        resolve();
      };
      const cancel = (): void => {
        this.#waiting.delete(go);
        reject(new Refusal('cancelled'));
      };
      this.#waiting.add(go);
      signal.addEventListener('abort', cancel, { once: true });
    });
  }

  leave(): void {
    const next = this.#waiting.values().next().value;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
