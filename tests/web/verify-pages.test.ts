import { describe, expect, it } from 'vitest';
import type { Params } from '#protocol/methods.ts';
import type { ReceiptSummary } from '#protocol/methods/receipt.ts';
import type { App } from '../../web/state/app.svelte.ts';
import { aroundKept, aroundLive } from '../../web/state/receipt-around.ts';
import { joined, matches, ReceiptLog } from '../../web/state/receipts.svelte.ts';
import { words } from '../../web/text/receipts.en.ts';
import { checkReceipt } from '../../web/workers/verify-checks.ts';
import { webPlatform } from '../../web/workers/verify-platform.ts';
import { factsOf } from '../../web/view/receipts/facts.ts';
import { commandsOf, filesOf } from '../../web/view/receipts/files.ts';
import { bridgeId, installationKey } from '../approvals/history.ts';
import { logOf } from './verify-log.ts';

const log = logOf();
const all = [7, 6, 5, 4, 3, 2, 1].map((seq) => log.proof(seq).summary);
const summary = (seq: number): ReceiptSummary => all[7 - seq]!;

/** A bridge with these receipts and nothing else; counts what it is asked. */
const appWith = (receipts: readonly ReceiptSummary[], more: Partial<App> = {}) => {
  const asked: Params<'receipt.list'>[] = [];
  const answer = (method: string, params: Params<'receipt.list'>): unknown => {
    if (method === 'receipt.list') {
      asked.push(params);
      const before = params.beforeSeq ?? Infinity;
      const found = receipts.filter(
        (one) =>
          one.seq < before && (params.conversationId === undefined || one.conversationId === params.conversationId),
      );
      const limit = params.limit ?? 200;
      return { receipts: found.slice(0, limit), more: found.length > limit };
    }
    if (method === 'receipt.page') {
      const view = all.find((one) => one.seq === (params as unknown as { afterSeq: number }).afterSeq + 1);
      return { receipts: view === undefined ? [] : [log.view(view.seq)], more: false };
    }
    return { seq: 42 };
  };
  const app = {
    live: true,
    copy: null,
    call: (method: string, params: Params<'receipt.list'>) =>
      Promise.resolve({ ok: true, value: answer(method, params) }),
    ...more,
  };
  return { app: app as unknown as App, asked };
};
const many = (count: number): ReceiptSummary[] =>
  Array.from({ length: count }, (_, index) => ({
    ...summary(index % 50 === 0 ? 7 : 4),
    seq: count - index,
    receiptId: `01970000-0000-7000-8000-${String(count - index).padStart(12, '0')}`,
  }));

describe('the list of receipts', () => {
  it('joins what is new to what is known, and starts anew where they do not meet', () => {
    expect(joined(all.slice(0, 4), all.slice(2))).toEqual(all);
    expect(joined(all.slice(0, 2), all.slice(3))).toBeNull();
    expect(joined(all, [])).toEqual(all);
  });

  it('narrows by kind, by who decided and by conversation', () => {
    const none = { kind: '', conversationId: '', by: '' } as const;
    const seqs = (filter: Parameters<typeof matches>[1]): number[] =>
      all.filter((one) => matches(one, filter)).map((one) => one.seq);
    expect(seqs({ ...none, kind: 'decision' })).toEqual([7, 5, 3]);
    expect(seqs({ ...none, by: 'operator' })).toEqual([7, 5, 3]);
    expect(seqs({ ...none, conversationId: 'another' })).toEqual([]);
    expect(seqs(none)).toHaveLength(7);
  });

  it('asks for older pages until a filter that few match shows a screenful', async () => {
    const { app, asked } = appWith(many(5000));
    const list = new ReceiptLog(app);
    await list.refresh();
    expect(asked).toHaveLength(1);
    await list.narrow({ kind: 'decision' });
    expect(list.shown.length).toBeGreaterThanOrEqual(40);
    expect(list.more).toBe(true);
    expect(asked.length).toBeLessThan(5000 / 200);
  });

  it('comes to the end', async () => {
    const list = new ReceiptLog(appWith(many(450)).app);
    await list.refresh();
    while (await list.older());
    expect(list.items).toHaveLength(450);
    expect(new Set(list.items.map((one) => one.seq)).size).toBe(450);
    expect(list.more).toBe(false);
  });

  it('shows those kept here while the bridge is away, and the whole log again when it is back', async () => {
    const receipts = { list: () => Promise.resolve([{ proof: log.proof(3) }]) };
    const { app } = appWith(all, { live: false, copy: { receipts } } as unknown as Partial<App>);
    const list = new ReceiptLog(app);
    await list.showKept();
    expect(list).toMatchObject({ kept: true, items: [summary(3)] });
    Object.assign(app, { live: true });
    await list.refresh();
    expect(list.kept).toBe(false);
    expect(list.items).toEqual(all);
  });
});

describe('the ways from a receipt', () => {
  it('lead to its neighbours, its pair and the place where it was asked', async () => {
    const { app } = appWith(all);
    const ids = new Map(all.map((one) => [one.seq, one.receiptId]));
    const from = (seq: number) => aroundLive(app, summary(seq), log.view(seq).envelope);
    expect(await from(3)).toEqual({ previous: ids.get(2), next: ids.get(4), pair: ids.get(4), seq: 42 });
    expect(await from(4)).toMatchObject({ pair: ids.get(3) });
    expect(await from(7)).toMatchObject({ previous: ids.get(6), next: null, pair: null });
    expect(await from(1)).toEqual({ previous: null, next: ids.get(2), pair: null, seq: null });
  });

  it('stay among those kept here without the bridge', () => {
    const kept = [summary(6), summary(5), summary(2)];
    expect(aroundKept(kept, summary(5))).toEqual({
      previous: summary(2).receiptId,
      next: summary(6).receiptId,
      pair: summary(6).receiptId,
      seq: null,
    });
  });
});

describe('what is shown and handed out of a verified receipt', () => {
  const known = { bridgeId, publicKey: installationKey.publicKeyPem, checkpoint: null };
  const check = (seq: number) => checkReceipt(webPlatform(), known, log.proof(seq), { consistency: [], kept: false });

  it('is what was signed, in words', async () => {
    const { statement } = await check(7);
    const facts = new Map(factsOf(statement!).map((fact) => [fact.name, fact.value]));
    expect(facts.get(words.field.decision)).toBe('Denied by you, with “deny”');
    expect(facts.get(words.field.number)).toBe('No. 7');
    expect(facts.get(words.field.agent)).toBe('Practice agent 1.0.0');
    expect(facts.get(words.field.action)).toMatch(/^sha256 [0-9a-f]{64}/);
  });

  it('has every file that the commands name', async () => {
    const proof = log.proof(3);
    const { forms } = await check(3);
    const names = new Set(filesOf(proof, forms).map((file) => file.name));
    const named = commandsOf(3)
      .flatMap((command) => command.split(' '))
      .filter((word) => /^3\.|\.pem$|\.json$/.test(word));
    expect(named.length).toBeGreaterThan(5);
    for (const name of named) expect(names, name).toContain(name);
  });

  it('hands out no key and no bundle of what does not hold', () => {
    const names = filesOf(log.proof(3), null).map((file) => file.name);
    expect(names).not.toContain('public.pem');
    expect(names).not.toContain('3.sigstore.json');
  });
});
