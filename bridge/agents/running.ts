/**
 * A live agent: one held process, one connection, one session. Turns what comes from it into calls of its host, and the
 * host's wishes into ACP. Ends alone and with a named reason, whatever the agent does (L-33).
 * Made by registry.ts through `run`; owned by a conversation, which serialises prompts and answers permissions.
 */
import { Refusal } from '#protocol/errors.ts';
import type { StopReason } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { PromptPart } from '#protocol/methods/conversation.ts';
import { z } from '#protocol/schema.ts';
import type { CatalogueEntry } from './catalogue.ts';
import { connect, RequestError, type Connection, type Received } from './connection.ts';
import type { Holding } from './containment.ts';
import type {
  AgentHost,
  AgentIdentity,
  AgentItem,
  AgentProcess,
  AgentReady,
  PermissionRequest,
  StartRequest,
  ToolCallState,
} from './contract.ts';
import type { AgentEnvironment } from './environment.ts';
import { initialize, openSession, refusalOf, type Capabilities, type Opened } from './handshake.ts';
import { permissionOptions } from './options.ts';
import { hold, type Exit, type HeldProcess } from './process.ts';
import { promptBlocks } from './prompt.ts';
import { oneLine, redact, Ring } from './ring.ts';
import { served } from './served.ts';
import { Session } from './session.ts';
import { Translation } from './translate.ts';
import { wordedCommand } from './worded.ts';

export interface RunRequest {
  readonly entry: CatalogueEntry;
  readonly argv: readonly string[];
  readonly environment: AgentEnvironment;
  readonly marker: string;
  readonly holding: Holding;
  readonly bridgeVersion: string;
  readonly cwd: string;
  readonly sessionId: string | null;
  readonly modeId: string | undefined;
  readonly host: AgentHost;
  readonly signal: AbortSignal;
  readonly spawned: StartRequest['spawned'];
  /** Hashes of what runs, computed while the agent starts. */
  readonly hashes: Promise<{ executableSha256: string; entrySha256: string | null }>;
  readonly log: (message: string, error: unknown) => void;
}

const sessionUpdate = z.looseObject({ sessionId: z.string(), update: z.unknown() });
const permissionRequest = z.looseObject({ toolCall: z.optional(z.unknown()), options: z.optional(z.unknown()) });
const promptAnswer = z.looseObject({ stopReason: z.string() });
const agentStops = [
  'end_turn',
  'max_tokens',
  'max_turn_requests',
  'refusal',
  'cancelled',
] as const satisfies readonly StopReason[];
/** While a former session is loaded its messages are replayed; our transcript has them already. */
const newsWhileReplaying: readonly AgentItem['type'][] = ['mode', 'options', 'commands', 'usage', 'title'];
const silent: readonly AgentItem['type'][] = ['mode', 'options', 'commands', 'usage', 'title', 'notice'];

class Running {
  readonly #request: RunRequest;
  readonly #process: HeldProcess;
  readonly #connection: Connection;
  readonly #stderr = new Ring(limits.agentStderrBytes);
  readonly #translation = new Translation();
  #session: Session | null = null;
  /** What the agent said about its mode and options before its session was open (G-03). */
  #early: { modeId: string | null; options: Session['options'] | null } = { modeId: null, options: null };
  #replaying = false;
  #replayedAt = 0;
  #stopping = false;
  #exit: Exit | null = null;
  #broken: string | null = null;
  #said = false;
  #cancelled = false;
  #ready = false;
  #putBack = false;
  #unreadable = 0;
  /** Resolves with the sentence when the process is gone and its host was told. */
  readonly gone: Promise<string>;

  constructor(request: RunRequest, process: HeldProcess) {
    this.#request = request;
    this.#process = process;
    process.stderr.on('data', (chunk: Buffer) => this.#stderr.push(chunk.toString('utf8')));
    process.stderr.on('error', () => undefined); // 'exit' tells it
    const { host, entry } = request;
    this.#connection = connect(process, {
      ...served(host, entry.served),
      update: (received) => this.#update(received),
      permission: (received, signal) => this.#permission(received, signal),
      refused: (method) =>
        this.#item({
          type: 'notice',
          level: 'info',
          code: 'refused_call',
          sentence: `The agent called ${oneLine(method, 100)}, which was not offered to it; it was refused.`,
        }),
      garbage: (why, head) => this.#item(garbageItem(why, head)),
      broken: (sentence) => this.#break(sentence),
    });
    process.stdout.once('close', () => void this.#silenced());
    this.gone = process.gone.then((exit) => this.#ended(exit));
  }

  async start(): Promise<AgentProcess> {
    const { entry, environment, host, cwd, sessionId, modeId, bridgeVersion } = this.#request;
    host.progress('starting', `Waiting for the first answer of ${entry.title}.`);
    const capabilities = await initialize(this.#connection, entry, bridgeVersion);
    const opened = await openSession({
      connection: this.#connection,
      entry,
      capabilities,
      cwd,
      sessionId,
      hasEnv: (name) => (environment.env[name] ?? '') !== '',
      replaying: (on) => {
        this.#replaying = on;
      },
      replayed: () => this.#replayed(),
      progress: (state, detail) => host.progress(state, detail),
    });
    const session = new Session(this.#connection, entry, opened, this.#early, cwd);
    this.#session = session;
    await session.forceAsking(modeId);
    const hashes = await this.#request.hashes;
    this.#ready = true;
    return this.#facade(session, capabilities, opened, hashes);
  }

  async #replayed(): Promise<void> {
    const deadline = performance.now() + limits.sessionNewMs;
    this.#replayedAt = performance.now();
    for (
      let now = this.#replayedAt;
      now < deadline && now - this.#replayedAt < limits.replayQuietMs;
      now = performance.now()
    )
      await new Promise((resolve) => setTimeout(resolve, limits.replayQuietMs / 4));
  }

  /** Why a start did not come to its end: the process's own end explains more than the broken connection. */
  async explain(error: unknown): Promise<Refusal> {
    const { entry, sessionId, signal } = this.#request;
    const refusal = refusalOf(error, entry, 'its start');
    // One that closed its output is ending by itself, and how it ends is the reason; #silenced bounds the wait.
    if (refusal.code !== 'agent_gone') await this.stop(true);
    const sentence = await this.gone;
    if (signal.aborted) return new Refusal('cancelled', { cause: error });
    if (refusal.code !== 'agent_gone') return refusal;
    const lastWords = this.#lastWords();
    const details = lastWords === '' ? {} : { details: { lastWords } };
    const code = sessionId === null ? 'agent_start_failed' : 'resume_failed';
    return new Refusal(code, { message: `${entry.title} did not start: ${sentence}`, cause: error, ...details });
  }

  async stop(atOnce = false): Promise<void> {
    if (this.#exit !== null) return;
    this.#stopping = true;
    this.#process.terminate();
    const timer = new Promise<'late'>((resolve) =>
      setTimeout(resolve, atOnce ? 0 : limits.terminateMs, 'late').unref(),
    );
    if ((await Promise.race([this.#process.gone, timer])) === 'late') await this.#process.kill();
    await this.gone;
  }

  #facade(
    session: Session,
    capabilities: Capabilities,
    opened: Opened,
    hashes: Awaited<RunRequest['hashes']>,
  ): AgentProcess {
    const { entry, argv, environment, marker, holding } = this.#request;
    const ready: AgentReady = {
      name: capabilities.name,
      version: capabilities.version,
      sessionId: session.id,
      how: opened.how,
      contextLost: opened.contextLost,
      enforcement: session.enforcement,
      enforcementWhy: session.enforcementWhy,
      containment: holding.kind,
      modes: session.modes.filter((mode) => session.asks(mode.id)),
      modeId: session.modeId,
      models: session.models,
      modelId: session.modelId,
      options: session.options,
      images: capabilities.images,
      embeddedContext: capabilities.embeddedContext,
    };
    const identity = (): AgentIdentity => ({
      id: entry.id,
      name: capabilities.name,
      version: capabilities.version,
      ...hashes,
      model: session.modelId,
      session: session.id,
      enforcement: session.enforcement,
      containment: holding.kind,
    });
    return {
      agentId: entry.id,
      pid: this.#process.pid,
      marker,
      argv,
      envNames: environment.names,
      ready,
      identity,
      prompt: (content, blob) => this.#prompt(session, capabilities, content, blob),
      cancel: () => {
        this.#cancelled = true;
        this.#connection.notify('session/cancel', { sessionId: session.id });
      },
      setMode: (modeId) => this.#live(() => session.setMode(modeId)),
      setModel: (modelId) => this.#live(() => session.setModel(modelId)),
      setOption: (optionId, value) => this.#live(() => session.setOption(optionId, value)),
      stop: () => this.stop(),
      stderr: () => redact(this.#stderr.text(), environment.secrets),
    };
  }

  async #prompt(
    session: Session,
    capabilities: Capabilities,
    content: readonly PromptPart[],
    blob: (sha256: string) => Promise<Uint8Array>,
  ): Promise<{ stopReason: StopReason; sentence?: string }> {
    const prompt = await promptBlocks(content, this.#request.cwd, capabilities, blob);
    this.#said = false;
    this.#cancelled = false;
    this.#putBack = false;
    if (session.placeChanged())
      this.#item({ type: 'notice', level: 'warn', code: 'mode_not_asking', sentence: session.enforcementWhy });
    return this.#live(() => this.#turn(session, prompt));
  }

  async #turn(session: Session, prompt: unknown): Promise<{ stopReason: StopReason; sentence?: string }> {
    const { title } = this.#request.entry;
    let answer: unknown;
    try {
      answer = await this.#connection.request('session/prompt', { sessionId: session.id, prompt });
    } catch (error) {
      // Our own mark decides what the end is called: agents answer a cancelled prompt in many ways.
      if (this.#cancelled && error instanceof RequestError) return { stopReason: 'cancelled' };
      if (!(error instanceof RequestError)) throw error;
      const refusal = refusalOf(error, this.#request.entry, 'an answer');
      if (refusal.code === 'agent_auth_required') throw refusal;
      return { stopReason: 'failed', sentence: refusal.message };
    }
    if (this.#cancelled) return { stopReason: 'cancelled' };
    const parsed = z.safeParse(promptAnswer, answer);
    const stopReason = parsed.success ? agentStops.find((known) => known === parsed.data.stopReason) : undefined;
    if (stopReason === undefined)
      return { stopReason: 'failed', sentence: `${title} ended its turn without a reason that ACP knows.` };
    if (stopReason === 'end_turn' && !this.#said)
      return { stopReason: 'failed', sentence: `${title} ended its turn without a word.` };
    return { stopReason };
  }

  /** Runs `work`; when the process ends meanwhile, that is the answer. @throws Refusal agent_gone */
  async #live<T>(work: () => Promise<T>): Promise<T> {
    const over = this.gone.then((sentence): never => {
      throw new Refusal('agent_gone', {
        message: `${sentence} The transcript is safe; send a message to start it again.`,
      });
    });
    try {
      return await Promise.race([work(), over]);
    } catch (error) {
      // The connection closes a moment before the process is gone, and only the process knows why.
      if (error instanceof Refusal && error.code === 'agent_gone') return await over;
      throw error;
    }
  }

  #item(item: AgentItem): void {
    if (!silent.includes(item.type)) this.#said = true;
    try {
      this.#request.host.item(item);
    } catch (error) {
      this.#request.log('an item of an agent could not be taken', error);
    }
  }

  #update(received: Received): void {
    const parsed = z.safeParse(sessionUpdate, received.params);
    if (!parsed.success)
      return this.#item({
        type: 'notice',
        level: 'warn',
        code: 'unreadable_event',
        sentence: 'The agent sent an update that could not be read.',
        raw: rawOf(received.params),
      });
    // Sessions of sub-agents have their own; they stay in the tee.
    if (this.#session !== null && parsed.data.sessionId !== this.#session.id) return;
    const items = this.#translation.update(parsed.data.update, (...path) => received.textAt(['update', ...path]));
    for (const item of items) {
      if (this.#replaying && !newsWhileReplaying.includes(item.type)) {
        this.#replayedAt = performance.now();
        continue;
      }
      this.#item(item);
      this.#note(item);
    }
  }

  #note(item: AgentItem): void {
    if (item.type === 'mode') this.#early.modeId = item.modeId;
    if (item.type === 'options') this.#early.options = item.options;
    const session = this.#session;
    const before = session?.enforcement;
    if (session === null || !session.heard(item) || !this.#ready) return;
    if (before !== 'unrestricted')
      this.#item({ type: 'notice', level: 'warn', code: 'mode_not_asking', sentence: session.enforcementWhy });
    // Once a turn: an agent that insists is not argued with, its level says what it is.
    if (this.#putBack) return;
    this.#putBack = true;
    void session.forceAsking(undefined).then(() => {
      if (session.enforcement !== 'cooperative' || session.modeId === null) return;
      this.#item({ type: 'mode', modeId: session.modeId });
      this.#item({
        type: 'notice',
        level: 'info',
        code: 'mode_asking',
        sentence: 'It was put back into the mode in which it asks.',
      });
    });
  }

  async #permission(received: Received, signal: AbortSignal): Promise<unknown> {
    const { host, entry } = this.#request;
    const params = z.safeParse(permissionRequest, received.params);
    const asked = params.success
      ? this.#translation.permission(params.data.toolCall, (...path) => received.textAt(['toolCall', ...path]))
      : null;
    for (const item of asked?.items ?? []) this.#item(item);
    const options = permissionOptions(params.success ? params.data.options : null, entry.preferReject);
    if (asked === null || options.length === 0) {
      this.#item({
        type: 'notice',
        level: 'warn',
        code: 'unreadable_event',
        sentence: 'The agent asked for permission in a way that could not be read.',
        raw: rawOf(received.params),
      });
    }
    const call = asked?.call ?? this.#unreadableCall(received);
    const request: PermissionRequest = {
      call,
      announced: asked?.announced ?? false,
      options,
      signal,
      worded: wordedCommand(call, entry.worded),
    };
    const answer = await host.permission(request);
    if (answer.outcome !== 'selected' || !options.some((option) => option.id === answer.optionId))
      return { outcome: { outcome: 'cancelled' } };
    const note = answer.note === undefined ? {} : { _meta: { 'countersign.note': answer.note } };
    return { outcome: { outcome: 'selected', optionId: answer.optionId }, ...note };
  }

  /** A request about nothing that can be read still gets a card, with what was received on it. */
  #unreadableCall(received: Received): ToolCallState {
    this.#unreadable += 1;
    const rawInput = received.textAt(['toolCall']) ?? received.textAt([]);
    return { toolCallId: `unreadable-${this.#unreadable}`, ...(rawInput === undefined ? {} : { rawInput }) };
  }

  #break(sentence: string): void {
    if (this.#broken !== null) return;
    this.#broken = sentence;
    void this.#process.kill();
  }

  /** stdout has closed. An agent that lives on without it can say nothing any more. */
  async #silenced(): Promise<void> {
    const timer = new Promise<'late'>((resolve) => setTimeout(resolve, limits.terminateMs, 'late').unref());
    if ((await Promise.race([this.#process.gone, timer])) !== 'late') return;
    if (!this.#stopping) this.#broken ??= 'The agent closed its output.';
    await this.#process.kill();
  }

  #ended(exit: Exit): string {
    this.#exit = exit;
    this.#connection.close();
    const { sentence, reason } = this.#exitOf(exit);
    try {
      this.#request.host.exited({ reason, code: exit.code, signal: exit.signal, sentence });
    } catch (error) {
      this.#request.log('the end of an agent could not be taken', error);
    }
    return sentence;
  }

  #exitOf({ code, signal }: Exit): { reason: 'stopped' | 'crashed' | 'exited'; sentence: string } {
    const { title } = this.#request.entry;
    if (this.#broken !== null) return { reason: 'crashed', sentence: this.#broken };
    if (this.#stopping) return { reason: 'stopped', sentence: `${title} was stopped.` };
    if (signal !== null) return { reason: 'crashed', sentence: `${title} was ended by ${signal}.` };
    if (code === 0) return { reason: 'exited', sentence: `${title} ended by itself.` };
    return { reason: 'crashed', sentence: `${title} ended by itself with code ${code ?? 'unknown'}.` };
  }

  #lastWords(): string {
    const lines = redact(this.#stderr.text(), this.#request.environment.secrets).split('\n');
    return oneLine(lines.findLast((line) => line.trim() !== '') ?? '');
  }
}

const rawOf = (params: unknown): string => JSON.stringify(params)?.slice(0, limits.inlineHeadUnits) ?? '';

const garbageItem = (why: 'not_json' | 'too_long' | 'not_utf8', head: string): AgentItem => {
  const what = {
    not_json: 'lines that are not ACP',
    too_long: 'a line that is too long',
    not_utf8: 'a line that is not UTF-8',
  }[why];
  return {
    type: 'notice',
    level: 'info',
    code: 'agent_noise',
    sentence: `The agent wrote ${what}; such lines are left out.`,
    raw: head,
  };
};

/**
 * Starts, and comes back when the agent can be prompted. Nothing is left behind when it throws.
 * `host.exited` is called once for every process that existed, also when the start fails after `spawned`.
 * @throws Refusal agent_start_failed, agent_auth_required, agent_protocol_error, resume_failed, cancelled
 */
export const run = async (request: RunRequest): Promise<AgentProcess> => {
  if (request.signal.aborted) throw new Refusal('cancelled');
  const { holding, argv, cwd, environment, marker } = request;
  const process = await hold(holding, { argv, cwd, env: environment.env, marker });
  const running = new Running(request, process);
  const aborted = new Promise<never>((_, reject) =>
    request.signal.addEventListener('abort', () => reject(new Refusal('cancelled')), { once: true }),
  );
  const gone = running.gone.then((): never => {
    throw new Refusal('agent_gone');
  });
  gone.catch(() => undefined); // of an agent that ends long after its start: told through the host
  try {
    // Recorded before it is spoken to: what the sweep does not know of, it cannot end.
    await request.spawned({
      pid: process.pid,
      startTime: process.startTime,
      marker,
      argv,
      envNames: environment.names,
    });
    return await Promise.race([running.start(), aborted, gone]);
  } catch (error) {
    throw await running.explain(error);
  }
};
