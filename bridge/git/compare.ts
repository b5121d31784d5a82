/**
 * What changed between two states, whatever they are: the list, one file's difference, one side of it (F-22). The rule
 * not to break: the content of a secret path is never asked for, and what is over a bound is refused or named `large`,
 * never cut in silence. Used by repository.ts for the index and commits, by trees.ts for pairs of trees.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Answer, Params } from '#protocol/methods.ts';
import type { ChangeEntry, FileDiff } from '#protocol/methods/git.ts';
import { imageMime } from '../files/read.ts';
import { argumentOf, bytesOf, inside } from './names.ts';
import { endsOf, eolName, otherEnds, parsePatch, shown, wholePatch, type Patch } from './patch.ts';
import { entryOf, isMissing, parseRaw, whatOf, type RawChange } from './raw.ts';

type Content = FileDiff['content'];
export type SideName = 'old' | 'new';

/** Bytes of one side; `bytes` null where they are more than are looked at. */
export interface Side {
  readonly bytes: Buffer | null;
  readonly size: number;
  readonly revision: string;
}

export interface Comparison {
  /** Runs git in the right place. */
  run(args: readonly string[], options?: { input?: Uint8Array; maxBytes?: number; index?: string }): Promise<Buffer>;
  /** The command, its own options, and behind `--end-of-options` the two states. */
  readonly compare: readonly string[];
  /** As in names.ts. */
  readonly prefix: Buffer;
  /** Null where that side is missing. @throws Refusal path_denied for what is secret under another name */
  side(change: RawChange, side: SideName): Promise<Side | null>;
  /** For comparisons with the folder: an index of one file, and how it is dropped; null where the whole one is needed. */
  small?(path: Buffer): { readonly path: string; drop(): void } | null;
  /** The filter a path goes through, for comparisons with the folder; null where none is asked for. */
  filterOf?(path: Buffer): Promise<string | null>;
  /** For comparisons with the folder: what git does not tell of by itself; null where there is nothing. */
  untracked?(path: Buffer): Promise<RawChange | null>;
  /** For comparisons with the folder: what a conflict is compared with, in this order of what there is; git's options. */
  readonly stages?: readonly string[];
  isSecret(path: Buffer): boolean;
}

/** Nothing of these starts a program, looks into a submodule, or depends on a setting. */
const flags = [
  ...[
    '--no-ext-diff',
    '--no-textconv',
    '--no-color',
    '--ignore-submodules=dirty',
    '--submodule=short',
    '--no-indent-heuristic',
  ],
  ...['--diff-algorithm=myers', '--src-prefix=a/', '--dst-prefix=b/', '--no-relative', '--no-abbrev', '--full-index'],
  ...['--find-renames=50%', '-l1000', '-O/dev/null', '-z'],
];

/** @throws Refusal git_output_too_large and what git's run throws */
export const changesOf = async (comparison: Comparison): Promise<ChangeEntry[]> => {
  const { changes } = parseRaw(
    await comparison.run([...command(comparison, ['--raw', '--numstat', ...stage(comparison)]), ...scope(comparison)]),
  );
  return changes.map((change) => entry(comparison, change));
};

const command = ({ compare }: Comparison, options: readonly string[]): string[] => {
  const [name = '', ...rest] = compare;
  return [name, ...flags, ...options, ...rest];
};
const stage = ({ stages = [] }: Comparison): readonly string[] => stages.slice(0, 1);
const scope = ({ prefix }: Comparison): string[] => ['--', ...(prefix.length > 0 ? [prefix.toString('utf8')] : [])];

const entry = (comparison: Comparison, change: RawChange): ChangeEntry =>
  entryOf(change, comparison.prefix, (path) => comparison.isSecret(path));

// What lies in the repository beside the workspace is none of it.
const askedPath = ({ prefix }: Comparison, id: string): Buffer => {
  const path = bytesOf(id);
  if (inside(path, prefix) === null) throw new Refusal('not_found');
  return path;
};

type Asked = Pick<Params<'git.diff'>, 'id' | 'fromId' | 'context' | 'large'>;

/** One file's difference. @throws Refusal not_found, bad_request, content_too_large (with `large`) */
export const diffOf = async (comparison: Comparison, asked: Asked): Promise<FileDiff> => {
  const path = askedPath(comparison, asked.id);
  const from = asked.fromId === undefined ? null : askedPath(comparison, asked.fromId);
  const context = Math.min(asked.context ?? 3, limits.diffContext);
  const closed = [path, from].some((each) => each !== null && comparison.isSecret(each));
  const [found, filter] = await Promise.all([
    find(comparison, path, from, closed ? null : context),
    closed ? null : (comparison.filterOf?.(path) ?? null),
  ]);
  const shownEntry = entry(comparison, found.change);
  const secret: FileDiff = {
    entry: { ...shownEntry, secret: true },
    content: { kind: 'secret' },
    revision: revisionOf(found.change, null),
  };
  if (closed) return secret;
  try {
    return { entry: shownEntry, ...(await contentOf(comparison, found, filter, asked.large === true)) };
  } catch (error) {
    // A harmless name of a secret object: known once the object is met.
    if (error instanceof Refusal && error.code === 'path_denied') return secret;
    throw error;
  }
};

interface Found {
  readonly change: RawChange;
  /** Null where it is more than is read, or was not asked for. */
  readonly patch: Buffer | null;
}

/** `context` null: without a patch. */
const find = async (
  comparison: Comparison,
  path: Buffer,
  from: Buffer | null,
  context: number | null,
): Promise<Found> => {
  const named = [path, ...(from === null ? [] : [from])].map(argumentOf);
  // A name that is not UTF-8 cannot be an argument: it is found in the whole list, and compared by its objects.
  if (named.includes(null)) return findOdd(comparison, path, context);
  const small = from === null ? (comparison.small?.(path) ?? null) : null;
  const ask = async (options: readonly string[]): Promise<Found | null> => {
    const args = [...command(comparison, options), '--', ...(named as string[])];
    const output = await comparison.run(args, small === null ? {} : { index: small.path });
    const { changes, patch } = parseRaw(output);
    const change = changes.find((each) => each.path.equals(path));
    return change === undefined ? null : { change, patch };
  };
  const raw = async (): Promise<Found | null> => {
    const found = await ask(['--raw']);
    return found === null ? null : { ...found, patch: null };
  };
  const patched = async (options: readonly string[]): Promise<Found | null> => {
    if (context === null) return raw();
    try {
      return await ask(['--raw', '--patch', `--unified=${context}`, ...options]);
    } catch (error) {
      if (isTooLarge(error)) return raw();
      throw error;
    }
  };
  try {
    for (const stage of comparison.stages ?? [null]) {
      const found = await patched(stage === null ? [] : [stage]);
      if (found === null) break;
      const unlike = found.change.letter === 'U' && isMissing(found.change.oldMode);
      if (!unlike) return found;
    }
  } finally {
    small?.drop();
  }
  return untracked(comparison, path);
};

const untracked = async (comparison: Comparison, path: Buffer): Promise<Found> => {
  const change = (await comparison.untracked?.(path)) ?? null;
  if (change === null) throw new Refusal('not_found');
  return { change, patch: null };
};

const findOdd = async (comparison: Comparison, path: Buffer, context: number | null): Promise<Found> => {
  const list = parseRaw(
    await comparison.run([...command(comparison, ['--raw', ...stage(comparison)]), ...scope(comparison)]),
  );
  const change = list.changes.find((each) => each.path.equals(path)) ?? (await untracked(comparison, path)).change;
  const { oldMode, newMode, oldOid, newOid } = change;
  if (context === null || isMissing(oldMode) || isMissing(newMode)) return { change, patch: null };
  if (isUnknown(newOid)) throw new Refusal('unsupported_filename_encoding');
  const options = ['--patch', `--unified=${context}`];
  const args = ['diff', ...flags, ...options, '--end-of-options', oldOid, newOid];
  return { change, patch: await comparison.run(args) };
};

const isUnknown = (oid: string): boolean => /^0+$/.test(oid);
const isTooLarge = (error: unknown): boolean => error instanceof Refusal && error.code === 'git_output_too_large';

const revisionOf = (change: RawChange, side: Side | null): string =>
  `${change.oldOid} ${side?.revision ?? change.newOid}`;

type WithRevision = Pick<FileDiff, 'content' | 'revision'>;

const contentOf = async (
  comparison: Comparison,
  found: Found,
  filter: string | null,
  large: boolean,
): Promise<WithRevision> => {
  const { change, patch } = found;
  const revision = revisionOf(change, null);
  const kinds = [change.oldMode, change.newMode].filter((mode) => !isMissing(mode)).map(whatOf);
  if (kinds.includes('submodule')) return { content: submodule(change, patch), revision };
  if (kinds.includes('symlink')) return symlink(comparison, change);
  if (filter !== null) return { content: { kind: 'filtered', filter: filter.slice(0, 200) }, revision };
  return regular(comparison, found, large);
};

// The folder's commit stands in the patch alone.
const submodule = ({ oldOid, newOid }: RawChange, patch: Buffer | null): Content => {
  const named = (sign: string, oid: string): string | null =>
    new RegExp(`^\\${sign}Subproject commit ([0-9a-f]+)`, 'm').exec(patch?.toString('latin1') ?? '')?.[1] ??
    (isUnknown(oid) ? null : oid);
  return { kind: 'submodule', oldCommit: named('-', oldOid), newCommit: named('+', newOid) };
};

const symlink = async (comparison: Comparison, change: RawChange): Promise<WithRevision> => {
  const target = async (mode: string, name: SideName): Promise<Side | null> =>
    whatOf(mode) === 'symlink' ? comparison.side(change, name) : null;
  const [old, fresh] = [await target(change.oldMode, 'old'), await target(change.newMode, 'new')];
  const text = (side: Side | null): string | null =>
    side === null ? null : (side.bytes ?? Buffer.alloc(0)).toString('utf8').slice(0, limits.pathBytes);
  return {
    content: { kind: 'symlink', oldTarget: text(old), newTarget: text(fresh) },
    revision: revisionOf(change, fresh),
  };
};

const regular = async (comparison: Comparison, { change, patch }: Found, large: boolean): Promise<WithRevision> => {
  const [noOld, noNew] = [isMissing(change.oldMode), isMissing(change.newMode)];
  const fresh = noNew ? null : await comparison.side(change, 'new');
  const old = (): Promise<Side | null> => (noOld ? Promise.resolve(null) : comparison.side(change, 'old'));
  const answer = (content: Content): WithRevision => ({ content, revision: revisionOf(change, fresh) });

  if (patch !== null || noOld || noNew) {
    const known = fresh ?? (await old());
    // A side alone needs no git to compare it.
    const bytes = patch ?? (known === null || known.bytes === null ? null : wholePatch(known.bytes, noOld ? '+' : '-'));
    const read = bytes === null ? null : parsePatch(bytes);
    if (read?.binary === true || mimeOf(known) !== null) return answer(binary(await old(), fresh));
    if (read !== null && !isTooMuch(read, large) && known !== null && known.bytes !== null) {
      const onlyMode = read.changed === 0 && change.from === null && change.oldMode !== change.newMode;
      if (onlyMode && !noOld && !noNew) return answer({ kind: 'mode' });
      return answer(textOf(read, known.bytes, !noNew));
    }
    if (!large) return answer({ kind: 'large', lines: read?.changed ?? 0, bytes: known?.size ?? 0 });
  } else if (!large) return answer({ kind: 'large', lines: 0, bytes: fresh?.size ?? 0 });
  throw new Refusal('content_too_large');
};

/** A text's hunks, with what is known of both wholes from one of them. */
const textOf = (patch: Patch, known: Buffer, isNew: boolean): Content => {
  const ends = endsOf(known);
  const fresh = isNew ? ends : otherEnds(ends, patch.old, patch.new);
  const old = isNew ? otherEnds(ends, patch.new, patch.old) : ends;
  return {
    kind: 'text',
    hunks: patch.hunks,
    eol: { old: eolName(old), new: eolName(fresh) },
    onlyEol: patch.onlyEol,
    replaced: patch.replaced,
    lines: { old: old.lines, new: fresh.lines },
  };
};

/** Above what is sent: unasked by its changed lines, at all by what fits a frame. */
const isTooMuch = (patch: Patch, large: boolean): boolean =>
  patch.total > limits.diffLines ||
  patch.bytes > limits.pageBytes ||
  (!large && patch.changed > limits.diffLinesUnasked);

const mimeOf = (side: Side | null): string | null =>
  side === null || side.bytes === null ? null : imageMime(side.bytes);

const binary = (old: Side | null, fresh: Side | null): Content => {
  const sizes = { oldBytes: old?.size ?? null, newBytes: fresh?.size ?? null };
  const mime = mimeOf(fresh) ?? mimeOf(old);
  return mime === null ? { kind: 'binary', ...sizes } : { kind: 'image', mime, ...sizes };
};

type SideAsked = Pick<Params<'git.side'>, 'id' | 'side' | 'firstLine' | 'lines'>;

/** Lines of one side, or an image. @throws Refusal not_found, path_denied, content_too_large, unsupported_file_type */
export const sideOf = async (comparison: Comparison, asked: SideAsked): Promise<Answer<'git.side'>> => {
  const path = askedPath(comparison, asked.id);
  if (comparison.isSecret(path)) throw new Refusal('path_denied');
  const { change } = await find(comparison, path, null, null);
  const mode = asked.side === 'old' ? change.oldMode : change.newMode;
  if (isMissing(mode)) throw new Refusal('not_found');
  if (whatOf(mode) !== 'file') throw new Refusal('unsupported_file_type');
  const side = await comparison.side(change, asked.side);
  if (side === null) throw new Refusal('not_found');
  return sideContent(side, asked);
};

const sideContent = (side: Side, { firstLine, lines }: Pick<SideAsked, 'firstLine' | 'lines'>): Answer<'git.side'> => {
  if (side.bytes === null) throw new Refusal('content_too_large');
  const mime = imageMime(side.bytes);
  if (mime !== null) {
    if (side.size > limits.imageBytes) throw new Refusal('content_too_large');
    return { kind: 'image', mime, dataUrl: `data:${mime};base64,${side.bytes.toString('base64')}` };
  }
  if (side.bytes.subarray(0, limits.sniffBytes).includes(0)) throw new Refusal('unsupported_file_type');
  const first = Math.max(1, firstLine ?? 1);
  return {
    kind: 'text',
    firstLine: first,
    ...linesOf(side.bytes, first, Math.min(lines ?? limits.readLines, limits.readLines)),
  };
};

/** Fewer than asked for where more would not fit a frame; `total` says that there are more. */
const linesOf = (bytes: Buffer, first: number, most: number): { lines: string[]; total: number } => {
  const lines: string[] = [];
  const { lines: total } = endsOf(bytes);
  let [at, number, cost] = [0, 1, 0];
  while (at < bytes.length && lines.length < most && cost < limits.pageBytes) {
    const feed = bytes.indexOf(0x0a, at);
    const end = feed === -1 ? bytes.length : feed;
    if (number >= first) {
      const text = shown(bytes.subarray(at, end));
      cost += Buffer.byteLength(JSON.stringify(text));
      lines.push(text);
    }
    number += 1;
    at = end + 1;
  }
  return { lines, total };
};

/** Sides that are objects of git. Larger ones than are looked at come without their bytes. */
export const blobSide = async (run: Comparison['run'], oid: string): Promise<Side> => {
  const read = async (option: string, maxBytes: number): Promise<Buffer> =>
    run(['cat-file', option], { input: Buffer.from(`${oid}\n`), maxBytes });
  try {
    const output = await read('--batch', limits.scanBytes);
    const size = sizeOf(output);
    const start = output.indexOf(0x0a) + 1;
    return { bytes: output.subarray(start, start + size), size, revision: oid };
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    return { bytes: null, size: sizeOf(await read('--batch-check', limits.gitBytes)), revision: oid };
  }
};

const sizeOf = (output: Buffer): number => {
  const size = /^[0-9a-f]+ blob (\d+)$/.exec(
    output.subarray(0, Math.max(0, output.indexOf(0x0a))).toString('latin1'),
  )?.[1];
  if (size === undefined)
    throw new Refusal('unsupported_git_state', { message: 'An object of this repository is missing here.' });
  return Number(size);
};

/** For comparisons whose sides are both objects of git. */
export const blobSides =
  (run: Comparison['run']) =>
  (change: RawChange, side: SideName): Promise<Side> =>
    blobSide(run, side === 'old' ? change.oldOid : change.newOid);
