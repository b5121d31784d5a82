/** Child conversations in worktrees of their own (W-03) and closing a workspace (W-04), with a real bridge and agent. */
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makeRepository, plainGit } from '../git/worktree-stage.ts';
import { Stage, Talk } from './stage.ts';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
  makeRepository(stage.workspace, { 'a.txt': 'a\n' });
});
afterEach(() => stage.end());

const made = async (parent: Talk, agentId: string, key = randomUUID()): Promise<string> => {
  const { conversationId: parentId } = parent;
  const params = { workspaceId: stage.workspaceId, agentId, parentId, worktree: true, acceptUnrestricted: true };
  return (await parent.client.change('conversation.create', params, { key })).conversationId;
};
const child = async (parent: Talk, agentId: string): Promise<Talk> =>
  new Talk(parent.client, await made(parent, agentId));
const writes = async (talk: Talk, name: string, text: string): Promise<void> => {
  const { turnId } = await talk.send(`[[edit ${name} ${text}]]`);
  const [asked] = await talk.asked();
  await talk.decide(asked!, 'allow');
  await talk.ended(turnId);
};

it('W-03: an agent works in the worktree alone; what it wrote is brought back by key once, also after a restart', async () => {
  await stage.start();
  const agentId = await stage.scripted();
  const parent = await stage.talk(agentId);
  const key = randomUUID();
  const talk = new Talk(parent.client, await made(parent, agentId, key));
  expect(await made(parent, agentId, key)).toBe(talk.conversationId);
  const summary = await talk.summary();
  expect(summary).toMatchObject({
    parentId: parent.conversationId,
    worktree: { parentWorkspaceId: stage.workspaceId, parentWorkspacePath: stage.workspace, removed: false },
  });
  expect(plainGit(summary.workspacePath, 'branch', '--show-current')).toMatch(/^countersign\//);
  await writes(talk, 'b.txt', 'child');
  expect(existsSync(join(stage.workspace, 'b.txt'))).toBe(false);
  expect(readFileSync(join(summary.workspacePath, 'b.txt'), 'utf8')).toContain('child');

  for (const { conversationId } of [talk, parent])
    await expect(talk.client.change('conversation.delete', { conversationId })).rejects.toMatchObject({
      code: 'conversation_active',
    });
  await stage.bridge.stop();
  const client = await stage.start();
  const { conversationId } = talk;
  const { workspaceId } = summary;
  const of = { kind: 'worktree', conversationId } as const;
  const { entries } = await client.call('git.changes', { workspaceId, of });
  expect(entries.map(({ name, state }) => [name, state])).toEqual([['b.txt', 'added']]);
  expect((await client.call('git.status', { workspaceId })).unstaged.map(({ name }) => name)).toEqual(['b.txt']);

  const { digest } = await client.call('worktree.plan', { conversationId });
  const once = randomUUID();
  const brought = await client.change('worktree.bring', { conversationId, digest }, { key: once });
  expect(await client.change('worktree.bring', { conversationId, digest }, { key: once })).toEqual(brought);
  expect(readFileSync(join(stage.workspace, 'b.txt'), 'utf8')).toContain('child');
  expect((await client.call('receipt.verify', { receiptId: brought.receiptId })).ok).toBe(true);

  await client.change('worktree.remove', { conversationId });
  expect(existsSync(summary.workspacePath)).toBe(false);
  const after = await client.call('conversation.get', { conversationId });
  expect(after).toMatchObject({ worktree: { removed: true }, problem: 'Its worktree was removed.' });
  await client.change('conversation.delete', { conversationId });
});

it('W-03: takes what is uncommitted along only into a worktree', async () => {
  await stage.start();
  const agentId = await stage.scripted();
  const { client, conversationId: parentId } = await stage.talk(agentId);
  writeFileSync(join(stage.workspace, 'a.txt'), 'uncommitted\n');
  const params = { workspaceId: stage.workspaceId, agentId, parentId, acceptUnrestricted: true, uncommitted: true };
  await expect(client.change('conversation.create', params)).rejects.toMatchObject({ code: 'bad_request' });
  const { workspacePath } = await client.change('conversation.create', { ...params, worktree: true });
  expect(readFileSync(join(workspacePath, 'a.txt'), 'utf8')).toBe('uncommitted\n');
});

it('W-03: nothing is brought back under the hands of an agent at work in either folder', async () => {
  await stage.start();
  const agentId = await stage.scripted();
  const parent = await stage.talk(agentId);
  const talk = await child(parent, agentId);
  const { conversationId } = talk;
  writeFileSync(join((await talk.summary()).workspacePath, 'a.txt'), 'child\n');
  const { digest } = await talk.client.call('worktree.plan', { conversationId });
  const { turnId } = await parent.send('[[edit a.txt parent]]');
  const [asked] = await parent.asked();
  await expect(talk.client.change('worktree.bring', { conversationId, digest })).rejects.toMatchObject({
    code: 'turn_active',
  });
  await parent.decide(asked!, 'deny');
  await parent.ended(turnId);
  await talk.client.change('worktree.bring', { conversationId, digest });
  expect(readFileSync(join(stage.workspace, 'a.txt'), 'utf8')).toBe('child\n');
});

it('W-04: closing a workspace asks while something is active; then approvals are withdrawn and agents end', async () => {
  const client = await stage.start();
  const { workspaceId } = stage;
  const talk = await stage.scriptedTalk();
  await talk.send('[[edit notes.txt a]]');
  const [asked] = await talk.asked();
  await expect(client.change('workspace.close', { workspaceId })).rejects.toMatchObject({
    code: 'conversation_active',
  });
  expect(await talk.summary()).toMatchObject({ live: true, pendingApprovals: 1 });
  await client.change('workspace.close', { workspaceId, force: true });
  const { approvalId } = asked!.data;
  expect(await client.call('approval.get', { approvalId })).toMatchObject({ status: { state: 'withdrawn' } });
  const { workspaces } = await client.call('workspace.list', {});
  expect(workspaces.find((one) => one.workspaceId === workspaceId)).toMatchObject({ open: false });
  const { conversations } = await client.call('conversation.list', {});
  expect(conversations).toMatchObject([{ live: false, state: 'idle', pendingApprovals: 0 }]);
});
