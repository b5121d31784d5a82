import { describe, expect, it } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { toBase64 } from '#protocol/receipts.ts';
import { statementOf } from '../../web/state/envelope.ts';
import { checkLog, checkReceipt } from '../../web/workers/verify-checks.ts';
import type { Known, LogPage, Progress, ReceiptProof } from '../../web/workers/verify-contract.ts';
import { guessing, inThisThread, spkiOf, webPlatform, WrongGuess } from '../../web/workers/verify-platform.ts';
import { words } from '../../web/text/receipts.en.ts';
import { bridgeId, forked, installationKey, lies, otherKey, usual } from '../approvals/history.ts';
import { logOf, type Log } from './verify-log.ts';

const platform = webPlatform();
const known: Known = { bridgeId, publicKey: installationKey.publicKeyPem, checkpoint: null };
const fresh = { consistency: [], kept: false } as const;

/** Changes the signed statement inside an envelope and leaves the signature as it was. */
const tampered = (envelope: string, change: (statement: string) => string): string => {
  const parsed = JSON.parse(envelope) as Record<string, unknown>;
  const statement = statementOf(envelope) ?? '';
  return JSON.stringify({ ...parsed, payload: toBase64(new TextEncoder().encode(change(statement))) });
};

describe('one receipt, checked by the page (R-24)', () => {
  it.each([1, 2, 3, 4, 7])('verifies receipt %i of an honest log with every check in order', async (seq) => {
    const verdict = await checkReceipt(platform, known, logOf().proof(seq), fresh);
    expect(verdict.lines.filter((line) => !line.ok)).toEqual([]);
    expect(verdict).toMatchObject({ ok: true, incomplete: false, notes: [], problem: null });
    const order = ['pin', 'signature', 'schema', 'canonical', 'record', 'subject', 'sequence', 'chain', 'inclusion'];
    const checks = verdict.lines.map((line) => line.check);
    expect(checks.slice(0, order.length)).toEqual(order);
    expect(checks.slice(order.length, order.length + 2)).toEqual(['checkpoint', 'consistency']);
    expect(verdict.head).toMatchObject({ size: 7 });
    expect(verdict.statement?.predicate.receipt.seq).toBe(seq);
    expect(JSON.parse(verdict.forms?.bundle ?? '')).toHaveProperty('dsseEnvelope');
    expect(JSON.parse(verdict.forms?.trustedRoot ?? '')).toHaveProperty('tlogs');
    expect(verdict.forms?.signer).toBe(installationKey.publicKeyPem);
  });

  it('names a receipt whose signed bytes were changed, and reads nothing from them', async () => {
    const proof = logOf().proof(3);
    const envelope = tampered(proof.receipt.envelope, (text) => text.replace('"value":"allow"', '"value":"deny"'));
    expect(envelope).not.toBe(proof.receipt.envelope);
    const verdict = await checkReceipt(platform, known, { ...proof, receipt: { ...proof.receipt, envelope } }, fresh);
    expect(verdict.ok).toBe(false);
    expect(verdict.lines.find((line) => !line.ok)).toMatchObject({ check: 'signature' });
    expect(verdict).toMatchObject({ statement: null, forms: null });
  });

  it('names an action that is not the one that was signed', async () => {
    const proof = logOf().proof(3);
    const action = proof.receipt.action?.replace('npm', 'npx') ?? '';
    const verdict = await checkReceipt(platform, known, { ...proof, receipt: { ...proof.receipt, action } }, fresh);
    expect(verdict.lines.filter((line) => !line.ok).map((line) => line.check)).toEqual(['subject']);
  });

  it('holds what the bridge says about it to what was signed', async () => {
    const proof = logOf().proof(7);
    const summary = { ...proof.summary, value: 'allow' } as const;
    const verdict = await checkReceipt(platform, known, { ...proof, summary }, fresh);
    expect(verdict.lines.filter((line) => !line.ok).map((line) => line.check)).toEqual(['record']);
  });

  it('refuses a proof that leads to another place', async () => {
    const proof = logOf().proof(3);
    const inclusion = { ...proof.inclusion, index: 4 };
    const verdict = await checkReceipt(platform, known, { ...proof, inclusion }, fresh);
    expect(verdict.lines.filter((line) => !line.ok).map((line) => line.check)).toEqual(['inclusion']);
  });

  it('says when a receipt it depends on does not hold', async () => {
    const proof = logOf().proof(3);
    const [session] = proof.basis;
    const basis = [
      { ...session!, envelope: tampered(session!.envelope, (text) => text.replace('"seq":2', '"seq":9')) },
    ];
    const verdict = await checkReceipt(platform, known, { ...proof, basis }, fresh);
    expect(verdict.ok).toBe(false);
    expect(verdict.lines.at(-1)).toMatchObject({ check: 'basis', ok: false });
  });

  it('says when the key of the browser that decided is not there', async () => {
    const proof = { ...logOf().proof(3), basis: [] };
    const verdict = await checkReceipt(platform, known, proof, fresh);
    expect(verdict).toMatchObject({ ok: true, incomplete: true });
    expect(verdict.notes).toHaveLength(1);
  });

  it('says an action that went with its conversation, and holds nothing against it', async () => {
    const proof = logOf().proof(3);
    const receipt = { ...proof.receipt, action: null, actionDeleted: true };
    const verdict = await checkReceipt(platform, known, { ...proof, receipt }, fresh);
    expect(verdict).toMatchObject({ ok: true, incomplete: false });
    expect(verdict.notes).toHaveLength(1);
  });

  it('refuses a decision signed for another approval', async () => {
    const verdict = await checkReceipt(platform, known, logOf(lies.proofOfAnother()).proof(5), fresh);
    expect(verdict.lines.filter((line) => !line.ok).map((line) => line.check)).toEqual(['proof']);
  });
});

describe('the key and log this browser knows (R-24, T47, T48)', () => {
  const seen = (size: number, log: Log = logOf()): Known => ({ ...known, checkpoint: log.checkpoint(size) });

  it('never takes a key that comes along with what it signs', async () => {
    const verdict = await checkReceipt(platform, known, logOf(usual(otherKey), otherKey).proof(3), fresh);
    expect(verdict.ok).toBe(false);
    expect(verdict.problem).toMatchObject({ kind: 'key' });
    expect(verdict.lines.filter((line) => !line.ok).map((line) => line.check)).toEqual(
      expect.arrayContaining(['pin', 'signature']),
    );
  });

  it('sees that the log continues what it knows', async () => {
    const log = logOf();
    const options = { consistency: log.consistency(4), kept: false };
    const verdict = await checkReceipt(platform, seen(4), log.proof(3), options);
    expect(verdict).toMatchObject({ ok: true, problem: null });
  });

  it('is loud about a log that became shorter', async () => {
    const verdict = await checkReceipt(platform, seen(7), logOf().proof(3, 5), fresh);
    expect(verdict).toMatchObject({ ok: false, problem: { kind: 'rollback', from: 7, to: 5 } });
  });

  it('is loud about it also when a change of keys went with what was taken away', async () => {
    const changed: Known = { ...known, checkpoint: logOf(usual(otherKey), otherKey).checkpoint(7) };
    const rolledBack = { kind: 'rollback', from: 7, to: 5 };
    const one = await checkReceipt(platform, changed, logOf().proof(3, 5), fresh);
    expect(one).toMatchObject({ ok: false, problem: rolledBack });
    const log = logOf(usual().slice(0, 5));
    const shown = { publicKey: installationKey.publicKeyPem, checkpoint: log.checkpoint(), rotations: [] };
    const all = await checkLog(platform, changed, shown, log.page, () => {});
    expect(all).toMatchObject({ ok: false, problem: rolledBack });
  });

  it('is loud about another history of the same size', async () => {
    const verdict = await checkReceipt(platform, seen(7), logOf(forked()).proof(3), fresh);
    expect(verdict).toMatchObject({ ok: false, problem: { kind: 'fork' } });
  });

  it.each([
    ['no proof', null],
    ['a proof that does not lead there', [toBase64(new Uint8Array(32))]],
  ])('is loud when the bridge gives %s that the log continues', async (_, consistency) => {
    const verdict = await checkReceipt(platform, seen(4), logOf().proof(3), { consistency, kept: false });
    expect(verdict).toMatchObject({ ok: false, problem: { kind: 'fork' } });
  });

  it('is loud about a state of the log that the known key did not sign', async () => {
    const proof: ReceiptProof = { ...logOf().proof(3), checkpoint: logOf(usual(otherKey), otherKey).checkpoint() };
    const verdict = await checkReceipt(platform, known, proof, fresh);
    expect(verdict).toMatchObject({ ok: false, problem: { kind: 'checkpoint' } });
  });

  it('takes a kept receipt of an earlier state for what it is', async () => {
    const verdict = await checkReceipt(platform, seen(7), logOf().proof(3, 5), { consistency: null, kept: true });
    expect(verdict).toMatchObject({ ok: true, problem: null });
    expect(verdict.lines.find((line) => line.check === 'consistency')?.sentence).toBe(words.olderGood);
  });
});

describe('the whole log, checked by the page (R-24, T46)', () => {
  const check = async (log: Log, from: Known = known, page: (after: number) => Promise<LogPage> = log.page) => {
    const progress: Progress[] = [];
    const shown = { publicKey: installationKey.publicKeyPem, checkpoint: log.checkpoint(), rotations: [] };
    const verdict = await checkLog(platform, from, shown, page, (one) => progress.push(one));
    return { verdict, progress };
  };
  /** Serves the log with one receipt changed. */
  const changed =
    (log: Log, seq: number, change: (view: LogPage['receipts'][number]) => Partial<LogPage['receipts'][number]>) =>
    async (after: number): Promise<LogPage> => {
      const page = await log.page(after);
      return {
        ...page,
        receipts: page.receipts.map((view) => (view.seq === seq ? { ...view, ...change(view) } : view)),
      };
    };

  it('verifies an honest log page by page', async () => {
    const { verdict, progress } = await check(logOf());
    expect(verdict).toMatchObject({ ok: true, receipts: 7, problemCount: 0, problem: null, incomplete: false });
    expect(verdict.head).toMatchObject({ size: 7 });
    expect(progress.map((one) => one.done)).toEqual([3, 6, 7]);
  });

  it('names the receipt that was tampered with, and no other', async () => {
    const log = logOf();
    const page = changed(log, 5, (view) => ({
      envelope: tampered(view.envelope, (text) => text.replace('"value":"allow"', '"value":"deny"')),
    }));
    const { verdict, progress } = await check(log, known, page);
    expect(verdict.ok).toBe(false);
    expect(verdict.problems.filter((one) => one.check === 'signature').map((one) => one.seq)).toEqual([5]);
    expect(verdict.problems.map((one) => one.seq)).not.toContain(7);
    expect(progress.some((one) => one.slow)).toBe(true);
  });

  it('names the receipt whose action was exchanged', async () => {
    const log = logOf();
    const { verdict } = await check(
      log,
      known,
      changed(log, 7, (view) => ({ action: view.action?.replace('rm', 'ls') ?? '' })),
    );
    expect(verdict.problems).toMatchObject([{ seq: 7, check: 'subject' }]);
  });

  it('names an envelope that cannot be read', async () => {
    const log = logOf();
    const { verdict } = await check(
      log,
      known,
      changed(log, 4, () => ({ envelope: '{}' })),
    );
    expect(verdict.problems.find((one) => one.check === 'signature')).toMatchObject({ seq: 4 });
  });

  it('sees receipts that were left out', async () => {
    const log = logOf();
    const { verdict } = await check(log, known, async (after) => {
      const page = await log.page(after);
      return { ...page, receipts: page.receipts.filter((view) => view.seq !== 4) };
    });
    expect(verdict.ok).toBe(false);
    expect(verdict.problems).toContainEqual(expect.objectContaining({ check: 'sequence' }));
  });

  it('sees a log that became shorter or was rewritten since it was last seen', async () => {
    const before: Known = { ...known, checkpoint: logOf().checkpoint(7) };
    const shorter = await check(logOf(usual().slice(0, 5)), before);
    expect(shorter.verdict).toMatchObject({ ok: false, problem: { kind: 'rollback', from: 7, to: 5 } });
    const other = await check(logOf(forked()), before);
    expect(other.verdict).toMatchObject({ ok: false, problem: { kind: 'fork' } });
    const grown = await check(logOf(), { ...known, checkpoint: logOf().checkpoint(4) });
    expect(grown.verdict).toMatchObject({ ok: true, problem: null });
  });

  it('passes on why a page could not be had', async () => {
    const lost = new Error('gone');
    await expect(check(logOf(), known, () => Promise.reject(lost))).rejects.toBe(lost);
  });
});

describe('signatures checked beside the rest', () => {
  const bytes = new Uint8Array(1);
  const later = <T>(value: T): Promise<T> => new Promise((resolve) => setTimeout(resolve, 1, value));

  it('have at most so many under way at once', async () => {
    let running = 0;
    let most = 0;
    let asked = 0;
    const slow = guessing(platform, async (batch) => {
      asked += batch.length;
      most = Math.max(most, (running += batch.length));
      await later(null);
      running -= batch.length;
      return true;
    });
    const count = 3 * limits.verifyWindow + 5;
    for (let n = 0; n < count; n += 1) await slow.verify(bytes, bytes, bytes);
    await slow.settle();
    expect(most).toBe(limits.verifyWindow);
    expect({ asked, running }).toEqual({ asked: count, running: 0 });
  });

  it('settle only when all of them hold', async () => {
    const right = guessing(platform, () => later(true));
    expect(right.verify(bytes, bytes, bytes)).toBe(true);
    await expect(right.settle()).resolves.toBeUndefined();
    const wrong = guessing(platform, () => later(false));
    expect(wrong.verify(bytes, bytes, bytes)).toBe(true);
    await expect(wrong.settle()).rejects.toBeInstanceOf(WrongGuess);
    expect(() => wrong.verify(bytes, bytes, bytes)).toThrow(WrongGuess);
  });

  it('that cannot be checked are not taken for good', async () => {
    const broken = guessing(platform, () => Promise.reject(new Error('the other worker ended')));
    expect(broken.verify(bytes, bytes, bytes)).toBe(true);
    await expect(broken.settle()).rejects.toThrow('the other worker ended');
  });

  it('are all asked about, the last ones too', async () => {
    const log = logOf();
    const shown = { publicKey: installationKey.publicKeyPem, checkpoint: log.checkpoint(), rotations: [] };
    const asked: number[] = [];
    const verdict = await checkLog(
      platform,
      known,
      shown,
      log.page,
      () => {},
      async (batch) => {
        asked.push(batch.length);
        return inThisThread(platform)(batch);
      },
    );
    expect(verdict.ok).toBe(true);
    // Seven receipts, three of them decided by a person, and the signed state of the log.
    expect(asked.reduce((sum, count) => sum + count, 0)).toBe(11);
  });

  it('hold for real keys only', async () => {
    expect(spkiOf('not a key')).toHaveLength(0);
    expect(spkiOf(installationKey.publicKeyPem)).toEqual(new Uint8Array(installationKey.publicKeySpki));
    expect(await platform.verify(bytes, bytes, bytes)).toBe(false);
  });
});
