import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from '#protocol/client.ts';
import { Stage, Talk } from './stage.ts';

const stage = new Stage();
let client: Client;
beforeAll(async () => void (client = await stage.start()));
afterEach(() => stage.quiet());
afterAll(() => stage.end());

const ended = (talk: Talk): number => talk.all('turn.ended').length;

describe('one key is one effect (D-30, D-31)', () => {
  it('asked twice, at once or later, from one client or two', async () => {
    const agentId = await stage.scripted();
    const other = await stage.bridge.another();
    const key = randomUUID();
    const params = { workspaceId: stage.workspaceId, agentId, acceptUnrestricted: true, title: 'only one' };
    const made = await Promise.all(
      [client, other, client].map((each) => each.change('conversation.create', params, { key })),
    );
    made.push(await other.change('conversation.create', params, { key }));
    expect(new Set(made.map(({ conversationId }) => conversationId)).size).toBe(1);
    const { conversations } = await client.call('conversation.list', {});
    expect(conversations.filter(({ title }) => title === 'only one')).toHaveLength(1);
  });

  it('with other parameters, or for another method, is a conflict and changes nothing', async () => {
    const talk = await stage.scriptedTalk();
    const { conversationId } = talk;
    const key = randomUUID();
    await client.change('conversation.rename', { conversationId, title: 'first' }, { key });
    const again = client.change('conversation.rename', { conversationId, title: 'second' }, { key });
    await expect(again).rejects.toMatchObject({ code: 'idempotency_conflict' });
    const archive = client.change('conversation.archive', { conversationId, archived: true }, { key });
    await expect(archive).rejects.toMatchObject({ code: 'idempotency_conflict' });
    expect(await talk.summary()).toMatchObject({ title: 'first', archived: false });
    expect((await talk.stored()).filter(({ type }) => type === 'conversation.renamed')).toHaveLength(1);
  });

  it('a prompt sent again is the turn it was', async () => {
    const talk = await stage.scriptedTalk();
    const key = randomUUID();
    const [one, two] = await Promise.all([talk.send('hello', {}, key), talk.send('hello', {}, key)]);
    expect(two).toEqual(one);
    await talk.ended(one.turnId);
    expect(await talk.send('hello', {}, key)).toEqual(one);
    await expect(talk.send('something else', {}, key)).rejects.toMatchObject({ code: 'idempotency_conflict' });
    expect(talk.all('turn.started')).toHaveLength(1);
    expect(ended(talk)).toBe(1);
  });

  it('a decision sent again is the receipt it was; the other answer under its key is a conflict', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[permission one]]');
    const [asked] = await talk.asked();
    if (asked === undefined) throw new Error('unreachable');
    const key = randomUUID();
    const decided = await talk.decide(asked, 'deny', {}, client, key);
    expect(await talk.decide(asked, 'deny', {}, client, key)).toEqual(decided);
    await expect(talk.decide(asked, 'allow', {}, client, key)).rejects.toMatchObject({ code: 'idempotency_conflict' });
    await expect(talk.decide(asked, 'deny')).rejects.toMatchObject({ code: 'approval_already_decided' });
    await talk.ended(turnId);
    expect(talk.all('receipt').filter(({ data }) => data.kind === 'decision')).toHaveLength(1);
  });

  it('is free again after a refusal', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[permission one]]');
    const [asked] = await talk.asked();
    if (asked === undefined) throw new Error('unreachable');
    const key = randomUUID();
    await expect(talk.send('hello', {}, key)).rejects.toMatchObject({ code: 'turn_active' });
    await talk.decide(asked, 'deny');
    await talk.ended(turnId);
    const sent = await talk.send('hello', {}, key);
    await talk.ended(sent.turnId);
    expect(talk.said(sent.turnId)).toBe('You said: hello');
  });

  it('outside the database: a folder made twice with one key is made once', async () => {
    const key = randomUUID();
    const params = { parent: stage.directory, name: 'made' };
    const one = await client.change('workspace.create', params, { key });
    const two = await client.change('workspace.create', params, { key });
    expect(two).toEqual(one);
    expect(existsSync(join(stage.directory, 'made'))).toBe(true);
    await expect(client.change('workspace.create', params)).rejects.toMatchObject({ code: 'already_exists' });
  });
});

describe('over a SIGKILL of the bridge', () => {
  it('a prompt sent again gets its stored answer and is not delivered again (D-32)', async () => {
    let talk = await stage.scriptedTalk();
    const key = randomUUID();
    const sent = await talk.send('[[say once]][[never]]', {}, key);
    await talk.until('its word', () => talk.drafts.includes('once'));
    await stage.bridge.kill();
    client = await stage.start();
    talk = new Talk(client, talk.conversationId);
    expect(await talk.send('[[say once]][[never]]', {}, key)).toEqual(sent);
    await expect(talk.send('other words', {}, key)).rejects.toMatchObject({ code: 'idempotency_conflict' });
    const stored = await talk.stored();
    expect(stored.filter(({ type }) => type === 'turn.started')).toHaveLength(1);
    expect(stored.filter(({ type }) => type === 'turn.ended')).toMatchObject([{ data: { stopReason: 'interrupted' } }]);
    expect(await talk.summary()).toMatchObject({ state: 'idle' });
  });

  it('an effect outside the database that was running is uncertain, and is not repeated by itself', async () => {
    let talk = await stage.scriptedTalk({ initializeDelayMs: 60_000 });
    const { conversationId } = talk;
    const key = randomUUID();
    const asked = client.change('conversation.restart', { conversationId }, { key });
    const lost = expect(asked).rejects.toMatchObject({ code: 'uncertain' });
    await talk.until('the start', () => talk.all('agent.started')[0]);
    await stage.bridge.kill();
    await lost;
    client = await stage.start();
    talk = new Talk(client, conversationId);
    await expect(client.change('conversation.restart', { conversationId }, { key })).rejects.toMatchObject({
      code: 'uncertain',
    });
    expect((await talk.stored()).filter(({ type }) => type === 'agent.started')).toHaveLength(1);
    expect(await talk.summary()).toMatchObject({ state: 'idle', live: false });
  });
});
