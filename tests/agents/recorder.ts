/** A host for one agent, as a conversation is: keeps what it is told, answers permissions as a test says, and serves real files and real commands. */
import { spawn, type ChildProcess } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createAgents, type AgentsOptions } from '../../bridge/agents/agents.ts';
import type {
  AgentHost,
  AgentItem,
  AgentProcess,
  Agents,
  PermissionAnswer,
  PermissionRequest,
  StartRequest,
} from '../../bridge/agents/contract.ts';
import { Refusal } from '#protocol/errors.ts';

type Exited = Parameters<AgentHost['exited']>[0];
type Spawned = Parameters<StartRequest['spawned']>[0];

export class Recorder implements AgentHost {
  readonly items: AgentItem[] = [];
  readonly permissions: PermissionRequest[] = [];
  readonly progressed: string[] = [];
  readonly exits: Exited[] = [];
  readonly written: string[] = [];
  readonly commands: string[] = [];
  /** What the operator would say. */
  allow = true;
  answer: (request: PermissionRequest) => Promise<PermissionAnswer> = (request) => {
    const option = request.options.find(({ meaning }) => meaning === (this.allow ? 'allow' : 'deny'));
    return Promise.resolve(
      option === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: option.id },
    );
  };
  onItem: (item: AgentItem) => void = () => undefined;
  readonly #terminals = new Map<
    string,
    { child: ChildProcess; output: string; exit: Promise<{ code: number | null; signal: string | null }> }
  >();

  item(item: AgentItem): void {
    this.items.push(item);
    this.onItem(item);
  }
  permission(request: PermissionRequest): Promise<PermissionAnswer> {
    this.permissions.push(request);
    return this.answer(request);
  }
  async readTextFile({ path }: { path: string }): Promise<string> {
    try {
      return await readFile(path, 'utf8');
    } catch (cause) {
      throw new Refusal('not_found', { cause });
    }
  }
  async writeTextFile({ path, content }: { path: string; content: string }): Promise<void> {
    if (!this.allow) throw new Refusal('forbidden', { message: 'The operator denied this.' });
    this.written.push(path);
    await writeFile(path, content);
  }
  createTerminal(request: Parameters<AgentHost['createTerminal']>[0]): Promise<{ terminalId: string }> {
    this.commands.push([request.command, ...request.args].join(' '));
    if (!this.allow) return Promise.reject(new Refusal('forbidden', { message: 'The operator denied this.' }));
    const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, ...env } = process.env;
    const child = spawn(request.command, request.args, {
      cwd: request.cwd,
      env: { ...env, PATH: `${dirname(process.execPath)}:${env['PATH']}` },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const terminalId = `terminal-${this.#terminals.size + 1}`;
    const terminal = {
      child,
      output: '',
      exit: new Promise<{ code: number | null; signal: string | null }>((resolve) =>
        child.once('close', (code, signal) => resolve({ code, signal })),
      ),
    };
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (terminal.output += chunk.toString()));
    this.#terminals.set(terminalId, terminal);
    return Promise.resolve({ terminalId });
  }
  #terminal(terminalId: string) {
    const terminal = this.#terminals.get(terminalId);
    if (terminal === undefined) throw new Refusal('not_found');
    return terminal;
  }
  async terminalOutput(terminalId: string) {
    const { output, child, exit } = this.#terminal(terminalId);
    return { output, truncated: false, exit: child.exitCode === null && child.signalCode === null ? null : await exit };
  }
  terminalExit(terminalId: string) {
    return this.#terminal(terminalId).exit;
  }
  killTerminal(terminalId: string): Promise<void> {
    this.#terminal(terminalId).child.kill('SIGKILL');
    return Promise.resolve();
  }
  releaseTerminal(terminalId: string): Promise<void> {
    return this.killTerminal(terminalId);
  }
  progress(state: string, detail: string): void {
    this.progressed.push(`${state}: ${detail}`);
  }
  exited(exit: Exited): void {
    this.exits.push(exit);
  }

  /** All text the agent said. */
  said(role: 'agent' | 'thought' = 'agent'): string {
    return this.items.flatMap((item) => (item.type === 'text' && item.role === role ? [item.text] : [])).join('');
  }
  notices(code?: string) {
    return this.items.filter((item) => item.type === 'notice' && (code === undefined || item.code === code)) as Extract<
      AgentItem,
      { type: 'notice' }
    >[];
  }
  /** Resolves when an item satisfies `wanted`. */
  seen(wanted: (item: AgentItem) => boolean): Promise<AgentItem> {
    const found = this.items.find(wanted);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve) => {
      const before = this.onItem;
      this.onItem = (item) => {
        before(item);
        if (wanted(item)) resolve(item);
      };
    });
  }
}

export const noBlob = (): Promise<Uint8Array> => Promise.reject(new Error('no blob in this test'));
export const say = (text: string) => [{ type: 'text', text } as const];
export const scriptedProgram = fileURLToPath(new URL('scripted/agent.ts', import.meta.url));

export interface Stage {
  readonly directory: string;
  readonly workspace: string;
  readonly practiceState: string;
  readonly agents: Agents;
  readonly spawned: Spawned[];
  readonly logged: unknown[];
  start(
    agentId: string,
    host: Recorder,
    more?: Partial<Pick<StartRequest, 'sessionId' | 'modeId' | 'signal'>>,
  ): Promise<AgentProcess>;
  /** Adds the scripted agent with this script (directives are in its head comment). Returns its agent id. */
  scripted(
    script: Readonly<Record<string, unknown>>,
    env?: readonly { name: string; value: string }[],
  ): Promise<string>;
  end(): Promise<void>;
}

/** A temporary state with real agents; ended by `end`, which stops what still runs. */
export const stage = async (options: Partial<AgentsOptions> = {}): Promise<Stage> => {
  const directory = await mkdtemp(join(tmpdir(), 'countersign-agents-'));
  const workspace = join(directory, 'workspace');
  const practiceState = join(directory, 'practice-state');
  await cp(fileURLToPath(new URL('../../bridge/agents/practice/workspace', import.meta.url)), workspace, {
    recursive: true,
  });
  const rows = new Map<string, string>();
  const logged: unknown[] = [];
  const agents = createAgents({
    store: {
      rows: () => [...rows].map(([agentId, spec]) => ({ agentId, spec })),
      put: async (agentId, spec) => void rows.set(agentId, spec),
      remove: async (agentId) => void rows.delete(agentId),
    },
    hidden: [join(directory, 'private')],
    practiceState,
    nodePath: process.execPath,
    env: { ...process.env, COUNTERSIGN_PRACTICE_PACE: '0' },
    now: () => 1,
    log: (message, error) => logged.push([message, error]),
    ...options,
  });
  const live: AgentProcess[] = [];
  const spawned: Spawned[] = [];
  let count = 0;
  return {
    directory,
    workspace,
    practiceState,
    agents,
    spawned,
    logged,
    start: async (agentId, host, more = {}) => {
      const agent = await agents.start({
        agentId,
        cwd: workspace,
        sessionId: null,
        host,
        signal: new AbortController().signal,
        spawned: async (process) => void spawned.push(process),
        ...more,
      });
      live.push(agent);
      return agent;
    },
    scripted: async (script, env = []) => {
      count += 1;
      const added = await agents.add({
        title: `Scripted ${count}`,
        command: process.execPath,
        args: [scriptedProgram, JSON.stringify(script)],
        env,
      });
      return added.agentId;
    },
    end: async () => {
      await Promise.all(live.map((agent) => agent.stop()));
      await rm(directory, { recursive: true, force: true });
    },
  };
};

export const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** Waits for a condition that another process makes true. @throws after 10 s */
export const until = async (condition: () => boolean | Promise<boolean>, what: string): Promise<void> => {
  const deadline = Date.now() + 10_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};
