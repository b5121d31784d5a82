/**
 * The command table: one sorted row per method, what it does in one line, its work in the room it belongs to. The gate
 * parsed the parameters and knows the actor; idempotency is settled here for every method that mutates.
 */
import type { Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { methods, type Answer, type MethodName, type Params } from '#protocol/methods.ts';
import { toBase64 } from '#protocol/receipts.ts';
import type { ReceiptReader, Seal, StandingAnswer } from '../approvals/contract.ts';
import type { Call, Dispatch } from '../gate/contract.ts';
import type { CheckpointRow, Sink, Tx } from '../ledger/contract.ts';
import type { Trust } from '../trust/contract.ts';
import { exportConversation } from './export.ts';
import { createOperations, type Operation } from './operations.ts';
import type { Conversations } from './registry.ts';
import type { Rooms } from './rooms.ts';
import { sampleRequest, suggestions } from './samples.ts';

/** The gate answers these itself. */
type GateMethod =
  'connection.ack' | 'connection.cancelRequest' | 'connection.initialize' | 'connection.ping' | 'ticket.create';
type CommandName = Exclude<MethodName, GateMethod>;

interface Asked<M extends CommandName> {
  readonly params: Params<M>;
  readonly actor: Actor;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly operation: Operation;
}
type Commands = { [M in CommandName]: (asked: Asked<M>) => Promise<Answer<M>> | Answer<M> };

/** What the bridge process itself answers; handed over by main. */
export interface BridgeFacts {
  info(): Answer<'bridge.info'>;
  launch(): Answer<'bridge.launch'>;
  sessions(actor: Actor): Answer<'bridge.sessions'>;
  revoke(sessionId: string | null): Promise<Answer<'bridge.revoke'>>;
  /** Orderly stop, begun after the answer has left. */
  stop(): void;
}
export interface ReceiptCommands extends ReceiptReader {
  /** Signs the log as it is now. */
  checkpoint(anchored: Params<'log.checkpoint'>['anchored']): Promise<CheckpointRow>;
  /** Sees to it that the newest checkpoint holds every receipt, where that can be written. */
  cover(): Promise<void>;
  /** @throws Refusal forbidden for anyone but the operator at a terminal */
  rotate(actor: Actor, store: (tx: Tx, answer: Answer<'receipt.rotate'>) => void): Promise<Answer<'receipt.rotate'>>;
}
export type TrustCommands = Pick<Trust, 'get' | 'review' | 'accept' | 'withdraw'>;

/** Only the operator at a terminal may answer ahead; each receipt then names this rule. */
const standingOf = (actor: Actor, value: 'allow' | 'deny' | undefined): StandingAnswer | null => {
  if (value === undefined) return null;
  const mayAnswer = actor.kind === 'local' || (actor.kind === 'cli' && actor.operator);
  if (!mayAnswer) throw new Refusal('forbidden');
  return { value, rule: `cli --allow ${value === 'allow' ? 'all' : 'none'}` };
};

/** A shell is the operator's alone: nothing that comes over the control socket reaches one (T75). */
const onlyFromApp = (actor: Actor): void => {
  if (actor.kind !== 'browser') throw new Refusal('forbidden');
};

const plain = (risks: readonly { code: string; sentence: string }[]): { code: string; sentence: string }[] =>
  risks.map(({ code, sentence }) => ({ code, sentence }));

/** Another program may act here from now on: signed like trust. Values of variables may be secrets and stay out. */
const signAgent = (seal: Seal, tx: Tx, actor: Actor, agentId: string, spec: Params<'agent.add'>): void => {
  const { title, command, args, env } = spec;
  const [shownTitle, program] = [title.toWellFormed(), command.toWellFormed()];
  const detail = {
    kind: 'agent.add',
    agentId,
    title: shownTitle,
    command: program,
    args: args.map((each) => each.toWellFormed()),
    env: env.map(({ name }) => name.toWellFormed()),
  };
  seal.sign(tx, { kind: 'trust', actor, detail, sentence: `Added the agent ${shownTitle}, which runs ${program}` });
};

/** Effects outside the database: `running` is durable before them, and they are never repeated by themselves (D-32). */
const external: ReadonlySet<MethodName> = new Set([
  'workspace.create',
  'workspace.reset',
  'conversation.restart',
  'terminal.open',
]);

export const createCommands = (
  rooms: Rooms,
  conversations: Conversations,
  bridge: BridgeFacts,
  receipts: ReceiptCommands,
  trust: TrustCommands,
): Dispatch => {
  const { ledger, desk, rulebook, agents, workspaces } = rooms;
  const operations = createOperations(ledger);

  const commands: Commands = {
    'agent.add': async ({ params, actor }) => {
      const added = await agents.add(params, (tx, agentId) => signAgent(rooms.seal, tx, actor, agentId, params));
      return changed('receipts', changed('agents', added));
    },
    'agent.enable': async ({ params }) => changed('agents', await agents.enable(params.agentId, params.enabled)),
    'agent.list': () => ({ agents: agents.list() }),
    'agent.probe': async ({ params }) => changed('agents', await agents.probe(params.agentId)),
    'agent.remove': async ({ params }) => {
      if (conversations.agentActive(params.agentId)) throw new Refusal('conversation_active');
      await agents.remove(params.agentId);
      return changed('agents', {});
    },
    'agent.setDefault': async ({ params }) => changed('agents', await agents.setDefault(params.agentId)),

    'approval.decide': async ({ params, actor, operation }) =>
      changed('approvals', await desk.decide(actor, params, (tx, answer) => operation.store(tx, answer))),
    'approval.get': ({ params }) => {
      const approval = desk.get(params.approvalId);
      if (approval === null) throw new Refusal('unknown_approval');
      return approval;
    },
    'approval.list': ({ params }) => desk.list(params),

    'bridge.info': () => bridge.info(),
    'bridge.launch': () => bridge.launch(),
    'bridge.logout': async ({ actor }) => {
      if (actor.kind !== 'browser') throw new Refusal('forbidden');
      await bridge.revoke(actor.sessionId);
      return {};
    },
    'bridge.revoke': ({ params }) => bridge.revoke(params.sessionId),
    'bridge.sessions': ({ actor }) => bridge.sessions(actor),
    'bridge.stop': () => {
      bridge.stop();
      return {};
    },

    'checkpoint.list': ({ params }) => rooms.checkpoints.list(params.conversationId),
    'checkpoint.plan': ({ params, signal }) => rooms.checkpoints.plan(params, signal),
    'checkpoint.restore': async ({ params, actor, operation }) => {
      const { workspaceId } = conversations.summary(params.conversationId);
      // Whoever writes in this folder right now would be written over, or write over it.
      if (conversations.active(workspaceId).some(({ busy }) => busy)) throw new Refusal('turn_active');
      const store = (tx: Tx, answer: Answer<'checkpoint.restore'>): void => operation.store(tx, answer);
      return changed('receipts', await rooms.checkpoints.restore(actor, params, store));
    },

    'conversation.archive': ({ params }) => conversations.archive(params.conversationId, params.archived),
    'conversation.cancel': async ({ params }) => {
      await conversations.get(params.conversationId).cancel();
      return {};
    },
    'conversation.close': async ({ params }) => {
      await conversations.get(params.conversationId).close('operator');
      return conversations.summary(params.conversationId);
    },
    'conversation.create': async ({ params, operation, actor }) => {
      const made = await conversations.create(params, operation, actor);
      return params.worktree === true ? changed('receipts', made) : made;
    },
    'conversation.delete': async ({ params, operation }) => {
      await conversations.remove(params.conversationId, operation);
      return {};
    },
    'conversation.export': async ({ params }) => ({
      blob: await exportConversation(rooms, conversations.summary(params.conversationId), params.format),
    }),
    'conversation.get': ({ params }) => conversations.summary(params.conversationId),
    'conversation.history': ({ params }) => {
      const { conversationId, beforeSeq, aroundSeq } = params;
      if ((beforeSeq === undefined) === (aroundSeq === undefined)) throw new Refusal('bad_request');
      conversations.summary(conversationId);
      const where = beforeSeq === undefined ? { aroundSeq: aroundSeq ?? 0 } : { beforeSeq };
      return ledger.history(conversationId, where, Math.min(params.limit ?? limits.pageEvents, limits.pageEvents));
    },
    'conversation.list': ({ params }) => conversations.list(params, limits.conversationsPage),
    'conversation.rename': async ({ params }) => {
      await conversations.get(params.conversationId).rename(params.title);
      return conversations.summary(params.conversationId);
    },
    'conversation.restart': async ({ params }) => {
      await conversations.get(params.conversationId).restart();
      return conversations.summary(params.conversationId);
    },
    'conversation.search': ({ params }) =>
      ledger.search(params.query, {
        conversationId: params.conversationId,
        limit: Math.min(params.limit ?? limits.searchResults, limits.searchResults),
      }),
    'conversation.send': async ({ params, actor, operation }) => {
      const { conversationId, content, delivery } = params;
      const by = actor.kind === 'browser' ? 'operator' : 'cli';
      const standing = standingOf(actor, params.standing);
      const prompt = { content, delivery, by, ...(standing === null ? {} : { standing }) } as const;
      return (await conversations.get(conversationId).send(prompt, operation)) as Answer<'conversation.send'>;
    },
    'conversation.setMode': async ({ params }) => {
      await conversations.get(params.conversationId).settings.setMode(params.modeId);
      return conversations.summary(params.conversationId);
    },
    'conversation.setModel': async ({ params }) => {
      await conversations.get(params.conversationId).settings.setModel(params.modelId);
      return conversations.summary(params.conversationId);
    },
    'conversation.setOption': async ({ params }) => {
      await conversations.get(params.conversationId).settings.setOption(params.optionId, params.value);
      return conversations.summary(params.conversationId);
    },
    'conversation.subscribe': ({ params, sink }) => {
      const { conversationId, after } = params;
      const conversation = conversations.get(conversationId);
      const subscription = ledger.feed.subscribe(conversationId, sink, after);
      queueMicrotask(() => conversation.showAgain());
      return { sub: conversationId, summary: conversations.summary(conversationId), ...subscription };
    },
    'conversation.unsubscribe': ({ params, sink }) => {
      if (!ledger.feed.unsubscribe(params.conversationId, sink.attachmentId)) throw new Refusal('unknown_subscription');
      return {};
    },

    'files.grep': ({ params, sink, signal }) =>
      rooms.looks.grep(sink.attachmentId, open(params.workspaceId), params, signal),
    'files.list': ({ params }) => open(params.workspaceId).list(params.path, params.cursor, params.from),
    'files.read': ({ params }) => {
      const { workspaceId, path, ...options } = params;
      return open(workspaceId).read(path, options);
    },
    'files.reveal': async ({ params, actor, operation }) => {
      const root = open(params.workspaceId);
      const file = root.read(params.path, { reveal: true });
      await ledger.commit((tx) => {
        const detail = { kind: 'reveal', workspace: params.workspaceId, path: params.path, revision: file.revision };
        const receipt = rooms.seal.sign(tx, { kind: 'reveal', actor, detail, sentence: `Revealed ${params.path}` });
        tx.append('bridge', { type: 'operator.reveal', data: { path: params.path, receiptId: receipt.receiptId } });
        // What was seen once is not kept: the stored answer names no content.
        operation.store(tx, { ...file, content: { kind: 'binary', sniff: 'revealed once' } });
      });
      return changed('receipts', file);
    },
    'files.search': ({ params, signal }) =>
      open(params.workspaceId).search(params.query, Math.min(params.limit ?? 50, 200), signal),
    'files.stat': ({ params }) => open(params.workspaceId).stat(params.path),
    'files.watch': ({ params, sink }) =>
      rooms.looks.watch(sink.attachmentId, open(params.workspaceId), params.folders, params.file),

    'git.changes': ({ params, signal }) => rooms.git.changes(open(params.workspaceId), params.of, signal),
    'git.diff': ({ params, signal }) => rooms.git.diff(open(params.workspaceId), params, signal),
    'git.log': ({ params, signal }) => rooms.git.log(open(params.workspaceId), params, signal),
    'git.show': ({ params, signal }) => rooms.git.show(open(params.workspaceId), params, signal),
    'git.side': ({ params, signal }) => rooms.git.side(open(params.workspaceId), params, signal),
    'git.status': ({ params, signal }) => rooms.git.status(open(params.workspaceId), signal),

    'log.checkpoint': async ({ params }) => {
      const { size, root, note } = await receipts.checkpoint(params.anchored);
      return { size, root: toBase64(root), checkpoint: note };
    },
    'log.consistency': ({ params }) => receipts.consistency(params),

    'policy.forget': ({ params, actor, operation }) =>
      rulebook.forget(actor, params, (tx, answer) => operation.store(tx, answer)),
    'policy.get': () => rulebook.get(),
    'policy.load': ({ params, actor, operation }) =>
      rulebook.load(actor, params, (tx, answer) => operation.store(tx, answer)),
    'policy.preset': ({ params, actor, operation }) =>
      rulebook.preset(actor, params, (tx, answer) => operation.store(tx, answer)),
    'policy.presets': () => rulebook.presets(),
    'policy.preview': ({ params: { draft, approvalId } }) => {
      if (approvalId !== undefined && desk.get(approvalId) === null) throw new Refusal('unknown_approval');
      return rulebook.preview(draft, approvalId === undefined ? null : desk.considered(approvalId));
    },
    'policy.put': ({ params, actor, operation }) =>
      rulebook.put(actor, params, (tx, answer) => operation.store(tx, answer)),
    'policy.suggestions': ({ params: { workspaceId } }) => suggestions(rooms, workspaceId),
    'policy.test': async ({ params: { sample, rules } }) => {
      const { request, trusted } = await sampleRequest(rooms, sample);
      const { reading, risks } = request.facts;
      return {
        ...rulebook.test(request, trusted, rules),
        ...(reading === undefined ? {} : { reading }),
        risks: plain(risks),
      };
    },

    'queue.remove': async ({ params, operation }) =>
      (await conversations
        .get(params.conversationId)
        .removeQueued(params.queueId, operation)) as Answer<'queue.remove'>,
    'queue.resume': async ({ params }) =>
      (await conversations.get(params.conversationId).resumeQueue()) as Answer<'queue.resume'>,

    'receipt.get': ({ params }) => receipts.get(params.receiptId),
    'receipt.list': ({ params }) => receipts.list(params),
    'receipt.page': ({ params }) => receipts.page(params),
    'receipt.proof': async ({ params }) => {
      await receipts.cover();
      return receipts.proof(params.receiptId);
    },
    'receipt.rotate': async ({ actor, operation }) =>
      changed('receipts', await receipts.rotate(actor, (tx, answer) => operation.store(tx, answer))),
    'receipt.verify': async ({ params }) => {
      await receipts.cover();
      return receipts.verify(params.receiptId);
    },

    'terminal.close': async ({ params, actor }) => {
      onlyFromApp(actor);
      await rooms.terminals.close(params.terminalId);
      return {};
    },
    'terminal.list': ({ actor }) => {
      onlyFromApp(actor);
      return { terminals: rooms.terminals.list(), absent: rooms.terminals.absent };
    },
    'terminal.open': ({ params, actor }) => {
      onlyFromApp(actor);
      return rooms.terminals.open(params);
    },
    'terminal.rename': ({ params, actor }) => {
      onlyFromApp(actor);
      return rooms.terminals.rename(params.terminalId, params.title);
    },

    'trust.accept': async ({ params, actor, operation }) =>
      changed(
        'receipts',
        changed('trust', await trust.accept(actor, params, (tx, answer) => operation.store(tx, answer))),
      ),
    'trust.get': ({ params }) => trust.get(params.workspaceId),
    'trust.review': async ({ params }) => changed('trust', await trust.review(params.workspaceId)),
    'trust.withdraw': async ({ params, actor, operation }) =>
      changed(
        'receipts',
        changed('trust', await trust.withdraw(actor, params, (tx, answer) => operation.store(tx, answer))),
      ),

    'view.get': ({ params }) => ({ state: ledger.read.view(params.conversationId) }),
    'view.set': async ({ params, operation }) => {
      await ledger.commit((tx) => {
        tx.putView(params.conversationId, params.state);
        operation.store(tx, {});
      });
      return {};
    },

    'workspace.browse': ({ params }) => workspaces.browse(params.path),
    'workspace.close': async ({ params }) => {
      const active = conversations.active(params.workspaceId);
      if (active.length > 0 && params.force !== true) throw new Refusal('conversation_active');
      await Promise.all(active.map((each) => each.close('operator')));
      await rooms.terminals.closeAll(params.workspaceId);
      await workspaces.close(params.workspaceId);
      return changed('workspaces', {});
    },
    'workspace.create': async ({ params }) =>
      changed('workspaces', looking(await workspaces.create(params.parent, params.name))),
    'workspace.excerpts': ({ params: { workspaceId, ...about }, signal }) =>
      workspaces.excerpts(workspaceId, rooms.trusted(workspaceId), about, signal),
    'workspace.forget': async ({ params }) => {
      if (conversations.active(params.workspaceId).length > 0) throw new Refusal('conversation_active');
      await rooms.terminals.closeAll(params.workspaceId);
      await workspaces.forget(params.workspaceId);
      return changed('workspaces', {});
    },
    'workspace.list': () => ({ workspaces: workspaces.list() }),
    'workspace.map': ({ params: { workspaceId }, signal }) =>
      workspaces.map(workspaceId, rooms.trusted(workspaceId), signal),
    'workspace.open': async ({ params }) => {
      if ((params.path === undefined) === (params.practice !== true)) throw new Refusal('bad_request');
      const opened = await workspaces.open(params.path === undefined ? { practice: true } : { path: params.path });
      return changed('workspaces', looking(opened));
    },
    'workspace.profile': ({ params: { workspaceId }, signal }) =>
      workspaces.profile(workspaceId, rooms.trusted(workspaceId), signal),
    'workspace.reset': async ({ params }) => {
      if (conversations.active(params.workspaceId).length > 0) throw new Refusal('conversation_active');
      await rooms.terminals.closeAll(params.workspaceId);
      return changed('workspaces', await workspaces.reset(params.workspaceId));
    },

    'worktree.bring': async ({ params, actor, operation }) => {
      const { workspaceId, worktree } = conversations.summary(params.conversationId);
      // Neither is half-written, and nobody writes in the folder that is written into.
      const both = [workspaceId, worktree?.parentWorkspaceId ?? workspaceId];
      if (both.some((each) => conversations.active(each).some(({ busy }) => busy))) throw new Refusal('turn_active');
      const store = (tx: Tx, answer: Answer<'worktree.bring'>): void => operation.store(tx, answer);
      return changed('receipts', await rooms.worktrees.bring(actor, params, store));
    },
    'worktree.plan': ({ params, signal }) => rooms.worktrees.plan(params, signal),
    'worktree.remove': async ({ params, actor, operation }) => {
      const { workspaceId, worktree } = conversations.summary(params.conversationId);
      if (worktree !== undefined) {
        const active = conversations.active(workspaceId);
        if (active.some(({ busy }) => busy)) throw new Refusal('conversation_active');
        await Promise.all(active.map((each) => each.close('operator')));
        await rooms.terminals.closeAll(workspaceId);
      }
      const store = (tx: Tx, answer: Answer<'worktree.remove'>): void => operation.store(tx, answer);
      const answer = await rooms.worktrees.remove(actor, params, store);
      return changed('conversations', changed('receipts', answer));
    },
  };

  const changed = <T>(topic: Parameters<typeof ledger.feed.invalidate>[0], answer: T): T => {
    ledger.feed.invalidate(topic);
    return answer;
  };
  /** A folder is reviewed as soon as it is open, in the background (W-10). */
  const looking = <T extends { readonly workspaceId: string }>(opened: T): T => {
    rooms.trust.fresh(opened.workspaceId).catch((error: unknown) => rooms.log({ event: 'review_failed', error }));
    return opened;
  };
  const open = (workspaceId: string) => {
    const root = workspaces.root(workspaceId);
    root.check();
    return root;
  };

  const noOperation: Operation = { key: '', store: () => undefined };
  return async (call: Call): Promise<Record<string, unknown>> => {
    const run = commands[call.method as CommandName] as ((asked: unknown) => unknown) | undefined;
    if (run === undefined) throw new Refusal('unsupported_capability');
    const { method, params, key, actor, sink, signal } = call;
    if (!methods[method].mutates || key === undefined) {
      return (await run({ params, actor, sink, signal, operation: noOperation })) as Record<string, unknown>;
    }
    const makesFolder = method === 'conversation.create' && (params as Params<typeof method>).worktree === true;
    const asked = { key, method, params, external: external.has(method) || makesFolder };
    const answer = await operations.run(
      asked,
      async (operation) => (await run({ params, actor, sink, signal, operation })) as object,
    );
    return answer as Record<string, unknown>;
  };
};
