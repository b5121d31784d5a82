/**
 * The one seat of a conversation for an agent process: started once, however often it is asked for (G-30), given up
 * when the process is gone. Records what the boot sweep must know before the process is spoken to.
 */
import { Refusal } from '#protocol/errors.ts';
import type { ActivityFrame } from '#protocol/frames.ts';
import type { AgentHost, AgentProcess, AgentReady } from '../agents/contract.ts';
import type { Tx } from '../ledger/contract.ts';
import type { Rooms } from './rooms.ts';
import type { HeaderState } from './state.ts';

/** Counts agent processes over all conversations (G-31); the next beyond the limit is refused, never evicts. */
export interface ProcessSlots {
  take(): void;
  give(): void;
}

type Exit = Parameters<AgentHost['exited']>[0];
type StopWhy = 'stopped' | 'idle' | 'bridge_stopped';

export interface SeatHost {
  readonly conversationId: string;
  readonly rooms: Rooms;
  readonly slots: ProcessSlots;
  readonly header: HeaderState;
  /** All of the agent's host but what the seat itself answers. */
  readonly serves: Omit<AgentHost, 'exited' | 'progress'>;
  turnId(): string | null;
  show(status: Extract<ActivityFrame, { type: 'status' }>['state'], detail?: string): void;
  /** Runs `work` after everything the agent said so far. */
  after<T>(work: () => Promise<T>): Promise<T>;
  gone(exit: Exit): Promise<void>;
  stateChanged(): void;
}

export class AgentSeat {
  readonly #host: SeatHost;
  #process: AgentProcess | null = null;
  #starting: { readonly ready: Promise<AgentProcess>; readonly abort: AbortController } | null = null;
  #stopWhy: StopWhy = 'stopped';

  constructor(host: SeatHost) {
    this.#host = host;
  }

  get process(): AgentProcess | null {
    return this.#process;
  }
  get isStarting(): boolean {
    return this.#starting !== null;
  }

  /**
   * Refuses before anything is stored what may not or could not run, so that the composer keeps its draft. The folder is
   * reviewed again first where something changed (W-14): before each turn, also of a process that runs.
   */
  async admit(): Promise<void> {
    await this.#host.rooms.trust.fresh(this.#row().workspaceId);
    this.#check();
  }

  #check(): void {
    const { rooms } = this.#host;
    const row = this.#row();
    const obstacle = rooms.trust.obstacle(row.workspaceId, row.agentId);
    if (obstacle !== null) throw new Refusal('not_trusted', { message: obstacle });
    if (this.#process === null && this.#starting === null && rooms.agents.get(row.agentId) === null)
      throw new Refusal('unknown_agent');
  }

  #row() {
    const row = this.#host.rooms.ledger.read.conversation(this.#host.conversationId);
    if (row === null) throw new Refusal('unknown_conversation');
    return row;
  }

  /** The running process, or the one start under way. */
  start(): Promise<AgentProcess> {
    if (this.#process !== null) return Promise.resolve(this.#process);
    if (this.#starting !== null) return this.#starting.ready;
    const abort = new AbortController();
    const ready = this.#spawn(abort.signal).finally(() => {
      this.#starting = null;
      this.#host.stateChanged();
    });
    this.#starting = { ready, abort };
    this.#host.stateChanged();
    return ready;
  }

  abort(): void {
    this.#starting?.abort.abort();
  }

  async #spawn(signal: AbortSignal): Promise<AgentProcess> {
    const { rooms, slots, header } = this.#host;
    slots.take();
    this.#stopWhy = 'stopped';
    try {
      this.#check();
      const row = this.#row();
      const { modeId } = header.current;
      const agent = await rooms.agents.start({
        agentId: row.agentId,
        cwd: rooms.workspaces.root(row.workspaceId).path,
        sessionId: row.sessionId,
        ...(modeId === null ? {} : { modeId }),
        signal,
        host: {
          ...this.#host.serves,
          progress: (state, detail) => this.#host.show(state, detail),
          exited: (exit) => {
            this.#exited(exit).catch((error: unknown) =>
              rooms.log({ event: 'failed', conversation: this.#host.conversationId, error }),
            );
          },
        },
        spawned: (process) => this.#record(process, row),
      });
      await this.#admit(agent);
      this.#process = agent;
      await rooms.ledger.commit((tx) => this.#storeReady(tx, row.agentId, agent.ready));
      return agent;
    } catch (error) {
      this.#process = null;
      slots.give();
      throw error;
    }
  }

  async #record(
    process: { pid: number; startTime: string; marker: string; argv: readonly string[]; envNames: readonly string[] },
    row: { agentId: string; sessionId: string | null },
  ): Promise<void> {
    const { rooms, conversationId } = this.#host;
    const { pid, startTime, marker, argv, envNames } = process;
    const turnId = this.#host.turnId();
    await rooms.ledger.commit((tx) => {
      tx.putProcess({ pid, startTime, marker });
      tx.append(conversationId, {
        type: 'agent.started',
        ...(turnId === null ? {} : { turnId }),
        data: {
          agentId: row.agentId,
          containment: rooms.agents.containment().kind,
          argv: [...argv],
          envNames: [...envNames],
          how: row.sessionId === null ? 'new' : 'resume',
          pid,
        },
      });
    });
  }

  /** An agent that may act without asking needs the operator's explicit choice (G-20). */
  async #admit(agent: AgentProcess): Promise<void> {
    if (agent.ready.enforcement !== 'unrestricted' || this.#host.header.current.acceptUnrestricted) return;
    await agent.stop();
    throw new Refusal('forbidden', {
      message: `This agent may act without asking: ${agent.ready.enforcementWhy} Start a new conversation and accept that to use it.`,
    });
  }

  #storeReady(tx: Tx, agentId: string, ready: AgentReady): void {
    const { conversationId, header } = this.#host;
    const { how, contextLost, modeId, modelId, modes, models, options, ...rest } = ready;
    const turnId = this.#host.turnId();
    const turn = turnId === null ? {} : { turnId };
    tx.append(conversationId, {
      type: 'agent.ready',
      ...turn,
      data: {
        agentId,
        ...rest,
        modes: [...modes],
        models: [...models],
        options: [...options],
        ...(modeId === null ? {} : { modeId }),
        ...(modelId === null ? {} : { modelId }),
      },
    });
    if (contextLost !== null) {
      tx.append(conversationId, { type: 'agent.contextLost', ...turn, data: { sentence: contextLost } });
    } else if (how !== 'new') {
      tx.append(conversationId, { type: 'agent.resumed', ...turn, data: { how } });
    }
    tx.updateConversation(conversationId, { sessionId: ready.sessionId });
    const { enforcement, enforcementWhy, containment, version: agentVersion, images } = ready;
    header.change(tx, {
      enforcement,
      enforcementWhy,
      containment,
      agentVersion,
      modes,
      modeId,
      models,
      modelId,
      options,
      images,
    });
  }

  async #exited(exit: Exit): Promise<void> {
    const gone = this.#process;
    if (gone === null) return; // it never got ready: whoever waited for it says why
    this.#process = null;
    const { rooms, slots, conversationId } = this.#host;
    slots.give();
    const turnId = this.#host.turnId();
    const reason = exit.reason === 'stopped' ? this.#stopWhy : exit.reason;
    const { code, signal, sentence } = exit;
    await this.#host.after(() =>
      rooms.ledger.commit((tx) => {
        tx.removeProcess(gone.marker);
        tx.append(conversationId, {
          type: 'agent.exited',
          ...(turnId === null ? {} : { turnId }),
          data: { reason, code, signal, sentence },
        });
      }),
    );
    await this.#host.gone(exit);
    this.#host.stateChanged();
  }

  /** Ends the process, or its start. Resolves when gone. */
  async stop(why: StopWhy): Promise<boolean> {
    this.#stopWhy = why;
    this.abort();
    await this.#starting?.ready.catch(() => undefined);
    if (this.#process === null) return false;
    await this.#process.stop();
    await this.#host.after(async () => undefined);
    return true;
  }
}
