/**
 * What this browser knows of a bridge's receipts from before: the key it saw first, and the newest signed state of the
 * log. Never replaced by itself; outlives the offline copy, because forgetting it is how a swapped key would go unseen.
 */
import { openDB, type DBSchema, type IDBPDatabase } from 'idb';

export interface Pin {
  readonly bridgeId: string;
  /** SPKI, PEM, of the first key; later ones are reached from it by key changes it signed. */
  readonly publicKey: string;
  readonly pinnedAt: number;
  /** The largest checkpoint that held: a C2SP signed note. */
  readonly checkpoint: { readonly note: string; readonly size: number; readonly seenAt: number } | null;
}

interface Schema extends DBSchema {
  pins: { key: string; value: Pin };
}

const use = async <T>(work: (database: IDBPDatabase<Schema>) => Promise<T>): Promise<T> => {
  const database = await openDB<Schema>('countersign.pins', 1, {
    upgrade: (created) => void created.createObjectStore('pins', { keyPath: 'bridgeId' }),
  });
  try {
    return await work(database);
  } finally {
    database.close();
  }
};

export const readPin = (bridgeId: string): Promise<Pin | null> =>
  use(async (database) => (await database.get('pins', bridgeId)) ?? null);

/** Pins the key unless one is pinned already; answers the pin that holds. One transaction, so that two tabs agree. */
export const pinKey = (bridgeId: string, publicKey: string, now: number): Promise<Pin> =>
  use(async (database) => {
    const transaction = database.transaction('pins', 'readwrite');
    const known = await transaction.store.get(bridgeId);
    const pin = known ?? { bridgeId, publicKey, pinnedAt: now, checkpoint: null };
    if (known === undefined) await transaction.store.put(pin);
    await transaction.done;
    return pin;
  });

/** Keeps a checkpoint that held; a smaller one than the known is passed over. */
export const pinCheckpoint = (bridgeId: string, checkpoint: NonNullable<Pin['checkpoint']>): Promise<Pin | null> =>
  use(async (database) => {
    const transaction = database.transaction('pins', 'readwrite');
    const known = await transaction.store.get(bridgeId);
    const isNews = known !== undefined && checkpoint.size >= (known.checkpoint?.size ?? 0);
    const pin = isNews ? { ...known, checkpoint } : (known ?? null);
    if (pin !== null && isNews) await transaction.store.put(pin);
    await transaction.done;
    return pin;
  });

/** The operator's own act, after being told: another key, or another beginning of the log. */
export const replacePin = (pin: Pin): Promise<void> =>
  use(async (database) => {
    await database.put('pins', pin);
  });
