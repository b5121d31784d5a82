/** The list row of a conversation, from its stored row, its header and what is true right now. Pure. */
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import type { ConversationRow } from '../ledger/contract.ts';
import { promptBlobs, promptText, type Header } from './header.ts';

export const queueTextUnits = 2000;

export const summarise = (
  row: ConversationRow,
  header: Header,
  live: Pick<ConversationSummary, 'state' | 'live' | 'pendingApprovals' | 'problem'>,
  worktree: ConversationSummary['worktree'] = undefined,
): ConversationSummary => ({
  conversationId: row.conversationId,
  workspaceId: row.workspaceId,
  workspacePath: row.workspacePath,
  ...(header.parentId === null ? {} : { parentId: header.parentId }),
  ...(worktree === undefined ? {} : { worktree }),
  ...(header.references.length === 0
    ? {}
    : { references: header.references.map(({ workspaceId, path, name }) => ({ workspaceId, path, name })) }),
  title: row.title,
  agentId: row.agentId,
  agentTitle: row.agentTitle,
  createdAt: row.createdAt,
  updatedAt: row.updatedAt,
  lastSeq: row.lastSeq,
  archived: row.archived,
  ...live,
  lastStop: row.lastStop,
  queue: header.queue.map(({ queueId, at, content }) => ({
    queueId,
    at,
    text: promptText(content).slice(0, queueTextUnits),
    attachments: promptBlobs(content).length,
  })),
  queuePaused: header.queuePaused,
  enforcement: header.enforcement,
  enforcementWhy: header.enforcementWhy,
  containment: header.containment,
  agentVersion: header.agentVersion,
  modes: [...header.modes],
  modeId: header.modeId,
  models: [...header.models],
  modelId: header.modelId,
  options: [...header.options],
  commands: [...header.commands],
  images: header.images,
  transcriptBytes: row.bytes,
  transcriptFull: row.full,
});
