/**
 * Programs that run what they are given: for each, where the inner command is. The rule not to break: `blind`
 * unless it is certain what would run. The table is data about programs; `reading.ts` walks what it answers. Pure.
 */
import { isSet, split, valueOf, type Grammar } from './options.ts';
import { unknownWord, word, type Word } from './sheet.ts';

/** Which shell reads a text; `other` has its own language in parts. */
export type Dialect = 'bash' | 'posix' | 'other';
export type Inner =
  | {
      readonly is: 'argv';
      readonly words: readonly Word[];
      readonly cwd?: Word | undefined;
      readonly elsewhere?: boolean;
      /** The first word is a file that is run, with or without a slash. */
      readonly script?: boolean;
    }
  | { readonly is: 'text'; readonly text: Word; readonly dialect: Dialect; readonly elsewhere?: boolean }
  | { readonly is: 'blind'; readonly why: string }
  /** The program acts for itself, too. */
  | { readonly is: 'self' }
  | { readonly is: 'assignment'; readonly name: string }
  | { readonly is: 'fetch'; readonly package: string }
  | { readonly is: 'host'; readonly name: string };
export type Trampoline = (args: readonly Word[], name: string) => readonly Inner[];

const blind = (why: string): Inner => ({ is: 'blind', why });
const unclear = (name: string): readonly Inner[] => [
  { is: 'self' },
  blind(`Which command ${name} runs cannot be told from its arguments.`),
];
const self: readonly Inner[] = [{ is: 'self' }];
const isCertain = (words: readonly Word[], count: number): boolean =>
  words.slice(0, count).every(({ value }) => value !== null);

/** Words put into one line, as `ssh`, `watch` and `eval` do. */
const line = (words: readonly Word[]): Word =>
  words.every(({ value }) => value !== null)
    ? word(words.map(({ value }) => value).join(' '))
    : { value: null, source: words.map(({ source }) => source).join(' ') };

const assignmentName = (text: string | null): string | null => /^([A-Za-z_]\w*)\+?=/.exec(text ?? '')?.[1] ?? null;

/** `NAME=value … command`, after the options of `env` and `sudo`. */
const withAssignments = (rest: readonly Word[], cwd?: Word): readonly Inner[] => {
  const names: Inner[] = [];
  let at = 0;
  for (; at < rest.length; at += 1) {
    const text = rest[at]?.value ?? null;
    if (text === null || !text.includes('=')) break;
    // env takes any name; a path before the sign is still a variable for it.
    names.push({ is: 'assignment', name: assignmentName(text) ?? text.slice(0, text.indexOf('=')) });
  }
  if (at === rest.length) return [...names, { is: 'self' }];
  return [...names, { is: 'argv', words: rest.slice(at), cwd }];
};

/** A command after options and so many operands of its own. */
const prefix =
  (grammar: Grammar, operands = 0): Trampoline =>
  (args, name) => {
    const found = split(args, grammar);
    if (found === null || !isCertain(found.rest, operands)) return unclear(name);
    const words = found.rest.slice(operands);
    return words.length === 0
      ? self
      : [{ is: 'argv', words, cwd: valueOf(found.options, 'chdir', 'working-directory') }];
  };

const env: Trampoline = (args) => {
  const grammar: Grammar = {
    flags: 'iv0',
    values: 'uCSa',
    longFlags: 'ignore-environment null debug block-signal default-signal ignore-signal list-signal-handling',
    longValues: 'unset chdir split-string argv0',
    odd: /^-$/,
  };
  const found = split(args, grammar);
  if (found === null) return unclear('env');
  const string = valueOf(found.options, 'S', 'split-string')?.value;
  const cwd = valueOf(found.options, 'C', 'chdir');
  if (string === undefined || string === null) return withAssignments(found.rest, cwd);
  if (/[\\$'"#]/.test(string)) return unclear('env');
  const again = split([...string.split(/\s+/).filter(Boolean).map(word), ...found.rest], grammar);
  return again === null || isSet(again.options, 'S', 'split-string')
    ? unclear('env')
    : withAssignments(again.rest, cwd);
};

const sudo: Trampoline = (args, name) => {
  const found = split(args, {
    flags: 'AbBEHiKklnNPSsVv',
    values: 'CDghpRrtTUu',
    longFlags:
      'askpass background bell preserve-env set-home login list non-interactive preserve-groups stdin shell version validate',
    longValues: 'chdir close-from group host prompt chroot role type command-timeout other-user user',
  });
  if (found === null) return unclear(name);
  if (!isSet(found.options, 'i', 's', 'login', 'shell'))
    return withAssignments(found.rest, valueOf(found.options, 'D', 'chdir'));
  if (found.rest.length === 0) return [{ is: 'self' }, blind('Starts a shell that reads its commands from elsewhere.')];
  // The shell it starts expands `$` once more.
  return isCertain(found.rest, Infinity) && !line(found.rest).value?.includes('$')
    ? [{ is: 'argv', words: found.rest }]
    : unclear(name);
};

const dialects: Readonly<Record<string, Dialect>> = {
  ...{ bash: 'bash', sh: 'posix', dash: 'posix', ash: 'posix', zsh: 'other', ksh: 'other', mksh: 'other' },
};
const shell: Trampoline = (args, name) => {
  const found = split(args, {
    flags: 'abcefhiklmnprstuvxBCDEHPT',
    values: 'oO',
    longFlags: 'login noprofile norc posix verbose restricted noediting debugger',
    longValues: 'rcfile init-file',
    odd: /^\+[a-zA-Z]$/,
  });
  if (found === null) return unclear(name);
  const [first] = found.rest;
  const startUp: Inner[] = isSet(found.options, 'rcfile', 'init-file') ? [blind(`${name} reads a start-up file.`)] : [];
  if (isSet(found.options, 'c') && first !== undefined)
    return [...startUp, { is: 'text', text: first, dialect: dialects[name] ?? 'other' }];
  if (first === undefined || isSet(found.options, 's'))
    return [{ is: 'self' }, blind(`${name} reads its commands from its input.`)];
  return [...startUp, { is: 'argv', words: found.rest, script: true }];
};

/** Shells whose language is not ours. */
const foreignShell: Trampoline = (_args, name) => [{ is: 'self' }, blind(`The language of ${name} is not read here.`)];

const su: Trampoline = (args, name) => {
  const found = split(
    args.filter(({ value }) => value !== '-'),
    {
      flags: 'lfmpP',
      values: 'cgGsw',
      longFlags: 'login fast preserve-environment pty',
      longValues: 'command group supp-group shell whitelist-environment session-command',
    },
  );
  // Options may come after the name of the user.
  const at = args.findIndex(({ value }) => value === '-c' || value === '--command');
  const text =
    found === null ? undefined : (valueOf(found.options, 'c', 'command') ?? (at === -1 ? undefined : args[at + 1]));
  if (text === undefined)
    return [{ is: 'self' }, blind(`${name} starts a shell that reads its commands from elsewhere.`)];
  return [{ is: 'text', text, dialect: 'posix' }];
};

const xargs: Trampoline = (args) => {
  const found = split(args, {
    flags: '0oprtx',
    values: 'adEILnPs',
    attached: 'eil',
    longFlags: 'null open-tty interactive no-run-if-empty show-limits verbose exit replace max-lines eof',
    longValues: 'arg-file delimiter max-args max-procs max-chars process-slot-var',
  });
  if (found === null) return unclear('xargs');
  if (found.rest.length === 0) return self;
  const replaced = isSet(found.options, 'i', 'replace', 'I')
    ? (valueOf(found.options, 'I', 'i', 'replace')?.value ?? '') || '{}'
    : null;
  const words = found.rest.map((each) =>
    replaced !== null && each.value?.includes(replaced) === true ? { value: null, source: each.source } : each,
  );
  return [{ is: 'argv', words: replaced === null ? [...words, unknownWord] : words }];
};

const find: Trampoline = (args) => {
  const found: Inner[] = [{ is: 'self' }];
  for (let at = 0; at < args.length; at += 1) {
    if (!/^-(exec|execdir|ok|okdir)$/.test(args[at]?.value ?? '')) continue;
    const rest = args.slice(at + 1);
    const end = rest.findIndex(
      ({ value }, index) => value === ';' || (value === '+' && rest[index - 1]?.value === '{}'),
    );
    if (end < 1) return [...found, ...unclear('find').slice(1)];
    const words = rest.slice(0, end);
    found.push({ is: 'argv', words: words.map((each) => (each.value?.includes('{}') ? unknownWord : each)) });
    at += end + 1;
  }
  // An argument that is not known may be `-exec` as well.
  return args.some(({ value }) => value === null) ? [...found, ...unclear('find').slice(1)] : found;
};

const fd: Trampoline = (args) => {
  const at = args.findIndex(({ value }) => /^(-x|-X|--exec|--exec-batch)$/.test(value ?? ''));
  if (at === -1)
    return args.some(({ value }) => value !== null && /^(-[a-zA-Z]*[xX]|--exec)/.test(value)) ? unclear('fd') : self;
  const words = args.slice(at + 1).map((each) => (/\{[^}]*\}/.test(each.value ?? '') ? unknownWord : each));
  return [{ is: 'self' }, { is: 'argv', words: [...words, unknownWord] }];
};

/** `npx`, `pnpm dlx`, `uvx` …: a package from a registry, run at once. */
const fetched =
  (grammar: Grammar): Trampoline =>
  (args, name) => {
    const found = split(args, grammar);
    if (found === null) return unclear(name);
    const packages = found.options
      .filter((option) => ['p', 'package', 'from', 'with', 'spec'].includes(option.name))
      .map((option): Inner => ({ is: 'fetch', package: option.value?.value ?? '' }));
    const text = valueOf(found.options, 'c', 'call');
    if (text !== undefined) return [...packages, { is: 'text', text, dialect: 'posix' }];
    const [first] = found.rest;
    if (first === undefined) return self;
    if (first.value === null) return unclear(name);
    return [
      ...(packages.length > 0 ? packages : [{ is: 'fetch', package: first.value } as const]),
      { is: 'argv', words: found.rest },
    ];
  };
const npx = fetched({
  flags: 'yq',
  values: 'pc',
  longFlags: 'yes no no-install quiet silent ignore-scripts workspaces prefer-offline offline bun',
  longValues: 'package call registry prefix cache userconfig workspace',
});
const uvx = fetched({
  flags: 'qv',
  values: 'p',
  longFlags: 'isolated offline quiet no-cache',
  longValues: 'from with python spec',
});

/** Trampolines by their first words: `pnpm dlx`, `docker exec`, `git bisect run`. Anything else is the program itself. */
const subcommands =
  (table: Readonly<Record<string, Trampoline>>): Trampoline =>
  (args, name) => {
    for (const [verbs, trampoline] of Object.entries(table)) {
      const parts = verbs.split(' ');
      if (parts.every((part, index) => args[index]?.value === part))
        return trampoline(args.slice(parts.length), `${name} ${verbs}`);
    }
    return self;
  };

const ssh: Trampoline = (args, name) => {
  const found = split(args, { flags: '1246AaCfGgKkMNnqsTtVvXxYy', values: 'BbcDEeFIiJLlmOopQRSWw' });
  if (found === null) return unclear(name);
  const local = found.options
    .filter(
      ({ name: letter, value }) =>
        letter === 'F' || (letter === 'o' && /command|include|match|pkcs11/i.test(value?.value ?? '')),
    )
    .map(() => blind('An option of ssh can run a program on this machine.'));
  const destination = found.rest[0]?.value;
  if (destination === undefined || destination === null) return [...unclear(name), ...local];
  // Behind the destination options may go on.
  const remote = split(found.rest.slice(1), { flags: '46AaCfGgKkMNnqsTtVvXxYy', values: 'bcDEeFIiJLlmOopQRSWw' });
  if (remote === null) return [...unclear(name), ...local];
  const host = destination
    .replace(/^ssh:\/\//, '')
    .replace(/^[^@]*@/, '')
    .replace(/(?<=[^:]):\d+$/, '');
  const inner: Inner[] =
    remote.rest.length === 0 ? [] : [{ is: 'text', text: line(remote.rest), dialect: 'posix', elsewhere: true }];
  return [{ is: 'self' }, { is: 'host', name: host }, ...local, ...inner];
};

const container =
  (values: string, longFlags: string, longValues: string): Trampoline =>
  (args, name) => {
    const found = split(args, { flags: 'ditPTq', values, longFlags, longValues });
    if (found === null || typeof found.rest[0]?.value !== 'string') return unclear(name);
    const words = found.rest.slice(1);
    return [{ is: 'self' }, ...(words.length === 0 ? [] : [{ is: 'argv', words, elsewhere: true } as const])];
  };
const exec = container(
  'euwn',
  'detach interactive tty privileged no-TTY',
  'env user workdir env-file index container namespace',
);
const run = container(
  'aceghlmpuvw',
  'detach interactive tty rm init privileged publish-all read-only no-TTY no-deps build quiet',
  'name env env-file user workdir volume mount publish network net entrypoint memory cpus platform pull label hostname add-host device cap-add cap-drop security-opt shm-size tmpfs userns ulimit gpus',
);
const docker = subcommands({
  ...{ exec, run, 'container exec': exec, 'container run': run, 'compose exec': exec, 'compose run': run },
});
const kubectl = subcommands({
  exec: (args, name) => {
    const at = args.findIndex(({ value }) => value === '--');
    return at === -1 ? unclear(name) : [{ is: 'self' }, { is: 'argv', words: args.slice(at + 1), elsewhere: true }];
  },
});

const text =
  (grammar: Grammar, operands = 0): Trampoline =>
  (args, name) => {
    const found = split(args, grammar);
    if (found === null || !isCertain(found.rest, operands)) return unclear(name);
    const words = found.rest.slice(operands);
    if (words.length === 0) return self;
    return isSet(found.options, 'x', 'exec') && name === 'watch'
      ? [{ is: 'argv', words }]
      : [{ is: 'text', text: line(words), dialect: 'posix' }];
  };

const parallel: Trampoline = (args, name) => {
  const found = split(args, {
    flags: 'kqtuvX0m',
    values: 'jnNIL',
    longFlags: 'keep-order dry-run verbose bar progress null xargs will-cite ungroup line-buffer tag',
    longValues: 'jobs max-args delay timeout retries joblog results halt',
  });
  const end = found?.rest.findIndex(({ value }) => /^:{3,4}\+?$/.test(value ?? '')) ?? -1;
  const words = found === null || end === -1 ? (found?.rest ?? []) : found.rest.slice(0, end);
  if (words.length === 0 || words.some(({ value }) => value === null || /\{|\$|`/.test(value))) return unclear(name);
  return [{ is: 'text', text: word(`${line(words).value ?? ''} "$1"`), dialect: 'posix' }];
};

/** A language that is not read here: its code, wherever one of these options gives it. */
const language =
  (name: string, code: RegExp): Trampoline =>
  (args) => {
    const first = args.findIndex(
      ({ value }) => value === null || !value.startsWith('-') || value === '-' || value === '--',
    );
    const options = first === -1 ? args : args.slice(0, first + 1);
    if (options.some(({ value }) => value !== null && code.test(value)))
      return [{ is: 'self' }, blind(`${name} code on the command line is not read.`)];
    if (first === -1 || args[first]?.value === '-')
      return args.some(({ value }) => /^(-V|-v|-h|--version|--help|--test)$/.test(value ?? ''))
        ? self
        : [{ is: 'self' }, blind(`${name} reads its code from its input or from options.`)];
    return args[first]?.value === null
      ? [{ is: 'self' }, blind(`Which ${name} code runs is only known when it runs.`)]
      : self;
  };
const python: Trampoline = (args, name) => {
  const at = args.findIndex(({ value }) => value === null || !/^-[bBdEiIOqsSuvxPm]+$/.test(value));
  const isModule = args.slice(0, at === -1 ? undefined : at).some(({ value }) => value?.endsWith('m') === true);
  const module = args[at]?.value;
  if (isModule && typeof module === 'string')
    return /^(pip|pipx|uv|poetry)$/.test(module) ? [{ is: 'argv', words: args.slice(at) }] : self;
  return language('Python', /^-[a-zA-Z]*c/)(args, name);
};
const node = language(
  'JavaScript',
  /^(-[a-z]*[epr]|--(eval|print|require|import|loader|experimental-loader|env-file)(=|$))/,
);

const evaluate: Trampoline = (args) => [
  { is: 'text', text: line(args[0]?.value === '--' ? args.slice(1) : args), dialect: 'bash' },
];
const sourced: Trampoline = (args, name) =>
  args[0] === undefined
    ? self
    : args[0].value === null
      ? [{ is: 'self' }, blind(`Which file ${name} reads commands from is only known when it runs.`)]
      : [{ is: 'argv', words: args, script: true }];
const command: Trampoline = (args, name) => {
  const found = split(args, { flags: 'pvV' });
  if (found === null) return unclear(name);
  return isSet(found.options, 'v', 'V') || found.rest.length === 0 ? self : [{ is: 'argv', words: found.rest }];
};
const trap: Trampoline = (args) => {
  const rest = args[0]?.value === '--' ? args.slice(1) : args;
  if (rest.length < 2 || /^-[lp]*$/.test(rest[0]?.value ?? '') || rest[0]?.value === '') return self;
  return [{ is: 'text', text: rest[0] ?? unknownWord, dialect: 'bash' }];
};
const flock: Trampoline = (args, name) => {
  const found = split(args, {
    flags: 'sxenouFv',
    values: 'wE',
    longFlags: 'shared exclusive nonblock nb unlock close no-fork verbose',
    longValues: 'timeout wait conflict-exit-code',
  });
  const [, second, third] = found?.rest ?? [];
  if (found === null || typeof found.rest[0]?.value !== 'string') return unclear(name);
  if (second?.value === '-c' || second?.value === '--command')
    return third === undefined ? unclear(name) : [{ is: 'text', text: third, dialect: 'posix' }];
  return second === undefined ? self : [{ is: 'argv', words: found.rest.slice(1) }];
};

const plain = prefix({});
const trace = prefix({
  flags: 'CcdfFhiknqrtTvVwxyYzZ',
  values: 'aAbeEIoOpPsSuUX',
  longFlags: 'follow-forks',
  longValues: 'trace output',
});

export const trampolines: Readonly<Record<string, Trampoline>> = {
  ...{
    env,
    sudo,
    su,
    runuser: su,
    xargs,
    find,
    fd,
    fdfind: fd,
    ssh,
    docker,
    podman: docker,
    kubectl,
    parallel,
    flock,
    trap,
  },
  ...{ bash: shell, sh: shell, dash: shell, ash: shell, zsh: shell, ksh: shell, mksh: shell, rbash: shell },
  ...{
    fish: foreignShell,
    csh: foreignShell,
    tcsh: foreignShell,
    pwsh: foreignShell,
    powershell: foreignShell,
    cmd: foreignShell,
    nu: foreignShell,
    elvish: foreignShell,
  },
  ...{
    eval: evaluate,
    source: sourced,
    '.': sourced,
    command,
    builtin: plain,
    nocorrect: plain,
    noglob: plain,
    '-': plain,
  },
  doas: prefix({ flags: 'Lns', values: 'aCu' }),
  pkexec: prefix({ longFlags: 'disable-internal-agent', longValues: 'user' }),
  exec: prefix({ flags: 'cl', values: 'a' }),
  nohup: plain,
  nice: prefix({ values: 'n', longValues: 'adjustment', odd: /^-\d+$/ }),
  ionice: prefix({ flags: 't', values: 'cn', longFlags: 'ignore', longValues: 'class classdata' }),
  timeout: prefix(
    { flags: 'v', values: 'ks', longFlags: 'foreground preserve-status verbose', longValues: 'kill-after signal' },
    1,
  ),
  time: prefix({
    flags: 'apvq',
    values: 'fo',
    longFlags: 'append portability verbose quiet',
    longValues: 'format output',
  }),
  stdbuf: prefix({ values: 'ioe', longValues: 'input output error' }),
  setsid: prefix({ flags: 'cfw', longFlags: 'ctty fork wait' }),
  chroot: (args, name) => {
    const found = split(args, { longValues: 'userspec groups', longFlags: 'skip-chdir' });
    return found === null || found.rest.length === 0
      ? unclear(name)
      : [{ is: 'self' }, { is: 'argv', words: found.rest.slice(1), elsewhere: true }];
  },
  chrt: prefix({ flags: 'abfiormv' }, 1),
  taskset: prefix({ flags: 'a' }, 1),
  repeat: prefix({}, 1),
  unbuffer: prefix({ flags: 'p' }),
  'systemd-run': prefix({
    flags: 'tPqdGrS',
    values: 'pEuM',
    longFlags: 'user scope pty pipe quiet wait collect',
    longValues: 'unit property setenv uid gid working-directory slice',
  }),
  strace: trace,
  ltrace: trace,
  watch: text({
    flags: 'bcdegptwx',
    values: 'nq',
    longFlags: 'beep color differences errexit chgexit precise no-title exec no-wrap',
    longValues: 'interval equexit',
  }),
  ...{ npx, bunx: npx, pnpx: npx, uvx },
  npm: subcommands({ exec: npx, x: npx }),
  pnpm: subcommands({ dlx: npx, exec: plain }),
  yarn: subcommands({ dlx: npx, exec: plain }),
  bun: subcommands({ x: npx }),
  uv: subcommands({
    'tool run': uvx,
    run: prefix({ flags: 'qv', longFlags: 'isolated offline frozen locked no-sync', longValues: 'python' }),
  }),
  pipx: subcommands({ run: uvx }),
  corepack: plain,
  busybox: (args, name) =>
    args.length === 0 ? self : args[0]?.value === null ? unclear(name) : [{ is: 'argv', words: args }],
  ...{ python, python2: python, python3: python, node, nodejs: node, tsx: node, 'ts-node': node },
  perl: language('Perl', /^-[a-zA-Z0-9]*[eEMmd]/),
  ruby: language('Ruby', /^-[a-zA-Z]*[er]/),
  php: language('PHP', /^-[rBREd]/),
  lua: language('Lua', /^-[el]/),
  Rscript: language('R', /^-e/),
  osascript: language('AppleScript', /^-[el]/),
  deno: subcommands({ eval: () => [{ is: 'self' }, blind('JavaScript code on the command line is not read.')] }),
  git: subcommands({
    'bisect run': plain,
    'submodule foreach': (args) => [
      { is: 'self' },
      {
        is: 'text',
        text: line(args.filter(({ value }) => value !== '--recursive' && value !== '--quiet')),
        dialect: 'posix',
      },
    ],
  }),
};
