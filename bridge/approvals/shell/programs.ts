/**
 * What a program does by itself, from its name and arguments: paths, hosts, installs, deletions, and options that run
 * something else. The rule not to break: where a program can be told to run code, it is said, not guessed away. Pure.
 */
import { posix } from 'node:path';
import { hostsInUrls, isPrivateHost } from './hosts.ts';
import { installOf } from './installs.ts';
import { word, type Scope, type Sheet, type Word } from './sheet.ts';

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

/** Every operand of these is a path. */
const filePrograms = words(
  'cat head tail less more rm rmdir mv cp ln touch mkdir chmod chown chgrp ls stat file wc tee truncate shred install ' +
    'unlink realpath readlink du diff cmp sort uniq cut nl od xxd hexdump strings sha1sum sha256sum sha512sum md5sum ' +
    'source . cd pushd zip unzip gzip gunzip zcat bzip2 xz tac rev base64 patch open xdg-open code vim vi nano emacs tree trash rimraf',
);
/** The first operand of these is a pattern or a program of their own, unless an option gives it. */
const patternFirst = words('grep egrep fgrep zgrep rg ag ack sed gsed awk gawk mawk nawk jq yq perl');
const textPrograms = words('echo printf true false : test [ expr seq yes sleep kill export unset set alias type hash');
const network = words(
  'curl wget ssh scp sftp rsync nc ncat netcat socat telnet ftp lftp ping ping6 dig nslookup host whois traceroute mtr nmap ' +
    'http https xh aria2c lynx w3m links elinks gh glab hub aws gcloud gsutil az kubectl helm terraform ansible mosh ' +
    'npx bunx pnpx uvx psql mysql mongosh redis-cli yt-dlp rclone s3cmd ngrok cloudflared wscat websocat mail sendmail mutt',
);
/** A word without a scheme is a host for these. */
const hostFirst = words(
  'curl wget ssh scp sftp rsync nc ncat netcat telnet ftp lftp ping ping6 dig nslookup host whois traceroute mtr nmap http https xh',
);
const interpreters = words('python python2 python3 node nodejs tsx ts-node deno bun ruby perl php lua Rscript');
/** Where a system keeps its programs; a path elsewhere is a program of its own. */
export const systemFolders = /^\/(usr\/(local\/)?)?s?bin\/[^/]+$/;
const privileges = words('sudo doas su pkexec run0 runuser');

const gitNetwork = words('clone fetch pull push ls-remote remote submodule archive');
const gitKnown = words(
  'add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap checkout cherry ' +
    'cherry-pick clean clone commit commit-graph config count-objects describe diff diff-files diff-index diff-tree ' +
    'fetch format-patch for-each-ref fsck gc grep hash-object help init log ls-files ls-remote ls-tree maintenance ' +
    'merge merge-base merge-file merge-tree mktree mv name-rev notes pack-refs prune pull push range-diff read-tree ' +
    'rebase reflog remote repack replace rerere reset restore rev-list rev-parse revert rm shortlog show show-branch ' +
    'show-ref sparse-checkout stage stash status submodule switch symbolic-ref tag update-index update-ref var ' +
    'verify-commit verify-tag version whatchanged worktree write-tree',
);
const harmlessGitSetting =
  /^(user\.(name|email)|color\.[\w.]+|core\.(quotepath|autocrlf|abbrev)|advice\.\w+|init\.defaultbranch|log\.\w+|diff\.(algorithm|renames)|pull\.(rebase|ff)|commit\.gpgsign|tag\.gpgsign)(=|$)/i;
/** Options of git itself, before the subcommand, and whether they have a value. */
const gitOptions =
  /^(-[pP]|--(version|help|html-path|man-path|info-path|paginate|no-pager|no-replace-objects|no-lazy-fetch|no-optional-locks|no-advice|bare|literal-pathspecs|glob-pathspecs|noglob-pathspecs|icase-pathspecs)|--(git-dir|work-tree|namespace|super-prefix)=.*)$/;
const gitValued = /^(-C|-c|--git-dir|--work-tree|--namespace|--super-prefix)$/;

/** Options by which a program runs another one, or code; also abbreviated. */
const runners: Readonly<Record<string, RegExp>> = {
  tar: /^(--(checkpoint-a|to-c|use-comp|rsh-c|new-vol|info-s|rmt)|-[a-zA-Z]*[IF])/,
  bsdtar: /^--use-comp/,
  rsync: /^(--(rsh|rsync-path)|-[a-zA-Z]*e)/,
  scp: /^-[a-zA-Z0-9]*[oSFD]/,
  sftp: /^-[a-zA-Z0-9]*[oSFDb]/,
  split: /^--fil/,
  sort: /^--compress-p/,
  rg: /^--(pre|hostname-bin)(=|$)/,
  zip: /^(-[a-zA-Z]*T|--unzip-c)/,
  less: /^\+/,
  more: /^\+/,
  man: /^(-[a-zA-Z]*[PH]|--(pager|html))/,
  wget: /^(--(use-ask|exec|config)|-e)/,
  curl: /^(-[a-zA-Z#]*K|--config)/,
  npm: /^--(script-shell|node-options|shell|git)(=|$)/,
  pnpm: /^--(script-shell|node-options|shell)(=|$)/,
  go: /^-?-(exec|toolexec|vettool|modcacherw)(=|$)/,
  cargo: /^--config(=|$)/,
  make: /^(--eval|-[a-zA-Z]*E|SHELL=|.*\$\()/,
  gmake: /^(--eval|-[a-zA-Z]*E|SHELL=|.*\$\()/,
  gdb: /^-?-(ex|iex|x|eval|command|init|batch)/,
  sqlite3: /^\s*\.|\n\s*\.|^-(cmd|init)/,
  psql: /\\!|\\copy|\\o|\\g|\bprogram\b/i,
  mysql: /\\!|\bsystem\b/,
  find: /^-f(print0?|printf|ls)$/,
  nmap: /^--(script|datadir)/,
  tcpdump: /^-[a-zA-Z]*z/,
  entr: /^/,
  at: /^/,
  batch: /^/,
  crontab: /^/,
  script: /^/,
  expect: /^/,
  ed: /^/,
  ex: /^/,
  nsenter: /^/,
  unshare: /^/,
  bwrap: /^/,
  firejail: /^/,
  screen: /^/,
  tmux: /^/,
};
const editors = /^(\+|-c|-S|-s|-u|--cmd|-e$|-E$|--eval|-f$|-l$|--load|--batch|--script|--funcall)/;
/** Builtins that change what later words mean. */
const meaning = words('alias fc bind complete compopt enable hash');
/** Builtins that evaluate text once more as arithmetic or as a name. */
const evaluators = words(
  'let declare typeset local export readonly unset read test [ printf mapfile readarray getopts wait',
);

const plainSed =
  /^(?:(?:\d+|\$|\/[^/\\]*\/)(?:,(?:[+~]?\d+|\$|\/[^/\\]*\/))?)?!?(?:[pdqQ=]|s([/|#,:])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpiI0-9]*)$/;
const riskyAwk = /\bsystem\b|\bgetline\b|\||>|@|\bclose\b|-f\b|^#!/;

const blindly = (name: string, args: readonly Word[]): string | null => {
  const texts = args.map(({ value }) => value);
  const runner = Object.hasOwn(runners, name) ? runners[name] : undefined;
  if (runner?.source === '^' || (runner !== undefined && texts.some((text) => text !== null && runner.test(text))))
    return `${name} can run other programs as it is called here.`;
  if (/^(g?vim?|nvim|view|emacs|ex)$/.test(name) && texts.some((text) => text === null || editors.test(text)))
    return `An option of ${name} can run commands.`;
  if (
    meaning.has(name) &&
    args.length > 0 &&
    !(name === 'hash' && !texts.some((text) => text === null || text.startsWith('-')))
  )
    return `${name} changes what later words mean.`;
  if (/^g?sed$/.test(name)) {
    const scripts = scriptsOf(texts);
    const isPlain = (text: string): boolean =>
      text.split(/;|\n/).every((part) => part.trim() === '' || plainSed.test(part.trim()));
    if (scripts === null || !scripts.every((text) => plainSed.test(text) || isPlain(text)))
      return 'A sed script can run programs and write files; this one is not read.';
  }
  if (/^[gmn]?awk$/.test(name)) {
    const first = texts.find(
      (text, index) => text === null || (!text.startsWith('-') && !/^-[vF]$/.test(texts[index - 1] ?? '')),
    );
    if (
      typeof first !== 'string' ||
      riskyAwk.test(first) ||
      texts.some((text) => text !== null && /^(-[fieEl]|--(file|exec|include|load|source))/.test(text))
    )
      return 'An awk program can run programs and write files; this one is not read.';
  }
  return null;
};

/** The scripts of a sed call; null when they come from a file or are not known. */
const scriptsOf = (texts: readonly (string | null)[]): string[] | null => {
  const given: string[] = [];
  let first: string | null | undefined;
  for (let at = 0; at < texts.length; at += 1) {
    const text = texts[at] ?? null;
    if (text === null) return null;
    if (/^(-[a-zA-Z]*e|--expression)$/.test(text)) {
      const next = texts[(at += 1)];
      if (typeof next !== 'string') return null;
      given.push(next);
    } else if (
      /^(-[nEriszu]+|-i[.~]\w*|--(quiet|silent|regexp-extended|in-place|null-data|debug|posix|sandbox))$/.test(text)
    )
      continue;
    else if (text.startsWith('-')) return null;
    else first ??= text;
  }
  return given.length > 0 ? given : typeof first === 'string' ? [first] : null;
};

/** Options that move the target: the letters and names whose value is a directory. `base` ones move relative paths, too. */
const movers: Readonly<Record<string, { readonly base?: RegExp; readonly other?: RegExp }>> = {
  git: { base: /^-C$/, other: /^--(git-dir|work-tree)$/ },
  make: { base: /^(-[a-zA-Z]*C|--directory)$/ },
  gmake: { base: /^(-[a-zA-Z]*C|--directory)$/ },
  ninja: { base: /^-C$/ },
  npm: { base: /^(-C|--prefix)$/, other: /^--(cache[a-z-]*|userconfig|globalconfig)$/ },
  pnpm: { base: /^(-C|--dir|--prefix)$/, other: /^--(store-dir|cache[a-z-]*|global-dir)$/ },
  yarn: { base: /^--cwd$/, other: /^--(cache[a-z-]*|global-folder|modules-folder|prefix)$/ },
  bun: { base: /^--cwd$/, other: /^--cache[a-z-]*$/ },
  pip: { other: /^(-t|--(target|prefix|root|cache-dir|src))$/ },
  uv: { base: /^(--directory|--project)$/, other: /^(--(target|prefix|cache-dir))$/ },
  cargo: { base: /^-C$/, other: /^--(manifest-path|target-dir|root)$/ },
  go: { base: /^-C$/, other: /^-o$/ },
  composer: { base: /^(-d|--working-dir)$/ },
  tar: { base: /^(-[a-zA-Z]*C|--directory)$/ },
  unzip: { other: /^-d$/ },
  cp: { other: /^(-[a-zA-Z]*t|--target-directory)$/ },
  mv: { other: /^(-[a-zA-Z]*t|--target-directory)$/ },
  ln: { other: /^(-[a-zA-Z]*t|--target-directory)$/ },
  install: { other: /^(-[a-zA-Z]*t|--target-directory)$/ },
  curl: { other: /^(-[a-zA-Z#]*o|--output|--output-dir)$/ },
  wget: { other: /^(-[a-zA-Z]*[OP]|--output-document|--directory-prefix)$/ },
  cmake: { other: /^(-[BS]|--install-prefix|--prefix|--build|--install)$/ },
  docker: { other: /^(-v|--volume|--mount)$/ },
};

/** Values of options like `-C dir`, `-Cdir`, `--dir=dir`, `--dir dir`. */
const valuesOf = (args: readonly Word[], names: RegExp | undefined): Word[] =>
  names === undefined
    ? []
    : args.flatMap((arg, index) => {
        const text = arg.value ?? arg.source;
        const next = args[index + 1];
        if (names.test(text)) return next === undefined ? [] : [next];
        const named = /^(--?[a-z][\w-]*)=/.exec(text)?.[1];
        if (named !== undefined && names.test(named)) return [part(arg, named.length + 1)];
        return /^-[A-Za-z]./.test(text) && !text.startsWith('--') && names.test(text.slice(0, 2)) ? [part(arg, 2)] : [];
      });

const part = ({ value, source }: Word, from: number): Word => ({
  value: value === null ? null : value.slice(from),
  source: source.slice(from),
});

const remoteNames = words('gh glab hub docker podman kubectl helm aws gcloud az rclone');
const isBareName = (text: string): boolean => !/^[~/.$]|\.[a-z]\w{0,4}$/i.test(text);
const looksLikePath = (text: string): boolean =>
  /^(~|\/|\.{1,2}(\/|$)|\$\{?\w+\}?\/)/.test(text) || (text.includes('/') && !/\s/.test(text));

/** Parts of an argument that may be paths: all of it, after `=`, `@` or `:`, and behind an option's letter. */
const pathParts = (arg: Word): Word[] => {
  const text = arg.value ?? arg.source;
  if (/[a-z]:\/\//i.test(text)) {
    const file = /^(?:.*[=@])?file:\/\/(?:localhost)?(\/.*)$/i.exec(text)?.[1];
    return file === undefined ? [] : [word(file)];
  }
  if (/^[\w.-]+@[\w.-]+:/.test(text)) return [];
  if (arg.value === null) return [part(arg, /^-{1,2}[\w-]+=/.exec(text)?.[0].length ?? 0)];
  const [, ...behind] = text.split(/[=:,]/);
  const isSplit = /^(-|@|\w+=|[^:]+:[/.~])/.test(text);
  const pieces = [
    isSplit ? text.replace(/^(-[A-Za-z](?=[/~.])|@)/, '') : text,
    ...behind,
    ...(isSplit ? [text.split(':')[0] ?? ''] : []),
  ];
  return [...new Set(pieces)]
    .filter((piece) => piece !== '' && !/^[-+@]/.test(piece) && !/^([^:]+:[/.~]|\w+=)/.test(piece))
    .map(word);
};

/** Arguments that may be paths: not a pattern, and of `find` not its expression. */
const operandsOf = (name: string, args: readonly Word[]): readonly Word[] => {
  if (name === 'find') {
    const end = args.findIndex(
      ({ value }) => value !== null && /^([-(!]|,$)/.test(value) && !/^-([HLPD]|O\d)$/.test(value),
    );
    const named = args.filter((_arg, index) =>
      /^-(newer\w*|samefile|files0-from|fprint\w*|fls)$/.test(args[index - 1]?.value ?? ''),
    );
    return [...args.slice(0, end === -1 ? undefined : end), ...named];
  }
  if (!patternFirst.has(name)) return args;
  const isOption = (arg: Word | undefined): boolean => arg?.value?.startsWith('-') === true;
  const isGiven = args.some(({ value }) => /^(-[a-zA-Z]*[ef]|--(regexp|file|expression))/.test(value ?? ''));
  const rest = args.filter(
    (_arg, index) => !/^(-[a-zA-Z]*e|--regexp|--expression)$/.test(args[index - 1]?.value ?? ''),
  );
  const first = isGiven ? -1 : rest.findIndex((arg) => !isOption(arg));
  return rest.filter((_arg, index) => index !== first);
};

const notePaths = (sheet: Sheet, name: string, args: readonly Word[], scope: Scope): void => {
  // What ssh is given is run on the other machine.
  if (textPrograms.has(name) || name === 'ssh') return;
  const isFiles = filePrograms.has(name) || name === 'find';
  // A slash alone does not make a path of a branch, a package or a resource.
  const isNamed = name === 'git' || remoteNames.has(name) || installOf(name, args) !== null;
  for (const arg of operandsOf(name, args))
    for (const piece of pathParts(arg)) {
      const text = (piece.value ?? piece.source).replace(/\/\.\.\.$/, '/');
      const isOperand = isFiles && piece.source === arg.source && !/^(-|\d+$|…$)/.test(text);
      if (
        isOperand ||
        (looksLikePath(text) && !(isNamed && isBareName(text))) ||
        (patternFirst.has(name) && /^[\w-]+\.\w+$/.test(text))
      )
        sheet.path(piece, scope);
      // Without a slash a word may be a file all the same; it is listed where that would matter.
      else if (/^(secret|agent_config)$/.test(sheet.placeOf(piece, scope))) sheet.path(piece, scope);
    }
};

/** Options of `curl` and its kind whose value is no host. */
const takesText =
  /^(-[a-zA-Z#]*[AbcCdDeEFHimoOPQrtTuUwWXyYzZ]|--(output|header|data[a-z-]*|json|request|user-agent|referer|user|cookie|cookie-jar|form|upload-file|max-time|write-out|retry|range|cert|key|cacert|output-dir|output-document))$/;

const noteHosts = (sheet: Sheet, name: string, args: readonly Word[]): void => {
  const found = args.flatMap(({ value, source }) => hostsInUrls(value ?? source));
  if (name === 'git')
    for (const { value } of args) {
      const host = /^(?:[\w.-]+@)([\w.-]+):(?!\/\/)/.exec(value ?? '')?.[1];
      if (host !== undefined) found.push(host);
    }
  if (hostFirst.has(name))
    for (const [index, { value }] of args.entries()) {
      if (value === null || /^-|:\/\/|\s/.test(value) || takesText.test(args[index - 1]?.value ?? '')) continue;
      const remote = /^(?:[^@/\s]+@)?(\[[^\]]+\]|[\w.-]+):/.exec(value)?.[1];
      const bare =
        /^(?:[^@/\s]+@)?((?:[\w-]+\.)+[\w-]+|localhost|\d+|0x[0-9a-f]+|[0-9a-f]*:[0-9a-f:]+)(?=[:/?]|$)/i.exec(
          value,
        )?.[1];
      const host = /^(scp|rsync|sftp)$/.test(name) ? remote : (bare ?? remote);
      if (host !== undefined && !(/^\d+$/.test(host) && Number(host) < 65_536)) found.push(host);
    }
  if (/^(psql|mysql|mysqldump|redis-cli|mongosh)$/.test(name))
    for (const { value } of valuesOf(args, /^(-h|--host)$/)) if (value !== null) found.push(value);
  for (const host of found) noteHost(sheet, host);
};

export const noteHost = (sheet: Sheet, host: string): void => {
  const name = host.replace(/^\[|\]$/g, '');
  if (name === '') return;
  sheet.host(name);
  sheet.notes.add('network');
  if (isPrivateHost(name)) sheet.notes.add('private_host');
};

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

/** git: its own options, settings that run programs, subcommands that are none of git's. Answers the subcommand. */
const noteGit = (sheet: Sheet, args: readonly Word[], scope: Scope): void => {
  let at = 0;
  for (; at < args.length; at += 1) {
    const text = args[at]?.value ?? null;
    if (text === null || !text.startsWith('-')) break;
    if (gitValued.test(text)) {
      const value = args[(at += 1)]?.value ?? '';
      if (text === '-c' && !harmlessGitSetting.test(value))
        sheet.blind('A setting of git given with -c can run a program.');
    } else if (!gitOptions.test(text)) return sheet.blind(`git may run another program with ${text}.`);
  }
  const rest = args.slice(at + 1).map(({ value }) => value);
  const verb = args[at]?.value;
  if (verb === undefined) return;
  if (verb === null || !gitKnown.has(verb))
    sheet.blind('This is no subcommand of git that is known here; it may be an alias that runs anything.');
  if (
    rest.some(
      (text) =>
        text !== null &&
        /^(--(upload-pack|receive-pack|exec|extcmd|open-files-in-pager|ext-diff|textconv)\b|ext::)|^-O/.test(text),
    ) ||
    (verb === 'rebase' && rest.some((text) => /^-x/.test(text ?? ''))) ||
    (/^(clone|fetch|pull|ls-remote)$/.test(verb ?? '') && rest.includes('-u')) ||
    (verb === 'clone' && rest.some((text) => /^(-c|--config|--template)/.test(text ?? ''))) ||
    /^(filter-branch|difftool|mergetool|hook)$/.test(verb ?? '')
  )
    sheet.blind('An option of git can run another program here.');
  if (gitNetwork.has(verb ?? '') && !(verb === 'remote' && (rest.length === 0 || rest[0] === '-v')))
    sheet.notes.add('network');
  const isReading = rest.length === 1 || rest.some((text) => /^(-l|--list|--get|get$|list$)/.test(text ?? ''));
  if (verb !== 'config' || isReading) return;
  if (rest.some((text) => /^--(global|system)$/.test(text ?? ''))) {
    sheet.path({ value: null, source: '~/.gitconfig' }, scope);
    sheet.notes.add('moves_target');
  } else sheet.path(word('.git/config'), scope);
};

/** The side of a mount that is on this machine. */
const mounted = ({ value, source }: Word): Word => ({
  value: value?.split(':')[0] ?? null,
  source: source.split(':')[0] ?? '',
});

/** A file that is run: where it lies matters. */
export const noteScript = (sheet: Sheet, file: Word, scope: Scope): void => {
  const place = sheet.path(file, scope);
  if (place !== 'outside' && place !== 'unknown') sheet.notes.add('program_in_workspace');
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
  const why = blindly(name, args);
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
  const mover = movers[/^pip[23]?$/.test(name) ? 'pip' : name === 'podman' ? 'docker' : name];
  const bases = valuesOf(args, mover?.base);
  for (const target of [...bases, ...valuesOf(args, mover?.other)])
    if (sheet.path(name === 'docker' || name === 'podman' ? mounted(target) : target, scope) !== 'inside')
      sheet.notes.add('moves_target');
  const cwds = bases.reduce(
    (from: readonly (string | null)[], { value }) =>
      from.map((cwd) => (value === null || cwd === null ? null : posix.resolve(cwd, value))),
    scope.cwds,
  );
  const moving = [mover?.base, mover?.other].filter((names) => names !== undefined);
  const others = args.filter(({ value }, index) => {
    const [before, own] = [args[index - 1]?.value ?? '', /^--?[\w-]+(?==)/.exec(value ?? '')?.[0] ?? ''];
    return !moving.some((names) => names.test(before) || names.test(own));
  });
  notePaths(sheet, name, others, { ...scope, cwds });
  const install = installOf(name, args);
  if (install === null || install === undefined) return;
  sheet.installs(install);
  sheet.notes.add('network');
  if (install.global) sheet.notes.add('moves_target');
};
