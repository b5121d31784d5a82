/**
 * The checkpoints of the files (F-23): recorded around each turn, compared, and put back by a signed operation that can be
 * undone. The rule not to break: a row in the log is written after the tree it names is stored whole, so a checkpoint
 * exists wholly or not. Called by conversations (turns) and the command table.
 */
import { Refusal } from '#protocol/errors.ts';
import type { EventData, EventDraft, Outcome } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { Answer, Params } from '#protocol/methods.ts';
import type { CheckpointInfo, WritePlan } from '#protocol/methods/git.ts';
import type { Actor } from '#protocol/actor.ts';
import type { Seal } from '../approvals/contract.ts';
import type { Root } from '../files/contract.ts';
import type { FileCheckpointRow, ReceiptRow, Tx } from '../ledger/contract.ts';
import { planWrites, type Plan } from './checkpoint-plan.ts';
import { applySteps, type Done } from './checkpoint-restore.ts';
import type { Scan } from './checkpoint-scan.ts';
import { Shelf, type Place, type ShelfParts } from './checkpoint-shelf.ts';
import type { Difference } from './checkpoint-store.ts';
import { absence, moved, naming, plural, sentenceOf, stoppedAt } from './checkpoint-words.ts';
import type { Checkpoints, PairOf, TreePair } from './contract.ts';
import { idOf } from './names.ts';

export interface CheckpointParts extends ShelfParts {
  readonly seal: Pick<Seal, 'sign'>;
  /** @throws Refusal workspace_* */
  readonly root: (workspaceId: string) => Root;
  readonly uuid: () => string;
}
export interface CheckpointRoom extends Checkpoints {
  /** At boot, with the rest of recovery: a restore that did not end is `uncertain` (D-32). */
  recover(tx: Tx): void;
  /** At boot: stores of conversations that were deleted just before the end. */
  sweep(): Promise<void>;
  /** Waits for what is under way. */
  close(): Promise<void>;
  readonly shelf: Shelf;
  /**
   * Does a plan of a folder, inside `shelf.inOrder` of its conversation: a checkpoint first, signed before and after, one
   * `restored` event. @throws Refusal digest_mismatch, worktree_moved, not_found
   */
  apply(
    place: Place,
    actor: Actor,
    drafted: Drafted,
    act: Act,
    digest: string,
    store: (tx: Tx, answer: Answer<'checkpoint.restore'>) => void,
  ): Promise<Answer<'checkpoint.restore'>>;
}

/** What would be done in whose folder, of the files as `scan` found them. */
export interface Drafted {
  readonly conversationId: string;
  readonly root: Root;
  readonly scan: Scan;
  readonly plan: Plan;
}

/** How an act speaks of itself in its receipts and its event. */
export interface Act {
  readonly kind: 'restore' | 'worktree';
  readonly words: {
    readonly began: (files: string) => string;
    readonly done: (files: string, names: string) => string;
    readonly stopped: string;
    readonly nothing: string;
  };
  readonly about: Readonly<Record<string, string>>;
  readonly of: Pick<EventData<'restored'>, 'checkpointId' | 'fromConversationId'>;
  /** What else is kept with the end of it, also of one that stopped. */
  readonly ended?: (done: Done) => Promise<(tx: Tx) => void>;
}

const restoring: Pick<Act, 'kind' | 'words'> = {
  kind: 'restore',
  words: {
    began: (files) => `Began to put ${files} back`,
    done: (files, names) => `Put ${files} back: ${names}.`,
    stopped: 'Putting files back stopped',
    nothing: 'There is nothing to put back: the files are as they were.',
  },
};

const undoing: typeof restoring.words = {
  ...restoring.words,
  done: (_files, names) => `Undid putting files back: ${names}.`,
};

const shownPlans = 8;

const infoOf = (row: FileCheckpointRow): CheckpointInfo => {
  const { checkpointId, conversationId, turnId, why, at, files, bytes, skipped, pruned } = row;
  const turn = turnId === null ? {} : { turnId };
  return { checkpointId, conversationId, ...turn, why, at, files, bytes, skipped, pruned };
};

export const createCheckpoints = (parts: CheckpointParts): CheckpointRoom => {
  const { ledger, seal, now, uuid, log } = parts;
  const shelf = new Shelf(parts);

  const rowsOf = (conversationId: string): FileCheckpointRow[] => {
    if (ledger.read.conversation(conversationId) === null) throw new Refusal('unknown_conversation');
    return ledger.read.fileCheckpoints(conversationId);
  };
  const rowOf = (conversationId: string, checkpointId: string): FileCheckpointRow => {
    const row = rowsOf(conversationId).find((each) => each.checkpointId === checkpointId);
    if (row === undefined || row.pruned) throw new Refusal('checkpoint_unavailable');
    return row;
  };
  const rootOf = (conversationId: string): Root => {
    const row = ledger.read.conversation(conversationId);
    if (row === null) throw new Refusal('unknown_conversation');
    return parts.root(row.workspaceId);
  };

  const put = (
    tx: Tx,
    scan: Scan,
    about: Pick<FileCheckpointRow, 'checkpointId' | 'conversationId' | 'turnId' | 'why'>,
  ) => {
    const { checkpointId, conversationId, turnId, why } = about;
    const counts = { files: scan.entries.size, bytes: scan.bytes, skipped: scan.skipped };
    const row: FileCheckpointRow = {
      ...about,
      ...counts,
      at: now(),
      tree: scan.tree,
      store: scan.keep,
      afterTree: null,
      restoring: null,
      pruned: false,
    };
    tx.putFileCheckpoint(row);
    const turn = turnId === null ? {} : { turnId };
    tx.append(conversationId, { type: 'checkpoint', data: { checkpointId, why, ...counts }, ...turn });
    return row;
  };

  const record: Checkpoints['record'] = async (conversationId, why, turnId, signal) => {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(limits.checkpointMs)]);
    const work = shelf.inOrder(conversationId, async (place) => {
      const checkpointId = uuid();
      const scan = await shelf.scan(place, rootOf(conversationId), checkpointId, bounded);
      if (bounded.aborted) throw new Refusal('cancelled');
      const about = { checkpointId, conversationId, turnId, why };
      const row = await ledger.commit((tx) => put(tx, scan, about));
      place.absent = null;
      return infoOf(row);
    });
    try {
      return await orAborted(work, bounded);
    } catch (error) {
      if (signal.aborted) return null;
      if (bounded.aborted) readAhead(conversationId);
      await say(conversationId, turnId, error);
      return null;
    }
  };

  /** What took too long once would each time: the files are read beside the turn, so that the next one finds them read. */
  const readAhead = (conversationId: string): void => {
    const scan = (place: Place): Promise<Scan> =>
      shelf.scan(place, rootOf(conversationId), uuid(), AbortSignal.timeout(limits.checkpointScanMs));
    shelf.inOrder(conversationId, scan).catch((error: unknown) => {
      log('the files were not read beside the turn', error);
    });
  };

  /** Said once until a checkpoint is made again, or for another reason. */
  const say = async (conversationId: string, turnId: string | null, error: unknown): Promise<void> => {
    const place = shelf.place(conversationId);
    const refusal = error instanceof Refusal ? error : new Refusal('internal_error', { cause: error });
    log(`no checkpoint: ${refusal.code}`, refusal.cause ?? null);
    const sentence = absence(refusal);
    if (place.absent === sentence) return;
    place.absent = sentence;
    const turn = turnId === null ? {} : { turnId };
    const notice: EventDraft = { type: 'notice', data: { level: 'info', code: 'no_checkpoint', sentence }, ...turn };
    await ledger
      .commit((tx) => void tx.append(conversationId, notice))
      .catch((cause: unknown) => {
        log('the reason for no checkpoint was not stored', cause); // the turn goes on, and ends by what it finds
      });
  };

  /** What changed after the state that a restore is about was left, with the words for it. */
  const movedOn = async (
    place: Place,
    row: FileCheckpointRow,
    current: string,
    signal: AbortSignal,
  ): Promise<Map<string, string>> => {
    const rows = ledger.read.fileCheckpoints(row.conversationId).filter((each) => !each.pruned);
    const after = rows.find(({ turnId, why }) => why === 'after_turn' && turnId !== null && turnId === row.turnId);
    const [tree, words] =
      row.why === 'before_restore'
        ? [row.afterTree, 'Changed after the files were put back.']
        : row.why === 'before_turn' && after !== undefined
          ? [after.tree, 'Changed after this turn ended.']
          : [rows.at(-1)?.tree ?? null, 'Changed since the files were last recorded.'];
    const changed = tree === null ? [] : await place.store.differences(tree, current, signal);
    return new Map(changed.map(({ path }) => [path, words]));
  };

  const draft = async (place: Place, params: Params<'checkpoint.plan'>, signal: AbortSignal): Promise<Drafted> => {
    const { conversationId, checkpointId, ids } = params;
    const row = rowOf(conversationId, checkpointId);
    const root = rootOf(conversationId);
    const scan = await shelf.scan(place, root, uuid(), signal);
    const chosen = ids === undefined ? null : new Set(ids);
    const all = await place.store.differences(scan.tree, row.tree, signal);
    const differences = all.filter(({ path }) => chosen?.has(idOf(Buffer.from(path))) ?? true);
    const plan = planWrites({
      differences,
      sizes: await place.store.sizes(oidsOf(differences), signal),
      present: scan.entries,
      recorder: root.recorder(),
      links: await place.store.contents(oidsOf(differences.filter(({ to }) => to?.mode === '120000')), signal),
      movedOn: await movedOn(place, row, scan.tree, signal),
      about: { conversationId, checkpointId, root: root.rootSha256 },
    });
    return { conversationId, root, scan, plan };
  };

  const plan: Checkpoints['plan'] = (params, signal) =>
    shelf.inOrder(params.conversationId, async (place) => {
      const { plan } = await draft(place, params, signal);
      return show(place, plan);
    });

  const restore: Checkpoints['restore'] = (actor, params, store) =>
    shelf.inOrder(params.conversationId, async (place) => {
      const { signal } = new AbortController(); // begun, it ends by itself: each step has its own bounds
      const drafted = await draft(place, params, signal);
      const { checkpointId, conversationId, digest } = params;
      const { words } = rowOf(conversationId, checkpointId).why === 'before_restore' ? { words: undoing } : restoring;
      const act: Act = { ...restoring, words, about: { checkpoint: checkpointId }, of: { checkpointId } };
      return apply(place, actor, drafted, act, digest, store);
    });

  const apply: CheckpointRoom['apply'] = async (place, actor, drafted, act, digest, store) => {
    const { signal } = new AbortController();
    const { root, scan, plan } = drafted;
    if (plan.digest !== digest) throw moved(place.shown.get(digest), plan);
    if (plan.steps.length === 0) throw new Refusal('not_found', { message: act.words.nothing });
    const { undo, begun } = await begin(actor, drafted, act);
    const revisions = (path: string): string | null => scan.entries.get(path)?.revision ?? null;
    const done = await applySteps({ root, store: place.store }, plan.steps, revisions, signal);
    const after = await shelf.scan(place, root, undo.checkpointId, signal).catch((error: unknown) => {
      log('no scan after files were put into a folder', error);
      return null;
    });
    const kept = await act.ended?.(done);
    const ended = { undo, begun, done, afterTree: after?.tree ?? null };
    const answer = await ledger.commit((tx) => {
      kept?.(tx);
      return end(tx, actor, act, ended, store);
    });
    if (done.stopped !== null) throw stoppedAt(done);
    return answer;
  };

  /** The undo checkpoint and the first receipt, in one transaction: from here on it has begun. */
  const begin = (
    actor: Actor,
    { conversationId, root, scan, plan }: Drafted,
    act: Act,
  ): Promise<{ undo: FileCheckpointRow; begun: ReceiptRow }> =>
    ledger.commit((tx) => {
      const about = { checkpointId: uuid(), conversationId, turnId: null, why: 'before_restore' } as const;
      const undo = put(tx, scan, about);
      const counts = (what: string): number =>
        plan.writes.filter((write) => write.refused === null && write.what === what).length;
      const begun = sign(tx, actor, act.kind, conversationId, act.words.began(plural(plan.steps.length)), {
        phase: 'begun',
        conversation: conversationId,
        workspace: root.workspaceId,
        rootSha256: root.rootSha256,
        ...act.about,
        undo: undo.checkpointId,
        plan: plan.digest,
        ...{ write: counts('write'), create: counts('create'), remove: counts('remove') },
      });
      tx.changeFileCheckpoint(undo.checkpointId, { restoring: begun.receiptId });
      return { undo, begun };
    });

  const end = (
    tx: Tx,
    actor: Actor,
    act: Act,
    ended: { undo: FileCheckpointRow; begun: ReceiptRow; done: Done; afterTree: string | null },
    store: (tx: Tx, answer: Answer<'checkpoint.restore'>) => void,
  ): Answer<'checkpoint.restore'> => {
    const { undo, begun, done, afterTree } = ended;
    const outcome: Outcome = done.stopped === null ? 'ok' : 'failed';
    const counts = { written: done.written.length, removed: done.removed.length };
    const paths = [...done.written, ...done.removed];
    const sentence =
      outcome === 'ok' ? act.words.done(plural(paths.length), naming(paths)) : sentenceOf(done, act.words.stopped);
    const closing = { begun: begun.receiptId, outcome, sentence, ...counts };
    const receipt = close(tx, actor, act.kind, undo.conversationId, closing);
    const restored = { ...act.of, undoCheckpointId: undo.checkpointId, ...counts, outcome };
    tx.append(undo.conversationId, {
      type: 'restored',
      data: { ...restored, paths: paths.slice(0, 500), receiptId: receipt.receiptId, sentence },
    });
    tx.changeFileCheckpoint(undo.checkpointId, { restoring: null, afterTree });
    const answer = { receiptId: receipt.receiptId, ...counts, undoCheckpointId: undo.checkpointId };
    if (outcome === 'ok') store(tx, answer);
    return answer;
  };

  const close = (
    tx: Tx,
    actor: Actor | null,
    kind: Act['kind'],
    conversationId: string,
    { sentence, ...ended }: { begun: string; outcome: Outcome; sentence: string; written: number; removed: number },
  ): ReceiptRow => sign(tx, actor, kind, conversationId, sentence.slice(0, 500), { phase: 'ended', ...ended });

  const sign = (
    tx: Tx,
    actor: Actor | null,
    kind: Act['kind'],
    conversationId: string,
    sentence: string,
    detail: Readonly<Record<string, string | number>>,
  ): ReceiptRow => {
    const receipt = seal.sign(tx, { kind, conversationId, actor, detail: { kind, ...detail }, sentence });
    const { receiptId, seq: receiptSeq } = receipt;
    tx.append(conversationId, { type: 'receipt', data: { receiptId, receiptSeq, kind, sentence } });
    return receipt;
  };

  const recover: CheckpointRoom['recover'] = (tx) => {
    for (const row of tx.openRestores()) {
      const { conversationId, checkpointId, restoring } = row;
      const sentence =
        'The bridge stopped while files were put back. Some may be back and others not: look at what changed.';
      const none = { written: 0, removed: 0 };
      const ended = { begun: restoring ?? '', outcome: 'uncertain', sentence, ...none } as const;
      const kind = tx.receipt(ended.begun)?.kind === 'worktree' ? 'worktree' : 'restore';
      const receipt = close(tx, null, kind, conversationId, ended);
      const data = { checkpointId: null, undoCheckpointId: checkpointId, ...none, outcome: 'uncertain' } as const;
      tx.append(conversationId, {
        type: 'restored',
        data: { ...data, paths: [], receiptId: receipt.receiptId, sentence },
      });
      tx.changeFileCheckpoint(checkpointId, { restoring: null });
    }
  };

  // Comparing

  const pairOf: PairOf = (root, of, signal) => {
    if (of.kind === 'worktree') return Promise.reject(new Refusal('checkpoint_unavailable'));
    const { conversationId } = of;
    const conversation = ledger.read.conversation(conversationId);
    if (conversation?.workspaceId !== root.workspaceId) return Promise.reject(new Refusal('unknown_conversation'));
    return shelf.inOrder(conversationId, async (place): Promise<TreePair> => {
      const [from, to] = of.kind === 'turn' ? turnEnds(of) : checkpointEnds(of);
      const gitDirectory = place.store.directory;
      if (to !== null) return { gitDirectory, from: from.tree, to: to.tree };
      const scan = await shelf.scan(place, root, uuid(), signal);
      place.lent.set(scan.keep, now());
      return { gitDirectory, from: from.tree, to: scan.tree };
    });
  };
  const checkpointEnds = (of: { conversationId: string; from: string; to: string | null }) =>
    [rowOf(of.conversationId, of.from), of.to === null ? null : rowOf(of.conversationId, of.to)] as const;
  const turnEnds = ({ conversationId, turnId }: { conversationId: string; turnId: string }) => {
    const rows = rowsOf(conversationId);
    const began = rows.findIndex((row) => row.turnId === turnId && row.why === 'before_turn');
    const from = rows[began];
    if (from === undefined || from.pruned) throw new Refusal('checkpoint_unavailable');
    // A turn that a crash ended has none after it: the next state that is known stands for it.
    const to = rows.find((row) => row.turnId === turnId && row.why === 'after_turn') ?? rows[began + 1] ?? null;
    if (to?.pruned === true) throw new Refusal('checkpoint_unavailable');
    return [from, to] as const;
  };

  return {
    record,
    list: (conversationId) => ({
      checkpoints: rowsOf(conversationId).reverse().slice(0, limits.checkpoints).map(infoOf),
      absent: shelf.place(conversationId).absent,
    }),
    plan,
    restore,
    pairOf,
    changedPaths: (conversationId, turnId) =>
      shelf.inOrder(conversationId, async (place) => {
        const ends = rowsOf(conversationId).filter((row) => row.turnId === turnId);
        const [from, to] = (['before_turn', 'after_turn'] as const).map((end) => ends.find(({ why }) => why === end));
        if (from === undefined || to === undefined) return [];
        const differences = await place.store.differences(from.tree, to.tree, new AbortController().signal);
        return differences.map(({ path }) => path);
      }),
    forget: (conversationId) => shelf.forget(conversationId),
    recover,
    shelf,
    apply,
    sweep: () => shelf.sweep(),
    close: () => shelf.close(),
  };
};

/** Kept for a while, to say what moved since. */
export const show = (place: Place, plan: Plan): WritePlan => {
  place.shown.set(plan.digest, plan);
  for (const digest of [...place.shown.keys()].slice(0, -shownPlans)) place.shown.delete(digest);
  return { writes: plan.writes, digest: plan.digest };
};

export const oidsOf = (differences: readonly Difference[]): string[] =>
  differences.flatMap(({ to }) => (to === null ? [] : [to.oid]));

const orAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const stop = (): void => reject(new Refusal('cancelled'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', stop);
    });
  });
