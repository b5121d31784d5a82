/** One conversation as the views see it (contract.ts). Its facts come by the feed or from the offline copy, never from here. */
import type { BlobRef } from '#protocol/events.ts';
import type { ActivityFrame, Draft } from '#protocol/frames.ts';
import type { ReceiptSummary } from '#protocol/methods/receipt.ts';
import type { ConversationSummary, PromptPart } from '#protocol/methods/conversation.ts';
import { liveRow } from '#protocol/project.ts';
import { applyEvent } from '#protocol/summary.ts';
import type { ApprovalRow, BlockView, MessageRow } from '#protocol/view.ts';
import { fetchBlob, uploadBlob } from '#lib/link/blobs.ts';
import type { Feed } from '#lib/link/link.ts';
import { SvelteMap } from 'svelte/reactivity';
import type { App } from './app.svelte.ts';
import { Blocks } from './blocks.ts';
import type { BlockSlot, ConversationState, Failure, Outcome, Sending } from './contract.ts';
import { blobText, overHttp } from './blob.ts';
import { decide, type DecideAnswer } from './decide.ts';
import { readDraft, writeDraft } from './drafts.ts';
import { done } from './failure.ts';
import { Flush } from './flush.ts';
import { Outbox } from './outbox.svelte.ts';
import type { Review } from './review.svelte.ts';

type Status = Extract<ActivityFrame, { type: 'status' }>;

/** Output of a running terminal kept for the screen; the stored event has all of it. */
const terminalUnits = 64 * 1024;

const cards = new WeakMap<BlockView, readonly ApprovalRow[]>();
const pendingIn = (view: BlockView): readonly ApprovalRow[] => {
  const known = cards.get(view);
  if (known !== undefined) return known;
  const rows = view.entries
    .filter((entry) => entry.kind === 'approval')
    .filter((row) => row.status.state === 'pending');
  cards.set(view, rows);
  return rows;
};

export class Conversation implements ConversationState {
  readonly id: string;
  summary = $state.raw<ConversationSummary | null>(null);
  loading = $state(true);
  failure = $state.raw<Failure | null>(null);
  blocks = $state.raw<readonly BlockSlot[]>([]);
  live = $state.raw<MessageRow | null>(null);
  status = $state.raw<Status | null>(null);
  revealed = $state<number | null>(null);
  draftAttachments = $state.raw<readonly BlobRef[]>([]);
  /** From the offline copy and not brought forward yet, with the time it was last in step. */
  #cachedAt = $state<number | null>(null);
  #draft = $state('');
  #terminals = new SvelteMap<string, string>();
  readonly pending = $derived(this.blocks.flatMap((slot) => (slot.view === null ? [] : pendingIn(slot.view))));
  readonly offline = $derived.by(() => {
    const away = ['offline', 'signed_out', 'incompatible'].includes(this.#app.connection);
    return away ? { since: this.#cachedAt ?? this.#app.syncedAt ?? 0 } : null;
  });
  readonly blocked = $derived.by(() => this.#app.blocked ?? this.summary?.problem ?? null);

  /** Comments on changes that wait to be sent; null until there are some or one may be written. */
  review = $state.raw<Review | null>(null);
  #app: App;
  #model = new Blocks();
  #next: ConversationSummary | null = null;
  #liveDraft: Draft | null = null;
  #unsubscribe: (() => void) | null = null;
  #flush = new Flush(() => this.#show());
  #loads = new Map<string, Promise<void>>();
  #outbox: Outbox;
  #closed = false;

  constructor(id: string, app: App) {
    this.id = id;
    this.#app = app;
    this.#outbox = new Outbox(
      ({ key, content, delivery }) =>
        app.call('conversation.send', { conversationId: id, delivery, content: [...content] }, { key }),
      () => crypto.randomUUID(),
    );
    const draft = readDraft(localStorage, id);
    this.#draft = draft.text;
    this.draftAttachments = draft.attachments;
    this.summary = app.conversations.items.find((one) => one.conversationId === id) ?? null;
    this.#next = this.summary;
    void this.#begin();
  }

  get sending(): readonly Sending[] {
    return this.#outbox.items;
  }
  get draft(): string {
    return this.#draft;
  }
  set draft(value: string) {
    this.#draft = value;
    this.#keepDraft();
  }
  setDraftAttachments(attachments: readonly BlobRef[]): void {
    this.draftAttachments = attachments;
    this.#keepDraft();
  }
  terminalOutput(terminalId: string): string {
    return this.#terminals.get(terminalId) ?? '';
  }

  async openReview(): Promise<void> {
    const { Review } = await import('./review.svelte.ts');
    this.review ??= new Review(this.#app, this.id);
  }

  /** A new link: what was heard stays, the subscription goes on by cursor. */
  reconnect(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#subscribe();
  }

  close(): void {
    this.#closed = true;
    this.#unsubscribe?.();
    this.#flush.cancel();
    void this.#app.copy?.flush();
  }

  // The feed

  readonly #feed: Feed = {
    opened: (answer) => {
      this.#model.clear();
      this.#model.begin(answer.outline, answer.boundarySeq);
      this.#model.add(answer.events);
      for (const event of answer.events) this.#outbox.note(event);
      this.#liveDraft = answer.draft;
      this.#app.copy?.put(this.id, { events: answer.events, outline: answer.outline });
      this.#inStep(answer.summary);
    },
    resumed: ({ summary, outline, boundarySeq }) => {
      this.#model.begin(outline, boundarySeq);
      this.#app.copy?.put(this.id, { outline });
      this.#inStep(summary);
    },
    event: (event) => {
      this.#model.add([event]);
      this.#outbox.note(event);
      if (this.#next !== null) this.#next = applyEvent(this.#next, event);
      if (event.type === 'turn.ended') this.#terminals.clear();
      this.#app.copy?.put(this.id, {
        events: [event],
        outline: this.#model.outline,
        ...(this.#next === null ? {} : { summary: this.#next }),
      });
      this.#flush.ask();
    },
    activity: (frame) => {
      if (frame.type === 'status') {
        this.status = frame;
        return;
      }
      const had = this.#terminals.get(frame.terminalId) ?? '';
      this.#terminals.set(frame.terminalId, (had + frame.text).slice(-terminalUnits));
    },
    draft: (draft) => {
      this.#liveDraft = draft;
      this.#flush.ask();
    },
    gone: (failure) => {
      this.loading = false;
      this.failure = failure;
      if (failure.code === 'unknown_conversation') this.#app.dropConversation(this.id);
    },
  };

  /** What no event tells, asked anew: whether it can be used, and its worktree. */
  refresh({ problem, worktree }: Pick<ConversationSummary, 'problem' | 'worktree'>): void {
    if (this.#next === null) return;
    this.#next = { ...this.#next, problem, ...(worktree === undefined ? {} : { worktree }) };
    this.#flush.now();
  }

  /** The bridge has said how it stands: what was cached is no longer a copy, what was under way is asked for. */
  #inStep(summary: ConversationSummary): void {
    this.#next = summary;
    this.#cachedAt = null;
    this.failure = null;
    this.loading = false;
    this.status = null;
    this.#app.copy?.put(this.id, { summary });
    this.#outbox.resume();
    this.#flush.now();
  }

  // Reading

  async load(seq: number): Promise<void> {
    const index = this.#model.indexOf(seq);
    const before = this.#model.missingBefore(index);
    if (before === null) return;
    const { firstSeq, endSeq } = this.#model.bounds(index);
    // The page that ends where the loaded part begins, unless the wanted place lies far above it.
    const around = seq > firstSeq && seq < before && before - seq > 400;
    const name = around ? `around:${seq}` : `before:${before}`;
    const running =
      this.#loads.get(name) ?? this.#loadPart(around ? { aroundSeq: seq } : { beforeSeq: before }, firstSeq, endSeq);
    this.#loads.set(name, running);
    await running.finally(() => this.#loads.delete(name));
    this.#model.letGo(seq);
    this.#flush.now();
  }

  async reveal(seq: number): Promise<void> {
    if (!this.#model.has(seq)) await this.load(seq);
    this.revealed = null;
    this.revealed = seq;
  }

  async #loadPart(
    where: { beforeSeq: number } | { aroundSeq: number },
    firstSeq: number,
    endSeq: number,
  ): Promise<void> {
    const kept = await this.#app.copy?.events(this.id, firstSeq, endSeq - 1);
    if (kept !== undefined && (kept.length === endSeq - firstSeq || !this.#app.live)) {
      this.#model.add(kept);
      return;
    }
    const page = await this.#app.call('conversation.history', { conversationId: this.id, ...where });
    if (!page.ok) {
      if (page.failure.code !== 'offline') this.failure = page.failure;
      return;
    }
    this.#model.add(page.value.events);
    this.#app.copy?.put(this.id, { events: page.value.events });
  }

  // Verbs

  async send(
    content: readonly PromptPart[],
    delivery: 'prompt' | 'queue',
  ): Promise<Outcome<{ turnId?: string | undefined; queueId?: string | undefined }>> {
    return this.#outbox.send(content, delivery);
  }
  retry(sendingKey: string): Promise<void> {
    return this.#outbox.retry(sendingKey);
  }
  discard(sendingKey: string): void {
    this.#outbox.discard(sendingKey);
  }
  async stop(): Promise<Outcome> {
    return this.#void(this.#app.call('conversation.cancel', { conversationId: this.id }));
  }

  decide(
    approval: { approvalId: string; digest: string },
    answer: DecideAnswer,
  ): Promise<Outcome<{ receiptId: string }>> {
    return decide(this.#app, approval, answer);
  }

  setMode(modeId: string): Promise<Outcome> {
    return this.#summarised(this.#app.call('conversation.setMode', { conversationId: this.id, modeId }));
  }
  setModel(modelId: string): Promise<Outcome> {
    return this.#summarised(this.#app.call('conversation.setModel', { conversationId: this.id, modelId }));
  }
  setOption(optionId: string, value: string): Promise<Outcome> {
    return this.#summarised(this.#app.call('conversation.setOption', { conversationId: this.id, optionId, value }));
  }
  rename(title: string): Promise<Outcome> {
    return this.#summarised(this.#app.call('conversation.rename', { conversationId: this.id, title }));
  }
  archive(archived: boolean): Promise<Outcome> {
    return this.#summarised(this.#app.call('conversation.archive', { conversationId: this.id, archived }));
  }
  closeAgent(): Promise<Outcome> {
    return this.#summarised(this.#app.call('conversation.close', { conversationId: this.id }));
  }
  restart(): Promise<Outcome> {
    return this.#summarised(this.#app.call('conversation.restart', { conversationId: this.id }));
  }
  async remove(): Promise<Outcome> {
    const outcome = await this.#void(this.#app.call('conversation.delete', { conversationId: this.id }));
    if (outcome.ok) {
      this.draft = '';
      this.setDraftAttachments([]);
      this.#app.dropConversation(this.id);
    }
    return outcome;
  }
  removeQueued(queueId: string): Promise<Outcome> {
    return this.#void(this.#app.call('queue.remove', { conversationId: this.id, queueId }));
  }
  resumeQueue(): Promise<Outcome> {
    return this.#void(this.#app.call('queue.resume', { conversationId: this.id }));
  }
  async receipts(): Promise<Outcome<readonly ReceiptSummary[]>> {
    const outcome = await this.#app.call('receipt.list', { conversationId: this.id, limit: 200 });
    return outcome.ok ? done(outcome.value.receipts) : outcome;
  }
  async searchFiles(query: string): Promise<readonly { path: string; type: 'file' | 'directory' }[]> {
    const workspaceId = this.summary?.workspaceId;
    if (workspaceId === undefined) return [];
    const outcome = await this.#app.call('files.search', { workspaceId, query, limit: 20 });
    return outcome.ok ? outcome.value.matches : [];
  }

  upload(file: Blob, name: string): Promise<Outcome<BlobRef>> {
    return overHttp(this.#app, this.id, (target) => uploadBlob(target, file, name));
  }
  blobUrl(blob: BlobRef): Promise<Outcome<string>> {
    return overHttp(this.#app, this.id, async (target) => URL.createObjectURL(await fetchBlob(target, blob.sha256)));
  }
  blobText(blob: BlobRef): Promise<Outcome<string>> {
    return blobText(this.#app, this.id, blob);
  }

  // Inside

  async #begin(): Promise<void> {
    const copy = this.#app.copy;
    const meta = await copy?.meta(this.id);
    if (
      copy !== null &&
      meta !== undefined &&
      meta !== null &&
      meta.summary !== null &&
      meta.lastSeq > 0 &&
      !this.#closed
    ) {
      const from = meta.outline.at(-2) ?? 1;
      this.#model.begin(meta.outline.length > 0 ? meta.outline : [1], meta.lastSeq);
      this.#model.add(await copy.events(this.id, Math.max(from, meta.lastSeq - 500), meta.lastSeq));
      this.#next = { ...meta.summary, state: 'idle', live: false };
      this.#cachedAt = meta.syncedAt;
      this.loading = false;
      void copy.touch(this.id);
      this.#flush.now();
    }
    if (this.#closed) return;
    if (this.#app.link === null) this.loading = false;
    this.#subscribe();
    if (((await copy?.review(this.id)) ?? []).length > 0) await this.openReview();
  }

  #subscribe(): void {
    if (this.#closed || this.#unsubscribe !== null || this.#app.link === null) return;
    const after = this.#model.lastSeq === 0 ? null : this.#model.lastSeq;
    this.#unsubscribe = this.#app.link.subscribe(this.id, after, this.#feed);
  }

  #show(): void {
    if (this.#closed) return;
    this.blocks = this.#model.slots();
    this.live = this.#liveDraft === null ? null : liveRow(this.#liveDraft, this.live?.at ?? Date.now());
    if (this.#next !== null && this.#next !== this.summary) this.summary = this.#next;
  }

  #keepDraft(): void {
    writeDraft(localStorage, this.id, { text: this.#draft, attachments: this.draftAttachments }, Date.now());
  }

  async #void(answer: Promise<Outcome<unknown>>): Promise<Outcome> {
    const outcome = await answer;
    return outcome.ok ? done(undefined) : outcome;
  }

  async #summarised(answer: Promise<Outcome<ConversationSummary>>): Promise<Outcome> {
    const outcome = await answer;
    if (!outcome.ok) return outcome;
    if (this.#next === null || outcome.value.lastSeq >= this.#next.lastSeq) this.#next = outcome.value;
    this.#app.noteSummary(outcome.value);
    this.#flush.ask();
    return done(undefined);
  }
}
