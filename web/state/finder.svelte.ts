/** Search and commands (U-08): actions, conversations by title, and hits in the text; offline from the cached copy. */
import type { SearchApi } from '#lib/cache/search.worker.ts';
import searchWorkerUrl from '#lib/cache/search.worker.ts?worker&url';
import { scriptUrl } from '#lib/link/trusted.ts';
import { text } from '#lib/text/en.ts';
import { visible } from '#lib/text/format.ts';
import { releaseProxy, wrap, type Remote } from 'comlink';
import type { App } from './app.svelte.ts';
import { shortcutNames, type ShortcutId } from './shortcuts.ts';
import { snippetParts, type SnippetPart } from './snippet.ts';

export type FinderItem =
  | {
      readonly kind: 'action';
      readonly group: 'actions';
      readonly key: string;
      readonly id: ShortcutId;
      readonly title: string;
    }
  | {
      readonly kind: 'conversation';
      readonly group: 'conversations';
      readonly key: string;
      readonly title: string;
      readonly at: number;
      readonly href: string;
    }
  | {
      readonly kind: 'hit';
      readonly group: 'hits';
      readonly key: string;
      readonly title: string;
      readonly at: number;
      readonly href: string;
      readonly parts: readonly SnippetPart[];
    };

const typingMs = 150;
const fewestUnits = 2;

interface Hit {
  readonly conversationId: string;
  readonly title: string;
  readonly seq: number;
  readonly at: number;
  readonly snippet: string;
}

export class Finder {
  #query = $state('');
  #hits = $state.raw<readonly Hit[]>([]);
  searching = $state(false);
  #app: App;
  #actions: readonly ShortcutId[];
  #timer: ReturnType<typeof setTimeout> | null = null;
  #turn = 0;
  #worker: Worker | null = null;
  #remote: Remote<SearchApi> | null = null;

  readonly items = $derived.by((): readonly FinderItem[] => {
    const wanted = this.#query.trim().toLocaleLowerCase();
    const matches = (title: string): boolean => wanted === '' || title.toLocaleLowerCase().includes(wanted);
    const actions: FinderItem[] = this.#actions
      .filter((id) => matches(shortcutNames[id]))
      .map((id) => ({ kind: 'action', group: 'actions', key: `action/${id}`, id, title: shortcutNames[id] }));
    const conversations: FinderItem[] = this.#app.conversations.items
      .filter((one) => matches(one.title))
      .sort((a, b) => b.updatedAt - a.updatedAt)
      .slice(0, 8)
      .map((one) => ({
        kind: 'conversation',
        group: 'conversations',
        key: `conversation/${one.conversationId}`,
        title: visible(one.title) || text.rail.untitled,
        at: one.updatedAt,
        href: `/c/${one.conversationId}`,
      }));
    const hits: FinderItem[] = this.#hits.map((hit) => ({
      kind: 'hit',
      group: 'hits',
      key: `hit/${hit.conversationId}/${hit.seq}`,
      title: visible(hit.title) || text.rail.untitled,
      at: hit.at,
      href: `/c/${hit.conversationId}?at=${hit.seq}`,
      parts: snippetParts(hit.snippet),
    }));
    return [...actions, ...conversations, ...hits];
  });

  constructor(app: App, actions: readonly ShortcutId[]) {
    this.#app = app;
    this.#actions = actions;
  }

  get query(): string {
    return this.#query;
  }
  set query(value: string) {
    this.#query = value;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#search(value.trim()), typingMs);
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#turn += 1;
    this.#remote?.[releaseProxy]();
    this.#worker?.terminate();
  }

  async #search(query: string): Promise<void> {
    const turn = ++this.#turn;
    if (query.length < fewestUnits) {
      this.#hits = [];
      this.searching = false;
      return;
    }
    this.searching = true;
    const hits = await this.#ask(query);
    // A newer question is on its way: this answer is of no use.
    if (turn !== this.#turn) return;
    this.#hits = hits;
    this.searching = false;
  }

  async #ask(query: string): Promise<readonly Hit[]> {
    if (this.#app.live) {
      const outcome = await this.#app.tell('conversation.search', { query: query.slice(0, 400) });
      return outcome.ok ? outcome.value.hits : [];
    }
    const copy = this.#app.copy;
    if (copy === null) return [];
    await copy.flush();
    return this.#offline().search(copy.name, query);
  }

  #offline(): Remote<SearchApi> {
    this.#worker ??= new Worker(scriptUrl(searchWorkerUrl), { type: 'module' });
    this.#remote ??= wrap<SearchApi>(this.#worker);
    return this.#remote;
  }
}
