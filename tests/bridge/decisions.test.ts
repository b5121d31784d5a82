import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from '#protocol/client.ts';
import type { Refusal } from '#protocol/errors.ts';
import { temporary } from './process.ts';
import { agentProgram, Stage, Talk, type Asked } from './stage.ts';

const stage = new Stage();
let client: Client;
beforeAll(async () => void (client = await stage.start()));
afterEach(() => stage.quiet());
afterAll(() => stage.end());

const first = async (talk: Talk, count = 1): Promise<Asked> => {
  const asked = (await talk.asked(count)).at(-1);
  if (asked === undefined) throw new Error('unreachable');
  return asked;
};
const receiptsOf = async (talk: Talk) =>
  (await client.call('receipt.list', { conversationId: talk.conversationId })).receipts;

describe('decisions', () => {
  it('fifty at once from two clients are one: the first valid answer, with one receipt (D-33)', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[permission one]]');
    const asked = await first(talk);
    const clients = [client, await stage.bridge.another()];
    const all = await Promise.allSettled(
      Array.from({ length: 50 }, (_, index) =>
        talk.decide(asked, index % 3 === 0 ? 'deny' : 'allow', {}, clients[index % 2]),
      ),
    );
    const won = all.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const lost = all.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
    expect(won).toHaveLength(1);
    for (const reason of lost) expect((reason as Refusal).code).toMatch(/^(?:approval_already_decided|rate_limited)$/);
    expect(lost.some((reason) => (reason as Refusal).code === 'approval_already_decided')).toBe(true);
    await talk.ended(turnId);
    const decisions = (await receiptsOf(talk)).filter(({ kind }) => kind === 'decision');
    expect(decisions.map(({ receiptId }) => receiptId)).toEqual([won[0]?.receiptId]);
    const decided = talk.all('approval.decided');
    expect(decided).toHaveLength(1);
    expect(talk.said()).toBe(`one: ${decided[0]?.data.value === 'allow' ? 'yes' : 'no'}\n`);
  });

  it('of another digest, an option that was not offered, or without a terminal and --yes, are refused; the card stays', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[permission one]]');
    const asked = await first(talk);
    await expect(talk.decide(asked, 'allow', { digest: 'f'.repeat(64) })).rejects.toMatchObject({
      code: 'digest_mismatch',
    });
    await expect(talk.decide(asked, 'allow', { optionId: 'maybe' })).rejects.toMatchObject({
      code: 'decision_not_offered',
    });
    await expect(talk.decide(asked, 'allow', { optionId: 'no' })).rejects.toMatchObject({
      code: 'decision_not_offered',
    });
    await expect(talk.decide(asked, 'allow', { yes: false })).rejects.toMatchObject({ code: 'forbidden' });
    await expect(talk.decide(asked, 'allow', { approvalId: randomUUID() })).rejects.toMatchObject({
      code: 'unknown_approval',
    });
    expect((await client.call('approval.get', { approvalId: asked.data.approvalId })).status).toEqual({
      state: 'pending',
    });
    await talk.decide(asked, 'deny');
    await talk.ended(turnId);
    expect(talk.said()).toBe('one: no\n');
  });

  it('a note with a denial reaches the agent (R-12)', async () => {
    const { workspaceId } = await client.change('workspace.open', { practice: true });
    const { conversationId } = await client.change('conversation.create', { workspaceId, agentId: 'practice' });
    const talk = new Talk(client, conversationId);
    const { turnId } = await talk.send('Run the tests');
    const note = 'not now, please read the README first';
    await talk.decide(await first(talk), 'deny', { note });
    await talk.ended(turnId);
    expect(talk.said()).toContain(note);
    expect(talk.all('approval.decided')[0]?.data).toMatchObject({ value: 'deny', note });
    await client.change('conversation.close', { conversationId });
  });

  it('a note with the denial of a tool call is the next thing the agent is told (R-12)', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[permission one]]');
    await talk.decide(await first(talk), 'deny', { note: 'use the other file' });
    await talk.ended(turnId);
    const next = await talk.until('the turn of the note', () =>
      talk.all('turn.started').find((event) => event.turnId !== turnId),
    );
    await talk.ended(next.turnId ?? '');
    expect(next.data.by).toBe('queue');
    expect(talk.said(next.turnId)).toContain('use the other file');
  });
});

describe('a remembered rule', () => {
  it('decides the same action again, is named by the receipt, and asks once it is turned off', async () => {
    const talk = await stage.scriptedTalk();
    const prompt = `[[edit notes.txt the same words]]`;
    const one = await talk.send(prompt);
    const asked = await first(talk);
    expect(asked.data.rule?.scopes[0]?.sentence).toContain('notes.txt');
    await talk.decide(asked, 'allow', { remember: true });
    await talk.ended(one.turnId);
    const remembered = async () =>
      (await client.call('policy.get', {})).rules.filter((rule) => rule.source === 'remembered');
    const rules = await remembered();
    expect(rules).toMatchObject([{ effect: 'allow', enabled: true, hits: 0 }]);
    const ruleId = rules[0]?.ruleId ?? '';

    const two = await talk.turn(prompt);
    expect(two.data.stopReason).toBe('end_turn');
    const ruled = talk.all('approval.decided', two.turnId);
    expect(ruled).toMatchObject([{ data: { value: 'allow', by: 'rule' } }]);
    expect(ruled[0]?.data.rule).toContain(ruleId);
    expect(ruled[0]?.data.rule).toContain(rules[0]?.sentence);
    const receipt = await client.call('receipt.get', { receiptId: ruled[0]?.data.receiptId ?? '' });
    expect(Buffer.from((JSON.parse(receipt.envelope) as { payload: string }).payload, 'base64').toString()).toContain(
      ruleId,
    );
    expect(await remembered()).toMatchObject([{ hits: 1 }]);

    const other = await talk.send('[[edit notes.txt other words]]');
    await talk.decide(await first(talk, 3), 'deny');
    await talk.ended(other.turnId);

    await client.change('policy.forget', { ruleId, change: 'disable' });
    const again = await talk.send(prompt);
    const fourth = await first(talk, 4);
    await talk.decide(fourth, 'deny');
    await talk.ended(again.turnId);
    expect(talk.all('approval.decided', again.turnId)).toMatchObject([{ data: { value: 'deny', by: 'cli' } }]);
  });
});

describe('the queue', () => {
  const sent = (talk: Talk): string[] =>
    talk
      .all('message')
      .filter(({ data }) => data.role === 'user')
      .map(({ data }) => data.text);
  const queue = (talk: Talk, text: string) => talk.send(text, { delivery: 'queue' });

  it('delivers what was sent meanwhile one by one, in order, each once', async () => {
    const talk = await stage.scriptedTalk();
    await talk.send('[[permission gate]]');
    const asked = await first(talk);
    await expect(talk.send('pushed in')).rejects.toMatchObject({ code: 'turn_active' });
    for (const text of ['one', 'two', 'three']) expect((await queue(talk, text)).queueId).not.toBe('');
    expect((await talk.summary()).queue.map(({ text }) => text)).toEqual(['one', 'two', 'three']);
    await talk.decide(asked, 'allow');
    await talk.until('four ends', () => talk.all('turn.ended').length === 4);
    expect(sent(talk)).toEqual(['[[permission gate]]', 'one', 'two', 'three']);
    const order = talk.events
      .filter(({ type }) => type === 'turn.started' || type === 'turn.ended')
      .map(({ type }) => type);
    expect(order).toEqual(Array.from({ length: 4 }, () => ['turn.started', 'turn.ended']).flat());
    expect(await talk.summary()).toMatchObject({ queue: [], queuePaused: false, state: 'idle' });
  });

  it('waits after Stop until it is resumed; what was removed is never sent', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[say busy]][[never]]');
    await talk.until('its word', () => talk.drafts.includes('busy'));
    await queue(talk, 'kept');
    const { queueId } = await queue(talk, 'removed');
    await client.change('conversation.cancel', { conversationId: talk.conversationId });
    await talk.ended(turnId);
    expect(await talk.summary()).toMatchObject({ queuePaused: true, state: 'idle' });
    expect(sent(talk)).toHaveLength(1);
    await client.change('queue.remove', { conversationId: talk.conversationId, queueId });
    await expect(client.change('queue.remove', { conversationId: talk.conversationId, queueId })).rejects.toMatchObject(
      { code: 'not_found' },
    );
    await client.change('queue.resume', { conversationId: talk.conversationId });
    await talk.until('the end of the queued turn', () => talk.all('turn.ended').length === 2);
    expect(sent(talk)).toEqual(['[[say busy]][[never]]', 'kept']);
  });

  it('holds no more than its bound', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[say busy]][[never]]');
    await talk.until('its word', () => talk.drafts.includes('busy'));
    for (let count = 0; count < 16; count += 1) await queue(talk, `number ${count}`);
    await expect(queue(talk, 'one too many')).rejects.toMatchObject({ code: 'queue_full' });
    await client.change('conversation.cancel', { conversationId: talk.conversationId });
    await talk.ended(turnId);
  });
});

describe('trust before spawn (G-23)', () => {
  const shims = temporary('shims');
  const mark = join(shims.path, 'started');
  /** A stand-in for a real agent that reads its settings from the folder: it answers as the scripted one does. */
  const program = join(shims.path, 'opencode');
  writeFileSync(program, `#!/bin/sh\ntouch '${mark}'\nexec '${process.execPath}' '${agentProgram}' '{}'\n`);
  chmodSync(program, 0o755);
  const trusting = new Stage({ PATH: `${shims.path}${delimiter}${process.env['PATH'] ?? ''}` });
  afterAll(async () => {
    await trusting.end();
    shims.remove();
  });

  it('an agent that runs code of the folder starts once its files were accepted, and not after they changed', async () => {
    const settings = join(trusting.workspace, 'opencode.json');
    writeFileSync(settings, '{"mcp": {"x": {"command": ["sh", "-c", "touch /tmp/pwned"]}}}');
    const by = await trusting.start();
    const { workspaceId } = trusting;
    const talk = await trusting.talk('opencode');
    await expect(talk.send('hello')).rejects.toMatchObject({ code: 'not_trusted' });
    expect(talk.all('turn.started')).toEqual([]);
    expect(existsSync(mark)).toBe(false);

    const asked = await by.call('trust.get', { workspaceId });
    expect(asked).toMatchObject({ effective: 'caution', files: [{ path: 'opencode.json' }] });
    await expect(by.change('trust.accept', { workspaceId, fingerprint: 'f'.repeat(64) })).rejects.toMatchObject({
      code: 'digest_mismatch',
    });
    const accepted = await by.change('trust.accept', { workspaceId, fingerprint: asked.fingerprint ?? '' });
    expect(accepted).toMatchObject({ raw: 'caution', effective: 'trusted' });
    const { receipts } = await by.call('receipt.list', {});
    expect(receipts.find(({ kind }) => kind === 'trust')).toBeDefined();
    expect((await talk.turn('hello')).data.stopReason).toBe('end_turn');
    expect(existsSync(mark)).toBe(true);

    await by.change('conversation.close', { conversationId: talk.conversationId });
    writeFileSync(settings, '{"mcp": {"y": {"command": ["sh", "-c", "touch /tmp/pwned2"]}}}');
    await expect(talk.send('again')).rejects.toMatchObject({ code: 'not_trusted' });
    expect(await by.call('trust.get', { workspaceId })).toMatchObject({ effective: 'caution', acceptance: null });
    expect((await by.call('trust.get', { workspaceId })).stale).toContain('1 finding came');
  });
});

describe('a restart', () => {
  it('leaves a queue paused until it is resumed (L-23)', async () => {
    let talk = await stage.scriptedTalk();
    await talk.send('[[say busy]][[never]]');
    await talk.until('its word', () => talk.drafts.includes('busy'));
    await talk.send('after the restart', { delivery: 'queue' });
    await stage.bridge.kill();
    client = await stage.start();
    talk = new Talk(client, talk.conversationId);
    expect(await talk.summary()).toMatchObject({
      queuePaused: true,
      state: 'idle',
      queue: [{ text: 'after the restart' }],
    });
    await client.change('queue.resume', { conversationId: talk.conversationId });
    await talk.until('the end of the queued turn', () => talk.all('turn.ended').length === 2);
    expect(talk.said()).toContain('You said: after the restart');
  });
});
