import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AnyEvent } from '#protocol/events.ts';
import { Bridge, bridge, temporary } from './process.ts';

const ask = 'Find and fix the failing test';
const hash = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');

interface Ran {
  readonly code: number | null;
  readonly events: AnyEvent[];
  readonly ended: { stopReason: string; conversationId: string; receipts: string[] };
}
const run = async (state: string, allow: string, more: readonly string[] = []): Promise<Ran> => {
  const { code, stdout } = await bridge([
    'run',
    '--state',
    state,
    '--practice',
    '--agent',
    'practice',
    '--allow',
    allow,
    '--json',
    ...more,
    ask,
  ]);
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const ended = lines.pop() as unknown as Ran['ended'] & { event: string };
  expect(ended).toMatchObject({ event: 'ended' });
  return { code, events: lines as unknown as AnyEvent[], ended };
};
const ownTests = (state: string): number | null => {
  const env = { ...process.env };
  delete env['NODE_TEST_CONTEXT'];
  return spawnSync(process.execPath, ['--test'], { cwd: join(state, 'practice', 'workspace'), env }).status;
};
const types = (events: readonly AnyEvent[], type: string): AnyEvent[] => events.filter((event) => event.type === type);

describe.each([
  ['without a bridge', false],
  ['with a running bridge', true],
])('bridge run on the practice workspace, %s', (_name, isRunning) => {
  const state = temporary('run');
  const running = new Bridge(state.path);
  beforeAll(async () => {
    if (isRunning) await running.start();
  });
  afterAll(async () => {
    await running.stop();
    state.remove();
  });

  it('leaves the tests failing and nothing written when all is denied, with denial receipts', async () => {
    const ran = await run(state.path, 'none');
    expect(ran.code).toBe(0);
    expect(ran.ended.stopReason).toBe('end_turn');
    expect(ownTests(state.path)).not.toBe(0);
    const decided = types(ran.events, 'approval.decided');
    expect(decided.length).toBeGreaterThan(0);
    expect(decided.every((event) => event.data['value'] === 'deny' && event.data['rule'] === 'cli --allow none')).toBe(
      true,
    );
    expect(ran.ended.receipts).toHaveLength(decided.length);
    const ended = types(ran.events, 'turn.ended')[0];
    expect(ended?.data['changedPaths']).toEqual([]);
  });

  it('without a terminal asks nobody: ask acts as none', async () => {
    const ran = await run(state.path, 'ask');
    expect(ran.code).toBe(0);
    expect(types(ran.events, 'approval.decided').map((event) => event.data['value'])).toContain('deny');
    expect(types(ran.events, 'approval.decided').map((event) => event.data['value'])).not.toContain('allow');
    expect(ownTests(state.path)).not.toBe(0);
  });

  it('fixes the failing test when all is allowed, with a decision and an outcome receipt for each effect', async () => {
    const before = hash(join(state.path, 'practice/workspace/src/dates.js'));
    const ran = await run(state.path, 'all');
    expect(ran.code).toBe(0);
    expect(ownTests(state.path)).toBe(0);
    expect(hash(join(state.path, 'practice/workspace/src/dates.js'))).not.toBe(before);
    const decided = types(ran.events, 'approval.decided');
    const receipts = types(ran.events, 'receipt');
    for (const { data } of decided) {
      expect(data).toMatchObject({ value: 'allow', rule: 'cli --allow all' });
      const own = receipts
        .filter((event) => event.data['approvalId'] === data['approvalId'])
        .map((event) => event.data['kind']);
      expect(own).toEqual(['decision', 'outcome']);
    }
    expect(ran.ended.receipts).toEqual(receipts.map((event) => event.data['receiptId']));
    expect(types(ran.events, 'turn.ended')[0]?.data['changedPaths']).toEqual(['src/dates.js']);
    expect(ran.events.map((event) => event.seq)).toEqual(ran.events.map((_, at) => at + 1));
  });

  it('makes receipts that bridge verify and openssl both accept', async () => {
    const verified = await bridge(['verify', '--state', state.path, '--all', '--json']);
    expect(verified.code).toBe(0);
    expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, problems: [] });
    const list = JSON.parse((await bridge(['conversations', '--state', state.path, '--json'])).stdout) as {
      conversations: { conversationId: string }[];
    };
    for (const { conversationId } of list.conversations) {
      const out = join(state.path, `receipts-${conversationId}`);
      const exported = JSON.parse(
        (await bridge(['conversations', 'receipts', conversationId, '--state', state.path, '--out', out, '--json']))
          .stdout,
      ) as { receipts: number };
      expect(exported.receipts).toBeGreaterThan(0);
      const folder = await bridge(['verify', out, '--state', state.path, '--json']);
      expect(folder.code).toBe(0);
      for (const pae of readdirSync(out).filter((name) => name.endsWith('.pae'))) {
        const signature = pae.replace('.pae', '.sig');
        const checked = spawnSync(
          'openssl',
          ['pkeyutl', '-verify', '-pubin', '-inkey', 'public.pem', '-rawin', '-in', pae, '-sigfile', signature],
          { cwd: out },
        );
        expect(checked.status).toBe(0);
      }
    }
  });

  if (!isRunning)
    it('restores the practice workspace with --reset', async () => {
      await run(state.path, 'none', ['--reset']);
      expect(ownTests(state.path)).not.toBe(0);
    });

  if (!isRunning)
    it.each(['json', 'md', 'html'])('exports the conversation as %s', async (format) => {
      const list = JSON.parse((await bridge(['conversations', '--state', state.path, '--json'])).stdout) as {
        conversations: { conversationId: string }[];
      };
      const id = list.conversations[0]?.conversationId ?? '';
      const exported = await bridge(['conversations', 'export', id, '--state', state.path, '--format', format]);
      expect(exported.code).toBe(0);
      expect(exported.stdout).toContain(ask);
    });
});

describe('bridge run refuses wrong usage with exit code 2', () => {
  const state = temporary('usage');
  afterAll(() => state.remove());
  it.each([
    [['run', '--practice', '--agent', 'practice']],
    [['run', '--practice', '--workspace', '/tmp', '--agent', 'practice', 'x']],
    [['run', '--practice', '--agent', 'practice', '--allow', 'some', 'x']],
    [['run', '--nonsense']],
    [['nonsense']],
    [['verify']],
    [['start', '--port', 'many']],
    [['start', '--host', '0.0.0.0']],
  ])('%j', async (args) => {
    const ran = await bridge([...args, '--state', state.path]);
    expect(ran.code).toBe(2);
    expect(ran.stderr.trim().split('\n')).toHaveLength(1);
  });

  it('says exit code 1 for an agent that does not exist, and 3 where no bridge runs', async () => {
    const ran = await bridge(['run', '--practice', '--state', state.path, '--agent', 'nobody', 'x']);
    expect(ran.code).toBe(1);
    const status = await bridge(['status', '--state', state.path]);
    expect(status.code).toBe(3);
  });
});
