/** Effective trust at every place where something could start or be allowed (W-14), with a real bridge and agent. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Stage } from './stage.ts';

const stage = new Stage();
beforeAll(async () => void (await stage.start()));
beforeEach(() => {
  rmSync(join(stage.workspace, 'run.sh'), { force: true });
});
afterAll(() => stage.end());

/** What blocks wherever it stands, and no agent reads at its start. */
const block = (): void => writeFileSync(join(stage.workspace, 'run.sh'), 'echo aWQ= | base64 -d | sh\n');

describe('a folder whose review blocks', () => {
  it('is refused every prompt, also to an agent that runs already, and nothing is stored; accepted, it goes on', async () => {
    const talk = await stage.scriptedTalk();
    const { client } = talk;
    const { workspaceId } = stage;
    expect((await talk.turn('[[say one]]')).data.stopReason).toBe('end_turn');
    block();
    await client.call('trust.review', { workspaceId });
    await expect(talk.send('[[say two]]')).rejects.toMatchObject({ code: 'not_trusted' });
    await expect(client.change('conversation.restart', { conversationId: talk.conversationId })).rejects.toMatchObject({
      code: 'not_trusted',
    });
    expect(talk.all('turn.started')).toHaveLength(1);

    const { fingerprint } = await client.call('trust.get', { workspaceId });
    const accepted = await client.change('trust.accept', { workspaceId, fingerprint: fingerprint ?? '', note: 'mine' });
    expect(accepted).toMatchObject({ raw: 'blocked', effective: 'trusted', acceptance: { note: 'mine' } });
    expect((await talk.turn('[[say three]]')).data.stopReason).toBe('end_turn');
    const { receiptId } = accepted.acceptance!;
    expect((await client.call('receipt.verify', { receiptId })).ok).toBe(true);

    await client.change('trust.withdraw', { workspaceId });
    await expect(talk.send('[[say four]]')).rejects.toMatchObject({ code: 'not_trusted' });
    const kinds = (await client.call('receipt.list', {})).receipts.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'trust')).toHaveLength(3); // the scripted agent was added with one
    await client.change('conversation.close', { conversationId: talk.conversationId });
  });

  it('holds the queue, which says why and goes on once it is mended', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[edit notes.txt a]]');
    const [asked] = await talk.asked();
    await talk.send('[[say later]]', { delivery: 'queue' });
    block();
    await talk.client.call('trust.review', { workspaceId: stage.workspaceId });
    // Nothing may be allowed in it either; a no is always possible.
    await expect(talk.decide(asked!, 'allow')).rejects.toMatchObject({ code: 'not_trusted' });
    await talk.decide(asked!, 'deny');
    await talk.ended(turnId);
    const error = await talk.until('the reason', () => talk.all('agent.error')[0]);
    expect(error.data).toMatchObject({ code: 'not_trusted', sentence: expect.stringContaining('run.sh') as string });
    expect(await talk.summary()).toMatchObject({ queuePaused: true, queue: [{ text: '[[say later]]' }] });
    await expect(talk.client.change('queue.resume', { conversationId: talk.conversationId })).rejects.toMatchObject({
      code: 'not_trusted',
    });

    writeFileSync(join(stage.workspace, 'run.sh'), 'echo hello\n');
    await talk.client.call('trust.review', { workspaceId: stage.workspaceId });
    await talk.client.change('queue.resume', { conversationId: talk.conversationId });
    await talk.until('the queued turn', () => talk.all('turn.ended').length === 2);
    expect(talk.said()).toContain('later');
    await talk.client.change('conversation.close', { conversationId: talk.conversationId });
  });

  it('is reviewed when it is opened, without being asked', async () => {
    const talk = await stage.scriptedTalk();
    const told = new Promise((resolve) =>
      talk.client.on({ invalidate: (topic) => topic === 'trust' && resolve(topic) }),
    );
    const before = await talk.client.call('trust.get', { workspaceId: stage.workspaceId });
    await talk.client.change('workspace.close', { workspaceId: stage.workspaceId, force: true });
    writeFileSync(join(stage.workspace, '.envrc'), 'use flake\n');
    await talk.client.change('workspace.open', { path: stage.workspace });
    await told;
    const after = await talk.client.call('trust.get', { workspaceId: stage.workspaceId });
    expect(after.fingerprint).not.toBe(before.fingerprint);
    expect(after).toMatchObject({ raw: 'caution', findings: [{ rule: 'shell.envrc', path: '.envrc', line: 1 }] });
  });
});
