/**
 * How the rows of a block grow, event by event: one function per kind of row. They change only the `Work` they are given
 * and the rows they placed in it. Called by project.ts alone, in order of seq.
 */
import type { AnyEvent, EventData, EventOf, StopReason, ToolStatus } from './events.ts';
import { limits } from './limits.ts';
import type { ApprovalState } from './methods/approval.ts';
import type {
  ApprovalRow,
  BlockView,
  Entry,
  MessageRow,
  NoticeRow,
  PlanRow,
  ReceiptRef,
  ToolRow,
  UnknownRow,
} from './view.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface MessageParts {
  readonly row: Mutable<MessageRow>;
  readonly parts: { part: number; text: string }[];
}

/** What grows while the events of a block are read. */
export interface Work {
  readonly entries: Entry[];
  readonly keys: Set<string>;
  readonly tools: Map<string, Mutable<ToolRow>>;
  readonly approvals: Map<string, Mutable<ApprovalRow> & { receipts: ReceiptRef[] }>;
  readonly messages: MessageParts[];
  readonly receipts: ReceiptRef[];
  readonly complete: boolean;
  plan: Mutable<PlanRow> | null;
  turnId: string | null;
  startedAt: number | null;
  ended: BlockView['ended'];
  usage: EventData<'usage'> | null;
  checkpointId: string | null;
}

export const place = <T extends { seq: number; at: number }>(
  work: Work,
  key: string,
  event: AnyEvent,
  rest: T extends unknown ? Omit<T, 'key' | 'seq' | 'at'> : never,
): T => {
  // A hostile agent may reuse an id: keys stay unique all the same.
  const own = work.keys.has(key) ? `${key}:${event.seq}` : key;
  work.keys.add(own);
  const row = { key: own, seq: event.seq, at: event.at, ...rest } as unknown as T;
  work.entries.push(row as unknown as Entry);
  return row;
};

export const notice = (
  work: Work,
  event: AnyEvent,
  level: NoticeRow['level'],
  code: string,
  sentence: string,
  more: Pick<NoticeRow, 'mend' | 'mendCommand' | 'raw' | 'restored'> = {},
): void => {
  place<NoticeRow>(work, `seq:${event.seq}`, event, { kind: 'notice', level, code, sentence, ...more });
};

const boundedJson = (value: unknown): string => {
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch {
    json = undefined; // cyclic or not JSON at all; cannot come over the wire
  }
  if (json === undefined) return 'null';
  if (json.length <= limits.unknownUnits) return json;
  return `${json.slice(0, limits.unknownUnits).toWellFormed()}… (${json.length - limits.unknownUnits} more)`;
};

export const unreadable = (work: Work, event: AnyEvent): void => {
  place<UnknownRow>(work, `seq:${event.seq}`, event, {
    kind: 'unknown',
    type: event.type,
    json: boundedJson(event.data),
  });
};

export const messageKey = (role: MessageRow['role'], messageId: string, part: number): string =>
  `message:${role}:${messageId}:${part}`;

/**
 * Parts of one message join into one row as long as nothing else was placed between them: text that was said after a
 * card stays below the card. A part whose text lies in a blob stays alone, since a row can name one blob.
 */
export const message = (work: Work, event: EventOf<'message'>): void => {
  const { messageId, role, text, blob, attachments = [], interrupted = false, part = 0 } = event.data;
  const last = work.messages.at(-1);
  if (
    last !== undefined &&
    last.row === work.entries.at(-1) &&
    last.row.messageId === messageId &&
    last.row.role === role &&
    blob === undefined &&
    last.row.blob === undefined
  ) {
    last.parts.push({ part, text });
    if (attachments.length > 0) last.row.attachments = [...last.row.attachments, ...attachments];
    last.row.interrupted ||= interrupted;
    return;
  }
  const row = place<MessageRow>(work, messageKey(role, messageId, part), event, {
    kind: 'message',
    role,
    messageId,
    text,
    ...(blob === undefined ? {} : { blob }),
    attachments,
    interrupted,
    streaming: false,
    ...(event.operationId === undefined ? {} : { operationId: event.operationId }),
  });
  work.messages.push({ row, parts: [{ part, text }] });
};

const isOpen = (status: ToolStatus): boolean => status === 'pending' || status === 'in_progress';

export const tool = (work: Work, event: EventOf<'tool.called'> | EventOf<'tool.updated'>): void => {
  const { toolCallId, title, kind, status, locations, content, rawInput, rawInputBlob, rawOutput, rawOutputBlob } =
    event.data;
  let row = work.tools.get(toolCallId);
  if (row === undefined) {
    row = place<Mutable<ToolRow>>(work, `tool:${toolCallId}`, event, {
      kind: 'tool',
      toolCallId,
      title: '',
      toolKind: 'other',
      status: 'pending',
      locations: [],
      content: [],
      approvalIds: [],
    });
    work.tools.set(toolCallId, row);
  }
  if (title !== undefined) row.title = title;
  if (kind !== undefined) row.toolKind = kind;
  if (locations !== undefined) row.locations = locations;
  if (content !== undefined) row.content = content;
  // Text and its blob are one value: a new text without a blob ends the former blob.
  if (rawInput !== undefined || rawInputBlob !== undefined) {
    row.rawInput = rawInput;
    row.rawInputBlob = rawInputBlob;
  }
  if (rawOutput !== undefined || rawOutputBlob !== undefined) {
    row.rawOutput = rawOutput;
    row.rawOutputBlob = rawOutputBlob;
  }
  if (status === undefined || status === row.status) return;
  row.status = status;
  row.endedAt = isOpen(status) ? undefined : event.at;
};

/** The bridge closes open calls before it ends a turn; a call it left open is never shown as running. */
export const closeTools = (work: Work, at: number, stopReason: StopReason): void => {
  for (const row of work.tools.values()) {
    if (!isOpen(row.status)) continue;
    row.status = stopReason === 'failed' ? 'failed' : 'cancelled';
    row.endedAt = at;
  }
};

export const approval = (work: Work, event: EventOf<'approval.requested'>): void => {
  const { approvalId } = event.data;
  if (work.approvals.has(approvalId)) return unreadable(work, event);
  const row = place<Mutable<ApprovalRow> & { receipts: ReceiptRef[] }>(work, `approval:${approvalId}`, event, {
    kind: 'approval',
    approvalId,
    request: event.data,
    status: { state: 'pending' },
    outcome: null,
    receipts: [],
  });
  work.approvals.set(approvalId, row);
};

/** The first resolution wins (D-33). One without its request in a complete block cannot be a card, so it is shown raw. */
export const resolve = (
  work: Work,
  event: AnyEvent & { readonly data: { readonly approvalId: string } },
  status: ApprovalState,
): void => {
  const row = work.approvals.get(event.data.approvalId);
  if (row?.status.state === 'pending') row.status = status;
  else if (row === undefined && work.complete) unreadable(work, event);
};

export const decided = ({ at, data }: EventOf<'approval.decided'>): ApprovalState => ({
  state: data.value === 'allow' ? 'allowed' : 'denied',
  by: data.by,
  at,
  receiptId: data.receiptId,
  ...(data.rule === undefined ? {} : { rule: data.rule }),
  ...(data.note === undefined ? {} : { note: data.note }),
});

export const receipt = (work: Work, { data }: EventOf<'receipt'>): void => {
  const reference: ReceiptRef = {
    receiptId: data.receiptId,
    receiptSeq: data.receiptSeq,
    kind: data.kind,
    ...(data.outcome === undefined ? {} : { outcome: data.outcome }),
  };
  work.receipts.push(reference);
  const row = data.approvalId === undefined ? undefined : work.approvals.get(data.approvalId);
  if (row === undefined) return;
  row.receipts.push(reference);
  if (data.kind === 'outcome' && data.outcome !== undefined) row.outcome = data.outcome;
};

export const plan = (work: Work, event: EventOf<'plan'>): void => {
  if (work.plan === null)
    work.plan = place<Mutable<PlanRow>>(work, 'plan', event, { kind: 'plan', entries: event.data.entries });
  else work.plan.entries = event.data.entries;
};
