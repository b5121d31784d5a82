/** The page's key and session (L-02): made here, kept in IndexedDB, never extractable, deleted on sign-out. */
import { openDB, type DBSchema, type IDBPDatabase } from 'idb';

/** What POST /launch answered. */
export interface Session {
  readonly base: string;
  readonly bridgeId: string;
  readonly lineage: string;
}
export interface Identity {
  readonly keys: CryptoKeyPair;
  /** `SHA256:` + base64url of the SHA-256 of the public key's SPKI. */
  readonly keyId: string;
  readonly session: Session;
}

interface Schema extends DBSchema {
  identity: { key: string; value: Identity };
}

const open = (): Promise<IDBPDatabase<Schema>> =>
  openDB<Schema>('countersign', 1, { upgrade: (database) => void database.createObjectStore('identity') });

export const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

const spkiOf = async (key: CryptoKey): Promise<Uint8Array> =>
  new Uint8Array(await crypto.subtle.exportKey('spki', key));
const sha256 = async (bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> =>
  new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));

/** A fresh pair and the SPKI to send with the launch token. The private half cannot leave the browser. */
export const makeKeys = async (): Promise<{ keys: CryptoKeyPair; keyId: string; publicKey: string }> => {
  const keys = (await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify'])) as CryptoKeyPair;
  const spki = await spkiOf(keys.publicKey);
  return { keys, keyId: `SHA256:${base64url(await sha256(new Uint8Array(spki)))}`, publicKey: base64url(spki) };
};

export const readIdentity = async (): Promise<Identity | null> => {
  const database = await open();
  try {
    return (await database.get('identity', 'current')) ?? null;
  } finally {
    database.close();
  }
};

export const writeIdentity = async (identity: Identity): Promise<void> => {
  const database = await open();
  try {
    await database.put('identity', identity, 'current');
  } finally {
    database.close();
  }
};

/** Deletes key and session; the offline copy is another database and another decision. */
export const forgetIdentity = async (): Promise<void> => {
  const database = await open();
  try {
    await database.delete('identity', 'current');
  } finally {
    database.close();
  }
};

/** base64url Ed25519 signature over the UTF-8 of `text`. */
export const signText = async (identity: Identity, text: string): Promise<string> =>
  base64url(
    new Uint8Array(await crypto.subtle.sign('Ed25519', identity.keys.privateKey, new TextEncoder().encode(text))),
  );

/** Lower-case hex. */
export const sha256Hex = async (text: string): Promise<string> =>
  Array.from(await sha256(new TextEncoder().encode(text)), (byte) => byte.toString(16).padStart(2, '0')).join('');
