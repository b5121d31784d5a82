/**
 * Everything an agent may do through the bridge, each behind its approval: permission requests, served file writes
 * (F-05), served commands (P-04), served reads under the secret policy (F-04). A refusal reaches the agent as an error
 * it can read; nothing here runs before `desk.ask` answered with a durable receipt.
 */
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import type { ApprovalOption, Outcome, ToolContent } from '#protocol/events.ts';
import { Refusal } from '#protocol/errors.ts';
import { canonical } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import type {
  AgentHost,
  AgentItem,
  AgentProcess,
  PermissionAnswer,
  PermissionRequest,
  ToolCallState,
  WordedCommand,
} from '../agents/contract.ts';
import type { ActingAgent, ActingWorkspace, Described, Program, Verdict } from '../approvals/contract.ts';
import type { Root } from '../files/contract.ts';
import { aboutRoot, leadsThroughLink, sha256 } from './about.ts';
import type { Intake } from './intake.ts';
import { referenceAt, referencedRoot, type Reference } from './references.ts';
import type { Outcomes } from './state.ts';
import type { Rooms } from './rooms.ts';
import { AgentTerminal, AgentTerminals } from './terminals.ts';

/** What the bridge offers for an effect it serves itself. */
const ownOptions: readonly ApprovalOption[] = [
  { id: 'allow', name: 'Allow', kind: 'allow_once', meaning: 'allow' },
  { id: 'deny', name: 'Deny', kind: 'reject_once', meaning: 'deny' },
];

export interface EffectsHost {
  readonly conversationId: string;
  readonly workspaceId: string;
  /** Folders it may read beside its workspace. */
  references(): readonly Reference[];
  readonly rooms: Rooms;
  readonly intake: Intake;
  readonly outcomes: Outcomes;
  turnId(): string | null;
  process(): AgentProcess | null;
  wrote(path: string): void;
  /** A note given with a denial the protocol has no field for: reaches the agent as the next queued text. */
  passOn(note: string, headline: string): void;
  stateChanged(): void;
  /** The turn is being stopped: whatever the agent still asks is answered no, without a card. */
  isStopping(): boolean;
}

const denied = (verdict: Verdict, what: string): Refusal => {
  if (verdict.value === 'expired') return new Refusal('approval_expired');
  if (verdict.value === 'withdrawn') return new Refusal('approval_withdrawn');
  const note = verdict.value === 'deny' && verdict.note !== undefined ? ` They said: ${verdict.note}` : '';
  return new Refusal('forbidden', { message: `The operator denied this ${what}.${note}` });
};

export class Effects {
  readonly #host: EffectsHost;
  readonly terminals = new AgentTerminals();
  /** Exact part of what waits, by tool call: a change withdraws it. */
  readonly #waiting = new Map<string, { readonly exact: string; readonly worded: WordedCommand | undefined }>();

  constructor(host: EffectsHost) {
    this.#host = host;
  }

  #root(): Root {
    const root = this.#host.rooms.workspaces.root(this.#host.workspaceId);
    root.check();
    return root;
  }

  #acting(root: Root): { agent: ActingAgent; workspace: ActingWorkspace } {
    const process = this.#host.process();
    if (process === null) throw new Refusal('agent_gone');
    return {
      agent: process.identity(),
      workspace: { id: root.workspaceId, rootSha256: root.rootSha256, path: root.path, gitHead: root.gitHead() },
    };
  }

  /** What it would run; the folder is reviewed again first where something changed, so that rules stand on what is there. */
  async #lookedAt({ facts }: Described): Promise<Program | null> {
    const { rooms, workspaceId } = this.#host;
    await rooms.trust.fresh(workspaceId);
    return rooms.programOf(facts);
  }

  async #ask(
    described: Described,
    toolCallId: string | null,
    options: readonly ApprovalOption[],
    signal: AbortSignal,
    program: Program | null,
  ): Promise<Verdict> {
    const { conversationId, rooms } = this.#host;
    if (this.#host.isStopping()) throw new Refusal('cancelled');
    const root = this.#root();
    const { agent, workspace } = this.#acting(root);
    const asked = rooms.desk.ask({
      ...described,
      conversationId,
      turnId: this.#host.turnId(),
      toolCallId,
      agent,
      workspace,
      options,
      program,
      linked: leadsThroughLink(root, described.facts),
      signal,
    });
    this.#host.stateChanged();
    try {
      return await asked;
    } finally {
      this.#host.stateChanged();
    }
  }

  /** What the agent may ask of the bridge; `item` is where its words go. */
  served(item: (item: AgentItem) => void): Omit<AgentHost, 'exited' | 'progress'> {
    return {
      item,
      permission: (request) => this.permission(request),
      readTextFile: (request) => this.readTextFile(request),
      writeTextFile: (request) => this.writeTextFile(request),
      createTerminal: (request) => this.createTerminal(request),
      terminalOutput: async (terminalId) => this.terminals.get(terminalId).snapshot(),
      terminalExit: async (terminalId) => this.terminals.get(terminalId).exit,
      killTerminal: async (terminalId) => this.terminals.get(terminalId).kill(),
      releaseTerminal: async (terminalId) => this.terminals.release(terminalId),
    };
  }

  async permission(request: PermissionRequest): Promise<PermissionAnswer> {
    const { intake } = this.#host;
    const { toolCallId } = request.call;
    await intake.enqueue(() => undefined);
    if (this.#host.isStopping()) return { outcome: 'cancelled' };
    if (intake.call(toolCallId) === null) {
      intake.take({ type: 'tool.called', call: request.call });
      await intake.enqueue(() => undefined);
    }
    for (;;) {
      const call = intake.open(request.call);
      const described = this.#describe(call.state, request);
      const shown = exactPart(described);
      const program = await this.#lookedAt(described);
      // The agent may have changed the call while its program was looked at.
      if (exactPart(this.#describe(call.state, request)) !== shown) continue;
      this.#waiting.set(toolCallId, { exact: shown, worded: request.worded });
      const verdict = await this.#ask(described, toolCallId, request.options, request.signal, program);
      this.#waiting.delete(toolCallId);
      if (verdict.value === 'withdrawn' && verdict.reason === 'changed') continue;
      // The agent may have changed the call after the answer was given and before it is told: then it was not for this.
      await intake.enqueue(() => undefined);
      const isStale = verdict.value === 'allow' && exactPart(this.#describe(call.state, request)) !== shown;
      if (!isStale) return this.#answer(request, verdict, described, call.grants);
      const at = this.#host.rooms.now();
      const sentence = 'The action changed before the agent was told; it was asked for again.';
      await this.#host.outcomes.record(verdict.approvalId, 'cancelled', { startedAt: at, endedAt: at, sentence });
    }
  }

  #describe(call: ToolCallState, { announced, worded }: Pick<PermissionRequest, 'announced' | 'worded'>): Described {
    return this.#host.rooms.describe.permission(call, aboutRoot(this.#root()), announced, worded);
  }

  #answer(
    request: PermissionRequest,
    verdict: Verdict,
    described: Described,
    grants: { approvalId: string; startedAt: number }[],
  ): PermissionAnswer {
    if (verdict.value === 'withdrawn') return { outcome: 'cancelled' };
    if (verdict.value === 'expired') {
      const reject = request.options.find((option) => option.meaning === 'deny');
      return reject === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: reject.id };
    }
    if (verdict.value === 'allow') grants.push({ approvalId: verdict.approvalId, startedAt: this.#host.rooms.now() });
    if (verdict.note !== undefined && verdict.note !== '') this.#host.passOn(verdict.note, described.facts.headline);
    return { outcome: 'selected', optionId: verdict.optionId };
  }

  /** The agent updated a call: if its exact part differs from what waits, the card is withdrawn and made anew. */
  changed(call: ToolCallState): void {
    const waiting = this.#waiting.get(call.toolCallId);
    if (waiting === undefined) return;
    if (exactPart(this.#describe(call, { announced: true, worded: waiting.worded })) === waiting.exact) return;
    this.#waiting.delete(call.toolCallId);
    void this.#host.rooms.desk.withdraw(
      { conversationId: this.#host.conversationId, toolCallId: call.toolCallId },
      'changed',
    );
  }

  async readTextFile(request: {
    path: string;
    line?: number | undefined;
    limit?: number | undefined;
  }): Promise<string> {
    const own = this.#root();
    const reference = own.relative(request.path) === null && referenceAt(this.#host.references(), request.path);
    const root = reference ? referencedRoot(this.#host.rooms, reference) : own;
    const file = root.readText(inside(root, request.path), limits.writeBytes);
    if (file === null) throw new Refusal('not_found');
    if (request.line === undefined && request.limit === undefined) return file.text;
    const first = Math.max((request.line ?? 1) - 1, 0);
    return file.text
      .split('\n')
      .slice(first, request.limit === undefined ? undefined : first + request.limit)
      .join('\n');
  }

  async writeTextFile(request: { path: string; content: string; signal: AbortSignal }): Promise<void> {
    const { conversationId, rooms, intake } = this.#host;
    await intake.enqueue(() => undefined);
    await rooms.trust.fresh(this.#host.workspaceId);
    const root = this.#root();
    if (root.relative(request.path) === null && referenceAt(this.#host.references(), request.path) !== null)
      throw new Refusal('forbidden', {
        message: 'This conversation may only read this folder. Nothing was written.',
      });
    const path = inside(root, request.path);
    const current = root.readText(path, limits.writeBytes);
    // The agent was given the text without its byte order mark and must not lose it for that (case 49).
    const content =
      current?.bom === true && !request.content.startsWith('\ufeff') ? `\ufeff${request.content}` : request.content;
    if (Buffer.byteLength(content) > limits.writeBytes) throw new Refusal('content_too_large');
    const described = rooms.describe.write(
      {
        path,
        content,
        current:
          current === null ? null : { text: current.text, revision: current.revision, sha256: sha256(current.text) },
      },
      aboutRoot(root),
    );
    const granted = rooms.desk.consume(conversationId, { type: 'write', path, contentSha256: sha256(content) });
    const verdict = granted ?? (await this.#ask(described, null, ownOptions, request.signal, null));
    if ('value' in verdict && verdict.value !== 'allow') throw denied(verdict, 'write');
    const startedAt = rooms.now();
    try {
      const written = this.#root().write(path, Buffer.from(content), current?.revision ?? null);
      this.#host.wrote(path);
      await this.#host.outcomes.record(verdict.approvalId, 'ok', {
        resultSha256: written.sha256,
        startedAt,
        endedAt: rooms.now(),
      });
    } catch (error) {
      await this.#host.outcomes.record(verdict.approvalId, 'failed', {
        startedAt,
        endedAt: rooms.now(),
        ...(error instanceof Refusal ? { sentence: error.message } : {}),
      });
      throw error;
    }
  }

  async createTerminal(request: Parameters<AgentHost['createTerminal']>[0]): Promise<{ terminalId: string }> {
    const { conversationId, rooms, intake } = this.#host;
    await intake.enqueue(() => undefined);
    this.terminals.room();
    const root = this.#root();
    const cwd = request.cwd ?? root.path;
    if (!isAbsolute(cwd)) throw new Refusal('invalid_path');
    const argv = [request.command, ...request.args];
    const described = rooms.describe.command(
      { command: request.command, args: request.args, env: request.env, cwd },
      aboutRoot(root),
    );
    const program = await this.#lookedAt(described);
    const granted = rooms.desk.consume(conversationId, { type: 'execute', argv, cwd });
    const verdict = granted ?? (await this.#ask(described, null, ownOptions, request.signal, program));
    if ('value' in verdict && verdict.value !== 'allow') throw denied(verdict, 'command');
    const startedAt = rooms.now();
    const terminalId = rooms.uuid();
    try {
      const terminal = await AgentTerminal.start(
        rooms.runCommand,
        { terminalId, argv, cwd, env: commandEnvironment(request.env), maxBytes: request.outputByteLimit },
        (offset, text) =>
          rooms.ledger.feed.activity(conversationId, this.#host.turnId(), {
            type: 'terminal',
            terminalId,
            offset,
            text,
          }),
      );
      this.terminals.add(terminal);
      void terminal.exit.then((exit) => {
        const outcome: Outcome = terminal.killed ? 'cancelled' : exit.code === 0 ? 'ok' : 'failed';
        const resultSha256 = sha256(terminal.snapshot().output);
        return this.#host.outcomes.record(verdict.approvalId, outcome, {
          resultSha256,
          startedAt,
          endedAt: rooms.now(),
          sentence: exitSentence(exit),
        });
      });
      return { terminalId };
    } catch (error) {
      await this.#host.outcomes.record(verdict.approvalId, 'failed', { startedAt, endedAt: rooms.now() });
      throw error;
    }
  }

  /** Our own terminals know their output; an agent's display terminals keep what it sent. */
  withTerminals(content: readonly ToolContent[]): ToolContent[] {
    return content.map((part) => {
      const terminal = part.type === 'terminal' ? this.terminals.find(part.terminalId) : null;
      if (terminal === null || part.type !== 'terminal') return part;
      const { output, truncatedBytes, exit } = terminal.snapshot();
      return {
        ...part,
        command: terminal.command,
        output,
        ...(truncatedBytes > 0 ? { truncatedBytes } : {}),
        ...(exit === null ? {} : { exitCode: exit.code, signal: exit.signal }),
      };
    });
  }
}

const exactPart = (described: Described): string => canonical({ effects: described.effects, detail: described.detail });

const inside = (root: Root, path: string): string => {
  const relative = root.relative(path);
  if (relative === null) throw new Refusal('invalid_path', { message: 'This path lies outside the workspace.' });
  return relative;
};

const exitSentence = (exit: { code: number | null; signal: string | null }): string =>
  exit.code === null ? `ended by ${exit.signal ?? 'a signal'}` : `exit code ${exit.code}`;

/** The bridge's own Node first on PATH (W-06), then the operator's PATH; beyond that only what the agent asked for. */
const commandEnvironment = (asked: readonly { name: string; value: string }[]): Record<string, string> => {
  const kept = ['HOME', 'LANG', 'LC_ALL', 'USER', 'TMPDIR', 'TZ'];
  const base = Object.fromEntries(
    kept.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
  const path = [dirname(process.execPath), process.env['PATH'] ?? join('/usr', 'bin')].join(delimiter);
  return { ...base, PATH: path, TERM: 'dumb', ...Object.fromEntries(asked.map(({ name, value }) => [name, value])) };
};
