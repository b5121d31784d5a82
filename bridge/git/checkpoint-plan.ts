/**
 * What putting files back would do, file by file, and the digest that binds an answer to exactly that (F-23). Pure but for
 * one look at each place. The rule not to break: what is refused here is never done, and everything done is in the digest.
 * Called by checkpoints.ts; of use to whoever else brings a tree into a folder.
 */
import { createHash } from 'node:crypto';
import { canonical } from '#protocol/json.ts';
import type { PlannedWrite, WritePlan } from '#protocol/methods/git.ts';
import type { FileState, Recorder } from '../files/contract.ts';
import type { Difference, Held } from './checkpoint-store.ts';
import { idOf, isSecretName, nameOf, pathOf } from './names.ts';

const none = Buffer.alloc(0);

/** `from` is the folder as it is, `to` what it would be. */
export interface PlanParts {
  readonly differences: readonly Difference[];
  readonly sizes: ReadonlyMap<string, number>;
  /** Paths of the folder as it is. */
  readonly present: { has(path: string): boolean };
  readonly recorder: Recorder;
  /** Content of the links that would be made, by its name. */
  readonly links: ReadonlyMap<string, Buffer>;
  /** Paths that something else changed, with the sentence that says so. */
  readonly movedOn: ReadonlyMap<string, string>;
  /** Paths the caller does not want done, with the reason. */
  readonly refused?: ReadonlyMap<string, string>;
  /** What the digest is of beside the writes: which restore this is. */
  readonly about: { readonly [name: string]: string };
}
export interface Plan extends WritePlan {
  /** What is done, in no order; `writes` without the refused. */
  readonly steps: readonly Difference[];
}

export const planWrites = (parts: PlanParts): Plan => {
  const removed = new Set(parts.differences.filter(({ to }) => to === null).map(({ path }) => path));
  const planned = parts.differences.map((difference) => ({ difference, write: plannedOf(difference, parts, removed) }));
  planned.sort((a, b) => (a.difference.path < b.difference.path ? -1 : 1));
  const done = planned.filter(({ write }) => write.refused === null);
  const digested = done.map(({ difference, write }) => ({
    id: write.id,
    now: digestible(difference.from),
    then: digestible(difference.to),
  }));
  const digest = createHash('sha256')
    .update(canonical({ ...parts.about, writes: digested }))
    .digest('hex');
  return { writes: planned.map(({ write }) => write), digest, steps: done.map(({ difference }) => difference) };
};

const digestible = (held: Held | null): { mode: string; oid: string } | null =>
  held === null ? null : { mode: held.mode, oid: held.oid };

const plannedOf = (difference: Difference, parts: PlanParts, removed: ReadonlySet<string>): PlannedWrite => {
  const { path, from, to } = difference;
  const bytes = Buffer.from(path);
  return {
    id: idOf(bytes),
    name: nameOf(bytes, none),
    path: pathOf(bytes, none),
    what: to === null ? 'remove' : from === null ? 'create' : 'write',
    bytes: to === null ? 0 : (parts.sizes.get(to.oid) ?? 0),
    movedOn: parts.movedOn.get(path) ?? null,
    refused: parts.refused?.get(path) ?? obstacle(difference, parts, removed),
  };
};

const obstacle = ({ path, from, to }: Difference, parts: PlanParts, removed: ReadonlySet<string>): string | null => {
  if (isSecretName(Buffer.from(path))) return 'It is kept secret.';
  if (to?.mode === '120000' && !parts.recorder.isSafeLink(path, parts.links.get(to.oid) ?? none))
    return 'It is a link that leads out of this folder, or to something secret.';
  if (from !== null || to === null) return null;
  for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
    const above = path.slice(0, slash);
    if (removed.has(above)) return null; // nothing is below it, and it goes first
    if (parts.present.has(above)) return 'A file stands where its folder was.';
  }
  return inTheWay(stateAt(parts.recorder, path));
};

const inTheWay = (state: FileState | null): string | null => {
  if (state === null) return null;
  if (state.kind === 'folder') return 'A folder stands in its place.';
  if (state.kind === 'secret') return 'Something that is kept secret stands in its place.';
  return 'Something that checkpoints leave out stands in its place.';
};

/** Null where there is nothing. @throws Refusal workspace_unavailable */
export const stateAt = (recorder: Recorder, path: string): FileState | null => {
  const slash = path.lastIndexOf('/');
  return recorder.states(slash === -1 ? '' : path.slice(0, slash), [path.slice(slash + 1)])[0] ?? null;
};
