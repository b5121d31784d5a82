import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { Actor } from '#protocol/actor.ts';
import { limits } from '#protocol/limits.ts';
import { trustState, type TrustState } from '#protocol/methods/workspace.ts';
import type { SealInput } from '../../bridge/approvals/contract.ts';
import { openRoot } from '../../bridge/files/root.ts';
import type { ReceiptRow } from '../../bridge/ledger/contract.ts';
import { openLedger } from '../../bridge/ledger/ledger.ts';
import type { TrustPattern } from '../../bridge/trust/contract.ts';
import { createTrust } from '../../bridge/trust/trust.ts';

const cleanups: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const patterns: TrustPattern[] = [
  { agentId: 'claude', pattern: '.claude/settings*.json', what: 'hooks run commands' },
  { agentId: 'claude', pattern: '.mcp.json', what: 'starts MCP servers' },
  { agentId: 'codex', pattern: '.codex/config.toml', what: 'starts MCP servers' },
  { agentId: 'opencode', pattern: '.opencode/**', what: 'loads plugins' },
  { agentId: 'opencode', pattern: 'packages/**/opencode.json', what: 'starts MCP servers' },
  { agentId: 'gemini', pattern: '.mcp.json', what: 'starts MCP servers' },
];
const actor: Actor = { kind: 'local', attachmentId: 'a', tty: true };
const workspaceId = '0198b6d0-0000-7000-8000-000000000001';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const make = (files: Readonly<Record<string, string>>) => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'countersign-trust-')));
  const [path, state] = [join(base, 'ws'), join(base, 'state')];
  for (const folder of [path, state, join(state, 'blobs')]) mkdirSync(folder, { mode: 0o700 });
  const put = (name: string, content: string): void => {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  };
  for (const [name, content] of Object.entries(files)) put(name, content);
  const ledger = openLedger({ directory: state, blobs: join(state, 'blobs') });
  const root = openRoot({ workspaceId, path, privateDirectories: [state] });
  cleanups.push(
    () => rmSync(base, { recursive: true, force: true }),
    () => ledger.close(),
    () => root.close(),
  );
  const signed: SealInput[] = [];
  // Signing is the approvals room's and tested there; here only what is handed to it counts.
  const sign = (_: unknown, what: SealInput): ReceiptRow => {
    signed.push(what);
    return {
      seq: signed.length,
      receiptId: randomUUID(),
      kind: what.kind,
      conversationId: null,
      approvalId: null,
      at: 1,
      payload: new Uint8Array(),
      signature: new Uint8Array(),
      keyId: 'k',
      actionSha256: null,
      value: null,
      outcome: null,
      by: null,
      sentence: what.sentence,
    };
  };
  const trust = createTrust({
    ledger,
    seal: { sign },
    root: () => root,
    patterns: () => patterns,
    safeUntrusted: (agentId) => agentId === 'gemini',
    now: () => 42,
  });
  const state1 = (): TrustState => {
    const found = trust.state(workspaceId);
    expect(trustState.safeParse(found).success).toBe(true);
    return found;
  };
  const accept = (fingerprint: string): Promise<TrustState> =>
    trust.accept(actor, { workspaceId, fingerprint }, () => undefined);
  return { path, put, trust, state: state1, accept, signed, ledger };
};

describe('G-23 which files run code', () => {
  test('nothing found needs no answer', () => {
    const { state, trust } = make({ 'src/a.ts': 'x', 'x/.mcp.json': '{}', '.claude/agents/a.md': '' });
    expect(state()).toMatchObject({ state: 'none_found', files: [], truncated: false });
    expect(trust.obstacle(workspaceId, 'claude')).toBeNull();
  });

  test('lists each file with its digest, size, agents and what it starts', () => {
    const { state } = make({
      '.mcp.json': '{"a":1}',
      '.claude/settings.json': 's',
      '.claude/settings.local.json': 'l',
      '.claude/other.json': '',
      '.opencode/plugin/deep/p.ts': 'p',
      'packages/a/b/opencode.json': 'o',
      'packages/a/b/other.json': '',
    });
    const found = state();
    expect(found.state).toBe('unanswered');
    expect(found.files.map(({ path, agents }) => [path, agents.join()])).toEqual([
      ['.claude/settings.json', 'claude'],
      ['.claude/settings.local.json', 'claude'],
      ['.mcp.json', 'claude,gemini'],
      ['.opencode/plugin/deep/p.ts', 'opencode'],
      ['packages/a/b/opencode.json', 'opencode'],
    ]);
    expect(found.files[2]).toEqual({
      path: '.mcp.json',
      sha256: sha256('{"a":1}'),
      bytes: 7,
      agents: ['claude', 'gemini'],
      what: 'starts MCP servers',
    });
  });

  test('a name in another case is found, as a disk may open it', () => {
    expect(
      make({ '.MCP.json': '{}' })
        .state()
        .files.map(({ path }) => path),
    ).toEqual(['.MCP.json']);
  });

  test('a link as the file or on the way to it is listed, not followed, and its target counts', () => {
    const { path, state } = make({ 'elsewhere.json': '{}' });
    symlinkSync('elsewhere.json', join(path, '.mcp.json'));
    symlinkSync('/etc', join(path, '.claude'));
    const first = state();
    expect(first.files.map((file) => [file.path, file.sha256])).toEqual([
      ['.claude', null],
      ['.mcp.json', null],
    ]);
    expect(first.files[0]?.what).toContain('symbolic link');
    rmSync(join(path, '.claude'));
    symlinkSync('/usr', join(path, '.claude'));
    expect(state().fingerprint).not.toBe(first.fingerprint);
  });

  test('a file too large to digest is listed, and its change shows', () => {
    const { put, state } = make({ '.mcp.json': 'x'.repeat(limits.trustFileBytes + 1) });
    const first = state();
    expect(first.files[0]).toMatchObject({ sha256: null, bytes: limits.trustFileBytes + 1 });
    put('.mcp.json', 'y'.repeat(limits.trustFileBytes + 1));
    expect(state().fingerprint).not.toBe(first.fingerprint);
  });

  test('more files than are listed is truncated, and stops every agent until answered', async () => {
    const files = Object.fromEntries(
      Array.from({ length: limits.trustFiles + 1 }, (_, file) => [`.opencode/p${file}`, '']),
    );
    const { state, trust, accept } = make(files);
    const found = state();
    expect([found.files.length, found.truncated]).toEqual([limits.trustFiles, true]);
    expect(trust.obstacle(workspaceId, 'codex')).not.toBeNull();
    await accept(found.fingerprint);
    expect(trust.obstacle(workspaceId, 'codex')).toBeNull();
  });
});

describe('G-23 the answer', () => {
  test('is for exactly these files: any change, removal or addition asks again, and putting it back does not', async () => {
    const { path, put, state, accept } = make({ '.mcp.json': '{}' });
    const { fingerprint } = state();
    expect(await accept(fingerprint)).toMatchObject({ state: 'accepted', acceptedAt: 42 });
    expect(state()).toMatchObject({ state: 'accepted', fingerprint });
    put('.mcp.json', '{"mcpServers":{}}');
    expect(state().state).toBe('changed');
    put('.mcp.json', '{}');
    expect(state().state).toBe('accepted');
    put('.codex/config.toml', '');
    expect(state().state).toBe('changed');
    rmSync(join(path, '.codex'), { recursive: true });
    rmSync(join(path, '.mcp.json'));
    expect(state().state).toBe('none_found');
  });

  test('is refused when the files are not those that were shown, and nothing is signed or stored', async () => {
    const { put, state, accept, signed, ledger } = make({ '.mcp.json': '{}' });
    const { fingerprint } = state();
    put('.mcp.json', '{"changed":1}');
    await expect(accept(fingerprint)).rejects.toMatchObject({ code: 'digest_mismatch' });
    expect(signed).toEqual([]);
    expect(ledger.read.trust(workspaceId)).toBeNull();
  });

  test('has a receipt over root, fingerprint and digests, and no file text', async () => {
    const { state, trust, signed, ledger } = make({ '.mcp.json': '{"env":{"TOKEN":"s3cret"}}' });
    const { fingerprint } = state();
    const stored: TrustState[] = [];
    const answer = await trust.accept(actor, { workspaceId, fingerprint, note: 'my own' }, (_, each) =>
      stored.push(each),
    );
    expect(signed).toHaveLength(1);
    expect(signed[0]).toMatchObject({
      kind: 'trust',
      actor,
      detail: {
        fingerprint,
        note: 'my own',
        files: [{ path: '.mcp.json', sha256: sha256('{"env":{"TOKEN":"s3cret"}}') }],
      },
    });
    expect(JSON.stringify(signed)).not.toContain('s3cret');
    expect(ledger.read.trust(workspaceId)).toMatchObject({ fingerprint, receiptId: answer.receiptId });
    expect(stored).toEqual([answer]);
  });

  test('stops only the agents that read what was found, and not one whose switch is known to work', async () => {
    const { trust, put, state, accept } = make({ '.mcp.json': '{}' });
    expect(trust.obstacle(workspaceId, 'claude')).toContain('1 file');
    expect(trust.obstacle(workspaceId, 'gemini')).toBeNull();
    expect(trust.obstacle(workspaceId, 'codex')).toBeNull();
    await accept(state().fingerprint);
    expect(trust.obstacle(workspaceId, 'claude')).toBeNull();
    put('.mcp.json', '{"x":1}');
    expect(trust.obstacle(workspaceId, 'claude')).toContain('changed');
  });
});
