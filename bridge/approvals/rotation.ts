/**
 * A new signing key, in steps of which each can be the last one before a crash: the new key lies beside the
 * former one; one transaction holds both receipts of the change; the new key takes the former's name, which ends it. `openReceiptKey`
 * finishes or undoes at the next start. Called by the command table.
 */
import type { Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Ledger, Tx } from '../ledger/contract.ts';
import { adoptNextKey, createNextKey, dropNextKey } from './keys.ts';
import type { DeskSeal } from './seal.ts';

export type Rotate = (
  actor: Actor,
  store: (tx: Tx, answer: { keyId: string; receiptId: string }) => void,
) => Promise<{ keyId: string; receiptId: string }>;

/** @param directory `<state>/private/keys` @throws Refusal forbidden for anyone but the operator at a terminal */
export const createRotation = (ledger: Ledger, seal: DeskSeal, directory: string): Rotate => {
  let isRotating = false;
  return async (actor, store) => {
    const mayRotate = actor.kind === 'local' || (actor.kind === 'cli' && actor.operator);
    if (!mayRotate) throw new Refusal('forbidden');
    if (isRotating) throw new Refusal('rate_limited', { message: 'The key is being changed already.' });
    if (ledger.read.rotations().length >= 2 * limits.keyRotations)
      throw new Refusal('forbidden', { message: `The key was changed ${limits.keyRotations} times; no more.` });
    isRotating = true;
    const former = seal.key;
    try {
      const next = createNextKey(directory);
      const answer = await ledger.commit((tx) => {
        try {
          const { receiptId } = seal.rotate(tx, actor, next);
          store(tx, { keyId: next.keyId, receiptId });
          return { keyId: next.keyId, receiptId };
        } catch (error) {
          seal.useKey(former); // in the same step: the next work of this commit signs with it again
          throw error;
        }
      });
      adoptNextKey(directory);
      return answer;
    } catch (error) {
      if (seal.key === former) dropNextKey(directory);
      throw error;
    } finally {
      isRotating = false;
    }
  };
};
