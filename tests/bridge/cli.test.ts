import { spawn } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import { copyFileSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Bridge, bridge, isAlive, main, temporary, type Ran } from './process.ts';
import { agentProgram, Stage, until } from './stage.ts';

const lines = (text: string): string[] => text.trim().split('\n');
const oneSentence = ({ stdout, stderr }: Ran): void => {
  expect(stdout).toBe('');
  expect(lines(stderr)).toHaveLength(1);
  expect(stderr).not.toMatch(/\bat .*:\d+:\d+|Error:/);
};

describe('verbs of a running bridge', () => {
  const stage = new Stage();
  const cli = (...args: string[]): Promise<Ran> => bridge([...args, '--state', stage.bridge.state]);
  const json = async <T>(...args: string[]): Promise<T> => {
    const ran = await cli(...args, '--json');
    expect(ran.code, ran.stderr).toBe(0);
    expect(lines(ran.stdout)).toHaveLength(1);
    return JSON.parse(ran.stdout) as T;
  };
  beforeAll(async () => void (await stage.start()));
  afterEach(() => stage.quiet());
  afterAll(() => stage.end());

  it('start --json says where it is in its first line', () => {
    const { ready } = stage.bridge;
    expect(Object.keys(ready)).toEqual(['event', 'origin', 'launchUrl', 'pid']);
    expect(ready).toMatchObject({ event: 'ready' });
    expect(ready.origin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(ready.launchUrl).toMatch(new RegExp(`^${ready.origin}/#launch=[A-Za-z0-9_-]{43}$`));
    expect(isAlive(ready.pid)).toBe(true);
  });

  it('open prints a new launch URL on a line of its own', async () => {
    const ran = await cli('open');
    expect(ran.code).toBe(0);
    expect(lines(ran.stdout)).toEqual([
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/#launch=[A-Za-z0-9_-]{43}$/),
    ]);
    expect(ran.stdout.trim()).not.toBe(stage.bridge.ready.launchUrl);
    expect((await json<{ launchUrl: string }>('open')).launchUrl).toContain('#launch=');
  });

  it('status says what it does', async () => {
    const status = await json<Record<string, unknown>>('status');
    expect(status).toMatchObject({
      origin: stage.bridge.ready.origin,
      stateDirectory: stage.bridge.state,
      pendingApprovals: 0,
      readOnly: false,
    });
    expect((await cli('status')).stdout).toContain(stage.bridge.ready.origin);
  });

  it('agents adds, lists, probes and removes one', async () => {
    const ran = await bridge([
      'agents',
      'add',
      'My own',
      '--state',
      stage.bridge.state,
      '--json',
      '--',
      process.execPath,
      agentProgram,
      '{}',
    ]);
    expect(ran.code, ran.stderr).toBe(0);
    const { agents } = await json<{
      agents: { agentId: string; state: string; enforcement: string; argv: string[] }[];
    }>('agents');
    expect(agents.find(({ agentId }) => agentId === 'practice')).toMatchObject({
      state: 'ready',
      enforcement: 'mediated',
    });
    expect(agents.find(({ agentId }) => agentId === 'my-own')).toMatchObject({
      state: 'ready',
      argv: [expect.any(String), agentProgram, '{}'],
    });
    expect((await json<{ agents: unknown[] }>('agents', 'probe', 'my-own')).agents).toHaveLength(1);
    expect((await cli('agents', 'remove', 'my-own')).code).toBe(0);
    oneSentence(await cli('agents', 'probe', 'my-own'));
    oneSentence(await cli('agents', 'remove', 'practice'));
  });

  it('approvals lists what waits, and decides it only with a terminal or --yes, which the receipt names', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[permissions 2]]');
    const asked = await talk.asked(2);
    const [one, two] = asked.map(({ data }) => data.approvalId);
    if (one === undefined || two === undefined) throw new Error('unreachable');
    const waiting = await json<{ approvals: { approvalId: string; digest: string }[] }>('approvals');
    expect(waiting.approvals.map(({ approvalId }) => approvalId).sort()).toEqual([one, two].sort());
    const shown = (await cli('approvals')).stdout;
    for (const { data } of asked) expect(shown).toContain(data.digest);

    const bare = await cli('approvals', 'allow', one);
    expect(bare.code).toBe(1);
    expect(bare.stderr).toContain('--yes');
    const wrong = await cli('approvals', 'allow', one, '--yes', '--digest', 'f'.repeat(64));
    expect(wrong.code).toBe(1);
    oneSentence(wrong);
    expect((await talk.client.call('approval.list', { state: 'pending' })).approvals).toHaveLength(2);

    const allowed = await json<{ receiptId: string; receiptSeq: number }>('approvals', 'allow', one, '--yes');
    expect((await cli('approvals', 'deny', two, '--yes', '--note', 'not this')).code).toBe(0);
    const late = await cli('approvals', 'deny', one, '--yes');
    expect(late.code).toBe(1);
    expect(late.stderr).toContain('already decided');
    await talk.ended(turnId);
    const { envelope } = await talk.client.call('receipt.get', { receiptId: allowed.receiptId });
    const statement = Buffer.from((JSON.parse(envelope) as { payload: string }).payload, 'base64').toString();
    expect(statement).toContain('--yes');
    expect(statement).toContain('control-socket');
    oneSentence(await cli('approvals', 'allow', 'nothing', '--yes'));
  });

  it('sessions and revoke know who is signed in', async () => {
    expect(await json<{ sessions: unknown[] }>('sessions')).toEqual({ sessions: [] });
    expect(await json<{ revoked: number }>('revoke', '--all')).toEqual({ revoked: 0 });
    expect((await cli('revoke')).code).toBe(2);
    expect((await cli('revoke', 'x', '--all')).code).toBe(2);
  });

  it('run does not start an agent of which nothing is known', async () => {
    const agentId = await stage.scripted();
    const run = (prompt: string, ...more: string[]): Promise<Ran> =>
      cli('run', '--workspace', stage.workspace, '--agent', agentId, '--json', ...more, prompt);
    const unrestricted = await run('hello');
    expect(unrestricted.code).toBe(1);
    oneSentence(unrestricted);
  });

  it('run prints each event as stored, then how it ended; a denial does not change the exit code', async () => {
    const agent = await bridge([
      'run',
      '--practice',
      '--agent',
      'practice',
      '--state',
      stage.bridge.state,
      '--json',
      '--allow',
      'none',
      'Run the tests',
    ]);
    expect(agent.code).toBe(0);
    const last = JSON.parse(lines(agent.stdout).at(-1) ?? '') as Record<string, unknown>;
    expect(Object.keys(last)).toEqual(['event', 'stopReason', 'conversationId', 'receipts']);
    expect(last).toMatchObject({ event: 'ended', stopReason: 'end_turn' });
    for (const line of lines(agent.stdout).slice(0, -1)) {
      expect(JSON.parse(line)).toMatchObject({
        conversationId: last['conversationId'],
        seq: expect.any(Number) as number,
      });
    }
  });

  it('conversations are listed, shown and exported while it runs', async () => {
    const talk = await stage.scriptedTalk();
    await talk.turn('[[say <script>alert(1)</script> \u001b[31mred]]');
    const { conversationId } = talk;
    const list = await json<{ conversations: { conversationId: string }[] }>('conversations');
    expect(list.conversations.map((each) => each.conversationId)).toContain(conversationId);
    expect((await cli('conversations')).stdout).toContain(conversationId);
    const html = (await cli('conversations', 'export', conversationId, '--format', 'html')).stdout;
    expect(html).not.toContain('<script>');
    expect(html).toContain("default-src 'none'");
    const exported = JSON.parse((await cli('conversations', 'export', conversationId, '--format', 'json')).stdout) as {
      events: unknown[];
    };
    expect(exported.events).toEqual(await talk.stored());
    expect((await cli('conversations', 'show', conversationId)).stdout).toContain('alert(1)');
    expect((await cli('conversations', 'export', conversationId, '--format', 'pdf')).code).toBe(2);
    expect((await cli('conversations', 'export', 'nothing', '--format', 'md')).code).toBe(1);
  });

  it('doctor says what this machine has', async () => {
    const ran = await cli('doctor', '--json');
    expect([0, 1]).toContain(ran.code);
    expect(JSON.stringify(JSON.parse(ran.stdout))).toContain(process.versions.node);
  });

  it('stop ends it in order; then every verb that needs it says 3', async () => {
    const { pid } = stage.bridge.ready;
    expect(await json('stop')).toEqual({ stopped: true });
    await until('the bridge to be gone', () => !isAlive(pid));
    stage.bridge.dropClient();
    for (const verb of [['open'], ['status'], ['stop'], ['sessions'], ['revoke', '--all'], ['approvals']]) {
      const ran = await cli(...verb);
      expect(ran.code, verb[0]).toBe(3);
      oneSentence(ran);
    }
    await stage.start();
  });
});

describe('start without --json', () => {
  const state = temporary('text');
  afterAll(() => state.remove());

  it('prints a short text with the launch URL on a line of its own', async () => {
    const child = spawn(process.execPath, [main, 'start', '--port', '0', '--state', state.path, '--practice'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    const printed = new Promise<void>((resolve) => {
      child.stdout.on('data', (chunk: Buffer) => {
        out += chunk.toString();
        if (out.includes('bridge stop')) resolve();
      });
    });
    await printed;
    child.kill('SIGTERM');
    const code = await new Promise((resolve) => child.once('exit', resolve));
    expect(code).toBe(0);
    expect(
      lines(out).filter((line) => /^http:\/\/127\.0\.0\.1:\d+\/#launch=[A-Za-z0-9_-]{43}$/.test(line)),
    ).toHaveLength(1);
    expect(lines(out).length).toBeLessThan(10);
  });
});

describe('verbs in general', () => {
  const verbs = [
    'agents',
    'approvals',
    'conversations',
    'doctor',
    'open',
    'revoke',
    'run',
    'sessions',
    'start',
    'status',
    'stop',
    'verify',
  ];

  it('help names every verb, and every verb helps', async () => {
    const help = await bridge(['help']);
    expect(help.code).toBe(0);
    for (const verb of verbs) expect(help.stdout).toContain(`  ${verb}`);
    for (const verb of ['run', 'verify', 'start']) {
      const ran = await bridge([verb, '--help']);
      expect(ran.code).toBe(0);
      expect(ran.stdout).toContain('Example: bridge');
    }
    expect((await bridge([])).code).toBe(2);
  });

  it('a reader that stops early is no failure', async () => {
    const child = spawn(process.execPath, [main, 'help'], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.destroy();
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const code = await new Promise((resolve) => child.on('close', resolve));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

describe('verify (R-24)', () => {
  const state = temporary('verify');
  const folder = join(state.path, 'out');
  let conversationId = '';
  let receipts = 0;
  const verify = (...args: string[]): Promise<Ran> => bridge(['verify', '--json', ...args]);
  interface Verified {
    readonly ok: boolean;
    readonly receipts: number;
    readonly problems: { receiptId: string | null; seq: number | null; check: string }[];
  }
  const told = ({ stdout }: Ran): Verified => JSON.parse(stdout) as Verified;

  beforeAll(async () => {
    const ran = await bridge([
      'run',
      '--practice',
      '--agent',
      'practice',
      '--allow',
      'all',
      '--state',
      state.path,
      '--json',
      'Find and fix the failing test',
    ]);
    const ended = JSON.parse(lines(ran.stdout).at(-1) ?? '') as { conversationId: string; receipts: string[] };
    conversationId = ended.conversationId;
    receipts = ended.receipts.length;
    const exported = await bridge([
      'conversations',
      'receipts',
      conversationId,
      '--state',
      state.path,
      '--out',
      folder,
    ]);
    expect(exported.code).toBe(0);
  });
  afterAll(() => state.remove());

  it('answers in exactly these words, with a running bridge as without', async () => {
    const alone = await verify('--all', '--state', state.path);
    expect(alone.code).toBe(0);
    expect(alone.stdout).toBe(`{"ok":true,"receipts":${told(alone).receipts},"problems":[]}\n`);
    expect(told(alone).receipts).toBeGreaterThanOrEqual(receipts);
    const running = await new Bridge(state.path).start();
    const beside = await verify('--all', '--state', state.path);
    await running.stop();
    expect(beside.code).toBe(0);
    expect(told(beside)).toMatchObject({ ok: true, problems: [] });
  });

  it('3 where nothing can be read: no state, no key, no receipt, no folder', async () => {
    const empty = join(state.path, 'empty');
    mkdirSync(empty, { mode: 0o700 });
    writeFileSync(join(empty, 'text'), 'not a receipt');
    expect((await verify('--all', '--state', join(empty, 'state'))).code).toBe(3);
    expect((await verify(join(empty, 'text'), '--state', state.path)).code).toBe(3);
    expect((await verify(join(empty, 'missing'), '--state', state.path)).code).toBe(3);
    expect((await verify(folder, '--key', join(empty, 'text'), '--state', state.path)).code).toBe(3);
    expect((await bridge(['verify', '--state', state.path])).code).toBe(2);
  });

  it('a folder is checked against the given key, and 2 where a file of it is missing', async () => {
    expect((await verify(folder, '--key', join(folder, 'public.pem'), '--state', state.path)).code).toBe(0);
    const less = join(state.path, 'less');
    cpSync(folder, less, { recursive: true });
    const sig = readdirSync(less).find((name) => name.endsWith('.sig')) ?? '';
    writeFileSync(join(state.path, sig), readFileSync(join(less, sig)));
    rmSync(join(less, sig));
    expect((await verify(less, '--state', state.path)).code).toBe(2);
  });

  it('one byte changed in any exported file is 1, and the record is named', async () => {
    const first = Math.min(
      ...readdirSync(folder).flatMap((name) => (name.endsWith('.sig') ? [Number.parseInt(name, 10)] : [])),
    );
    for (const kind of ['sig', 'pae', 'action.json', 'dsse.json']) {
      const changed = join(state.path, `changed-${kind}`);
      cpSync(folder, changed, { recursive: true });
      const file = join(changed, `${first}.${kind}`);
      const bytes = readFileSync(file);
      const at = Math.floor(bytes.length / 2);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      writeFileSync(file, bytes);
      const ran = await verify(changed, '--state', state.path);
      expect(ran.code, kind).toBe(1);
      expect(
        told(ran).problems.some(({ seq }) => seq === first),
        kind,
      ).toBe(true);
    }
    const swapped = join(state.path, 'swapped');
    cpSync(folder, swapped, { recursive: true });
    for (const kind of ['sig', 'pae', 'action.json', 'dsse.json']) {
      copyFileSync(join(folder, `${first}.${kind}`), join(swapped, `${first + 1}.${kind}`));
      copyFileSync(join(folder, `${first + 1}.${kind}`), join(swapped, `${first}.${kind}`));
    }
    expect((await verify(swapped, '--state', state.path)).code).toBe(1);
  });

  it('one byte changed in the database is 1, and the record is named', async () => {
    const path = join(state.path, 'private', 'ledger.db');
    // A reader leaves an empty one behind.
    expect(statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
    const db = new DatabaseSync(path, { readOnly: true });
    const rows = db.prepare('SELECT seq, receiptId, payload FROM receipt ORDER BY seq').all() as {
      seq: number;
      receiptId: string;
      payload: Uint8Array;
    }[];
    db.close();
    const whole = readFileSync(path);
    const row = rows.find(({ payload }) => whole.includes(Buffer.from(payload))) ?? rows[1];
    if (row === undefined) throw new Error('no receipts');
    const needle = Buffer.from(row.payload).subarray(0, 300);
    const at = whole.indexOf(needle) + 150;
    expect(whole.indexOf(needle)).toBeGreaterThan(0);
    const changed = Buffer.from(whole);
    changed[at] = (changed[at] ?? 0) ^ 1;
    writeFileSync(path, changed);
    const ran = await verify('--all', '--state', state.path);
    expect(ran.code).toBe(1);
    expect(told(ran)).toMatchObject({ ok: false });
    expect(told(ran).problems.some(({ seq, receiptId }) => seq === row.seq || receiptId === row.receiptId)).toBe(true);
    writeFileSync(path, whole);
    expect((await verify('--all', '--state', state.path)).code).toBe(0);
  });
});
