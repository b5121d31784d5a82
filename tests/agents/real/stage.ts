/**
 * One unmodified agent, found by the bundled catalogue on PATH, in a real bridge process with a fresh home, a
 * workspace and the model stub; and one conversation with it, followed as the CLI follows it.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '#protocol/client.ts';
import { knownEvent, type AnyEvent, type EventOf, type EventType } from '#protocol/events.ts';
import { Bridge } from '../../bridge/process.ts';
import { startModelStub, type ModelStub } from '../model-stub/server.ts';
import type { RealAgentId } from './install.ts';
import { prepareAgent } from './prepare.ts';

export type Decision = 'allow' | 'deny';
type Asked = EventOf<'approval.requested'>;

export const ofType = <T extends EventType>(events: readonly AnyEvent[], type: T): EventOf<T>[] =>
  events.flatMap((event) => {
    const known = knownEvent(event);
    return known?.type === type ? [known as unknown as EventOf<T>] : [];
  });

export class Stage {
  readonly id: RealAgentId;
  readonly home: string;
  readonly workspace: string;
  readonly stub: ModelStub;
  readonly bridge: Bridge;
  client!: Client;
  workspaceId = '';
  conversationId = '';
  /** How what is asked is answered from here on; null leaves it open. */
  decision: Decision | null = null;
  #events: AnyEvent[] = [];
  #draft = '';
  readonly #base: string;
  readonly #waiting = new Set<() => void>();
  readonly #failed: unknown[] = [];

  private constructor(id: RealAgentId, base: string, stub: ModelStub, env: Readonly<Record<string, string>>) {
    this.id = id;
    this.#base = base;
    this.home = join(base, 'home');
    this.workspace = join(base, 'ws');
    this.stub = stub;
    this.bridge = new Bridge(join(base, 'state'), ['--workspace', this.workspace], { ...env });
  }

  /** A running bridge that knows the workspace, a git repository or a plain folder; or why there is no agent. */
  static async open(id: RealAgentId, isRepository: boolean): Promise<Stage | { readonly skipped: string }> {
    const base = realpathSync(mkdtempSync(join(tmpdir(), 'countersign-real-')));
    const stub = await startModelStub();
    try {
      for (const folder of ['home', 'ws']) mkdirSync(join(base, folder));
      const agent = await prepareAgent(id, { home: join(base, 'home'), stubUrl: stub.url });
      if ('skipped' in agent) throw new Skip(agent.skipped);
      const stage = new Stage(id, base, stub, agent.env);
      if (isRepository) repository(stage.workspace);
      await stage.startBridge();
      return stage;
    } catch (error) {
      await stub.close();
      rmSync(base, { recursive: true, force: true, maxRetries: 5 });
      if (error instanceof Skip) return { skipped: error.message };
      throw error;
    }
  }

  /** Also after it was killed: follows the conversation again, from its first event. */
  async startBridge(): Promise<void> {
    await this.bridge.start();
    this.client = await this.bridge.client();
    const { workspaces } = await this.client.call('workspace.list', {});
    this.workspaceId = workspaces.find(({ path }) => path === this.workspace)?.workspaceId ?? '';
    if (this.conversationId !== '') this.follow(this.conversationId);
  }

  /** A new conversation; `accept` is the operator's choice of an agent that may act unasked. */
  async converse({ workspaceId = this.workspaceId, accept = false } = {}): Promise<void> {
    const choice = { workspaceId, agentId: this.id, acceptUnrestricted: accept };
    this.follow((await this.client.change('conversation.create', choice)).conversationId);
  }

  follow(conversationId: string): void {
    this.conversationId = conversationId;
    this.#events = [];
    this.client.subscribe(conversationId, {
      listener: (update) => {
        if (update.type === 'snapshot') this.#events = [...update.events];
        if (update.type === 'draft') this.#draft = update.draft?.text ?? '';
        if (update.type === 'event') this.#take(update.event);
        for (const look of this.#waiting) look();
      },
    });
  }

  get events(): readonly AnyEvent[] {
    return this.#events;
  }

  #take(event: AnyEvent): void {
    this.#events.push(event);
    const asked = knownEvent(event);
    if (asked?.type !== 'approval.requested' || this.decision === null) return;
    this.decide(asked, this.decision).catch((error: unknown) => this.#failed.push(error));
  }

  async decide({ data }: Asked, value: Decision, digest = data.digest): Promise<void> {
    const optionId = data.options.find(({ meaning }) => meaning === value)?.id ?? '';
    const { approvalId } = data;
    await this.client.change('approval.decide', { approvalId, digest, optionId, value, yes: true });
  }

  /** Resolves when `holds`, which is looked at after each update. */
  async until<T>(what: string, holds: () => T | undefined | false, ms = 120_000): Promise<T> {
    let look: () => void = () => undefined;
    const timer = new AbortController();
    try {
      return await Promise.race([
        new Promise<T>((resolve) => {
          look = () => {
            const found = holds();
            if (found !== undefined && found !== false) resolve(found);
          };
          this.#waiting.add(look);
          look();
        }),
        pause(ms, undefined, { signal: timer.signal }).then((): never => {
          const last = this.#events.slice(-8).map(({ type, data }) => `${type} ${JSON.stringify(data).slice(0, 300)}`);
          throw new Error([`${this.id}: no ${what} in ${ms} ms`, ...last, this.bridge.log.slice(-2000)].join('\n'));
        }),
      ]);
    } finally {
      this.#waiting.delete(look);
      timer.abort();
    }
  }

  async send(text: string): Promise<string> {
    const content = [{ type: 'text' as const, text }];
    const { conversationId } = this;
    const { turnId } = await this.client.change('conversation.send', { conversationId, delivery: 'prompt', content });
    return turnId ?? '';
  }

  /** The events of the turn, to its end. */
  async prompt(text: string, decision: Decision | null = null): Promise<AnyEvent[]> {
    this.decision = decision;
    const turnId = await this.send(text);
    const events = await this.ended(turnId);
    if (this.#failed.length > 0) throw this.#failed[0];
    return events;
  }

  async ended(turnId: string): Promise<AnyEvent[]> {
    const own = (): AnyEvent[] => this.#events.filter((event) => event.turnId === turnId);
    await this.until('end of the turn', () => ofType(own(), 'turn.ended')[0]);
    return own();
  }

  /** Text that streams right now, not stored yet. */
  streaming(): Promise<string> {
    return this.until('streamed text', () => this.#draft !== '' && this.#draft);
  }

  /** Processes that have this stage's home in their environment, without zombies and the bridge itself. */
  processes(): number[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => pid !== this.bridge.ready.pid && hasHome(pid, this.home));
  }

  /** A second workspace, opened; its folder. */
  async another(name: string, files: Readonly<Record<string, string>>): Promise<{ workspaceId: string; path: string }> {
    const path = join(this.#base, name);
    mkdirSync(path);
    for (const [file, content] of Object.entries(files)) {
      mkdirSync(join(path, file, '..'), { recursive: true });
      writeFileSync(join(path, file), content);
    }
    repository(path);
    return { ...(await this.client.change('workspace.open', { path })), path };
  }

  async close(): Promise<void> {
    await this.bridge.stop();
    await this.stub.close();
    rmSync(this.#base, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Skip extends Error {}

const repository = (path: string): void => {
  const git = (...args: string[]): void => {
    const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@example.org', '-c', 'commit.gpgsign=false'];
    execFileSync('git', ['-C', path, ...identity, ...args], { stdio: 'ignore' });
  };
  mkdirSync(path, { recursive: true });
  git('init', '-q');
  writeFileSync(join(path, 'README.md'), '# A workspace\n');
  git('add', '.');
  git('commit', '-q', '-m', 'Begin');
};

const hasHome = (pid: number, home: string): boolean => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`HOME=${home}`);
  } catch {
    return false; // gone meanwhile, or of another user
  }
};
