/**
 * git.*, checkpoint.*: what changed, read from a repository without running anything of it (F-20 to F-22), and the
 * checkpoints of the files around each turn (F-23).
 */
import { limits } from '../limits.ts';
import { count, list, sha256, text, time, uuid, z } from '../schema.ts';
import type { Method } from './method.ts';
import { rootErrors } from './workspace.ts';

/** An object name of git: SHA-1 or SHA-256, lower-case hex. */
const oid = z.string().check(z.regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/));
/** The exact bytes of a path as base64url: what an entry is asked for by, also where its name is not UTF-8. */
export const entryId = text(Math.ceil((limits.pathBytes * 4) / 3));

/** Between which two states of the files one looks. */
export const changeSource = z.discriminatedUnion('kind', [
  /** The index against HEAD, or against the empty tree before the first commit. */
  z.strictObject({ kind: z.literal('staged') }),
  /** The folder against the index; untracked and conflicting entries are here. */
  z.strictObject({ kind: z.literal('unstaged') }),
  /** A commit against its first parent. */
  z.strictObject({ kind: z.literal('commit'), commit: oid }),
  /** From the checkpoint before a turn to the one after it; to the folder as it is now while the turn runs. */
  z.strictObject({ kind: z.literal('turn'), conversationId: uuid, turnId: uuid }),
  /** `to` null is the folder as it is now. */
  z.strictObject({ kind: z.literal('checkpoints'), conversationId: uuid, from: uuid, to: z.nullable(uuid) }),
  /** What a child conversation changed in its own worktree since it was made. */
  z.strictObject({ kind: z.literal('worktree'), conversationId: uuid }),
]);
export type ChangeSource = z.infer<typeof changeSource>;

export const conflictKinds = [
  'both_deleted',
  'added_by_us',
  'deleted_by_them',
  'added_by_them',
  'deleted_by_us',
  'both_added',
  'both_modified',
] as const;

export const changeEntry = z.strictObject({
  id: entryId,
  /** For display; bytes that are not UTF-8 are shown as escapes. */
  name: text(limits.pathBytes * 4),
  /** Relative to the workspace, to open the file with; null where the name is not UTF-8 or it lies above the workspace. */
  path: z.nullable(text(limits.pathBytes)),
  state: z.enum(['added', 'modified', 'deleted', 'renamed', 'copied', 'type_changed', 'untracked', 'conflict']),
  /** Where it came from, when it was renamed or copied; `similarity` in per cent. */
  from: z.optional(z.strictObject({ id: entryId, name: text(limits.pathBytes * 4), similarity: count })),
  conflict: z.optional(z.enum(conflictKinds)),
  what: z.enum(['file', 'symlink', 'submodule']),
  /** Six octal digits; given where they differ. */
  modes: z.optional(z.strictObject({ old: text(6), new: text(6) })),
  submodule: z.optional(z.strictObject({ commitChanged: z.boolean(), modified: z.boolean(), untracked: z.boolean() })),
  /** Shown with a lock; its content answers `path_denied`. */
  secret: z.boolean(),
  /** Lines, where they were counted. */
  added: z.optional(count),
  removed: z.optional(count),
});
export type ChangeEntry = z.infer<typeof changeEntry>;
const entries = list(changeEntry, limits.gitEntries);
/** What could not be read, or not be compared, in plain sentences; never left out in silence. */
const notes = list(text(500), 50);

export const gitHead = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('branch'),
    name: text(500),
    /** Null before the first commit. */
    commit: z.nullable(oid),
    upstream: z.optional(z.strictObject({ name: text(500), ahead: count, behind: count })),
  }),
  z.strictObject({ kind: z.literal('detached'), commit: oid }),
]);
export const gitStatus = z.strictObject({
  head: gitHead,
  /** `above`: the workspace is a folder inside the repository, and only what lies in it is shown. */
  topLevel: z.enum(['here', 'above']),
  objectFormat: z.enum(['sha1', 'sha256']),
  /** What is under way: a merge, a rebase, a cherry-pick, a revert, a bisect. */
  underWay: z.nullable(z.enum(['merge', 'rebase', 'cherry_pick', 'revert', 'bisect'])),
  worktree: z.boolean(),
  sparse: z.boolean(),
  staged: entries,
  unstaged: entries,
  notes,
});
export type GitStatus = z.infer<typeof gitStatus>;

const eol = z.enum(['lf', 'crlf', 'mixed', 'none']);
export const diffHunk = z.strictObject({
  oldStart: count,
  oldLines: count,
  newStart: count,
  newLines: count,
  /** The function or heading git names beside the numbers. */
  section: text(500),
  /** Each begins with its sign: ` ` both, `-` old, `+` new, `\` no line feed at the end of the line before. */
  lines: list(text(limits.diffLineUnits), limits.diffLines),
});
export type DiffHunk = z.infer<typeof diffHunk>;
export const diffContent = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('text'),
    hunks: list(diffHunk, limits.diffLines),
    eol: z.strictObject({ old: eol, new: eol }),
    /** Nothing differs but the ends of the lines. */
    onlyEol: z.boolean(),
    /** Bytes that are not UTF-8 were replaced for display. */
    replaced: z.boolean(),
    /** Lines of the whole new and old side, for folding what is not shown. */
    lines: z.strictObject({ old: count, new: count }),
  }),
  z.strictObject({ kind: z.literal('binary'), oldBytes: z.nullable(count), newBytes: z.nullable(count) }),
  /** The sides come by `git.side`. */
  z.strictObject({
    kind: z.literal('image'),
    mime: text(64),
    oldBytes: z.nullable(count),
    newBytes: z.nullable(count),
  }),
  z.strictObject({
    kind: z.literal('symlink'),
    oldTarget: z.nullable(text(limits.pathBytes)),
    newTarget: z.nullable(text(limits.pathBytes)),
  }),
  z.strictObject({ kind: z.literal('submodule'), oldCommit: z.nullable(oid), newCommit: z.nullable(oid) }),
  /** Only the mode changed; it stands in the entry. */
  z.strictObject({ kind: z.literal('mode') }),
  z.strictObject({ kind: z.literal('secret') }),
  /** The repository would run a program to compare it (LFS and its kind), so it is not compared. */
  z.strictObject({ kind: z.literal('filtered'), filter: text(200) }),
  /** More than is sent unasked; ask again with `large`. */
  z.strictObject({ kind: z.literal('large'), lines: count, bytes: count }),
]);
export const fileDiff = z.strictObject({
  entry: changeEntry,
  content: diffContent,
  /** Of both sides: another one means that what was shown is not what is there now. */
  revision: text(200),
});
export type FileDiff = z.infer<typeof fileDiff>;

export const commitInfo = z.strictObject({
  commit: oid,
  parents: list(oid, 100),
  author: text(500),
  at: time,
  subject: text(1000),
});
export type CommitInfo = z.infer<typeof commitInfo>;

export const checkpointReasons = ['before_turn', 'after_turn', 'before_restore'] as const;
export const checkpointInfo = z.strictObject({
  checkpointId: uuid,
  conversationId: uuid,
  turnId: z.optional(uuid),
  why: z.enum(checkpointReasons),
  at: time,
  files: count,
  bytes: count,
  /** Left out: secret, not regular, unreadable, or too large; never restored, never removed. */
  skipped: count,
  /** Its content was cleared away to keep the bound; it can no longer be shown or restored. */
  pruned: z.boolean(),
});
export type CheckpointInfo = z.infer<typeof checkpointInfo>;

/** One file of a restore, or of what is brought back from a worktree. */
export const plannedWrite = z.strictObject({
  id: entryId,
  name: text(limits.pathBytes * 4),
  path: z.nullable(text(limits.pathBytes)),
  what: z.enum(['write', 'create', 'remove']),
  bytes: count,
  /** Changed by something else since: the turn ended, or the worktree was made. Null: as it was left. */
  movedOn: z.nullable(text(300)),
  /** Why it is not done, in plain words; null where it is. */
  refused: z.nullable(text(300)),
});
export type PlannedWrite = z.infer<typeof plannedWrite>;
export const writePlan = z.strictObject({
  writes: list(plannedWrite, limits.gitEntries),
  /** Binds the answer to exactly this: every path, what is there now, what will be there. */
  digest: sha256,
});
export type WritePlan = z.infer<typeof writePlan>;
export const writesDone = z.strictObject({
  receiptId: uuid,
  written: count,
  removed: count,
  /** The files as they were just before: restoring it undoes this. */
  undoCheckpointId: z.nullable(uuid),
});

const gitErrors = [
  ...rootErrors,
  'git_unavailable',
  'not_git_repository',
  'git_timeout',
  'git_output_too_large',
  'unsupported_git_state',
  'repository_changed',
] as const;
export const sourceErrors = [
  ...gitErrors,
  'unknown_conversation',
  'checkpoint_unavailable',
  'checkpoint_too_large',
  'not_found',
] as const;
const entryErrors = [
  ...sourceErrors,
  'path_denied',
  'symlink_refused',
  'content_too_large',
  'unsupported_filename_encoding',
] as const;

export const gitMethods = {
  'checkpoint.list': {
    params: z.strictObject({ conversationId: uuid }),
    /** Newest first. */
    result: z.strictObject({
      checkpoints: list(checkpointInfo, limits.checkpoints),
      /** Why none are made here, in plain words; null where they are. */
      absent: z.nullable(text(500)),
    }),
    capability: 'git',
    mutates: false,
    errors: ['unknown_conversation'],
  },
  /** What a restore would do, file by file. `ids` absent: the whole. */
  'checkpoint.plan': {
    params: z.strictObject({
      conversationId: uuid,
      checkpointId: uuid,
      ids: z.optional(list(entryId, limits.gitEntries)),
    }),
    result: writePlan,
    capability: 'git',
    mutates: false,
    errors: [...sourceErrors],
  },
  /** Does exactly what `digest` stands for, after a checkpoint of the files as they are; or nothing. */
  'checkpoint.restore': {
    params: z.strictObject({
      conversationId: uuid,
      checkpointId: uuid,
      ids: z.optional(list(entryId, limits.gitEntries)),
      digest: sha256,
    }),
    result: writesDone,
    capability: 'git',
    mutates: true,
    errors: [...sourceErrors, 'turn_active', 'digest_mismatch', 'worktree_moved', 'path_denied', 'symlink_refused'],
  },
  'git.changes': {
    params: z.strictObject({ workspaceId: uuid, of: changeSource }),
    result: z.strictObject({ entries, notes }),
    capability: 'git',
    mutates: false,
    errors: [...sourceErrors],
  },
  'git.diff': {
    params: z.strictObject({
      workspaceId: uuid,
      of: changeSource,
      id: entryId,
      /** Of a renamed entry, where it came from. */
      fromId: z.optional(entryId),
      /** Unchanged lines around each change; 3 where absent. */
      context: z.optional(count),
      /** Also what is too large to be sent unasked. */
      large: z.optional(z.boolean()),
    }),
    result: fileDiff,
    capability: 'git',
    mutates: false,
    errors: [...entryErrors],
  },
  'git.log': {
    params: z.strictObject({
      workspaceId: uuid,
      path: z.optional(text(limits.pathBytes)),
      skip: z.optional(count),
      limit: z.optional(count),
    }),
    result: z.strictObject({ commits: list(commitInfo, limits.gitCommits), more: z.boolean() }),
    capability: 'git',
    mutates: false,
    errors: [...gitErrors, 'invalid_path'],
  },
  'git.show': {
    params: z.strictObject({ workspaceId: uuid, commit: oid }),
    result: z.strictObject({ info: commitInfo, message: text(64 * 1024), entries, notes }),
    capability: 'git',
    mutates: false,
    errors: [...gitErrors, 'not_found'],
  },
  /** One side of an entry: an image to look at, or lines to unfold. */
  'git.side': {
    params: z.strictObject({
      workspaceId: uuid,
      of: changeSource,
      id: entryId,
      side: z.enum(['old', 'new']),
      /** From 1. */
      firstLine: z.optional(count),
      lines: z.optional(count),
    }),
    result: z.discriminatedUnion('kind', [
      z.strictObject({
        kind: z.literal('text'),
        firstLine: count,
        lines: list(text(limits.diffLineUnits), limits.readLines),
        total: count,
      }),
      z.strictObject({ kind: z.literal('image'), mime: text(64), dataUrl: text(limits.frameBytes) }),
    ]),
    capability: 'git',
    mutates: false,
    errors: [...entryErrors, 'unsupported_file_type'],
  },
  'git.status': {
    params: z.strictObject({ workspaceId: uuid }),
    result: gitStatus,
    capability: 'git',
    mutates: false,
    errors: [...gitErrors],
  },
} as const satisfies Record<string, Method>;
