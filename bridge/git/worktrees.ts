/**
 * Worktrees of child conversations (W-03): made beside the state, without touching the parent's repository or running
 * anything of it; what was changed in them brought back by the guarded writer; removed. The rule not to break: the row
 * stands before the folder does, and every act is signed before and after. Called by conversations and the command table.
 */
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import type { EventDraft, Outcome } from '#protocol/events.ts';
import type { Answer, Params } from '#protocol/methods.ts';
import type { WritePlan } from '#protocol/methods/git.ts';
import { limits } from '#protocol/limits.ts';
import { z } from '#protocol/schema.ts';
import type { Seal } from '../approvals/contract.ts';
import type { Root, Workspaces } from '../files/contract.ts';
import type { Ledger, ReceiptRow, Tx, WorktreeRow } from '../ledger/contract.ts';
import { planWrites } from './checkpoint-plan.ts';
import { batches, type Done } from './checkpoint-restore.ts';
import type { Place } from './checkpoint-shelf.ts';
import { oidsOf, show, type Act, type CheckpointRoom, type Drafted } from './checkpoints.ts';
import type { RunGit, TreePair, Worktrees } from './contract.ts';
import { idOf } from './names.ts';
import type { GitRoom } from './repository.ts';
import { nameLeftOut, sayAlong, takeAlong, type Along } from './worktree-along.ts';
import { layDown, slugOf } from './worktree-make.ts';
import { decide, sidesOf, sizesOf, type Brought } from './worktree-plan.ts';

const detailSchema = z.object({
  parentId: z.string(),
  parentWorkspaceId: z.string(),
  parentWorkspacePath: z.string(),
  workspaceId: z.nullable(z.string()),
  branch: z.string(),
  commit: z.string(),
  /** Object stores it borrows from. */
  objects: z.array(z.string()),
  /** Trees in the conversation's store: what it began with, and that with what was brought back. */
  base: z.nullable(z.string()),
  brought: z.nullable(z.string()),
  /** Receipt of what has begun and not ended. */
  begun: z.nullable(z.string()),
});
type Detail = z.infer<typeof detailSchema>;

export interface WorktreeParts {
  readonly ledger: Pick<Ledger, 'commit' | 'read'>;
  readonly seal: Pick<Seal, 'sign'>;
  readonly run: RunGit;
  readonly git: Pick<GitRoom, 'source'>;
  readonly checkpoints: Pick<CheckpointRoom, 'shelf' | 'apply' | 'forget'>;
  readonly workspaces: Pick<Workspaces, 'root' | 'open' | 'forget'>;
  /** Where they are; not hidden from agents. */
  readonly directory: string;
  readonly now: () => number;
  readonly uuid: () => string;
  readonly log: (message: string, error: unknown) => void;
}
export interface WorktreeRoom extends Worktrees {
  /** Object stores that the repository of a workspace was made to borrow from. */
  lends(workspaceId: string): readonly string[];
  /** At boot, with the rest of recovery: what was under way has an end. */
  recover(tx: Tx): void;
  /** At boot, after it: folders that are none any more. */
  sweep(): Promise<void>;
}

const bringing: Pick<Act, 'kind' | 'words'> = {
  kind: 'worktree',
  words: {
    began: (files) => `Began to bring ${files} back from a worktree`,
    done: (files) => `Brought ${files} back from a worktree.`,
    stopped: 'Bringing files back stopped',
    nothing: 'There is nothing to bring back.',
  },
};

export const createWorktrees = (parts: WorktreeParts): WorktreeRoom => {
  const { ledger, seal, run, checkpoints, workspaces, log } = parts;
  const { shelf } = checkpoints;
  const homeOf = (conversationId: string): string => join(parts.directory, conversationId);

  const detailOf = (row: WorktreeRow): Detail => z.parse(detailSchema, JSON.parse(row.detail));
  const put = (tx: Tx, conversationId: string, state: WorktreeRow['state'], detail: Detail): void =>
    tx.putWorktree({ conversationId, state, detail: JSON.stringify(detail) });
  const ready = (conversationId: string): Detail & { base: string; workspaceId: string } => {
    if (ledger.read.conversation(conversationId) === null) throw new Refusal('unknown_conversation');
    const row = ledger.read.worktree(conversationId);
    const detail = row?.state === 'ready' ? detailOf(row) : null;
    if (detail === null || detail.base === null || detail.workspaceId === null)
      throw new Refusal('not_found', { message: 'This conversation has no worktree, or it was removed.' });
    return { ...detail, base: detail.base, workspaceId: detail.workspaceId };
  };

  /** `on` is the conversation that tells it. */
  const sign = (
    tx: Tx,
    actor: Actor | null,
    on: string,
    sentence: string,
    detail: Readonly<Record<string, string>>,
    outcome?: Outcome,
  ): ReceiptRow => {
    const ended = outcome === undefined ? { phase: 'begun' } : { phase: 'ended', outcome };
    const said = { kind: 'worktree', ...ended, ...detail };
    const receipt = seal.sign(tx, { kind: 'worktree', conversationId: on, actor, detail: said, sentence });
    if (tx.conversation(on) === null) return receipt;
    const { receiptId, seq: receiptSeq } = receipt;
    const data = { receiptId, receiptSeq, kind: 'worktree', ...(outcome && { outcome }), sentence } as const;
    tx.append(on, { type: 'receipt', data });
    return receipt;
  };

  // Making

  const make: Worktrees['make'] = async (actor, { conversationId, parentId, title, uncommitted = false }, store) => {
    const parent = ledger.read.conversation(parentId);
    if (parent === null) throw new Refusal('unknown_conversation');
    const root = workspaces.root(parent.workspaceId);
    const signal = AbortSignal.timeout(limits.worktreeMs);
    const source = await parts.git.source(root, uncommitted, signal);
    const { commit, objects, prefix } = source;
    const branch = `countersign/${slugOf(title)}`;
    const about = { conversation: conversationId, parent: parentId, commit, branch };
    const begunDetail: Detail = {
      parentId,
      parentWorkspaceId: root.workspaceId,
      parentWorkspacePath: root.path,
      workspaceId: null,
      branch,
      commit,
      objects: [...objects],
      base: null,
      brought: null,
      begun: null,
    };
    const begun = await ledger.commit((tx) => {
      const began = `Began to make a worktree at ${commit.slice(0, 10)} on ${branch}`;
      const along = source.uncommitted === null ? '' : ' with the uncommitted changes';
      const receipt = sign(tx, actor, parentId, began + along, { ...about, rootSha256: root.rootSha256 });
      put(tx, conversationId, 'making', { ...begunDetail, begun: receipt.receiptId });
      return receipt;
    });
    let workspaceId: string | null = null;
    try {
      const top = join(homeOf(conversationId), slugOf(title));
      await layDown(run, source, { top, branch }, signal);
      const opened = await workspaces.open({ path: join(top, prefix) });
      workspaceId = opened.workspaceId;
      const made = { workspaceId, path: opened.path };
      const own = workspaces.root(made.workspaceId);
      const along = source.uncommitted === null ? null : await takeAlong(root, own, source.uncommitted, signal);
      const base = await shelf.inOrder(conversationId, (place) => shelf.scan(place, own, 'base', signal));
      return await ledger.commit((tx) => {
        put(tx, conversationId, 'ready', { ...begunDetail, workspaceId, base: base.tree });
        const answer = store(tx, made);
        const closing = { ...about, begun: begun.receiptId, workspace: made.workspaceId, base: base.tree };
        const sentence = `Made a worktree at ${commit.slice(0, 10)} on ${branch}`;
        if (along === null) sign(tx, actor, conversationId, sentence, closing, 'ok');
        else {
          const taken = { uncommitted: String(along.taken), leftOut: nameLeftOut(along.leftOut) };
          sign(tx, actor, conversationId, `${sentence} ${sayAlong(along, false)}`, { ...closing, ...taken }, 'ok');
          tx.append(conversationId, noticeOf(along));
        }
        return answer;
      });
    } catch (error) {
      await unmake(conversationId, workspaceId).catch((cause: unknown) => {
        log('what was made of a worktree is removed at the next start', cause);
      });
      await ledger.commit((tx) => {
        tx.removeWorktree(conversationId);
        const sentence = 'The worktree could not be made; nothing of it is left.';
        sign(tx, actor, parentId, sentence, { ...about, begun: begun.receiptId }, 'failed');
      });
      throw error;
    }
  };

  /** In the conversation, where nobody has to look for it. */
  const noticeOf = (along: Along): EventDraft => {
    const sentence = `This worktree began ${sayAlong(along, true)}.`;
    return { type: 'notice', data: { level: 'info', code: 'taken_along', sentence: sentence.slice(0, 2000) } };
  };

  const unmake = async (conversationId: string, workspaceId: string | null): Promise<void> => {
    if (workspaceId !== null) await forget(workspaceId);
    await rm(homeOf(conversationId), { recursive: true, force: true });
    await checkpoints.forget(conversationId);
  };
  const forget = (workspaceId: string): Promise<void> =>
    workspaces.forget(workspaceId).catch((error: unknown) => {
      if (!(error instanceof Refusal) || error.code !== 'workspace_unknown') throw error; // it was forgotten before
    });

  // Bringing back

  interface Draft extends Drafted {
    readonly detail: Detail & { base: string };
    readonly brought: Brought;
    /** Of the worktree as it is, by path. */
    readonly child: Place;
  }
  const draft = async (
    parentPlace: Place,
    child: Place,
    { conversationId, ids }: Params<'worktree.plan'>,
    signal: AbortSignal,
  ): Promise<Draft> => {
    const detail = ready(conversationId);
    const root = workspaces.root(detail.parentWorkspaceId);
    const scan = await shelf.scan(parentPlace, root, parts.uuid(), signal);
    const now = await shelf.scan(child, workspaces.root(detail.workspaceId), parts.uuid(), signal);
    const { store } = child;
    const began = await store.differences(detail.base, now.tree, signal);
    const since = detail.brought === null ? began : await store.differences(detail.brought, now.tree, signal);
    const chosen = ids === undefined ? null : new Set(ids);
    const all = sidesOf(began, since, (path) => {
      const held = scan.entries.get(path);
      return held === undefined ? null : { mode: held.mode, oid: held.oid };
    });
    const sides = all.filter(({ path }) => chosen?.has(idOf(Buffer.from(path))) ?? true);
    const brought = await decide(run, sides, { store, parentStore: parentPlace.store }, signal);
    const links = oidsOf(brought.differences.filter(({ to }) => to?.mode === '120000'));
    const plan = planWrites({
      ...brought,
      sizes: await sizesOf(brought, store, signal),
      present: scan.entries,
      recorder: root.recorder(),
      links: await store.contents(links, signal),
      about: { conversationId, parent: detail.parentId, root: root.rootSha256 },
    });
    return { conversationId: detail.parentId, root, scan, plan, detail, brought, child };
  };
  /** The parent's before the child's, always: so that no two wait for each other. */
  const inBoth = <T>(conversationId: string, use: (parent: Place, child: Place) => Promise<T>): Promise<T> => {
    const { parentId } = ready(conversationId);
    if (ledger.read.conversation(parentId) === null) throw new Refusal('unknown_conversation');
    return shelf.inOrder(parentId, (parent) => shelf.inOrder(conversationId, (child) => use(parent, child)));
  };

  const plan: Worktrees['plan'] = async (params, signal): Promise<WritePlan> =>
    inBoth(params.conversationId, async (parent, child) =>
      show(parent, (await draft(parent, child, params, signal)).plan),
    );

  const bring: Worktrees['bring'] = async (actor, params, store) =>
    inBoth(params.conversationId, async (parent, child) => {
      const { conversationId } = params;
      const { signal } = new AbortController(); // begun, it ends by itself: each step has its own bounds
      const drafted = await draft(parent, child, params, signal);
      await carry(drafted, parent, signal);
      const { commit, branch } = drafted.detail;
      const act: Act = {
        ...bringing,
        about: { from: conversationId, commit, branch },
        of: { checkpointId: null, fromConversationId: conversationId },
        ended: (done) => remember(conversationId, drafted, done),
      };
      return checkpoints.apply(parent, actor, drafted, act, params.digest, store);
    });

  /** The content that would be written, into the store that it is written from. */
  const carry = async ({ plan, brought, child }: Draft, parent: Place, signal: AbortSignal): Promise<void> => {
    const needed = plan.steps.filter(({ to }) => to !== null);
    const sizes = await sizesOf(brought, child.store, signal);
    for (const batch of batches(needed, sizes)) {
      const oids = oidsOf(batch);
      const foreign = await child.store.contents(
        oids.filter((oid) => !brought.merged.has(oid)),
        signal,
      );
      const blobs = oids.flatMap((oid) => {
        const bytes = foreign.get(oid) ?? brought.merged.get(oid);
        return bytes === undefined ? [] : [{ oid, bytes }];
      });
      await parent.store.add(blobs, signal);
    }
  };

  /** What was brought is as the worktree has it: it is not brought again until it changes. */
  const remember = async (conversationId: string, drafted: Draft, done: Done): Promise<(tx: Tx) => void> => {
    const { child, detail } = drafted;
    const paths = [...done.written, ...done.removed];
    const held = child.scan?.entries;
    const changes = new Map(
      paths.map((path) => {
        const entry = held?.get(path);
        return [path, entry === undefined ? null : { mode: entry.mode, oid: entry.oid }] as const;
      }),
    );
    if (paths.length === 0) return () => undefined;
    const what = { base: detail.brought ?? detail.base, blobs: [], changes, keep: 'brought' };
    const brought = await child.store.write(what, new AbortController().signal);
    return (tx) => put(tx, conversationId, 'ready', { ...detail, brought });
  };

  // Removing

  const remove: Worktrees['remove'] = async (actor, { conversationId, force = false }, store) => {
    const detail = ready(conversationId);
    const unbrought = await left(conversationId, force);
    if (unbrought.length > 0 && !force)
      throw new Refusal('worktree_unsaved', {
        details: { paths: unbrought.slice(0, 100).join('\n'), count: unbrought.length },
      });
    const about = { conversation: conversationId, branch: detail.branch, unbrought: String(unbrought.length) };
    const begun = await ledger.commit((tx) => {
      const receipt = sign(tx, actor, conversationId, `Began to remove the worktree on ${detail.branch}`, about);
      put(tx, conversationId, 'removing', { ...detail, begun: receipt.receiptId });
      return receipt;
    });
    const end = (outcome: Outcome, sentence: string): Promise<Answer<'worktree.remove'>> =>
      ledger.commit((tx) => {
        put(tx, conversationId, outcome === 'ok' ? 'removed' : 'ready', detail);
        const { receiptId } = sign(tx, actor, conversationId, sentence, { ...about, begun: begun.receiptId }, outcome);
        const answer = { receiptId, unbrought: unbrought.slice(0, 500) };
        if (outcome === 'ok') store(tx, answer);
        return answer;
      });
    try {
      await forget(detail.workspaceId);
      await rm(homeOf(conversationId), { recursive: true, force: true });
    } catch (error) {
      await end('failed', 'The worktree could not be removed wholly.');
      throw error;
    }
    const lost = unbrought.length === 0 ? '' : ` ${unbrought.length} changed files were not brought back.`;
    return end('ok', `Removed the worktree on ${detail.branch}.${lost}`);
  };

  /** Paths that bringing back would still write. Where that cannot be told, only `force` goes on. */
  const left = async (conversationId: string, force: boolean): Promise<string[]> => {
    try {
      const { writes } = await plan({ conversationId }, AbortSignal.timeout(limits.worktreeMs));
      return writes.map(({ name }) => name.slice(0, limits.pathBytes));
    } catch (error) {
      if (!force) throw error;
      log('what a worktree has that was not brought back is not known', error);
      return [];
    }
  };

  // What others ask

  const find = (workspaceId: string): Detail | undefined =>
    ledger.read
      .worktrees()
      .filter(({ state }) => state === 'ready')
      .map(detailOf)
      .find((detail) => detail.workspaceId === workspaceId);

  const pairOf: Worktrees['pairOf'] = (root, conversationId, signal) => {
    const detail = ready(conversationId);
    if (detail.workspaceId !== root.workspaceId) throw new Refusal('unknown_conversation');
    return shelf.inOrder(conversationId, async (place): Promise<TreePair> => {
      const scan = await shelf.scan(place, root as Root, parts.uuid(), signal);
      place.lent.set(scan.keep, parts.now());
      return { gitDirectory: place.store.directory, from: detail.base, to: scan.tree };
    });
  };

  const endings = {
    making: 'The bridge stopped while a worktree was made. What was made of it is removed.',
    removing: 'The bridge stopped while a worktree was removed. The rest of it is removed now.',
  } as const;

  return {
    make,
    plan,
    bring,
    remove,
    pairOf,
    info: (conversationId) => {
      const row = ledger.read.worktree(conversationId);
      if (row === null || row.state === 'making') return undefined;
      const { parentWorkspaceId, parentWorkspacePath, branch, commit } = detailOf(row);
      return { parentWorkspaceId, parentWorkspacePath, branch, commit, removed: row.state !== 'ready' };
    },
    holds: (conversationId) =>
      ledger.read
        .worktrees()
        .filter(({ state }) => state !== 'removed')
        .some((row) => row.conversationId === conversationId || detailOf(row).parentId === conversationId),
    lends: (workspaceId) => find(workspaceId)?.objects ?? [],
    recover: (tx) => {
      for (const row of tx.worktrees()) {
        const { conversationId, state } = row;
        if (state !== 'making' && state !== 'removing') continue;
        const detail = detailOf(row);
        const about = { conversation: conversationId, begun: detail.begun ?? '', branch: detail.branch };
        const on = state === 'making' ? detail.parentId : conversationId;
        sign(tx, null, on, endings[state], about, state === 'making' ? 'failed' : 'uncertain');
        if (state === 'making') tx.removeWorktree(conversationId);
        else put(tx, conversationId, 'removed', { ...detail, begun: null });
        for (const workspace of tx.workspaces())
          if (workspace.path.startsWith(`${homeOf(conversationId)}/`))
            tx.putWorkspace({ ...workspace, forgotten: true });
      }
    },
    sweep: async () => {
      for (const conversationId of existsSync(parts.directory) ? await readdir(parts.directory) : [])
        if (ledger.read.worktree(conversationId)?.state !== 'ready')
          await rm(homeOf(conversationId), { recursive: true, force: true });
    },
  };
};
