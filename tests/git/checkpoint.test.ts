import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { verifyAll } from '../../bridge/approvals/reader.ts';
import { applySteps } from '../../bridge/git/checkpoint-restore.ts';
import {
  codeOf,
  filesOf,
  gitProgram,
  never,
  openStage,
  operator,
  temporary,
  uuid,
  write,
  type Stage,
} from './checkpoint-stage.ts';

let directory: ReturnType<typeof temporary>;
let stage: Stage;
beforeEach(async () => {
  directory = temporary();
  stage = await openStage(directory.path);
});
afterEach(async () => {
  await stage.close();
  directory.remove();
});
const put = (path: string, content: Parameters<typeof write>[2]): void => write(stage.folder, path, content);
const remove = (path: string): void => rmSync(join(stage.folder, path));
const sorted = async (work: Promise<{ writes: { name: string; what: string }[] }>): Promise<string[]> =>
  (await work).writes.map(({ what, name }) => `${what} ${name}`);

/** Every object of the conversation's store, unpacked. */
const storedText = (): string => {
  const store = join(stage.stores, stage.conversationId, 'store.git');
  const git = (args: string[], input?: string): Buffer =>
    execFileSync(gitProgram, ['--git-dir', store, ...args], { input, maxBuffer: 1 << 28 });
  const oids = git(['cat-file', '--batch-all-objects', '--batch-check=%(objectname)']).toString();
  return git(['cat-file', '--batch'], oids).toString('latin1');
};

describe('F-23 what a turn changed', () => {
  it('is exact, also when the operator edits between turns', async () => {
    put('src/a.ts', 'a\n');
    put('src/b.ts', 'b\n');
    const first = await stage.turn(() => put('src/a.ts', 'a2\n'));
    put('src/b.ts', 'mine\n');
    put('notes.md', 'mine\n');
    const second = await stage.turn(() => {
      remove('src/a.ts');
      put('src/c.ts', 'c\n');
    });
    expect(await stage.changed({ turn: first })).toEqual(['M src/a.ts']);
    expect(await stage.changed({ turn: second })).toEqual(['A src/c.ts', 'D src/a.ts']);
  });

  it('shows text as text, whatever the folder says of how to compare it', async () => {
    put('.gitattributes', '* -diff -text\n');
    put('a.ts', 'one\ntwo\n');
    const turnId = await stage.turn(() => put('a.ts', 'one\nthree\n'));
    const difference = await stage.difference(turnId, 'a.ts');
    expect(difference).toMatchObject({ kind: 'text', hunks: [{ lines: [' one', '-two', '+three'] }] });
  });

  it('goes up to the files as they are while the turn runs', async () => {
    put('a', '1');
    const turnId = uuid();
    await stage.record('before_turn', turnId);
    put('a', '2');
    put('b', '1');
    expect(await stage.changed({ turn: turnId })).toEqual(['A b', 'M a']);
    expect(stage.room.list(stage.conversationId).checkpoints).toHaveLength(1);
  });

  it('shows a mode bit, a line end, a byte order mark, a link and an odd name', async () => {
    const odd = 'with space\tand "quotes"\nand é 漢 \u202e.txt';
    put('crlf.txt', 'a\r\nb\r\n');
    put('bom.txt', 'a\n');
    put('run.sh', 'echo\n');
    put('to', { link: 'crlf.txt' });
    const turnId = await stage.turn(() => {
      put('crlf.txt', 'a\nb\n');
      put('bom.txt', '\ufeffa\n');
      chmodSync(join(stage.folder, 'run.sh'), 0o755);
      put('to', { link: 'bom.txt' });
      put(odd, 'odd\n');
    });
    expect(await stage.changed({ turn: turnId })).toEqual(
      ['M bom.txt', 'M crlf.txt', 'M run.sh', 'M to', `A ${odd}`].sort(),
    );
  });

  it('finds the files of a repository within, and nothing that is ignored or fetched', async () => {
    put('.gitignore', 'dist/\n');
    put('dist/out.js', 'x');
    put('node_modules/p/index.js', 'x');
    put('inner/file.ts', 'a\n');
    execFileSync(gitProgram, ['init', '-q', join(stage.folder, 'inner')]);
    const turnId = await stage.turn(() => {
      put('dist/out.js', 'y');
      put('node_modules/p/index.js', 'y');
      put('inner/file.ts', 'b\n');
    });
    expect(await stage.changed({ turn: turnId })).toEqual(['M inner/file.ts']);
  });

  it('does not take a file for removed that a new line ignores', async () => {
    put('keep.log', '1');
    const turnId = await stage.turn(() => put('.gitignore', '*.log\n'));
    expect(await stage.changed({ turn: turnId })).toEqual(['A .gitignore']);
  });

  it('sees a change that keeps size and time', async () => {
    put('a', 'one');
    await stage.record('before_turn');
    const { mtime } = statSync(join(stage.folder, 'a'));
    const turnId = await stage.turn(() => put('a', 'two'));
    expect(mtime).toBeInstanceOf(Date);
    expect(await stage.changed({ turn: turnId })).toEqual(['M a']);
  });

  it('is refused for a conversation of another folder and for a turn that has none', async () => {
    expect(await codeOf(stage.changed({ turn: uuid() }))).toBe('checkpoint_unavailable');
  });
});

describe('F-23 recording', () => {
  it('stores the row, the event and the tree together, once more where nothing changed', async () => {
    put('a', '1');
    const one = await stage.record('before_turn', uuid());
    const two = await stage.record('after_turn', uuid());
    const rows = stage.ledger.read.fileCheckpoints(stage.conversationId);
    expect(rows.map(({ checkpointId, tree }) => [checkpointId, tree])).toEqual([
      [one.checkpointId, rows[0]?.tree],
      [two.checkpointId, rows[0]?.tree],
    ]);
    expect(stage.events('checkpoint').map(({ data }) => data)).toEqual([
      { checkpointId: one.checkpointId, why: 'before_turn', files: 1, bytes: 1, skipped: 0 },
      { checkpointId: two.checkpointId, why: 'after_turn', files: 1, bytes: 1, skipped: 0 },
    ]);
  });

  it('keeps secrets out of the store under any of their names, and counts them (F-04)', async () => {
    put('.env', 'TOKEN=hunter2-environment');
    put('deep/id_ed25519', 'hunter2-key');
    put('a.txt', 'plain-text-is-there');
    linkSync(join(stage.folder, '.env'), join(stage.folder, 'harmless.txt'));
    execFileSync(gitProgram, ['init', '-q', stage.folder]);
    writeFileSync(join(stage.folder, '.git/config'), '[remote "o"]\n url = https://user:hunter2-remote@host/\n');
    const { files, skipped } = await stage.record('before_turn');
    expect({ files, skipped }).toEqual({ files: 1, skipped: 3 });
    expect(storedText()).toContain('plain-text-is-there');
    expect(storedText()).not.toContain('hunter2');
  });

  it('leaves out what is no file and what is too large, and says how many', async () => {
    execFileSync('mkfifo', [join(stage.folder, 'pipe')]);
    put('large.bin', new Uint8Array(33 * 1024 * 1024));
    put('back\\slash', 'x');
    put('a', '1');
    const { files, skipped } = await stage.record('before_turn');
    expect(files).toBe(1);
    // Git itself names no pipe.
    expect(skipped).toBe(2);
  });

  it('runs nothing of the repository: no helper, no filter, no hook', async () => {
    const mark = join(directory.path, 'ran');
    execFileSync(gitProgram, ['init', '-q', stage.folder]);
    const config = (name: string): void =>
      void execFileSync(gitProgram, ['-C', stage.folder, 'config', name, `sh -c 'touch ${mark}; cat'`]);
    for (const name of ['core.fsmonitor', 'filter.f.clean', 'filter.f.process', 'diff.d.textconv']) config(name);
    put('.gitattributes', '* filter=f diff=d text eol=crlf\n');
    put('a', 'x\n');
    const turnId = await stage.turn(() => put('a', 'y\n'));
    await stage.changed({ turn: turnId });
    expect(readdirSync(directory.path)).not.toContain('ran');
    expect(storedText()).toContain('y\n');
  });

  it('is not done without git or in too large a folder, which is said once', async () => {
    await stage.close();
    stage = await openStage(directory.path, { program: null });
    const attempt = () => stage.room.record(stage.conversationId, 'before_turn', null, never());
    expect([await attempt(), await attempt()]).toEqual([null, null]);
    expect(stage.room.list(stage.conversationId).absent).toContain('Git is not installed');
    expect(stage.events('notice').map(({ data }) => data.code)).toEqual(['no_checkpoint']);
  });

  it('goes on after a lost or damaged cache and a lost store', async () => {
    put('a', '1');
    await stage.record('before_turn');
    await stage.close();
    writeFileSync(join(stage.stores, stage.conversationId, 'scan.json'), '{"version":1,"entr');
    stage = await openStage(directory.path);
    put('b', '1');
    expect((await stage.record('before_turn')).files).toBe(2);
    await stage.close();
    rmSync(join(stage.stores, stage.conversationId, 'store.git'), { recursive: true });
    stage = await openStage(directory.path);
    put('c', '1');
    expect((await stage.record('before_turn')).files).toBe(3);
    const checkpointId = (await stage.record('before_turn')).checkpointId;
    remove('a');
    await stage.restore(checkpointId);
    expect(Object.keys(filesOf(stage.folder))).toEqual(['a', 'b', 'c']);
  });

  it('is forgotten with the conversation', async () => {
    put('a', '1');
    await stage.record('before_turn');
    await stage.ledger.commit((tx) => tx.deleteConversation(stage.conversationId));
    await stage.room.sweep();
    expect(readdirSync(stage.stores)).toEqual([]);
    expect(await codeOf(Promise.resolve().then(() => stage.room.list(stage.conversationId)))).toBe(
      'unknown_conversation',
    );
  });

  it('tidies when quiet: what a row keeps stays, what it does not keep goes', async () => {
    await stage.close();
    stage = await openStage(directory.path, { tidyMs: 20 });
    put('a', '0');
    const { checkpointId } = await stage.record('before_turn');
    for (let round = 1; round <= 41; round += 1) {
      put('a', `transient ${round}`);
      await stage.changed({ from: checkpointId, to: null });
    }
    const packs = () => readdirSync(join(stage.stores, stage.conversationId, 'store.git/objects/pack'));
    const deadline = Date.now() + 20_000;
    while (packs().length > 20 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(packs().length).toBeLessThanOrEqual(20);
    await stage.restore(checkpointId);
    expect(filesOf(stage.folder)).toEqual({ a: '0' });
  });
});

describe('F-23 putting back', () => {
  it('puts one file back, the whole, and takes it back again', async () => {
    put('a', 'a1');
    put('b', 'b1');
    put('run.sh', { run: 'echo' });
    put('to', { link: 'a' });
    const before = filesOf(stage.folder);
    const turnId = await stage.turn(() => {
      put('a', 'a2');
      put('deep/er/new', 'n');
      put('run.sh', 'echo 2');
      put('to', { link: 'b' });
      remove('b');
    });
    const changed = filesOf(stage.folder);
    const [began] = stage.ledger.read.fileCheckpoints(stage.conversationId);
    const checkpointId = began?.checkpointId ?? '';
    expect(turnId).not.toBe('');
    const plan = await stage.plan(checkpointId);
    expect(plan.writes.map(({ name, what, movedOn, refused }) => [what, name, movedOn, refused])).toEqual([
      ['write', 'a', null, null],
      ['create', 'b', null, null],
      ['remove', 'deep/er/new', null, null],
      ['write', 'run.sh', null, null],
      ['write', 'to', null, null],
    ]);
    const one = await stage.restore(checkpointId, [plan.writes[1]?.id ?? '']);
    expect(filesOf(stage.folder)).toEqual({ ...changed, b: 'b1' });
    await stage.restore(one.undoCheckpointId ?? '');
    expect(filesOf(stage.folder)).toEqual(changed);
    const whole = await stage.restore(checkpointId);
    expect(whole).toMatchObject({ written: 4, removed: 1 });
    expect(filesOf(stage.folder)).toEqual(before);
    expect(readdirSync(stage.folder)).not.toContain('deep');
    await stage.restore(whole.undoCheckpointId ?? '');
    expect(filesOf(stage.folder)).toEqual(changed);
  });

  it('signs before and after, and the record verifies (R-01, R-21)', async () => {
    put('a', '1');
    const { checkpointId } = await stage.record('before_turn');
    put('a', '2');
    const answer = await stage.restore(checkpointId);
    const receipts = stage.ledger.read.receipts({ conversationId: stage.conversationId, limit: 10 }).reverse();
    expect(receipts.map(({ kind, sentence }) => [kind, sentence])).toEqual([
      ['restore', 'Began to put 1 file back'],
      ['restore', 'Put 1 file back: a.'],
    ]);
    expect(answer.receiptId).toBe(receipts[1]?.receiptId);
    expect(verifyAll(stage.ledger.read, stage.key.publicKeySpki, stage.ledger.bridgeId).problems).toEqual([]);
    expect(stage.events('restored').map(({ data }) => data)).toMatchObject([
      { checkpointId, outcome: 'ok', paths: ['a'], written: 1, removed: 0, undoCheckpointId: answer.undoCheckpointId },
    ]);
  });

  it('names what something else changed since, by what it is about', async () => {
    put('a', '1');
    put('b', '1');
    await stage.turn(() => {
      put('a', '2');
      put('b', '2');
    });
    put('a', 'mine');
    const checkpointId = stage.ledger.read.fileCheckpoints(stage.conversationId)[0]?.checkpointId ?? '';
    const { writes } = await stage.plan(checkpointId);
    expect(writes.map(({ name, movedOn }) => [name, movedOn])).toEqual([
      ['a', 'Changed after this turn ended.'],
      ['b', null],
    ]);
    const { undoCheckpointId } = await stage.restore(checkpointId);
    put('b', 'mine too');
    expect((await stage.plan(undoCheckpointId ?? '')).writes.map(({ name, movedOn }) => [name, movedOn])).toEqual([
      ['a', null],
      ['b', 'Changed after the files were put back.'],
    ]);
  });

  it('does nothing for another plan than the one that was shown, and says what moved', async () => {
    put('a', '1');
    put('b', '1');
    const { checkpointId } = await stage.record('before_turn');
    put('a', '2');
    const { digest } = await stage.plan(checkpointId);
    put('b', '2');
    const params = { conversationId: stage.conversationId, checkpointId, digest };
    const refused = stage.room.restore(operator, params, () => undefined);
    await expect(refused).rejects.toMatchObject({ code: 'worktree_moved', details: { paths: 'b', count: 1 } });
    expect(await codeOf(stage.room.restore(operator, { ...params, digest: '0'.repeat(64) }, () => undefined))).toBe(
      'digest_mismatch',
    );
    expect(filesOf(stage.folder)).toEqual({ a: '2', b: '2' });
    expect(stage.events('receipt')).toEqual([]);
  });

  it('refuses by name what it cannot do safely', async () => {
    put('a', '1');
    put('out', { link: 'a' });
    put('was/file', '1');
    put('plain', '1');
    const { checkpointId } = await stage.record('before_turn');
    put('out', { link: '/etc' });
    const outside = await stage.record('before_turn');
    put('out', { link: 'a' });
    remove('a');
    mkdirSync(join(stage.folder, 'a'));
    renameSync(join(stage.folder, 'was'), join(directory.path, 'moved'));
    put('was', { link: '../moved' });
    remove('plain');
    execFileSync('mkfifo', [join(stage.folder, 'plain')]);
    const { writes } = await stage.plan(checkpointId);
    expect(writes.map(({ name, refused }) => [name, refused])).toEqual([
      ['a', 'A folder stands in its place.'],
      ['plain', 'Something that checkpoints leave out stands in its place.'],
      ['was', null],
      ['was/file', null],
    ]);
    expect((await stage.plan(outside.checkpointId)).writes.find(({ name }) => name === 'out')?.refused).toContain(
      'leads out of this folder',
    );
    await stage.restore(checkpointId);
    expect(readFileSync(join(stage.folder, 'was/file'), 'utf8')).toBe('1');
    // The link was replaced, not followed.
    expect(readdirSync(join(directory.path, 'moved'))).toEqual(['file']);
  });

  it('stops at the first file that moved, and takes back what it had done', async () => {
    for (const path of ['a', 'b', 'c']) put(path, '1');
    await stage.record('before_turn');
    put('a', '2');
    put('b', '2');
    remove('c');
    put('d', 'new');
    const { shelf } = stage.room;
    const done = await shelf.inOrder(stage.conversationId, async (place) => {
      const scan = await shelf.scan(place, stage.root, uuid(), never());
      const tree = stage.ledger.read.fileCheckpoints(stage.conversationId)[0]?.tree ?? '';
      const steps = await place.store.differences(scan.tree, tree, never());
      expect(steps.map(({ path }) => path)).toEqual(['a', 'b', 'c', 'd']);
      put('b', 'someone else');
      const revisions = (path: string): string | null => scan.entries.get(path)?.revision ?? null;
      return applySteps({ root: stage.root, store: place.store }, steps, revisions, never());
    });
    expect(done).toMatchObject({ written: [], removed: [], at: 'b', stopped: { code: 'file_changed' } });
    expect(filesOf(stage.folder)).toEqual({ a: '2', b: 'someone else', d: 'new' });
  });

  it('does not touch what was never recorded', async () => {
    put('.env', 'A=1');
    put('a', '1');
    const { checkpointId } = await stage.record('before_turn');
    put('.env', 'A=2');
    put('a', '2');
    expect(await sorted(stage.plan(checkpointId))).toEqual(['write a']);
    await stage.restore(checkpointId);
    expect(filesOf(stage.folder)).toEqual({ '.env': 'A=2', a: '1' });
  });

  it('says that a restore which a crash cut off is uncertain (D-32)', async () => {
    put('a', '1');
    const { checkpointId } = await stage.record('before_turn');
    await stage.ledger.commit((tx) => tx.changeFileCheckpoint(checkpointId, { restoring: uuid() }));
    await stage.close();
    stage = await openStage(directory.path);
    expect(stage.events('restored').map(({ data }) => data)).toMatchObject([
      { outcome: 'uncertain', undoCheckpointId: checkpointId },
    ]);
    expect(stage.ledger.read.openRestores()).toEqual([]);
    expect(verifyAll(stage.ledger.read, stage.key.publicKeySpki, stage.ledger.bridgeId).problems).toEqual([]);
  });
});
