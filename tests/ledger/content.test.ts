import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { knownEvent, type EventData } from '#protocol/events.ts';
import type { Ledger } from '../../bridge/ledger/contract.ts';
import { message, openIn, putConversation, sink, swept, temporaryDirectory } from './open.ts';

let directory: ReturnType<typeof temporaryDirectory>;
let ledger: Ledger;
beforeEach(async () => {
  directory = temporaryDirectory();
  ledger = openIn(directory.path, { transcriptBytes: 100_000 });
  await ledger.commit((tx) => putConversation(tx, 'one'));
});
afterEach(async () => {
  await ledger.close();
  directory.remove();
});
const files = () => readdirSync(join(directory.path, 'blobs'));
const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');
const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(40)]);

describe('large text (D-40)', () => {
  it('moves a message above the inline bound to a blob, with head and tail kept', async () => {
    const text = `HEAD${'é'.repeat(100_000)}TAIL`;
    const stored = await ledger.commit((tx) => tx.append('one', message(text)));
    const data = stored?.data as EventData<'message'>;
    expect(data.text).toBe(text.slice(0, limits.inlineHeadUnits));
    expect(data.blob).toMatchObject({
      sha256: sha256(text),
      bytes: Buffer.byteLength(text),
      mime: 'text/plain',
      head: data.text,
    });
    expect(data.blob?.tail?.endsWith('éTAIL')).toBe(true);
    const read = ledger.blobs.read('one', sha256(text));
    expect(readFileSync(read?.path ?? '', 'utf8')).toBe(text);
    expect(statSync(read?.path ?? '').mode & 0o777).toBe(0o600);
    expect(knownEvent(ledger.read.events('one', 0, 1)[0] ?? ({} as never))).not.toBeNull();
  });

  it('never cuts a character in two', async () => {
    const text = `x${'🙂'.repeat(40_000)}`;
    const stored = await ledger.commit((tx) => tx.append('one', message(text)));
    const { blob } = stored?.data as EventData<'message'>;
    expect(blob?.head?.isWellFormed()).toBe(true);
    expect(blob?.tail?.isWellFormed()).toBe(true);
  });

  it('moves every declared text of tool calls and cards', async () => {
    await ledger.close();
    ledger = openIn(directory.path);
    const large = 'L'.repeat(70_000);
    const tool = await ledger.commit((tx) =>
      tx.append('one', {
        type: 'tool.called',
        data: {
          toolCallId: 't',
          rawInput: large,
          rawOutput: large,
          content: [
            { type: 'text', text: large },
            { type: 'diff', path: 'a', oldText: large, newText: large },
            { type: 'terminal', terminalId: 'x', output: large },
            { type: 'text', text: 'small' },
          ],
        },
      }),
    );
    const data = tool?.data as EventData<'tool.called'>;
    expect(data.rawInputBlob?.mime).toBe('application/json');
    expect(data.rawOutput).toHaveLength(limits.inlineHeadUnits);
    expect(JSON.stringify(data).match(new RegExp(sha256(large), 'g'))).toHaveLength(6);
    expect(data.content?.[3]).toEqual({ type: 'text', text: 'small' });
    const card = await ledger.commit((tx) => tx.append('one', { type: 'approval.requested', data: request(large) }));
    const { facts } = card?.data as EventData<'approval.requested'>;
    expect(facts.diffs[0]?.newBlob?.sha256).toBe(sha256(large));
    expect(facts.rawInputBlob?.sha256).toBe(sha256(large));
    expect(files()).toEqual([sha256(large)]);
  });

  it('cuts further when many texts together are too much for one event, and refuses what cannot be moved', async () => {
    await ledger.close();
    ledger = openIn(directory.path);
    const content = Array.from({ length: 60 }, (_, index) => ({
      type: 'text' as const,
      text: `${index} `.repeat(25_000),
    }));
    const stored = await ledger.commit((tx) =>
      tx.append('one', { type: 'tool.called', data: { toolCallId: 't', content } }),
    );
    expect(Buffer.byteLength(JSON.stringify(stored))).toBeLessThanOrEqual(limits.eventBytes);
    expect(files()).toHaveLength(60);
    const facts = { ...request('x').facts, commandText: '\u0001'.repeat(200_000) };
    const refused = ledger.commit((tx) =>
      tx.append('one', { type: 'approval.requested', data: { ...request('x'), facts } }),
    );
    await expect(refused).rejects.toMatchObject({ code: 'content_too_large' });
  });

  it('leaves no file behind when the work is rolled back', async () => {
    const failed = ledger.commit((tx) => {
      tx.append('one', message('r'.repeat(80_000)));
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(files()).toEqual([]);
  });
});

describe('transcript cap', () => {
  it('stores one limit event, then only what must never be lost', async () => {
    const caught = sink();
    ledger.feed.subscribe('one', caught);
    ledger.feed.ack('one', caught.attachmentId, 0);
    const fill = () => ledger.commit((tx) => tx.append('one', message('f'.repeat(30_000))));
    const answers = [await fill(), await fill(), await fill(), await fill(), await fill()];
    expect(answers.map((event) => event?.seq ?? null)).toEqual([1, 2, 3, null, null]);
    expect(ledger.read.conversation('one')).toMatchObject({ full: true, lastSeq: 4 });
    expect(ledger.read.events('one', 3, 4)[0]).toMatchObject({
      type: 'conversation.limit',
      data: { capBytes: 100_000 },
    });

    const turnId = randomUUID();
    const kept = await ledger.commit((tx) => [
      tx.append('one', {
        type: 'turn.ended',
        turnId,
        data: { stopReason: 'end_turn', durationMs: 1, changedPaths: [] },
      }),
      tx.append('one', { type: 'approval.withdrawn', data: { approvalId: randomUUID(), reason: 'agent' } }),
      tx.append('one', { type: 'receipt', data: { receiptId: randomUUID(), receiptSeq: 1, kind: 'decision' } }),
      tx.append('one', { type: 'conversation.renamed', data: { title: 'x', by: 'operator' } }),
      tx.append('one', { type: 'agent.exited', data: { reason: 'exited', sentence: 'x' } }),
      tx.append('one', { type: 'notice', data: { level: 'info', code: 'x', sentence: 'x' } }),
    ]);
    expect(kept.map((event) => event?.seq ?? null)).toEqual([5, 6, 7, 8, 9, null]);
    expect(caught.seqs()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    ledger.feed.text('one', { turnId: null, messageId: 'm', role: 'agent', part: 0, text: 'unsaved' });
    expect(await ledger.commit((tx) => tx.endDraft('one'))).toBeNull();
    expect(ledger.feed.draft('one')).toBeNull();
  });
});

describe('blobs (D-60)', () => {
  it('gives a blob only to its owner, and keeps the file until the last one is deleted', async () => {
    await ledger.commit((tx) => putConversation(tx, 'two'));
    const first = await ledger.blobs.put('one', png, { mime: 'image/png', name: 'a.png' });
    expect(first).toEqual({ sha256: sha256(png), bytes: png.length, mime: 'image/png', name: 'a.png' });
    expect(ledger.blobs.read('two', first.sha256)).toBeNull();
    await Promise.all([
      ledger.blobs.put('two', png, { mime: 'image/png' }),
      ledger.blobs.put('two', png, { mime: 'image/png' }),
    ]);
    expect(files()).toEqual([first.sha256]);
    await ledger.commit((tx) => tx.deleteConversation('one'));
    expect(ledger.blobs.read('one', first.sha256)).toBeNull();
    expect(files()).toEqual([first.sha256]);
    await ledger.commit((tx) => tx.deleteConversation('two'));
    expect(files()).toEqual([]);
  });

  it('refuses what is too large, what only calls itself an image, and an unknown conversation', async () => {
    const put = (bytes: Uint8Array, mime: string, conversationId = 'one') =>
      ledger.blobs.put(conversationId, bytes, { mime });
    await expect(put(new Uint8Array(limits.blobBytes + 1), 'text/plain')).rejects.toMatchObject({
      code: 'content_too_large',
    });
    await expect(put(png, 'image/jpeg')).rejects.toMatchObject({ code: 'blob_unsupported' });
    await expect(put(Buffer.from('<svg/>'), 'image/svg+xml')).rejects.toMatchObject({ code: 'blob_unsupported' });
    await expect(put(png, 'x\r\ny/z')).rejects.toMatchObject({ code: 'blob_unsupported' });
    await expect(put(png, 'image/png', 'none')).rejects.toMatchObject({ code: 'unknown_conversation' });
    expect(files()).toEqual([]);
  });

  it('bounds what one conversation owns', async () => {
    const size = limits.blobBytes;
    const count = Math.floor(limits.conversationBlobBytes / size);
    const db = new DatabaseSync(join(directory.path, 'ledger.db'));
    for (let index = 0; index < count; index += 1)
      db.prepare("INSERT INTO blobOwner VALUES ('one', ?, ?, 'text/plain', NULL)").run(String(index), size);
    db.close();
    await expect(
      ledger.blobs.put('one', Buffer.alloc(limits.conversationBlobBytes - count * size + 1), { mime: 'text/plain' }),
    ).rejects.toMatchObject({ code: 'content_too_large' });
    expect(files()).toEqual([]);
  });

  it('sweeps half-written and unnamed files after an unclean stop', async () => {
    const kept = await ledger.blobs.put('one', png, { mime: 'image/png' });
    await ledger.close();
    const db = new DatabaseSync(join(directory.path, 'ledger.db'));
    db.exec("UPDATE meta SET value = '0' WHERE name = 'ledger.clean'");
    db.close();
    for (const name of ['.abc.tmp', sha256('nobody')]) writeFileSync(join(directory.path, 'blobs', name), 'x');
    ledger = openIn(directory.path);
    expect(files()).toEqual([kept.sha256]);
  });
});

describe('deletion (L-21)', () => {
  it('removes events, approvals, drafts, action bytes; keeps receipts; leaves a tombstone; can be undone until committed', async () => {
    const receiptId = randomUUID();
    const approvalId = randomUUID();
    await ledger.commit((tx) => {
      tx.append('one', message('secret words'));
      tx.putAction('a'.repeat(64), new Uint8Array([1]), 'one');
      tx.putAction('b'.repeat(64), new Uint8Array([2]), null);
      tx.putView('one', '{}');
      tx.putApproval({ ...approval, approvalId, conversationId: 'one' });
      tx.putReceipt({ ...receipt, receiptId, conversationId: 'one', approvalId });
    });
    ledger.feed.text('one', { turnId: null, messageId: 'm', role: 'agent', part: 0, text: 'x' });
    const undone = ledger.commit((tx) => {
      tx.deleteConversation('one');
      throw new Error('no');
    });
    await expect(undone).rejects.toThrow('no');
    expect(ledger.read.events('one', 0, 9)).toHaveLength(1);
    expect(ledger.feed.draft('one')?.text).toBe('x');

    const caught = sink();
    ledger.feed.subscribe('one', caught);
    await ledger.commit((tx) => tx.deleteConversation('one'));
    expect(ledger.read.conversation('one')).toBeNull();
    expect(ledger.read.events('one', 0, 9)).toEqual([]);
    expect(ledger.read.action('a'.repeat(64))).toBeNull();
    expect(ledger.read.action('b'.repeat(64))).toEqual(new Uint8Array([2]));
    expect(ledger.read.approval(approvalId)).toBeNull();
    expect(ledger.read.view('one')).toBeNull();
    expect(ledger.feed.draft('one')).toBeNull();
    expect(ledger.feed.subscribed(caught.attachmentId)).toEqual([]);
    expect(ledger.read.receipt(receiptId)).toMatchObject({ conversationId: 'one', payload: receipt.payload });
    expect(ledger.read.receiptsOf(approvalId)).toHaveLength(1);
    await expect(ledger.commit((tx) => tx.deleteConversation('one'))).rejects.toMatchObject({
      code: 'unknown_conversation',
    });
    await expect(ledger.commit((tx) => tx.deleteConversation('bridge'))).rejects.toMatchObject({
      code: 'unknown_conversation',
    });
    await swept(directory.path);
    await ledger.close();
    const bytes = readFileSync(join(directory.path, 'ledger.db'));
    expect(bytes.includes('secret')).toBe(false);
    ledger = openIn(directory.path);
  });

  it('goes on clearing away after a stop, in slices', async () => {
    await ledger.close();
    ledger = openIn(directory.path);
    await ledger.commit((tx) => {
      putConversation(tx, 'two');
      tx.append('two', message('stays'));
      for (let index = 0; index < 300; index += 1) tx.append('one', message(`leaves ${index}`));
    });
    await ledger.commit((tx) => tx.deleteConversation('one'));
    await ledger.close();
    const count = () => {
      const db = new DatabaseSync(join(directory.path, 'ledger.db'), { readOnly: true });
      const row = db.prepare("SELECT count(*) AS left FROM event WHERE stream = 'one'").get();
      db.close();
      return Number(row?.['left']);
    };
    expect(count()).toBeGreaterThan(100);
    ledger = openIn(directory.path);
    expect(() => ledger.feed.subscribe('one', sink())).toThrow(
      expect.objectContaining({ code: 'unknown_conversation' }),
    );
    await expect(ledger.history('one', { beforeSeq: 9 }, 9)).rejects.toMatchObject({ code: 'unknown_conversation' });
    expect((await ledger.search('leaves', { limit: 5 })).hits).toEqual([]);
    await swept(directory.path);
    expect(count()).toBe(0);
    expect((await ledger.search('stays', { limit: 5 })).hits).toHaveLength(1);
    expect(await ledger.quickCheck()).toEqual([]);
  });
});

describe('rows (D-30, D-31, D-33)', () => {
  it('accepts an operation key once and finishes it once', async () => {
    const row = { key: randomUUID(), method: 'conversation.send', paramsSha256: 'x' };
    await ledger.commit((tx) => tx.acceptOperation(row));
    await expect(ledger.commit((tx) => tx.acceptOperation(row))).rejects.toMatchObject({
      code: 'idempotency_conflict',
    });
    expect(ledger.read.runningOperations().map((one) => one.key)).toEqual([row.key]);
    await ledger.commit((tx) => tx.finishOperation(row.key, 'done', '{"seq":1}'));
    expect(ledger.read.operation(row.key)).toMatchObject({ ...row, state: 'done', result: '{"seq":1}' });
    await expect(ledger.commit((tx) => tx.finishOperation(row.key, 'failed', null))).rejects.toThrow('not running');
  });

  it('lets the first answer to an approval win', async () => {
    const approvalId = randomUUID();
    await ledger.commit((tx) => tx.putApproval({ ...approval, approvalId, conversationId: 'one' }));
    expect(ledger.read.pendingApprovals('one')).toBe(1);
    const answers = await Promise.all(
      (['allowed', 'denied'] as const).map((state) =>
        ledger.commit((tx) => tx.resolveApproval(approvalId, { state, decidedAt: 9, by: 'operator' })),
      ),
    );
    expect(answers).toEqual([true, false]);
    expect(ledger.read.approval(approvalId)).toMatchObject({
      state: 'allowed',
      by: 'operator',
      decidedAt: 9,
      reason: null,
    });
    await ledger.commit((tx) => tx.setApprovalOutcome(approvalId, 'ok'));
    expect(ledger.read.approvals({ state: 'decided', limit: 5 }).map((one) => one.outcome)).toEqual(['ok']);
    expect(ledger.read.approvals({ state: 'pending', limit: 5 })).toEqual([]);
  });

  it('pages conversations by their last event without skipping any, though all happened in one millisecond', async () => {
    await ledger.close();
    ledger = openIn(directory.path, { now: () => 5_000 });
    await ledger.commit((tx) => {
      for (let index = 0; index < 9; index += 1) {
        putConversation(tx, `p${index}`, 5_000);
        tx.append(`p${index}`, message('x'));
      }
    });
    const seen: string[] = [];
    for (let before: number | undefined; ;) {
      const page = ledger.read.conversations({ limit: 2, before });
      if (page.length === 0) break;
      seen.push(...page.map((row) => row.conversationId));
      before = page.at(-1)?.updatedAt;
    }
    expect(seen).toEqual(['p8', 'p7', 'p6', 'p5', 'p4', 'p3', 'p2', 'p1', 'p0', 'one']);
    await ledger.commit((tx) => tx.updateConversation('p3', { archived: true, title: 'new', header: '{"a":1}' }));
    expect(ledger.read.conversations({ archived: true, limit: 9 })).toMatchObject([
      { conversationId: 'p3', title: 'new', archived: true, header: '{"a":1}' },
    ]);
    await expect(ledger.commit((tx) => tx.updateConversation('none', { title: 'x' }))).rejects.toMatchObject({
      code: 'unknown_conversation',
    });
  });

  it('keeps sessions, rules, workspaces, trust, agents, views and processes', async () => {
    const now = Date.now();
    const session = {
      sessionId: 's1',
      cookieSha256: 'c1',
      publicKeySpki: new Uint8Array([1, 2]),
      keyId: 'k',
      client: 'x',
      port: 1,
      createdAt: now,
      seenAt: now,
      expiresAt: now + 60_000,
      revoked: false,
    };
    const workspace = {
      workspaceId: 'w',
      path: '/w',
      dev: '1',
      ino: '2',
      practice: true,
      openedAt: 1,
      forgotten: false,
    };
    const rule = {
      ruleId: 'r',
      source: 'operator' as const,
      draft: '{}',
      sentence: 's',
      createdAt: 1,
      hits: 0,
      used: 0,
      lastHitAt: null,
      enabled: true,
    };
    await ledger.commit((tx) => {
      tx.putSession(session);
      tx.putSession({ ...session, sessionId: 's2', cookieSha256: 'c2' });
      tx.putSession({ ...session, sessionId: 'old', cookieSha256: 'c3', expiresAt: now - 1 });
      tx.touchSession('s1', now + 5);
      tx.putWorkspace(workspace);
      tx.putRule(rule);
      tx.hitRule('r', 5, 10);
      tx.hitRule('r', 6, null);
      tx.hitRule('r', 17, 10);
      tx.putGround({ conversationId: 'one', trust: null, paused: 'why' });
      tx.putTrust({ workspaceId: 'w', fingerprint: 'f', acceptedAt: 1, receiptId: 'q' });
      tx.putAgent('a', '{}');
      tx.putView('one', '{"dock":1}');
      tx.putProcess({ pid: 9, startTime: 't', marker: 'm' });
    });
    expect(ledger.read.sessionByCookie('c1')).toEqual({ ...session, seenAt: now + 5 });
    expect(await ledger.commit((tx) => tx.revokeSessions('s1'))).toBe(1);
    expect(await ledger.commit((tx) => tx.revokeSessions(null))).toBe(1);
    expect(await ledger.commit((tx) => tx.revokeSessions(null))).toBe(0);
    expect(ledger.read.sessionByCookie('c1')?.revoked).toBe(true);
    expect(ledger.read.workspaces()).toEqual([workspace]);
    expect(ledger.read.rules()).toEqual([{ ...rule, hits: 3, used: 3, lastHitAt: 17 }]);
    expect([4, 16, 17].map((after) => ledger.read.ruleHits('r', after))).toEqual([1, 1, 0]);
    expect(ledger.read.ground('one')).toEqual({ conversationId: 'one', trust: null, paused: 'why' });
    expect(ledger.read.ground('two')).toBeNull();
    expect(
      await ledger.commit((tx) => [
        tx.changeRule('r', { enabled: false }),
        tx.changeRule('r', 'remove'),
        tx.changeRule('r', 'remove'),
      ]),
    ).toEqual([true, true, false]);
    expect(ledger.read.trust('w')?.fingerprint).toBe('f');
    expect(ledger.read.agents()).toEqual([{ agentId: 'a', spec: '{}' }]);
    expect(ledger.read.view('one')).toBe('{"dock":1}');
    expect(ledger.read.processes()).toEqual([{ pid: 9, startTime: 't', marker: 'm' }]);
    expect(await ledger.commit((tx) => [tx.removeAgent('a'), tx.removeAgent('a')])).toEqual([true, false]);
  });
});

const receipt = {
  seq: 1,
  receiptId: '',
  kind: 'decision' as const,
  conversationId: '',
  approvalId: null,
  at: 1,
  payload: new Uint8Array([1]),
  signature: new Uint8Array([2]),
  keyId: 'k',
  actionSha256: null,
  value: 'allow' as const,
  outcome: null,
  by: null,
  sentence: 's',
};
const approval = {
  approvalId: '',
  conversationId: '',
  turnId: null,
  toolCallId: null,
  kind: 'command' as const,
  digest: 'd',
  state: 'pending' as const,
  requestedAt: 1,
  requestedSeq: 1,
  expiresAt: 9,
  decidedAt: null,
  receiptId: null,
  reason: null,
  by: null,
  rule: null,
  note: null,
  outcome: null,
  request: '{"secret words":1}',
};
const request = (large: string): EventData<'approval.requested'> => ({
  approvalId: randomUUID(),
  kind: 'file.write',
  digest: 'a'.repeat(64),
  actionBytes: 1,
  facts: {
    headline: 'Write a',
    paths: [],
    diffs: [{ path: 'a', source: 'bridge', oldText: null, newText: large, added: 1, removed: 0 }],
    rawInput: large,
    risks: [],
    uninspectable: false,
    payloadBytes: 1,
  },
  words: {},
  options: [],
  rule: null,
  enforcement: 'mediated',
  containment: 'best_effort',
  expiresAt: 1,
});
