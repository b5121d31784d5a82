/**
 * What an agent says, turned into stored events in the order it was said. One chain per conversation: an item is
 * handled only after the one before it is durable where it must be, so that text, tools and approvals never overtake
 * each other. Live text is the exception in one way only: it is shown at once and stored as a draft (D-42, D-43).
 */
import type { EventDraft, ToolContent } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { AgentItem, ToolCallState } from '../agents/contract.ts';
import type { Ledger, Tx } from '../ledger/contract.ts';
import type { Header } from './header.ts';
import { isFinal, mergeCall, onlyOutput, outcomeOf, type OpenCall } from './turn.ts';
import type { Outcome } from '#protocol/events.ts';

/** Growing output of a call is stored at most this often. */
const outputIntervalMs = 1000;
/** Parts stay small enough to be stored inline, whatever the script. */
const partUnits = Math.floor(limits.inlineTextBytes / 4);

/** Items that count as an answer of the agent. */
const answers: ReadonlySet<AgentItem['type']> = new Set(['text', 'image', 'tool.called', 'tool.updated', 'plan']);

export interface IntakeHost {
  readonly conversationId: string;
  readonly ledger: Pick<Ledger, 'commit' | 'feed' | 'blobs'>;
  readonly now: () => number;
  readonly uuid: () => string;
  readonly log: (line: Record<string, unknown>) => void;
  turnId(): string | null;
  /** The agent lives; `said` when it was an answer and not only its housekeeping (usage, titles, commands). */
  heard(said: boolean): void;
  changeHeader(tx: Tx, change: Partial<Header>): void;
  /** Fills content that shows one of our own terminals. */
  withTerminals(content: readonly ToolContent[]): ToolContent[];
  /** A call with an allowed permission came to its end. */
  settled(approvalId: string, outcome: Outcome, startedAt: number, call: ToolCallState): void;
  /** The agent changed a call that waits for a decision. */
  changed(call: ToolCallState): void;
  titled(): boolean;
}

interface Segment {
  readonly messageId: string;
  readonly agentMessageId: string | null;
  readonly role: 'agent' | 'thought';
  part: number;
  units: number;
}

export class Intake {
  readonly #host: IntakeHost;
  readonly #calls = new Map<string, OpenCall>();
  #chain: Promise<void> = Promise.resolve();
  #segment: Segment | null = null;
  #idle: NodeJS.Timeout | null = null;
  #isDeaf = false;

  constructor(host: IntakeHost) {
    this.#host = host;
  }

  /** Takes one item; never throws, never blocks. */
  take(item: AgentItem): void {
    if (this.#isDeaf) return;
    this.#host.heard(answers.has(item.type));
    void this.enqueue(() => this.#handle(item));
  }

  /** While the process is being ended after its turn was: what it still says belongs to nothing and is not kept. */
  deafen(isDeaf: boolean): void {
    this.#isDeaf = isDeaf;
  }

  /** Runs after everything taken so far. */
  enqueue<T>(work: () => Promise<T> | T): Promise<T> {
    const done = this.#chain.then(work);
    this.#chain = done.then(
      () => undefined,
      (error: unknown) => this.#host.log({ event: 'intake_failed', conversation: this.#host.conversationId, error }),
    );
    return done;
  }

  call(toolCallId: string): OpenCall | null {
    return this.#calls.get(toolCallId) ?? null;
  }

  /** The call an approval is about, made from the request where none was announced. */
  open(call: ToolCallState): OpenCall {
    const known = this.#calls.get(call.toolCallId);
    if (known !== undefined) return known;
    const made: OpenCall = { state: call, grants: [], storedAt: 0, deferred: null, timer: null };
    this.#calls.set(call.toolCallId, made);
    return made;
  }

  /** Inside the turn's last transaction: ends the draft and closes every call the agent left open. */
  finish(
    tx: Tx,
    end: { interrupted: boolean; cancelled: boolean; turnId: string },
  ): { approvalId: string; outcome: Outcome; startedAt: number }[] {
    const { conversationId } = this.#host;
    tx.endDraft(conversationId, { interrupted: end.interrupted });
    this.#segment = null;
    const outcomes: { approvalId: string; outcome: Outcome; startedAt: number }[] = [];
    for (const [toolCallId, call] of this.#calls) {
      if (call.timer !== null) clearTimeout(call.timer);
      if (!isFinal(call.state.status)) {
        const status = end.cancelled || end.interrupted ? 'cancelled' : 'failed';
        const data = { ...call.deferred, toolCallId, status } as const;
        tx.append(conversationId, { type: 'tool.updated', turnId: end.turnId, data: this.#stored(data) });
      }
      // The agent never said how it went: uncertain, not a guess.
      for (const grant of call.grants) outcomes.push({ ...grant, outcome: outcomeOf(call.state.status) });
    }
    this.#calls.clear();
    return outcomes;
  }

  async #handle(item: AgentItem): Promise<void> {
    switch (item.type) {
      case 'text':
        return this.#text(item);
      case 'tool.called':
      case 'tool.updated':
        return this.#tool(item.call);
      case 'image':
        return this.#image(item);
      case 'plan':
        return this.#store({ type: 'plan', data: { entries: [...item.entries] } });
      case 'notice':
        return this.#store({
          type: 'notice',
          data: { level: item.level, code: item.code, sentence: item.sentence, raw: item.raw?.slice(0, 16_000) },
        });
      case 'usage':
        return this.#store({
          type: 'usage',
          data: { usedTokens: item.usedTokens, sizeTokens: item.sizeTokens, cost: item.cost },
        });
      case 'mode':
        return this.#store({ type: 'mode', data: { modeId: item.modeId, by: 'agent' } }, { modeId: item.modeId });
      case 'options':
        return this.#store({ type: 'option', data: { options: [...item.options] } }, { options: item.options });
      case 'commands':
        return this.#store({ type: 'commands', data: { commands: [...item.commands] } }, { commands: item.commands });
      case 'title':
        return this.#title(item.title);
    }
  }

  async #title(title: string): Promise<void> {
    const text = title.trim().slice(0, limits.titleUnits);
    if (text === '' || this.#host.titled()) return;
    const { conversationId, ledger } = this.#host;
    await ledger.commit((tx) => {
      tx.append(conversationId, { type: 'conversation.renamed', data: { title: text, by: 'agent' } });
      tx.updateConversation(conversationId, { title: text });
      this.#host.changeHeader(tx, { titled: true });
    });
  }

  #turn(): { turnId?: string } {
    const turnId = this.#host.turnId();
    return turnId === null ? {} : { turnId };
  }

  async #store(draft: EventDraft, header?: Partial<Header>): Promise<void> {
    const { conversationId, ledger } = this.#host;
    await ledger.commit((tx) => {
      tx.append(conversationId, { ...draft, ...this.#turn() });
      if (header !== undefined) this.#host.changeHeader(tx, header);
    });
  }

  async endSegment(): Promise<void> {
    if (this.#idle !== null) clearTimeout(this.#idle);
    if (this.#segment === null) return;
    this.#segment = null;
    await this.#host.ledger.commit((tx) => void tx.endDraft(this.#host.conversationId));
  }

  async #text(item: Extract<AgentItem, { type: 'text' }>): Promise<void> {
    if (item.text === '') return;
    const current = this.#segment;
    const other = current !== null && (current.role !== item.role || current.agentMessageId !== item.messageId);
    if (other) await this.endSegment();
    this.#segment ??= {
      messageId: this.#host.uuid(),
      agentMessageId: item.messageId,
      role: item.role,
      part: 0,
      units: 0,
    };
    const segment = this.#segment;
    if (segment.units + item.text.length > partUnits && segment.units > 0) {
      await this.#host.ledger.commit((tx) => void tx.endDraft(this.#host.conversationId));
      segment.part += 1;
      segment.units = 0;
    }
    segment.units += item.text.length;
    const { messageId, role, part } = segment;
    this.#host.ledger.feed.text(this.#host.conversationId, {
      turnId: this.#host.turnId(),
      messageId,
      role,
      part,
      text: item.text,
    });
    this.#endWhenIdle();
  }

  #endWhenIdle(): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    if (this.#host.turnId() !== null) return;
    this.#idle = setTimeout(() => void this.enqueue(() => this.endSegment()), limits.segmentIdleMs);
    this.#idle.unref();
  }

  async #image(item: Extract<AgentItem, { type: 'image' }>): Promise<void> {
    const { conversationId, ledger } = this.#host;
    await this.endSegment();
    const blob = await ledger.blobs.put(conversationId, Buffer.from(item.base64, 'base64'), { mime: item.mime });
    await this.#store({
      type: 'message',
      data: { messageId: this.#host.uuid(), role: 'agent', text: '', attachments: [blob] },
    });
  }

  #stored(call: ToolCallState): Extract<EventDraft, { type: 'tool.called' }>['data'] {
    const { content, locations, ...rest } = call;
    return {
      ...rest,
      ...(locations === undefined ? {} : { locations: locations.slice(0, 200).map((each) => ({ ...each })) }),
      ...(content === undefined ? {} : { content: this.#host.withTerminals(content.slice(0, 500)) }),
    };
  }

  async #tool(update: ToolCallState): Promise<void> {
    const known = this.#calls.get(update.toolCallId);
    if (known !== undefined && onlyOutput(update)) {
      known.state = mergeCall(known.state, update);
      if (this.#host.now() - known.storedAt < outputIntervalMs) return this.#defer(known, update);
    }
    const call = this.open(update);
    call.state = mergeCall(call.state, update);
    const stored = call.deferred === null ? update : mergeCall(call.deferred, update);
    call.deferred = null;
    call.storedAt = this.#host.now();
    const { conversationId, ledger } = this.#host;
    this.#segment = null;
    await ledger.commit((tx) => {
      tx.endDraft(conversationId);
      const data = this.#stored(stored);
      const type = known === undefined ? 'tool.called' : 'tool.updated';
      tx.append(conversationId, { type, data, ...this.#turn() });
    });
    this.#host.changed(call.state);
    if (isFinal(call.state.status)) this.#close(update.toolCallId, call);
  }

  #defer(call: OpenCall, update: ToolCallState): void {
    call.deferred = call.deferred === null ? update : mergeCall(call.deferred, update);
    call.timer ??= setTimeout(() => {
      call.timer = null;
      const deferred = call.deferred;
      if (deferred !== null) void this.enqueue(() => (call.deferred === null ? undefined : this.#tool(deferred)));
    }, outputIntervalMs);
    call.timer.unref();
  }

  #close(toolCallId: string, call: OpenCall): void {
    if (call.timer !== null) clearTimeout(call.timer);
    for (const grant of call.grants) {
      this.#host.settled(grant.approvalId, outcomeOf(call.state.status), grant.startedAt, call.state);
    }
    call.grants.length = 0;
    // Kept until the turn ends outside a turn it may go: late updates then make a new row of their own.
    if (this.#host.turnId() === null) this.#calls.delete(toolCallId);
  }
}
