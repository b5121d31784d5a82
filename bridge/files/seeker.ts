/**
 * The seeker: a thread that reads files through the walker and looks for a pattern in them (F-06). A pattern that never
 * comes to an end, or a search nobody wants any more, is ended by ending the thread. It holds a descriptor of the root of
 * its own, of the same directory as the bridge's. Started and spoken to only by grep.ts.
 */
import { isUtf8 } from 'node:buffer';
import { statSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { FoundLine } from '#protocol/methods/workspace.ts';
import { Beneath, isName, objectOf, type Segments } from './beneath.ts';
import { ignoreText, ignoring, includes } from './ignore.ts';
import { secretObjects } from './objects.ts';
import { linesWith, patternOf, type Wanted } from './pattern.ts';
import { readWhole } from './read.ts';
import { isSecretPath } from './secrets.ts';
import { levels } from './walk.ts';

export interface Order {
  readonly path: string;
  /** Of the bridge's root: another directory by now is not searched. */
  readonly object: string;
  readonly home: string;
  readonly privateDirectories: readonly string[];
  readonly wanted: Wanted;
  /** Files come by message instead of from a walk. */
  readonly named: boolean;
}
export type Stopped = 'lines' | 'files' | 'bytes' | 'slow';
export interface Told {
  readonly lines: readonly FoundLine[];
  readonly files: number;
  readonly bytes: number;
  readonly skipped: number;
  readonly ended: boolean;
  /** Nothing to do before more files are named: silence is then no sign of a pattern without an end. */
  readonly waits: boolean;
  readonly stopped: Stopped | null;
}
/** Paths relative to the root that may have what is looked for; `last` when there are no more. */
export interface Named {
  readonly paths: readonly string[];
  readonly last: boolean;
}

const tellMs = 50;
const order = workerData as Order;
const { expression, plain } = patternOf(order.wanted);
const isIncluded = includes(order.wanted.include);
const denied = new Set(
  order.privateDirectories.flatMap((directory) => {
    const stat = statSync(directory, { bigint: true, throwIfNoEntry: false });
    return stat === undefined ? [] : [objectOf(stat)];
  }),
);
const beneath = new Beneath(order.path, () => denied);
if (objectOf(beneath.stat) !== order.object) throw new Refusal('workspace_changed');

let lines: FoundLine[] = [];
let [found, files, bytes, skipped, toldAt] = [0, 0, 0, 0, performance.now()];
let stopped: Stopped | null = null;
let secrets: ((object: string) => boolean) | null = null;

const tell = (ended: boolean, waits = ended): void => {
  parentPort?.postMessage({ lines, files, bytes, skipped, ended, waits, stopped } satisfies Told);
  lines = [];
  toldAt = performance.now();
};
const tellSometimes = (): void => {
  if (performance.now() - toldAt > tellMs) tell(false);
};

/** Text of a file that may be shown, or null. */
const textOf = (segments: Segments): string | null => {
  if (isSecretPath(segments)) return null;
  try {
    return beneath.leaf(segments, (leaf) => {
      if (!leaf.stat.isFile()) return null;
      // Every other name of the object counts (T60).
      secrets ??= leaf.stat.nlink > 1n ? secretObjects(beneath, order.home, order.privateDirectories) : null;
      if (leaf.stat.nlink > 1n && secrets?.(objectOf(leaf.stat)) !== false) return null;
      const content = readWhole(leaf, limits.scanBytes).bytes;
      bytes += content.length;
      if (content.subarray(0, limits.sniffBytes).includes(0) || !isUtf8(content)) return null;
      return content.toString('utf8');
    });
  } catch (error) {
    // Gone, changing, too large, unreadable: counted, not searched.
    if (error instanceof Refusal) return null;
    throw error;
  }
};

/** False when the search is over. */
const seek = (segments: Segments): boolean => {
  if (isIncluded?.(segments) === false) return true;
  const text = textOf(segments);
  files += 1;
  if (text === null) skipped += 1;
  else {
    const path = segments.join('/');
    for (const line of linesWith(text, { expression, plain })) {
      lines.push({ path, ...line });
      found += 1;
      if (found === limits.grepLines) stopped = 'lines';
      if (stopped !== null) return false;
      tellSometimes();
    }
  }
  tellSometimes();
  if (bytes > limits.grepBytes) stopped = 'bytes';
  return stopped === null;
};

const walk = (): void => {
  for (const level of levels(beneath)) {
    for (const { text, type } of level.names)
      if (type === 'file' && !seek([...level.segments, text])) return tell(true);
    if (level.truncated) stopped = 'files';
    tellSometimes();
  }
  tell(true);
};

/** What a name list says is a proposal: the walker, the ignore files and the pattern here decide. */
const isNamed = ignoring((path) => ignoreText(beneath, path));
const isHidden = (segments: Segments): boolean =>
  segments.slice(0, -1).includes('node_modules') || isNamed(segments, false);

const listen = (): void => {
  parentPort?.on('message', ({ paths, last }: Named) => {
    for (const path of paths) {
      const segments = path.split('/');
      if (!segments.every(isName)) continue;
      if (!isHidden(segments) && !seek(segments)) {
        tell(true);
        return parentPort?.close();
      }
    }
    tell(last, true);
    if (last) parentPort?.close();
  });
};

// Kept now: a thread that is ended keeps nothing, and the next one would compile it all again.
flushCompileCache();
if (order.named) listen();
else walk();
