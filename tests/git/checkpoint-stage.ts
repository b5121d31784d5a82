/** A real ledger, key, seal, folder, git and checkpoints in a directory of their own; nothing stands in for anything. */
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from 'node:fs';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import { knownEvent, type EventOf, type EventType } from '#protocol/events.ts';
import { uuidv7 } from '#protocol/ids.ts';
import type { CheckpointInfo, FileDiff, WritePlan } from '#protocol/methods/git.ts';
import { openReceiptKey } from '../../bridge/approvals/keys.ts';
import { createSeal } from '../../bridge/approvals/seal.ts';
import type { Root } from '../../bridge/files/contract.ts';
import { openRoot } from '../../bridge/files/root.ts';
import { createCheckpoints, type CheckpointRoom } from '../../bridge/git/checkpoints.ts';
import { makeRunGit } from '../../bridge/git/spawn.ts';
import { diffBetween } from '../../bridge/git/trees.ts';
import { openLedger } from '../../bridge/ledger/ledger.ts';

export const gitProgram = '/usr/bin/git';
export const workspaceId = '0197f000-0000-7000-8000-0000000000aa';
export const uuid = (): string => uuidv7(Date.now(), (bytes) => crypto.getRandomValues(new Uint8Array(bytes)));
export const never = (): AbortSignal => new AbortController().signal;
export const operator: Actor = { kind: 'local', attachmentId: 'a', tty: true };

export const temporary = (): { path: string; remove(): void } => {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'countersign-git-')));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
};

export type Content = string | Uint8Array | { readonly link: string } | { readonly run: string };
export const write = (folder: string, path: string, content: Content): void => {
  const full = join(folder, path);
  mkdirSync(dirname(full), { recursive: true });
  rmSync(full, { force: true, recursive: false });
  if (typeof content === 'string' || content instanceof Uint8Array) writeFileSync(full, content);
  else if ('link' in content) symlinkSync(content.link, full);
  else {
    writeFileSync(full, content.run);
    chmodSync(full, 0o755);
  }
};

/** Everything that is no folder, as text that tells content, mode bit and link apart. */
export const filesOf = (folder: string): Record<string, string> => {
  const found: Record<string, string> = {};
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    const stat = lstatSync(join(folder, name));
    if (stat.isSymbolicLink()) found[name] = `-> ${readlinkSync(join(folder, name))}`;
    else if (stat.isFile())
      found[name] = `${(stat.mode & 0o100) === 0 ? '' : 'x '}${readFileSync(join(folder, name)).toString('latin1')}`;
  }
  return found;
};

export interface Stage {
  readonly room: CheckpointRoom;
  readonly ledger: ReturnType<typeof openLedger>;
  readonly folder: string;
  readonly root: Root;
  readonly conversationId: string;
  readonly stores: string;
  readonly key: ReturnType<typeof openReceiptKey>;
  record(why: CheckpointInfo['why'], turnId?: string | null): Promise<CheckpointInfo>;
  /** A turn in which `act` happens; its id. */
  turn(act: () => void): Promise<string>;
  events<T extends EventType>(type: T): EventOf<T>[];
  plan(checkpointId: string, ids?: string[]): Promise<WritePlan>;
  restore(checkpointId: string, ids?: string[]): ReturnType<CheckpointRoom['restore']>;
  changed(of: { turn: string } | { from: string; to: string | null }): Promise<string[]>;
  /** What one file of a turn differs in. */
  difference(turnId: string, path: string): Promise<FileDiff['content']>;
  close(): Promise<void>;
}

/** `directory` may hold an earlier stage, which goes on then. */
export const openStage = async (
  directory: string,
  more: { program?: string | null; tidyMs?: number } = {},
): Promise<Stage> => {
  const [secret, folder] = [join(directory, 'private'), join(directory, 'workspace')];
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
  const root = openRoot({ workspaceId, path: folder, privateDirectories: [secret], home: directory });
  const run = makeRunGit({ program: more.program === undefined ? gitProgram : more.program });
  const stores = join(secret, 'checkpoints');
  const log = (): void => undefined;
  const { tidyMs } = more;
  const room = createCheckpoints({
    ledger,
    seal,
    run,
    root: () => root,
    directory: stores,
    now: Date.now,
    uuid,
    log,
    ...(tidyMs !== undefined && { tidyMs }),
  });
  const existing = ledger.read.conversations({ limit: 1 })[0]?.conversationId;
  const conversationId = existing ?? uuid();
  await ledger.commit((tx) => {
    seal.genesis(tx);
    if (existing !== undefined) return room.recover(tx);
    tx.putConversation({
      conversationId,
      workspaceId,
      workspacePath: folder,
      title: 'Files',
      agentId: 'practice',
      agentTitle: 'Practice',
      createdAt: Date.now(),
      archived: false,
      sessionId: null,
      lastStop: null,
      header: '{}',
    });
  });
  const record: Stage['record'] = async (why, turnId = null) => {
    const made = await room.record(conversationId, why, turnId, never());
    if (made === null) throw new Error(`no checkpoint: ${room.list(conversationId).absent ?? ''}`);
    return made;
  };
  const plan: Stage['plan'] = (checkpointId, ids) =>
    room.plan({ conversationId, checkpointId, ...(ids !== undefined && { ids }) }, never());
  return {
    room,
    ledger,
    folder,
    root,
    conversationId,
    stores,
    key,
    record,
    turn: async (act) => {
      const turnId = uuid();
      await record('before_turn', turnId);
      act();
      await record('after_turn', turnId);
      return turnId;
    },
    events: (type) =>
      ledger.read
        .events(conversationId, 0, Number.MAX_SAFE_INTEGER)
        .flatMap((event) => knownEvent(event) ?? [])
        .flatMap((event) => (event.type === type ? [event as unknown as EventOf<typeof type>] : [])),
    plan,
    restore: async (checkpointId, ids) => {
      const { digest } = await plan(checkpointId, ids);
      const params = { conversationId, checkpointId, digest, ...(ids !== undefined && { ids }) };
      return room.restore(operator, params, () => undefined);
    },
    changed: async (of) => {
      const source =
        'turn' in of
          ? ({ kind: 'turn', conversationId, turnId: of.turn } as const)
          : ({ kind: 'checkpoints', conversationId, ...of } as const);
      const { gitDirectory, from, to } = await room.pairOf(root, source, never());
      const args = ['diff-tree', '-r', '-z', '--name-status', '--no-renames', from, to];
      const { stdout } = await run({ gitDirectory, workTree: null, args, signal: never() });
      const fields = stdout.toString('utf8').split('\0');
      return fields.flatMap((field, at) => (at % 2 === 1 ? [`${fields[at - 1] ?? ''} ${field}`] : [])).sort();
    },
    difference: async (turnId, path) => {
      const pair = await room.pairOf(root, { kind: 'turn', conversationId, turnId }, never());
      const { content } = await diffBetween(run, pair, { id: Buffer.from(path).toString('base64url') }, never());
      return content;
    },
    close: async () => {
      await room.close();
      root.close();
      await ledger.close();
    },
  };
};

export const codeOf = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: unknown) => (error instanceof Refusal ? error.code : String(error)),
  );
