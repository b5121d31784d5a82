/**
 * Programs that run what they are given: for each, where the inner command is. The rule not to break: `blind`
 * unless it is certain what would run. The table is data about programs; `reader.ts` walks what it answers. Pure.
 */
import { docker, kubectl, ssh } from './elsewhere.ts';
import {
  blind,
  isCertain,
  line,
  prefix,
  self,
  subcommands,
  unclear,
  type Dialect,
  type Inner,
  type Trampoline,
} from './inner.ts';
import { language, node, npx, python, uvx } from './languages.ts';
import { isSet, split, valueOf, type Grammar } from './options.ts';
import { unknownWord, word, type Word } from './sheet.ts';

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

const fd: Trampoline = (args, name) =>
  args.some(({ value }) => value === null || /^(-[a-zA-Z]*[xX]|--exec)/.test(value)) ? unclear(name) : self;

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
const plain = prefix({});
/** Run other programs in ways that are not read here: when told to, later, elsewhere, or from a file. */
const opaque =
  'parallel flock chroot chrt taskset ionice unbuffer systemd-run strace ltrace gdbserver entr at batch crontab script ' +
  'expect ed ex nsenter unshare bwrap firejail screen tmux xvfb-run fakeroot proot dbus-run-session torsocks proxychains';

export const trampolines: Readonly<Record<string, Trampoline>> = {
  ...Object.fromEntries(opaque.split(' ').map((name) => [name, (): readonly Inner[] => unclear(name)])),
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
  repeat: prefix({}, 1),
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
