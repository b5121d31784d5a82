/**
 * Idempotency (D-30 to D-32): one key, one effect. A key asked again joins the running work or gets the stored answer;
 * the same key for something else is a conflict. Called by the command table for every method that mutates.
 */
import { createHash } from 'node:crypto';
import { Refusal } from '#protocol/errors.ts';
import { canonical } from '#protocol/json.ts';
import type { Ledger, Tx } from '../ledger/contract.ts';

export interface Operation {
  readonly key: string;
  /** Records the answer in the transaction that holds the effect. */
  store(tx: Tx, answer: object): void;
}

type Work = (operation: Operation) => Promise<object>;

interface Asked {
  readonly key: string;
  readonly method: string;
  readonly params: unknown;
  /** The effect lies outside the database: `running` is durable before it starts, and it is never run again by itself. */
  readonly external: boolean;
}

export const createOperations = (ledger: Pick<Ledger, 'commit' | 'read'>) => {
  const running = new Map<string, { readonly hash: string; readonly answer: Promise<object> }>();

  const stored = (row: { state: string; result: string | null }): object => {
    if (row.state === 'done') return JSON.parse(row.result ?? '{}') as object;
    throw new Refusal('uncertain');
  };

  const perform = async (asked: Asked, paramsSha256: string, work: Work): Promise<object> => {
    const { key, method } = asked;
    let recorded = false;
    const operation: Operation = {
      key,
      store: (tx, answer) => {
        if (!asked.external) tx.acceptOperation({ key, method, paramsSha256 });
        tx.finishOperation(key, 'done', JSON.stringify(answer));
        recorded = true;
      },
    };
    if (asked.external) await ledger.commit((tx) => tx.acceptOperation({ key, method, paramsSha256 }));
    try {
      const answer = await work(operation);
      if (!recorded) await ledger.commit((tx) => operation.store(tx, answer));
      return answer;
    } catch (error) {
      // A refusal had no effect: the key is free again. Anything else leaves `running`, which reads as uncertain.
      if (asked.external && error instanceof Refusal) {
        await ledger.commit((tx) => tx.finishOperation(key, 'failed', error.code));
      }
      throw error;
    }
  };

  return {
    async run(asked: Asked, work: Work): Promise<object> {
      const hash = createHash('sha256')
        .update(canonical({ method: asked.method, params: asked.params }))
        .digest('hex');
      const joined = running.get(asked.key);
      if (joined !== undefined) {
        if (joined.hash !== hash) throw new Refusal('idempotency_conflict');
        return joined.answer;
      }
      const row = ledger.read.operation(asked.key);
      if (row !== null && row.state !== 'failed') {
        if (row.paramsSha256 !== hash) throw new Refusal('idempotency_conflict');
        return stored(row);
      }
      const answer = perform(asked, hash, work);
      running.set(asked.key, { hash, answer });
      try {
        return await answer;
      } finally {
        running.delete(asked.key);
      }
    },
  };
};
export type Operations = ReturnType<typeof createOperations>;
