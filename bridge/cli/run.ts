/**
 * `bridge run`: one prompt, streamed to the terminal, its actions asked on the tty or answered by --allow. Uses the
 * running bridge of that state, or composes the rooms in process. The exit code follows the stop reason alone.
 */
import { createInterface } from 'node:readline/promises';
import type { Client } from '#protocol/client.ts';
import { Refusal } from '#protocol/errors.ts';
import { knownEvent, type AnyEvent, type EventOf } from '#protocol/events.ts';
import type { Update } from '#protocol/subscription.ts';
import { stateDirectories } from '../ledger/paths.ts';
import { CliError, exits, read, usage, type Verb } from './args.ts';
import { printCard } from './approvals.ts';
import { connectControl, type Control } from './control.ts';
import { connectLocal } from './local.ts';
import { bold, dim, inert, print, printJson, warn } from './output.ts';
import { compose } from './parts.ts';

const help = `bridge run (--workspace DIR | --practice [--reset]) --agent ID [--allow ask|all|none] [--json] "PROMPT"

Sends one prompt and shows what happens. --allow all or none answers what would be asked; without a terminal, ask acts
as none. With --json: each stored event a line, then {"event":"ended",…}.
Exit code: 0 when the turn ended by itself, 1 otherwise, 2 for wrong usage.

Example: bridge run --practice --agent practice "Find and fix the failing test"`;

type Allow = 'ask' | 'all' | 'none';

interface Job {
  readonly workspace: { readonly path: string } | { readonly practice: true };
  readonly reset: boolean;
  readonly agentId: string;
  readonly allow: Allow;
  readonly json: boolean;
  readonly prompt: string;
}

const jobOf = (args: readonly string[]): { job: Job; state: string | undefined } => {
  const { values, positionals } = read(args, {
    workspace: { type: 'string' },
    practice: { type: 'boolean' },
    reset: { type: 'boolean' },
    agent: { type: 'string' },
    allow: { type: 'string' },
  });
  const [prompt, ...more] = positionals;
  if (prompt === undefined || more.length > 0) throw usage('Give one prompt, in quotes.');
  if (values.agent === undefined) throw usage('Name an agent with --agent; "bridge agents" lists them.');
  if ((values.workspace === undefined) === (values.practice !== true))
    throw usage('Name a folder with --workspace, or --practice.');
  if (values.reset === true && values.practice !== true) throw usage('--reset goes with --practice.');
  const allow = values.allow ?? 'ask';
  if (allow !== 'ask' && allow !== 'all' && allow !== 'none') throw usage('--allow takes ask, all or none.');
  const workspace = values.workspace === undefined ? ({ practice: true } as const) : { path: values.workspace };
  const asks = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const job = {
    workspace,
    reset: values.reset === true,
    agentId: values.agent,
    allow: allow === 'ask' && !asks ? 'none' : allow,
    json: values.json === true,
    prompt,
  } as const;
  return { job, state: values.state };
};

/** Over the socket of a running bridge; else the rooms in this process, under the state's lock. */
export const connected = async (state: string | undefined): Promise<Control & { end(): Promise<void> }> => {
  const directories = stateDirectories(state);
  const control = await connectControl(directories).catch((error: unknown) => {
    if (error instanceof CliError && error.code === exits.unreachable) return null;
    throw error;
  });
  if (control !== null) return { ...control, end: async () => control.close() };
  const parts = await compose({ directories, purpose: 'run' });
  const refuse = (): never => {
    throw new Refusal('unsupported_capability');
  };
  const dispatch = parts.dispatch({ origin: () => '', launch: refuse, sessions: refuse, revoke: refuse });
  const local = await connectLocal(parts, dispatch);
  return {
    ...local,
    end: async () => {
      local.close();
      await parts.close();
    },
  };
};

/** Asks on the terminal; nothing but a clear answer decides. */
const askOnTty = async (client: Client, event: EventOf<'approval.requested'>): Promise<void> => {
  const { approvalId, digest } = event.data;
  const approval = await client.call('approval.get', { approvalId });
  printCard(approval);
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const answer = (await lines.question('Allow? [y/N, or a note to deny with] ')).trim();
    const value = /^y(es)?$/i.test(answer) ? 'allow' : 'deny';
    const note = value === 'deny' && !/^(n|no|)$/i.test(answer) ? answer : undefined;
    const option = approval.options.find((each) => each.meaning === value);
    if (option === undefined) return warn(`The agent offered no way to ${value} this.`);
    await client.change('approval.decide', {
      approvalId,
      digest,
      optionId: option.id,
      value,
      ...(note === undefined ? {} : { note }),
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    warn(error.message); // expired or withdrawn while the question stood
  } finally {
    lines.close();
  }
};

const showEvent = (event: AnyEvent): void => {
  const known = knownEvent(event);
  if (known === null) return;
  if (known.type === 'message' && known.data.role === 'agent') print(inert(known.data.text));
  if (known.type === 'message' && known.data.role === 'thought') print(dim(inert(known.data.text)));
  if (known.type === 'tool.called') print(dim(`· ${inert(known.data.title ?? known.data.kind ?? 'tool')}`));
  if (known.type === 'approval.decided')
    print(dim(`· ${known.data.value === 'allow' ? 'allowed' : 'denied'} by ${known.data.rule ?? known.data.by}`));
  if (known.type === 'agent.error')
    warn(`${known.data.sentence}${known.data.mendCommand === undefined ? '' : ` Run: ${known.data.mendCommand}`}`);
  if (known.type === 'notice') print(dim(inert(known.data.sentence)));
};

/** Follows the turn to its end; resolves with how it ended. */
const follow = (client: Client, job: Job, conversationId: string) => {
  let turnId: string | null = null;
  let ended: EventOf<'turn.ended'> | null = null;
  let resolve: (event: EventOf<'turn.ended'>) => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const end = new Promise<EventOf<'turn.ended'>>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  const settle = (): void => {
    if (ended !== null && ended.turnId === turnId) resolve(ended);
  };
  const take = (event: AnyEvent): void => {
    if (job.json) printJson(event);
    else showEvent(event);
    const known = knownEvent(event);
    if (known?.type === 'approval.requested' && job.allow === 'ask') void askOnTty(client, known);
    if (known?.type !== 'turn.ended') return;
    ended = known;
    settle();
  };
  const listener = (update: Update): void => {
    if (update.type === 'snapshot') update.events.forEach(take);
    else if (update.type === 'event') take(update.event);
    else if (update.type === 'gone') reject(update.refusal);
  };
  const following = client.subscribe(conversationId, { listener });
  client.on({
    status: ({ state }) => {
      if (state === 'offline' || state === 'signed_out') reject(new CliError('The bridge stopped.', exits.failed));
    },
  });
  return {
    end,
    sent: (id: string | undefined) => {
      turnId = id ?? null;
      settle();
    },
    close: () => following.close(),
  };
};

const receiptIds = async (client: Client, conversationId: string): Promise<string[]> => {
  const ids: string[] = [];
  for (let beforeSeq: number | undefined; ;) {
    const page = await client.call('receipt.list', {
      conversationId,
      ...(beforeSeq === undefined ? {} : { beforeSeq }),
    });
    ids.push(...page.receipts.map((receipt) => receipt.receiptId));
    const last = page.receipts.at(-1);
    if (!page.more || last === undefined) return ids.reverse();
    beforeSeq = last.seq;
  }
};

const perform = async (client: Client, job: Job): Promise<number> => {
  const workspace = await client.change('workspace.open', job.workspace);
  const { workspaceId } = workspace;
  if (job.reset) await client.change('workspace.reset', { workspaceId });
  const { conversationId } = await client.change('conversation.create', { workspaceId, agentId: job.agentId });
  const turn = follow(client, job, conversationId);
  let interrupts = 0;
  const interrupted = (): void => {
    interrupts += 1;
    if (interrupts > 1) process.exit(exits.failed);
    warn('Stopping the turn; press again to leave at once.');
    client.change('conversation.cancel', { conversationId }).catch(() => undefined); // it may just have ended
  };
  process.on('SIGINT', interrupted);
  try {
    const standing = job.allow === 'ask' ? {} : ({ standing: job.allow === 'all' ? 'allow' : 'deny' } as const);
    const sent = await client.change('conversation.send', {
      conversationId,
      delivery: 'prompt',
      content: [{ type: 'text', text: job.prompt }],
      ...standing,
    });
    turn.sent(sent.turnId);
    const { stopReason, sentence } = (await turn.end).data;
    const receipts = await receiptIds(client, conversationId);
    turn.close();
    await client.change('conversation.close', { conversationId });
    if (job.json) printJson({ event: 'ended', stopReason, conversationId, receipts });
    else
      print(
        `${bold(stopReason)}${sentence === undefined ? '' : `: ${inert(sentence)}`} · ${receipts.length} receipts · conversation ${conversationId}`,
      );
    return stopReason === 'end_turn' ? exits.ok : exits.failed;
  } finally {
    process.off('SIGINT', interrupted);
    turn.close();
  }
};

export const run: Verb = {
  name: 'run',
  about: 'Send one prompt and follow it to its end',
  help,
  async run(args) {
    const { job, state } = jobOf(args);
    const control = await connected(state);
    try {
      return await perform(control.client, job);
    } finally {
      await control.end();
    }
  },
};
