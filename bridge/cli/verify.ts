/** `bridge verify`: receipts against the installation's key or a given one (R-24). Reads only; needs no bridge. */
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { limits } from '#protocol/limits.ts';
import { checkpointsIn } from '#protocol/log.ts';
import type { KnownCheckpoint, SealedReceipt } from '#protocol/verify.ts';
import { knownCheckpoints } from '../approvals/checkpoints.ts';
import { publicKeyOf, verifyExit, verifyFile, verifyFolder, type VerifyReport } from '../approvals/folder.ts';
import { readPublicKey } from '../approvals/keys.ts';
import { opensslCommand, rotationsOf, verifyAllAhead } from '../approvals/reader.ts';
import { openLedgerReadOnly } from '../ledger/ledger.ts';
import { stateDirectories } from '../ledger/paths.ts';
import { CliError, read, usage, type Verb } from './args.ts';
import { inert, print, printJson } from './output.ts';

const help = `bridge verify (--all | FILE | FOLDER) [--key PUBLIC.PEM] [--checkpoint FILE]… [--state DIR] [--json]

Checks signatures, schema, action bytes, sequence, chain, place in the log, checkpoints, decision proofs, outcomes and
the time of keys. The key is this installation's unless --key names another; a folder's own public.pem is never trusted
by itself. --checkpoint adds checkpoints that were kept elsewhere (see "bridge anchor --help"): the log must continue them.
Exit code: 0 ok, 1 invalid, 2 incomplete, 3 unreadable.

Example: bridge verify --all`;

const unreadable = 3;

const givenKey = (path: string | undefined, privateDirectory: () => string): Uint8Array => {
  if (path === undefined) {
    const key = readPublicKey(join(privateDirectory(), 'keys'));
    if (key === null) throw new CliError('This state has no receipt key. Name one with --key.', unreadable);
    return key.publicKeySpki;
  }
  const key = existsSync(path) ? publicKeyOf(readFileSync(path, 'utf8')) : null;
  if (key === null) throw new CliError(`${path} is not an Ed25519 public key in PEM.`, unreadable);
  return key;
};

/** Checkpoints from files: notes, as `bridge anchor` and `git notes show` write them, or pasted lines. */
const givenCheckpoints = (paths: readonly string[]): KnownCheckpoint[] =>
  paths.flatMap((path) => {
    if (!existsSync(path) || lstatSync(path).size > limits.anchorFileBytes)
      throw new CliError(`${path} cannot be read as a file of checkpoints.`, unreadable);
    const notes = checkpointsIn(readFileSync(path, 'utf8'));
    if (notes.length === 0) throw new CliError(`${path} holds no checkpoint.`, unreadable);
    return notes.map((note) => ({ note, place: basename(path) }));
  });

const whole = async (directory: string, key: Uint8Array, given: readonly KnownCheckpoint[]): Promise<VerifyReport> => {
  if (!existsSync(join(directory, 'ledger.db')))
    throw new CliError('There are no receipts here: no bridge has run on this state.', unreadable);
  const ledger = openLedgerReadOnly(directory);
  try {
    ledger.freeze();
    const known = [...knownCheckpoints(ledger.read, directory), ...given];
    const found = await verifyAllAhead(ledger.read, key, ledger.read.meta('ledger.bridgeId') ?? undefined, known);
    return { ...found, exit: verifyExit(found) };
  } finally {
    await ledger.close();
  }
};

/** What was exported before a change of keys is still ours. */
const ownRotations = async (directory: string): Promise<SealedReceipt[]> => {
  if (!existsSync(join(directory, 'ledger.db'))) return [];
  const ledger = openLedgerReadOnly(directory);
  try {
    return rotationsOf(ledger.read);
  } finally {
    await ledger.close();
  }
};

const others = (n: string): string => `The same check of one exported receipt, with tools of others:
  ${opensslCommand(n)}
  cosign verify-blob-attestation --key public.pem --bundle ${n}.sigstore.json --trusted-root trusted_root.json --type https://countersign.local/receipt/v1 ${n}.action.json
(cosign as its documentation says; what is tested is @sigstore/verify, which reads the same files.)`;

const tell = (found: VerifyReport, json: boolean, n: string): void => {
  const { ok, receipts, problems, notes, exit } = found;
  if (json) return printJson({ ok, receipts, problems, ...(notes.length > 0 ? { notes } : {}) });
  for (const each of [...problems, ...notes]) {
    const where =
      each.seq === null ? '' : `receipt ${each.seq}${each.receiptId === null ? '' : ` (${inert(each.receiptId)})`}: `;
    print(`${problems.includes(each) ? 'PROBLEM' : 'note'}  ${where}${each.check}: ${inert(each.sentence)}`);
  }
  print(
    `${receipts} receipts, ${problems.length} problems: ${['ok', 'INVALID', 'incomplete', 'unreadable'][exit] ?? 'unreadable'}`,
  );
  if (ok) print(others(n));
};

export const verify: Verb = {
  name: 'verify',
  about: 'Verify signed receipts, here or from a folder',
  help,
  async run(args) {
    const { values, positionals } = read(args, {
      all: { type: 'boolean' },
      key: { type: 'string' },
      checkpoint: { type: 'string', multiple: true },
    });
    const [path] = positionals;
    if ((path === undefined) === (values.all !== true)) throw usage('Name a file or a folder, or --all.');
    const privateDirectory = (): string => stateDirectories(values.state).private;
    const key = givenKey(values.key, privateDirectory);
    const given = givenCheckpoints(values.checkpoint ?? []);
    const rotations = path === undefined || values.key !== undefined ? [] : await ownRotations(privateDirectory());
    const found =
      path === undefined
        ? await whole(privateDirectory(), key, given)
        : existsSync(path) && lstatSync(path).isDirectory()
          ? verifyFolder(path, key, { checkpoints: given, rotations })
          : verifyFile(path, key, { checkpoints: given, rotations });
    tell(found, values.json === true, /(\d+)\.(?:dsse|sigstore)\.json$/.exec(path ?? '')?.[1] ?? 'N');
    return found.exit;
  },
};
