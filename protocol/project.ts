/**
 * The projector (D-46): the events of one block in, the view of that block out. Pure: the same events give the same
 * view whatever order their pages came in, and nothing an event holds can make it throw; what this version cannot
 * read becomes a row that says so. Read by the app and the CLI, which never reduce events themselves.
 */
import { knownEvent, type AnyEvent, type Event, type EventData } from './events.ts';
import type { Draft } from './frames.ts';
import {
  approval,
  closeTools,
  decided,
  message,
  messageKey,
  notice,
  place,
  plan,
  receipt,
  resolve,
  tool,
  unreadable,
  type Work,
} from './rows.ts';
import type { BlockView, DividerRow, Entry, MessageRow, NoticeRow } from './view.ts';

/** Schema checks are most of the cost of a projection and an event never changes: each object is checked once. */
const checked = new WeakMap<AnyEvent, Event | null>();
const known = (event: AnyEvent): Event | null => {
  const before = checked.get(event);
  if (before !== undefined) return before;
  const result = knownEvent(event);
  checked.set(event, result);
  return result;
};

/** Ascending by seq, each place in the log once. Returns the list itself when it is already so. */
export const inOrder = (events: readonly AnyEvent[]): readonly AnyEvent[] => {
  let ascending = true;
  for (let index = 1; index < events.length && ascending; index += 1) {
    ascending = (events[index - 1] as AnyEvent).seq < (events[index] as AnyEvent).seq;
  }
  if (ascending) return events;
  return [...events]
    .sort((a, b) => a.seq - b.seq || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
    .filter((event, index, all) => event.seq !== all[index - 1]?.seq);
};

const exitLevels = {
  stopped: 'info',
  idle: 'info',
  bridge_stopped: 'info',
  exited: 'warn',
  bridge_killed: 'warn',
  crashed: 'error',
} as const satisfies Record<EventData<'agent.exited'>['reason'], NoticeRow['level']>;

/** For events that carry no sentence of their own; the app may say more by the notice's code. */
const closedSentences = {
  operator: 'The agent was closed. The transcript stays.',
  bridge_stopped: 'The bridge was stopped, and the agent with it. The transcript stays.',
  idle: 'The agent was closed because nothing was asked of it. The transcript stays.',
} as const satisfies Record<EventData<'conversation.closed'>['by'], string>;
const trustSentences = {
  accepted: 'The findings of the trust review of this folder were accepted.',
  changed: 'The findings of the trust review of this folder changed; the former acceptance does not count any more.',
  none_found: 'The trust review of this folder found nothing.',
  withdrawn: 'The acceptance of the trust review of this folder was withdrawn.',
} as const satisfies Record<EventData<'trust.changed'>['state'], string>;

const apply = (work: Work, event: Event): void => {
  switch (event.type) {
    case 'turn.started':
      work.turnId ??= event.turnId ?? null;
      work.startedAt ??= event.at;
      work.ended = null;
      return;
    case 'turn.ended': {
      const { stopReason, durationMs, sentence, changedPaths } = event.data;
      closeTools(work, event.at, stopReason);
      work.ended = {
        at: event.at,
        stopReason,
        durationMs,
        ...(sentence === undefined ? {} : { sentence }),
        changedPaths,
      };
      return;
    }
    case 'message':
      return message(work, event);
    case 'tool.called':
    case 'tool.updated':
      return tool(work, event);
    case 'plan':
      return plan(work, event);
    case 'usage':
      work.usage = event.data;
      return;
    case 'approval.requested':
      return approval(work, event);
    case 'approval.decided':
      return resolve(work, event, decided(event));
    case 'approval.withdrawn':
      return resolve(work, event, { state: 'withdrawn', at: event.at, reason: event.data.reason });
    case 'approval.expired': {
      const { receiptId } = event.data;
      return resolve(work, event, {
        state: 'expired',
        at: event.at,
        ...(receiptId === undefined ? {} : { receiptId }),
      });
    }
    case 'receipt':
      return receipt(work, event);
    case 'agent.error':
      return notice(work, event, 'error', event.data.code, event.data.sentence, {
        mend: event.data.mend,
        mendCommand: event.data.mendCommand,
      });
    case 'agent.exited':
      return notice(work, event, exitLevels[event.data.reason], `agent_${event.data.reason}`, event.data.sentence);
    case 'agent.contextLost':
      place<DividerRow>(work, `seq:${event.seq}`, event, {
        kind: 'divider',
        code: 'context_lost',
        sentence: event.data.sentence,
      });
      return;
    case 'agent.resumed':
      place<DividerRow>(work, `seq:${event.seq}`, event, {
        kind: 'divider',
        code: 'resumed',
        sentence: 'The agent took this conversation up again.',
      });
      return;
    case 'conversation.closed':
      return notice(work, event, 'info', 'conversation_closed', closedSentences[event.data.by]);
    case 'conversation.limit':
      return notice(
        work,
        event,
        'warn',
        'transcript_full',
        'This transcript has reached its size limit. What the agent says from here on is not saved.',
      );
    case 'notice':
      return notice(work, event, event.data.level, event.data.code, event.data.sentence, { raw: event.data.raw });
    case 'restored':
      return notice(
        work,
        event,
        event.data.outcome === 'ok' ? 'info' : 'warn',
        'restored',
        event.data.sentence ?? 'The operator put files back.',
        { restored: { undoCheckpointId: event.data.undoCheckpointId, receiptId: event.data.receiptId } },
      );
    case 'checkpoint':
      if (event.data.why === 'before_turn') work.checkpointId ??= event.data.checkpointId;
      return;
    case 'operator.reveal':
      return notice(
        work,
        event,
        'info',
        'revealed',
        'The operator looked at a secret file once. The agent was not shown it.',
        { raw: event.data.path },
      );
    case 'trust.changed':
      return notice(work, event, 'info', `trust_${event.data.state}`, trustSentences[event.data.state]);
    // Header state; see summary.ts.
    case 'agent.ready':
    case 'agent.started':
    case 'commands':
    case 'conversation.archived':
    case 'conversation.created':
    case 'conversation.renamed':
    case 'mode':
    case 'model':
    case 'option':
    case 'queue.added':
    case 'queue.paused':
    case 'queue.removed':
      return;
    default:
      return event satisfies never;
  }
};

const finish = (work: Work): void => {
  if (work.ended !== null) closeTools(work, work.ended.at, work.ended.stopReason);
  for (const { row, parts } of work.messages) {
    if (parts.length > 1)
      row.text = parts
        .sort((a, b) => a.part - b.part)
        .map(({ text }) => text)
        .join('');
  }
  for (const row of work.approvals.values()) {
    const call = row.request.toolCallId === undefined ? undefined : work.tools.get(row.request.toolCallId);
    if (call !== undefined) call.approvalIds = [...call.approvalIds, row.approvalId];
  }
};

/** Equal by value down to `depth`, by identity below: enough for rows, whose deep parts are the events' own. */
const same = (a: unknown, b: unknown, depth: number): boolean => {
  if (Object.is(a, b)) return true;
  if (depth === 0 || typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every(
      (name) =>
        Object.hasOwn(b, name) &&
        same((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name], depth - 1),
    )
  );
};

/** Unchanged rows keep their identity, so that a screen redraws only what changed. */
const reuse = (entries: readonly Entry[], previous: readonly Entry[]): readonly Entry[] => {
  const former = new Map(previous.map((entry) => [entry.key, entry]));
  let changed = entries.length !== previous.length;
  const kept = entries.map((entry, index) => {
    const old = former.get(entry.key);
    const row = old !== undefined && same(old, entry, 3) ? old : entry;
    changed ||= row !== previous[index];
    return row;
  });
  return changed ? kept : previous;
};

export interface ProjectOptions {
  /** Whether every event from `firstSeq` on is in. Found out from the seqs when absent. */
  readonly complete?: boolean | undefined;
  /** An earlier view of this block: rows equal to its rows are returned as the same objects. Never changes the result's value. */
  readonly previous?: BlockView | undefined;
}

/**
 * The view of the block that begins at `firstSeq`. `events` are of that block alone, in any order; duplicates
 * are ignored. Linear in the number of events; never throws.
 */
export const projectBlock = (
  firstSeq: number,
  events: readonly AnyEvent[],
  options: ProjectOptions = {},
): BlockView => {
  const ordered = inOrder(events);
  const lastSeq = ordered.at(-1)?.seq ?? firstSeq;
  const complete = options.complete ?? (ordered[0]?.seq === firstSeq && lastSeq - firstSeq + 1 === ordered.length);
  const work: Work = {
    entries: [],
    keys: new Set(),
    tools: new Map(),
    approvals: new Map(),
    messages: [],
    receipts: [],
    complete,
    plan: null,
    turnId: null,
    startedAt: null,
    ended: null,
    usage: null,
    checkpointId: null,
  };
  for (const event of ordered) {
    const readable = known(event);
    if (readable === null) unreadable(work, event);
    else apply(work, readable);
  }
  finish(work);
  return {
    firstSeq,
    lastSeq,
    complete,
    turnId: work.turnId ?? ordered.find(({ turnId }) => turnId !== undefined)?.turnId ?? null,
    startedAt: work.startedAt ?? ordered[0]?.at ?? 0,
    ended: work.ended,
    usage: work.usage,
    ...(work.checkpointId === null ? {} : { checkpointId: work.checkpointId }),
    receipts: work.receipts,
    entries: options.previous === undefined ? work.entries : reuse(work.entries, options.previous.entries),
  };
};

/** The message being written, for the place after the last entry. `at` is when it was begun, if known. */
export const liveRow = (draft: Draft, at = 0): MessageRow => ({
  kind: 'message',
  key: messageKey(draft.role, draft.messageId, draft.part),
  seq: Number.MAX_SAFE_INTEGER,
  at,
  role: draft.role,
  messageId: draft.messageId,
  text: draft.text,
  attachments: [],
  interrupted: false,
  streaming: true,
});
