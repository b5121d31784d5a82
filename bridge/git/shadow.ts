/**
 * The git directory that git is really given: the bridge's own configuration, HEAD as it was read, a copy of the index,
 * and the repository's objects by their place (F-20). The rule not to break: of the repository's
 * configuration only validated values of a closed list get in here; nothing that names a program, a path or another file.
 * Made anew when what it was made from changed; kept between calls. Called by repository.ts.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { RunGit } from './contract.ts';
import { indexOf, readIndex, type Entries } from './index-file.ts';
import { checkNamed, unsupported, type Layout } from './layout.ts';
import { reftable, type Head } from './refs.ts';

export type Config = ReadonlyMap<string, string>;

export interface Shadow {
  readonly directory: string;
  /** Of the repository. */
  readonly objects: string;
  readonly objectFormat: 'sha1' | 'sha256';
  readonly config: Config;
  readonly sparse: boolean;
  /** Whether git may know of attributes: the index names a `.gitattributes`, or may, or the repository has its own. */
  readonly attributes: boolean;
  /** Some objects are only on a server, which is never asked. */
  readonly partial: boolean;
  readonly notes: readonly string[];
  /** Of the index; null where there is none, or none that can be taken apart. */
  readonly entries: Entries | null;
}

interface Held {
  readonly key: string;
  readonly shadow: Shadow;
  users: number;
  replaced: boolean;
}

/** `directory` is the bridge's own and emptied at the first use. */
export class Shadows {
  readonly #run: RunGit;
  readonly #directory: string;
  readonly #held = new Map<string, Held>();
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #configs = new Map<string, { key: string; config: Config }>();
  #made = 0;

  constructor(run: RunGit, directory: string) {
    this.#run = run;
    this.#directory = directory;
  }

  /** Runs `use` with a shadow of the repository as it is; `place` names it among the others. @throws Refusal unsupported_git_state, repository_changed */
  async with<T>(
    place: string,
    layout: Layout,
    head: Head,
    signal: AbortSignal,
    use: (shadow: Shadow) => Promise<T>,
  ): Promise<T> {
    // One after another: two callers must not both make it.
    const turn = (this.#turns.get(place) ?? Promise.resolve()).then(() => this.#current(place, layout, head, signal));
    const settled = turn.catch(() => undefined);
    this.#turns.set(place, settled);
    void settled.then(() => {
      if (this.#turns.get(place) === settled) this.#turns.delete(place);
    });
    const held = await turn;
    try {
      return await use(held.shadow);
    } finally {
      held.users -= 1;
      drop(held);
    }
  }

  /** Removes all; what still runs fails by itself. */
  close(): void {
    rmSync(this.#directory, { recursive: true, force: true });
    this.#held.clear();
    this.#configs.clear();
  }

  async #current(place: string, layout: Layout, head: Head, signal: AbortSignal): Promise<Held> {
    const key = keyOf(layout, head);
    const before = this.#held.get(place);
    if (before?.key === key) {
      before.users += 1;
      return before;
    }
    const shadow = await this.#make(place, layout, head, signal);
    if (keyOf(layout, head) !== key) {
      rmSync(shadow.directory, { recursive: true, force: true });
      throw new Refusal('repository_changed');
    }
    const held = { key, shadow, users: 1, replaced: false };
    this.#held.set(place, held);
    if (before !== undefined) {
      before.replaced = true;
      drop(before);
    }
    return held;
  }

  async #make(place: string, layout: Layout, head: Head, signal: AbortSignal): Promise<Shadow> {
    if (this.#made === 0) rmSync(this.#directory, { recursive: true, force: true });
    this.#made += 1;
    const directory = join(this.#directory, String(this.#made));
    for (const name of ['objects', 'refs', 'info']) mkdirSync(join(directory, name), { recursive: true, mode: 0o700 });
    try {
      const put = (name: string, content: string | Uint8Array): void => {
        writeFileSync(join(directory, name), content, { mode: 0o600 });
      };
      put('HEAD', head.commit === null ? 'ref: refs/heads/unborn\n' : `${head.commit}\n`);
      put('config', '[core]\n\trepositoryformatversion = 0\n');
      const config = await this.#config(place, directory, layout, signal);
      const read = understood(layout, config);
      put('config', configText(config, read));
      const copied = copy(layout, put, directory, read);
      const notes = [...read.notes, ...copied.notes];
      return { directory, objects: join(layout.common.path, 'objects'), config, ...read, ...copied, notes };
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  async #config(place: string, directory: string, layout: Layout, signal: AbortSignal): Promise<Config> {
    const key = `${layout.common.revision('config')} ${layout.own.revision('config.worktree')}`;
    const before = this.#configs.get(place);
    if (before?.key === key) return before.config;
    const common = await this.#parse(directory, layout.common.read('config'), signal);
    const ofTree = isTrue(common.get('extensions.worktreeconfig')) ? layout.own.read('config.worktree') : null;
    const config = new Map([...common, ...(ofTree === null ? [] : await this.#parse(directory, ofTree, signal))]);
    this.#configs.set(place, { key, config });
    return config;
  }

  // Git reads its own grammar best; from its input, so that no include is followed and no file is opened.
  async #parse(directory: string, text: Buffer | null, signal: AbortSignal): Promise<Config> {
    if (text === null) return new Map();
    const args = ['config', '--file', '-', '--no-includes', '--null', '--list'];
    const { stdout } = await this.#run({ gitDirectory: directory, workTree: null, args, input: text, signal });
    return configOf(stdout);
  }
}

/** What `git config --null --list` prints. Of what is given several times the last counts; `fetch` keeps all, as lines. */
export const configOf = (output: Buffer): Config => {
  const config = new Map<string, string>();
  for (const entry of output.toString('utf8').split('\0').slice(0, -1)) {
    const at = entry.indexOf('\n');
    const [key, value] = at === -1 ? [entry, 'true'] : [entry.slice(0, at), entry.slice(at + 1)];
    const before = key.endsWith('.fetch') ? config.get(key) : undefined;
    config.set(key, before === undefined ? value : `${before}\n${value}`);
  }
  return config;
};

const drop = (held: Held): void => {
  if (held.replaced && held.users === 0) rmSync(held.shadow.directory, { recursive: true, force: true });
};

const keyOf = (layout: Layout, head: Head): string =>
  [
    head.commit,
    layout.own.path,
    ...['index', 'config.worktree', 'info/sparse-checkout'].map((name) => layout.own.revision(name)),
    ...['config', 'info/exclude', 'info/attributes', 'objects/info/alternates', 'shallow'].map((name) =>
      layout.common.revision(name),
    ),
  ].join(' ');

const isTrue = (value: string | undefined): boolean => value !== undefined && /^(true|yes|on|1)$/i.test(value);
const boolean = /^(true|yes|on|1|false|no|off|0)$/i;
/** The closed list: what decides how files are compared, and nothing that runs or points anywhere. */
export const allowed: readonly (readonly [name: string, values: RegExp])[] = [
  ['core.filemode', boolean],
  ['core.ignorecase', boolean],
  ['core.precomposeunicode', boolean],
  ['core.symlinks', boolean],
  ['core.trustctime', boolean],
  ['core.checkstat', /^(default|minimal)$/i],
  ['core.autocrlf', /^(true|yes|on|1|false|no|off|0|input)$/i],
  ['core.eol', /^(lf|crlf|native)$/i],
];
const knownExtensions = new Set([
  'objectformat',
  'worktreeconfig',
  'partialclone',
  'preciousobjects',
  'noop',
  'refstorage',
  'relativeworktrees',
]);

type Understood = Pick<Shadow, 'objectFormat' | 'sparse' | 'partial' | 'notes'>;

const understood = (layout: Layout, config: Config): Understood => {
  checkNamed(layout, config.get('core.worktree'));
  const extensions = [...config.keys()].filter((key) => key.startsWith('extensions.')).map((key) => key.slice(11));
  if (!['files', undefined].includes(config.get('extensions.refstorage'))) throw reftable();
  const format = config.get('extensions.objectformat') ?? 'sha1';
  const isKnown = extensions.every((name) => knownExtensions.has(name)) && (format === 'sha1' || format === 'sha256');
  if (!isKnown || !['0', '1', undefined].includes(config.get('core.repositoryformatversion')))
    throw unsupported('This repository uses an extension of git that is not known here.');
  const foreign = config.has('core.worktree') && layout.mustName === null && !layout.linked;
  return {
    objectFormat: format,
    sparse: isTrue(config.get('core.sparsecheckout')),
    partial:
      config.has('extensions.partialclone') ||
      [...config].some(([key, value]) => /^remote\..*\.promisor$/s.test(key) && isTrue(value)),
    notes: foreign ? ['This repository names another folder as its work tree; this folder is looked at instead.'] : [],
  };
};

const configText = (config: Config, { objectFormat, sparse }: Understood): string => {
  const values = allowed.flatMap(([name, values]) => {
    const value = config.get(name);
    return value !== undefined && values.test(value) ? [`\t${name.slice('core.'.length)} = ${value}\n`] : [];
  });
  const cone = sparse && isTrue(config.get('core.sparsecheckoutcone') ?? 'true');
  return [
    `[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n`,
    '\thooksPath = /dev/null\n\tattributesFile = /dev/null\n\texcludesFile = /dev/null\n',
    ...values,
    `\tsparseCheckout = ${sparse}\n\tsparseCheckoutCone = ${cone}\n`,
    `[extensions]\n\tobjectFormat = ${objectFormat}\n`,
    '[protocol]\n\tallow = never\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[submodule]\n\trecurse = false\n',
  ].join('');
};

type Copied = Pick<Shadow, 'attributes' | 'notes' | 'entries'>;

const copy = (
  layout: Layout,
  put: (name: string, content: Uint8Array) => void,
  directory: string,
  { sparse, objectFormat }: Understood,
): Copied => {
  const own = ['info/attributes', 'info/exclude', 'shallow'].map((name) => {
    const bytes = layout.common.read(name);
    if (bytes !== null) put(name, bytes);
    return bytes !== null;
  });
  const patterns = sparse ? layout.own.read('info/sparse-checkout') : null;
  if (patterns !== null) put('info/sparse-checkout', patterns);
  const index = copyIndex(layout, put, directory);
  if (index === null) return { attributes: own[0] === true, notes: [], entries: null };
  const { version, extensions, assumed, skipped, entries } = readIndex(index, objectFormat === 'sha1' ? 20 : 32);
  if (extensions.has('link'))
    throw unsupported('The index of this repository is split into two files, which is not read yet.');
  const hidden = assumed + (sparse ? 0 : skipped);
  const files = hidden === 1 ? '1 file is' : `${hidden} files are`;
  return {
    // From version 4 on a name is written as what differs from the one before; a sparse index does not hold all names.
    attributes:
      own[0] === true || version > 3 || extensions.has('sdir') || index.includes('.gitattributes', 12, 'latin1'),
    entries,
    notes: hidden > 0 ? [`${files} marked in the index as not to be compared: whether they changed is not known.`] : [],
  };
};

// A copy made now would look newer than files that were written right after the index: git would take them for unchanged.
const copyIndex = (
  layout: Layout,
  put: (name: string, content: Uint8Array) => void,
  directory: string,
): Buffer | null => {
  const stat = layout.own.stat('index');
  if (stat === null) return null;
  if (stat.size > limits.gitIndexBytes) throw unsupported('The index of this repository is larger than is read.');
  const bytes = layout.own.read('index', limits.gitIndexBytes);
  if (bytes === null) return null;
  put('index', bytes);
  const early = Number(stat.mtimeNs / 1_000_000n) / 1000 - 0.001;
  utimesSync(join(directory, 'index'), early, early);
  return bytes;
};

/**
 * An index beside the shadow's own that holds one file, and what it may get attributes from: git reads all of an index,
 * 50,000 entries in 15 ms, for one file as for all. Null where the whole one is needed. To be dropped after use.
 */
export const smallIndex = (shadow: Shadow, path: Buffer): { readonly path: string; drop(): void } | null => {
  const { entries, directory } = shadow;
  if (entries === null) return null;
  const whole = join(directory, 'index');
  const fd = openSync(whole, 'r');
  try {
    const read = (from: number, to: number): Buffer => {
      const bytes = Buffer.alloc(to - from);
      if (readSync(fd, bytes, 0, bytes.length, from) !== bytes.length) throw new Refusal('repository_changed');
      return bytes;
    };
    const bytes = indexOf(entries, read, path, attributeFiles(path));
    if (bytes === null) return null;
    const file = join(directory, `index-${randomUUID()}`);
    writeFileSync(file, bytes, { mode: 0o600 });
    // As old as the whole one: what was written since is looked at, whatever its times say.
    const { atime, mtime } = statSync(whole);
    utimesSync(file, atime, mtime);
    return { path: file, drop: () => rmSync(file, { force: true }) };
  } finally {
    closeSync(fd);
  }
};

const attributeFiles = (path: Buffer): Buffer[] => {
  const files = [Buffer.from('.gitattributes')];
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1))
    files.push(Buffer.concat([path.subarray(0, slash + 1), Buffer.from('.gitattributes')]));
  return files.filter((file) => !file.equals(path));
};
