/**
 * The files a stranger checks receipts with, as values: those of one receipt and those they share. The rule not to break:
 * each file is one possible text of what was signed, so that an export writes them and `bridge verify` makes them again
 * and compares. Called by export.ts and folder.ts.
 */
import { bundleText, tlogProofText, trustedRootText, type LogKey, type Placed } from '#protocol/bundle.ts';
import type { Keyring } from '#protocol/keyring.ts';
import { openCheckpoint } from '#protocol/log.ts';
import { envelopeText, payloadType, preAuthEncoding } from '#protocol/receipts.ts';
import { inSync } from '#protocol/steps.ts';
import { pemOf } from './keys.ts';
import { nodePlatform } from './reader.ts';
import { allowedSigners } from './sshsig.ts';

export type Files = Readonly<Record<string, string | Uint8Array>>;

/** A key of the installation. `lastSeq` is the last receipt it signed; null while it is the current one. */
export interface InstallationKey extends LogKey {
  readonly keyId: string;
  readonly lastSeq: number | null;
}

/** Of a whole keyring, first to newest. `rotations` say when each key ended. */
export const keysOf = (
  keyring: Keyring,
  rotations: readonly { readonly seq: number; readonly at: number }[],
): InstallationKey[] => {
  let from: number | null = null;
  return [...keyring.values()]
    .sort((a, b) => a.first - b.first)
    .map(({ keyId, publicKeySpki, last }) => {
      const until = rotations.find(({ seq }) => seq === last)?.at ?? null;
      const key = { keyId, publicKeySpki, from, until, lastSeq: last === Number.MAX_SAFE_INTEGER ? null : last };
      from = until;
      return key;
    });
};

/** The key that signed this checkpoint of the log `origin`; null where none of these did. */
export const signerOf = (note: string, origin: string, keys: readonly InstallationKey[]): InstallationKey | null =>
  keys.find((key) => inSync(openCheckpoint(nodePlatform, note, origin, [key.publicKeySpki])) !== null) ?? null;

/** By the end of their names, behind the receipt's number. The action is not among them: it is what it is. */
export const receiptFiles = (
  placed: Placed,
  by: { readonly origin: string; readonly signer: Uint8Array; readonly logKey: Uint8Array },
): Files => ({
  'dsse.json': envelopeText(placed),
  pae: preAuthEncoding(payloadType, placed.payload, nodePlatform.utf8),
  sig: placed.signature,
  'sigstore.json': inSync(bundleText(nodePlatform, placed, by)),
  'tlog-proof': tlogProofText(placed.place),
});

/** Beside the receipts, by name. `public.pem` is the newest key; `public.N.pem` is what receipts up to N were signed with. */
export const keyFiles = (origin: string, keys: readonly InstallationKey[]): Files => ({
  ...Object.fromEntries(
    keys.map(({ publicKeySpki, lastSeq }) => [
      lastSeq === null ? 'public.pem' : `public.${String(lastSeq)}.pem`,
      pemOf(publicKeySpki),
    ]),
  ),
  'trusted_root.json': inSync(trustedRootText(nodePlatform, origin, keys)),
  allowed_signers: allowedSigners(
    origin,
    keys.map(({ publicKeySpki }) => publicKeySpki),
  ),
});
