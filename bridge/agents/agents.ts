/**
 * The agents room's front: which agents there are, which can run here, and starting one. Bundled ones come from the
 * catalogue, the operator's own and all settings from the store; nothing about availability is stored (G-11).
 * Made by main; used by conversations, trust (trust files), the gate (operator check) and the boot sweep.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, mkdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { AgentSummary } from '#protocol/methods/conversation.ts';
import { z } from '#protocol/schema.ts';
import { catalogue, customEntry, unaskedWhy, type CatalogueEntry } from './catalogue.ts';
import { bestEffort, holdingWhenAsked, type Holding } from './containment.ts';
import type { Tx } from '../ledger/contract.ts';
import type { AgentProcess, Agents, StartRequest } from './contract.ts';
import { closeInherited } from './descriptors.ts';
import { agentEnvironment, type AgentEnvironment } from './environment.ts';
import { Interpreters, onPath, packageVersion, resolveProgram, type Found } from './find.ts';
import { markerName, markerOf, parentOf, startTimeOf } from './procfs.ts';
import { killTree, signal } from './tree.ts';

/** What the operator added or changed; one JSON text for each agent id. The ledger keeps it. */
export interface AgentStore {
  rows(): readonly { readonly agentId: string; readonly spec: string }[];
  /** `signed` runs in the same transaction. */
  put(agentId: string, spec: string, signed?: (tx: Tx) => void): Promise<void>;
  remove(agentId: string): Promise<void>;
}

export interface AgentsOptions {
  readonly store: AgentStore;
  /** Absolute directories of the bridge that contained agents must not see: its private state, its runtime directory. Made when absent. */
  readonly hidden: readonly string[];
  /** Where the practice agent keeps its session notes; outside every workspace. Made when absent. */
  readonly practiceState: string;
  /** The bridge's own Node. */
  readonly nodePath: string;
  /** The bridge's environment; agents get what the catalogue lets through. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => number;
  readonly log: (message: string, error: unknown) => void;
  /** Tests force `best_effort`; without it bubblewrap is used where it works. */
  readonly containment?: 'best_effort' | undefined;
}

const stored = z.looseObject({
  enabled: z.optional(z.boolean()),
  isDefault: z.optional(z.boolean()),
  custom: z.optional(
    z.looseObject({
      title: z.string(),
      command: z.string(),
      args: z.array(z.string()),
      env: z.array(z.looseObject({ name: z.string(), value: z.string() })),
    }),
  ),
});
type Stored = z.infer<typeof stored>;
/** What was learnt of an agent in this run of the bridge. */
interface Known {
  readonly version: string | null;
  readonly state: AgentSummary['state'];
  readonly problem: string | null;
  readonly at: number;
}

const practiceProgram = fileURLToPath(new URL('practice/agent.ts', import.meta.url));
const bridgeVersion = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version;

const sha256Of = async (file: string): Promise<string> => {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
};

/** First thing that looks like a version in what `--version` printed. */
const runVersion = (
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string,
): Promise<string | null> =>
  new Promise((resolve) => {
    const [command, ...args] = argv;
    if (command === undefined) return resolve(null);
    const child = execFile(
      command,
      [...args, '--version'],
      { env, cwd, timeout: limits.probeMs, killSignal: 'SIGKILL', maxBuffer: limits.outputUnits },
      (_error, stdout) => resolve(/\d+\.\d+(?:\.\d+)?[\w.+-]*/.exec(stdout)?.[0]?.slice(0, 100) ?? null),
    );
    child.stdin?.end();
  });

class Registry implements Agents {
  readonly #options: AgentsOptions;
  readonly #holding: () => Holding;
  readonly #interpreters: Interpreters;
  readonly #known = new Map<string, Known>();

  constructor(options: AgentsOptions) {
    this.#options = options;
    closeInherited([]);
    for (const directory of [...options.hidden, options.practiceState])
      mkdirSync(directory, { recursive: true, mode: 0o700 });
    const hidden = options.hidden.map((directory) => realpathSync(directory));
    this.#holding =
      options.containment === 'best_effort'
        ? () => bestEffort(options.nodePath, 'Not contained: bubblewrap was turned off.')
        : holdingWhenAsked(onPath('bwrap', options.env['PATH'] ?? ''), hidden, options.nodePath);
    this.#interpreters = new Interpreters(options.nodePath);
  }

  list(): AgentSummary[] {
    const custom = this.#rows().filter(({ spec }) => spec.custom !== undefined);
    return [
      ...catalogue,
      ...custom.map(({ agentId, spec }) => customEntry(agentId, spec.custom?.title ?? agentId)),
    ].map((entry) => this.#summary(entry));
  }

  get(agentId: string): AgentSummary | null {
    const entry = this.#entry(agentId);
    return entry === null ? null : this.#summary(entry);
  }

  async probe(agentId: string): Promise<AgentSummary> {
    const entry = this.#mustHave(agentId);
    const found = this.#find(entry);
    const at = this.#options.now();
    if (found === null) this.#known.delete(agentId);
    else {
      const version = await this.#version(entry, found);
      this.#known.set(agentId, { version, state: 'ready', problem: null, at });
    }
    return this.#summary(entry);
  }

  async add(spec: Parameters<Agents['add']>[0], signed?: (tx: Tx, agentId: string) => void): Promise<AgentSummary> {
    const agentId = spec.title
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 60);
    const custom = this.#rows().filter((row) => row.spec.custom !== undefined);
    if (agentId === '' || this.#entry(agentId) !== null || custom.length >= limits.customAgents)
      throw new Refusal('already_exists', { message: 'There is an agent of this name already.' });
    if (onPath(spec.command, this.#options.env['PATH'] ?? '') === null)
      throw new Refusal('agent_missing', {
        message: 'This program was not found. Give an absolute path, or a name that is on PATH.',
      });
    if (spec.env.some(({ name }) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || name === markerName))
      throw new Refusal('bad_request', { message: 'One of the variables has no valid name.' });
    await this.#options.store.put(
      agentId,
      JSON.stringify({ custom: { title: spec.title, command: spec.command, args: spec.args, env: spec.env } }),
      (tx) => signed?.(tx, agentId),
    );
    return this.probe(agentId);
  }

  async enable(agentId: string, enabled: boolean): Promise<AgentSummary> {
    const entry = this.#mustHave(agentId);
    await this.#options.store.put(agentId, JSON.stringify({ ...this.#row(agentId), enabled }));
    return this.#summary(entry);
  }

  async setDefault(agentId: string): Promise<AgentSummary> {
    const entry = this.#mustHave(agentId);
    for (const row of this.#rows()) {
      if (row.spec.isDefault === true && row.agentId !== agentId)
        await this.#options.store.put(row.agentId, JSON.stringify({ ...row.spec, isDefault: false }));
    }
    await this.#options.store.put(agentId, JSON.stringify({ ...this.#row(agentId), isDefault: true }));
    return this.#summary(entry);
  }

  async remove(agentId: string): Promise<void> {
    if (this.#row(agentId).custom === undefined) throw new Refusal('unknown_agent');
    await this.#options.store.remove(agentId);
    this.#known.delete(agentId);
  }

  async start(request: StartRequest): Promise<AgentProcess> {
    const entry = this.#mustHave(request.agentId);
    if (this.#row(request.agentId).enabled === false)
      throw new Refusal('unknown_agent', { message: `${entry.title} is turned off.` });
    const found = this.#find(entry);
    if (found === null) throw this.#missing(entry);
    const marker = `${process.pid.toString(36)}-${randomBytes(16).toString('hex')}`;
    const environment = this.#environment(entry, found, marker, request.cwd);
    const [executable] = found.argv;
    const hashes = Promise.all([sha256Of(executable as string), found.entry === null ? null : sha256Of(found.entry)]);
    hashes.catch(() => undefined); // awaited after the handshake; an earlier failure of that is the one to tell
    try {
      // Loaded with the first agent: with the ACP library it is a third of all code, and no start waits for it.
      const { run } = await import('./running.ts');
      const agent = await run({
        entry,
        argv: found.argv,
        environment,
        marker,
        holding: this.#holding(),
        bridgeVersion,
        cwd: request.cwd,
        sessionId: request.sessionId,
        modeId: request.modeId,
        host: request.host,
        signal: request.signal,
        spawned: request.spawned,
        hashes: hashes.then(([executableSha256, entrySha256]) => ({ executableSha256, entrySha256 })),
        log: this.#options.log,
      });
      this.#known.set(entry.id, {
        version: agent.ready.version,
        state: 'ready',
        problem: null,
        at: this.#options.now(),
      });
      return agent;
    } catch (error) {
      this.#learn(entry, error);
      throw error;
    }
  }

  trustPatterns(): readonly { agentId: string; pattern: string; what: string }[] {
    return catalogue.flatMap((entry) => entry.trust.map(({ pattern, what }) => ({ agentId: entry.id, pattern, what })));
  }

  safeUntrusted(agentId: string): boolean {
    const safe = this.#entry(agentId)?.safeUntrusted ?? false;
    return typeof safe === 'boolean' ? safe : this.#homeSetting(safe.homeFile, safe.path) === true;
  }

  containment(): { kind: AgentProcess['ready']['containment']; why: string } {
    return { kind: this.#holding().kind, why: this.#holding().why };
  }

  async sweep(rows: readonly { pid: number; startTime: string; marker: string }[]): Promise<number> {
    const counts = await Promise.all(
      rows.map(async ({ pid, startTime, marker }) => {
        // The pid may be another program's by now; the marker may have been cleaned from its environment.
        const same = startTime !== '' && startTimeOf(pid) === startTime;
        if (same && markerOf(pid) !== marker) signal(pid, 'SIGKILL');
        return (await killTree({ marker })) + (same && markerOf(pid) !== marker ? 1 : 0);
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  insideAgent(pid: number): boolean {
    let current: number | null = pid;
    for (let depth = 0; current !== null && current > 1 && depth < limits.pathBytes; depth += 1) {
      if (markerOf(current) !== null) return true;
      current = parentOf(current);
    }
    return false;
  }

  #rows(): { agentId: string; spec: Stored }[] {
    return this.#options.store.rows().flatMap(({ agentId, spec }) => {
      try {
        return [{ agentId, spec: z.parse(stored, JSON.parse(spec)) }];
      } catch (error) {
        this.#options.log('a stored agent could not be read and is left out', error);
        return [];
      }
    });
  }

  #row(agentId: string): Stored {
    return this.#rows().find((row) => row.agentId === agentId)?.spec ?? {};
  }

  #entry(agentId: string): CatalogueEntry | null {
    const bundled = catalogue.find((entry) => entry.id === agentId);
    if (bundled !== undefined) return bundled;
    const { custom } = this.#row(agentId);
    return custom === undefined ? null : customEntry(agentId, custom.title);
  }

  #mustHave(agentId: string): CatalogueEntry {
    const entry = this.#entry(agentId);
    if (entry === null) throw new Refusal('unknown_agent');
    return entry;
  }

  #find(entry: CatalogueEntry): Found | null {
    const { nodePath, env } = this.#options;
    const path = env['PATH'] ?? '';
    if (entry.id === 'practice') return { argv: [nodePath, practiceProgram], entry: practiceProgram };
    const { custom } = this.#row(entry.id);
    const names = custom === undefined ? entry.bins : [custom.command];
    const program = names.map((name) => onPath(name, path)).find((file) => file !== null);
    if (program === undefined || program === null || entry.needs.some((name) => onPath(name, path) === null))
      return null;
    try {
      return resolveProgram(program, custom === undefined ? entry.args : custom.args, () =>
        this.#interpreters.pick(path, entry.nodeMajor),
      );
    } catch (error) {
      this.#options.log('the program of an agent could not be read', error);
      return null;
    }
  }

  #environment(entry: CatalogueEntry, found: Found, marker: string, cwd: string | null): AgentEnvironment {
    const practice = entry.id === 'practice' ? practiceEnv(this.#options.practiceState, this.#options.env) : [];
    const added = [...(this.#row(entry.id).custom?.env ?? []), ...practice];
    return agentEnvironment(entry, this.#options.env, {
      marker,
      interpreter: found.entry === null ? null : (found.argv[0] ?? null),
      cwd,
      added,
    });
  }

  async #version(entry: CatalogueEntry, found: Found): Promise<string | null> {
    if (entry.id === 'practice') return bridgeVersion;
    const packaged = found.entry === null ? null : packageVersion(found.entry);
    // Of the operator's own program nothing is known, so nothing is run to look at it.
    if (packaged !== null || entry.bins.length === 0) return packaged;
    const program = found.argv.slice(0, found.argv.length - entry.args.length);
    return runVersion(program, this.#environment(entry, found, 'probe', null).env, this.#options.practiceState);
  }

  #missing(entry: CatalogueEntry): Refusal {
    const details =
      entry.install === ''
        ? {}
        : { details: { mend: 'Install it in a terminal, then try again.', mendCommand: entry.install } };
    return new Refusal('agent_missing', { message: `${entry.title} was not found on PATH.`, ...details });
  }

  #learn(entry: CatalogueEntry, error: unknown): void {
    if (!(error instanceof Refusal) || error.code === 'cancelled') return;
    const state = error.code === 'agent_auth_required' ? 'signed_out' : 'broken';
    this.#known.set(entry.id, {
      version: this.#known.get(entry.id)?.version ?? null,
      state,
      problem: error.message.slice(0, 500),
      at: this.#options.now(),
    });
  }

  #homeSetting(homeFile: string, path: readonly string[]): unknown {
    const home = this.#options.env['HOME'];
    if (home === undefined) return undefined;
    try {
      const file = join(home, homeFile);
      if (statSync(file).size > limits.trustFileBytes) return undefined;
      let value: unknown = JSON.parse(readFileSync(file, 'utf8'));
      for (const name of path)
        value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
      return value;
    } catch {
      return undefined; // no such setting: the switch is not on
    }
  }

  #summary(entry: CatalogueEntry): AgentSummary {
    const found = this.#find(entry);
    const known = found === null ? undefined : this.#known.get(entry.id);
    const row = this.#row(entry.id);
    const defaults = this.#rows().filter(({ spec }) => spec.isDefault === true);
    const state = found === null ? 'missing' : (known?.state ?? 'ready');
    const mend = { missing: entry.install, signed_out: entry.signIn, ready: '', unknown: '', broken: '' }[state];
    return {
      agentId: entry.id,
      title: entry.title,
      about: entry.about,
      bundled: row.custom === undefined,
      scripted: entry.scripted,
      enabled: row.enabled !== false,
      // Without a choice the practice agent is: it is the one that always works.
      isDefault: defaults.length === 0 ? entry.id === 'practice' : row.isDefault === true,
      state,
      version: known?.version ?? null,
      executable: found?.entry ?? found?.argv[0] ?? null,
      problem: found === null ? `${entry.title} was not found on PATH.` : (known?.problem ?? null),
      mendCommand: mend === '' ? null : mend,
      ...levelBeforeStart(entry),
      probedAt: known?.at ?? null,
      argv: [...(found?.argv ?? [])],
      envNames: found === null ? [] : [...this.#environment(entry, found, '', '').names].slice(0, 100),
    };
  }
}

/** What can be promised of an agent before it has a folder and a session. */
const levelBeforeStart = (entry: CatalogueEntry): Pick<AgentSummary, 'enforcement' | 'enforcementWhy'> => {
  if (entry.asking === null) return { enforcement: entry.level, enforcementWhy: entry.levelWhy };
  if (entry.unaskedInRepository) return { enforcement: 'unrestricted', enforcementWhy: unaskedWhy(entry.title) };
  const enforcementWhy = `${entry.title} is put into the mode in which it asks; that is verified at each start.`;
  return { enforcement: 'cooperative', enforcementWhy };
};

/** Its notes; compiled code kept beside them, which halves its start (0.34 s to 0.18 s of CPU); and the pace tests set to hurry it. */
const practiceEnv = (
  state: string,
  env: Readonly<Record<string, string | undefined>>,
): { name: string; value: string }[] => {
  const pace = env['COUNTERSIGN_PRACTICE_PACE'];
  return [
    { name: 'PRACTICE_STATE', value: state },
    { name: 'NODE_COMPILE_CACHE', value: join(state, 'compile-cache') },
    ...(pace === undefined ? [] : [{ name: 'COUNTERSIGN_PRACTICE_PACE', value: pace }]),
  ];
};

/**
 * Makes the directories handed in, tries bubblewrap once, and closes descriptors above 2 that the process was started
 * with, so that no child of the bridge inherits them: call it before the first child.
 */
export const createAgents = (options: AgentsOptions): Agents => new Registry(options);
