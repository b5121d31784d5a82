/**
 * `bridge anchor`: the signed state of the log, to a place the bridge does not keep. What was anchored cannot be
 * rewritten unnoticed afterwards: `bridge verify --checkpoint FILE` compares. With or without a running bridge.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, fsyncSync, openSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { limits } from '#protocol/limits.ts';
import { checkpointLine } from '#protocol/log.ts';
import { onPath } from '../agents/find.ts';
import { CliError, exits, read, usage, type Verb } from './args.ts';
import { inert, print, printJson } from './output.ts';
import { connected } from './run.ts';

const help = `bridge anchor (--git WORKSPACE | --file FILE | --line) [--state DIR] [--json]

Signs the log of receipts as it is now, and puts that checkpoint where the bridge cannot change it later:
  --git W    a git note on HEAD, under refs/notes/countersign; push it with
             git push origin refs/notes/countersign
  --file F   appended to a file, for example on another disk
  --line     printed as one line, to paste into a mail or a ticket

"bridge verify --all --checkpoint FILE" checks that the log still continues a checkpoint kept elsewhere; for git:
  git notes --ref=countersign show HEAD > checkpoints

Example: bridge anchor --git ~/code/parser`;

/** Nothing of the repository runs: no hooks, no pager, no editor, no remote, no configuration but its own. */
const git = (workspace: string, args: readonly string[], input = ''): string => {
  const path = onPath('git', process.env['PATH'] ?? '');
  if (path === null) throw new CliError('git was not found.');
  const ran = spawnSync(
    path,
    ['-C', workspace, '-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false', '--no-pager', ...args],
    {
      input,
      encoding: 'utf8',
      timeout: limits.probeMs,
      env: {
        HOME: '/nonexistent',
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_ATTR_NOSYSTEM: '1',
        GIT_OPTIONAL_LOCKS: '0',
        GIT_TERMINAL_PROMPT: '0',
        GIT_NO_LAZY_FETCH: '1',
        GIT_ALLOW_PROTOCOL: 'none',
        GIT_NO_REPLACE_OBJECTS: '1',
        GIT_EDITOR: 'false',
        GIT_AUTHOR_NAME: 'Countersign',
        GIT_AUTHOR_EMAIL: 'countersign@localhost',
        GIT_COMMITTER_NAME: 'Countersign',
        GIT_COMMITTER_EMAIL: 'countersign@localhost',
      },
    },
  );
  if (ran.status === 0) return ran.stdout.trim();
  throw new CliError(
    `git could not do it in ${workspace}: ${inert(ran.stderr.trim() || String(ran.error ?? ran.signal))}`,
  );
};

const toGit = (workspace: string, note: string): string => {
  const commit = git(workspace, ['rev-parse', '--verify', '--end-of-options', 'HEAD^{commit}']);
  git(workspace, ['notes', '--ref=refs/notes/countersign', 'append', '-F', '-', commit], note);
  return commit;
};

const toFile = (path: string, note: string): void => {
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND, 0o600);
  try {
    writeSync(file, `${note}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};

export const anchor: Verb = {
  name: 'anchor',
  about: 'Put the signed state of the log where nobody here can change it',
  help,
  async run(args) {
    const { values } = read(args, { git: { type: 'string' }, file: { type: 'string' }, line: { type: 'boolean' } });
    const chosen = [values.git, values.file, values.line].filter((each) => each !== undefined);
    if (chosen.length !== 1) throw usage('Name one of --git WORKSPACE, --file FILE, --line.');
    const control = await connected(values.state);
    try {
      const { size, root, checkpoint } = await control.client.call('log.checkpoint', {});
      const line = checkpointLine(checkpoint);
      let place = 'line';
      if (values.git !== undefined) place = `git ${toGit(resolve(values.git), checkpoint)}`;
      if (values.file !== undefined) {
        toFile(resolve(values.file), checkpoint);
        place = `file ${resolve(values.file)}`.slice(0, 200);
      }
      await control.client.call('log.checkpoint', { anchored: { size, place } });
      if (values.json === true) printJson({ size, root, checkpoint, place });
      else if (values.line === true) print(line);
      else print(`The log of ${size} receipts is anchored: ${inert(place)}.`);
      return exits.ok;
    } finally {
      await control.end();
    }
  },
};
