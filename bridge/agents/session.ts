/**
 * What is true of an agent's session right now: modes, model, options, and the enforcement level that follows from them
 * (G-20). Forces the asking mode after new, load and resume, verifies it, and takes note when the agent leaves it (G-21).
 * Used by running.ts.
 */
import type { AgentOption, Enforcement, ModeInfo } from '#protocol/events.ts';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { unaskedWhy, type CatalogueEntry } from './catalogue.ts';
import { RequestError, type Connection } from './connection.ts';
import type { AgentItem } from './contract.ts';
import { insideRepository } from './find.ts';
import type { Opened } from './handshake.ts';
import { configOptions, modelOption, modeOption } from './options.ts';
import { oneLine } from './ring.ts';

export class Session {
  readonly id: string;
  readonly modes: readonly ModeInfo[];
  readonly models: readonly ModeInfo[];
  modeId: string | null;
  modelId: string | null;
  options: readonly AgentOption[];
  enforcement: Enforcement;
  enforcementWhy: string;
  readonly #connection: Connection;
  readonly #entry: CatalogueEntry;
  /** Modes are set by their own method where the agent declared them so, else by the option of that category. */
  readonly #modeByOption: boolean;
  readonly #cwd: string;
  #modesHeard = 0;

  constructor(
    connection: Connection,
    entry: CatalogueEntry,
    opened: Opened,
    heard: { modeId: string | null; options: readonly AgentOption[] | null },
    cwd: string,
  ) {
    this.#connection = connection;
    this.#entry = entry;
    this.#cwd = cwd;
    this.id = opened.sessionId;
    this.modes = opened.declared.modes;
    this.models = opened.declared.models;
    this.options = heard.options ?? opened.declared.options;
    this.modeId = heard.modeId ?? opened.declared.modeId;
    this.modelId = opened.declared.modelId;
    const option = modeOption(opened.declared.options);
    this.#modeByOption =
      option !== null &&
      option.choices.length === this.modes.length &&
      option.choices.every((choice, index) => choice.value === this.modes[index]?.id);
    this.enforcement = entry.level;
    this.enforcementWhy = entry.levelWhy;
  }

  /** True for a mode in which the agent is known to ask, or of an agent whose modes say nothing about asking. */
  asks(modeId: string): boolean {
    return this.#entry.asking === null || this.#entry.asking.safe.includes(modeId);
  }

  /** Puts the agent into its asking mode, or the wanted one where that asks too, and computes the level. Never throws for what the agent answers. */
  async forceAsking(wanted: string | undefined): Promise<void> {
    const { asking, title } = this.#entry;
    if (asking === null) {
      if (wanted !== undefined && this.modes.some((mode) => mode.id === wanted)) await this.#set(wanted);
      return;
    }
    const modeId = wanted !== undefined && asking.safe.includes(wanted) ? wanted : asking.modeId;
    if (!this.modes.some((mode) => mode.id === modeId))
      return this.#level('unrestricted', `This version of ${title} does not offer the mode in which it asks.`);
    try {
      await this.#set(modeId);
      for (const [optionId, value] of Object.entries(asking.locked ?? {})) await this.#lock(optionId, value);
    } catch (error) {
      return this.#level(
        'unrestricted',
        `${title} did not take the mode in which it asks: ${error instanceof Error ? oneLine(error.message) : 'no reason given'}.`.slice(
          0,
          500,
        ),
      );
    }
    const loose = Object.entries(asking.locked ?? {}).find(([id, value]) =>
      this.options.some((option) => option.id === id && !sameValue(option.value, value)),
    );
    if (this.modeId !== modeId || loose !== undefined)
      return this.#level('unrestricted', `${title} did not stay in the mode in which it asks.`);
    if (this.#isUnaskedHere()) return this.#level('unrestricted', unaskedWhy(title));
    this.#level(
      'cooperative',
      `${title} asks before it writes or runs a command; commands that only read may run unasked.`,
    );
  }

  /** Looks again, before each prompt: the folder may have become a repository. True when the level has dropped for it. */
  placeChanged(): boolean {
    if (this.enforcement !== 'cooperative' || !this.#isUnaskedHere()) return false;
    this.#level('unrestricted', unaskedWhy(this.#entry.title));
    return true;
  }

  #isUnaskedHere(): boolean {
    return this.#entry.unaskedInRepository && insideRepository(this.#cwd);
  }

  /** @throws Refusal forbidden, agent_protocol_error */
  async setMode(modeId: string): Promise<void> {
    if (!this.asks(modeId))
      throw new Refusal('forbidden', {
        message: `In this mode ${this.#entry.title} would act without asking, so it is not offered.`,
      });
    if (!this.modes.some((mode) => mode.id === modeId))
      throw new Refusal('agent_protocol_error', { message: `${this.#entry.title} does not have this mode.` });
    await this.#asked(() => this.#set(modeId));
  }

  /** @throws Refusal agent_protocol_error */
  async setModel(modelId: string): Promise<void> {
    const option = modelOption(this.options);
    await this.#asked(async () => {
      if (option !== null) await this.#setOption(option, modelId);
      else await this.#request('session/set_model', { modelId });
    });
    this.modelId = modelId;
  }

  /** @throws Refusal forbidden, agent_protocol_error */
  async setOption(optionId: string, value: string): Promise<readonly AgentOption[]> {
    const option = this.options.find((candidate) => candidate.id === optionId);
    if (option === undefined)
      throw new Refusal('agent_protocol_error', { message: `${this.#entry.title} does not have this option.` });
    const locked = this.#entry.asking?.locked?.[optionId];
    if ((option.category === 'mode' && !this.asks(value)) || (locked !== undefined && !sameValue(value, locked))) {
      throw new Refusal('forbidden', {
        message: `With this ${this.#entry.title} would act without asking, so it is not offered.`,
      });
    }
    await this.#asked(() => this.#setOption(option, value));
    return this.options;
  }

  /**
   * Takes in what an update says about the session. Returns true when the agent has left the modes in which it asks:
   * the level has dropped, and the caller may try to bring it back.
   */
  heard(item: AgentItem): boolean {
    if (item.type === 'options') {
      this.options = item.options;
      this.modelId = modelOption(item.options)?.value ?? this.modelId;
    }
    if (item.type !== 'mode') return false;
    this.#modesHeard += 1;
    this.modeId = item.modeId;
    if (this.asks(item.modeId)) return false;
    this.#level('unrestricted', `${this.#entry.title} changed to a mode in which it acts without asking.`);
    return true;
  }

  #level(level: Enforcement, why: string): void {
    this.enforcement = level;
    this.enforcementWhy = why;
  }

  async #asked(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (error instanceof RequestError)
        throw new Refusal('agent_protocol_error', {
          message: `${this.#entry.title} refused: “${oneLine(error.message)}”.`,
          cause: error,
        });
      throw error;
    }
  }

  async #set(modeId: string): Promise<void> {
    const option = modeOption(this.options);
    if (this.#modeByOption && option !== null) {
      await this.#setOption(option, modeId);
      this.modeId = modeOption(this.options)?.value ?? null;
      return;
    }
    const heard = this.#modesHeard;
    await this.#request('session/set_mode', { modeId });
    // What the agent said of its mode meanwhile is truer than what it was asked.
    if (this.#modesHeard === heard) this.modeId = modeId;
  }

  async #lock(optionId: string, value: string): Promise<void> {
    const option = this.options.find((candidate) => candidate.id === optionId);
    if (option !== undefined && !sameValue(option.value, value)) await this.#setOption(option, value);
  }

  async #setOption(option: AgentOption, value: string): Promise<void> {
    const typed =
      option.type === 'boolean' ? { type: 'boolean', value: value === 'true' || value === 'on' } : { value };
    const answer = await this.#request('session/set_config_option', { configId: option.id, ...typed });
    const answered =
      typeof answer === 'object' && answer !== null && 'configOptions' in answer
        ? configOptions(answer.configOptions)
        : null;
    // Without an answer that lists them there is nothing to verify against: the former value stays what is known.
    if (answered !== null) this.options = answered;
  }

  #request(method: string, params: Record<string, unknown>): Promise<unknown> {
    return this.#connection.request(method, { sessionId: this.id, ...params }, { timeoutMs: limits.sessionNewMs });
  }
}

/** A switch is "off" as a choice and "false" as a boolean. */
const sameValue = (a: string, b: string): boolean => {
  const plain = (value: string): string => (value === 'false' ? 'off' : value === 'true' ? 'on' : value);
  return plain(a) === plain(b);
};
