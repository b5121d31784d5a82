/**
 * The log over the receipts: each appends its leaf in its own transaction; the whole is signed at boot, when
 * asked, and every so many receipts. The last checkpoint is also kept in a file of its own, so that an older database
 * put back in its place is noticed (T47). The rule not to break: that file is written after COMMIT only, and never while
 * it contradicts the log, because then it is the evidence. Called by the seal, main and the verbs that read a state.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fsyncSync, openSync, readSync, renameSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { keyringOf } from '#protocol/keyring.ts';
import { limits } from '#protocol/limits.ts';
import { append, leafBody, leafHash, openCheckpoint, rootOf } from '#protocol/log.ts';
import { receiptOrigin, toHex } from '#protocol/receipts.ts';
import { inSync } from '#protocol/steps.ts';
import type { KnownCheckpoint } from '#protocol/verify.ts';
import type { CheckpointRow, Ledger, Reads, ReceiptRow, Tx } from '../ledger/contract.ts';
import { syncDirectory } from './keys.ts';
import { nodePlatform } from './reader.ts';
import type { DeskSeal } from './seal.ts';

/** `publicKeySpki` is of the key that signed the receipt. */
export const appendToLog = (tx: Tx, row: ReceiptRow, publicKeySpki: Uint8Array): void => {
  const body = leafBody(nodePlatform.sha256(row.payload), row.signature, publicKeySpki);
  const leaf = inSync(leafHash(nodePlatform, nodePlatform.utf8(body)));
  tx.putLogNodes(row.seq, inSync(append(nodePlatform, row.seq - 1, leaf, tx.logNode)));
};

/** Receipts older than the log itself; all of them were signed by this one key. */
export const backfillLog = (tx: Tx, publicKeySpki: Uint8Array): void => {
  const size = tx.logSize();
  if (size === tx.lastReceipt()?.seq) return;
  for (const row of tx.allReceipts()) if (row.seq > size) appendToLog(tx, row, publicKeySpki);
};

/** Signs the log as the transaction sees it; the signature over the same state is used again for another place. */
export const putCheckpoint = (tx: Tx, sign: DeskSeal['checkpoint'], at: number, place: string): CheckpointRow => {
  const size = tx.logSize();
  const root = inSync(rootOf(nodePlatform, size, tx.logNode));
  const last = tx.lastCheckpoint(size);
  const isSigned = last !== null && last.size === size && toHex(last.root) === toHex(root);
  const row = { size, root, note: isSigned ? last.note : sign(size, root), at, place };
  tx.putCheckpoint(row);
  return row;
};

const keptPath = (directory: string): string => join(directory, 'checkpoint');

/** The checkpoint kept beside the database in `directory` (`<state>/private`); null where there is none. */
const readKept = (directory: string): string | null => {
  try {
    const file = openSync(keptPath(directory), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const bytes = Buffer.alloc(limits.checkpointUnits + 1);
      return bytes.toString('utf8', 0, readSync(file, bytes));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
};

/** Whole or not at all, also through a power cut. */
const writeKept = (directory: string, note: string): void => {
  const path = keptPath(directory);
  const fresh = `${path}.${randomBytes(8).toString('hex')}`;
  const file = openSync(fresh, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  try {
    writeSync(file, note);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(fresh, path);
  syncDirectory(dirname(path));
};

/** What the verifier is given: every checkpoint of the database, and the one kept beside it. */
export const knownCheckpoints = (read: Reads, directory: string): KnownCheckpoint[] => {
  const kept = readKept(directory); // before the database: a bridge that runs writes it after
  const rows = read.checkpoints();
  const isKnown = kept === null || rows.some((row) => row.note === kept);
  return isKnown ? rows : [...rows, { note: kept, place: 'private/checkpoint' }];
};

/**
 * What the checkpoint kept beside the database says against the database, in one sentence, with the checkpoint where it is
 * one of this log; null when they agree or none is kept. `publicKeySpki` is of the present key.
 */
export const contradictionIn = (
  read: Reads,
  publicKeySpki: Uint8Array,
  bridgeId: string,
  directory: string,
): { sentence: string; row: Omit<CheckpointRow, 'at' | 'place'> | null } | null => {
  const note = readKept(directory);
  if (note === null) return null;
  const keys = [...inSync(keyringOf(nodePlatform, publicKeySpki, read.rotations())).values()];
  const head = inSync(
    openCheckpoint(
      nodePlatform,
      note,
      receiptOrigin(bridgeId),
      keys.map((key) => key.publicKeySpki),
    ),
  );
  if (head === null)
    return {
      sentence: `${keptPath(directory)} is of another log, or not signed by its key. If the former database was removed on purpose, move this file away.`,
      row: null,
    };
  const size = read.logSize();
  const row = { ...head, note };
  if (head.size > size)
    return {
      sentence: `The database holds ${size} receipts, but ${head.size} were signed before: an older copy was put back, or receipts were removed.`,
      row,
    };
  if (toHex(inSync(rootOf(nodePlatform, head.size, read.logNode))) === toHex(head.root)) return null;
  return { sentence: `The first ${head.size} receipts are not the ones that were signed before.`, row };
};

export interface Checkpoints {
  /** What was noticed at boot; null when nothing was. */
  readonly noticed: string | null;
  /** Signs the log as it is now, and keeps that under `place`. @throws Refusal read_only */
  sign(place: string): Promise<CheckpointRow>;
  /** Keeps the checkpoint over `size` receipts under the place it was written to; without one of that size nothing. */
  anchored(size: number, place: string): Promise<void>;
  /** Signs only when the log has grown beyond the last checkpoint, and not on a ledger that cannot be written. */
  cover(): Promise<void>;
  /** Writes the last checkpoint to its file, when a transaction that holds it was committed. */
  publish(): void;
}

/** At boot, after `genesis`: looks for a rollback, says it, keeps the evidence, and signs what has grown. */
export const openCheckpoints = async (options: {
  readonly ledger: Ledger;
  readonly seal: DeskSeal;
  /** `<state>/private`. */
  readonly directory: string;
  readonly now: () => number;
  readonly log: (message: string, error?: unknown) => void;
}): Promise<Checkpoints> => {
  const { ledger, seal, directory, now } = options;
  const found = contradictionIn(ledger.read, seal.key.publicKeySpki, ledger.bridgeId, directory);
  let published = found === null ? readKept(directory) : null;

  const publish = (): void => {
    const note = ledger.read.lastCheckpoint(ledger.read.logSize())?.note ?? null;
    if (found !== null || note === null || note === published) return;
    try {
      writeKept(directory, note);
      published = note;
    } catch (error) {
      options.log('The checkpoint could not be written to its file; it is in the database.', error); // the next one tries again
    }
  };
  const sign = async (place: string): Promise<CheckpointRow> => {
    const row = await ledger.commit((tx) => putCheckpoint(tx, seal.checkpoint, now(), place));
    publish();
    return row;
  };
  const anchored = async (size: number, place: string): Promise<void> => {
    await ledger.commit((tx) => {
      const row = tx.lastCheckpoint(size);
      if (row?.size === size) tx.putCheckpoint({ ...row, at: now(), place });
    });
  };
  const cover = async (): Promise<void> => {
    const size = ledger.read.logSize();
    if (ledger.readOnly || ledger.read.lastCheckpoint(size)?.size === size) return;
    await sign('here');
  };

  if (found !== null) {
    options.log(found.sentence);
    const { row } = found;
    // Among the known ones from here on: every later verification names it, also when the file is gone.
    if (row !== null) await ledger.commit((tx) => tx.putCheckpoint({ ...row, at: now(), place: 'private/checkpoint' }));
  }
  await cover();
  return { noticed: found?.sentence ?? null, sign, anchored, cover, publish };
};
