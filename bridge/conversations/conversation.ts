/**
 * One live conversation: its agent process, its turn, its queue. A state machine that only sequences: items go through
 * the intake, effects through `effects.ts`, decisions through the desk. What is "working" is told by this object alone
 * and never stored, so that no crash can leave it behind (case 8).
 */
import { Refusal, type ErrorDetails } from '#protocol/errors.ts';
import type { EventDraft, StopReason } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { ConversationSummary, PromptPart } from '#protocol/methods/conversation.ts';
import type { AgentProcess, AgentReady } from '../agents/contract.ts';
import type { ConversationRow, Tx } from '../ledger/contract.ts';
import { Effects } from './effects.ts';
import { promptBlobs, promptText, readHeader, titleOf, type Header, type QueuedPrompt } from './header.ts';
import { Intake } from './intake.ts';
import type { Operation } from './operations.ts';
import type { Rooms } from './rooms.ts';
import type { Turn } from './turn.ts';

/** Counts agent processes over all conversations (G-31); the next beyond the limit is refused, never evicts. */
export interface ProcessSlots {
  take(): void;
  give(): void;
}

type Status = 'idle' | 'starting' | 'opening_session' | 'resuming' | 'working' | 'quiet' | 'stopping';

export class Conversation {
  readonly id: string;
  readonly #rooms: Rooms;
  readonly #slots: ProcessSlots;
  readonly #intake: Intake;
  readonly #effects: Effects;
  #header: Header;
  #process: AgentProcess | null = null;
  #starting: { readonly ready: Promise<AgentProcess>; readonly abort: AbortController } | null = null;
  #turn: Turn | null = null;
  #status: Status = 'idle';
  #quiet: NodeJS.Timeout | null = null;
  #stopWhy: 'stopped' | 'idle' | 'bridge_stopped' = 'stopped';

  constructor(row: ConversationRow, rooms: Rooms, slots: ProcessSlots) {
    this.id = row.conversationId;
    this.#rooms = rooms;
    this.#slots = slots;
    this.#header = readHeader(row.header);
    this.#intake = new Intake({
      conversationId: this.id,
      ledger: rooms.ledger,
      now: rooms.now,
      uuid: rooms.uuid,
      log: rooms.log,
      turnId: () => this.#turn?.turnId ?? null,
      heard: () => this.#heard(),
      changeHeader: (tx, change) => this.#changeHeader(tx, change),
      withTerminals: (content) => this.#effects.withTerminals(content),
      settled: (approvalId, outcome, startedAt, call) =>
        void rooms.desk.outcome(approvalId, outcome, {
          startedAt,
          endedAt: rooms.now(),
          sentence: `tool call ${call.status ?? 'ended'}`,
        }),
      changed: (call) => this.#effects.changed(call),
      titled: () => this.#header.titled,
    });
    this.#effects = new Effects({
      conversationId: this.id,
      workspaceId: row.workspaceId,
      rooms,
      intake: this.#intake,
      turnId: () => this.#turn?.turnId ?? null,
      process: () => this.#process,
      wrote: (path) => void this.#turn?.changedPaths.add(path),
      passOn: (note, headline) => void this.#passOn(note, headline),
      stateChanged: () => this.#changedState(),
    });
  }

  get busy(): boolean {
    return this.#turn !== null || this.#starting !== null;
  }
  get live(): boolean {
    return this.#process !== null || this.#starting !== null;
  }

  #row(): ConversationRow {
    const row = this.#rooms.ledger.read.conversation(this.id);
    if (row === null) throw new Refusal('unknown_conversation');
    return row;
  }

  summary(row: ConversationRow = this.#row()): ConversationSummary {
    return summarise(row, this.#header, {
      state: this.#state(),
      live: this.#process !== null,
      pendingApprovals: this.#rooms.ledger.read.pendingApprovals(this.id),
    });
  }

  #state(): ConversationSummary['state'] {
    if (this.#turn === null) return this.#starting === null ? 'idle' : 'starting';
    if (this.#turn.cancelled) return 'stopping';
    if (this.#process === null) return 'starting';
    return this.#rooms.ledger.read.pendingApprovals(this.id) > 0 ? 'waiting' : 'working';
  }

  #changeHeader(tx: Tx, change: Partial<Header>): void {
    this.#header = { ...this.#header, ...change };
    tx.updateConversation(this.id, { header: JSON.stringify(this.#header) });
  }

  #append(tx: Tx, draft: EventDraft): number {
    return tx.append(this.id, draft)?.seq ?? 0;
  }

  #changedState(): void {
    this.#rooms.ledger.feed.invalidate('conversations');
  }

  #show(status: Status, detail?: string): void {
    this.#status = status;
    this.#rooms.ledger.feed.activity(this.id, this.#turn?.turnId ?? null, {
      type: 'status',
      state: status,
      since: this.#rooms.now(),
      ...(detail === undefined ? {} : { detail }),
    });
    this.#changedState();
  }

  /** A late subscriber is told what goes on right now. */
  showAgain(): void {
    if (this.#status !== 'idle') this.#show(this.#status);
  }

  #heard(): void {
    if (this.#turn === null) return;
    this.#turn.said = true;
    if (this.#status === 'quiet') this.#show('working');
    this.#watchQuiet();
  }

  #watchQuiet(): void {
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => {
      if (this.#turn !== null && this.#status === 'working' && this.#state() === 'working') this.#show('quiet');
    }, limits.quietMs);
    this.#quiet.unref();
  }

  // Prompts and turns

  /** Stores the prompt and begins its turn, or queues it. Answers when stored, never when done (D-20, D-21). */
  async send(
    content: readonly PromptPart[],
    delivery: 'prompt' | 'queue',
    by: 'operator' | 'cli',
    operation: Operation,
  ): Promise<object> {
    this.#check(content);
    if (delivery === 'queue' && (this.#turn !== null || this.#header.queue.length > 0))
      return this.#enqueue(content, operation);
    if (this.#turn !== null) throw new Refusal('turn_active');
    this.#mayStart();
    return this.#begin(content, by, (tx, answer) => operation.store(tx, answer));
  }

  #check(content: readonly PromptPart[]): void {
    const bytes = Buffer.byteLength(promptText(content));
    if (bytes === 0 && promptBlobs(content).length === 0)
      throw new Refusal('bad_request', { message: 'There is nothing to send.' });
    if (bytes > limits.promptBytes) throw new Refusal('content_too_large');
    if (this.#row().full) throw new Refusal('transcript_full');
    for (const blob of promptBlobs(content)) {
      if (this.#rooms.ledger.blobs.read(this.id, blob.sha256) === null) throw new Refusal('blob_unknown');
    }
  }

  /** Refuses before anything is stored what could not start anyway, so that the composer keeps its draft. */
  #mayStart(): void {
    if (this.#process !== null || this.#starting !== null) return;
    const row = this.#row();
    this.#rooms.workspaces.root(row.workspaceId).check();
    if (this.#rooms.agents.get(row.agentId) === null) throw new Refusal('unknown_agent');
    const obstacle = this.#rooms.trust.obstacle(row.workspaceId, row.agentId);
    if (obstacle !== null) throw new Refusal('not_trusted', { message: obstacle });
  }

  async #begin(
    content: readonly PromptPart[],
    by: 'operator' | 'cli' | 'queue',
    store: (tx: Tx, answer: { turnId: string; seq: number }) => void,
    queueId?: string,
  ): Promise<{ turnId: string; seq: number }> {
    const turn: Turn = {
      turnId: this.#rooms.uuid(),
      startedAt: this.#rooms.now(),
      abort: new AbortController(),
      cancelled: false,
      ending: false,
      said: false,
      changedPaths: new Set(),
    };
    // Before the commit: a second prompt that arrives meanwhile must find the turn taken.
    this.#turn = turn;
    try {
      const answer = await this.#rooms.ledger.commit((tx) => {
        const messageId = this.#rooms.uuid();
        tx.endDraft(this.id);
        const { turnId } = turn;
        if (queueId !== undefined) this.#unqueue(tx, queueId, 'sent');
        const seq = this.#append(tx, { type: 'turn.started', turnId, data: { messageId, by } });
        const attachments = promptBlobs(content);
        this.#append(tx, {
          type: 'message',
          turnId,
          data: {
            messageId,
            role: 'user',
            text: promptText(content),
            ...(attachments.length > 0 ? { attachments } : {}),
          },
        });
        this.#nameAfter(tx, content);
        store(tx, { turnId, seq });
        return { turnId, seq };
      });
      void this.#run(turn, content);
      return answer;
    } catch (error) {
      this.#turn = null;
      throw error;
    }
  }

  #nameAfter(tx: Tx, content: readonly PromptPart[]): void {
    const title = this.#header.titled ? null : titleOf(content);
    if (title === null) return;
    this.#append(tx, { type: 'conversation.renamed', data: { title, by: 'prompt' } });
    tx.updateConversation(this.id, { title });
    this.#changeHeader(tx, { titled: true });
  }

  async #run(turn: Turn, content: readonly PromptPart[]): Promise<void> {
    try {
      if (this.#process === null) this.#show('starting');
      const agent = await this.#ready(turn);
      this.#show('working');
      this.#watchQuiet();
      const ended = await agent.prompt(content, (sha256) => this.#blob(sha256));
      await this.#intake.enqueue(() => undefined);
      const silent = ended.stopReason === 'end_turn' && !turn.said;
      if (silent) await this.#finish(turn, 'failed', 'The agent ended its turn without saying anything.');
      else await this.#finish(turn, ended.stopReason, ended.sentence);
    } catch (error) {
      await this.#failed(turn, error);
    }
  }

  async #blob(sha256: string): Promise<Uint8Array> {
    const found = this.#rooms.ledger.blobs.read(this.id, sha256);
    if (found === null) throw new Refusal('blob_unknown');
    const { readFile } = await import('node:fs/promises');
    return readFile(found.path);
  }

  #ready(turn: Turn): Promise<AgentProcess> {
    const ready = this.start();
    const stopped = new Promise<never>((_, reject) => {
      turn.abort.signal.addEventListener('abort', () => reject(new Refusal('cancelled')), { once: true });
    });
    return Promise.race([ready, stopped]);
  }

  async #failed(turn: Turn, error: unknown): Promise<void> {
    if (turn.ending) return;
    if (turn.cancelled) return this.#finish(turn, 'cancelled');
    const refusal = error instanceof Refusal ? error : new Refusal('internal_error', { cause: error });
    if (!(error instanceof Refusal))
      this.#rooms.log({ event: 'turn_failed', conversation: this.id, error: String(error) });
    await this.#rooms.ledger.commit((tx) => {
      this.#append(tx, { type: 'agent.error', turnId: turn.turnId, data: agentError(refusal) });
    });
    await this.#finish(turn, refusal.code === 'agent_gone' ? 'interrupted' : 'failed', refusal.message);
  }

  /** The one way a turn ends. Later answers of the agent to it are ignored. */
  async #finish(turn: Turn, stopReason: StopReason, sentence?: string): Promise<void> {
    if (turn.ending) return;
    turn.ending = true;
    const reason: StopReason = turn.cancelled && stopReason !== 'interrupted' ? 'cancelled' : stopReason;
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    await this.#effects.terminals.killAll();
    await this.#rooms.desk.withdraw({ conversationId: this.id }, 'turn_ended');
    const broken = reason === 'interrupted' || reason === 'failed';
    const outcomes = await this.#intake.enqueue(() =>
      this.#rooms.ledger.commit((tx) => {
        const open = this.#intake.finish(tx, {
          turnId: turn.turnId,
          cancelled: reason === 'cancelled',
          interrupted: broken || reason === 'cancelled',
        });
        this.#append(tx, {
          type: 'turn.ended',
          turnId: turn.turnId,
          data: {
            stopReason: reason,
            durationMs: Math.max(0, this.#rooms.now() - turn.startedAt),
            changedPaths: [...turn.changedPaths].slice(0, 500),
            ...(sentence === undefined ? {} : { sentence: sentence.slice(0, 1000) }),
          },
        });
        if ((broken || turn.cancelled) && this.#header.queue.length > 0)
          this.#pause(tx, turn.cancelled ? 'stop' : 'failure');
        tx.updateConversation(this.id, { lastStop: reason });
        return open;
      }),
    );
    this.#turn = null;
    this.#show('idle');
    for (const { approvalId, outcome, startedAt } of outcomes) {
      await this.#rooms.desk.outcome(approvalId, outcome, { startedAt, endedAt: this.#rooms.now() });
    }
    await this.#next();
  }

  /** Stop (L-31): pending permissions are answered `cancelled`, then session/cancel, then after 5 s the process goes. */
  async cancel(): Promise<void> {
    const turn = this.#turn;
    if (turn === null) throw new Refusal('no_turn');
    if (turn.cancelled) return;
    turn.cancelled = true;
    this.#show('stopping');
    await this.#rooms.desk.withdraw({ conversationId: this.id }, 'turn_ended');
    await this.#effects.terminals.killAll();
    if (this.#process === null) {
      this.#starting?.abort.abort();
      turn.abort.abort();
      return;
    }
    this.#process.cancel();
    const ladder = setTimeout(() => {
      if (!turn.ending) void this.#process?.stop();
    }, limits.cancelMs);
    ladder.unref();
  }

  // Queue

  async #enqueue(content: readonly PromptPart[], operation: Operation): Promise<object> {
    if (this.#header.queue.length >= limits.queue) throw new Refusal('queue_full');
    return this.#rooms.ledger.commit((tx) => {
      const { queueId, seq } = this.#addQueued(tx, content, 'last');
      operation.store(tx, { queueId, seq });
      return { queueId, seq };
    });
  }

  #addQueued(tx: Tx, content: readonly PromptPart[], place: 'first' | 'last'): { queueId: string; seq: number } {
    const queued: QueuedPrompt = { queueId: this.#rooms.uuid(), at: this.#rooms.now(), content };
    const queue = place === 'first' ? [queued, ...this.#header.queue] : [...this.#header.queue, queued];
    const attachments = promptBlobs(content);
    const seq = this.#append(tx, {
      type: 'queue.added',
      data: { queueId: queued.queueId, text: promptText(content), ...(attachments.length > 0 ? { attachments } : {}) },
    });
    this.#changeHeader(tx, { queue });
    return { queueId: queued.queueId, seq };
  }

  async #passOn(note: string, headline: string): Promise<void> {
    const text = `Note from the operator about the action you asked for (${headline}):\n${note}`;
    await this.#rooms.ledger.commit((tx) => this.#addQueued(tx, [{ type: 'text', text }], 'first'));
  }

  #unqueue(tx: Tx, queueId: string, why: 'operator' | 'sent' | 'cleared'): void {
    this.#append(tx, { type: 'queue.removed', data: { queueId, why } });
    this.#changeHeader(tx, { queue: this.#header.queue.filter((each) => each.queueId !== queueId) });
  }

  #pause(tx: Tx, why: 'restart' | 'failure' | 'stop'): void {
    this.#append(tx, { type: 'queue.paused', data: { paused: true, why } });
    this.#changeHeader(tx, { queuePaused: true });
  }

  async removeQueued(queueId: string, operation: Operation): Promise<object> {
    if (!this.#header.queue.some((each) => each.queueId === queueId)) throw new Refusal('not_found');
    await this.#rooms.ledger.commit((tx) => {
      this.#unqueue(tx, queueId, 'operator');
      operation.store(tx, {});
    });
    return {};
  }

  async resumeQueue(): Promise<object> {
    if (this.#header.queuePaused) {
      await this.#rooms.ledger.commit((tx) => {
        this.#append(tx, { type: 'queue.paused', data: { paused: false, why: 'operator' } });
        this.#changeHeader(tx, { queuePaused: false });
      });
    }
    if (this.#turn === null) this.#mayStart();
    await this.#next();
    return {};
  }

  async #next(): Promise<void> {
    const next = this.#header.queue[0];
    if (next === undefined || this.#header.queuePaused || this.#turn !== null) return;
    await this.#begin(next.content, 'queue', () => undefined, next.queueId);
  }

  // Agent process

  /** The running process, or the one start under way: the same session is never started twice (G-30). */
  start(): Promise<AgentProcess> {
    if (this.#process !== null) return Promise.resolve(this.#process);
    if (this.#starting !== null) return this.#starting.ready;
    const abort = new AbortController();
    const ready = this.#spawn(abort.signal).finally(() => {
      this.#starting = null;
      this.#changedState();
    });
    this.#starting = { ready, abort };
    return ready;
  }

  async #spawn(signal: AbortSignal): Promise<AgentProcess> {
    const row = this.#row();
    this.#slots.take();
    this.#stopWhy = 'stopped';
    try {
      const root = this.#rooms.workspaces.root(row.workspaceId);
      root.check();
      const obstacle = this.#rooms.trust.obstacle(row.workspaceId, row.agentId);
      if (obstacle !== null) throw new Refusal('not_trusted', { message: obstacle });
      const agent = await this.#rooms.agents.start({
        agentId: row.agentId,
        cwd: root.path,
        sessionId: row.sessionId,
        ...(this.#header.modeId === null ? {} : { modeId: this.#header.modeId }),
        signal,
        host: {
          item: (item) => this.#intake.take(item),
          permission: (request) => this.#effects.permission(request),
          readTextFile: (request) => this.#effects.readTextFile(request),
          writeTextFile: (request) => this.#effects.writeTextFile(request),
          createTerminal: (request) => this.#effects.createTerminal(request),
          terminalOutput: async (terminalId) => this.#effects.terminals.get(terminalId).snapshot(),
          terminalExit: (terminalId) => this.#effects.terminals.get(terminalId).exit,
          killTerminal: (terminalId) => this.#effects.terminals.get(terminalId).kill(),
          releaseTerminal: (terminalId) => this.#effects.terminals.release(terminalId),
          progress: (state, detail) => this.#show(state, detail),
          exited: (exit) => void this.#exited(exit),
        },
        spawned: ({ pid, startTime, marker, argv, envNames }) =>
          this.#rooms.ledger.commit((tx) => {
            tx.putProcess({ pid, startTime, marker });
            const containment = this.#rooms.agents.containment().kind;
            const how = row.sessionId === null ? 'new' : 'resume';
            this.#append(tx, {
              type: 'agent.started',
              data: { agentId: row.agentId, containment, argv: [...argv], envNames: [...envNames], how, pid },
            });
          }),
      });
      if (agent.ready.enforcement === 'unrestricted' && !this.#header.acceptUnrestricted) {
        await agent.stop();
        throw new Refusal('forbidden', {
          message: `This agent may act without asking: ${agent.ready.enforcementWhy} Start a new conversation and accept that to use it.`,
        });
      }
      this.#process = agent;
      await this.#rooms.ledger.commit((tx) => this.#storeReady(tx, row.agentId, agent.ready));
      return agent;
    } catch (error) {
      this.#process = null;
      this.#slots.give();
      throw error;
    }
  }

  #storeReady(tx: Tx, agentId: string, ready: AgentReady): void {
    const { how, contextLost, modeId, modelId, modes, models, options, ...rest } = ready;
    this.#append(tx, {
      type: 'agent.ready',
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
    if (contextLost !== null) this.#append(tx, { type: 'agent.contextLost', data: { sentence: contextLost } });
    else if (how !== 'new') this.#append(tx, { type: 'agent.resumed', data: { how } });
    tx.updateConversation(this.id, { sessionId: ready.sessionId });
    this.#changeHeader(tx, {
      enforcement: ready.enforcement,
      enforcementWhy: ready.enforcementWhy,
      containment: ready.containment,
      agentVersion: ready.version,
      modes,
      modeId,
      models,
      modelId,
      options,
      images: ready.images,
    });
  }

  async #exited(exit: Parameters<import('../agents/contract.ts').AgentHost['exited']>[0]): Promise<void> {
    const gone = this.#process;
    if (gone === null) return;
    this.#process = null;
    this.#slots.give();
    const turn = this.#turn;
    const reason = exit.reason === 'stopped' ? this.#stopWhy : exit.reason;
    await this.#intake.enqueue(() =>
      this.#rooms.ledger.commit((tx) => {
        tx.removeProcess(gone.marker);
        this.#append(tx, {
          type: 'agent.exited',
          ...(turn === null ? {} : { turnId: turn.turnId }),
          data: { reason, code: exit.code, signal: exit.signal, sentence: exit.sentence },
        });
      }),
    );
    if (turn !== null) await this.#finish(turn, 'interrupted', exit.sentence);
    this.#changedState();
  }

  async restart(): Promise<void> {
    if (this.#turn !== null) throw new Refusal('turn_active');
    await this.#process?.stop();
    this.#mayStart();
    await this.start();
  }

  /** Ends the process and keeps the history. */
  async close(by: 'operator' | 'bridge_stopped' | 'idle'): Promise<void> {
    this.#stopWhy = by === 'operator' ? 'stopped' : by;
    const turn = this.#turn;
    if (turn !== null) {
      await this.#rooms.desk.withdraw(
        { conversationId: this.id },
        by === 'operator' ? 'conversation_closed' : 'bridge_restarted',
      );
      await this.#finish(
        turn,
        'interrupted',
        by === 'operator' ? 'The conversation was closed.' : 'The bridge was stopped.',
      );
    }
    this.#starting?.abort.abort();
    await this.#starting?.ready.catch(() => undefined);
    if (this.#process === null) return;
    await this.#process.stop();
    await this.#intake.enqueue(() => undefined);
    await this.#rooms.ledger.commit((tx) => this.#append(tx, { type: 'conversation.closed', data: { by } }));
  }

  // Settings of the agent

  async setMode(modeId: string): Promise<void> {
    await this.#process?.setMode(modeId);
    await this.#rooms.ledger.commit((tx) => {
      this.#append(tx, { type: 'mode', data: { modeId, by: 'operator' } });
      this.#changeHeader(tx, { modeId });
    });
  }

  async setModel(modelId: string): Promise<void> {
    await this.#live().setModel(modelId);
    await this.#rooms.ledger.commit((tx) => {
      this.#append(tx, { type: 'model', data: { modelId, by: 'operator' } });
      this.#changeHeader(tx, { modelId });
    });
  }

  async setOption(optionId: string, value: string): Promise<void> {
    const options = await this.#live().setOption(optionId, value);
    await this.#rooms.ledger.commit((tx) => {
      this.#append(tx, { type: 'option', data: { options: [...options] } });
      this.#changeHeader(tx, { options });
    });
  }

  #live(): AgentProcess {
    if (this.#process === null)
      throw new Refusal('agent_gone', { message: 'The agent is not running. Send a message to start it.' });
    return this.#process;
  }

  async rename(title: string): Promise<void> {
    await this.#rooms.ledger.commit((tx) => {
      this.#append(tx, { type: 'conversation.renamed', data: { title, by: 'operator' } });
      tx.updateConversation(this.id, { title });
      this.#changeHeader(tx, { titled: true });
    });
    this.#changedState();
  }
}

const agentError = (refusal: Refusal): { code: string; sentence: string; mend?: string; mendCommand?: string } => {
  const details: ErrorDetails = refusal.details ?? {};
  const text = (name: string): string | undefined => (typeof details[name] === 'string' ? details[name] : undefined);
  const mend = text('mend');
  const mendCommand = text('mendCommand');
  return {
    code: refusal.code,
    sentence: refusal.message,
    ...(mend === undefined ? {} : { mend }),
    ...(mendCommand === undefined ? {} : { mendCommand }),
  };
};

/** A list row of a conversation, live or not. */
export const summarise = (
  row: ConversationRow,
  header: Header,
  live: { state: ConversationSummary['state']; live: boolean; pendingApprovals: number },
): ConversationSummary => ({
  conversationId: row.conversationId,
  workspaceId: row.workspaceId,
  workspacePath: row.workspacePath,
  title: row.title,
  agentId: row.agentId,
  agentTitle: row.agentTitle,
  createdAt: row.createdAt,
  updatedAt: row.updatedAt,
  lastSeq: row.lastSeq,
  archived: row.archived,
  ...live,
  lastStop: row.lastStop,
  queue: header.queue.map(({ queueId, at, content }) => ({
    queueId,
    at,
    text: promptText(content).slice(0, 2000),
    attachments: promptBlobs(content).length,
  })),
  queuePaused: header.queuePaused,
  enforcement: header.enforcement,
  enforcementWhy: header.enforcementWhy,
  containment: header.containment,
  agentVersion: header.agentVersion,
  modes: [...header.modes],
  modeId: header.modeId,
  models: [...header.models],
  modelId: header.modelId,
  options: [...header.options],
  commands: [...header.commands],
  images: header.images,
  transcriptBytes: row.bytes,
  transcriptFull: row.full,
  problem: null,
});
