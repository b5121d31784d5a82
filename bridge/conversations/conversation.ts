/**
 * One live conversation: its turn and its queue. A state machine that only sequences: items go through the intake,
 * effects through `effects.ts`, decisions through the desk, the process through its seat. What is "working" is told by
 * this object alone and never stored, so that no crash can leave it behind (case 8).
 */
import { readFile } from 'node:fs/promises';
import { Refusal, type ErrorDetails } from '#protocol/errors.ts';
import type { EventDraft, StopReason } from '#protocol/events.ts';
import type { ActivityFrame } from '#protocol/frames.ts';
import { limits } from '#protocol/limits.ts';
import type { ConversationSummary, PromptPart } from '#protocol/methods/conversation.ts';
import type { AgentProcess } from '../agents/contract.ts';
import type { StandingAnswer } from '../approvals/contract.ts';
import type { ConversationRow, Tx } from '../ledger/contract.ts';
import { Effects } from './effects.ts';
import { promptBlobs, promptText, readHeader, titleOf, type QueuedPrompt } from './header.ts';
import { Intake } from './intake.ts';
import type { Operation } from './operations.ts';
import type { Rooms } from './rooms.ts';
import { AgentSeat, type ProcessSlots } from './seat.ts';
import { AgentSettings } from './settings.ts';
import { HeaderState, Outcomes, PromptQueue } from './state.ts';
import { summarise } from './summary.ts';
import { TurnFiles } from './turn-files.ts';
import type { Turn } from './turn.ts';

type Status = Extract<ActivityFrame, { type: 'status' }>['state'];

export class Conversation {
  readonly id: string;
  readonly #rooms: Rooms;
  readonly #header: HeaderState;
  readonly #queue: PromptQueue;
  readonly #outcomes: Outcomes;
  readonly #intake: Intake;
  readonly #effects: Effects;
  readonly #seat: AgentSeat;
  readonly #files: TurnFiles;
  readonly settings: AgentSettings;
  #turn: Turn | null = null;
  #status: Status = 'idle';
  #quiet: NodeJS.Timeout | null = null;

  constructor(row: ConversationRow, rooms: Rooms, slots: ProcessSlots) {
    this.id = row.conversationId;
    this.#rooms = rooms;
    this.#header = new HeaderState(this.id, readHeader(row.header));
    this.#queue = new PromptQueue(this.id, this.#header, rooms);
    this.#outcomes = new Outcomes(rooms.desk, rooms.log);
    const turnId = (): string | null => this.#turn?.turnId ?? null;
    const stateChanged = (): void => rooms.ledger.feed.invalidate('conversations');
    this.#intake = new Intake({
      conversationId: this.id,
      ledger: rooms.ledger,
      now: rooms.now,
      uuid: rooms.uuid,
      log: rooms.log,
      turnId,
      heard: (said) => this.#heard(said),
      changeHeader: (tx, change) => this.#header.change(tx, change),
      withTerminals: (content) => this.#effects.withTerminals(content),
      settled: (approvalId, outcome, startedAt, call) =>
        void this.#outcomes.record(approvalId, outcome, {
          startedAt,
          endedAt: rooms.now(),
          sentence: `tool call ${call.status ?? 'ended'}`,
        }),
      changed: (call) => this.#effects.changed(call),
      titled: () => this.#header.current.titled,
    });
    this.#effects = new Effects({
      conversationId: this.id,
      workspaceId: row.workspaceId,
      references: () => this.#header.current.references,
      rooms,
      intake: this.#intake,
      outcomes: this.#outcomes,
      turnId,
      process: () => this.#seat.process,
      wrote: (path) => void this.#turn?.changedPaths.add(path),
      passOn: (note, headline) => this.#unattended(this.#passOn(note, headline)),
      isStopping: () => this.#turn?.cancelled === true || this.#turn?.ending === true,
      stateChanged,
    });
    this.#seat = new AgentSeat({
      conversationId: this.id,
      rooms,
      slots,
      header: this.#header,
      serves: this.#effects.served((item) => this.#intake.take(item)),
      turnId,
      show: (status, detail) => this.#show(status, detail),
      after: (work) => this.#intake.enqueue(work),
      gone: async (exit) => {
        if (this.#turn !== null) await this.#finish(this.#turn, 'interrupted', exit.sentence);
      },
      stateChanged,
    });
    this.#files = new TurnFiles(this.id, rooms);
    const { ledger } = rooms;
    const process = () => this.#seat.process;
    this.settings = new AgentSettings({ conversationId: this.id, ledger, header: this.#header, process });
  }

  get busy(): boolean {
    return this.#turn !== null || this.#seat.isStarting;
  }
  get live(): boolean {
    return this.#seat.process !== null || this.#seat.isStarting;
  }

  #row(): ConversationRow {
    const row = this.#rooms.ledger.read.conversation(this.id);
    if (row === null) throw new Refusal('unknown_conversation');
    return row;
  }

  summary(row: ConversationRow = this.#row()): ConversationSummary {
    const pendingApprovals = this.#rooms.ledger.read.pendingApprovals(this.id);
    const live = this.#seat.process !== null;
    const now = { state: this.#state(pendingApprovals), live, pendingApprovals, problem: null };
    return summarise(row, this.#header.current, now, this.#rooms.worktrees.info(this.id));
  }

  #state(pendingApprovals: number): ConversationSummary['state'] {
    if (this.#turn === null) return this.#seat.isStarting ? 'starting' : 'idle';
    if (this.#turn.cancelled) return 'stopping';
    if (this.#seat.process === null) return 'starting';
    return pendingApprovals > 0 ? 'waiting' : 'working';
  }

  #append(tx: Tx, draft: EventDraft): number {
    return tx.append(this.id, draft)?.seq ?? 0;
  }

  #show(status: Status, detail?: string): void {
    this.#status = status;
    this.#rooms.ledger.feed.activity(this.id, this.#turn?.turnId ?? null, {
      type: 'status',
      state: status,
      since: this.#rooms.now(),
      ...(detail === undefined ? {} : { detail }),
    });
    this.#rooms.ledger.feed.invalidate('conversations');
  }

  /** A late subscriber is told what goes on right now. */
  showAgain(): void {
    if (this.#status !== 'idle') this.#show(this.#status);
  }

  #heard(said: boolean): void {
    if (this.#turn === null) return;
    if (said) this.#turn.said = true;
    if (this.#status === 'quiet') this.#show('working');
    this.#watchQuiet();
  }

  #watchQuiet(): void {
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => {
      const waits = this.#rooms.ledger.read.pendingApprovals(this.id) > 0;
      if (this.#turn !== null && this.#status === 'working' && !waits) this.#show('quiet');
    }, limits.quietMs);
    this.#quiet.unref();
  }

  /** Work nobody waits for: a failure of it is a line in the log, never the end of the bridge (case 76). */
  #unattended(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#rooms.log({ event: 'failed', conversation: this.id, error }));
  }

  // Prompts and turns

  /** Stores the prompt and begins its turn, or queues it. Answers when stored, never when done (D-20, D-21). */
  async send(
    prompt: {
      content: readonly PromptPart[];
      delivery: 'prompt' | 'queue';
      by: 'operator' | 'cli';
      standing?: StandingAnswer;
    },
    operation: Operation,
  ): Promise<object> {
    const { content, delivery, by, standing } = prompt;
    this.#check(content);
    const waits = (): boolean => this.#turn !== null || this.#queue.waiting.length > 0;
    if (delivery === 'queue' && waits()) return this.#enqueue(content, operation);
    if (this.#turn !== null) throw new Refusal('turn_active');
    await this.#seat.admit();
    // Another prompt may have come while the folder was looked at.
    if (delivery === 'queue' && waits()) return this.#enqueue(content, operation);
    if (this.#turn !== null) throw new Refusal('turn_active');
    if (standing !== undefined) this.#rooms.desk.standing(this.id, standing);
    return this.#begin(content, by, (tx, answer) => operation.store(tx, answer));
  }

  #check(content: readonly PromptPart[]): void {
    const bytes = Buffer.byteLength(promptText(content));
    const blobs = promptBlobs(content);
    if (bytes === 0 && blobs.length === 0) throw new Refusal('bad_request', { message: 'There is nothing to send.' });
    if (bytes > limits.promptBytes) throw new Refusal('content_too_large');
    if (this.#row().full) throw new Refusal('transcript_full');
    if (blobs.some((blob) => this.#rooms.ledger.blobs.read(this.id, blob.sha256) === null))
      throw new Refusal('blob_unknown');
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
      prompted: false,
      ending: false,
      said: false,
      changedPaths: new Set(),
    };
    // Before the commit: a second prompt that arrives meanwhile must find the turn taken.
    this.#turn = turn;
    try {
      const answer = await this.#rooms.ledger.commit((tx) => {
        tx.endDraft(this.id);
        if (queueId !== undefined) this.#queue.remove(tx, queueId, 'sent');
        const seq = this.#storePrompt(tx, turn.turnId, content, by);
        store(tx, { turnId: turn.turnId, seq });
        return { turnId: turn.turnId, seq };
      });
      this.#unattended(this.#run(turn, content));
      return answer;
    } catch (error) {
      this.#turn = null;
      throw error;
    }
  }

  #storePrompt(tx: Tx, turnId: string, content: readonly PromptPart[], by: 'operator' | 'cli' | 'queue'): number {
    const messageId = this.#rooms.uuid();
    const seq = this.#append(tx, { type: 'turn.started', turnId, data: { messageId, by } });
    const attachments = promptBlobs(content);
    this.#append(tx, {
      type: 'message',
      turnId,
      data: { messageId, role: 'user', text: promptText(content), ...(attachments.length > 0 ? { attachments } : {}) },
    });
    const title = this.#header.current.titled ? null : titleOf(content);
    if (title === null) return seq;
    this.#append(tx, { type: 'conversation.renamed', turnId, data: { title, by: 'prompt' } });
    tx.updateConversation(this.id, { title });
    this.#header.change(tx, { titled: true });
    return seq;
  }

  async #run(turn: Turn, content: readonly PromptPart[]): Promise<void> {
    try {
      if (this.#seat.process === null) this.#show('starting');
      // The agent writes only once it is asked: both may take their time at once.
      const [ready] = await Promise.allSettled([this.#ready(turn), this.#files.before(turn)]);
      if (ready.status === 'rejected') throw ready.reason;
      if (turn.cancelled || turn.ending) throw new Refusal('cancelled');
      const agent = ready.value;
      turn.prompted = true;
      this.#show('working');
      this.#watchQuiet();
      turn.said = false;
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
    return readFile(found.path);
  }

  #ready(turn: Turn): Promise<AgentProcess> {
    const stopped = new Promise<never>((_, reject) => {
      turn.abort.signal.addEventListener('abort', () => reject(new Refusal('cancelled')), { once: true });
    });
    return Promise.race([this.#seat.start(), stopped]);
  }

  async #failed(turn: Turn, error: unknown): Promise<void> {
    if (turn.ending) return;
    if (turn.cancelled) return this.#finish(turn, 'cancelled');
    const refusal = error instanceof Refusal ? error : new Refusal('internal_error', { cause: error });
    if (refusal.cause !== undefined)
      this.#rooms.log({
        event: 'turn_failed',
        conversation: this.id,
        code: refusal.code,
        cause: refusal.cause,
      });
    await this.#rooms.ledger.commit((tx) =>
      this.#append(tx, { type: 'agent.error', turnId: turn.turnId, data: agentError(refusal) }),
    );
    await this.#finish(turn, refusal.code === 'agent_gone' ? 'interrupted' : 'failed', refusal.message);
  }

  /** The one way a turn ends; later answers of the agent to it are ignored. Its last event is `turn.ended`. */
  async #finish(turn: Turn, stopReason: StopReason, sentence?: string): Promise<void> {
    if (turn.ending) return;
    turn.ending = true;
    if (!turn.prompted) turn.abort.abort(); // nothing of it may be stored after its end
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    const reason: StopReason = turn.cancelled ? 'cancelled' : stopReason;
    try {
      await this.#effects.terminals.killAll();
      await this.#rooms.desk.withdraw({ conversationId: this.id }, 'turn_ended');
      await this.#closeWhatIsOpen(turn, reason);
      await this.#outcomes.settle();
      this.#rooms.desk.standing(this.id, null);
      if (turn.prompted) await this.#files.after(turn);
      await this.#rooms.ledger.commit((tx) => this.#storeEnd(tx, turn, reason, sentence));
    } finally {
      // Also when nothing can be stored any more: no turn may read as working without one.
      this.#turn = null;
      this.#show('idle');
      // What an agent wrote past us may run code the next time (T41): who shows the folder's trust looks again.
      this.#rooms.ledger.feed.invalidate('trust');
    }
    await this.#next();
  }

  #closeWhatIsOpen(turn: Turn, reason: StopReason): Promise<void> {
    const cancelled = reason === 'cancelled';
    const interrupted = cancelled || reason === 'interrupted' || reason === 'failed';
    return this.#intake.enqueue(async () => {
      const open = await this.#rooms.ledger.commit((tx) =>
        this.#intake.finish(tx, { turnId: turn.turnId, cancelled, interrupted }),
      );
      for (const { approvalId, outcome, startedAt } of open) {
        void this.#outcomes.record(approvalId, outcome, { startedAt, endedAt: this.#rooms.now() });
      }
    });
  }

  #storeEnd(tx: Tx, turn: Turn, stopReason: StopReason, sentence: string | undefined): void {
    const stopped = turn.cancelled || stopReason === 'interrupted' || stopReason === 'failed';
    if (stopped) this.#queue.pause(tx, turn.cancelled ? 'stop' : 'failure');
    this.#append(tx, {
      type: 'turn.ended',
      turnId: turn.turnId,
      data: {
        stopReason,
        durationMs: Math.max(0, this.#rooms.now() - turn.startedAt),
        changedPaths: [...turn.changedPaths].slice(0, 500),
        ...(sentence === undefined ? {} : { sentence: sentence.slice(0, 1000) }),
      },
    });
    tx.updateConversation(this.id, { lastStop: stopReason });
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
    const agent = this.#seat.process;
    if (agent === null || !turn.prompted) {
      if (agent === null) this.#seat.abort();
      turn.abort.abort();
      return;
    }
    agent.cancel();
    const ladder = setTimeout(() => {
      if (!turn.ending) void agent.stop();
    }, limits.cancelMs);
    ladder.unref();
  }

  // Queue

  async #enqueue(content: readonly PromptPart[], operation: Operation): Promise<object> {
    if (this.#queue.waiting.length >= limits.queue) throw new Refusal('queue_full');
    return this.#rooms.ledger.commit((tx) => {
      const answer = this.#queue.add(tx, content, 'last');
      operation.store(tx, answer);
      return answer;
    });
  }

  async #passOn(note: string, headline: string): Promise<void> {
    const text = `Note from the operator about the action you asked for (${headline}):\n${note}`;
    await this.#rooms.ledger.commit((tx) => this.#queue.add(tx, [{ type: 'text', text }], 'first'));
  }

  async removeQueued(queueId: string, operation: Operation): Promise<object> {
    if (!this.#queue.waiting.some((each) => each.queueId === queueId)) throw new Refusal('not_found');
    await this.#rooms.ledger.commit((tx) => {
      this.#queue.remove(tx, queueId, 'operator');
      operation.store(tx, {});
    });
    return {};
  }

  async resumeQueue(): Promise<object> {
    if (this.#turn === null) await this.#seat.admit();
    await this.#rooms.ledger.commit((tx) => this.#queue.resume(tx));
    await this.#next();
    return {};
  }

  async #next(): Promise<void> {
    const next = this.#first();
    if (next === null) return;
    try {
      await this.#seat.admit();
    } catch (error) {
      return this.#holdQueue(error);
    }
    if (this.#first()?.queueId !== next.queueId) return; // taken, moved or held while the folder was looked at
    await this.#begin(next.content, 'queue', () => undefined, next.queueId);
  }

  #first(): QueuedPrompt | null {
    return this.#queue.paused || this.#turn !== null ? null : (this.#queue.waiting[0] ?? null);
  }

  /** What waits may not be sent now: it stays, the queue is held, and the transcript says why. */
  async #holdQueue(error: unknown): Promise<void> {
    if (!(error instanceof Refusal)) throw error;
    await this.#rooms.ledger.commit((tx) => {
      this.#queue.pause(tx, 'failure');
      this.#append(tx, { type: 'agent.error', data: agentError(error) });
    });
  }

  // The agent

  async restart(): Promise<void> {
    if (this.#turn !== null) throw new Refusal('turn_active');
    await this.#seat.stop('stopped');
    await this.#seat.admit();
    await this.#seat.start();
  }

  /** Ends the process and keeps the history. */
  async close(by: 'operator' | 'bridge_stopped' | 'idle'): Promise<void> {
    const byOperator = by === 'operator';
    this.#intake.deafen(true);
    if (this.#turn !== null) {
      await this.#rooms.desk.withdraw(
        { conversationId: this.id },
        byOperator ? 'conversation_closed' : 'bridge_restarted',
      );
      await this.#finish(
        this.#turn,
        'interrupted',
        byOperator ? 'The conversation was closed.' : 'The bridge was stopped.',
      );
    }
    const ended = await this.#seat.stop(byOperator ? 'stopped' : by).finally(() => this.#intake.deafen(false));
    if (ended) await this.#rooms.ledger.commit((tx) => this.#append(tx, { type: 'conversation.closed', data: { by } }));
  }

  async rename(title: string): Promise<void> {
    await this.#rooms.ledger.commit((tx) => {
      this.#append(tx, { type: 'conversation.renamed', data: { title, by: 'operator' } });
      tx.updateConversation(this.id, { title });
      this.#header.change(tx, { titled: true });
    });
    this.#rooms.ledger.feed.invalidate('conversations');
  }
}

const agentError = (refusal: Refusal): { code: string; sentence: string; mend?: string; mendCommand?: string } => {
  const details: ErrorDetails = refusal.details ?? {};
  const given = (['mend', 'mendCommand'] as const).filter((name) => typeof details[name] === 'string');
  const mends = Object.fromEntries(given.map((name) => [name, String(details[name])]));
  return { code: refusal.code, sentence: refusal.message, ...mends };
};
