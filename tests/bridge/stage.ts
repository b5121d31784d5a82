/** Conversations with a scripted agent through a real bridge, over its private socket: what is said, asked and stored. */
import { existsSync, lstatSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '#protocol/client.ts';
import type { Draft } from '#protocol/frames.ts';
import { knownEvent, type AnyEvent, type EventOf, type EventType } from '#protocol/events.ts';
import type { Params } from '#protocol/methods.ts';
import type { Update } from '#protocol/subscription.ts';
import { Bridge, temporary } from './process.ts';

export const agentProgram = fileURLToPath(new URL('../agents/scripted/agent.ts', import.meta.url));
const patienceMs = 60_000;

/** Resolves when it holds; looks again after every `changed`. Rejects with what was seen instead. */
class Watch {
  #waiting: (() => void)[] = [];
  readonly #seen: () => string;

  constructor(seen: () => string) {
    this.#seen = seen;
  }

  changed(): void {
    for (const look of this.#waiting) look();
  }

  until<T>(what: string, found: () => T | null | undefined | false): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiting = this.#waiting.filter((each) => each !== look);
      };
      const timer = setTimeout(() => {
        end();
        reject(new Error(`waited in vain for ${what}; seen: ${this.#seen()}`));
      }, patienceMs);
      const look = (): void => {
        const value = found();
        if (value === null || value === undefined || value === false) return;
        end();
        resolve(value);
      };
      this.#waiting.push(look);
      look();
    });
  }
}

/** A condition outside the log, looked at until it holds. */
export const until = async (what: string, holds: () => boolean | Promise<boolean>): Promise<void> => {
  const deadline = Date.now() + patienceMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
};

export type Asked = EventOf<'approval.requested'>;

export type Holding = 'bubblewrap' | 'best_effort';

/** A PATH on which every program is found but bubblewrap: links in a directory made for it. */
const pathWithoutBubblewrap = (bin: string): string => {
  mkdirSync(bin);
  for (const directory of (process.env['PATH'] ?? '').split(delimiter).filter((each) => existsSync(each))) {
    for (const name of readdirSync(directory)) {
      const link = join(bin, name);
      if (name !== 'bwrap' && lstatSync(link, { throwIfNoEntry: false }) === undefined) {
        symlinkSync(join(directory, name), link);
      }
    }
  }
  return bin;
};

/** A conversation as one client sees it. */
export class Talk {
  readonly client: Client;
  readonly conversationId: string;
  readonly events: AnyEvent[] = [];
  readonly drafts: string[] = [];
  draft: Draft | null = null;
  /** How many updates of any kind came. */
  updates = 0;
  readonly #watch: Watch;
  readonly close: () => void;

  constructor(client: Client, conversationId: string) {
    this.client = client;
    this.conversationId = conversationId;
    this.#watch = new Watch(() =>
      JSON.stringify(this.events.slice(-12).map(({ type, data }) => ({ type, data }))).slice(0, 6000),
    );
    const following = client.subscribe(conversationId, { listener: (update) => this.#take(update) });
    this.close = () => following.close();
  }

  #take(update: Update): void {
    this.updates += 1;
    if (update.type === 'snapshot') this.events.splice(0, this.events.length, ...update.events);
    if (update.type === 'event') this.events.push(update.event);
    if (update.type === 'draft' || update.type === 'snapshot') {
      this.draft = update.draft;
      if (update.draft !== null) this.drafts.push(update.draft.text);
    }
    this.#watch.changed();
  }

  until<T>(what: string, found: () => T | null | undefined | false): Promise<T> {
    return this.#watch.until(what, found);
  }

  all<T extends EventType>(type: T, turnId?: string): EventOf<T>[] {
    return this.events.flatMap((event) => {
      const known = knownEvent(event);
      if (known === null)
        throw new Error(`an event that its own schema refuses: ${JSON.stringify(event).slice(0, 500)}`);
      const isMeant = known.type === type && (turnId === undefined || known.turnId === turnId);
      return isMeant ? [known as unknown as EventOf<T>] : [];
    });
  }

  async send(
    text: string,
    more: Partial<Params<'conversation.send'>> = {},
    key?: string,
  ): Promise<{ turnId: string; queueId: string; seq: number }> {
    const params = {
      conversationId: this.conversationId,
      delivery: 'prompt' as const,
      content: [{ type: 'text' as const, text }],
      ...more,
    };
    const sent = await this.client.change('conversation.send', params, { key });
    return { turnId: sent.turnId ?? '', queueId: sent.queueId ?? '', seq: sent.seq };
  }

  ended(turnId: string): Promise<EventOf<'turn.ended'>> {
    return this.until(`the end of turn ${turnId}`, () => this.all('turn.ended', turnId)[0]);
  }

  /** Sends, and waits for the end of the turn. */
  async turn(text: string, more: Partial<Params<'conversation.send'>> = {}): Promise<EventOf<'turn.ended'>> {
    const { turnId } = await this.send(text, more);
    return this.ended(turnId);
  }

  /** What the agent said, in all turns or one. */
  said(turnId?: string): string {
    return this.all('message', turnId)
      .filter(({ data }) => data.role === 'agent')
      .map(({ data }) => data.text)
      .join('');
  }

  asked(count = 1): Promise<Asked[]> {
    return this.until(`${count} approvals`, () => {
      const asked = this.all('approval.requested');
      return asked.length >= count && asked;
    });
  }

  decide(
    asked: Asked,
    value: 'allow' | 'deny',
    more: Partial<Params<'approval.decide'>> = {},
    client = this.client,
    key?: string,
  ) {
    const option = asked.data.options.find(({ meaning, kind }) => meaning === value && kind.endsWith('_once'));
    const { approvalId, digest } = asked.data;
    return client.change(
      'approval.decide',
      { approvalId, digest, optionId: option?.id ?? '', value, yes: true, ...more },
      { key },
    );
  }

  /** Everything of it that is stored, read anew page by page. */
  async stored(): Promise<AnyEvent[]> {
    const { lastSeq } = await this.client.call('conversation.get', { conversationId: this.conversationId });
    const events: AnyEvent[] = [];
    for (let beforeSeq = lastSeq + 1; beforeSeq > 1;) {
      const page = await this.client.call('conversation.history', { conversationId: this.conversationId, beforeSeq });
      events.unshift(...page.events);
      beforeSeq = page.firstSeq;
    }
    return events;
  }

  summary() {
    return this.client.call('conversation.get', { conversationId: this.conversationId });
  }
}

export class Stage {
  readonly #state = temporary('stage');
  readonly bridge: Bridge;
  readonly workspace: string;
  #agents = 0;
  #workspaceId = '';
  #made: string[] = [];

  constructor(env: Record<string, string> = {}, holding: Holding = 'bubblewrap') {
    this.workspace = join(this.#state.path, 'workspace');
    mkdirSync(this.workspace);
    const path = holding === 'bubblewrap' ? {} : { PATH: pathWithoutBubblewrap(join(this.#state.path, 'bin')) };
    this.bridge = new Bridge(join(this.#state.path, 'state'), ['--workspace', this.workspace], { ...env, ...path });
  }

  get directory(): string {
    return this.#state.path;
  }

  async start(port = 0): Promise<Client> {
    await this.bridge.start(port);
    const client = await this.bridge.client();
    this.#workspaceId = (await client.change('workspace.open', { path: this.workspace })).workspaceId;
    return client;
  }

  get workspaceId(): string {
    return this.#workspaceId;
  }

  /** Adds a scripted agent; its id. */
  async scripted(
    script: Readonly<Record<string, unknown>> = {},
    env: { name: string; value: string }[] = [],
  ): Promise<string> {
    const client = await this.bridge.client();
    this.#agents += 1;
    const args = [agentProgram, JSON.stringify(script)];
    const added = await client.change('agent.add', {
      title: `Scripted ${this.#agents}`,
      command: process.execPath,
      args,
      env,
    });
    return added.agentId;
  }

  async talk(agentId: string, client?: Client): Promise<Talk> {
    const by = client ?? (await this.bridge.client());
    const made = await by.change('conversation.create', {
      workspaceId: this.#workspaceId,
      agentId,
      acceptUnrestricted: true,
    });
    this.#made.push(made.conversationId);
    return new Talk(by, made.conversationId);
  }

  /** Ends the agents of every conversation made here: only so many may run at once. */
  async quiet(): Promise<void> {
    const client = await this.bridge.client();
    await Promise.all(this.#made.map((conversationId) => client.change('conversation.close', { conversationId })));
    this.#made = [];
  }

  /** A conversation with a new scripted agent. */
  async scriptedTalk(script: Readonly<Record<string, unknown>> = {}): Promise<Talk> {
    return this.talk(await this.scripted(script));
  }

  async end(): Promise<void> {
    await this.bridge.stop();
    this.#state.remove();
  }
}
