/**
 * Signatures by WebCrypto for the protocol's verifier, hashes by a library: a log has several small ones a receipt, and a
 * promise for each costs more than the hash. Runs in the worker, and in tests under Node.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { limits } from '#protocol/limits.ts';
import { fromBase64 } from '#protocol/receipts.ts';
import type { VerifyPlatform } from '#protocol/verify.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();
/** WebCrypto takes no view of memory that could be shared; ours never is. */
const own = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => bytes as Uint8Array<ArrayBuffer>;

/** SPKI bytes of a PEM public key; empty where it is none, which is then no key of anybody. */
export const spkiOf = (pem: string): Uint8Array =>
  fromBase64(pem.replaceAll(/-----(BEGIN|END) PUBLIC KEY-----|\s/g, '')) ?? new Uint8Array();

/** @throws DOMException NotSupportedError from `verify` in a browser without Ed25519: that is no verdict on a signature. */
export const webPlatform = (): VerifyPlatform => {
  const keys = new Map<string, Promise<CryptoKey | null>>();
  const read = async (spki: Uint8Array): Promise<CryptoKey | null> => {
    try {
      return await crypto.subtle.importKey('spki', own(spki), 'Ed25519', false, ['verify']);
    } catch (error) {
      if (error instanceof DOMException && error.name === 'NotSupportedError') throw error;
      return null; // not a key, so nothing is signed by it
    }
  };
  const keyOf = (spki: Uint8Array): Promise<CryptoKey | null> => {
    const name = String.fromCharCode(...spki);
    const known = keys.get(name) ?? read(spki);
    keys.set(name, known);
    return known;
  };
  return {
    sha256: (bytes) => sha256(bytes),
    verify: async (spki, message, signature) => {
      const key = await keyOf(spki);
      return key !== null && crypto.subtle.verify('Ed25519', key, own(signature), own(message));
    },
    utf8: (text) => encoder.encode(text),
    text: (bytes) => decoder.decode(bytes),
  };
};

/** A question to `VerifyPlatform.verify`. */
export type Signed = Parameters<VerifyPlatform['verify']>;
/** Whether all of them hold. */
export type Signatures = (asked: readonly Signed[]) => Promise<boolean>;

export const inThisThread =
  (platform: VerifyPlatform): Signatures =>
  async (asked) => {
    for (const each of asked) if (!(await platform.verify(...each))) return false;
    return true;
  };

/** A signature that was taken for good is not. */
export class WrongGuess extends Error {
  override readonly name = 'WrongGuess';
}

/**
 * A platform that takes every signature for good while `hold` checks it beside the rest, at most `verifyWindow` at once.
 * What was found with it holds only when `settle` resolves; a single signature that does not hold makes `verify` and
 * `settle` throw WrongGuess, and everything must be checked again with `platform` itself.
 */
export const guessing = (platform: VerifyPlatform, hold: Signatures): VerifyPlatform & { settle(): Promise<void> } => {
  let batch: Signed[] = [];
  let running = 0;
  let failure: unknown = null;
  let waiting: { readonly most: number; readonly go: () => void } | null = null;
  const stopIfWrong = (): void => {
    if (failure !== null) throw failure;
  };
  const check = async (asked: readonly Signed[]): Promise<void> => {
    try {
      if (!(await hold(asked))) failure ??= new WrongGuess('a signature does not hold');
    } catch (error) {
      failure ??= error;
    }
    running -= asked.length;
    if (waiting === null || running > waiting.most) return;
    waiting.go();
    waiting = null;
  };
  const flush = (): void => {
    const asked = batch;
    batch = [];
    running += asked.length;
    if (asked.length > 0) void check(asked);
  };
  const atMost = (most: number): Promise<void> =>
    running <= most ? Promise.resolve() : new Promise((go) => (waiting = { most, go }));
  return {
    ...platform,
    verify: (...asked) => {
      stopIfWrong();
      batch.push(asked);
      if (batch.length < limits.verifyBatch) return true;
      flush();
      return running < limits.verifyWindow ? true : atMost(limits.verifyWindow / 2).then(() => true);
    },
    settle: async () => {
      flush();
      await atMost(0);
      stopIfWrong();
    },
  };
};
