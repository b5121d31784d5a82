/** workspace.*, files.*: directories the operator opened and what may be read there. */
import { limits } from '../limits.ts';
import { count, list, name, sha256, text, time, uuid, z } from '../schema.ts';
import type { Method } from './method.ts';

const path = text(limits.pathBytes);
/** Relative to the workspace root, forward slashes; empty is the root itself. */
const relative = text(limits.pathBytes);

export const workspaceSummary = z.strictObject({
  workspaceId: uuid,
  path,
  /** Last component, for people. */
  name: text(limits.nameBytes),
  practice: z.boolean(),
  open: z.boolean(),
  openedAt: time,
  conversations: count,
  /** Why it cannot be used right now, or null. */
  problem: z.nullable(z.enum(['workspace_unavailable', 'workspace_changed', 'workspace_leased'])),
});
export type WorkspaceSummary = z.infer<typeof workspaceSummary>;

const profileNames = list(text(limits.pathBytes), limits.profileNames);
/** What a workspace is, derived without running anything of it (W-05). */
export const workspaceProfile = z.strictObject({
  workspaceId: uuid,
  name: text(limits.nameBytes),
  kind: text(100),
  stack: profileNames,
  manifests: profileNames,
  topLevel: list(
    z.strictObject({ name: text(1024), type: z.enum(['file', 'directory', 'symlink', 'other']) }),
    limits.profileNames,
  ),
  notable: profileNames,
  gitHead: z.nullable(text(64)),
  files: count,
  truncated: z.boolean(),
  /** Its beginning; null where there is none, or the folder is not trusted. */
  readme: z.nullable(text(limits.profileFileBytes)),
  trusted: z.boolean(),
  /** All of it as one text, for an attachment the operator sees. */
  text: text(limits.profileBytes),
});
export type WorkspaceProfile = z.infer<typeof workspaceProfile>;

/** Where what is in a workspace (W-05): hints from patterns, of no other standing. */
export const workspaceMap = z.strictObject({
  workspaceId: uuid,
  trusted: z.boolean(),
  files: count,
  truncated: z.boolean(),
  /** Those with files in them, nearest first. No symbols and imports while the folder is not trusted. */
  directories: list(
    z.strictObject({
      path: relative,
      files: count,
      languages: list(z.tuple([text(40), count]), 40),
      /** Exported ones first. */
      symbols: list(text(80), limits.mapNames),
      /** Other directories of the workspace, which begin with `./`, and packages. */
      imports: list(text(limits.pathBytes), limits.mapNames),
    }),
    limits.profileFiles,
  ),
  /** All of it as one text, for an attachment the operator sees. */
  text: text(limits.mapBytes),
});
export type WorkspaceMap = z.infer<typeof workspaceMap>;

/** Lines of a file that a message is about, word for word. */
export const excerpt = z.strictObject({
  path: relative,
  /** Lines from 1, both included. */
  from: count,
  to: count,
  /** The text names the file, names a line of it, or names what is defined there; or the page named the file. */
  why: z.enum(['named', 'line', 'defines', 'changed']),
  text: text(limits.excerptBytes),
});
export type Excerpt = z.infer<typeof excerpt>;

export const fileEntry = z.strictObject({
  /** For display: never a substitute for the bytes of the name. */
  name: text(1024),
  /** Relative path to open it with; null where the name is not UTF-8. */
  path: z.nullable(relative),
  type: z.enum(['file', 'directory', 'symlink', 'other']),
  bytes: count,
  modifiedAt: time,
  /** Listed with a lock; its content answers `path_denied`. */
  secret: z.boolean(),
  link: z.optional(z.strictObject({ target: text(limits.pathBytes), place: z.enum(['inside', 'outside', 'missing']) })),
  /** More than one hard link: writing replaces this name only. */
  shared: z.optional(z.boolean()),
  /** Named by an ignore file; shown dimmed. */
  ignored: z.optional(z.boolean()),
});
export type FileEntry = z.infer<typeof fileEntry>;

/** Guards against change during and between reads: dev, ino, size, mtime in nanoseconds, as opaque text. */
export const revision = text(128);

export const fileStat = z.strictObject({
  path: relative,
  type: z.enum(['file', 'directory', 'symlink', 'other']),
  bytes: count,
  modifiedAt: time,
  secret: z.boolean(),
  revision,
});

export const fileRead = z.strictObject({
  path: relative,
  revision,
  bytes: count,
  modifiedAt: time,
  content: z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('text'),
      text: text(limits.readBytes),
      encoding: z.enum(['utf-8', 'utf-16le', 'utf-16be', 'windows-1252']),
      /** Other encodings than UTF-8 are a labelled preview. */
      preview: z.boolean(),
      bom: z.boolean(),
      eol: z.enum(['lf', 'crlf', 'mixed', 'none']),
      firstLine: count,
      lines: count,
      /** Byte offset to go on at, or null at the end. */
      nextOffset: z.nullable(count),
      totalLines: z.nullable(count),
    }),
    z.strictObject({
      kind: z.literal('image'),
      mime: text(64),
      sha256,
      bytes: count,
      dataUrl: z.optional(text(limits.readBytes)),
    }),
    z.strictObject({
      kind: z.literal('binary'),
      sniff: text(64),
      /** The first bytes, base64. */
      head: z.optional(text(Math.ceil((limits.binaryHeadBytes * 4) / 3) + 4)),
    }),
  ]),
});
export type FileRead = z.infer<typeof fileRead>;

/** One line of a file that matches, and where. Lines above the bound are shown around their first match. */
export const foundLine = z.strictObject({
  path: relative,
  line: count,
  text: text(limits.grepLineUnits),
  /** UTF-16 units left out in front, and whether the line goes on behind. */
  from: count,
  more: z.boolean(),
  /** Start and length of each match, in UTF-16 units of `text`. */
  marks: list(z.tuple([count, count]), limits.grepMarks),
});
export type FoundLine = z.infer<typeof foundLine>;

/** Any use of a workspace takes its lease when it is not held yet. */
export const rootErrors = [
  'workspace_unknown',
  'workspace_changed',
  'workspace_unavailable',
  'workspace_leased',
] as const;
/** Any look at a path below a workspace. */
export const pathErrors = [...rootErrors, 'invalid_path', 'path_denied', 'symlink_refused', 'not_found'] as const;

export const workspaceMethods = {
  /**
   * Search in contents: begins with a query, goes on with a cursor. Each call answers soon with what was found since the
   * one before. One for each attachment: another one ends it, and so does silence.
   */
  'files.grep': {
    params: z.strictObject({
      workspaceId: uuid,
      query: text(limits.grepQueryUnits),
      regexp: z.optional(z.boolean()),
      matchCase: z.optional(z.boolean()),
      word: z.optional(z.boolean()),
      /** Comma-separated patterns as in an ignore file; `!` in front leaves out. */
      include: z.optional(text(limits.grepQueryUnits)),
      cursor: z.optional(text(64)),
    }),
    result: z.strictObject({
      lines: list(foundLine, limits.grepPage),
      /** Looked at so far, and left out because they are no UTF-8 text, too large or secret. */
      files: count,
      bytes: count,
      skipped: count,
      /** Null at the end. */
      cursor: z.nullable(text(64)),
      /** Why it ended early: more lines, files or bytes than the bounds, or a pattern that takes too long. */
      stopped: z.nullable(z.enum(['lines', 'files', 'bytes', 'slow'])),
    }),
    capability: 'files.read',
    mutates: false,
    errors: [...rootErrors, 'invalid_pattern', 'unknown_cursor'],
  },
  'files.list': {
    params: z.strictObject({
      workspaceId: uuid,
      path: relative,
      cursor: z.optional(text(64)),
      /** With a cursor: any place of the same list instead of the next. */
      from: z.optional(count),
    }),
    result: z.strictObject({
      entries: list(fileEntry, limits.directoryPage),
      cursor: z.nullable(text(64)),
      total: count,
      truncated: z.boolean(),
    }),
    capability: 'files.read',
    mutates: false,
    errors: [...pathErrors, 'not_a_directory', 'unknown_cursor'],
  },
  'files.read': {
    params: z.strictObject({
      workspaceId: uuid,
      path: relative,
      offset: z.optional(count),
      /** Instead of an offset: the line to begin at, from 1; at the end of the file where it has fewer. */
      line: z.optional(count),
      /** Answer `file_changed` when the file is of another revision. */
      revision: z.optional(revision),
      /** Read as this encoding, as a labelled preview. */
      encoding: z.optional(z.enum(['utf-16le', 'utf-16be', 'windows-1252'])),
    }),
    result: fileRead,
    capability: 'files.read',
    mutates: false,
    errors: [
      ...pathErrors,
      'not_a_file',
      'unsupported_file_type',
      'invalid_encoding',
      'content_too_large',
      'file_changed',
    ],
  },
  /** One-time sight of a secret file by the operator: an action with a receipt, logged, never given to an agent. */
  'files.reveal': {
    params: z.strictObject({ workspaceId: uuid, path: relative }),
    result: fileRead,
    capability: 'files.reveal',
    mutates: true,
    errors: [...pathErrors, 'not_a_file', 'unsupported_file_type', 'content_too_large'],
  },
  /** Fuzzy search of file names below the root, for @ mentions and the palette. */
  'files.search': {
    params: z.strictObject({ workspaceId: uuid, query: text(200), limit: z.optional(count) }),
    result: z.strictObject({
      matches: list(z.strictObject({ path: relative, type: z.enum(['file', 'directory']) }), 200),
      truncated: z.boolean(),
    }),
    capability: 'files.read',
    mutates: false,
    errors: [...rootErrors],
  },
  'files.stat': {
    params: z.strictObject({ workspaceId: uuid, path: relative }),
    result: fileStat,
    capability: 'files.read',
    mutates: false,
    errors: [...pathErrors],
  },
  /**
   * What the attachment looks at: `invalidate` of `files` follows when something there changed. Replaces what was watched
   * before; nothing is watched with empty lists, and after the attachment.
   */
  'files.watch': {
    params: z.strictObject({
      workspaceId: uuid,
      folders: list(relative, limits.watchedFolders),
      file: z.optional(relative),
    }),
    /** `polled` were not taken by the system, which has a bound of its own; they are looked at from time to time. */
    result: z.strictObject({ watched: count, polled: count }),
    capability: 'files.read',
    mutates: false,
    errors: [...rootErrors, 'invalid_path'],
  },
  /** Directories only, for the operator's folder picker; absolute path, home when empty. */
  'workspace.browse': {
    params: z.strictObject({ path }),
    result: z.strictObject({
      path,
      parent: z.nullable(path),
      entries: list(z.strictObject({ name: text(limits.nameBytes), path, repository: z.boolean() }), 1000),
      truncated: z.boolean(),
    }),
    capability: 'workspace',
    mutates: false,
    errors: ['invalid_path', 'not_found', 'not_a_directory', 'path_denied'],
  },
  'workspace.close': {
    params: z.strictObject({ workspaceId: uuid, force: z.optional(z.boolean()) }),
    result: z.strictObject({}),
    capability: 'workspace',
    mutates: true,
    errors: ['workspace_unknown', 'conversation_active'],
  },
  /** New folder inside `parent`, opened at once. */
  'workspace.create': {
    params: z.strictObject({ parent: path, name: name(limits.nameBytes) }),
    result: workspaceSummary,
    capability: 'workspace',
    mutates: true,
    errors: ['invalid_path', 'not_found', 'not_a_directory', 'already_exists', 'workspace_leased'],
  },
  /** What a message is about, proposed for an attachment. None while the folder is not trusted. */
  'workspace.excerpts': {
    params: z.strictObject({
      workspaceId: uuid,
      /** The message so far. */
      text: text(limits.promptBytes),
      /** Files it is known to be about: mentioned in it, or changed by the turn before. */
      paths: list(relative, limits.excerptPaths),
    }),
    result: z.strictObject({
      workspaceId: uuid,
      trusted: z.boolean(),
      excerpts: list(excerpt, limits.excerpts),
      /** Looked at. */
      files: count,
      /** There is more than was looked at, or than is told. */
      truncated: z.boolean(),
    }),
    capability: 'files.read',
    mutates: false,
    errors: [...rootErrors],
  },
  /** Leaves the recent list; its conversations stay. */
  'workspace.forget': {
    params: z.strictObject({ workspaceId: uuid }),
    result: z.strictObject({}),
    capability: 'workspace',
    mutates: true,
    errors: ['workspace_unknown', 'conversation_active'],
  },
  'workspace.list': {
    params: z.strictObject({}),
    result: z.strictObject({ workspaces: list(workspaceSummary, 500) }),
    capability: 'workspace',
    mutates: false,
    errors: [],
  },
  /** As an attachment to a message. */
  'workspace.map': {
    params: z.strictObject({ workspaceId: uuid }),
    result: workspaceMap,
    capability: 'files.read',
    mutates: false,
    errors: [...rootErrors],
  },
  'workspace.open': {
    /** A path, or the practice workspace. */
    params: z.strictObject({ path: z.optional(path), practice: z.optional(z.boolean()) }),
    result: workspaceSummary,
    capability: 'workspace',
    mutates: true,
    errors: [
      'invalid_path',
      'not_found',
      'not_a_directory',
      'path_denied',
      'workspace_leased',
      'workspace_unavailable',
    ],
  },
  /** For the sheet of a new conversation, and as an attachment to a message. */
  'workspace.profile': {
    params: z.strictObject({ workspaceId: uuid }),
    result: workspaceProfile,
    capability: 'files.read',
    mutates: false,
    errors: [...rootErrors],
  },
  /** Restores the practice workspace to its template; only that directory and its rows. */
  'workspace.reset': {
    params: z.strictObject({ workspaceId: uuid }),
    result: workspaceSummary,
    capability: 'workspace',
    mutates: true,
    errors: ['workspace_unknown', 'conversation_active', 'forbidden', 'symlink_refused'],
  },
} as const satisfies Record<string, Method>;
