/** A real ledger, key, seal and desk in a directory of their own; only the timer of expiry is a stand-in. */
import { generateKeyPairSync, randomUUID, sign, createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { Actor } from '#protocol/actor.ts';
import type { AnyEvent, ApprovalOption } from '#protocol/events.ts';
import type { Params } from '#protocol/methods.ts';
import { decisionProofText } from '#protocol/receipts.ts';
import type {
  About,
  ActingAgent,
  ApprovalRequest,
  Described,
  Desk,
  Rulebook,
} from '../../bridge/approvals/contract.ts';
import { describeCommand, describeWrite } from '../../bridge/approvals/describe.ts';
import { createDesk } from '../../bridge/approvals/desk.ts';
import { keyIdOf, openReceiptKey, type ReceiptKey } from '../../bridge/approvals/keys.ts';
import { createRulebook } from '../../bridge/approvals/policy/rulebook.ts';
import { createSeal, type DeskSeal } from '../../bridge/approvals/seal.ts';
import { verifyEd25519 } from '../../bridge/approvals/signature.ts';
import type { ApprovalRecord, Ledger } from '../../bridge/ledger/contract.ts';
import { openLedger } from '../../bridge/ledger/ledger.ts';

export const temporary = (): { path: string; remove(): void } => {
  const path = mkdtempSync(join(tmpdir(), 'countersign-approvals-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
};

export const conversationId = '0197f000-0000-7000-8000-000000000001';
export const workspaceId = '0197f000-0000-7000-8000-0000000000aa';
export const turnId = '0197f000-0000-7000-8000-0000000000bb';

export const agent: ActingAgent = {
  id: 'practice',
  name: 'Practice agent',
  version: '1.0.0',
  executableSha256: 'a'.repeat(64),
  entrySha256: 'b'.repeat(64),
  model: null,
  session: 'session-1',
  enforcement: 'mediated',
  containment: 'best_effort',
};
export const ownOptions: readonly ApprovalOption[] = [
  { id: 'allow', name: 'Allow', kind: 'allow_once', meaning: 'allow' },
  { id: 'deny', name: 'Deny', kind: 'reject_once', meaning: 'deny' },
];
export const about: About = {
  workspacePath: '/w',
  relative: (path) =>
    path.startsWith('/w/')
      ? path.slice(3)
      : path === '/w'
        ? ''
        : path.startsWith('/') || path.includes('..')
          ? null
          : path,
  isSecret: (relative) => relative.endsWith('.env'),
  readCurrent: (relative) =>
    relative === 'src/date.js'
      ? { text: 'old\n', revision: 'r1', sha256: createHash('sha256').update('old\n').digest('hex') }
      : null,
};

export const asked = (described: Described, more: Partial<ApprovalRequest> = {}): ApprovalRequest => ({
  ...described,
  conversationId,
  turnId,
  toolCallId: null,
  agent,
  workspace: { id: workspaceId, rootSha256: 'c'.repeat(64), path: '/w', gitHead: null },
  options: ownOptions,
  ...more,
});
export const writeRequest = (content = 'new\n', more: Partial<ApprovalRequest> = {}): ApprovalRequest =>
  asked(describeWrite({ path: 'src/date.js', current: about.readCurrent('src/date.js'), content }, about), more);
export const commandRequest = (
  args: readonly string[] = ['test'],
  more: Partial<ApprovalRequest> = {},
): ApprovalRequest => asked(describeCommand({ command: 'npm', args, env: [], cwd: '/w' }, about), more);

export interface Page {
  readonly actor: Extract<Actor, { kind: 'browser' }>;
  proof(params: Omit<Params<'approval.decide'>, 'proof'>): { keyId: string; sig: string };
}
export const openPage = (): Page => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const publicKeySpki = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }));
  const keyId = keyIdOf(publicKeySpki);
  return {
    actor: { kind: 'browser', attachmentId: randomUUID(), sessionId: randomUUID(), keyId, publicKeySpki },
    proof: ({ approvalId, digest, optionId, value, note }) => {
      const noteSha256 = createHash('sha256')
        .update(note ?? '')
        .digest('hex');
      const text = decisionProofText({ approval: approvalId, digest, option: optionId, value, noteSha256 });
      return { keyId, sig: sign(null, Buffer.from(text), privateKey).toString('base64url') };
    },
  };
};
export const cli: Extract<Actor, { kind: 'cli' }> = {
  kind: 'cli',
  attachmentId: randomUUID(),
  pid: null,
  operator: true,
  tty: true,
};

export interface Room {
  readonly ledger: Ledger;
  readonly key: ReceiptKey;
  readonly seal: DeskSeal;
  readonly desk: Desk;
  readonly rulebook: Rulebook;
  readonly clock: { wall: number };
  /** What the folder is found to be when a rule asks. */
  readonly ground: { trusted: boolean; blocked: string | null };
  /** Runs every timer that is set, as if its time had come. */
  fireTimers(): void;
  timers(): number;
  pending(): ApprovalRecord[];
  events(type?: string): AnyEvent[];
  /** Resolves once `n` approvals are pending. */
  waiting(n: number): Promise<ApprovalRecord[]>;
  decide(
    record: ApprovalRecord,
    value: 'allow' | 'deny',
    page: Page,
    more?: Partial<Params<'approval.decide'>>,
  ): ReturnType<Desk['decide']>;
  close(): Promise<void>;
}

/** Opens the room as main does at boot: genesis and recovery in one transaction. */
export const openRoom = async (directory: string): Promise<Room> => {
  mkdirSync(join(directory, 'blobs'), { recursive: true, mode: 0o700 });
  const clock = { wall: Date.now() };
  const ground: { trusted: boolean; blocked: string | null } = { trusted: true, blocked: null };
  const ledger = openLedger({ directory, blobs: join(directory, 'blobs') });
  const key = openReceiptKey(join(directory, 'keys'));
  const bridge = { version: '0.1.0', assetDigest: 'checkout', bootId: randomUUID() };
  const seal = createSeal({
    key,
    bridge,
    bridgeId: ledger.bridgeId,
    now: () => clock.wall,
    monotonic: () => performance.now(),
  });
  const set = new Map<number, () => void>();
  let next = 0;
  const timers = {
    set: (run: () => void): number => (set.set((next += 1), run), next),
    clear: (timer: NodeJS.Timeout | number): void => void set.delete(Number(timer)),
  };
  const desk = createDesk({
    ledger,
    seal,
    now: () => clock.wall,
    timers,
    log: () => undefined,
    verifyProof: verifyEd25519,
    trusted: () => ground.trusted,
    blocked: () => ground.blocked,
  });
  const rulebook = createRulebook({ ledger, seal, now: () => clock.wall, agentTitle: () => agent.name });
  await ledger.commit((tx) => {
    seal.genesis(tx);
    if (tx.conversation(conversationId) === null) {
      tx.putConversation({
        conversationId,
        workspaceId,
        workspacePath: '/w',
        title: 'Fix the test',
        agentId: 'practice',
        agentTitle: 'Practice agent',
        createdAt: clock.wall,
        archived: false,
        sessionId: null,
        lastStop: null,
        header: '{}',
      });
    }
    desk.recover(tx);
  });
  const pending = (): ApprovalRecord[] =>
    ledger.read.approvals({ state: 'pending', limit: 1000 }).sort((a, b) => a.requestedSeq - b.requestedSeq);
  return {
    ledger,
    key,
    seal,
    desk,
    rulebook,
    clock,
    ground,
    pending,
    fireTimers: () => [...set.values()].forEach((run) => run()),
    timers: () => set.size,
    events: (type) =>
      ledger.read
        .events(conversationId, 0, Number.MAX_SAFE_INTEGER)
        .filter((event) => type === undefined || event.type === type),
    waiting: async (n) => {
      for (let tries = 0; tries < 500; tries += 1) {
        if (pending().length === n) return pending();
        await new Promise((done) => setTimeout(done, 2));
      }
      throw new Error(`${String(pending().length)} are pending, not ${String(n)}`);
    },
    decide: (record, value, page, more = {}) => {
      const params = { approvalId: record.approvalId, digest: record.digest, optionId: value, value, ...more };
      return desk.decide(page.actor, { ...params, proof: page.proof(params) });
    },
    close: async () => {
      desk.close();
      await ledger.close();
    },
  };
};
