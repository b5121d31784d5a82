/**
 * What of a worktree comes back, three-way: what it began with, the parent's folder now, the worktree now. The rule not to
 * break: what both changed differently is never written over; it is merged without a conflict, or refused. Called by
 * worktrees.ts.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '#protocol/limits.ts';
import { oidOf, type CheckpointStore, type Difference, type Held } from './checkpoint-store.ts';
import { oidsOf } from './checkpoints.ts';
import type { RunGit } from './contract.ts';

type Side = Held | null;
export interface Sides {
  readonly path: string;
  readonly base: Side;
  readonly parent: Side;
  readonly child: Side;
}
export interface Brought {
  readonly differences: readonly Difference[];
  readonly refused: ReadonlyMap<string, string>;
  readonly movedOn: ReadonlyMap<string, string>;
  /** Content that neither side has. */
  readonly merged: ReadonlyMap<string, Buffer>;
}

const isSame = (a: Side, b: Side): boolean => a?.oid === b?.oid && a?.mode === b?.mode;
const isFile = (side: Side): side is Held => side !== null && side.mode !== '120000';

/**
 * `began` are differences from what the worktree began with to what it is, `since` those from what was brought before.
 * What was brought and then put back in the parent comes again; what was brought and is unchanged here does not.
 */
export const sidesOf = (
  began: readonly Difference[],
  since: readonly Difference[],
  parentHas: (path: string) => Side,
): Sides[] => {
  const [fromBegin, fromBrought] = [began, since].map((list) => new Map(list.map((each) => [each.path, each])));
  return [...new Set([...began, ...since].map(({ path }) => path))].map((path) => {
    const [first, second] = [fromBegin?.get(path), fromBrought?.get(path)];
    const child = (first ?? second)?.to ?? null;
    const parent = parentHas(path);
    const original = first === undefined ? child : first.from;
    const brought = second === undefined ? child : second.from;
    return { path, base: isSame(parent, original) ? original : brought, parent, child };
  });
};

/** `store` is the worktree's, `parentStore` has what `parent` names. */
export const decide = async (
  run: RunGit,
  sides: readonly Sides[],
  { store, parentStore }: { readonly store: CheckpointStore; readonly parentStore: CheckpointStore },
  signal: AbortSignal,
): Promise<Brought> => {
  const differences: Difference[] = [];
  const [refused, movedOn, merged] = [new Map<string, string>(), new Map<string, string>(), new Map<string, Buffer>()];
  let merges = 0;
  for (const { path, base, parent, child } of sides) {
    if (isSame(child, base) || isSame(child, parent)) continue;
    const difference = { path, from: parent, to: child };
    if (isSame(parent, base)) {
      differences.push(difference);
      continue;
    }
    movedOn.set(path, 'Changed in the folder it comes back to as well.');
    if (isFile(base) && isFile(parent) && isFile(child) && (merges += 1) <= limits.worktreeMerges) {
      const bytes = await mergeOf(run, { base, parent, child }, { store, parentStore }, signal);
      if (bytes !== null) {
        const to = { oid: oidOf(bytes), mode: child.mode === base.mode ? parent.mode : child.mode };
        if (isSame(to, parent)) {
          movedOn.delete(path);
          continue;
        }
        merged.set(to.oid, bytes);
        differences.push({ ...difference, to });
        continue;
      }
    }
    refused.set(path, conflict(parent, child));
    differences.push(difference);
  }
  return { differences, refused, movedOn, merged };
};

const conflict = (parent: Side, child: Side): string => {
  if (parent === null) return 'Removed in the folder it comes back to, and changed here.';
  if (child === null) return 'Changed in the folder it comes back to, and removed here.';
  return 'Both changed the same lines, or something that is not merged line by line.';
};

/** Both changes in one text; null where they meet, or where it is no text. */
const mergeOf = async (
  run: RunGit,
  sides: { readonly base: Held; readonly parent: Held; readonly child: Held },
  { store, parentStore }: { readonly store: CheckpointStore; readonly parentStore: CheckpointStore },
  signal: AbortSignal,
): Promise<Buffer | null> => {
  const own = [sides.base.oid, sides.child.oid];
  const sizes = [...(await store.sizes(own, signal)).values()];
  const parentSizes = [...(await parentStore.sizes([sides.parent.oid], signal)).values()];
  if ([...sizes, ...parentSizes].some((size) => size > limits.worktreeMergeBytes)) return null;
  const here = await store.contents(own, signal);
  const there = await parentStore.contents([sides.parent.oid], signal);
  const texts = [there.get(sides.parent.oid), here.get(sides.base.oid), here.get(sides.child.oid)];
  if (texts.some((bytes) => bytes === undefined || bytes.includes(0))) return null;
  await mkdir(join(store.directory, 'merges'), { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(store.directory, 'merges', 'm-'));
  try {
    const files = await Promise.all(
      texts.map(async (bytes, at) => {
        const file = join(folder, String(at));
        await writeFile(file, bytes ?? '');
        return file;
      }),
    );
    // Ends with the number of conflicts.
    const codes = Array.from({ length: 128 }, (_, code) => code);
    const args = ['merge-file', '-p', '-q', ...files];
    const { code, stdout } = await run({ gitDirectory: store.directory, workTree: null, args, codes, signal });
    return code === 0 ? stdout : null;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/** Sizes of all that would be written. */
export const sizesOf = async (
  { differences, merged }: Brought,
  store: CheckpointStore,
  signal: AbortSignal,
): Promise<Map<string, number>> => {
  const foreign = oidsOf(differences).filter((oid) => !merged.has(oid));
  const sizes = await store.sizes(foreign, signal);
  for (const [oid, bytes] of merged) sizes.set(oid, bytes.length);
  return sizes;
};
