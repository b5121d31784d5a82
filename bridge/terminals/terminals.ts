/**
 * The operator's terminals: opened, listed, named and ended (P-01 to P-03). Which there were is kept in the ledger, so
 * that the next bridge can say of them that they ended with this one. Made by `cli/parts.ts`.
 */
import { createRequire } from 'node:module';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { terminalInfo, type TerminalInfo } from '#protocol/methods/terminal.ts';
import { list, z } from '#protocol/schema.ts';
import type { Root } from '../files/contract.ts';
import type { Ledger, Tx } from '../ledger/contract.ts';
import type { Terminals } from './contract.ts';
import { shellEnvironment, shellOf } from './shell.ts';
import type { Ended, Terminal } from './terminal.ts';

export interface TerminalsParts {
  readonly ledger: Pick<Ledger, 'commit'> & { readonly read: Pick<Ledger['read'], 'meta'> };
  /** @throws Refusal as the registry of workspaces does */
  readonly root: (workspaceId: string) => Pick<Root, 'directory'>;
  readonly nodePath: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly uuid: () => string;
  /** A marker no other process carries. */
  readonly marker: () => string;
  readonly now: () => number;
  readonly log: (message: string, error: unknown) => void;
  /** The list is another. */
  readonly changed: () => void;
}

const end = async ({ terminal, buried }: Live, by: Ended['by']): Promise<void> => {
  await terminal.end(by);
  await buried;
};

const metaName = 'terminals';
const kept = list(terminalInfo, limits.terminalsListed);

/** Looks for the files without loading them: the library stays out of this process. */
const absence = (env: TerminalsParts['env']): string | null => {
  try {
    const load = createRequire(import.meta.url);
    createRequire(load.resolve('node-pty')).resolve(`@lydell/node-pty-${process.platform}-${process.arch}/pty.node`);
  } catch {
    return 'There are no terminals here: the library for them is not made for this system, or was not installed.';
  }
  return shellOf(env) === null ? 'There are no terminals here: no shell was found.' : null;
};

interface Live {
  readonly terminal: Terminal;
  /** Resolves once its end is on record. */
  readonly buried: Promise<void>;
}

class Room implements Terminals {
  readonly #parts: TerminalsParts;
  readonly #live = new Map<string, Live>();
  #past: TerminalInfo[] | null = null;
  readonly #opening = new Set<{ readonly workspaceId: string; readonly done: Promise<unknown> }>();
  #absent: string | null | undefined;

  constructor(parts: TerminalsParts) {
    this.#parts = parts;
  }

  get absent(): string | null {
    return (this.#absent ??= absence(this.#parts.env));
  }

  list(): TerminalInfo[] {
    return [...this.#ended(), ...Array.from(this.#live.values(), ({ terminal }) => terminal.info)].slice(
      -limits.terminalsListed,
    );
  }

  async open(params: Parameters<Terminals['open']>[0]): Promise<TerminalInfo> {
    const { workspaceId, cwd = '', size } = params;
    const directory = this.#parts.root(workspaceId).directory(cwd);
    const program = shellOf(this.#parts.env);
    if (this.absent !== null || program === null)
      throw new Refusal('unsupported_capability', this.absent === null ? {} : { message: this.absent });
    if (this.#live.size + this.#opening.size >= limits.terminals) throw new Refusal('terminal_limit');
    const done = this.#open({ workspaceId, cwd, program, title: '', size }, directory);
    const opening = { workspaceId, done };
    this.#opening.add(opening);
    try {
      return await done;
    } finally {
      this.#opening.delete(opening);
    }
  }

  rename(terminalId: string, title: string): TerminalInfo {
    const terminal = this.#live.get(terminalId)?.terminal;
    if (terminal === undefined) throw new Refusal('terminal_gone');
    terminal.rename(title);
    return terminal.info;
  }

  async close(terminalId: string): Promise<void> {
    const live = this.#live.get(terminalId);
    if (live !== undefined) return end(live, 'operator');
    const others = this.#ended().filter((info) => info.terminalId !== terminalId);
    if (others.length === this.#ended().length) throw new Refusal('terminal_gone');
    this.#past = others;
    await this.#keep(() => undefined);
  }

  attach: Terminals['attach'] = async (terminalId, size, viewer) =>
    this.#live.get(terminalId)?.terminal.attach(size, viewer) ?? null;

  async closeAll(workspaceId?: string): Promise<void> {
    const by = workspaceId === undefined ? 'bridge' : 'operator';
    // One that is on its way would come to life behind us.
    const opening = [...this.#opening].filter((one) => workspaceId === undefined || one.workspaceId === workspaceId);
    await Promise.allSettled(opening.map(({ done }) => done));
    const ending = [...this.#live.values()].filter(
      ({ terminal }) => workspaceId === undefined || terminal.info.workspaceId === workspaceId,
    );
    await Promise.all(ending.map((live) => end(live, by)));
  }

  async #open(
    about: Pick<TerminalInfo, 'workspaceId' | 'cwd' | 'program' | 'title' | 'size'>,
    directory: ReturnType<Root['directory']>,
  ): Promise<TerminalInfo> {
    const { nodePath, env, now, changed } = this.#parts;
    const marker = this.#parts.marker();
    const info: TerminalInfo = { terminalId: this.#parts.uuid(), ...about, startedAt: now(), ended: null };
    const message = { program: about.program, env: shellEnvironment(env, marker), cwd: directory, size: about.size };
    // Loaded with the first terminal: no start of the bridge waits for it.
    const room = await import('./terminal.ts');
    const terminal = await room.Terminal.open({
      ...{ nodePath, marker, info, message, now, changed },
      recorded: ({ pid, startTime }) => this.#parts.ledger.commit((tx) => tx.putProcess({ pid, startTime, marker })),
    }).catch(async (error: unknown) => {
      await this.#parts.ledger.commit((tx) => tx.removeProcess(marker));
      throw error;
    });
    const buried = terminal.gone
      .then(() => this.#bury(terminal, marker))
      .catch((error: unknown) => this.#parts.log('the end of a terminal was not recorded', error));
    this.#live.set(info.terminalId, { terminal, buried });
    await this.#keep(() => undefined);
    return terminal.info;
  }

  async #bury(terminal: Terminal, marker: string): Promise<void> {
    this.#live.delete(terminal.info.terminalId);
    this.#past = [...this.#ended(), terminal.info];
    await this.#keep((tx) => tx.removeProcess(marker));
  }

  /** What is on record of the bridges before this one, and what ended in it; the oldest leave first. */
  #ended(): TerminalInfo[] {
    this.#past ??= this.#recorded();
    if (this.#past.length > limits.terminalsListed - limits.terminals)
      this.#past = this.#past.slice(limits.terminals - limits.terminalsListed);
    return this.#past;
  }

  #recorded(): TerminalInfo[] {
    const text = this.#parts.ledger.read.meta(metaName);
    if (text === null) return [];
    const parsed = z.safeParse(kept, JSON.parse(text));
    if (!parsed.success) return []; // written by another version; nothing hangs on it
    const ended: Ended = { at: this.#parts.now(), code: null, signal: null, by: 'bridge' };
    return parsed.data.map((info) => (info.ended === null ? { ...info, ended } : info));
  }

  async #keep(also: (tx: Tx) => unknown): Promise<void> {
    await this.#parts.ledger.commit((tx) => {
      tx.setMeta(metaName, JSON.stringify(this.list()));
      also(tx);
    });
    this.#parts.changed();
  }
}

export const createTerminals = (parts: TerminalsParts): Terminals => new Room(parts);
