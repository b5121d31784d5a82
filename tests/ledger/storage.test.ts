import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventData } from '#protocol/events.ts';
import { acquireLock } from '../../bridge/ledger/lock.ts';
import { leasePath, stateDirectories } from '../../bridge/ledger/paths.ts';
import { recoverTranscripts } from '../../bridge/ledger/recover.ts';
import { message, openIn, optionsIn, putConversation, temporaryDirectory } from './open.ts';

let directory: ReturnType<typeof temporaryDirectory>;
const children: ChildProcess[] = [];
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  directory.remove();
});
const start = (file: string, ...args: string[]) => {
  const child = spawn(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
};
const at = (name: string) => join(directory.path, name);

describe('kill -9 (T81)', () => {
  it('loses no acknowledged event in ten kills, leaves no gap, and says the stop was unclean', async () => {
    for (let kill = 0; kill < 10; kill += 1) {
      const conversationId = `c${kill}`;
      const child = start('./writer-child.ts', directory.path, conversationId);
      let output = '';
      const enough = new Promise<void>((resolve) => {
        child.stdout.on('data', (chunk: Buffer) => {
          output += chunk.toString();
          if (output.length > 100 + 130 * kill) resolve();
        });
      });
      await enough;
      child.kill('SIGKILL');
      await once(child, 'close');
      const acknowledged = output.split('\n').slice(0, -1).map(Number);

      const ledger = openIn(directory.path);
      expect(ledger.uncleanStop).toBe(true);
      const seqs = ledger.read.events(conversationId, 0, 1e6).map((event) => event.seq);
      expect(seqs).toEqual(seqs.map((_, index) => index + 1));
      expect(seqs.length).toBeGreaterThanOrEqual(Math.max(...acknowledged));
      if (kill === 9) expect(await ledger.quickCheck()).toEqual([]);
      await ledger.close();
    }
    const ledger = openIn(directory.path);
    expect(ledger.uncleanStop).toBe(false);
    await ledger.close();
  }, 60_000);
});

const writeRequest = (approvalId: string): EventData<'approval.requested'> => ({
  approvalId,
  kind: 'file.write',
  digest: 'a'.repeat(64),
  actionBytes: 1,
  facts: {
    headline: 'Write',
    paths: [{ path: 'src/a.ts', place: 'inside' }],
    diffs: [],
    risks: [],
    uninspectable: false,
    payloadBytes: 1,
  },
  words: {},
  options: [],
  rule: null,
  enforcement: 'mediated',
  containment: 'best_effort',
  expiresAt: 1,
});

describe('recovery (L-23)', () => {
  it('turns drafts into interrupted messages, ends open turns and marks running operations uncertain', async () => {
    let clock = 1_000;
    const turnId = randomUUID();
    const first = openIn(directory.path, { now: () => clock });
    await first.commit((tx) => {
      putConversation(tx, 'one');
      tx.acceptOperation({ key: 'outside', method: 'conversation.send', paramsSha256: 'a' });
      tx.acceptOperation({ key: 'inside', method: 'conversation.rename', paramsSha256: 'b' });
      tx.append('one', { type: 'turn.started', turnId, data: { messageId: 'm', by: 'operator' } });
    });
    clock = 5_000;
    first.feed.text('one', { turnId, messageId: 'm', role: 'thought', part: 2, text: 'half a sen' });
    const approvalId = randomUUID();
    await first.commit((tx) => {
      tx.append('one', { type: 'approval.requested', turnId, data: writeRequest(approvalId) });
      tx.append('one', {
        type: 'receipt',
        turnId,
        data: { receiptId: randomUUID(), receiptSeq: 1, kind: 'outcome', approvalId, outcome: 'ok' },
      });
    });
    await first.close();

    clock = 900_000;
    const second = openIn(directory.path, { now: () => clock });
    expect(second.feed.draft('one')).toEqual({ messageId: 'm', turnId, role: 'thought', part: 2, text: 'half a sen' });
    const done = await second.commit((tx) =>
      recoverTranscripts(tx, {
        settle: (row) => (row.key === 'inside' ? { state: 'failed', result: '"cancelled"' } : null),
      }),
    );
    expect(done).toEqual({ messages: 1, turns: 1, operations: 2 });
    const [, , , said, ended] = second.read.events('one', 0, 9);
    expect(said).toMatchObject({ turnId, data: { text: 'half a sen', interrupted: true, part: 2, role: 'thought' } });
    expect(ended).toMatchObject({
      type: 'turn.ended',
      turnId,
      data: { stopReason: 'interrupted', durationMs: 4_000, changedPaths: ['src/a.ts'] },
    });
    expect(second.read.openTurns()).toEqual([]);
    expect(second.read.openDrafts()).toEqual([]);
    expect(second.read.conversation('one')?.lastStop).toBe('interrupted');
    expect(second.read.operation('outside')).toMatchObject({ state: 'uncertain', result: '"uncertain"' });
    expect(second.read.operation('inside')).toMatchObject({ state: 'failed' });
    expect(await second.commit((tx) => recoverTranscripts(tx))).toEqual({ messages: 0, turns: 0, operations: 0 });
    await second.close();
  });
});

describe('what is refused (L-24, T85)', () => {
  const refuses = (pattern: RegExp): void => {
    const before = readFileSync(at('ledger.db'));
    expect(() => openIn(directory.path)).toThrow(
      expect.objectContaining({ code: 'storage_refused', message: expect.stringMatching(pattern) as string }),
    );
    expect(readFileSync(at('ledger.db')).equals(before)).toBe(true);
  };
  const edit = (text: string): void => {
    const db = new DatabaseSync(at('ledger.db'));
    db.exec(text);
    db.close();
    chmodSync(at('ledger.db'), 0o600);
  };

  it('refuses a file of a newer version and leaves it as it was', async () => {
    await openIn(directory.path).close();
    edit('PRAGMA user_version = 99');
    refuses(/newer version/);
  });

  it('refuses a database of another program, also an unnamed one', () => {
    edit('CREATE TABLE t (x); PRAGMA application_id = 7');
    refuses(/another program/);
    edit('PRAGMA application_id = 0');
    refuses(/another program/);
  });

  it('refuses a file that is no database, and one that is damaged', async () => {
    writeFileSync(at('ledger.db'), 'hello, this is text and longer than sixteen bytes', { mode: 0o600 });
    refuses(/not a Countersign ledger/);
    writeFileSync(at('ledger.db'), '');
    await openIn(directory.path).close();
    const bytes = readFileSync(at('ledger.db'));
    bytes.fill(0xff, 20, 4_000);
    writeFileSync(at('ledger.db'), bytes);
    refuses(/damaged/);
  });

  it('refuses a file that others can read, and a link', async () => {
    await openIn(directory.path).close();
    chmodSync(at('ledger.db'), 0o640);
    refuses(/chmod 600/);
    mkdirSync(at('other'));
    symlinkSync(at('ledger.db'), at('other/ledger.db'));
    expect(() => openIn(at('other'))).toThrow(/regular file/);
  });

  it('keeps its files to itself', async () => {
    const ledger = openIn(directory.path);
    await ledger.commit((tx) => tx.setMeta('a', 'b'));
    for (const name of ['ledger.db', 'ledger.db-wal', 'ledger.db-shm'])
      expect(statSync(at(name)).mode & 0o777).toBe(0o600);
    await ledger.close();
  });
});

describe('a storage that fails (L-24, T84)', () => {
  it('turns read-only when it is full, loses nothing acknowledged, and accepts nothing more', async () => {
    const pages = openIn(directory.path);
    await pages.commit((tx) => putConversation(tx, 'one'));
    await pages.close();
    const logged: string[] = [];
    const ledger = openIn(directory.path, { log: (text) => logged.push(text), maxPages: 140 });
    const acknowledged: number[] = [];
    let refused: unknown = null;
    while (refused === null) {
      const works = [1, 2, 3].map(() => ledger.commit((tx) => tx.append('one', message('y'.repeat(20_000)))));
      for (const one of await Promise.allSettled(works)) {
        if (one.status === 'fulfilled') acknowledged.push(one.value?.seq ?? 0);
        else refused = one.reason;
      }
    }
    expect(refused).toMatchObject({ code: 'read_only' });
    expect(ledger.readOnly).toBe(true);
    expect(logged).toHaveLength(1);
    await expect(ledger.commit((tx) => tx.setMeta('a', 'b'))).rejects.toMatchObject({ code: 'read_only' });
    await expect(ledger.blobs.put('one', new Uint8Array(3), { mime: 'text/plain' })).rejects.toMatchObject({
      code: 'read_only',
    });
    ledger.feed.text('one', { turnId: null, messageId: 'm', role: 'agent', part: 0, text: 'still shown' });
    ledger.feed.text('one', { turnId: null, messageId: 'next', role: 'agent', part: 0, text: 'so is this' });
    expect(ledger.feed.draft('one')?.text).toBe('so is this');
    await ledger.close();

    const again = openIn(directory.path);
    expect(again.uncleanStop).toBe(true);
    expect(again.read.events('one', 0, 1e6).map((event) => event.seq)).toEqual(acknowledged);
    expect(acknowledged.length).toBeGreaterThan(3);
    await again.close();
  });

  it('goes on when a work of a room fails for reasons of its own, also with a file', async () => {
    const ledger = openIn(directory.path);
    await expect(ledger.commit(() => readFileSync(at('missing')))).rejects.toMatchObject({ code: 'ENOENT' });
    expect(ledger.readOnly).toBe(false);
    await ledger.close();
    await expect(ledger.commit((tx) => tx.setMeta('a', 'b'))).rejects.toMatchObject({ code: 'read_only' });
    const again = openIn(directory.path);
    expect(again.uncleanStop).toBe(false);
    await again.close();
  });

  it('turns read-only when a blob cannot be written', async () => {
    const options = optionsIn(directory.path);
    const ledger = openIn(directory.path, { blobs: at('nowhere') });
    await ledger.commit((tx) => putConversation(tx, 'one'));
    await expect(ledger.commit((tx) => tx.append('one', message('z'.repeat(100_000))))).rejects.toMatchObject({
      code: 'read_only',
    });
    expect(ledger.readOnly).toBe(true);
    expect(ledger.read.conversation('one')?.lastSeq).toBe(0);
    await ledger.close();
    expect(existsSync(options.blobs)).toBe(true);
  });
});

describe('locks (L-20, T87)', () => {
  it('refuses a second holder, names the first, and is freed by kill -9', async () => {
    const path = at('lock');
    const child = start('./lock-child.ts', path);
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    expect(said.toString()).toBe('held\n');
    const refused = acquireLock(path, { pid: process.pid, what: 'second' });
    expect(refused).toMatchObject({ held: false, holder: { pid: child.pid, what: 'a test' } });
    expect(!refused.held && refused.holder?.startTime).toMatch(/./);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const taken = acquireLock(path, { pid: process.pid, what: 'second' });
    expect(taken.held).toBe(true);
    expect(acquireLock(path, { pid: process.pid, what: 'third' })).toMatchObject({
      held: false,
      holder: { pid: process.pid, what: 'second' },
    });
    // Having been asked for again in this process, it is still kept from another one.
    const other = start('./lock-child.ts', path);
    const [refusedThere] = (await once(other.stdout, 'data')) as [Buffer];
    expect(refusedThere.toString()).toBe('refused\n');
    if (taken.held) {
      taken.release();
      taken.release();
    }
    const free = acquireLock(path, { pid: process.pid, what: 'third' });
    expect(free.held).toBe(true);
    if (free.held) free.release();
  });
});

describe('directories (L-20)', () => {
  const env = () => {
    mkdirSync(at('run'), { mode: 0o700, recursive: true });
    return { XDG_STATE_HOME: at('xdg'), XDG_RUNTIME_DIR: at('run') };
  };

  it('makes them 0700 by XDG or by --state, with a socket named after the real state', () => {
    const byXdg = stateDirectories(undefined, env());
    expect(byXdg.state).toBe(at('xdg/countersign'));
    const byOption = stateDirectories(at('mine'), env());
    for (const path of [
      byOption.state,
      byOption.private,
      byOption.practice,
      byOption.blobs,
      byOption.runtime,
      byOption.peers,
      byOption.leases,
    ]) {
      expect(statSync(path).mode & 0o777).toBe(0o700);
    }
    expect(byOption.controlSocket).toMatch(/\/run\/countersign\/[0-9a-f]{16}\.sock$/);
    expect(byOption.controlSocket).not.toBe(byXdg.controlSocket);
    symlinkSync(directory.path, at('alias'));
    expect(stateDirectories(at('alias/mine'), env()).controlSocket).toBe(byOption.controlSocket);
    expect(leasePath(byOption.leases, { dev: '1', ino: '2' })).toMatch(/leases\/[0-9a-f]{64}$/);
  });

  it('refuses one that others can use, a link and a file, each with its mend', () => {
    mkdirSync(at('open'), { mode: 0o755 });
    chmodSync(at('open'), 0o755);
    expect(() => stateDirectories(at('open'), env())).toThrow(/chmod 700/);
    symlinkSync(at('xdg'), at('link'));
    mkdirSync(at('xdg'), { mode: 0o700 });
    expect(() => stateDirectories(at('link'), env())).toThrow(/not a link/);
    writeFileSync(at('file'), '');
    expect(() => stateDirectories(at('file'), env())).toThrow(/could not be made/);
  });

  it('refuses a runtime directory too deep for a socket', () => {
    const deep = at('d'.repeat(90));
    mkdirSync(deep, { mode: 0o700 });
    expect(() => stateDirectories(at('mine'), { ...env(), XDG_RUNTIME_DIR: deep })).toThrow(/too long/);
  });
});
