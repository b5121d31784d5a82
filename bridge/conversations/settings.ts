/**
 * What the operator sets of an agent: its mode, model and options. The agent is asked first, and what it took is stored.
 * Owned by a conversation, called by the command table.
 */
import { Refusal } from '#protocol/errors.ts';
import type { AgentProcess } from '../agents/contract.ts';
import type { Ledger } from '../ledger/contract.ts';
import type { HeaderState } from './state.ts';

export class AgentSettings {
  readonly #conversationId: string;
  readonly #ledger: Pick<Ledger, 'commit'>;
  readonly #header: HeaderState;
  readonly #process: () => AgentProcess | null;

  constructor(parts: {
    conversationId: string;
    ledger: Pick<Ledger, 'commit'>;
    header: HeaderState;
    /** Null while the agent does not run. */
    process: () => AgentProcess | null;
  }) {
    this.#conversationId = parts.conversationId;
    this.#ledger = parts.ledger;
    this.#header = parts.header;
    this.#process = parts.process;
  }

  /** Also of an agent that does not run: its next start begins in it. */
  async setMode(modeId: string): Promise<void> {
    await this.#process()?.setMode(modeId);
    await this.#ledger.commit((tx) => {
      tx.append(this.#conversationId, { type: 'mode', data: { modeId, by: 'operator' } });
      this.#header.change(tx, { modeId });
    });
  }

  /** @throws Refusal agent_gone */
  async setModel(modelId: string): Promise<void> {
    await this.#running().setModel(modelId);
    await this.#ledger.commit((tx) => {
      tx.append(this.#conversationId, { type: 'model', data: { modelId, by: 'operator' } });
      this.#header.change(tx, { modelId });
    });
  }

  /** @throws Refusal agent_gone */
  async setOption(optionId: string, value: string): Promise<void> {
    const options = await this.#running().setOption(optionId, value);
    await this.#ledger.commit((tx) => {
      tx.append(this.#conversationId, { type: 'option', data: { options: [...options] } });
      this.#header.change(tx, { options });
    });
  }

  #running(): AgentProcess {
    const process = this.#process();
    if (process === null)
      throw new Refusal('agent_gone', { message: 'The agent is not running. Send a message to start it.' });
    return process;
  }
}
