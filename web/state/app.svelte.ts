/**
 * The app as the views see it: the connection, the lists, what is chosen. It holds no fact of its own; everything here
 * comes from the bridge or from the offline copy of what the bridge once said.
 */
import type { AgentSummary, ConversationSummary } from '#protocol/methods/conversation.ts';
import type { ApprovalView } from '#protocol/methods/approval.ts';
import { methods, type Answer, type MethodName, type Params } from '#protocol/methods.ts';
import type { SessionSummary } from '#protocol/methods/connection.ts';
import type { WorkspaceSummary } from '#protocol/methods/workspace.ts';
import type { OfflineCopy } from '#lib/cache/copy.ts';
import { connectBridge } from '#lib/link/bridge.ts';
import type { CallOptions, Link, LinkEvents, Topic } from '#lib/link/link.ts';
import type { Identity } from '#lib/link/identity.ts';
import { text } from '#lib/text/en.ts';
import { createContext } from 'svelte';
import { Conversation } from './conversation.svelte.ts';
import type { ConnectionState, Outcome } from './contract.ts';
import { failureOf, refused } from './failure.ts';
import { inPages, Listing, type Listed } from './list.svelte.ts';
import { Rules } from './rules.svelte.ts';
import { Session } from './session.svelte.ts';
import { Settings } from './settings.svelte.ts';
import { Toasts } from './toasts.svelte.ts';
import { Update } from './update.svelte.ts';

export type Overlay = 'palette' | 'new' | 'help' | 'openFolder' | 'newFolder' | 'context' | null;
const clockMs = 30_000;

const byActivity = (a: ConversationSummary, b: ConversationSummary): number => b.updatedAt - a.updatedAt;

export class App {
  readonly settings = new Settings();
  readonly toasts = new Toasts();
  readonly update = new Update();
  readonly session = new Session({
    signedIn: (identity, kept) => this.#connect(identity, kept),
    signedOut: () => this.#disconnect(),
    copyChanged: (copy) => this.#useCopy(copy),
    onQuota: () => this.toasts.show(text.connection.quota, 'stop'),
  });

  readonly conversations = new Listing<ConversationSummary>((pages) => this.#listConversations(pages));
  readonly workspaces = new Listing<WorkspaceSummary>(() =>
    this.#list('workspace.list', {}, (answer) => answer.workspaces),
  );
  readonly agents = new Listing<AgentSummary>(() => this.#list('agent.list', {}, (answer) => answer.agents));
  readonly approvals = new Listing<ApprovalView>((pages) => this.#listApprovals('pending', pages));
  readonly decided = new Listing<ApprovalView>((pages) => this.#listApprovals('decided', pages));
  readonly rules = new Rules(this);
  readonly sessions = new Listing<SessionSummary>(() => this.#list('bridge.sessions', {}, (answer) => answer.sessions));

  connection = $state<ConnectionState>('connecting');
  granted = $state.raw<ReadonlySet<string>>(new Set());
  /** When the offline copy was last in step; null when there is none. */
  syncedAt = $state<number | null>(null);
  overlay = $state<Overlay>(null);
  /** The sheet of a new conversation begins with a worktree of the one that is open. */
  continuing = false;
  /** Ticks twice a minute, for relative times. */
  now = $state(Date.now());
  showArchived = $state(false);
  /** The last conversation was reopened, or something else was asked for; once for each page load. */
  reopened = $state(false);
  /** Rises when trust may have changed. */
  trustGeneration = $state(0);
  /** Rises when something changed in the files this page watches. */
  filesGeneration = $state(0);
  /** Rises when the list of terminals is another. */
  terminalsGeneration = $state(0);
  /** Rises when there are new receipts. */
  receiptGeneration = $state(0);
  /** What is wrong with the bridge's signing key or its log, as far as this browser can tell. */
  receiptAlarm = $state<string | null>(null);

  readonly live = $derived(this.connection === 'live');
  readonly copy = $derived(this.session.copy);
  readonly workspace = $derived(this.#chosenWorkspace());
  /** Of the current workspace, newest activity first. */
  readonly history = $derived(
    this.conversations.items.filter((one) => this.#isHere(one) && one.archived === this.showArchived).sort(byActivity),
  );
  /** At work or waiting in other workspaces: never out of sight. */
  readonly elsewhere = $derived(
    this.conversations.items.filter((one) => !this.#isHere(one) && one.state !== 'idle').sort(byActivity),
  );
  readonly waiting = $derived(this.approvals.items.length);
  readonly readyAgents = $derived(this.agents.items.filter((agent) => agent.enabled));
  /** Why nothing can be changed right now, in plain words; null when it can. */
  readonly blocked = $derived(this.connection === 'live' ? null : text.connection.blocked[this.connection]);

  /** In the current workspace, or in a worktree made from it. */
  #isHere({ workspaceId, worktree }: ConversationSummary): boolean {
    const here = this.workspace?.workspaceId;
    return workspaceId === here || worktree?.parentWorkspaceId === here;
  }

  #link: Link | null = null;
  #open = new Map<string, Conversation>();
  #clock: ReturnType<typeof setInterval> | null = null;
  #invalidations = new Map<Topic, ReturnType<typeof setTimeout>>();

  get link(): Link | null {
    return this.#link;
  }

  async start(): Promise<void> {
    this.#clock = setInterval(() => (this.now = Date.now()), clockMs);
    await this.session.start();
    if (this.session.identity === null) this.connection = 'signed_out';
  }

  stop(): void {
    if (this.#clock !== null) clearInterval(this.#clock);
    for (const conversation of this.#open.values()) conversation.close();
    this.#link?.close();
    void this.copy?.flush();
  }

  /** The page became visible or the network changed. */
  wake(): void {
    this.now = Date.now();
    this.#link?.wake();
  }

  can(capability: string): boolean {
    return this.live && this.granted.has(capability);
  }

  /** Asks the bridge; a refusal comes back as words, never as an exception. */
  async call<M extends MethodName>(method: M, params: Params<M>, options?: CallOptions): Promise<Outcome<Answer<M>>> {
    const link = this.#link;
    if (link === null) return refused('offline');
    if (this.live && !this.granted.has(methods[method].capability)) return refused('unsupported_capability');
    try {
      return { ok: true, value: await link.call(method, params, options) };
    } catch (error) {
      return { ok: false, failure: failureOf(error) };
    }
  }

  /** As `call`, and says so when it fails. */
  async tell<M extends MethodName>(method: M, params: Params<M>): Promise<Outcome<Answer<M>>> {
    const outcome = await this.call(method, params);
    if (!outcome.ok) this.toasts.show(outcome.failure.message, 'stop');
    return outcome;
  }

  /** The state of one conversation; made on first use, kept while a view holds it. */
  conversation(conversationId: string): Conversation {
    const known = this.#open.get(conversationId);
    if (known !== undefined) return known;
    const conversation = new Conversation(conversationId, this);
    this.#open.set(conversationId, conversation);
    return conversation;
  }

  /** Views that leave a conversation say so; it is unsubscribed and its memory is given back (D-52). */
  leave(conversationId: string): void {
    this.#open.get(conversationId)?.close();
    this.#open.delete(conversationId);
  }

  chooseWorkspace(workspaceId: string): void {
    this.settings.set({ workspaceId });
  }

  /** The current workspace is the one that lists this conversation, and stays it when the bridge comes back elsewhere. */
  goWhere(summary: ConversationSummary): void {
    const here = this.#isHere(summary) ? this.workspace?.workspaceId : undefined;
    this.chooseWorkspace(here ?? summary.worktree?.parentWorkspaceId ?? summary.workspaceId);
  }

  /** For every list and header that shows this conversation before the bridge lists it anew. */
  noteSummary(summary: ConversationSummary): void {
    const others = this.conversations.items.filter((one) => one.conversationId !== summary.conversationId);
    this.conversations.items = [summary, ...others];
    this.#open.get(summary.conversationId)?.refresh(summary);
    this.copy?.put(summary.conversationId, { summary });
  }

  dropConversation(conversationId: string): void {
    this.conversations.items = this.conversations.items.filter((one) => one.conversationId !== conversationId);
    void this.copy?.remove(conversationId);
  }

  #connect(identity: Identity, kept: Promise<void>): void {
    this.#link?.close();
    this.connection = 'connecting';
    const events: LinkEvents = {
      // Only a session that a reload would find again is called live.
      state: (state) => void kept.then(() => this.#stateChanged(state)),
      session: (installation, granted) => {
        this.granted = granted;
        this.session.confirm(installation);
      },
      changed: (topic) => this.#changed(topic),
      revoked: () => void this.session.revoked(),
    };
    this.#link = connectBridge(identity, events);
    for (const conversation of this.#open.values()) conversation.reconnect();
  }

  #disconnect(): void {
    this.#link?.close();
    this.#link = null;
    this.connection = 'signed_out';
    this.granted = new Set();
  }

  #stateChanged(state: ConnectionState): void {
    const before = this.connection;
    this.connection = state;
    if (state !== 'live' || before === 'live') return;
    void import('./receipt-watch.ts').then(({ watchReceipts }) => watchReceipts(this));
    void Promise.all([this.workspaces.reload(), this.conversations.reload(), this.approvals.reload()]);
    for (const list of [this.agents, this.rules, this.sessions, this.decided]) list.invalidate();
  }

  #useCopy(copy: OfflineCopy | null): void {
    if (copy === null) {
      // Revoked: nothing of what was kept may stay on the screen either.
      this.syncedAt = null;
      for (const list of [
        this.conversations,
        this.workspaces,
        this.agents,
        this.approvals,
        this.decided,
        this.rules,
        this.sessions,
      ])
        list.clear();
      for (const conversationId of [...this.#open.keys()]) this.leave(conversationId);
      return;
    }
    copy.keep = this.settings.offline;
    void this.#seed(copy);
  }

  /** Shows what is kept until the bridge has answered, and for good when it does not. */
  async #seed(copy: OfflineCopy): Promise<void> {
    const [metas, known] = await Promise.all([copy.list(), copy.workspaces()]);
    this.conversations.seed(
      metas.flatMap((meta) =>
        meta.summary === null ? [] : [{ ...meta.summary, state: 'idle' as const, live: false }],
      ),
    );
    if (known === null) return;
    this.workspaces.seed(known.workspaces);
    this.syncedAt = known.syncedAt;
  }

  /** Lists are invalidated in bursts; they are asked for once a burst. */
  #changed(topic: Topic): void {
    if (this.#invalidations.has(topic)) return;
    const reload = (): void => {
      this.#invalidations.delete(topic);
      this.#reload(topic);
    };
    this.#invalidations.set(topic, setTimeout(reload, 120));
  }

  #reload(topic: Topic): void {
    switch (topic) {
      case 'conversations':
        return this.conversations.invalidate();
      case 'approvals':
        this.decided.invalidate();
        return this.approvals.invalidate();
      case 'workspaces':
        return this.workspaces.invalidate();
      case 'agents':
        return this.agents.invalidate();
      case 'rules':
        return this.rules.invalidate();
      case 'sessions':
        return this.sessions.invalidate();
      case 'receipts':
        this.receiptGeneration += 1;
        return this.decided.invalidate();
      case 'files':
        this.filesGeneration += 1;
        return;
      case 'terminals':
        this.terminalsGeneration += 1;
        return;
      case 'trust':
        this.trustGeneration += 1;
    }
  }

  async #list<M extends MethodName, T>(
    method: M,
    params: Params<M>,
    pick: (answer: Answer<M>) => readonly T[],
  ): Promise<Outcome<Listed<T>>> {
    const outcome = await this.call(method, params);
    if (!outcome.ok) return outcome;
    const items = pick(outcome.value);
    if (method === 'workspace.list') {
      this.copy?.putWorkspaces(items as unknown as readonly WorkspaceSummary[]);
      this.syncedAt = Date.now();
    }
    return { ok: true, value: { items, more: false } };
  }

  #listApprovals(state: 'pending' | 'decided', pages: number): Promise<Outcome<Listed<ApprovalView>>> {
    return inPages(pages, async (last) => {
      const answer = await this.call('approval.list', {
        state,
        limit: 100,
        ...(last === undefined ? {} : { before: last.requestedAt, beforeId: last.approvalId }),
      });
      return answer.ok ? { ok: true, value: { items: answer.value.approvals, more: answer.value.more } } : answer;
    });
  }

  async #listConversations(pages: number): Promise<Outcome<Listed<ConversationSummary>>> {
    const ask = (archived: boolean): Promise<Outcome<Listed<ConversationSummary>>> =>
      inPages(pages, async (last) => {
        const answer = await this.call('conversation.list', {
          archived,
          ...(last === undefined ? {} : { before: last.updatedAt }),
        });
        return answer.ok ? { ok: true, value: { items: answer.value.conversations, more: answer.value.more } } : answer;
      });
    const [current, archived] = await Promise.all([ask(false), ask(true)]);
    if (!current.ok) return current;
    if (!archived.ok) return archived;
    for (const summary of current.value.items) {
      if (this.copy?.isKept(summary.conversationId) === true) this.copy.put(summary.conversationId, { summary });
    }
    this.syncedAt = Date.now();
    return {
      ok: true,
      value: {
        items: [...current.value.items, ...archived.value.items],
        more: current.value.more || archived.value.more,
      },
    };
  }

  #chosenWorkspace(): WorkspaceSummary | null {
    const all = this.workspaces.items;
    const chosen = all.find((one) => one.workspaceId === this.settings.workspaceId);
    if (chosen !== undefined) return chosen;
    const usable = all.filter((one) => one.open && one.problem === null).sort((a, b) => b.openedAt - a.openedAt);
    return usable.find((one) => !one.practice) ?? usable[0] ?? all[0] ?? null;
  }
}

export const [getApp, setApp] = createContext<App>();
