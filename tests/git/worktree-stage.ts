/** A real ledger, seal, git, registry of workspaces, checkpoints and worktrees in a directory of their own. */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { WritePlan } from '#protocol/methods/git.ts';
import { openReceiptKey } from '../../bridge/approvals/keys.ts';
import { createSeal } from '../../bridge/approvals/seal.ts';
import { createWorkspaces } from '../../bridge/files/workspaces.ts';
import { createCheckpoints } from '../../bridge/git/checkpoints.ts';
import { createGit } from '../../bridge/git/repository.ts';
import { makeRunGit } from '../../bridge/git/spawn.ts';
import { createWorktrees } from '../../bridge/git/worktrees.ts';
import { openLedger } from '../../bridge/ledger/ledger.ts';
import { gitProgram, never, operator, uuid, write, type Content } from './checkpoint-stage.ts';

export type Stage = Awaited<ReturnType<typeof openStage>>;

/** `directory` may hold an earlier stage, which goes on then. The parent's folder is `repo`, made by the caller. */
/** `whileMaking` happens between what was found in the parent and what is made of it. */
export const openStage = async (directory: string, whileMaking: () => void = () => undefined) => {
  const [secret, folder] = [join(directory, 'private'), join(directory, 'repo')];
  for (const path of [join(secret, 'blobs'), folder]) mkdirSync(path, { recursive: true, mode: 0o700 });
  const ledger = openLedger({ directory: secret, blobs: join(secret, 'blobs') });
  const key = openReceiptKey(join(secret, 'keys'), ledger.read.lastReceipt()?.keyId ?? null);
  const seal = createSeal({
    key,
    bridge: { version: '0', assetDigest: 'checkout', bootId: randomUUID() },
    bridgeId: ledger.bridgeId,
    now: Date.now,
    monotonic: () => performance.now(),
  });
  const workspaces = createWorkspaces({
    ledger,
    practiceTemplate: folder,
    practiceDirectory: join(directory, 'practice'),
    lock: () => ({ release: () => undefined }),
    privateDirectories: [secret],
    now: Date.now,
    random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
    invalidate: () => undefined,
  });
  const run = makeRunGit({ program: gitProgram });
  const log = (): void => undefined;
  const checkpoints = createCheckpoints({
    ...{ ledger, seal, run, now: Date.now, uuid, log },
    root: (workspaceId) => workspaces.root(workspaceId),
    directory: join(secret, 'checkpoints'),
  });
  const git = createGit({
    run,
    directory: join(secret, 'shadows'),
    privateDirectories: [secret],
    pairOf: async (root, of, signal) =>
      of.kind === 'worktree' ? room.pairOf(root, of.conversationId, signal) : checkpoints.pairOf(root, of, signal),
    lends: (workspaceId) => room.lends(workspaceId),
  });
  const worktrees = join(directory, 'worktrees');
  const room = createWorktrees({
    ...{ ledger, seal, run, checkpoints, workspaces, now: Date.now, uuid, log },
    git: {
      source: async (root, uncommitted, signal) => {
        const source = await git.source(root, uncommitted, signal);
        whileMaking();
        return source;
      },
    },
    directory: worktrees,
  });
  const existing = ledger.read.conversations({ limit: 100 }).find(({ title }) => title === 'Parent');
  await ledger.commit((tx) => {
    seal.genesis(tx);
    checkpoints.recover(tx);
    room.recover(tx);
  });
  await room.sweep();
  const { workspaceId } = await workspaces.open({ path: folder });
  const parentId = existing?.conversationId ?? uuid();
  const rowOf = (conversationId: string, where: { workspaceId: string; path: string }, title: string) => ({
    ...{ conversationId, workspaceId: where.workspaceId, workspacePath: where.path, title },
    ...{ agentId: 'practice', agentTitle: 'Practice', createdAt: Date.now(), archived: false },
    ...{ sessionId: null, lastStop: null, header: '{}' },
  });
  if (existing === undefined)
    await ledger.commit((tx) => tx.putConversation(rowOf(parentId, { workspaceId, path: folder }, 'Parent')));
  return {
    ...{ ledger, room, git, workspaces, checkpoints, key, folder, worktrees, parentId, workspaceId },
    /** The folder of a new child and its conversation. */
    make: (title = 'Try another way', uncommitted = false) => {
      const conversationId = uuid();
      return room.make(operator, { conversationId, parentId, title, uncommitted }, (tx, made) => {
        tx.putConversation(rowOf(conversationId, made, title));
        return { conversationId, ...made };
      });
    },
    plan: (conversationId: string, ids?: string[]): Promise<WritePlan> =>
      room.plan({ conversationId, ...(ids && { ids }) }, never()),
    bring: async (conversationId: string, ids?: string[]) => {
      const { digest } = await room.plan({ conversationId, ...(ids && { ids }) }, never());
      return room.bring(operator, { conversationId, digest, ...(ids && { ids }) }, () => undefined);
    },
    remove: (conversationId: string, force = false) =>
      room.remove(operator, { conversationId, force }, () => undefined),
    events: (conversationId: string, type: string) =>
      ledger.read.events(conversationId, 0, Number.MAX_SAFE_INTEGER).filter((event) => event.type === type),
    receipts: () =>
      ledger.read
        .receipts({ limit: 10_000 })
        .filter(({ kind }) => kind === 'worktree')
        .reverse(),
    close: async () => {
      git.close();
      await checkpoints.close();
      workspaces.closeAll();
      await ledger.close();
    },
  };
};

/** Plain git as a person has it, without this machine's settings. */
export const plainGit = (folder: string, ...args: string[]): string =>
  execFileSync(gitProgram, args, {
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: '/nonexistent',
      GIT_CONFIG_NOSYSTEM: '1',
      ...{ GIT_AUTHOR_NAME: 'Ada', GIT_AUTHOR_EMAIL: 'ada@example.org' },
      ...{ GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: 'ada@example.org' },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  }).toString('utf8');

export const makeRepository = (folder: string, files: Readonly<Record<string, Content>>): void => {
  mkdirSync(folder, { recursive: true });
  plainGit(folder, 'init', '-q', '-b', 'main');
  for (const [path, content] of Object.entries(files)) write(folder, path, content);
  plainGit(folder, 'add', '-A');
  plainGit(folder, 'commit', '-q', '-m', 'first');
};
