/**
 * The folder's side of a comparison with the index: files read by the walker under the secret policy, never by git's
 * word alone; untracked files, conflicts, and what goes through a filter (F-22). Called by repository.ts.
 */
import { isUtf8 } from 'node:buffer';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Root } from '../files/contract.ts';
import { blobSide, type Comparison, type Side } from './compare.ts';
import type { Layout } from './layout.ts';
import { argumentOf, pathOf } from './names.ts';
import { Fields, gitlinks, type RawChange } from './raw.ts';
import { smallIndex, type Shadow } from './shadow.ts';

type Base = Pick<Comparison, 'run' | 'prefix' | 'isSecret'>;

export const folderComparison = (base: Base, root: Root, layout: Layout, shadow: Shadow): Comparison => ({
  ...base,
  compare: ['diff'],
  small: (path) => smallIndex(shadow, path),
  side: async (change, side) =>
    side === 'old' ? blobSide(base.run, change.oldOid) : folderSide(root, layout, base.prefix, change),
  filterOf: async (path) => {
    // Where there are no attributes, git is not asked for them.
    if (!shadow.attributes && !hasAttributes(layout, path)) return null;
    return (await filters(base.run, [path])).values().next().value ?? null;
  },
  untracked: (path) => untracked(base, layout, path),
  stages: ['-2', '-3', '-1'],
});

const folderSide = (root: Root, layout: Layout, prefix: Buffer, change: RawChange): Side => {
  const full = isUtf8(change.path) ? change.path.toString('utf8') : null;
  if (full === null) throw new Refusal('unsupported_filename_encoding');
  const revision = layout.tree.revision(full);
  if (change.newMode === '120000') {
    const bytes = layout.tree.link(full);
    if (bytes === null) throw new Refusal('repository_changed');
    return { bytes, size: bytes.length, revision };
  }
  const path = pathOf(change.path, prefix);
  // A name the files room has no grammar for: the same walk, and no second name to be secret under.
  if (path === null && (layout.tree.stat(full)?.nlink ?? 1n) > 1n) throw new Refusal('path_denied');
  try {
    const bytes = path === null ? layout.tree.content(full, limits.scanBytes) : wholeOf(root, path);
    if (bytes === null) throw new Refusal('repository_changed');
    return { bytes, size: bytes.length, revision };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.code === 'file_changed') throw new Refusal('repository_changed', { cause: error });
    if (error.code !== 'content_too_large') throw error;
    return { bytes: null, size: Number(layout.tree.stat(full)?.size ?? 0), revision };
  }
};

const wholeOf = (root: Root, path: string): Buffer | null => {
  const whole = root.readBytes(path, limits.scanBytes);
  return whole === null ? null : Buffer.from(whole.bytes.buffer, whole.bytes.byteOffset, whole.bytes.byteLength);
};

/** In a folder on the way to this path, known to git or not. */
const hasAttributes = (layout: Layout, path: Buffer): boolean => {
  const folders = path.toString('utf8').split('/').slice(0, -1);
  return [...folders, ''].some((_, depth) => layout.tree.has([...folders.slice(0, depth), '.gitattributes'].join('/')));
};

/** Which of these paths go through a program of the repository when they are checked out or in, and its name (T63). */
export const filters = async (run: Comparison['run'], paths: readonly Buffer[]): Promise<Map<string, string>> => {
  const found = new Map<string, string>();
  if (paths.length === 0) return found;
  const input = Buffer.concat(paths.flatMap((path) => [path, Buffer.from([0])]));
  // Without an index, which it would read for nothing: what decides stands beside the files.
  const fields = new Fields(await run(['check-attr', '-z', '--stdin', 'filter'], { input, index: '/nonexistent' }));
  while (!fields.ended) {
    const [path, , value] = [fields.next(), fields.next(), fields.next().toString('utf8')];
    if (!['unspecified', 'unset', 'set', ''].includes(value)) found.set(path.toString('latin1'), value);
  }
  return found;
};

const missing = { oldMode: '000000', oldOid: '', newOid: '', similarity: 0, from: null };

const untracked = async (base: Base, layout: Layout, path: Buffer): Promise<RawChange | null> => {
  const name = argumentOf(path);
  const scope = name ?? base.prefix.toString('utf8');
  const args = ['ls-files', '--others', '--exclude-standard', '-z', '--', ...(scope === '' ? [] : [scope])];
  const fields = new Fields(await base.run(args));
  while (!fields.ended) {
    const found = fields.next();
    const nested = found.at(-1) === 0x2f;
    if (!(nested ? found.subarray(0, -1) : found).equals(path)) continue;
    return { ...missing, letter: '?', newMode: nested ? '160000' : modeOf(layout, name), path };
  }
  // A submodule that changed inside alone: git was not asked to look there.
  if (name === null) return null;
  return (
    gitlinks(await base.run(['ls-files', '--stage', '-z', '--', name])).find((link) => link.path.equals(path)) ?? null
  );
};

const modeOf = (layout: Layout, name: string | null): string => {
  const stat = name === null ? null : layout.tree.stat(name);
  if (stat === null) return '100644';
  return stat.isSymbolicLink() ? '120000' : (stat.mode & 0o100n) !== 0n ? '100755' : '100644';
};
