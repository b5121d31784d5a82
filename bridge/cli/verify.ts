/** `bridge verify`: receipts against the installation's key or a given one (R-24). Reads only; needs no bridge. */
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { publicKeyOf, verifyExit, verifyFile, verifyFolder, type VerifyReport } from '../approvals/export.ts';
import { readPublicKey } from '../approvals/keys.ts';
import { opensslCommand, verifyAll } from '../approvals/reader.ts';
import { openLedgerReadOnly } from '../ledger/ledger.ts';
import { stateDirectories } from '../ledger/paths.ts';
import { CliError, read, usage, type Verb } from './args.ts';
import { inert, print, printJson } from './output.ts';

const help = `bridge verify (--all | FILE | FOLDER) [--key PUBLIC.PEM] [--state DIR] [--json]

Checks signatures, schema, action bytes, sequence, chain, decision proofs and outcomes. The key is this installation's
unless --key names another; a folder's own public.pem is never trusted by itself.
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

const whole = (directory: string, key: Uint8Array): VerifyReport => {
  if (!existsSync(join(directory, 'ledger.db')))
    throw new CliError('There are no receipts here: no bridge has run on this state.', unreadable);
  const ledger = openLedgerReadOnly(directory);
  try {
    const found = verifyAll(ledger.read, key, ledger.read.meta('ledger.bridgeId') ?? undefined);
    return { ...found, exit: verifyExit(found) };
  } finally {
    void ledger.close();
  }
};

const tell = (found: VerifyReport, json: boolean): void => {
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
  if (ok) print(`The same check of one exported receipt: ${opensslCommand('N')}`);
};

export const verify: Verb = {
  name: 'verify',
  about: 'Verify signed receipts, here or from a folder',
  help,
  async run(args) {
    const { values, positionals } = read(args, { all: { type: 'boolean' }, key: { type: 'string' } });
    const [path] = positionals;
    if ((path === undefined) === (values.all !== true)) throw usage('Name a file or a folder, or --all.');
    const privateDirectory = (): string => stateDirectories(values.state).private;
    const key = givenKey(values.key, privateDirectory);
    const found =
      path === undefined
        ? whole(privateDirectory(), key)
        : existsSync(path) && lstatSync(path).isDirectory()
          ? verifyFolder(path, key)
          : verifyFile(path, key);
    tell(found, values.json === true);
    return found.exit;
  },
};
