/**
 * The one place that composes the rooms, in the order of their needs, and takes them down in the reverse of it. Three
 * purposes: `start` (a listening bridge), `run` (the rooms in process, no listener), `look` (read, start nothing).
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { performance } from 'node:perf_hooks';
import { Refusal } from '#protocol/errors.ts';
import { uuidv7 } from '#protocol/ids.ts';
import { limits } from '#protocol/limits.ts';
import { createAgents } from '../agents/agents.ts';
import { commandRunner } from '../agents/command.ts';
import { holdingWhenAsked } from '../agents/containment.ts';
import { onPath } from '../agents/find.ts';
import { describe } from '../approvals/describe.ts';
import { createDesk } from '../approvals/desk.ts';
import { openReceiptKey } from '../approvals/keys.ts';
import { verifyEd25519 } from '../approvals/signature.ts';
import { openCheckpoints, type Checkpoints } from '../approvals/checkpoints.ts';
import { createPrograms } from '../approvals/policy/programs.ts';
import { createRulebook } from '../approvals/policy/rulebook.ts';
import { createReceiptReader } from '../approvals/reader.ts';
import { createRotation } from '../approvals/rotation.ts';
import { createSeal } from '../approvals/seal.ts';
import { createCommands, type BridgeFacts, type ReceiptCommands } from '../conversations/commands.ts';
import { Conversations, pauseQueues } from '../conversations/registry.ts';
import type { Rooms } from '../conversations/rooms.ts';
import { createLooks } from '../files/looks.ts';
import { createWorkspaces } from '../files/workspaces.ts';
import type { Dispatch } from '../gate/contract.ts';
import { openLedger } from '../ledger/ledger.ts';
import { acquireLock } from '../ledger/lock.ts';
import { leasePath, type Directories } from '../ledger/paths.ts';
import { recoverTranscripts } from '../ledger/recover.ts';
import { createCheckpoints } from '../git/checkpoints.ts';
import { createGit } from '../git/repository.ts';
import { makeRunGit } from '../git/spawn.ts';
import { createWorktrees } from '../git/worktrees.ts';
import { createTerminals } from '../terminals/terminals.ts';
import type { Trust } from '../trust/contract.ts';
import { createTrust } from '../trust/trust.ts';
import { assetsDirectory, lockState, type Early } from './early.ts';
import { createLog } from './log.ts';
import { version } from './version.ts';

export type Purpose = 'start' | 'run' | 'look';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** sha256 of the asset table, or `checkout` before the app was built. */
const assetDigest = (): string => {
  const path = join(assetsDirectory, 'assets.json');
  return existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : 'checkout';
};

/** `early` is what `bridge start` opened before it loaded this. */
export const compose = async (options: {
  directories: Directories;
  purpose: Purpose;
  early?: Pick<Early, 'lock' | 'log' | 'file'>;
}) => {
  const { directories, purpose } = options;
  const lock = options.early?.lock ?? lockState(directories, `bridge ${purpose}`);
  const log = options.early?.log ?? createLog();
  const bootId = randomUUID();
  const startedAt = Date.now();
  const now = Date.now;
  const random = (bytes: number): Uint8Array => new Uint8Array(randomBytes(bytes));
  const uuid = (): string => uuidv7(now(), random);
  const hidden = [directories.private, directories.runtime];

  const ledger = openLedger({
    directory: directories.private,
    blobs: directories.blobs,
    opened: options.early?.file,
    log: (message, error) => log({ event: 'storage', message, error }),
  });
  const keys = join(directories.private, 'keys');
  const seal = createSeal({
    key: openReceiptKey(keys, ledger.read.lastReceipt()?.keyId ?? null),
    // On a later turn: only then is it certain whether the transaction stands.
    checkpointed: () => void setImmediate(() => checkpoints?.publish()),
    bridge: { version, assetDigest: assetDigest(), bootId },
    bridgeId: ledger.bridgeId,
    now,
    monotonic: () => performance.now(),
  });
  const holding = holdingWhenAsked(onPath('bwrap', process.env['PATH'] ?? ''), hidden, process.execPath);
  const agents = createAgents({
    store: {
      rows: () => ledger.read.agents(),
      put: (agentId, spec, signed) =>
        ledger.commit((tx) => {
          tx.putAgent(agentId, spec);
          signed?.(tx);
        }),
      remove: async (agentId) => void (await ledger.commit((tx) => tx.removeAgent(agentId))),
    },
    hidden,
    practiceState: join(directories.practice, 'sessions'),
    nodePath: process.execPath,
    env: process.env,
    now,
    log: (message, error) => log({ event: 'agents', message, error }),
  });
  const desk = createDesk({
    ledger,
    seal,
    now,
    timers: { set: (run, afterMs) => setTimeout(run, afterMs), clear: (timer) => clearTimeout(timer) },
    log: (line, about) => log({ event: line, ...about }),
    verifyProof: verifyEd25519,
    trusted: (workspaceId) => trust.trusted(workspaceId),
    blocked: (workspaceId) => trust.blocked(workspaceId),
  });
  const rulebook = createRulebook({ ledger, seal, now, agentTitle: (agentId) => agents.get(agentId)?.title ?? null });
  const workspaces = createWorkspaces({
    ledger,
    practiceTemplate: here('../agents/practice/workspace'),
    practiceDirectory: join(directories.practice, 'workspace'),
    lock: (dev, ino) => {
      const lease = acquireLock(leasePath(directories.leases, { dev, ino }), { pid: process.pid, what: 'workspace' });
      return lease.held ? lease : { holder: { pid: lease.holder?.pid ?? null } };
    },
    privateDirectories: hidden,
    now,
    random,
    invalidate: () => ledger.feed.invalidate('workspaces'),
  });
  const runCommand = commandRunner({
    holding,
    marker: () => `${bootId}-${randomUUID()}`,
    record: (row) => ledger.commit((tx) => tx.putProcess(row)),
    forget: (marker) => ledger.commit((tx) => tx.removeProcess(marker)),
  });
  const runGit = makeRunGit({ program: onPath('git', process.env['PATH'] ?? '') });
  const fileCheckpoints = createCheckpoints({
    ledger,
    seal,
    run: runGit,
    root: (workspaceId) => workspaces.root(workspaceId),
    directory: join(directories.private, 'checkpoints'),
    now,
    uuid,
    log: (message, error) => log({ event: 'checkpoints', message, error }),
  });
  const git = createGit({
    run: runGit,
    directory: join(directories.private, 'shadows'),
    privateDirectories: hidden,
    pairOf: async (root, of, signal) =>
      of.kind === 'worktree'
        ? worktrees.pairOf(root, of.conversationId, signal)
        : fileCheckpoints.pairOf(root, of, signal),
    lends: (workspaceId) => worktrees.lends(workspaceId),
  });
  const worktrees = createWorktrees({
    ledger,
    seal,
    run: runGit,
    git,
    checkpoints: fileCheckpoints,
    workspaces,
    directory: join(directories.state, 'worktrees'),
    now,
    uuid,
    log: (message, error) => log({ event: 'worktrees', message, error }),
  });
  const terminals = createTerminals({
    ledger,
    root: (workspaceId) => workspaces.root(workspaceId),
    nodePath: process.execPath,
    env: process.env,
    uuid,
    marker: () => `${bootId}-${randomUUID()}`,
    now,
    log: (message, error) => log({ event: 'terminals', message, error }),
    changed: () => ledger.feed.invalidate('terminals'),
  });
  const trust: Trust = createTrust({
    ledger,
    seal,
    root: (workspaceId) => workspaces.root(workspaceId),
    patterns: () => agents.trustPatterns(),
    safeUntrusted: (agentId) => agents.safeUntrusted(agentId),
    // The daemon first: it has its database loaded.
    scanner: () => {
      for (const engine of purpose === 'look' ? [] : (['clamdscan', 'clamscan'] as const)) {
        const program = onPath(engine, process.env['PATH'] ?? '');
        if (program !== null) return { engine, program };
      }
      return null;
    },
    runScanner: runCommand,
    changed: () => ledger.feed.invalidate('trust'),
    log: (message, error) => log({ event: 'trust', message, error }),
    now,
  });
  const rooms: Rooms = {
    ledger,
    desk,
    rulebook,
    seal,
    agents,
    workspaces,
    looks: createLooks({
      random: uuid,
      changed: (attachmentId) => ledger.feed.invalidate('files', attachmentId),
      whenDetached: (attachmentId, run) => ledger.feed.whenDetached(attachmentId, run),
    }),
    trust,
    git,
    checkpoints: fileCheckpoints,
    worktrees,
    terminals,
    describe,
    // As commands are run: the bridge's own Node first (W-06).
    programOf: createPrograms([dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter)),
    trusted: (workspaceId) => trust.trusted(workspaceId),
    runCommand,
    now,
    uuid,
    log,
    processLimit: limits.agentProcesses,
  };
  const conversations = new Conversations(rooms);
  let checkpoints: Checkpoints | null = null;

  if (purpose !== 'look') {
    await agents.sweep(ledger.read.processes());
    await ledger.commit((tx) => {
      seal.genesis(tx);
      desk.recover(tx);
      rulebook.install(tx);
      recoverTranscripts(tx);
      fileCheckpoints.recover(tx);
      worktrees.recover(tx);
      pauseQueues(tx);
      for (const { marker } of tx.processes()) tx.removeProcess(marker);
    });
    worktrees.sweep().catch((error: unknown) => log({ event: 'worktrees', error }));
    fileCheckpoints.sweep().catch((error: unknown) => log({ event: 'checkpoints', error }));
    checkpoints = await openCheckpoints({
      ledger,
      seal,
      directory: directories.private,
      now,
      log: (message, error) => log({ event: 'receipts', message, error }),
    });
  }

  let askStop = (): void => undefined;
  const stopAsked = new Promise<void>((resolve) => {
    askStop = resolve;
  });
  const signing = (): Checkpoints => {
    if (checkpoints === null) throw new Refusal('unsupported_capability'); // nothing is signed by one that only looks
    return checkpoints;
  };
  const rotate = createRotation(ledger, seal, keys);
  const receipts: ReceiptCommands = {
    ...createReceiptReader(ledger.read, () => seal.key.publicKeySpki, ledger.bridgeId),
    checkpoint: async (anchored) => {
      if (anchored !== undefined) await signing().anchored(anchored.size, anchored.place);
      return signing().sign('here');
    },
    cover: () => signing().cover(),
    rotate: async (actor, store) => {
      const answer = await rotate(actor, store);
      await signing().cover();
      return answer;
    },
  };
  return {
    directories,
    ledger,
    seal,
    desk,
    agents,
    workspaces,
    terminals,
    conversations,
    bootId,
    log,
    stopAsked,
    /** What is wrong with the record since the last time, for the terminal; null when nothing is. */
    noticed: checkpoints?.noticed ?? null,
    /** The command table, with what only the listening process can answer. */
    dispatch: (facts: Pick<BridgeFacts, 'launch' | 'sessions' | 'revoke'> & { origin: () => string }): Dispatch =>
      createCommands(
        rooms,
        conversations,
        {
          ...facts,
          info: () => ({
            version,
            bootId,
            startedAt,
            origin: facts.origin(),
            stateDirectory: directories.state,
            node: process.versions.node,
            sqlite: process.versions['sqlite'] ?? '',
            containment: holding().kind,
            containmentWhy: holding().why,
            publicKeyPem: seal.publicKeyPem,
            keyId: seal.keyId,
            readOnly: ledger.readOnly,
            agentProcesses: conversations.processes,
            agentProcessLimit: limits.agentProcesses,
            practiceWorkspace: join(directories.practice, 'workspace'),
          }),
          // After the answer has left.
          stop: () => void setTimeout(askStop, 20),
        },
        receipts,
        trust,
      ),
    openLaunchWorkspace: (where: { path: string } | { practice: true }) => workspaces.open(where),
    close: async (): Promise<void> => {
      await Promise.all([conversations.closeAll(), terminals.closeAll()]);
      git.close();
      await fileCheckpoints.close();
      desk.close();
      await trust.close();
      workspaces.closeAll();
      await ledger.close();
      lock.release();
    },
  };
};
export type Parts = Awaited<ReturnType<typeof compose>>;
