/** Package managers and how they are told to install, as data. Pure. */
import type { CommandReading } from '#protocol/events.ts';
import type { Word } from './sheet.ts';

interface Manager {
  /** First operand, or first two. */
  readonly verbs: string;
  /** Options with a value, so that the value is not taken for a verb or a package. */
  readonly values?: RegExp;
  readonly global?: RegExp;
  /** No code of a package runs while it is installed: by an option, or never. */
  readonly inert?: RegExp | true;
  /** Without a verb it installs, too. */
  readonly bare?: true;
}

const npmValues =
  /^(-C|-w|-F|--(prefix|registry|cache|cwd|dir|userconfig|globalconfig|workspace|filter|tag|omit|include|loglevel|location))$/;
const pipValues =
  /^(-[rceitdf]|--(target|prefix|root|index-url|extra-index-url|requirement|constraint|editable|find-links|cache-dir|python|src|no-binary|only-binary|platform))$/;
const ignored = /^--ignore-scripts(=true)?$/;
const js = { values: npmValues, global: /^(-g|--global|--location=global)$/, inert: ignored } as const;
const system = { global: /^/ } as const;

const managers: Readonly<Record<string, Manager>> = {
  npm: {
    ...js,
    verbs:
      'install i in ins inst insta instal isnt isnta isntal isntall add ci clean-install ic install-clean isntall-clean install-test it install-ci-test cit update up upgrade udpate rebuild rb link ln dedupe ddp init create innit',
  },
  pnpm: { ...js, verbs: 'install i add update up upgrade rebuild rb link ln import create install-test it' },
  yarn: {
    ...js,
    verbs: 'install add upgrade up upgrade-interactive global+add global+upgrade link create import',
    bare: true,
  },
  bun: { ...js, verbs: 'install i add a update link create' },
  pip: { verbs: 'install download wheel', values: pipValues, inert: /^--only-binary[= ]:all:$/ },
  pipx: { verbs: 'install inject upgrade upgrade-all reinstall', values: pipValues, global: /^/ },
  uv: { verbs: 'add sync lock pip+install pip+sync tool+install tool+upgrade', values: pipValues },
  poetry: { verbs: 'add install update' },
  pdm: { verbs: 'add install update sync' },
  cargo: {
    verbs: 'install add update fetch binstall',
    values: /^(-F|--(version|git|branch|tag|rev|path|root|index|registry|features))$/,
  },
  go: { verbs: 'install get mod+download mod+tidy', inert: true },
  gem: { verbs: 'install update', values: /^(-[vsi]|--(version|source|install-dir))$/ },
  bundle: { verbs: 'install add update' },
  brew: { ...system, verbs: 'install reinstall upgrade tap bundle' },
  'apt-get': { ...system, verbs: 'install upgrade dist-upgrade full-upgrade reinstall build-dep', values: /^-[ot]$/ },
  apk: { ...system, verbs: 'add upgrade fix' },
  dnf: { ...system, verbs: 'install upgrade update reinstall groupinstall localinstall in up' },
  pacman: { ...system, verbs: '' },
  dpkg: { ...system, verbs: '' },
  rpm: { ...system, verbs: '' },
  snap: { ...system, verbs: 'install refresh' },
  flatpak: { ...system, verbs: 'install update' },
  'nix-env': { ...system, verbs: '' },
  conda: { verbs: 'install create update', values: /^(-[ncp]|--(name|channel|prefix|file))$/ },
  composer: {
    verbs: 'install require update create-project global+require global+install global+update',
    values: /^(-d|--working-dir)$/,
    inert: /^--no-scripts$/,
  },
  deno: { verbs: 'install add cache', inert: true },
  luarocks: { verbs: 'install' },
  cpanm: { verbs: '' },
};
const same: Readonly<Record<string, string>> = {
  ...{ pip3: 'pip', pip2: 'pip', apt: 'apt-get', aptitude: 'apt-get', yum: 'dnf', microdnf: 'dnf', zypper: 'dnf' },
  ...{
    bundler: 'bundle',
    mamba: 'conda',
    micromamba: 'conda',
    yarnpkg: 'yarn',
    yay: 'pacman',
    paru: 'pacman',
    cpan: 'cpanm',
  },
};
/** Managers told by an option instead of a verb. */
const byOption: Readonly<Record<string, RegExp>> = {
  pacman: /^-[a-zA-Z]*[SU]/,
  dpkg: /^(-i|--install|--unpack)/,
  rpm: /^(-[a-zA-Z]*[iUF]|--install|--upgrade)/,
  'nix-env': /^(-i|--install|-u)/,
  cpanm: /^[^-]/,
};
const registryOption =
  /^(?:--registry|-i|--index-url|--extra-index-url|--index|-s|--source|--default-index)(?:=(.*))?$/;

/** What a package manager installs; null when it does something else. An unknown argument counts as a verb. */
export const installOf = (program: string, args: readonly Word[]): CommandReading['install'] | null => {
  const name = same[program] ?? program;
  const manager = Object.hasOwn(managers, name) ? managers[name] : undefined;
  if (manager === undefined) return null;
  const texts = args.map(({ value, source }) => value ?? source);
  const operands = texts.filter(
    (text, index) => !text.startsWith('-') && manager.values?.test(texts[index - 1] ?? '') !== true,
  );
  const option = byOption[name];
  const verbs = manager.verbs.split(' ');
  const [first = '', second = ''] = operands;
  const taken = option === undefined ? (verbs.includes(`${first}+${second}`) ? 2 : verbs.includes(first) ? 1 : 0) : 0;
  const isTold = option === undefined ? taken > 0 || args[0]?.value === null : texts.some((text) => option.test(text));
  const isInformation = texts.some((text) => /^(-v|--version|--help|-h)$/.test(text));
  if (!isTold && !(manager.bare === true && operands.length === 0 && !isInformation)) return null;
  const at = texts.findIndex((text) => registryOption.test(text));
  const registry = at === -1 ? undefined : (registryOption.exec(texts[at] ?? '')?.[1] ?? texts[at + 1]);
  const { inert } = manager;
  return {
    manager: name,
    packages: operands.slice(taken),
    ...(registry === undefined ? {} : { registry }),
    global: texts.some((text) => manager.global?.test(text) === true) || first === 'global',
    scripts:
      inert !== true &&
      !(
        inert !== undefined &&
        texts.some((text, index) => inert.test(text) || inert.test(`${texts[index - 1] ?? ''} ${text}`))
      ),
  };
};
