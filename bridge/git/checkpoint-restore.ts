/**
 * Does a plan: every file by the guarded writer, over exactly the state the plan was made of. The rule not to break: at
 * the first file that moved it stops, and what was done before is undone or named. Called by checkpoints.ts; of use to
 * whoever else brings a tree into a folder.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { EntryContent, Root } from '../files/contract.ts';
import type { CheckpointStore, Difference, Held } from './checkpoint-store.ts';

export interface Done {
  readonly written: readonly string[];
  readonly removed: readonly string[];
  /** Why it stopped; null when all of it was done. */
  readonly stopped: Refusal | null;
  /** The file it stopped at. */
  readonly at: string | null;
}

interface Step extends Difference {
  /** As the folder had it before; null where nothing was. */
  readonly revision: string | null;
}

/**
 * `revisions` are those of the scan that the plan was made of. After a stop `written` and `removed` are what could not be
 * undone. Never rejects for what it finds in the folder.
 */
export const applySteps = async (
  where: { readonly root: Root; readonly store: CheckpointStore },
  differences: readonly Difference[],
  revisions: (path: string) => string | null,
  signal: AbortSignal,
): Promise<Done> => {
  const steps = inOrder(differences).map((step): Step => ({ ...step, revision: revisions(step.path) }));
  const undo: Step[] = [];
  const { stopped, at } = await run(where, steps, undo, signal);
  if (stopped === null) return { ...pathsOf(steps), stopped, at };
  const undone: Step[] = [];
  // Not by the caller's signal: whoever stopped waiting still wants the folder whole.
  for (const step of inOrder(undo)) await run(where, [step], undone, AbortSignal.timeout(limits.gitMs));
  const back = new Set(undone.map(({ path }) => path));
  return { ...pathsOf(steps.filter(({ path }) => wasDone(undo, path) && !back.has(path))), stopped, at };
};

const wasDone = (undo: readonly Step[], path: string): boolean => undo.some((step) => step.path === path);

/** What goes, goes first: a folder may come where a file stood. */
const inOrder = <T extends Difference>(steps: readonly T[]): T[] => [
  ...steps.filter(({ to }) => to === null),
  ...steps.filter(({ to }) => to !== null),
];

const pathsOf = (steps: readonly Step[]): { written: string[]; removed: string[] } => ({
  written: steps.filter(({ to }) => to !== null).map(({ path }) => path),
  removed: steps.filter(({ to }) => to === null).map(({ path }) => path),
});

/** Each step done is put into `undo` as the step that takes it back. */
const run = async (
  { root, store }: { readonly root: Root; readonly store: CheckpointStore },
  steps: readonly Step[],
  undo: Step[],
  signal: AbortSignal,
): Promise<Pick<Done, 'stopped' | 'at'>> => {
  let at: string | null = null;
  try {
    const sizes = await store.sizes(oidsOf(steps), signal);
    for (const batch of batches(steps, sizes)) {
      const contents = await store.contents(oidsOf(batch), signal);
      for (const step of batch) {
        if (signal.aborted) throw new Refusal('cancelled');
        at = step.path;
        const revision = put(root, step, contents);
        undo.push({ path: step.path, from: step.to, to: step.from, revision });
      }
    }
    return { stopped: null, at: null };
  } catch (error) {
    return { stopped: error instanceof Refusal ? error : new Refusal('internal_error', { cause: error }), at };
  }
};

const put = (root: Root, { path, to, revision }: Step, contents: ReadonlyMap<string, Buffer>): string | null => {
  if (to !== null) return root.put(path, contentOf(to, contents), revision);
  if (revision === null) throw new Refusal('file_changed');
  root.remove(path, revision);
  return null;
};

const contentOf = (held: Held, contents: ReadonlyMap<string, Buffer>): EntryContent => {
  const bytes = contents.get(held.oid);
  if (bytes === undefined) throw new Refusal('checkpoint_unavailable');
  if (held.mode === '120000') return { kind: 'symlink', target: bytes };
  return { kind: 'file', bytes, executable: held.mode === '100755' };
};

const oidsOf = (steps: readonly Step[]): string[] => steps.flatMap(({ to }) => (to === null ? [] : [to.oid]));

/** Bounded in content, so that a large restore is never in memory as a whole. */
export function* batches<T extends Difference>(
  steps: readonly T[],
  sizes: ReadonlyMap<string, number>,
): Generator<T[]> {
  let batch: T[] = [];
  let bytes = 0;
  for (const step of steps) {
    const size = step.to === null ? 0 : (sizes.get(step.to.oid) ?? 0);
    if (bytes + size > limits.checkpointBatchBytes && batch.length > 0) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(step);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
