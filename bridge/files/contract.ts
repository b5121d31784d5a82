/** What the files room gives: the only opener of workspace paths, and the registry of workspaces on top of it. */
import type { Answer, Params } from '#protocol/methods.ts';
import type {
  FileEntry,
  FileRead,
  FoundLine,
  WorkspaceMap,
  WorkspaceProfile,
  WorkspaceSummary,
} from '#protocol/methods/workspace.ts';
import type { z } from '#protocol/schema.ts';
import type { fileStat } from '#protocol/methods/workspace.ts';
import type { Wanted } from './pattern.ts';

export interface SearchPage {
  readonly lines: FoundLine[];
  /** Looked at so far, and left out because they are no UTF-8 text, too large or secret. */
  readonly files: number;
  readonly bytes: number;
  readonly skipped: number;
  readonly ended: boolean;
  readonly stopped: 'lines' | 'files' | 'bytes' | 'slow' | null;
}
export interface Search {
  /** Soon, with what was found since the call before. Ends the search when `signal` aborts. @throws Refusal cancelled */
  next(signal: AbortSignal): Promise<SearchPage>;
  end(): void;
}
export interface Watch {
  readonly watched: number;
  /** Not taken by the system; looked at from time to time. */
  readonly polled: number;
  close(): void;
}
/** What one attachment has going on: one search and one watch, ended with it. */
export interface Looks {
  grep(
    attachmentId: string,
    root: Root,
    params: Params<'files.grep'>,
    signal: AbortSignal,
  ): Promise<Answer<'files.grep'>>;
  watch(attachmentId: string, root: Root, folders: readonly string[], file: string | undefined): Answer<'files.watch'>;
}

/** One entry met by a survey; valid only inside the call it is given to. */
export interface Surveyed {
  readonly path: string;
  readonly type: 'file' | 'directory' | 'symlink' | 'other';
  /** Of a symlink, where it leads by its text alone. */
  link(): { readonly target: string; readonly place: 'inside' | 'outside' | 'missing' };
  /** What tells this state of the file from another. @throws Refusal as the walk */
  revision(): string;
  /** The first bytes of a regular file, whatever the secret policy says: for a review, never for display. @throws Refusal as the walk */
  head(maxBytes: number): { readonly bytes: Buffer; readonly size: number; readonly revision: string };
}

/** What is at a path, told without opening it. `changedAt`: the later of both times, ms. */
export type FileState =
  | {
      readonly kind: 'file';
      readonly revision: string;
      readonly changedAt: number;
      readonly bytes: number;
      readonly executable: boolean;
    }
  | { readonly kind: 'symlink'; readonly revision: string; readonly changedAt: number; readonly target: Buffer }
  | { readonly kind: 'folder' | 'other' | 'secret' | 'unreadable' };

/** What is put at a path. A link is made as it is; `Recorder.isSafeLink` judges it before. */
export type EntryContent =
  | { readonly kind: 'file'; readonly bytes: Uint8Array; readonly executable: boolean }
  | { readonly kind: 'symlink'; readonly target: Buffer };

/**
 * Looks at many files of one moment, by the walk and the secret policy of `Root`; what is secret under
 * another name is established once for all of them. To be used at once and not kept.
 */
export interface Recorder {
  /** By name, null where there is nothing. @throws Refusal workspace_unavailable */
  states(folder: string, names: readonly string[]): (FileState | null)[];
  /** Exact bytes with the state they belong to. @throws Refusal as the walk, file_changed, content_too_large */
  read(path: string, maxBytes: number): { readonly bytes: Buffer; readonly revision: string };
  /** The first bytes. @throws Refusal as `read` */
  head(path: string, maxBytes: number): Buffer;
  /** A link there with this text would lead to something in the workspace that is not secret. */
  isSafeLink(path: string, target: Buffer): boolean;
}

/** A workspace root held by descriptor, device and inode. Paths below are relative, forward slashes, '' is the root. */
export interface Root {
  readonly workspaceId: string;
  readonly path: string;
  readonly dev: string;
  readonly ino: string;
  /** sha256 over canonical path, dev, ino. */
  readonly rootSha256: string;
  /** @throws Refusal workspace_changed, workspace_unavailable when the path no longer leads to this directory. */
  check(): void;
  list(
    path: string,
    cursor?: string,
    /** With a cursor: any place of the same list. */
    from?: number,
  ): { entries: FileEntry[]; cursor: string | null; total: number; truncated: boolean };
  stat(path: string): z.infer<typeof fileStat>;
  /** A directory for a process to begin in: its path, and what must be found there (`dev`, `ino`). @throws as list */
  directory(path: string): { path: string; dev: string; ino: string };
  read(
    path: string,
    options?: {
      offset?: number | undefined;
      /** From 1, instead of an offset. */
      line?: number | undefined;
      revision?: string | undefined;
      encoding?: 'utf-16le' | 'utf-16be' | 'windows-1252' | undefined;
      reveal?: boolean;
    },
  ): FileRead;
  /** Whole text (a BOM stays in it) of a UTF-8 file for an agent's read or an approval's diff; null where there is no file. Secret policy applies. */
  readText(path: string, maxBytes: number): { text: string; revision: string; bytes: number; bom: boolean } | null;
  /** Exact bytes of a file for hashing or an approval; null where there is no file. `reveal` skips the secret policy only: for digests, never for display. */
  readBytes(
    path: string,
    maxBytes: number,
    options?: { reveal?: boolean },
  ): { bytes: Uint8Array; revision: string } | null;
  /** Atomic: temp in the same directory by descriptor, fsync, rename, fsync directory; keeps mode bits. `expect` null: must not exist. */
  write(path: string, bytes: Uint8Array, expect: string | null): { revision: string; sha256: string };
  /** @throws Refusal workspace_changed, workspace_unavailable */
  recorder(): Recorder;
  /**
   * For restores: the same guarded write, also over a link that was seen (`expect`: its revision) and never through one,
   * with the executable bit as given. Returns the new revision.
   */
  put(path: string, content: EntryContent, expect: string | null): string;
  /** Removes the file or link that was seen, and the folders above it that this empties. */
  remove(path: string, expect: string): void;
  /** Absolute or relative agent path → relative to the root, or null where it lies outside. Grammar only, opens nothing. */
  relative(path: string): string | null;
  isSecret(path: string): boolean;
  search(
    query: string,
    limit: number,
    signal: AbortSignal,
  ): Promise<{ matches: { path: string; type: 'file' | 'directory' }[]; truncated: boolean }>;
  /**
   * Every entry below the root, nearest first and by name, `.git` and secret files too; nothing is followed or opened.
   * A folder for which `visit` answers false is not entered. Never holds the loop for more than `limits.searchSliceMs`
   * and one call of `visit`. `truncated`: folders or entries were left out. @throws Refusal cancelled, workspace_changed
   */
  survey(visit: (entry: Surveyed) => boolean, signal: AbortSignal): Promise<{ entries: number; truncated: boolean }>;
  /** One search in contents, going on until `end` or silence. @throws Refusal invalid_pattern */
  grep(wanted: Wanted): Search;
  /** Until `close`, also of this root. Folders that are not there are left out. @throws Refusal invalid_path */
  watch(folders: readonly string[], file: string | undefined, changed: () => void): Watch;
  /** Commit id read from .git/HEAD by the walker, or null. */
  gitHead(): string | null;
  close(): void;
}

/** What excerpts are looked for: the words of a message, and files that are named beside it. */
export interface About {
  readonly text: string;
  readonly paths: readonly string[];
}

export interface Workspaces {
  list(): WorkspaceSummary[];
  open(where: { path: string } | { practice: true }): Promise<WorkspaceSummary>;
  create(parent: string, name: string): Promise<WorkspaceSummary>;
  /** The live root, lease held. @throws Refusal workspace_unknown, workspace_changed, workspace_unavailable, workspace_leased */
  root(workspaceId: string): Root;
  /** The live root of a workspace that is open; null for any other: never opens one. @throws Refusal workspace_changed, workspace_unavailable */
  held(workspaceId: string): Root | null;
  close(workspaceId: string): Promise<void>;
  forget(workspaceId: string): Promise<void>;
  /** Practice only. */
  reset(workspaceId: string): Promise<WorkspaceSummary>;
  /** `trusted`: whether text of its files may be part of it. @throws Refusal as `root`, cancelled */
  profile(workspaceId: string, trusted: boolean, signal: AbortSignal): Promise<WorkspaceProfile>;
  /** As `profile`. */
  map(workspaceId: string, trusted: boolean, signal: AbortSignal): Promise<WorkspaceMap>;
  /** As `profile`; none where it is not trusted. */
  excerpts(
    workspaceId: string,
    trusted: boolean,
    about: About,
    signal: AbortSignal,
  ): Promise<Answer<'workspace.excerpts'>>;
  browse(path: string): {
    path: string;
    parent: string | null;
    entries: { name: string; path: string; repository: boolean }[];
    truncated: boolean;
  };
  closeAll(): void;
}
