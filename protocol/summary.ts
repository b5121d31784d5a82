/**
 * Header state of a conversation: a summary as the bridge gave it, brought forward by the events that followed (D-46).
 * Pure and idempotent: an event the summary already covers changes nothing. What only the bridge can know, such as
 * `problem`, stays until the next list.
 */
import { knownEvent, type AnyEvent, type Event, type EventOf } from './events.ts';
import { limits } from './limits.ts';
import type { ConversationSummary } from './methods/conversation.ts';

type Change = Partial<ConversationSummary>;

const ready = ({ data }: EventOf<'agent.ready'>): Change => ({
  live: true,
  enforcement: data.enforcement,
  enforcementWhy: data.enforcementWhy,
  containment: data.containment,
  agentVersion: data.version,
  modes: data.modes,
  modeId: data.modeId ?? null,
  models: data.models,
  modelId: data.modelId ?? null,
  options: data.options,
  images: data.images,
});

const queued = (summary: ConversationSummary, { at, data }: EventOf<'queue.added'>): Change => {
  if (summary.queue.some(({ queueId }) => queueId === data.queueId)) return {};
  const text = data.text.slice(0, limits.queuedTextUnits).toWellFormed();
  return { queue: [...summary.queue, { queueId: data.queueId, text, attachments: data.attachments?.length ?? 0, at }] };
};

const settled = (summary: ConversationSummary): Change => {
  const pendingApprovals = Math.max(0, summary.pendingApprovals - 1);
  return { pendingApprovals, ...(summary.state === 'waiting' && pendingApprovals === 0 ? { state: 'working' } : {}) };
};

const idleUnlessWorking = (summary: ConversationSummary): Change =>
  summary.state === 'starting' ? { state: 'idle' } : {};

const change = (summary: ConversationSummary, event: Event): Change => {
  switch (event.type) {
    case 'conversation.renamed':
      return { title: event.data.title };
    case 'conversation.archived':
      return { archived: event.data.archived };
    case 'conversation.closed':
      return { live: false, state: 'idle' };
    case 'conversation.limit':
      return { transcriptFull: true, transcriptBytes: event.data.bytes };
    case 'agent.started':
      return {
        live: true,
        containment: event.data.containment,
        ...(summary.state === 'idle' ? { state: 'starting' } : {}),
      };
    case 'agent.ready':
      return { ...ready(event), ...idleUnlessWorking(summary) };
    case 'agent.exited':
      return { live: false, ...idleUnlessWorking(summary) };
    case 'agent.error':
      return idleUnlessWorking(summary);
    case 'turn.started':
      return { state: 'working' };
    case 'turn.ended':
      return { state: 'idle', lastStop: event.data.stopReason };
    case 'mode':
      return { modeId: event.data.modeId };
    case 'model':
      return { modelId: event.data.modelId };
    case 'option':
      return { options: event.data.options };
    case 'commands':
      return { commands: event.data.commands };
    case 'approval.requested':
      return {
        pendingApprovals: summary.pendingApprovals + 1,
        ...(summary.state === 'working' ? { state: 'waiting' } : {}),
      };
    case 'approval.decided':
    case 'approval.withdrawn':
    case 'approval.expired':
      return settled(summary);
    case 'queue.added':
      return queued(summary, event);
    case 'queue.removed':
      return { queue: summary.queue.filter(({ queueId }) => queueId !== event.data.queueId) };
    case 'queue.paused':
      return { queuePaused: event.data.paused };
    default:
      return {};
  }
};

/** The summary after `event`; the same object when the summary already covers it. Never throws. */
export const applyEvent = (summary: ConversationSummary, event: AnyEvent): ConversationSummary => {
  if (event.seq <= summary.lastSeq) return summary;
  const readable = knownEvent(event);
  return {
    ...summary,
    ...(readable === null ? {} : change(summary, readable)),
    lastSeq: event.seq,
    updatedAt: Math.max(summary.updatedAt, event.at),
  };
};
