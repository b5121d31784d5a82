/** The list of receipts as it is loaded and narrowed down, newest first; without the bridge, those kept in this browser. */
import type { ReceiptKind } from '#protocol/events.ts';
import type { ReceiptSummary } from '#protocol/methods/receipt.ts';
import type { App } from './app.svelte.ts';
import type { Failure } from './contract.ts';

const pageSize = 200;
/** With a filter that few match, older pages are asked for until so many are found. */
const screenful = 40;

export interface ReceiptFilter {
  readonly kind: ReceiptKind | '';
  readonly conversationId: string;
  readonly by: string;
}
const everything: ReceiptFilter = { kind: '', conversationId: '', by: '' };

export const matches = (receipt: ReceiptSummary, { kind, conversationId, by }: ReceiptFilter): boolean =>
  (kind === '' || receipt.kind === kind) &&
  (conversationId === '' || receipt.conversationId === conversationId) &&
  (by === '' || receipt.by === by);

/** `known` with the newest page in front; null when they do not meet, so that what lies between would be missing. */
export const joined = (
  newest: readonly ReceiptSummary[],
  known: readonly ReceiptSummary[],
): readonly ReceiptSummary[] | null => {
  const top = known[0];
  if (top === undefined) return newest;
  const at = newest.findIndex((one) => one.receiptId === top.receiptId);
  return at < 0 ? null : [...newest.slice(0, at), ...known];
};

export class ReceiptLog {
  #app: App;
  #asked = 0;
  items = $state.raw<readonly ReceiptSummary[]>([]);
  /** From this browser's copy, because the bridge is not there. */
  kept = $state(false);
  more = $state(false);
  loaded = $state(false);
  loading = $state(false);
  failure = $state.raw<Failure | null>(null);
  filter = $state.raw<ReceiptFilter>(everything);
  /** Where the list was, for coming back from a receipt. */
  scrolled = 0;

  readonly shown = $derived(this.items.filter((one) => matches(one, this.filter)));
  readonly filtered = $derived(this.filter !== everything && Object.values(this.filter).some((part) => part !== ''));

  constructor(app: App) {
    this.#app = app;
  }

  /** What is new on the bridge; called when it is there and whenever it says that there is more. */
  async refresh(): Promise<void> {
    const wasKept = this.kept;
    const page = await this.#page(undefined);
    if (page === null) return;
    this.kept = false;
    const all = wasKept || !this.loaded ? null : joined(page.receipts, this.items);
    this.items = all ?? page.receipts;
    if (all === null) this.more = page.more;
    this.loaded = true;
    await this.#fill();
  }

  /** One page more; false when none came. */
  async older(): Promise<boolean> {
    const last = this.items.at(-1);
    if (!this.more || this.loading || this.kept || last === undefined) return false;
    const page = await this.#page(last.seq);
    if (page === null) return false;
    this.items = [...this.items, ...page.receipts];
    this.more = page.more && page.receipts.length > 0;
    return true;
  }

  /** The bridge is away: those kept here, unless the list was loaded before. */
  async showKept(): Promise<void> {
    if (this.loaded && !this.kept) return;
    const kept = (await this.#app.copy?.receipts.list()) ?? [];
    if (this.#app.live) return;
    this.items = kept.map((one) => one.proof.summary);
    this.kept = true;
    this.more = false;
    this.loaded = true;
  }

  async narrow(change: Partial<ReceiptFilter>): Promise<void> {
    const before = this.filter;
    this.filter = { ...before, ...change };
    this.scrolled = 0;
    if (this.filter.conversationId !== before.conversationId && !this.kept) {
      this.loaded = false;
      this.items = [];
      await this.refresh();
    } else await this.#fill();
  }

  widen(): Promise<void> {
    return this.narrow(everything);
  }

  async #fill(): Promise<void> {
    const mine = this.filter;
    while (this.shown.length < screenful && mine === this.filter && (await this.older()));
  }

  async #page(beforeSeq: number | undefined): Promise<{ receipts: readonly ReceiptSummary[]; more: boolean } | null> {
    const mine = ++this.#asked;
    const { conversationId } = this.filter;
    this.loading = true;
    const answer = await this.#app.call('receipt.list', {
      limit: pageSize,
      ...(beforeSeq === undefined ? {} : { beforeSeq }),
      ...(conversationId === '' ? {} : { conversationId }),
    });
    // Another question was asked meanwhile; its answer is the one to show.
    if (mine !== this.#asked) return null;
    this.loading = false;
    this.failure = answer.ok ? null : answer.failure;
    return answer.ok ? answer.value : null;
  }
}
