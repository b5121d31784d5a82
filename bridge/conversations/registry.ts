/**
 * All conversations: made, found, listed, deleted; and the slots for live agent processes. A conversation object exists
 * for as long as the bridge runs and something was asked of it; rows that were only listed stay rows.
 */
import { Refusal } from '#protocol/errors.ts';
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import type { Params } from '#protocol/methods.ts';
import type { ConversationRow } from '../ledger/contract.ts';
import { Conversation } from './conversation.ts';
import { newHeader, readHeader } from './header.ts';
import type { Operation } from './operations.ts';
import type { Rooms } from './rooms.ts';
import { summarise } from './summary.ts';

export class Conversations {
  readonly #rooms: Rooms;
  readonly #open = new Map<string, Conversation>();
  #processes = 0;

  constructor(rooms: Rooms) {
    this.#rooms = rooms;
  }

  get processes(): number {
    return this.#processes;
  }

  #slots = {
    take: (): void => {
      if (this.#processes >= this.#rooms.processLimit) throw new Refusal('agent_limit');
      this.#processes += 1;
    },
    give: (): void => {
      this.#processes -= 1;
    },
  };

  /** @throws Refusal unknown_conversation */
  get(conversationId: string): Conversation {
    const open = this.#open.get(conversationId);
    if (open !== undefined) return open;
    const row = this.#rooms.ledger.read.conversation(conversationId);
    if (row === null) throw new Refusal('unknown_conversation');
    const made = new Conversation(row, this.#rooms, this.#slots);
    this.#open.set(conversationId, made);
    return made;
  }

  summary(conversationId: string): ConversationSummary {
    const row = this.#rooms.ledger.read.conversation(conversationId);
    if (row === null) throw new Refusal('unknown_conversation');
    return { ...this.#summarise(row), problem: this.#problem(row) };
  }

  /** Why nothing can be sent here, in plain words. Looks at the folder, so only for one conversation at a time. */
  #problem(row: ConversationRow): string | null {
    if (this.#rooms.agents.get(row.agentId) === null) return `The agent "${row.agentTitle}" is not set up any more.`;
    try {
      this.#rooms.workspaces.root(row.workspaceId).check();
      return null;
    } catch (error) {
      if (error instanceof Refusal) return error.message;
      throw error;
    }
  }

  #summarise(row: ConversationRow): ConversationSummary {
    const open = this.#open.get(row.conversationId);
    if (open !== undefined) return open.summary(row);
    const pendingApprovals = this.#rooms.ledger.read.pendingApprovals(row.conversationId);
    return summarise(row, readHeader(row.header), { state: 'idle', live: false, pendingApprovals, problem: null });
  }

  list(params: Params<'conversation.list'>, maxRows: number): { conversations: ConversationSummary[]; more: boolean } {
    const limit = Math.min(params.limit ?? maxRows, maxRows);
    const rows = this.#rooms.ledger.read.conversations({
      workspaceId: params.workspaceId,
      archived: params.archived ?? false,
      before: params.before,
      limit: limit + 1,
    });
    return { conversations: rows.slice(0, limit).map((row) => this.#summarise(row)), more: rows.length > limit };
  }

  /** Takes the lease first, then writes (W-02). @throws Refusal unknown_agent, forbidden, workspace_* */
  async create(params: Params<'conversation.create'>, operation: Operation | null): Promise<ConversationSummary> {
    const { ledger, agents, workspaces, uuid, now } = this.#rooms;
    const root = workspaces.root(params.workspaceId);
    root.check();
    const agent = agents.get(params.agentId);
    if (agent === null || !agent.enabled) throw new Refusal('unknown_agent');
    if (agent.enforcement === 'unrestricted' && params.acceptUnrestricted !== true) {
      throw new Refusal('forbidden', {
        message: `${agent.title} may act without asking: ${agent.enforcementWhy} Accept that to start it.`,
      });
    }
    const title = params.title ?? 'New conversation';
    const header = newHeader({
      acceptUnrestricted: params.acceptUnrestricted === true,
      titled: params.title !== undefined,
      modeId: params.modeId ?? null,
    });
    const row = {
      conversationId: uuid(),
      workspaceId: params.workspaceId,
      workspacePath: root.path,
      title,
      agentId: agent.agentId,
      agentTitle: agent.title,
      createdAt: now(),
      archived: false,
      sessionId: null,
      lastStop: null,
      header: JSON.stringify(header),
    };
    const summary = await ledger.commit((tx) => {
      tx.putConversation(row);
      const { workspaceId, workspacePath, agentId, agentTitle } = row;
      tx.append(row.conversationId, {
        type: 'conversation.created',
        data: { workspaceId, workspacePath, agentId, agentTitle, title },
      });
      const stored = tx.conversation(row.conversationId);
      if (stored === null) throw new Error('a conversation just written cannot be read');
      const answer = summarise(stored, header, { state: 'idle', live: false, pendingApprovals: 0, problem: null });
      operation?.store(tx, answer);
      return answer;
    });
    ledger.feed.invalidate('conversations');
    return summary;
  }

  async archive(conversationId: string, archived: boolean): Promise<ConversationSummary> {
    const conversation = this.get(conversationId);
    if (conversation.busy) throw new Refusal('conversation_active');
    if (archived) await conversation.close('operator');
    await this.#rooms.ledger.commit((tx) => {
      tx.append(conversationId, { type: 'conversation.archived', data: { archived } });
      tx.updateConversation(conversationId, { archived });
    });
    this.#rooms.ledger.feed.invalidate('conversations');
    return this.summary(conversationId);
  }

  /** Events, blobs and action bytes go; receipts stay (L-21). */
  async remove(conversationId: string, operation: Operation): Promise<void> {
    const conversation = this.get(conversationId);
    if (conversation.busy) throw new Refusal('conversation_active');
    await conversation.close('operator');
    await this.#rooms.ledger.commit((tx) => {
      tx.deleteConversation(conversationId);
      operation.store(tx, {});
    });
    this.#open.delete(conversationId);
    this.#rooms.ledger.feed.invalidate('conversations');
    // It is deleted already: what could not be removed now is swept at the next start.
    await this.#rooms.checkpoints.forget(conversationId).catch((error: unknown) => {
      this.#rooms.log({ event: 'failed', conversation: conversationId, error });
    });
  }

  /** Whether anything of this workspace is running. */
  active(workspaceId: string): Conversation[] {
    return [...this.#open.values()].filter((each) => each.live && each.summary().workspaceId === workspaceId);
  }

  agentActive(agentId: string): boolean {
    return [...this.#open.values()].some((each) => each.live && each.summary().agentId === agentId);
  }

  /** Orderly stop: every turn is recorded as interrupted, every process ended (D-51). */
  async closeAll(): Promise<void> {
    await Promise.all(
      [...this.#open.values()].filter((each) => each.live || each.busy).map((each) => each.close('bridge_stopped')),
    );
  }
}

/** At boot: prompts that waited in a queue wait for the operator now (L-23, G-32). In recovery's transaction. */
export const pauseQueues = (tx: import('../ledger/contract.ts').Tx): void => {
  for (const row of tx.conversations({ limit: Number.MAX_SAFE_INTEGER })) {
    const header = readHeader(row.header);
    if (header.queue.length === 0 || header.queuePaused) continue;
    tx.append(row.conversationId, { type: 'queue.paused', data: { paused: true, why: 'restart' } });
    tx.updateConversation(row.conversationId, { header: JSON.stringify({ ...header, queuePaused: true }) });
  }
};
