/**
 * All conversations: made, found, listed, deleted; and the slots for live agent processes. A conversation object exists
 * for as long as the bridge runs and something was asked of it; rows that were only listed stay rows.
 */
import { Refusal } from '#protocol/errors.ts';
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import type { Params } from '#protocol/methods.ts';
import type { Actor } from '#protocol/actor.ts';
import type { ConversationRow, Tx } from '../ledger/contract.ts';
import { Conversation } from './conversation.ts';
import { newHeader, readHeader } from './header.ts';
import type { Operation } from './operations.ts';
import { chosenReferences, type Reference } from './references.ts';
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
    if (this.#rooms.worktrees.info(row.conversationId)?.removed === true) return 'Its worktree was removed.';
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
    const now = { state: 'idle', live: false, pendingApprovals, problem: null } as const;
    return summarise(row, readHeader(row.header), now, this.#rooms.worktrees.info(row.conversationId));
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

  /**
   * Takes the lease first, then writes (W-02).
   * @throws Refusal unknown_agent, forbidden, workspace_*, as `chosenReferences`, as `Worktrees.make`
   */
  async create(
    params: Params<'conversation.create'>,
    operation: Operation | null,
    actor: Actor,
  ): Promise<ConversationSummary> {
    const { ledger, agents, workspaces, worktrees, uuid } = this.#rooms;
    const root = workspaces.root(params.workspaceId);
    root.check();
    const agent = agents.get(params.agentId);
    if (agent === null || !agent.enabled) throw new Refusal('unknown_agent');
    if (agent.enforcement === 'unrestricted' && params.acceptUnrestricted !== true) {
      throw new Refusal('forbidden', {
        message: `${agent.title} may act without asking: ${agent.enforcementWhy} Accept that to start it.`,
      });
    }
    const references = chosenReferences(this.#rooms, root, params.references ?? []);
    const { parentId } = params;
    const parent = parentId === undefined ? null : ledger.read.conversation(parentId);
    if (parentId !== undefined && parent?.workspaceId !== params.workspaceId) throw new Refusal('unknown_conversation');
    if (params.uncommitted === true && params.worktree !== true) throw new Refusal('bad_request');
    const conversationId = uuid();
    const store = (tx: Tx, where: { workspaceId: string; path: string }): ConversationSummary =>
      this.#put(tx, { ...params, ...where, references, conversationId, agentTitle: agent.title }, operation);
    let summary: ConversationSummary;
    if (params.worktree === true) {
      if (parent === null || parentId === undefined) throw new Refusal('bad_request');
      const title = params.title ?? parent.title;
      const uncommitted = params.uncommitted === true;
      summary = await worktrees.make(actor, { conversationId, parentId, title, uncommitted }, store);
    } else summary = await ledger.commit((tx) => store(tx, { workspaceId: params.workspaceId, path: root.path }));
    ledger.feed.invalidate('conversations');
    return summary;
  }

  #put(
    tx: Tx,
    made: Omit<Params<'conversation.create'>, 'references'> & {
      conversationId: string;
      path: string;
      agentTitle: string;
      references: readonly Reference[];
    },
    operation: Operation | null,
  ): ConversationSummary {
    const { conversationId, workspaceId, agentId, agentTitle, parentId, references } = made;
    const title = made.title ?? 'New conversation';
    const header = newHeader({
      acceptUnrestricted: made.acceptUnrestricted === true,
      titled: made.title !== undefined,
      modeId: made.modeId ?? null,
      parentId: parentId ?? null,
      references,
    });
    const workspacePath = made.path;
    tx.putConversation({
      ...{ conversationId, workspaceId, workspacePath, title, agentId, agentTitle },
      createdAt: this.#rooms.now(),
      archived: false,
      sessionId: null,
      lastStop: null,
      header: JSON.stringify(header),
    });
    const child = parentId === undefined ? {} : { parentId };
    const read = references.length === 0 ? {} : { references: references.map((each) => each.workspaceId) };
    tx.append(conversationId, {
      type: 'conversation.created',
      data: { workspaceId, workspacePath, agentId, agentTitle, title, ...child, ...read },
    });
    const stored = tx.conversation(conversationId);
    if (stored === null) throw new Error('a conversation just written cannot be read');
    const now = { state: 'idle', live: false, pendingApprovals: 0, problem: null } as const;
    const answer = summarise(stored, header, now, this.#rooms.worktrees.info(conversationId));
    operation?.store(tx, answer);
    return answer;
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
    // Without its conversation nobody could bring back what is in it.
    if (this.#rooms.worktrees.holds(conversationId))
      throw new Refusal('conversation_active', {
        message: 'A worktree belongs to this conversation. Remove it first.',
      });
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
export const pauseQueues = (tx: Tx): void => {
  for (const row of tx.conversations({ limit: Number.MAX_SAFE_INTEGER })) {
    const header = readHeader(row.header);
    if (header.queue.length === 0 || header.queuePaused) continue;
    tx.append(row.conversationId, { type: 'queue.paused', data: { paused: true, why: 'restart' } });
    tx.updateConversation(row.conversationId, { header: JSON.stringify({ ...header, queuePaused: true }) });
  }
};
