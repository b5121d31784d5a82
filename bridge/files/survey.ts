/**
 * Walks over all that lies below the root, for a review (W-10): nearest first, by name, in slices. The rule not to break:
 * folders are opened by the walker and their entries only described; a link is never followed, a folder of another mount
 * or a private one is not entered. Called by root.ts.
 */
import { readlinkSync, readSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { asRefusal, type Beneath, type Directory, type Segments } from './beneath.ts';
import type { Surveyed } from './contract.ts';
import { display, namesOf, placeOf } from './list.ts';
import { steady } from './read.ts';
import { revisionOf } from './revision.ts';

type Visit = (entry: Surveyed) => boolean;
type Child = { readonly text: string; readonly type: Surveyed['type'] };

/** See `Root.survey`. */
export const survey = async (
  beneath: Beneath,
  visit: Visit,
  signal: AbortSignal,
): Promise<{ entries: number; truncated: boolean }> => {
  const queue: Segments[] = [[]];
  let [entries, truncated, sliceEnd] = [0, false, performance.now() + limits.searchSliceMs];
  for (const segments of queue) {
    let rest: readonly Child[] | null = null;
    do {
      if (performance.now() > sliceEnd) {
        await turn();
        sliceEnd = performance.now() + limits.searchSliceMs;
      }
      if (signal.aborted) throw new Refusal('cancelled');
      const step = stepInto(beneath, segments, rest, sliceEnd, visit);
      if (rest === null) entries += step.met;
      truncated ||= step.truncated;
      if (segments.length + 1 < limits.pathDepth) queue.push(...step.enter);
      else truncated ||= step.enter.length > 0;
      rest = step.rest;
      if (entries > limits.trustWalked) return { entries, truncated: true };
    } while (rest.length > 0);
  }
  return { entries, truncated };
};

interface Step {
  readonly met: number;
  readonly truncated: boolean;
  readonly enter: readonly Segments[];
  readonly rest: readonly Child[];
}

/** Opens one folder and visits its entries, or the `rest` of them, until the slice is over: no descriptor lives longer. */
const stepInto = (
  beneath: Beneath,
  segments: Segments,
  rest: readonly Child[] | null,
  sliceEnd: number,
  visit: Visit,
): Step => {
  try {
    return beneath.directory(segments, (directory) => {
      const all = rest === null ? childrenOf(directory) : { names: rest, truncated: false };
      const enter: Segments[] = [];
      let at = 0;
      while (at < all.names.length && (at === 0 || performance.now() < sliceEnd)) {
        const child = all.names[at];
        at += 1;
        if (child === undefined) break;
        const below = [...segments, child.text];
        if (visit(surveyed(beneath, directory, below, child)) && child.type === 'directory') enter.push(below);
      }
      return { met: all.names.length, truncated: all.truncated, enter, rest: all.names.slice(at) };
    });
  } catch (error) {
    // Gone, replaced by a link, private or another mount since it was named: not looked through, which is said.
    if (error instanceof Refusal && !error.code.startsWith('workspace_'))
      return { met: 0, truncated: error.code !== 'not_found', enter: [], rest: [] };
    throw error;
  }
};

const childrenOf = (directory: Directory): { names: Child[]; truncated: boolean } => {
  const { names, truncated } = namesOf(directory);
  // A name that no path can open: what it is cannot be said, so the review is not complete.
  const unnamed = names.some(({ text }) => text === null);
  const children = names.flatMap(({ text, type }) => (text === null ? [] : [{ text, type }]));
  children.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  return { names: children, truncated: truncated || unnamed };
};

const surveyed = (beneath: Beneath, directory: Directory, segments: Segments, { text, type }: Child): Surveyed => {
  const described = <T>(use: Parameters<typeof beneath.child<T>>[2]): T => {
    try {
      return beneath.child(directory, text, use);
    } catch (error) {
      throw asRefusal(error);
    }
  };
  return {
    path: segments.join('/'),
    type,
    link: () => {
      const target = readlinkSync(directory.at(text), { encoding: 'buffer' });
      return { target: display(target), place: placeOf(beneath, segments.slice(0, -1), target) };
    },
    revision: () => described(({ stat }) => revisionOf(stat)),
    head: (maxBytes) =>
      described((leaf) => {
        const { value, stat } = steady(leaf, (fd, size) => {
          const buffer = Buffer.allocUnsafe(Math.min(size, maxBytes));
          return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, 0));
        });
        return { bytes: value, size: Number(stat.size), revision: revisionOf(stat) };
      }),
  };
};
