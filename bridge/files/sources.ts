/**
 * The one look at a workspace that a map and excerpts are made of: its files nearest first, and hints of what is in them.
 * The rule not to break: contents only through the recorder, which binds them to the secret policy, under every name; and
 * none at all while the folder is not trusted. Bounded as the profile. Called by map.ts and excerpts.ts.
 */
import { isUtf8 } from 'node:buffer';
import { setImmediate as turn } from 'node:timers/promises';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { isName } from './beneath.ts';
import type { Recorder, Root } from './contract.ts';
import { ignoring } from './ignore.ts';
import { hintsOf, type Hints } from './symbols.ts';

/** Folders of what was fetched or made. */
export const passedOver: ReadonlySet<string> = new Set([
  ...['.git', 'node_modules', 'vendor', 'target', 'dist', 'build', '.venv', '__pycache__'],
]);

export interface Source {
  readonly path: string;
  /** Of the beginning of the file; null where it is no text to be read here. */
  readonly hints: Hints | null;
}
export interface Sources {
  readonly files: readonly Source[];
  /** There are more files. */
  readonly truncated: boolean;
  /** What Go calls the packages of the workspace by; null where it has no `go.mod` at its top. */
  readonly goModule: string | null;
  /** The text of any file that the survey would not have passed over; null for every other. */
  text(path: string): string | null;
}

/** `contents`: the folder is trusted. To be used at once: it goes by the secrets of its moment. @throws Refusal workspace_*, cancelled */
export const sourcesOf = async (root: Root, contents: boolean, signal: AbortSignal): Promise<Sources> => {
  const recorder = root.recorder();
  const isIgnored = ignoring((path) => textOf(() => recorder.read(path.join('/'), limits.ignoreBytes).bytes) ?? '');
  const paths: string[] = [];
  const isFull = (): boolean => paths.length >= limits.profileFiles;
  const walked = await root.survey(({ path, type }) => {
    if (isFull() || (type !== 'directory' && type !== 'file') || root.isSecret(path)) return false;
    const segments = path.split('/');
    const folder = type === 'directory';
    if (folder && (segments.length >= limits.profileDepth || passedOver.has(segments.at(-1) ?? ''))) return false;
    if (isIgnored(segments, folder)) return false;
    if (!folder) paths.push(path);
    return folder;
  }, signal);
  const isPassedOver = (path: string): boolean => {
    const segments = path.split('/');
    return (
      !segments.every(isName) ||
      segments.slice(0, -1).some((name) => passedOver.has(name)) ||
      isIgnored(segments, false)
    );
  };
  const goMod = contents && paths.includes('go.mod') ? headOf(recorder, 'go.mod') : null;
  return {
    files: await hinted(recorder, paths, contents, signal),
    truncated: walked.truncated || isFull(),
    goModule: /^module ([\w./-]{1,200})\s*$/m.exec(goMod ?? '')?.[1] ?? null,
    text: (path) =>
      !contents || isPassedOver(path) ? null : textOf(() => recorder.read(path, limits.excerptFileBytes).bytes),
  };
};

const hinted = async (
  recorder: Recorder,
  paths: readonly string[],
  contents: boolean,
  signal: AbortSignal,
): Promise<Source[]> => {
  const files: Source[] = [];
  let sliceEnd = 0; // the survey has just used one up
  for (const path of paths) {
    const text = contents ? headOf(recorder, path) : null;
    files.push({ path, hints: text === null ? null : hintsOf(path, text) });
    if (performance.now() < sliceEnd) continue;
    await turn();
    if (signal.aborted) throw new Refusal('cancelled');
    sliceEnd = performance.now() + limits.searchSliceMs;
  }
  return files;
};

/** Whole lines. */
const headOf = (recorder: Recorder, path: string): string | null =>
  textOf(() => {
    const head = recorder.head(path, limits.profileFileBytes);
    return head.length < limits.profileFileBytes ? head : head.subarray(0, head.lastIndexOf(0x0a) + 1);
  });

const textOf = (read: () => Buffer): string | null => {
  try {
    const bytes = read();
    if (bytes.subarray(0, limits.sniffBytes).includes(0) || !isUtf8(bytes)) return null;
    return bytes.toString('utf8').replace(/^\ufeff/, '');
  } catch (error) {
    // Gone, a link, secret, too large, being written: it has no text here.
    if (error instanceof Refusal && !error.code.startsWith('workspace_')) return null;
    throw error;
  }
};
