/**
 * One atomic piece of work (`Tx`): every write the rooms may make. Memory and feed change only after COMMIT, through
 * the effects collected here, so that a work rolled back leaves no trace. Made once by ledger.ts and open only inside a work.
 */
import { eventData, anyEvent, type Event, type EventDraft, type EventType } from '#protocol/events.ts';
import { Refusal } from '#protocol/errors.ts';
import { uuidv7 } from '#protocol/ids.ts';
import { limits } from '#protocol/limits.ts';
import { explain, z } from '#protocol/schema.ts';
import { hasBlobRoom, ownBlob, removeUnowned, writeBlob } from './blobs.ts';
import type { Reads, Tx } from './contract.ts';
import type { Drafts } from './drafts.ts';
import type { LedgerFeed } from './feed.ts';
import { inlined } from './inline.ts';
import { assignments, bound, type Statements, type Value } from './statements.ts';

/** The bridge's own stream: what belongs to no conversation. */
export const bridgeStream = 'bridge';

export interface TxParts {
  readonly sql: Statements;
  readonly reads: Reads;
  readonly drafts: Drafts;
  readonly feed: LedgerFeed;
  readonly blobs: string;
  /** There is something to sweep. */
  readonly deleted: () => void;
  readonly transcriptBytes: number;
  readonly now: () => number;
  readonly random: (bytes: number) => Uint8Array;
}

/** What one work did so far beside its SQL. */
export interface Work {
  /** Run in order after COMMIT. */
  readonly effects: (() => void)[];
  /** Drafts ended by this commit; memory still has them until then. */
  readonly ended: Set<string>;
  /** Blob files written; unowned ones go when the work is rolled back. */
  readonly written: string[];
}

const alwaysKept = new Set<EventType>(['receipt', 'agent.exited', 'agent.error']);
/** What the transcript cap never drops. */
const isKept = (type: EventType): boolean => alwaysKept.has(type) || /^(approval|turn|conversation)\./.test(type);
const isSearched = (type: EventType): boolean =>
  type === 'message' || type === 'tool.called' || type === 'tool.updated';

interface StreamRow {
  readonly lastSeq: number;
  readonly bytes: number;
  readonly isFull: number;
}

/** `current` gives the work that is running and throws when there is none. */
export const makeTx = (parts: TxParts, current: () => Work): Tx => {
  const { sql, reads, drafts, feed } = parts;
  const run = (text: string, ...values: Value[]): number => {
    current();
    return sql.run(text, ...values);
  };
  /** One row from the columns of an object, named as the table names them. */
  const put = (verb: 'INSERT' | 'INSERT OR IGNORE' | 'INSERT OR REPLACE', table: string, row: object): number => {
    const entries = Object.entries(row) as [string, Value | boolean | undefined][];
    const columns = entries.map(([column]) => column);
    if (!columns.every((column) => /^[A-Za-z0-9]+$/.test(column))) throw new Error('not a column');
    const marks = columns.map(() => '?').join(', ');
    return run(
      `${verb} INTO ${table} (${columns.join(', ')}) VALUES (${marks})`,
      ...entries.map(([, value]) => bound(value)),
    );
  };

  /** The list is paged by this time, so no two streams may share one. */
  const freeTime = (stream: string, at: number): number => {
    const isTaken = (time: number): boolean =>
      sql.get('SELECT 1 FROM stream WHERE updatedAt = ? AND stream <> ?', time, stream) !== null;
    let time = at;
    while (isTaken(time)) time += 1;
    return time;
  };

  const fill = (conversationId: string, bytes: number): void => {
    run('UPDATE stream SET isFull = 1 WHERE stream = ?', conversationId);
    append(conversationId, { type: 'conversation.limit', data: { bytes, capBytes: parts.transcriptBytes } });
  };

  const append = (conversationId: string, draft: EventDraft): Event | null => {
    const work = current();
    const stream = sql.get<StreamRow>('SELECT lastSeq, bytes, isFull FROM stream WHERE stream = ?', conversationId);
    if (stream === null) throw new Refusal('unknown_conversation');
    const mustKeep = isKept(draft.type) || conversationId === bridgeStream;
    if (stream.isFull === 1 && !mustKeep) return null;

    const at = parts.now();
    const { type, turnId, operationId } = draft;
    const envelope = {
      id: uuidv7(at, parts.random),
      conversationId,
      seq: stream.lastSeq + 1,
      at,
      ...(turnId === undefined ? {} : { turnId }),
      ...(operationId === undefined ? {} : { operationId }),
      type,
    };
    const stored = inlined(type, draft.data, (data) => JSON.stringify({ ...envelope, data }));
    if (stored === null) throw new Refusal('content_too_large', { details: { type, maxBytes: limits.eventBytes } });
    const event = { ...envelope, data: stored.data };
    checkEvent(event);

    const refs = stored.blobs.map((blob) => blob.ref);
    const fits = stream.bytes + stored.bytes <= parts.transcriptBytes && hasBlobRoom(sql, conversationId, refs);
    if (!fits && !mustKeep) {
      fill(conversationId, stream.bytes);
      return null;
    }
    for (const { ref, bytes } of stored.blobs) {
      writeBlob(parts.blobs, ref.sha256, bytes);
      work.written.push(ref.sha256);
      ownBlob(sql, conversationId, ref);
    }
    insert(event, stored.body, stored.bytes);
    work.effects.push(() => feed.publish(conversationId, event.seq, stored.body));
    // Checked against its schema just above.
    return event as unknown as Event;
  };

  const insert = (
    event: { id: string; conversationId: string; seq: number; at: number; turnId?: string; type: EventType },
    body: string,
    bytes: number,
  ): void => {
    const { id, conversationId, seq, at, turnId, type } = event;
    const block = seq === 1 || type === 'turn.started';
    put('INSERT', 'event', { id, stream: conversationId, seq, at, type, block, bytes, body });
    run(
      'UPDATE stream SET lastSeq = ?, bytes = bytes + ?, updatedAt = ? WHERE stream = ?',
      seq,
      bytes,
      freeTime(conversationId, at),
      conversationId,
    );
    if (isSearched(type)) {
      run(
        'INSERT INTO search (rowid, words) SELECT place, words FROM searchable WHERE place = (SELECT place FROM event WHERE stream = ? AND seq = ?)',
        conversationId,
        seq,
      );
    }
    if (type === 'turn.started' && turnId !== undefined)
      put('INSERT', 'turn', { turnId, conversationId, startedAt: at, startedSeq: seq });
    if (type === 'turn.ended' && turnId !== undefined) run('DELETE FROM turn WHERE turnId = ?', turnId);
  };

  const endDraft: Tx['endDraft'] = (conversationId, end = {}) => {
    const work = current();
    const draft = drafts.get(conversationId);
    if (draft === null || work.ended.has(conversationId)) return null;
    const { messageId, role, text, part, turnId } = draft;
    const event = append(conversationId, {
      type: 'message',
      data: {
        messageId,
        role,
        text,
        ...(part === 0 ? {} : { part }),
        ...(end.interrupted === true ? { interrupted: true } : {}),
      },
      ...(turnId === null ? {} : { turnId }),
    });
    run('DELETE FROM draft WHERE conversationId = ?', conversationId);
    work.ended.add(conversationId);
    work.effects.push(() => {
      drafts.drop(conversationId);
      feed.draftEnded(conversationId);
    });
    return event;
  };

  const deleteConversation = (conversationId: string): void => {
    const work = current();
    const stream = sql.get<StreamRow>('SELECT lastSeq, bytes, isFull FROM stream WHERE stream = ?', conversationId);
    if (stream === null || conversationId === bridgeStream) throw new Refusal('unknown_conversation');
    const owned = sql.all<{ sha256: string }>('SELECT sha256 FROM blobOwner WHERE conversationId = ?', conversationId);
    put('INSERT', 'deletion', { stream: conversationId });
    for (const table of ['blobOwner', 'action', 'approval', 'ground', 'conversation'])
      run(`DELETE FROM ${table} WHERE conversationId = ?`, conversationId);
    // Without its stream nothing of it can be appended, read or subscribed to; the events follow in slices.
    run('DELETE FROM stream WHERE stream = ?', conversationId);
    put('INSERT', 'tombstone', { conversationId, deletedAt: parts.now(), lastSeq: stream.lastSeq });
    work.ended.add(conversationId);
    work.effects.push(() => {
      drafts.drop(conversationId);
      feed.drop(conversationId);
      parts.deleted();
      removeUnowned(
        parts.blobs,
        sql,
        owned.map((row) => row.sha256),
      );
    });
  };

  return {
    ...reads,
    append,
    endDraft,
    deleteConversation,
    setMeta: (name, value) => void put('INSERT OR REPLACE', 'meta', { name, value }),
    putConversation: (row) => {
      put('INSERT', 'stream', { stream: row.conversationId, updatedAt: freeTime(row.conversationId, row.createdAt) });
      put('INSERT', 'conversation', row);
    },
    updateConversation: (conversationId, change) => {
      const { text, values } = assignments(change, ['title', 'archived', 'sessionId', 'lastStop', 'header']);
      if (text === '') return;
      const changed = run(`UPDATE conversation SET ${text} WHERE conversationId = ?`, ...values, conversationId);
      if (changed === 0) throw new Refusal('unknown_conversation');
    },
    acceptOperation: (row) => {
      const accepted = put('INSERT OR IGNORE', 'operation', { ...row, state: 'running', acceptedAt: parts.now() });
      if (accepted === 0) throw new Refusal('idempotency_conflict');
    },
    finishOperation: (key, state, result) => {
      const changed = run(
        "UPDATE operation SET state = ?, result = ? WHERE key = ? AND state = 'running'",
        state,
        result,
        key,
      );
      if (changed === 0) throw new Error('this operation is not running');
    },
    putReceipt: (row) => void put('INSERT', 'receipt', row),
    putLogNodes: (seq, hashes) => void put('INSERT', 'logNode', { seq, hashes: Buffer.concat(hashes) }),
    putCheckpoint: (row) => void put('INSERT OR IGNORE', 'checkpoint', row),
    putAction: (sha256, bytes, conversationId) =>
      void put('INSERT OR IGNORE', 'action', { sha256, bytes, conversationId }),
    putApproval: (row) => void put('INSERT', 'approval', row),
    resolveApproval: (approvalId, change) => {
      const { text, values } = assignments(change, approvalColumns);
      return run(`UPDATE approval SET ${text} WHERE approvalId = ? AND state = 'pending'`, ...values, approvalId) === 1;
    },
    setApprovalOutcome: (approvalId, outcome) =>
      void run('UPDATE approval SET outcome = ? WHERE approvalId = ?', outcome, approvalId),
    putRule: (row) => void put('INSERT OR REPLACE', 'rule', row),
    changeRule: (ruleId, change) =>
      change === 'remove'
        ? run('DELETE FROM rule WHERE ruleId = ?', ruleId) === 1
        : run('UPDATE rule SET enabled = ? WHERE ruleId = ?', Number(change.enabled), ruleId) === 1,
    hitRule: (ruleId, at, spanMs) => {
      run('UPDATE rule SET hits = hits + 1, used = used + 1, lastHitAt = ? WHERE ruleId = ?', at, ruleId);
      if (spanMs === null) return;
      run('DELETE FROM ruleHit WHERE ruleId = ? AND at <= ?', ruleId, at - spanMs);
      put('INSERT', 'ruleHit', { ruleId, at });
    },
    putGround: (row) => void put('INSERT OR REPLACE', 'ground', row),
    putSession: (row) => {
      run('DELETE FROM session WHERE expiresAt <= ?', parts.now());
      put('INSERT OR REPLACE', 'session', row);
    },
    touchSession: (sessionId, seenAt) =>
      void run('UPDATE session SET seenAt = ? WHERE sessionId = ?', seenAt, sessionId),
    revokeSessions: (sessionId) =>
      run(
        'UPDATE session SET revoked = 1 WHERE revoked = 0 AND expiresAt > ? AND (? IS NULL OR sessionId = ?)',
        parts.now(),
        sessionId,
        sessionId,
      ),
    putWorkspace: (row) => void put('INSERT OR REPLACE', 'workspace', row),
    putTrust: (row) => void put('INSERT OR REPLACE', 'trust', row),
    removeTrust: (workspaceId) => void run('DELETE FROM trust WHERE workspaceId = ?', workspaceId),
    putAgent: (agentId, spec) => void put('INSERT OR REPLACE', 'agent', { agentId, spec }),
    removeAgent: (agentId) => run('DELETE FROM agent WHERE agentId = ?', agentId) === 1,
    putView: (conversationId, state) => void put('INSERT OR REPLACE', 'view', { conversationId, state }),
    putFileCheckpoint: (row) => void put('INSERT', 'fileCheckpoint', row),
    changeFileCheckpoint: (checkpointId, change) => {
      const { text, values } = assignments(change, ['afterTree', 'restoring', 'pruned']);
      run(`UPDATE fileCheckpoint SET ${text} WHERE checkpointId = ?`, ...values, checkpointId);
    },
    putWorktree: (row) => void put('INSERT OR REPLACE', 'worktree', row),
    removeWorktree: (conversationId) => void run('DELETE FROM worktree WHERE conversationId = ?', conversationId),
    putProcess: (row) => void put('INSERT OR REPLACE', 'process', row),
    removeProcess: (marker) => void run('DELETE FROM process WHERE marker = ?', marker),
  };
};

const approvalColumns = [
  'turnId',
  'toolCallId',
  'kind',
  'state',
  'requestedAt',
  'requestedSeq',
  'expiresAt',
  'decidedAt',
  'receiptId',
  'reason',
  'by',
  'rule',
  'note',
  'outcome',
] as const;

/** A bad event is a bug of ours and must never be stored. The message names the field, never the value. */
const checkEvent = (event: { type: EventType; data: unknown }): void => {
  const parsed = [z.safeParse(anyEvent, event), z.safeParse(eventData[event.type], event.data)];
  for (const one of parsed)
    if (!one.success) throw new Error(`refusing to store a bad ${event.type} event: ${explain(one.error)}`);
};
