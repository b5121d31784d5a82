/**
 * The closed list of error codes: each with the sentence a person reads and whether a plain retry can help.
 * A Refusal is the only error that crosses a seam; anything else becomes internal_error with a correlation id.
 * The cause stays behind (it is logged); the message is public and never echoes a value it was given.
 */
export const errors = {
  // connection
  bad_request: ['This request was not understood. Reload the app; if it happens again, report it.', false],
  not_initialized: ['The connection has not been opened yet.', false],
  unsupported_version: ['The app and the bridge are of different versions. Reload to update.', false],
  unsupported_capability: ['The bridge does not offer this here.', false],
  rate_limited: ['Too many requests at once. It will be tried again in a moment.', true],
  frame_too_large: ['This is too large to send in one piece.', false],
  unauthorized: ['You are signed out. Run "bridge open" in a terminal to sign in.', false],
  forbidden: ['This is not allowed from here.', false],
  cancelled: ['Cancelled.', false],
  internal_error: ['Something went wrong in the bridge. Nothing acknowledged was lost; details are in its log.', false],
  /** Said by the client itself: there is no bridge to ask, or it did not answer. */
  offline: ['The bridge cannot be reached. Nothing was sent.', true],
  read_only: ['The bridge cannot write to its storage, so it is read-only. Free disk space, then restart it.', false],
  storage_refused: ['The storage of the bridge cannot be used as it is.', false],
  // operations
  invalid_key: ['This change carries no valid operation key.', false],
  idempotency_conflict: ['This operation key was already used for something else.', false],
  uncertain: ['It is not known whether this happened before the bridge stopped. Look before you repeat it.', false],
  // conversations
  unknown_conversation: ['This conversation does not exist, or was deleted.', false],
  conversation_active: ['This conversation is still active. Stop it first.', false],
  turn_active: ['The agent is still working. Stop it or queue the message.', false],
  no_turn: ['Nothing is running in this conversation.', false],
  transcript_full: ['This transcript has reached its size limit. Continue in a new conversation.', false],
  invalid_fork_point: ['A conversation cannot be forked there.', false],
  queue_full: ['The queue of this conversation is full.', false],
  // agents
  unknown_agent: ['No agent of that name is set up.', false],
  agent_missing: ['This agent is not installed.', false],
  agent_start_failed: ['The agent did not start.', false],
  agent_auth_required: ['The agent is not signed in.', false],
  agent_protocol_error: ['The agent sent something that is not ACP.', false],
  agent_gone: ['The agent process has ended. The transcript is safe; send a message to start it again.', false],
  agent_limit: ['As many agents as allowed are running. Close one first.', false],
  resume_failed: ['The agent could not take this conversation up again. The transcript is safe.', false],
  // approvals
  unknown_approval: ['This approval does not exist.', false],
  approval_already_decided: ['This was already decided.', false],
  approval_expired: ['This approval expired; the agent was told no.', false],
  approval_withdrawn: ['This approval was withdrawn; nothing was approved.', false],
  digest_mismatch: ['The action changed after it was shown. Review it again.', false],
  decision_not_offered: ['That answer was not offered for this approval.', false],
  invalid_proof: ['The decision was not signed by this session.', false],
  stale_policy: ['The rules changed while this was open. Review it again.', false],
  unknown_rule: ['This rule does not exist.', false],
  invalid_rule: ['This rule cannot be saved.', false],
  unsafe_key: ['The signing key of the receipts is not safe to use.', false],
  unknown_receipt: ['This receipt does not exist.', false],
  // workspace
  workspace_unknown: ['This workspace is not open.', false],
  workspace_unavailable: ['The folder of this workspace cannot be reached.', false],
  workspace_leased: ['Another bridge is using this workspace.', false],
  reference_closed: ['This conversation may read this folder, but it is not open as a workspace now.', false],
  workspace_changed: ['The folder of this workspace was replaced. Open it again.', false],
  not_trusted: ['The trust review of this folder found something that must be looked at first.', false],
  invalid_path: ['This is not a valid path.', false],
  path_denied: ['This file is kept secret from the app and from agents.', false],
  symlink_refused: ['This path leads through a symbolic link, which is not followed.', false],
  not_found: ['There is nothing at this path.', false],
  already_exists: ['There is already something at this path.', false],
  not_a_file: ['This is not a regular file.', false],
  not_a_directory: ['This is not a folder.', false],
  unsupported_file_type: ['This kind of file is not opened.', false],
  unsupported_filename_encoding: ['The name of this file is not valid UTF-8.', false],
  binary_file: ['This is a binary file.', false],
  invalid_pattern: ['This is not a regular expression that can be searched for.', false],
  invalid_encoding: ['This file is not valid UTF-8.', false],
  content_too_large: ['This is too large.', false],
  file_changed: ['The file changed since it was shown.', false],
  // git
  git_unavailable: ['Git is not installed, or does not start.', false],
  not_git_repository: ['This folder is not in a git repository.', false],
  git_timeout: ['Git took too long. Nothing was changed.', true],
  git_output_too_large: ['There is more here than can be shown at once.', false],
  unsupported_git_state: ['This repository is of a kind that cannot be read safely.', false],
  repository_changed: ['The repository changed while it was read.', true],
  checkpoint_unavailable: ['This checkpoint does not exist any more.', false],
  checkpoint_too_large: ['This folder is too large for checkpoints.', false],
  worktree_unsaved: ['This worktree has changes that were not brought back.', false],
  worktree_moved: ['The files changed since this was shown. Nothing was written; look again.', false],
  // terminals
  terminal_limit: ['As many terminals as allowed are open. Close one first.', false],
  terminal_gone: ['This terminal does not exist any more.', false],
  // delivery
  unknown_subscription: ['This conversation is not subscribed to.', false],
  unknown_cursor: ['This place in the log is not known.', false],
  snapshot_required: ['The log was replaced; load it anew.', false],
  integrity_error: ['What was received contradicts what was received before.', false],
  // blobs
  blob_unknown: ['This attachment does not exist.', false],
  blob_unsupported: ['This kind of attachment is not supported.', false],
} as const satisfies Record<string, readonly [message: string, retryable: boolean]>;

export type ErrorCode = keyof typeof errors;
export const errorCodes = Object.keys(errors) as readonly ErrorCode[];
export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errors, code);

/** What may be said about an error beside its code; short safe strings and numbers only. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null>>;

/** A refusal with a public sentence. `cause` is logged, never sent. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails | undefined;

  constructor(code: ErrorCode, options: { message?: string; details?: ErrorDetails; cause?: unknown } = {}) {
    super(options.message ?? errors[code][0], { cause: options.cause });
    this.name = 'Refusal';
    this.code = code;
    this.details = options.details;
  }

  get retryable(): boolean {
    return errors[this.code][1];
  }
}

/** WebSocket close codes: one table for both ends. */
export const closeCodes = {
  done: 1000,
  stopping: 1001,
  signedOut: 1008,
  tooLarge: 1009,
  internal: 1011,
  tooSlow: 1013,
  incompatible: 4001,
  rate: 4002,
} as const;
