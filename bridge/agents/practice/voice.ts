/**
 * What the practice agent can do in a turn: say, think, plan, read and write through ACP fs, run through ACP terminal.
 * Every step can be cancelled; every effect is announced as a tool call first and closed with what really happened.
 * Used by script.ts; made by agent.ts for each turn.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  RequestError,
  type AgentContext,
  type CreateTerminalRequest,
  type CreateTerminalResponse,
  type PlanEntry,
  type ReadTextFileRequest,
  type ReadTextFileResponse,
  type SessionUpdate,
  type TerminalOutputResponse,
  type ToolCallContent,
  type WaitForTerminalExitResponse,
  type WriteTextFileRequest,
} from '@agentclientprotocol/sdk';

/** The bridge, or the operator behind it, said no; the message is theirs. */
export class Refused extends Error {}

export interface Ran {
  readonly exitCode: number | null;
  readonly output: string;
}

interface Asked {
  'fs/read_text_file': { params: Omit<ReadTextFileRequest, 'sessionId'>; answer: ReadTextFileResponse };
  'fs/write_text_file': { params: Omit<WriteTextFileRequest, 'sessionId'>; answer: unknown };
  'terminal/create': { params: Omit<CreateTerminalRequest, 'sessionId'>; answer: CreateTerminalResponse };
  'terminal/wait_for_exit': { params: { terminalId: string }; answer: WaitForTerminalExitResponse };
  'terminal/output': { params: { terminalId: string }; answer: TerminalOutputResponse };
}

const wordMs = 28;
const countMs = 50;

export class Voice {
  readonly cwd: string;
  readonly signal: AbortSignal;
  #said = '';
  #calls = 0;
  readonly #client: AgentContext;
  readonly #sessionId: string;
  readonly #turn: string;
  readonly #pace: number;

  /** `pace` stretches the pauses between words: 1 as a person reads, 0 at once. */
  constructor(options: {
    client: AgentContext;
    sessionId: string;
    turn: string;
    cwd: string;
    signal: AbortSignal;
    pace: number;
  }) {
    this.#client = options.client;
    this.#sessionId = options.sessionId;
    this.#turn = options.turn;
    this.cwd = options.cwd;
    this.signal = options.signal;
    this.#pace = options.pace;
  }

  get said(): string {
    return this.#said;
  }

  say(text: string): Promise<void> {
    this.#said += text;
    return this.#stream('agent_message_chunk', text);
  }

  think(text: string): Promise<void> {
    return this.#stream('agent_thought_chunk', text);
  }

  /** Numbered lines at a steady rate that no pace hurries: for watching a stream, and for interrupting one. */
  async count(to: number): Promise<void> {
    for (let number = 1; number <= to; number += 1) {
      await this.#pause(countMs);
      this.#said += `${number}\n\n`;
      await this.#chunk('agent_message_chunk', `${number}\n\n`);
    }
  }

  plan(steps: readonly string[], done: number): Promise<void> {
    const entries = steps.map((content, index): PlanEntry => ({
      content,
      priority: 'medium',
      status: index < done ? 'completed' : index === done ? 'in_progress' : 'pending',
    }));
    return this.#update({ sessionUpdate: 'plan', entries });
  }

  /** Text of a file of the workspace, or null where there is none. @throws Refused */
  async read(path: string): Promise<string | null> {
    const absolute = join(this.cwd, path);
    const toolCallId = await this.#call(`Read ${path}`, 'read', { path: absolute }, [{ path: absolute }], []);
    try {
      const { content } = await this.#ask('fs/read_text_file', { path: absolute });
      await this.#close(toolCallId, 'completed');
      return content;
    } catch (error) {
      await this.#close(toolCallId, 'failed');
      if (error instanceof RequestError && error.code === -32002) return null;
      throw error;
    }
  }

  /** Writes a file of the workspace, which the bridge asks the operator about. @throws Refused */
  async write(path: string, oldText: string, newText: string): Promise<void> {
    const absolute = join(this.cwd, path);
    const diff: ToolCallContent = { type: 'diff', path: absolute, oldText, newText };
    const toolCallId = await this.#call(
      `Write ${path}`,
      'edit',
      { path: absolute, content: newText },
      [{ path: absolute }],
      [diff],
    );
    try {
      await this.#ask('fs/write_text_file', { path: absolute, content: newText });
      await this.#close(toolCallId, 'completed');
    } catch (error) {
      await this.#close(toolCallId, 'failed');
      throw error;
    }
  }

  /** Runs a command in the workspace, which the bridge asks the operator about, and waits for its end. @throws Refused */
  async run(command: string, args: readonly string[]): Promise<Ran> {
    const title = [command, ...args].join(' ');
    const toolCallId = await this.#call(`Run ${title}`, 'execute', { command, args, cwd: this.cwd }, [], []);
    let terminalId: string | null = null;
    try {
      ({ terminalId } = await this.#ask('terminal/create', {
        command,
        args: [...args],
        cwd: this.cwd,
        env: [],
        outputByteLimit: 200_000,
      }));
      await this.#update({
        sessionUpdate: 'tool_call_update',
        toolCallId,
        status: 'in_progress',
        content: [{ type: 'terminal', terminalId }],
      });
      const { exitCode = null } = await this.#ask('terminal/wait_for_exit', { terminalId });
      const { output } = await this.#ask('terminal/output', { terminalId });
      await this.#update({
        sessionUpdate: 'tool_call_update',
        toolCallId,
        status: exitCode === 0 ? 'completed' : 'failed',
        rawOutput: { exitCode },
      });
      return { exitCode: exitCode ?? null, output };
    } catch (error) {
      await this.#close(toolCallId, 'failed');
      throw error;
    } finally {
      // Also after a cancel: releasing kills what still runs.
      if (terminalId !== null)
        await this.#client
          .request('terminal/release', { sessionId: this.#sessionId, terminalId })
          .catch(() => undefined);
    }
  }

  async #call(
    title: string,
    kind: 'read' | 'edit' | 'execute',
    rawInput: unknown,
    locations: { path: string }[],
    content: ToolCallContent[],
  ): Promise<string> {
    this.signal.throwIfAborted();
    this.#calls += 1;
    const toolCallId = `${this.#turn}-${this.#calls}`;
    await this.#update({
      sessionUpdate: 'tool_call',
      toolCallId,
      title,
      kind,
      status: 'pending',
      rawInput,
      locations,
      content,
    });
    return toolCallId;
  }

  #close(toolCallId: string, status: 'completed' | 'failed'): Promise<void> {
    return this.#update({ sessionUpdate: 'tool_call_update', toolCallId, status });
  }

  /** A cancelled turn does not wait for an answer that may need the operator. */
  async #ask<M extends keyof Asked>(method: M, params: Asked[M]['params']): Promise<Asked[M]['answer']> {
    this.signal.throwIfAborted();
    try {
      const options = { cancellationSignal: this.signal, stopWaitingOnCancel: true };
      return await this.#client.request<Asked[M]['answer']>(method, { sessionId: this.#sessionId, ...params }, options);
    } catch (error) {
      this.signal.throwIfAborted();
      if (error instanceof RequestError && error.code !== -32002) throw new Refused(error.message);
      throw error;
    }
  }

  async #stream(kind: 'agent_message_chunk' | 'agent_thought_chunk', text: string): Promise<void> {
    for (const piece of text.match(/\S+\s*|\s+/g) ?? []) {
      await this.#pause(wordMs * this.#pace);
      await this.#chunk(kind, piece);
    }
  }

  #chunk(sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk', text: string): Promise<void> {
    return this.#update({
      sessionUpdate,
      messageId: `${this.#turn}-${sessionUpdate === 'agent_message_chunk' ? 'm' : 't'}${this.#calls}`,
      content: { type: 'text', text },
    });
  }

  async #pause(ms: number): Promise<void> {
    this.signal.throwIfAborted();
    if (ms > 0) await sleep(ms, undefined, { signal: this.signal });
  }

  #update(update: SessionUpdate): Promise<void> {
    return this.#client.notify('session/update', { sessionId: this.#sessionId, update });
  }
}
