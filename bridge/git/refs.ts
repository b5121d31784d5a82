/**
 * References read by the walker: HEAD, what it leads to, one name (F-20). The rule not to break: a name is checked by
 * git's own grammar before it becomes a path. Called by repository.ts and shadow.ts.
 */
import type { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { unsupported, type Layout } from './layout.ts';

const oidPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const forbidden = /[\p{Cc} ~^:?*[\\]|\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)|\.$|\/$/u;
const isRefName = (name: string): boolean => name.startsWith('refs/') && !forbidden.test(name);

export type Head =
  | { readonly kind: 'branch'; /** Full name. */ readonly ref: string; readonly commit: string | null }
  | { readonly kind: 'detached'; readonly commit: string };

export const reftable = (): Refusal =>
  unsupported('This repository keeps its references in the "reftable" format, which is not read yet.');

/** @throws Refusal unsupported_git_state for one that is damaged or kept in another way */
export const readHead = (layout: Layout): Head => {
  if (layout.common.stat('reftable') !== null) throw reftable();
  const text = layout.own.read('HEAD', limits.pathBytes)?.toString('utf8').trim() ?? '';
  if (oidPattern.test(text)) return { kind: 'detached', commit: text };
  const ref = target(text);
  if (ref === null) throw unsupported('HEAD of this repository is damaged.');
  return { kind: 'branch', ref, commit: readRef(layout, ref) };
};

const target = (text: string): string | null => {
  const name = text.startsWith('ref:') ? text.slice(4).trim() : '';
  return isRefName(name) ? name : null;
};

/** The commit a reference leads to; null where there is none. */
export const readRef = (layout: Layout, name: string, depth = 5): string | null => {
  if (!isRefName(name) || depth === 0) return null;
  const files = /^refs\/(bisect|worktree|rewritten)\//.test(name) ? layout.own : layout.common;
  const text = files.read(name, limits.pathBytes)?.toString('utf8').trim();
  if (text === undefined) return packed(layout, name);
  const next = target(text);
  if (next !== null) return readRef(layout, next, depth - 1);
  return oidPattern.test(text) ? text : null;
};

const packed = (layout: Layout, name: string): string | null => {
  const bytes = layout.common.read('packed-refs', limits.scanBytes);
  const at = bytes?.indexOf(` ${name}\n`) ?? -1;
  if (bytes === null || at === -1) return null;
  const oid = bytes.subarray(bytes.lastIndexOf(0x0a, at) + 1, at).toString('latin1');
  return oidPattern.test(oid) ? oid : null;
};

/** The full name of what `ref` follows, by the configuration; null where it follows nothing. */
export const upstreamOf = (config: ReadonlyMap<string, string>, ref: string): string | null => {
  const branch = ref.replace(/^refs\/heads\//, '');
  const [remote, merge] = [config.get(`branch.${branch}.remote`), config.get(`branch.${branch}.merge`)];
  if (remote === undefined || merge === undefined) return null;
  if (remote === '.') return merge;
  for (const spec of (config.get(`remote.${remote}.fetch`) ?? '').split('\n')) {
    const [from = '', to = ''] = spec.replace(/^\+/, '').split(':');
    const [before = '', after] = from.split('*');
    if (after === undefined && from === merge && to !== '') return to;
    const fits = after !== undefined && merge.startsWith(before) && merge.endsWith(after);
    if (fits && merge.length >= before.length + after.length)
      return to.replace('*', () => merge.slice(before.length, merge.length - after.length));
  }
  return null;
};
