/**
 * Receipts read back from files, and verified with a key that is given, since a folder's own public.pem proves nothing
 * the receipts by the verifier, and every file beside them by making it again. The rule not to break: a file that
 * says something else than its envelope is a problem, never a source. Called by `bridge verify`.
 */
import { createPublicKey } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { bundleText, openBundle, type Place, type PlacedBy } from '#protocol/bundle.ts';
import { keyringOf } from '#protocol/keyring.ts';
import { limits } from '#protocol/limits.ts';
import { openEnvelope, payloadType, preAuthEncoding, statementSchema, type Statement } from '#protocol/receipts.ts';
import { z } from '#protocol/schema.ts';
import { inSync } from '#protocol/steps.ts';
import {
  verifySync,
  type Finding,
  type KnownCheckpoint,
  type SealedReceipt,
  type Verification,
} from '#protocol/verify.ts';
import { keyFiles, keysOf, receiptFiles, signerOf, type Files, type InstallationKey } from './forms.ts';
import { nodePlatform } from './reader.ts';
import { verifySshSignature } from './sshsig.ts';

/** 0 ok, 1 invalid, 2 incomplete, 3 unreadable. */
export type VerifyExit = 0 | 1 | 2 | 3;
export interface VerifyReport extends Verification {
  readonly exit: VerifyExit;
}
export const verifyExit = (verification: Verification): VerifyExit =>
  verification.ok ? (verification.incomplete ? 2 : 0) : 1;
const report = (verification: Verification): VerifyReport => ({ ...verification, exit: verifyExit(verification) });
const unreadable = (sentence: string): VerifyReport => ({
  ok: false,
  receipts: 0,
  problems: [{ receiptId: null, seq: null, check: 'read', sentence }],
  notes: [],
  incomplete: false,
  exit: 3,
});

/** SPKI bytes of a PEM public key given with --key; null where it is not an Ed25519 key. */
export const publicKeyOf = (pem: string): Uint8Array | null => {
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyType === 'ed25519' ? new Uint8Array(key.export({ type: 'spki', format: 'der' })) : null;
  } catch {
    return null;
  }
};

const bytesAt = (path: string): Uint8Array | null => {
  const stat = existsSync(path) ? lstatSync(path) : null;
  return stat === null || !stat.isFile() || stat.size > 4 * limits.eventBytes ? null : readFileSync(path);
};
const textAt = (path: string): string | null => {
  const bytes = bytesAt(path);
  return bytes === null ? null : Buffer.from(bytes).toString('utf8');
};
const finding = (seq: number | null, check: string, sentence: string): Finding => ({
  receiptId: null,
  seq,
  check,
  sentence,
});

const notHeld = (seq: number | null, name: string): Finding =>
  finding(seq, 'files', `${name} is not what the envelope holds.`);

type Head = Statement['predicate']['receipt'];
interface FromFiles {
  readonly n: string;
  /** What the receipt says of itself, unverified; null where it is not one, which verifying it says. */
  readonly head: Head | null;
  readonly seq: number | null;
  readonly sealed: SealedReceipt | null;
  readonly place: Place | null;
  readonly problems: readonly Finding[];
}

const headOf = (payload: Uint8Array): Head | null => {
  try {
    const read = z.safeParse(statementSchema, JSON.parse(nodePlatform.text(payload)));
    return read.success ? read.data.predicate.receipt : null;
  } catch {
    return null;
  }
};

/** Receipt `n` of a folder as its envelope and its bundle state it; null where there is no envelope. */
const readNumbered = (folder: string, n: string): FromFiles | null => {
  const at = (name: string): string => join(folder, `${n}.${name}`);
  const seq = /^\d{1,15}$/.test(n) ? Number(n) : null;
  const [envelope, bundle] = [textAt(at('dsse.json')), textAt(at('sigstore.json'))];
  if (envelope === null) return null;
  const opened = openEnvelope(envelope);
  const place = (bundle === null ? null : openBundle(bundle))?.place ?? null;
  const problems: Finding[] = [];
  if (opened === null) problems.push(finding(seq, 'files', `${n}.dsse.json is not an envelope of this format.`));
  if (bundle !== null && place === null)
    problems.push(finding(seq, 'files', `${n}.sigstore.json is not a bundle of this format.`));
  const stored = seq === null ? {} : { stored: { seq } };
  const inclusion = place === null ? {} : { inclusion: place };
  const sealed = opened === null ? null : { ...opened, action: bytesAt(at('action.json')), ...stored, ...inclusion };
  return { n, seq, head: opened === null ? null : headOf(opened.payload), sealed, place, problems };
};

interface Compared {
  readonly differing: string[];
  readonly missing: string[];
}
const compare = (folder: string, expected: Files, prefix = ''): Compared => {
  const found = Object.entries(expected).map(([name, data]) => {
    const bytes = bytesAt(join(folder, prefix + name));
    return { name: prefix + name, bytes, isSame: bytes !== null && Buffer.from(data).equals(bytes) };
  });
  return {
    differing: found.filter(({ bytes, isSame }) => bytes !== null && !isSame).map(({ name }) => name),
    missing: found.filter(({ bytes }) => bytes === null).map(({ name }) => name),
  };
};

interface Shared {
  readonly origin: string;
  readonly keys: readonly InstallationKey[];
  readonly note: string | null;
  /** Signed the note; null where none of the keys did. */
  readonly logKey: InstallationKey | null;
}

/** Whose keys a bundle names: the receipt's and the checkpoint's; null where one of them is not known. */
const byOf = ({ keyId }: SealedReceipt, { origin, keys, logKey }: Shared): PlacedBy | null => {
  const signer = keys.find((key) => key.keyId === keyId);
  if (signer === undefined || logKey === null) return null;
  return { origin, signer: signer.publicKeySpki, logKey: logKey.publicKeySpki };
};

/** Whether the files beside the envelope are the very ones that follow from it. */
const compareNumbered = (folder: string, { n, sealed, place }: FromFiles, shared: Shared): Compared => {
  if (sealed === null) return { differing: [], missing: [] };
  const by = byOf(sealed, shared);
  if (by !== null && place !== null && shared.note !== null) {
    const { 'dsse.json': _, ...rest } = receiptFiles({ ...sealed, place: { ...place, checkpoint: shared.note } }, by);
    return compare(folder, rest, `${n}.`);
  }
  const pae = preAuthEncoding(payloadType, sealed.payload, nodePlatform.utf8);
  const { differing, missing } = compare(folder, { pae, sig: sealed.signature }, `${n}.`);
  return { differing, missing: place === null ? [...missing, `${n}.sigstore.json`] : missing };
};

/** Keys, trusted root and checkpoint of a folder. */
const compareShared = (folder: string, { origin, keys, note }: Shared): { problems: Finding[]; missing: string[] } => {
  const { differing, missing } = compare(folder, keyFiles(origin, keys));
  const problems = differing.map((name) => finding(null, 'key', `${name} in this folder is not of the given key.`));
  const twin = textAt(join(folder, 'checkpoint.sshsig'));
  if (twin === null) missing.push('checkpoint.sshsig');
  const isTwin = ({ publicKeySpki }: InstallationKey): boolean =>
    verifySshSignature(Buffer.from(note ?? ''), publicKeySpki, twin ?? '');
  if (twin !== null && note !== null && !keys.some(isTwin))
    problems.push(finding(null, 'checkpoint', 'checkpoint.sshsig does not sign the checkpoint beside it.'));
  return { problems, missing };
};

/** What is known beside the files: checkpoints kept elsewhere, and changes of the signing key since they were written. */
export interface Elsewhere {
  readonly checkpoints?: readonly KnownCheckpoint[];
  readonly rotations?: readonly SealedReceipt[];
}
interface Gathered {
  readonly read: readonly FromFiles[];
  readonly rotations: readonly FromFiles[];
  readonly note: string | null;
  readonly elsewhere: Elsewhere;
}
const rotationsIn = (read: readonly FromFiles[]): FromFiles[] =>
  read.filter(({ head }) => head?.kind === 'key-rotation');
const sealedIn = (read: readonly FromFiles[]): SealedReceipt[] => read.flatMap(({ sealed }) => sealed ?? []);

const allRotations = ({ rotations, elsewhere }: Gathered): SealedReceipt[] => [
  ...sealedIn(rotations),
  ...(elsewhere.rotations ?? []),
];

/** The key a folder was written with: its own public.pem where that leads to the given key, which else it must be. */
const writtenWith = (folder: string, given: Uint8Array, gathered: Gathered): Uint8Array => {
  const own = publicKeyOf(textAt(join(folder, 'public.pem')) ?? '');
  const keyring = inSync(keyringOf(nodePlatform, given, allRotations(gathered)));
  const isOurs = [...keyring.values()].some(
    ({ publicKeySpki }) => own !== null && Buffer.from(own).equals(publicKeySpki),
  );
  return own !== null && isOurs ? own : given;
};

const sharedOf = (publicKeySpki: Uint8Array, { read, note, rotations }: Gathered, more: Elsewhere = {}): Shared => {
  const known = [...sealedIn(rotations), ...(more.rotations ?? [])];
  const keyring = inSync(keyringOf(nodePlatform, publicKeySpki, known));
  const heads = rotations.flatMap(({ head }) => head ?? []);
  const keys = keysOf(keyring, heads);
  const origin = read.find(({ head }) => head !== null)?.head?.origin ?? '';
  return { origin, keys, note, logKey: note === null ? null : signerOf(note, origin, keys) };
};

const together = (
  publicKeySpki: Uint8Array,
  scope: 'some' | 'one',
  gathered: Gathered,
  more: { readonly problems: readonly Finding[]; readonly missing: readonly string[] },
): VerifyReport => {
  const { read, note, elsewhere } = gathered;
  const checkpoints = [...(note === null ? [] : [{ note, place: 'checkpoint' }]), ...(elsewhere.checkpoints ?? [])];
  const request = { publicKeySpki, scope, rotations: allRotations(gathered), checkpoints };
  const { last: _, ...verification } = verifySync(nodePlatform, request, sealedIn(read));
  const problems = [...more.problems, ...read.flatMap((each) => each.problems), ...verification.problems];
  const notes = [...verification.notes, ...more.missing.map((name) => finding(null, 'files', `${name} is not here.`))];
  const incomplete = verification.incomplete || more.missing.length > 0;
  return report({ ok: problems.length === 0, receipts: read.length, problems, notes, incomplete });
};

/** A folder made by `exportReceipts`. `publicKeySpki` is the installation's key or the one given with --key. */
export const verifyFolder = (folder: string, publicKeySpki: Uint8Array, elsewhere: Elsewhere = {}): VerifyReport => {
  if (!existsSync(folder) || !lstatSync(folder).isDirectory()) return unreadable(`${folder} is not a folder.`);
  const numbers = new Set(readdirSync(folder).flatMap((name) => numbered.exec(name)?.[1] ?? []));
  const ordered = [...numbers].sort((a, b) => Number(a) - Number(b));
  const read = ordered.flatMap((n) => readNumbered(folder, n) ?? []);
  if (read.length === 0) return unreadable(`${folder} holds no receipts.`);
  const own = textAt(join(folder, 'checkpoint'));
  const note = own ?? read.find(({ place }) => place !== null)?.place?.checkpoint ?? null;
  const gathered = { read, rotations: rotationsIn(read), note, elsewhere };
  const shared = sharedOf(writtenWith(folder, publicKeySpki, gathered), gathered);
  const beside = compareShared(folder, shared);
  const here = new Set(read.map(({ n }) => n));
  const compared = read.map((each) => ({ each, ...compareNumbered(folder, each, shared) }));
  return together(publicKeySpki, 'some', gathered, {
    problems: [
      ...beside.problems,
      ...compared.flatMap(({ each, differing }) => differing.map((name) => notHeld(each.seq, name))),
    ],
    missing: [
      ...ordered.filter((n) => !here.has(n)).map((n) => `${n}.dsse.json`),
      ...compared.flatMap(({ missing }) => missing),
      ...(own === null ? ['checkpoint'] : []),
      ...beside.missing,
    ],
  });
};
const numbered = /^(.+)\.(?:dsse\.json|sigstore\.json|action\.json|tlog-proof|pae|sig)$/;

/** An envelope, with the action and the bundle of its number where they are beside it; or a bundle by itself. */
const readFile = (file: string): FromFiles | null => {
  if (file.endsWith('.dsse.json')) return readNumbered(dirname(file), basename(file, '.dsse.json'));
  const text = textAt(file);
  if (text === null) return null;
  const bundled = openBundle(text);
  const opened = bundled ?? openEnvelope(text);
  if (opened === null) return null;
  const place = bundled?.place ?? null;
  const sealed = { ...opened, action: null, ...(place === null ? {} : { inclusion: place }) };
  return { n: '', seq: null, head: headOf(opened.payload), sealed, place, problems: [] };
};

/** What a file says beside its receipt must follow from it: a bundle is spelled as we spell it, or refused. */
const differingIn = (file: string, found: FromFiles, shared: Shared): string[] => {
  if (found.n !== '') return compareNumbered(dirname(file), found, shared).differing;
  const by = found.sealed === null ? null : byOf(found.sealed, shared);
  if (found.sealed === null || found.place === null || by === null) return [];
  const expected = inSync(bundleText(nodePlatform, { ...found.sealed, place: found.place }, by));
  return textAt(file) === expected ? [] : [basename(file)];
};

/** One receipt. Whether it is in its place among the others needs the folder or the state. */
export const verifyFile = (file: string, publicKeySpki: Uint8Array, elsewhere: Elsewhere = {}): VerifyReport => {
  const found = readFile(file);
  if (found === null || found.sealed === null) return unreadable(`${file} cannot be read as a receipt.`);
  const folder = dirname(file);
  const others = readdirSync(folder).filter((name) => name.endsWith('.dsse.json'));
  const rotations = rotationsIn(others.flatMap((name) => readNumbered(folder, basename(name, '.dsse.json')) ?? []));
  const gathered = { read: [found], rotations, note: found.place?.checkpoint ?? null, elsewhere };
  const differing = differingIn(file, found, sharedOf(publicKeySpki, gathered, elsewhere));
  const problems = differing.map((name) => notHeld(found.seq, name));
  return together(publicKeySpki, 'one', gathered, { problems, missing: [] });
};
