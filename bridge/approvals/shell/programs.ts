/**
 * What a program does by itself, from its name and arguments: paths, hosts, installs, deletions, and options that run
 * something else. The rule not to break: where a program can be told to run code, it is said, not guessed away. Pure.
 */
import { posix } from 'node:path';
import { noteGit } from './git.ts';
import { noteHosts } from './hosts.ts';
import { installOf } from './installs.ts';
import { notePaths, noteScript } from './paths.ts';
import { runsOthers } from './runners.ts';
import { systemFolders, word, wordSet, type Scope, type Sheet, type Word } from './sheet.ts';

const network = wordSet(
  'curl wget ssh scp sftp rsync nc ncat netcat socat telnet ftp lftp ping ping6 dig nslookup host whois traceroute mtr nmap ' +
    'http https xh aria2c lynx w3m links elinks gh glab hub aws gcloud gsutil az kubectl helm terraform ansible mosh ' +
    'npx bunx pnpx uvx psql mysql mongosh redis-cli yt-dlp rclone s3cmd ngrok cloudflared wscat websocat mail sendmail mutt',
);
const interpreters = wordSet('python python2 python3 node nodejs tsx ts-node deno bun ruby perl php lua Rscript');
/** Run what follows with the rights of another. */
export const privileges = wordSet('sudo doas su pkexec run0 runuser');

/** Builtins that evaluate text once more as arithmetic or as a name. */
const evaluators = wordSet(
  'let declare typeset local export readonly unset read test [ printf mapfile readarray getopts wait',
);

const isRecursive = (text: string | null): boolean =>
  text !== null && (/^-[a-zA-Z]*[rR]/.test(text) || (/^--r/.test(text) && '--recursive'.startsWith(text)));

const noteDeletion = (sheet: Sheet, name: string, texts: readonly (string | null)[], scope: Scope): void => {
  const isRecursiveDelete =
    (name === 'rm' && texts.some(isRecursive)) ||
    (name === 'find' && texts.includes('-delete')) ||
    (/^(rm|shred|unlink)$/.test(name) && scope.via.some((via) => /^(find|fd|xargs)$/.test(via))) ||
    (name === 'git' &&
      texts.includes('clean') &&
      texts.some((text) => text === null || /^(-[a-zA-Z]*[dfxX]|--force)/.test(text))) ||
    (name === 'rsync' && texts.some((text) => /^--(del|remove-source)/.test(text ?? ''))) ||
    name === 'rimraf';
  if (isRecursiveDelete) sheet.notes.add('recursive_delete');
};

/** Notes what a program does by itself. `scope` is where it runs; its own options may move it. */
export const noteProgram = (
  sheet: Sheet,
  called: string,
  args: readonly Word[],
  scope: Scope,
  isShell: boolean,
): void => {
  const name = posix.basename(called);
  const texts = args.map(({ value }) => value);
  if (called.includes('/') && !systemFolders.test(called)) noteScript(sheet, word(called), scope);
  if (interpreters.has(name)) {
    const at = args.findIndex(({ value }) => value !== null && !/^[-+]/.test(value) && value !== 'run');
    const hasCode = args.slice(0, at).some(({ value }) => /^(-\w*[ecmpr]|--\w)/.test(value ?? '-e'));
    if (args[at] !== undefined && !hasCode && /[/.]/.test(args[at].value ?? '')) noteScript(sheet, args[at], scope);
  }
  if (privileges.has(name)) sheet.notes.add('privileged');
  if (network.has(name)) sheet.notes.add('network');
  const why = runsOthers(name, args);
  if (why !== null) sheet.blind(why);
  if (isShell && evaluators.has(name))
    sheet.evaluates ||= args.some(({ value }) => value === null || /[[$`]/.test(value));
  if (isShell && /^(export|declare|typeset|local|readonly)$/.test(name))
    for (const { value, source } of args) {
      const variable = /^([A-Za-z_]\w*)\+?=/.exec(value ?? source)?.[1];
      if (variable !== undefined) sheet.assignment(variable);
    }
  if (name === 'git') noteGit(sheet, args, scope);
  noteDeletion(sheet, name, texts, scope);
  noteHosts(sheet, name, args);
  notePaths(sheet, name, args, scope);
  const install = installOf(name, args);
  if (install === null || install === undefined) return;
  sheet.installs(install);
  sheet.notes.add('network');
  if (install.global) sheet.notes.add('moves_target');
};
