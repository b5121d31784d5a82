/**
 * What a forger could do to receipts, and who sees it (T46, R-25). One table: the test runs every cell, also those that say
 * a verifier cannot see something, and docs/RECEIPTS.md prints it.
 */
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { preAuthEncoding, receiptOrigin, toBase64 } from '#protocol/receipts.ts';
import { nodePlatform } from '../../bridge/approvals/reader.ts';
import { sshSignature } from '../../bridge/approvals/sshsig.ts';
import { bridgeId, forked, installationKey, lies, otherKey, signed, usual, type Draft } from './history.ts';
import { signCheckpoint, type Stage } from './stage.ts';
import type { ReceiptKey } from '../../bridge/approvals/keys.ts';

export const verifiers = ['--all', 'folder', 'file', 'openssl', 'sigstore', 'ssh-keygen'] as const;
export type VerifierName = (typeof verifiers)[number];

/** Why a verifier cannot see something; the letter is what the table prints. */
export const reasons = {
  a: 'reads one receipt and knows no others',
  b: 'reads the signed bytes, the signature and the key, and nothing else',
  c: 'reads the checkpoint, which names no single receipt; the proofs beside the receipts do',
  d: 'reads the bundle, and the bundle is whole: it still says its own place in the log',
  e: 'reads the database, where this is not kept: it is made when receipts are exported',
  f: 'is signed with the right key and stands in the log; the meaning of a receipt is not its business',
  g: 'is whole, and was true once: only a newer checkpoint, or the rest of the log, tells',
  h: 'is given its key, and does not read this file',
  i: 'checks the signature over the digest; compare the file with the digest, as below',
} as const;
type Reason = keyof typeof reasons;

/** Rejects, naming the receipt (number) or the whole (true); or cannot, and why. */
type Seen = number | true | Reason;
export interface Forgery {
  readonly what: string;
  /** Which receipt the verifiers of one look at. */
  readonly at: number;
  /** Another record altogether, signed and exported. */
  readonly history?: { readonly drafts: () => Draft[]; readonly key?: ReceiptKey; readonly id?: string };
  /** In an exported folder. */
  readonly files?: (folder: string) => void;
  /** In the database, its guards taken off. */
  readonly database?: (db: DatabaseSync) => void;
  /** The honest checkpoint was kept elsewhere, and our verifiers are given it. */
  readonly kept?: true;
  readonly seen: Readonly<Record<VerifierName, Seen>>;
}

const seen = (
  all: Seen,
  folder: Seen,
  file: Seen,
  openssl: Seen,
  sigstore: Seen,
  ssh: Seen,
): Record<VerifierName, Seen> => ({ '--all': all, folder, file, openssl, sigstore, 'ssh-keygen': ssh });

const edit = (path: string, change: (text: string) => string): void =>
  writeFileSync(path, change(readFileSync(path, 'utf8')));
type Bundle = {
  verificationMaterial: {
    tlogEntries: {
      logIndex: string;
      canonicalizedBody: string;
      inclusionProof: { logIndex: string; hashes: string[]; checkpoint: { envelope: string } };
    }[];
  };
  dsseEnvelope: Envelope;
};
type Envelope = { payload: string; payloadType: string; signatures: { sig: string }[] };
const editBundle = (folder: string, n: number, change: (bundle: Bundle) => void): void =>
  edit(join(folder, `${String(n)}.sigstore.json`), (text) => {
    const bundle = JSON.parse(text) as Bundle;
    change(bundle);
    return JSON.stringify(bundle);
  });
const entryOf = (bundle: Bundle) => bundle.verificationMaterial.tlogEntries[0]!;
/** Wherever the envelope of receipt `n` is written, and the bytes openssl reads follow it. */
const editEnvelope = (folder: string, n: number, change: (envelope: Envelope) => void): void => {
  edit(join(folder, `${String(n)}.dsse.json`), (text) => {
    const envelope = JSON.parse(text) as Envelope;
    change(envelope);
    const payload = Buffer.from(envelope.payload, 'base64');
    writeFileSync(join(folder, `${String(n)}.pae`), preAuthEncoding(envelope.payloadType, payload, nodePlatform.utf8));
    writeFileSync(join(folder, `${String(n)}.sig`), Buffer.from(envelope.signatures[0]!.sig, 'base64'));
    return JSON.stringify(envelope);
  });
  editBundle(folder, n, (bundle) => change(bundle.dsseEnvelope));
};
const flip = (base64: string, at: number): string => {
  const bytes = Buffer.from(base64, 'base64');
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes.toString('base64');
};
const ofNumber = (folder: string, n: number): string[] =>
  readdirSync(folder).filter((name) => name.startsWith(`${String(n)}.`));
const rename = (folder: string, from: number, to: number | string): void => {
  for (const name of ofNumber(folder, from))
    renameSync(join(folder, name), join(folder, name.replace(`${String(from)}.`, `${String(to)}.`)));
};
/** In the checkpoint and in every copy of it. */
const editCheckpoint = (folder: string, change: (note: string) => string): void => {
  edit(join(folder, 'checkpoint'), change);
  for (const name of readdirSync(folder)) {
    if (name.endsWith('.tlog-proof')) edit(join(folder, name), change);
    if (!name.endsWith('.sigstore.json')) continue;
    editBundle(folder, Number.parseInt(name, 10), (bundle) => {
      const { checkpoint } = entryOf(bundle).inclusionProof;
      checkpoint.envelope = change(checkpoint.envelope);
    });
  }
};
const changeRoot = (note: string): string => note.replace(/^[A-Za-z0-9+/]{43}=$/m, (root) => flip(root, 0));
const byteAt = (table: string, column: string, where: string) => (db: DatabaseSync) =>
  db.exec(
    `UPDATE ${table} SET ${column} = CAST(substr(${column}, 1, 20) || x'58' || substr(${column}, 22) AS BLOB) WHERE ${where}`,
  );
const actionOf5 = 'sha256 = (SELECT actionSha256 FROM receipt WHERE seq = 5)';

/** Receipt 5 as an installation of another name, but with this key, would have written it. */
const foreign = () => signed(usual(), { bridgeId: '0197f000-0000-7000-8000-0000000000ff' })[4]!;
const foreignOrigin = receiptOrigin('0197f000-0000-7000-8000-0000000000ff');

export const forgeries: readonly Forgery[] = [
  {
    what: 'a byte of the payload',
    at: 5,
    files: (folder) => editEnvelope(folder, 5, (envelope) => (envelope.payload = flip(envelope.payload, 100))),
    database: byteAt('receipt', 'payload', 'seq = 5'),
    seen: seen(5, 5, 5, true, true, 'c'),
  },
  {
    what: 'the payload type',
    at: 5,
    files: (folder) => editEnvelope(folder, 5, (envelope) => (envelope.payloadType = 'application/json')),
    seen: seen('e', 5, true, true, true, 'c'),
  },
  {
    what: 'a byte of the signature',
    at: 5,
    files: (folder) => editEnvelope(folder, 5, ({ signatures }) => (signatures[0]!.sig = flip(signatures[0]!.sig, 20))),
    database: byteAt('receipt', 'signature', 'seq = 5'),
    seen: seen(5, 5, 5, true, true, 'c'),
  },
  {
    what: 'a byte of the action',
    at: 5,
    files: (folder) => edit(join(folder, '5.action.json'), (text) => text.replace('main', 'mein')),
    database: byteAt('action', 'bytes', actionOf5),
    seen: seen(5, 5, 5, 'i', 'i', 'c'),
  },
  {
    what: 'two receipts change places',
    at: 5,
    files: (folder) => {
      rename(folder, 3, 'x');
      rename(folder, 5, 3);
      for (const name of readdirSync(folder).filter((each) => each.startsWith('x.')))
        renameSync(join(folder, name), join(folder, name.replace('x.', '5.')));
    },
    database: (db) =>
      db.exec(
        'UPDATE receipt SET seq = -5 WHERE seq = 5; UPDATE receipt SET seq = 5 WHERE seq = 3; UPDATE receipt SET seq = 3 WHERE seq = -5',
      ),
    seen: seen(5, 5, 3, 'b', 'd', 'c'),
  },
  {
    what: 'a receipt is gone',
    at: 6,
    files: (folder) => ofNumber(folder, 5).forEach((name) => rmSync(join(folder, name))),
    database: (db) => db.exec('DELETE FROM receipt WHERE seq = 5'),
    seen: seen(6, 6, 'a', 'b', 'd', 'c'),
  },
  {
    what: 'a receipt is replayed under a new number',
    at: 8,
    files: (folder) =>
      ofNumber(folder, 5).forEach((name) => cpSync(join(folder, name), join(folder, name.replace('5.', '8.')))),
    database: (db) =>
      db.exec(
        'INSERT INTO receipt SELECT 8, receiptId || \'x\', kind, conversationId, approvalId, at, payload, signature, keyId, actionSha256, value, outcome, "by", sentence FROM receipt WHERE seq = 5',
      ),
    seen: seen(5, 5, 5, 'b', 'd', 'c'),
  },
  {
    what: 'all is as it was one receipt earlier',
    at: 5,
    kept: true,
    history: { drafts: () => usual().slice(0, 6) },
    seen: seen(7, 'g', 'g', 'b', 'g', 'g'),
  },
  {
    what: 'a second history of the same length',
    at: 5,
    kept: true,
    history: { drafts: forked },
    seen: seen(1, true, true, 'b', 'g', 'g'),
  },
  {
    what: 'its index in the log',
    at: 5,
    files: (folder) =>
      editBundle(folder, 5, (bundle) => {
        entryOf(bundle).logIndex = '5';
        entryOf(bundle).inclusionProof.logIndex = '5';
      }),
    seen: seen('e', 5, 5, 'b', true, 'c'),
  },
  {
    what: 'a hash of its proof',
    at: 5,
    files: (folder) =>
      editBundle(folder, 5, (bundle) => {
        const { hashes } = entryOf(bundle).inclusionProof;
        hashes[1] = flip(hashes[1]!, 3);
      }),
    database: byteAt('logNode', 'hashes', 'seq = 5'),
    seen: seen(5, 5, 5, 'b', true, 'c'),
  },
  {
    what: 'the size in the checkpoint',
    at: 5,
    files: (folder) => editCheckpoint(folder, (note) => note.replace('\n7\n', '\n8\n')),
    database: (db) => db.exec("UPDATE checkpoint SET note = replace(note, char(10) || '7', char(10) || '8'), size = 8"),
    seen: seen(true, true, true, 'b', true, true),
  },
  {
    what: 'the root in the checkpoint',
    at: 5,
    files: (folder) => editCheckpoint(folder, changeRoot),
    database: (db) => {
      const { note } = db.prepare('SELECT note FROM checkpoint').get() as { note: string };
      db.prepare('UPDATE checkpoint SET note = ?').run(changeRoot(note));
    },
    seen: seen(true, true, true, 'b', true, true),
  },
  {
    what: 'a checkpoint of another log, by the same key',
    at: 5,
    files: (folder) => {
      const [, size, root] = readFileSync(join(folder, 'checkpoint'), 'utf8').split('\n');
      const note = signCheckpoint(foreignOrigin, Number(size), Buffer.from(root!, 'base64'), installationKey);
      editCheckpoint(folder, () => note);
      writeFileSync(join(folder, 'checkpoint.sshsig'), sshSignature(Buffer.from(note), installationKey));
    },
    database: (db) => {
      const { size, root } = db.prepare('SELECT size, root FROM checkpoint').get() as {
        size: number;
        root: Uint8Array;
      };
      db.prepare('UPDATE checkpoint SET note = ?').run(signCheckpoint(foreignOrigin, size, root, installationKey));
    },
    seen: seen(true, true, true, 'b', true, 'f'),
  },
  {
    what: 'a receipt of another log, by the same key',
    at: 5,
    files: (folder) => {
      const { payload, signature } = foreign();
      editEnvelope(folder, 5, (envelope) => {
        envelope.payload = toBase64(payload);
        envelope.signatures[0]!.sig = toBase64(signature);
      });
    },
    database: (db) => {
      const { payload, signature } = foreign();
      db.prepare('UPDATE receipt SET payload = ?, signature = ? WHERE seq = 5').run(payload, signature);
    },
    seen: seen(5, 5, 5, 'f', true, 'c'),
  },
  {
    what: "another receipt's leaf",
    at: 5,
    files: (folder) => {
      const other = JSON.parse(readFileSync(join(folder, '6.sigstore.json'), 'utf8')) as Bundle;
      editBundle(folder, 5, (bundle) => {
        entryOf(bundle).canonicalizedBody = entryOf(other).canonicalizedBody;
      });
    },
    database: (db) => db.exec('UPDATE logNode SET hashes = (SELECT hashes FROM logNode WHERE seq = 7) WHERE seq = 5'),
    seen: seen(5, 5, 5, 'b', true, 'c'),
  },
  {
    what: 'everything signed again, with another key',
    at: 5,
    history: { drafts: () => usual(otherKey), key: otherKey, id: bridgeId },
    seen: seen(5, true, true, true, true, true),
  },
  {
    what: 'public.pem is replaced',
    at: 5,
    files: (folder) => writeFileSync(join(folder, 'public.pem'), otherKey.publicKeyPem),
    seen: seen('e', true, 'h', 'h', 'h', 'h'),
  },
  {
    what: "the page's signature for another approval",
    at: 5,
    history: { drafts: lies.proofOfAnother },
    seen: seen(5, 5, 'a', 'f', 'f', 'f'),
  },
  {
    what: 'the outcome of another decision',
    at: 6,
    history: { drafts: lies.outcomeOfAnother },
    seen: seen(6, 6, 'a', 'f', 'f', 'f'),
  },
];

/** As docs/RECEIPTS.md prints it: ✓ rejects; a letter says why not. */
export const tamperTable = (): string => {
  const cell = (value: Seen): string => (typeof value === 'string' ? value : '✓');
  const rows = forgeries.map(
    ({ what, seen: by }) => `| ${[what, ...verifiers.map((name) => cell(by[name]))].join(' | ')} |`,
  );
  const head = [
    `| ${['changed', ...verifiers].join(' | ')} |`,
    `| ${['---', ...verifiers.map(() => ':-:')].join(' | ')} |`,
  ];
  const notes = Object.entries(reasons).map(([letter, reason]) => `- ${letter}: ${reason}`);
  return [...head, ...rows, '', ...notes].join('\n');
};

export const inCopy = (stage: Stage, to: string): string => {
  cpSync(stage.folder, to, { recursive: true });
  return to;
};
/** The database of a stage, copied and changed by someone who takes its guards off first. */
export const changedDatabase = (stage: Stage, to: string, change: (db: DatabaseSync) => void): string => {
  cpSync(join(stage.directory, 'ledger.db'), join(to, 'ledger.db'));
  const db = new DatabaseSync(join(to, 'ledger.db'));
  db.exec('PRAGMA foreign_keys=OFF');
  const triggers = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all() as { name: string }[];
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  change(db);
  db.close();
  return to;
};
