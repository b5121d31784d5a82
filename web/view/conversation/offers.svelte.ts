/** What may complete the word at the caret: files of the workspace, commands of the agent and ours. */
import type { ConversationState, Outcome } from '#lib/state/contract.ts';
import { words } from '#lib/text/conversation.en.ts';
import type { Token } from './compose.ts';

export type Offer = {
  readonly kind: 'file' | 'command';
  readonly value: string;
  readonly detail: string;
  /** One of ours: acts instead of writing itself. */
  readonly run?: () => Promise<Outcome>;
};

const shown = 40;
const pauseMs = 80;

export class Offers {
  token = $state.raw<Token | null>(null);
  list = $state.raw<readonly Offer[]>([]);
  at = $state(0);
  readonly picked = new Set<string>();
  private asked = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly conversation: () => ConversationState;

  constructor(conversation: () => ConversationState) {
    this.conversation = conversation;
  }

  get open(): boolean {
    return this.token !== null && (this.list.length > 0 || this.token.kind === 'file');
  }

  close(): void {
    clearTimeout(this.timer);
    this.asked += 1;
    this.token = null;
    this.list = [];
  }

  /** `token` at the caret; nothing is offered while text is selected. */
  look(token: Token | null, isCaret: boolean): void {
    if (token === null || !isCaret) {
      if (this.token !== null) this.close();
      return;
    }
    if (token.kind !== this.token?.kind || token.query !== this.token.query) this.at = 0;
    this.token = token;
    if (token.kind === 'command') this.list = this.commands(token.query);
    else this.find(token.query);
  }

  /** Takes the keys of a list box; false when the key is not for it. */
  key(event: KeyboardEvent, take: (offer: Offer) => void): boolean {
    const length = this.list.length;
    if (event.key === 'Escape') {
      this.close();
      return true;
    }
    if (length === 0 || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === 'ArrowDown') this.at = (this.at + 1) % length;
    else if (event.key === 'ArrowUp') this.at = (this.at - 1 + length) % length;
    else if (event.key === 'Enter' || event.key === 'Tab') {
      const offer = this.list[this.at];
      if (offer !== undefined) take(offer);
    } else return false;
    return true;
  }

  private find(query: string): void {
    clearTimeout(this.timer);
    const mine = (this.asked += 1);
    this.timer = setTimeout(() => {
      void this.conversation()
        .searchFiles(query)
        .then((found) => {
          if (mine !== this.asked || this.token === null) return;
          this.list = found.slice(0, shown).map((file) => ({
            kind: 'file',
            value: file.path,
            detail: file.type === 'directory' ? words.composer.folder : '',
          }));
          this.at = Math.min(this.at, Math.max(0, this.list.length - 1));
        });
    }, pauseMs);
  }

  private commands(query: string): readonly Offer[] {
    const conversation = this.conversation();
    const { summary } = conversation;
    const wanted = query.toLowerCase();
    const theirs = (summary?.commands ?? []).map((command): Offer => ({
      kind: 'command',
      value: command.name,
      detail: command.hint === undefined ? command.description : `${command.description} · ${command.hint}`,
    }));
    const taken = new Set(theirs.map((offer) => offer.value));
    const active = summary !== null && summary.state !== 'idle';
    const own: Offer[] = [
      ...(active
        ? [
            {
              kind: 'command' as const,
              value: 'stop',
              detail: words.composer.ours.stop,
              run: () => conversation.stop(),
            },
          ]
        : []),
      ...(active
        ? []
        : [
            {
              kind: 'command' as const,
              value: 'restart',
              detail: words.composer.ours.restart,
              run: () => conversation.restart(),
            },
          ]),
      ...(summary?.live === true && !active
        ? [
            {
              kind: 'command' as const,
              value: 'close',
              detail: words.composer.ours.close,
              run: () => conversation.closeAgent(),
            },
          ]
        : []),
    ];
    const all = [...theirs, ...own.filter((offer) => !taken.has(offer.value) && conversation.blocked === null)];
    const starts = all.filter((offer) => offer.value.toLowerCase().startsWith(wanted));
    const within = all.filter((offer) => !starts.includes(offer) && offer.value.toLowerCase().includes(wanted));
    return [...starts, ...within].slice(0, shown);
  }
}
