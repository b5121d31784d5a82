/** Rows 18 and 19: a decision from the click to the agent, and the check of ten thousand receipts. */
import { spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync, randomBytes, randomUUID, sign, verify } from 'node:crypto';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { ApprovalRequest } from '../../bridge/approvals/contract.ts';
import { actionOf } from '../../bridge/approvals/action.ts';
import { keyIdOf, openReceiptKey } from '../../bridge/approvals/keys.ts';
import { createSeal, type DeskSeal } from '../../bridge/approvals/seal.ts';
import { uuidv7 } from '#protocol/ids.ts';
import { decisionProofText } from '#protocol/receipts.ts';
import type { Tx } from '../../bridge/ledger/contract.ts';
import { openLedger } from '../../bridge/ledger/ledger.ts';
import { stateDirectories } from '../../bridge/ledger/paths.ts';
import { openCold } from './browser.ts';
import { launchAt, mainFile, type Ground } from './ground.ts';
import { atMost, figure, quantile, repeat, type Row } from './measure.ts';
import { agentGround } from './stream.ts';

const clicks = 40;

/** One write of a receipt's size made durable, and one signature. */
const syncAndSign = (directory: string): number[] => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const bytes = randomBytes(4096);
  const file = openSync(join(directory, 'floor'), 'w', 0o600);
  try {
    return Array.from({ length: 200 }, () => {
      const began = performance.now();
      sign(null, bytes, privateKey);
      writeSync(file, bytes);
      fsyncSync(file);
      return performance.now() - began;
    });
  } finally {
    closeSync(file);
  }
};

export const decideRows = async (ground: Ground): Promise<Row[]> => {
  const agent = await agentGround(ground, 'decide');
  const id = await agent.create();
  const opened = await openCold(await ground.browser(), await launchAt(agent.bridge, `/c/${id}`), {
    selector: 'textarea:not([disabled])',
  });
  const { page } = opened;
  await page.evaluate(() => {
    const edge = (): number => {
      const at = Date.now();
      while (Date.now() === at);
      return Date.now() - performance.now();
    };
    const offset = Math.max(edge(), edge(), edge(), edge(), edge());
    const clicked: number[] = [];
    document.addEventListener(
      'click',
      (event) => void (event.isTrusted && clicked.push(event.timeStamp + offset)),
      true,
    );
    Object.assign(window, { benchClicked: clicked });
  });
  await agent.prompt(id, { ask: clicks });
  for (let done = 0; done < clicks; done += 1) {
    // Allow is inert for half a second after a card appears; a person waits for it as well.
    const allow = page.locator('button.allow.ready');
    await allow.waitFor({ timeout: 20_000 });
    await allow.click();
    await allow.waitFor({ state: 'detached' });
  }
  const answered = await agent.times();
  const clicked = await page.evaluate(() => (window as unknown as { benchClicked: number[] }).benchClicked);
  await opened.context.close();
  if (clicked.length !== answered.length) throw new Error(`${clicked.length} clicks for ${answered.length} answers`);
  const times = answered.map((at, index) => at - (clicked[index] ?? Number.NaN));
  const floors = syncAndSign(ground.path('decide-log'));
  const common = { row: '18', name: 'decide', unit: 'ms' } as const;
  const note = `${clicks} clicks; floor: sign, write, fsync`;
  return [
    {
      ...atMost(
        {
          ...common,
          what: 'approval click → agent answered, durable, p50',
          floor: figure([quantile(floors, 0.5)]),
          ours: figure([quantile(times, 0.5)]),
          note,
        },
        30,
      ),
    },
    {
      ...atMost(
        {
          ...common,
          what: 'approval click → agent answered, durable, p99',
          floor: figure([quantile(floors, 0.99)]),
          ours: figure([quantile(times, 0.99)]),
          note,
        },
        30,
      ),
    },
  ];
};

const receipts = 10_000;
const sha256 = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex');

/** Signs decisions of one browser session, each with its outcome, as the desk would. */
const sealMany = (
  tx: Tx,
  seal: DeskSeal,
  page: { sessionId: string; keyId: string; sign(text: string): string },
  pairs: number,
): void => {
  const agent = {
    id: 'bench',
    name: 'Bench agent',
    version: '1.0.0',
    executableSha256: 'a'.repeat(64),
    entrySha256: null,
    model: null,
    session: 'session',
    enforcement: 'mediated',
    containment: 'best_effort',
  } as const;
  for (let pair = 0; pair < pairs; pair += 1) {
    const at = Date.now();
    const approvalId = uuidv7(at, randomBytes);
    const argv = ['npm', 'run', `step-${pair}`];
    const request: ApprovalRequest = {
      kind: 'command',
      effects: [{ type: 'execute', argv, cwd: '/work' }],
      detail: { argv, cwd: '/work', env: [] },
      facts: {
        headline: `Run npm run step-${pair}`,
        argv,
        cwd: '/work',
        paths: [],
        diffs: [],
        risks: [],
        uninspectable: false,
        payloadBytes: 60,
      },
      words: {},
      conversationId: '01970000-0000-7000-8000-000000000001',
      turnId: '01970000-0000-7000-8000-000000000002',
      toolCallId: `call-${pair}`,
      agent,
      workspace: {
        id: '01970000-0000-7000-8000-000000000003',
        rootSha256: 'c'.repeat(64),
        path: '/work',
        gitHead: null,
      },
      options: [],
    };
    const action = actionOf(request);
    tx.putAction(action.digest, action.bytes, null);
    const proofText = decisionProofText({
      approval: approvalId,
      digest: action.digest,
      option: 'allow',
      value: 'allow',
      noteSha256: sha256(''),
    });
    const decision = seal.decision(tx, {
      approvalId,
      request,
      requestedAt: at,
      digest: action.digest,
      actionBytes: action.bytes.length,
      note: undefined,
      policy: { version: 0, digest: sha256(''), rule: null, outcome: 'ask' },
      decision: {
        value: 'allow',
        option: 'allow',
        by: 'operator',
        session: page.sessionId,
        remembered: false,
        expiresAt: at + 60_000,
        proof: { by: 'browser', keyId: page.keyId, sig: page.sign(proofText) },
      },
      sentence: 'Allowed: run it',
    });
    seal.outcome(tx, {
      decision,
      outcome: 'ok',
      resultSha256: null,
      startedAt: at,
      endedAt: at,
      sentence: 'Done: run it',
    });
  }
};

export const sealReceipts = async (state: string): Promise<void> => {
  const directories = stateDirectories(state);
  const ledger = openLedger({ directory: directories.private, blobs: directories.blobs });
  const key = openReceiptKey(join(directories.private, 'keys'));
  const bridge = { version: '0.1.0', assetDigest: 'checkout', bootId: randomUUID() };
  const seal = createSeal({
    key,
    bridge,
    bridgeId: ledger.bridgeId,
    now: Date.now,
    monotonic: () => performance.now(),
  });
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const publicKeySpki = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }));
  const session = { sessionId: randomUUID(), keyId: keyIdOf(publicKeySpki), publicKeySpki };
  const page = { ...session, sign: (text: string) => sign(null, Buffer.from(text), privateKey).toString('base64url') };
  await ledger.commit((tx) => {
    seal.genesis(tx);
    seal.session(tx, session);
  });
  for (let made = 0; made < receipts / 2; made += 500) await ledger.commit((tx) => sealMany(tx, seal, page, 500));
  await ledger.close();
};

/** As many bare signature checks over as many bytes. */
const bareVerify = (): number => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const bytes = randomBytes(1900);
  const signature = sign(null, bytes, privateKey);
  const began = performance.now();
  for (let done = 0; done < receipts; done += 1) verify(null, bytes, publicKey, signature);
  return performance.now() - began;
};

export const verifyRows = async (ground: Ground): Promise<Row[]> => {
  const state = ground.path('verify-state');
  await sealReceipts(state);
  const floors: number[] = [];
  const times = await repeat(5, async () => {
    floors.push(bareVerify());
    const began = performance.now();
    const ran = spawnSync(process.execPath, [mainFile, 'verify', '--state', state, '--all', '--json'], {
      encoding: 'utf8',
    });
    const ms = performance.now() - began;
    const found = JSON.parse(ran.stdout) as { ok: boolean; receipts: number };
    if (!found.ok || found.receipts < receipts) throw new Error(`verify said ${ran.stdout}${ran.stderr}`);
    return ms;
  });
  return [
    atMost(
      {
        row: '19',
        name: 'verify',
        what: '10,000 receipts verified, process included',
        unit: 'ms',
        floor: figure(floors),
        ours: figure(times),
        note: 'half are decisions with a second signature; floor: 10,000 bare checks',
      },
      3000,
    ),
  ];
};
