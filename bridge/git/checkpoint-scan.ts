/**
 * The files of a workspace as they are now, as a tree in a conversation's store. What is unchanged since the last scan
 * costs one lstat; the rest is read by the guarded walker. The rule not to break: git names the files, the files room
 * alone looks at them and reads them. Called by checkpoints.ts, one scan of a store at a time.
 */
import { isUtf8 } from 'node:buffer';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { z } from '#protocol/schema.ts';
import type { FileState, Recorder, Root } from '../files/contract.ts';
import { oidOf, type Blob, type CheckpointStore, type Held, type Mode } from './checkpoint-store.ts';
import { pathOf } from './names.ts';

export interface Entry extends Held {
  readonly revision: string;
  readonly bytes: number;
  /** When it was looked at, ms: a change soon before may hide the next one (`limits.checkpointSettleMs`). */
  readonly seenAt: number;
}
export interface Scan {
  /** Of the folder that was scanned; another one begins anew. */
  readonly rootSha256: string;
  readonly tree: string;
  /** What keeps the tree in the store. */
  readonly keep: string;
  readonly bytes: number;
  readonly skipped: number;
  readonly entries: ReadonlyMap<string, Entry>;
}

/**
 * `previous` is what the last scan of this store gave; `keep` names a new tree, where one is made.
 * @throws Refusal checkpoint_too_large, cancelled, workspace_*, git_*
 */
export const scanFiles = async (
  where: {
    readonly store: CheckpointStore;
    readonly root: Root;
    readonly previous: Scan | null;
    readonly keep: string;
  },
  now: () => number,
  signal: AbortSignal,
): Promise<Scan> => {
  const { store, root, keep } = where;
  const previous = where.previous?.rootSha256 === root.rootSha256 ? where.previous : null;
  const listed = await listFiles(store, root, signal);
  const reading = new Reading(store, root.recorder(), previous?.entries ?? new Map(), signal);
  let skipped = listed.skipped;
  for (const [folder, names] of byFolder(listed.paths, previous)) {
    await reading.pause();
    const states = reading.recorder.states(folder, names);
    const seenAt = now();
    for (const [index, name] of names.entries()) {
      const path = folder === '' ? name : `${folder}/${name}`;
      const isHeld = await reading.take(path, states[index] ?? null, seenAt);
      // What was held before and is gone is no longer part of it; what is listed and not held was left out.
      if (!isHeld && (states[index] ?? null) !== null && listed.paths.has(path)) skipped += 1;
    }
  }
  const { entries, bytes } = reading;
  const changes = changesOf(previous?.entries ?? new Map(), entries);
  const base = { rootSha256: root.rootSha256, bytes, skipped, entries };
  if (previous !== null && changes.size === 0) return { ...base, tree: previous.tree, keep: previous.keep };
  const tree = await store.write({ base: previous?.tree ?? null, blobs: reading.rest(), changes, keep }, signal);
  return { ...base, tree, keep };
};

const listFiles = async (
  store: CheckpointStore,
  root: Root,
  signal: AbortSignal,
): Promise<{ paths: Set<string>; skipped: number }> => {
  const paths = new Set<string>();
  let skipped = 0;
  // A repository within is named only: it is listed by itself, by its own rules.
  const folders = [''];
  for (const folder of folders) {
    const listed = await store.list(folder === '' ? root.path : join(root.path, folder), signal);
    for (const name of split(listed)) {
      const isFolder = name.at(-1) === 0x2f;
      const path = pathOf(
        Buffer.concat([Buffer.from(folder), isFolder ? name.subarray(0, -1) : name]),
        Buffer.alloc(0),
      );
      if (path === null) skipped += 1;
      else if (isFolder) folders.push(`${path}/`);
      else paths.add(path);
      if (paths.size > limits.checkpointFiles || folders.length > limits.checkpointRepositories)
        throw new Refusal('checkpoint_too_large');
    }
  }
  return { paths, skipped };
};

function* split(listed: Buffer): Generator<Buffer> {
  for (let at = 0; at < listed.length;) {
    const end = listed.indexOf(0, at);
    if (end === -1) return;
    yield listed.subarray(at, end);
    at = end + 1;
  }
}

/** Names by folder, of what is listed and of what was held before: an ignore line made since then removes no file. */
const byFolder = (listed: ReadonlySet<string>, previous: Scan | null): Map<string, string[]> => {
  const folders = new Map<string, string[]>();
  for (const path of new Set([...listed, ...(previous?.entries.keys() ?? [])])) {
    const slash = path.lastIndexOf('/');
    const folder = slash === -1 ? '' : path.slice(0, slash);
    const names = folders.get(folder);
    if (names === undefined) folders.set(folder, [path.slice(slash + 1)]);
    else names.push(path.slice(slash + 1));
  }
  return folders;
};

const changesOf = (before: ReadonlyMap<string, Entry>, after: ReadonlyMap<string, Entry>): Map<string, Held | null> => {
  const changes = new Map<string, Held | null>();
  for (const path of before.keys()) if (!after.has(path)) changes.set(path, null);
  for (const [path, { mode, oid }] of after) {
    const was = before.get(path);
    if (was?.oid !== oid || was.mode !== mode) changes.set(path, { mode, oid });
  }
  return changes;
};

/** The entries of one scan as they come in, and the content that is not stored yet. */
class Reading {
  readonly recorder: Recorder;
  readonly entries = new Map<string, Entry>();
  bytes = 0;
  readonly #store: CheckpointStore;
  readonly #before: ReadonlyMap<string, Entry>;
  readonly #signal: AbortSignal;
  #blobs: Blob[] = [];
  #pending = 0;
  #sliceEnd = 0;

  constructor(store: CheckpointStore, recorder: Recorder, before: ReadonlyMap<string, Entry>, signal: AbortSignal) {
    this.#store = store;
    this.recorder = recorder;
    this.#before = before;
    this.#signal = signal;
  }

  /** Lets others run between slices, so that a big folder delays nobody. */
  async pause(): Promise<void> {
    if (performance.now() < this.#sliceEnd) return;
    await turn();
    if (this.#signal.aborted) throw new Refusal('cancelled');
    this.#sliceEnd = performance.now() + limits.searchSliceMs;
  }

  /** False where it is left out. */
  async take(path: string, state: FileState | null, seenAt: number): Promise<boolean> {
    if (state?.kind !== 'file' && state?.kind !== 'symlink') return false;
    const mode: Mode = state.kind === 'symlink' ? '120000' : state.executable ? '100755' : '100644';
    const before = this.#before.get(path);
    const isSettled = before !== undefined && state.changedAt + limits.checkpointSettleMs < before.seenAt;
    if (isSettled && before.revision === state.revision && before.mode === mode) return this.#hold(path, before);
    const read = state.kind === 'symlink' ? { bytes: state.target, revision: state.revision } : this.#read(path, state);
    if (read === null) return false;
    const oid = oidOf(read.bytes);
    this.#hold(path, { mode, oid, revision: read.revision, bytes: read.bytes.length, seenAt });
    if (before?.oid !== oid) await this.#add({ oid, bytes: read.bytes });
    return true;
  }

  #hold(path: string, entry: Entry): true {
    this.entries.set(path, entry);
    this.bytes += entry.bytes;
    if (this.bytes > limits.checkpointBytes) throw new Refusal('checkpoint_too_large');
    return true;
  }

  #read(path: string, state: { readonly bytes: number }): ReturnType<Recorder['read']> | null {
    if (state.bytes > limits.checkpointFileBytes) return null;
    try {
      return this.recorder.read(path, limits.checkpointFileBytes);
    } catch (error) {
      // Unreadable, secret under another name, or never still: left out, and counted.
      if (error instanceof Refusal && !error.code.startsWith('workspace_')) return null;
      throw error;
    }
  }

  async #add(blob: Blob): Promise<void> {
    this.#blobs.push(blob);
    this.#pending += blob.bytes.length;
    await this.pause();
    if (this.#pending < limits.checkpointBatchBytes) return;
    await this.#store.add(this.rest(), this.#signal);
  }

  /** What is left to store; handed out once. */
  rest(): Blob[] {
    const blobs = this.#blobs;
    this.#blobs = [];
    this.#pending = 0;
    return blobs;
  }
}

const stored = z.object({
  version: z.literal(1),
  rootSha256: z.string(),
  tree: z.string(),
  keep: z.string(),
  bytes: z.number(),
  skipped: z.number(),
  entries: z.array(
    z.tuple([z.string(), z.enum(['100644', '100755', '120000']), z.string(), z.string(), z.number(), z.number()]),
  ),
});

/** Null where there is none that can be relied on; then every file is read again. */
export const loadScan = async (file: string): Promise<Scan | null> => {
  const bytes = await readFile(file).catch(() => null);
  if (bytes === null || !isUtf8(bytes)) return null;
  try {
    const { entries, ...rest } = z.parse(stored, JSON.parse(bytes.toString('utf8')));
    const read = entries.map(([path, mode, oid, revision, size, seenAt]): [string, Entry] => [
      path,
      { mode, oid, revision, bytes: size, seenAt },
    ]);
    return { ...rest, entries: new Map(read) };
  } catch {
    return null; // cut off, or of another version
  }
};

export const saveScan = async (file: string, scan: Scan): Promise<void> => {
  const entries = [...scan.entries].map(([path, { mode, oid, revision, bytes, seenAt }]) => [
    path,
    mode,
    oid,
    revision,
    bytes,
    seenAt,
  ]);
  await writeFile(`${file}.new`, JSON.stringify({ ...scan, version: 1, entries }), { mode: 0o600 });
  await rename(`${file}.new`, file);
};
