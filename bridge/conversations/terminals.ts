/**
 * Terminals an agent asks for (P-04): commands the operator allowed, their output bounded and captured, killed with the
 * turn. Not to be confused with the operator's own terminals, which no agent can reach.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { RunCommand, RunningCommand } from './rooms.ts';

export interface TerminalExit {
  readonly code: number | null;
  readonly signal: string | null;
}

export class AgentTerminal {
  readonly terminalId: string;
  readonly command: string;
  readonly exit: Promise<TerminalExit>;
  readonly #running: RunningCommand;
  readonly #maxBytes: number;
  readonly #decoder = new TextDecoder('utf-8');
  #output = '';
  #droppedBytes = 0;
  #exit: TerminalExit | null = null;
  #killed = false;

  private constructor(terminalId: string, command: string, running: RunningCommand, maxBytes: number) {
    this.terminalId = terminalId;
    this.command = command;
    this.#running = running;
    this.#maxBytes = maxBytes;
    this.exit = running.exit.then((exit) => {
      this.#exit = exit;
      return exit;
    });
  }

  static async start(
    run: RunCommand,
    command: {
      terminalId: string;
      argv: readonly string[];
      cwd: string;
      env: Readonly<Record<string, string>>;
      maxBytes?: number | undefined;
    },
    grew: (offset: number, text: string) => void,
  ): Promise<AgentTerminal> {
    const early: Uint8Array[] = [];
    let terminal: AgentTerminal | null = null;
    const running = await run({
      argv: command.argv,
      cwd: command.cwd,
      env: command.env,
      output: (chunk) => (terminal === null ? void early.push(chunk) : terminal.#take(chunk, grew)),
    });
    const maxBytes = Math.min(command.maxBytes ?? limits.agentTerminalBytes, limits.agentTerminalBytes);
    terminal = new AgentTerminal(command.terminalId, command.argv.join(' '), running, maxBytes);
    for (const chunk of early) terminal.#take(chunk, grew);
    return terminal;
  }

  #take(chunk: Uint8Array, grew: (offset: number, text: string) => void): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    grew(this.#output.length + this.#droppedBytes, text);
    this.#output += text;
    // ACP asks to drop from the start, at a character boundary.
    const excess = this.#output.length - this.#maxBytes;
    if (excess <= 0) return;
    const cut = this.#output.slice(excess);
    this.#droppedBytes += excess;
    this.#output = /^[\udc00-\udfff]/.test(cut) ? cut.slice(1) : cut;
  }

  get killed(): boolean {
    return this.#killed;
  }

  snapshot(): { output: string; truncated: boolean; truncatedBytes: number; exit: TerminalExit | null } {
    return {
      output: this.#output,
      truncated: this.#droppedBytes > 0,
      truncatedBytes: this.#droppedBytes,
      exit: this.#exit,
    };
  }

  async kill(): Promise<void> {
    if (this.#exit !== null) return;
    this.#killed = true;
    await this.#running.kill();
    await this.exit;
  }
}

/** The terminals of one conversation. */
export class AgentTerminals {
  readonly #terminals = new Map<string, AgentTerminal>();

  get(terminalId: string): AgentTerminal {
    const terminal = this.#terminals.get(terminalId);
    if (terminal === undefined) throw new Refusal('not_found', { message: 'There is no such terminal.' });
    return terminal;
  }

  find(terminalId: string): AgentTerminal | null {
    return this.#terminals.get(terminalId) ?? null;
  }

  add(terminal: AgentTerminal): void {
    this.#terminals.set(terminal.terminalId, terminal);
  }

  /** Throws when as many as allowed are held; released ones do not count. */
  room(): void {
    if (this.#terminals.size >= limits.agentTerminals) {
      throw new Refusal('agent_limit', { message: 'This agent holds as many terminals as allowed.' });
    }
  }

  async release(terminalId: string): Promise<void> {
    const terminal = this.get(terminalId);
    await terminal.kill();
    this.#terminals.delete(terminalId);
  }

  async killAll(): Promise<void> {
    const all = [...this.#terminals.values()];
    this.#terminals.clear();
    await Promise.all(all.map((terminal) => terminal.kill()));
  }
}
