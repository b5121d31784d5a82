/**
 * The private bare repository of one conversation's checkpoints: byte-exact content in, trees, differences and content
 * out. The rule not to break: git opens nothing but this directory; paths of the workspace are names in a stream here,
 * never files that git reads or writes. Called by checkpoints.ts, checkpoint-scan.ts and checkpoint-restore.ts.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { RunGit } from './contract.ts';
import { parseRaw } from './raw.ts';

/** As git names a file that is no folder. */
export type Mode = '100644' | '100755' | '120000';
export interface Held {
  readonly mode: Mode;
  readonly oid: string;
}
/** One path that differs; null where that side has nothing. */
export interface Difference {
  readonly path: string;
  readonly from: Held | null;
  readonly to: Held | null;
}
export interface Blob {
  readonly oid: string;
  readonly bytes: Uint8Array;
}

// Nothing is converted, nothing runs, and what is written is on the disk before its reference is.
const config = `[core]
\trepositoryFormatVersion = 1
\tbare = true
\tautocrlf = false
\tlogAllRefUpdates = false
\tcompression = 1
[extensions]
\tobjectFormat = sha256
[fastimport]
\tunpackLimit = 0
[gc]
\tauto = 0
`;
const attributes = '* -text -eol -ident -filter -working-tree-encoding !diff -merge\n';
/** Packages are fetched again, not restored; everything else that is left out is the folder's own choice (.gitignore). */
const excluded = 'node_modules\n';

/** Names the content as git does in this store. */
export const oidOf = (bytes: Uint8Array): string =>
  createHash('sha256').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');

/** A path as fast-import reads it: a C string, so that no name ends its line. */
const quoted = (path: string): string =>
  `"${path.replace(/["\\]/g, '\\$&').replace(/[\x01-\x1f\x7f]/g, (sign) => `\\${sign.charCodeAt(0).toString(8).padStart(3, '0')}`)}"`;

export class CheckpointStore {
  readonly directory: string;
  readonly #run: RunGit;

  constructor(directory: string, run: RunGit) {
    this.directory = directory;
    this.#run = run;
  }

  /** Makes the repository where it is missing. */
  async prepare(): Promise<void> {
    if (existsSync(join(this.directory, 'HEAD'))) return;
    for (const folder of ['objects/pack', 'refs', 'info'])
      await mkdir(join(this.directory, folder), { recursive: true, mode: 0o700 });
    await writeFile(join(this.directory, 'config'), config);
    await writeFile(join(this.directory, 'info', 'attributes'), attributes);
    await writeFile(join(this.directory, 'info', 'exclude'), excluded);
    // Last: with it the directory is a repository.
    await writeFile(join(this.directory, 'HEAD'), 'ref: refs/heads/none\n');
  }

  async #git(args: readonly string[], signal: AbortSignal, more: Partial<Parameters<RunGit>[0]> = {}): Promise<Buffer> {
    return (await this.#run({ gitDirectory: this.directory, workTree: null, args, signal, ...more })).stdout;
  }

  /** Paths below an absolute folder that nothing there ignores, as bytes; a repository within as its folder with a slash. */
  async list(folder: string, signal: AbortSignal): Promise<Buffer> {
    const args = ['ls-files', '-z', '--others', '--exclude-standard'];
    // Its index is never there: every file is an other file.
    return this.#git(args, signal, {
      workTree: folder,
      index: join(this.directory, 'none'),
      maxBytes: 2 * limits.gitBytes,
    });
  }

  /** Stores content alone. */
  async add(blobs: readonly Blob[], signal: AbortSignal): Promise<void> {
    if (blobs.length > 0) await this.#import([...blobStream(blobs), Buffer.from('done\n')], signal);
  }

  /** A new tree: `base` (null: nothing) with these changes. It is kept under the name `keep` from then on. */
  async write(
    what: { base: string | null; blobs: readonly Blob[]; changes: ReadonlyMap<string, Held | null>; keep: string },
    signal: AbortSignal,
  ): Promise<string> {
    const lines = ['committer Countersign <countersign@localhost> 0 +0000', 'data 0'];
    lines.push(what.base === null ? 'deleteall' : `M 040000 ${what.base} ""`);
    const held = [...what.changes];
    // A folder may stand where a file stood: what goes, goes first.
    for (const [path, now] of held) if (now === null) lines.push(`D ${quoted(path)}`);
    for (const [path, now] of held) if (now !== null) lines.push(`M ${now.mode} ${now.oid} ${quoted(path)}`);
    const commit = `commit refs/s/${what.keep}\n${lines.join('\n')}\nls ""\n\ndone\n`;
    const answer = await this.#import([...blobStream(what.blobs), Buffer.from(commit)], signal);
    const tree = /^040000 tree ([0-9a-f]{64})\t/.exec(answer.toString('latin1'))?.[1];
    if (tree === undefined) throw new Refusal('unsupported_git_state');
    return tree;
  }

  #import(stream: readonly Uint8Array[], signal: AbortSignal): Promise<Buffer> {
    const args = ['fast-import', '--quiet', '--done', '--force', '--date-format=raw'];
    return this.#git(args, signal, { input: Buffer.concat(stream), timeoutMs: limits.checkpointScanMs });
  }

  /** @throws Refusal git_output_too_large above `limits.gitEntries` */
  async differences(from: string, to: string, signal: AbortSignal): Promise<Difference[]> {
    if (from === to) return [];
    const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--end-of-options', from, to];
    const { changes } = parseRaw(await this.#git(args, signal));
    return changes.map(({ path, oldMode, oldOid, newMode, newOid }) => ({
      path: path.toString('utf8'),
      from: heldOf(oldMode, oldOid),
      to: heldOf(newMode, newOid),
    }));
  }

  /** Bytes of each content, by its name. */
  async sizes(oids: readonly string[], signal: AbortSignal): Promise<Map<string, number>> {
    const sizes = new Map<string, number>();
    if (oids.length === 0) return sizes;
    const input = Buffer.from(`${oids.join('\n')}\n`);
    const answer = await this.#git(['cat-file', '--batch-check'], signal, { input });
    for (const line of answer.toString('latin1').split('\n')) {
      const [oid, type, bytes] = line.split(' ');
      if (oid !== undefined && type === 'blob') sizes.set(oid, Number(bytes));
    }
    return sizes;
  }

  /** The content of all these; the caller bounds them. @throws Refusal checkpoint_unavailable where one is missing */
  async contents(oids: readonly string[], signal: AbortSignal): Promise<Map<string, Buffer>> {
    const contents = new Map<string, Buffer>();
    if (oids.length === 0) return contents;
    const wanted = [...new Set(oids)];
    const answer = await this.#git(['cat-file', '--batch', '--buffer'], signal, {
      input: Buffer.from(`${wanted.join('\n')}\n`),
      maxBytes: limits.checkpointBatchBytes + limits.checkpointFileBytes + wanted.length * 100,
    });
    let at = 0;
    for (const oid of wanted) {
      const end = answer.indexOf('\n', at);
      const [, type, bytes] = answer.subarray(at, end).toString('latin1').split(' ');
      if (type !== 'blob') throw new Refusal('checkpoint_unavailable');
      const from = end + 1;
      contents.set(oid, answer.subarray(from, from + Number(bytes)));
      at = from + Number(bytes) + 1;
    }
    return contents;
  }

  async bytes(): Promise<number> {
    const names = await readdir(this.directory, { recursive: true });
    const sizes = await Promise.all(
      names.map((name) =>
        stat(join(this.directory, name)).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
    );
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /** Clears away every tree but those kept under these names, and packs what is left. */
  async tidy(kept: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const long = { timeoutMs: limits.checkpointTidyLimitMs };
    const all = (await this.#git(['for-each-ref', '--format=%(refname)'], signal)).toString('latin1').split('\n');
    const gone = all.filter((name) => name.startsWith('refs/s/') && !kept.has(name.slice('refs/s/'.length)));
    const input = Buffer.from(gone.map((name) => `delete ${name}\n`).join(''));
    if (gone.length > 0) await this.#git(['update-ref', '--stdin'], signal, { input });
    await this.#git(['repack', '-a', '-d', '-q'], signal, long);
    await this.#git(['prune', '--expire=now'], signal, long);
  }
}

function* blobStream(blobs: readonly Blob[]): Generator<Uint8Array> {
  for (const { bytes } of blobs) {
    yield Buffer.from(`blob\ndata ${bytes.length}\n`);
    yield bytes;
    yield Buffer.from('\n');
  }
}

const isMode = (mode: string): mode is Mode => mode === '100644' || mode === '100755' || mode === '120000';
const heldOf = (mode: string, oid: string): Held | null => (isMode(mode) ? { mode, oid } : null);
