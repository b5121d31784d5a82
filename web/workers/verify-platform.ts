/**
 * Signatures by WebCrypto for the protocol's verifier, hashes by a library: a log has several small ones a receipt, and a
 * promise for each costs more than the hash. Runs in the worker, and in tests under Node.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { fromBase64 } from '#protocol/receipts.ts';
import type { VerifyPlatform } from '#protocol/verify.ts';

export { guessing, inThisThread, WrongGuess, type Signatures, type Signed } from '#protocol/guess.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();
/** WebCrypto takes no view of memory that could be shared; ours never is. */
const own = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => bytes as Uint8Array<ArrayBuffer>;

/** SPKI bytes of a PEM public key; empty where it is none, which is then no key of anybody. */
export const spkiOf = (pem: string): Uint8Array =>
  fromBase64(pem.replaceAll(/-----(BEGIN|END) PUBLIC KEY-----|\s/g, '')) ?? new Uint8Array();

/** `hashAhead`: what `sha256` is asked about next; WebCrypto needs a quarter of the time for what is long, but answers later. */
export type WebPlatform = VerifyPlatform & { hashAhead(messages: readonly Uint8Array[]): Promise<void> };

/** @throws DOMException NotSupportedError from `verify` in a browser without Ed25519: that is no verdict on a signature. */
export const webPlatform = (): WebPlatform => {
  const hashes = new WeakMap<Uint8Array, Uint8Array>();
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
    sha256: (bytes) => hashes.get(bytes) ?? sha256(bytes),
    hashAhead: async (messages) => {
      const digests = await Promise.all(messages.map((bytes) => crypto.subtle.digest('SHA-256', own(bytes))));
      messages.forEach((bytes, at) => hashes.set(bytes, new Uint8Array(digests[at] ?? sha256(bytes))));
    },
    verify: async (spki, message, signature) => {
      const key = await keyOf(spki);
      return key !== null && crypto.subtle.verify('Ed25519', key, own(signature), own(message));
    },
    utf8: (text) => encoder.encode(text),
    text: (bytes) => decoder.decode(bytes),
  };
};
