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
import { argumentOf, bytesOf } from './names.ts';
import { endsOf, eolName, otherEnds, parsePatch, shown, type Patch } from './patch.ts';
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
  run(args: readonly string[], options?: { input?: Uint8Array; maxBytes?: number }): Promise<Buffer>;
  /** The command, its own options, and behind `--end-of-options` the two states. */
  readonly compare: readonly string[];
  /** As in names.ts. */
  readonly prefix: Buffer;
  /** Null where that side is missing. @throws Refusal path_denied for what is secret under another name */
  side(change: RawChange, side: SideName): Promise<Side | null>;
  /** The filter a path goes through, for comparisons with the folder; null where none is asked for. */
  filterOf?(path: Buffer): Promise<string | null>;
  /** What the index says about a conflicting path, for comparisons with the folder. */
  conflict?(path: Buffer): Promise<RawChange & { readonly stage: string }>;
  isSecret(entry: ChangeEntry): boolean;
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
    await comparison.run([...command(comparison, ['--raw', '--numstat']), ...scope(comparison)]),
  );
  return changes.map((change) => withSecret(comparison, entryOf(change, comparison.prefix)));
};

const command = ({ compare }: Comparison, options: readonly string[]): string[] => {
  const [name = '', ...rest] = compare;
  return [name, ...flags, ...options, ...rest];
};
const scope = ({ prefix }: Comparison): string[] => ['--', ...(prefix.length > 0 ? [prefix.toString('utf8')] : [])];

const withSecret = (comparison: Comparison, entry: ChangeEntry): ChangeEntry =>
  entry.secret || !comparison.isSecret(entry) ? entry : { ...entry, secret: true };

type Asked = Pick<Params<'git.diff'>, 'id' | 'fromId' | 'context' | 'large'>;

/** One file's difference. @throws Refusal not_found, content_too_large (with `large`), repository_changed */
export const diffOf = async (comparison: Comparison, asked: Asked): Promise<FileDiff> => {
  const found = await find(comparison, asked, true);
  const { change } = found;
  const entry = withSecret(comparison, entryOf(change, comparison.prefix));
  try {
    const { content, revision } = await contentOf(comparison, entry, found, asked.large === true);
    return { entry, content, revision };
  } catch (error) {
    // A harmless name of a secret object: known once the object is met.
    if (!(error instanceof Refusal) || error.code !== 'path_denied') throw error;
    return { entry: { ...entry, secret: true }, content: { kind: 'secret' }, revision: revisionOf(change, null) };
  }
};

interface Found {
  readonly change: RawChange;
  /** Null where it is more than is read. */
  readonly patch: Buffer | null;
}

const find = async (comparison: Comparison, asked: Asked, patch: boolean): Promise<Found> => {
  const path = bytesOf(asked.id);
  const from = asked.fromId === undefined ? null : bytesOf(asked.fromId);
  const named = [path, ...(from === null ? [] : [from])].map(argumentOf);
  const context = Math.min(asked.context ?? 3, limits.diffContext);
  const options = ['--raw', ...(patch ? ['--patch', `--unified=${context}`] : [])];
  // A name that is not UTF-8 cannot be an argument: it is found in the whole list, and compared by its objects.
  const paths = named.every((name) => name !== null) ? ['--', ...named] : null;
  const changes = (options: readonly string[]): Promise<Buffer> =>
    comparison.run([...command(comparison, options), ...(paths ?? scope(comparison))]);
  const read = async (): Promise<{ changes: RawChange[]; patch: Buffer | null }> => {
    if (paths === null) return { changes: parseRaw(await changes(['--raw'])).changes, patch: null };
    try {
      return parseRaw(await changes(options));
    } catch (error) {
      if (!patch || !isTooLarge(error)) throw error;
      return { changes: parseRaw(await changes(['--raw'])).changes, patch: null };
    }
  };
  const answer = await read();
  const change = answer.changes.find((each) => each.path.equals(path));
  if (change === undefined) throw new Refusal('not_found');
  if (change.letter === 'U' && comparison.conflict !== undefined) return conflictOf(comparison, change, options, paths);
  if (paths === null && patch) return { change, patch: await patchOfObjects(comparison, change, context) };
  return { change, patch: answer.patch };
};

const isTooLarge = (error: unknown): boolean => error instanceof Refusal && error.code === 'git_output_too_large';

// What one side of the conflict had against what stands in the folder with its marks.
const conflictOf = async (
  comparison: Comparison,
  change: RawChange,
  options: readonly string[],
  paths: readonly string[] | null,
): Promise<Found> => {
  const staged = await comparison.conflict?.(change.path);
  if (staged === undefined || paths === null) return { change, patch: null };
  const args = command(comparison, [...options, `-${staged.stage}`]);
  const { patch } = parseRaw(await comparison.run([...args, ...paths]));
  return { change: staged, patch };
};

const patchOfObjects = async (comparison: Comparison, change: RawChange, context: number): Promise<Buffer | null> => {
  const { oldOid, newOid } = change;
  if (/^0+$/.test(oldOid) || /^0+$/.test(newOid)) return null;
  const options = ['--patch', `--unified=${context}`];
  return comparison.run(['diff', ...flags, ...options, '--end-of-options', oldOid, newOid]);
};

const revisionOf = (change: RawChange, side: Side | null): string =>
  [change.oldOid, side?.revision ?? change.newOid].map((text) => text.slice(0, 99)).join(' ');

const contentOf = async (
  comparison: Comparison,
  entry: ChangeEntry,
  { change, patch }: Found,
  large: boolean,
): Promise<{ content: Content; revision: string }> => {
  const revision = revisionOf(change, null);
  if (entry.secret) return { content: { kind: 'secret' }, revision };
  const kinds = [change.oldMode, change.newMode].filter((mode) => !isMissing(mode)).map(whatOf);
  if (kinds.includes('submodule')) return { content: submodule(change), revision };
  if (kinds.includes('symlink')) return symlink(comparison, change);
  const filter = (await comparison.filterOf?.(change.path)) ?? null;
  if (filter !== null) return { content: { kind: 'filtered', filter: filter.slice(0, 200) }, revision };
  return { ...(await regular(comparison, change, patch, large)) };
};

const submodule = ({ oldMode, newMode, oldOid, newOid }: RawChange): Content => ({
  kind: 'submodule',
  oldCommit: oldMode === '160000' && !/^0+$/.test(oldOid) ? oldOid : null,
  newCommit: newMode === '160000' && !/^0+$/.test(newOid) ? newOid : null,
});

const symlink = async (comparison: Comparison, change: RawChange): Promise<{ content: Content; revision: string }> => {
  const target = async (mode: string, name: SideName): Promise<Side | null> =>
    mode === '120000' ? comparison.side(change, name) : null;
  const [old, fresh] = [await target(change.oldMode, 'old'), await target(change.newMode, 'new')];
  const text = (side: Side | null): string | null =>
    side === null ? null : (side.bytes ?? Buffer.alloc(0)).toString('utf8').slice(0, limits.pathBytes);
  return {
    content: { kind: 'symlink', oldTarget: text(old), newTarget: text(fresh) },
    revision: revisionOf(change, fresh),
  };
};

const regular = async (
  comparison: Comparison,
  change: RawChange,
  patchBytes: Buffer | null,
  large: boolean,
): Promise<{ content: Content; revision: string }> => {
  const fresh = isMissing(change.newMode) ? null : await comparison.side(change, 'new');
  const revision = revisionOf(change, fresh);
  const answer = (content: Content): { content: Content; revision: string } => ({ content, revision });
  const patch = patchBytes === null ? null : parsePatch(patchBytes);
  if (patch?.binary === true || mimeOf(fresh) !== null) {
    const old = isMissing(change.oldMode) ? null : await comparison.side(change, 'old');
    return answer(binary(old, fresh));
  }
  if (patch === null || isTooMuch(patch, large)) {
    if (large) throw new Refusal('content_too_large');
    return answer({ kind: 'large', lines: patch?.changed ?? 0, bytes: fresh?.size ?? patchBytes?.length ?? 0 });
  }
  if (
    patch.changed === 0 &&
    change.from === null &&
    change.oldMode !== change.newMode &&
    !isMissing(change.oldMode) &&
    fresh !== null
  )
    return answer({ kind: 'mode' });
  const known = fresh ?? (await comparison.side(change, 'old'));
  if (known === null || known.bytes === null) throw new Refusal('content_too_large');
  return answer(textOf(patch, known.bytes, fresh !== null));
};

/** A text's hunks, with what is known of both wholes from one of them. */
export const textOf = (patch: Patch, known: Buffer, isNew: boolean): Content => {
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
export const isTooMuch = (patch: Patch, large: boolean): boolean =>
  patch.total > limits.diffLines ||
  patch.units > limits.pageBytes / 2 ||
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
  const { change } = await find(comparison, { id: asked.id }, false);
  if (withSecret(comparison, entryOf(change, comparison.prefix)).secret) throw new Refusal('path_denied');
  const mode = asked.side === 'old' ? change.oldMode : change.newMode;
  if (isMissing(mode)) throw new Refusal('not_found');
  if (whatOf(mode) !== 'file') throw new Refusal('unsupported_file_type');
  const side = await comparison.side(change, asked.side);
  if (side === null) throw new Refusal('not_found');
  return sideContent(side, asked);
};

export const sideContent = (
  side: Side,
  { firstLine, lines }: Pick<SideAsked, 'firstLine' | 'lines'>,
): Answer<'git.side'> => {
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
  let [at, number, units] = [0, 1, 0];
  while (at < bytes.length && lines.length < most && units < limits.pageBytes / 4) {
    const feed = bytes.indexOf(0x0a, at);
    const end = feed === -1 ? bytes.length : feed;
    if (number >= first) {
      const text = shown(bytes.subarray(at, end));
      units += text.length;
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
