/**
 * What has been found out about one command so far, with every bound of its event (`commandReading`) kept while it is
 * written. The rule not to break: what does not fit is said as uninspectable, never left out in silence.
 * Written by the files beside it, made into the answer by `reading.ts`. No I/O.
 */
import { posix } from 'node:path';
import type { ApprovalFacts, CommandReading } from '#protocol/events.ts';
import { visible } from '../inert.ts';

export type Place = ApprovalFacts['paths'][number]['place'];
/** Notes about a command that become risks of the same code (`facts.ts`). */
export type Note =
  | 'redirect_outside'
  | 'recursive_delete'
  | 'network'
  | 'private_host'
  | 'privileged'
  | 'moves_target'
  | 'program_in_workspace'
  | 'environment';

/** A word of a command: its value, or null where only the shell would know it, and how it is written. */
export interface Word {
  readonly value: string | null;
  readonly source: string;
}
export const wordSet = (text: string): ReadonlySet<string> => new Set(text.split(' '));
export const word = (value: string): Word => ({ value, source: value });
/** Stands for arguments that a program adds by itself (`xargs`, `find -exec`). */
export const unknownWord: Word = { value: null, source: '…' };

/**
 * Where a part of a command runs. `cwds` are the directories it may run in, null for one that is not known;
 * `elsewhere` is another machine or a container, whose paths are not ours.
 */
export interface Scope {
  cwds: readonly (string | null)[];
  readonly via: readonly string[];
  readonly elsewhere: boolean;
  readonly depth: number;
}

/** Ends a reading that grew beyond its bounds; caught in `reading.ts`, never seen outside. */
export class TooMuch extends Error {}

type Install = NonNullable<CommandReading['install']>;
type Redirection = CommandReading['redirections'][number];

const worstFirst: readonly Place[] = ['secret', 'agent_config', 'outside', 'unknown', 'inside'];
const worst = (places: readonly Place[]): Place => worstFirst.find((place) => places.includes(place)) ?? 'unknown';

/** As the schema of the event has it. */
const most = {
  programs: 100,
  args: 200,
  argUnits: 4000,
  nameUnits: 1000,
  operators: 200,
  redirections: 100,
  substitutions: 50,
  assignments: 100,
  hosts: 50,
  paths: 200,
  packages: 100,
  sentences: 20,
} as const;

const cut = (text: string, units: number): string =>
  text.length <= units ? text : `${text.slice(0, units - 1).toWellFormed()}…`;

/** Variables that change which program or which code really runs. */
export const steeringName =
  /^(PATH|LD_.*|DYLD_.*|NODE_OPTIONS|NODE_PATH|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|CDPATH|PYTHON(PATH|STARTUP|HOME|INSPECT)|PERL5(LIB|OPT|DB)|RUBY(OPT|LIB)|JAVA_TOOL_OPTIONS|GIT_.*|npm_config_.*|SHELL|IFS|PROMPT_COMMAND|(VISUAL|EDITOR|.*PAGER|BROWSER|LESSOPEN|LESSCLOSE)|SSH_ASKPASS|SUDO_ASKPASS|MAKEFLAGS|CC|CXX|RUSTC.*|HOME|XDG_CONFIG_HOME)$/i;

export class Sheet {
  readonly programs: CommandReading['programs'] = [];
  readonly operators: string[] = [];
  readonly redirections: Redirection[] = [];
  readonly substitutions: string[] = [];
  readonly assignments: string[] = [];
  readonly hosts = new Set<string>();
  readonly paths = new Map<string, Place>();
  readonly notes = new Set<Note>();
  readonly #blind = new Set<string>();
  hereDocuments = 0;
  install: Install | undefined;
  /** Something evaluates the value of a variable again (arithmetic, `test -v`, `declare`), and there is text that waits for it. */
  evaluates = false;
  dormant = false;
  readonly #place: (path: string) => Place;

  constructor(place: (path: string) => Place) {
    this.#place = place;
  }

  get uninspectable(): string[] {
    return [...this.#blind];
  }

  /** Says what cannot be read; the words of the command in it are made visible. */
  blind(sentence: string): void {
    if (this.#blind.size < most.sentences) this.#blind.add(cut(visible(sentence), 300));
  }

  #fits(size: number, bound: number): void {
    if (size >= bound) throw new TooMuch();
  }

  program(name: string | null, args: readonly Word[], via: readonly string[]): void {
    this.#fits(this.programs.length, most.programs);
    this.#fits(args.length, most.args + 1);
    const isLong =
      (name?.length ?? 0) > most.nameUnits || args.some(({ value }) => (value?.length ?? 0) > most.argUnits);
    if (isLong) this.blind('An argument is too long to be listed.');
    this.programs.push({
      name: name === null || name.length > most.nameUnits ? null : name.toWellFormed(),
      args: args.map(({ value }) => (value === null || value.length > most.argUnits ? null : value.toWellFormed())),
      via: via.map((each) => cut(each.toWellFormed(), 100)),
    });
  }

  operator(name: string): void {
    this.#fits(this.operators.length, most.operators);
    this.operators.push(name);
  }

  substitution(text: string): void {
    this.#fits(this.substitutions.length, most.substitutions);
    this.substitutions.push(cut(text.toWellFormed(), 1000));
  }

  assignment(name: string): void {
    this.#fits(this.assignments.length, most.assignments);
    this.assignments.push(cut(name.toWellFormed(), 200));
    if (steeringName.test(name)) this.notes.add('environment');
  }

  host(name: string): void {
    this.#fits(this.hosts.size, most.hosts);
    this.hosts.add(cut(name.toWellFormed(), 300));
  }

  redirection(redirection: Redirection): void {
    this.#fits(this.redirections.length, most.redirections);
    this.redirections.push({
      ...redirection,
      target: redirection.target === null ? null : cut(redirection.target.toWellFormed(), 4096),
    });
    const { place, operator, target } = redirection;
    const isOwn = place === 'device' && (isHarmlessDevice(target) || operator.includes('&'));
    if (/^(outside|device|unknown)$/.test(place) && !isOwn) this.notes.add('redirect_outside');
  }

  installs(found: Install): void {
    const packages = [
      ...(this.install?.packages ?? []),
      ...found.packages.map((name) => cut(name.toWellFormed(), 300)),
    ];
    if (packages.length > most.packages) this.blind('Installs more packages than can be listed.');
    const registry = found.registry ?? this.install?.registry;
    this.install = {
      manager: this.install?.manager ?? found.manager,
      packages: packages.slice(0, most.packages),
      ...(registry === undefined ? {} : { registry: cut(registry.toWellFormed(), 500) }),
      global: found.global || this.install?.global === true,
      scripts: found.scripts || this.install?.scripts === true,
    };
  }

  /** Where a path lies, the worst of the directories it may be relative to. `~` is in a home directory. */
  placeOf({ value, source }: Word, scope: Scope): Place {
    if (scope.elsewhere) return 'unknown';
    if (value !== null) return this.#literalPlace(value, scope);
    // Only the part before the first expansion is certain, and what comes after a slash still says what it is.
    const text = source.replace(/["'\\]/g, '');
    const dynamic = text.search(/[$`*?[{~…<>]/);
    const isHome = /^(~|\$HOME\b|\$\{HOME\})/.test(text);
    const tail = this.#place(`~/${text.slice(text.indexOf('/') + 1)}`);
    if (tail === 'secret' || tail === 'agent_config') return tail;
    if (isHome) return 'outside';
    const folder = text.slice(0, text.lastIndexOf('/', dynamic === -1 ? text.length : dynamic) + 1);
    if (folder === '' || dynamic < folder.length) return 'unknown';
    return worst([this.#literalPlace(folder, scope), 'unknown']);
  }

  #literalPlace(path: string, scope: Scope): Place {
    if (posix.isAbsolute(path)) return this.#place(posix.normalize(path));
    return worst(scope.cwds.map((cwd) => (cwd === null ? 'unknown' : this.#place(posix.resolve(cwd, path)))));
  }

  /** Lists a path the command names, and says where it lies. */
  path(named: Word, scope: Scope): Place {
    const place = this.placeOf(named, scope);
    const text = named.value ?? named.source;
    if (scope.elsewhere || /^(|\{\}|…)$/.test(text) || isHarmlessDevice(text)) return place;
    const [cwd = null, ...others] = scope.cwds;
    const isCertain = named.value !== null && cwd !== null && others.length === 0;
    const shown = cut((isCertain ? posix.resolve(cwd, text) : text).toWellFormed(), 4096);
    if (!this.paths.has(shown)) this.#fits(this.paths.size, most.paths);
    this.paths.set(shown, worst([place, this.paths.get(shown) ?? 'inside']));
    return place;
  }
}

export const isHarmlessDevice = (path: string | null): boolean =>
  path !== null && /^\/dev\/(null|zero|full|u?random|stdin|stdout|stderr|tty|fd\/\d+)$/.test(path);

/** Where a system keeps its programs; a path elsewhere is a program of its own. */
export const systemFolders = /^\/(usr\/(local\/)?)?s?bin\/[^/]+$/;
