/** `bridge keys`: the signing key of receipts, those before it, and changing it (R-26). */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pemOf, readPublicKey } from '../approvals/keys.ts';
import { keyringIn } from '../approvals/reader.ts';
import { openLedgerReadOnly } from '../ledger/ledger.ts';
import { stateDirectories } from '../ledger/paths.ts';
import { CliError, exits, read, usage, type Verb } from './args.ts';
import { print, printJson } from './output.ts';
import { connected } from './run.ts';

const help = `bridge keys [show] [--state DIR] [--json]
bridge keys rotate [--state DIR] [--json]

show    the public key, and the former ones with the receipts each signed
rotate  a new key, named by a receipt of the former one, which is then destroyed. Earlier receipts stay verifiable;
        publish the new public key where you published the former.

Example: bridge keys show`;

const show = async (state: string | undefined, json: boolean): Promise<void> => {
  const { private: directory } = stateDirectories(state);
  const key = readPublicKey(join(directory, 'keys'));
  if (key === null || !existsSync(join(directory, 'ledger.db')))
    throw new CliError('This state has no receipt key: no bridge has run on it.');
  const ledger = openLedgerReadOnly(directory);
  try {
    const keys = [...keyringIn(ledger.read, key.publicKeySpki).values()].sort((a, b) => a.first - b.first);
    const shown = keys.map(({ keyId, publicKeySpki, first, last }) => ({
      keyId,
      publicKeyPem: pemOf(publicKeySpki),
      firstReceipt: first,
      lastReceipt: last === Number.MAX_SAFE_INTEGER ? null : last,
    }));
    if (json) return printJson({ keys: shown });
    for (const { keyId, publicKeyPem, firstReceipt, lastReceipt } of shown)
      print(
        `${keyId}  receipts ${firstReceipt} ${lastReceipt === null ? 'and later' : `to ${lastReceipt}`}\n${publicKeyPem}`,
      );
  } finally {
    await ledger.close();
  }
};

const rotate = async (state: string | undefined, json: boolean): Promise<void> => {
  const control = await connected(state);
  try {
    const answer = await control.client.change('receipt.rotate', {});
    if (json) printJson(answer);
    else print(`The key is now ${answer.keyId}; receipt ${answer.receiptId} says so. The former key is gone.`);
  } finally {
    await control.end();
  }
};

export const keys: Verb = {
  name: 'keys',
  about: 'Show the signing key of receipts, or change it',
  help,
  async run(args) {
    const { values, positionals } = read(args, {});
    const [what = 'show'] = positionals;
    const json = values.json === true;
    if (what === 'show') await show(values.state, json);
    else if (what === 'rotate') await rotate(values.state, json);
    else throw usage(`"${what}" is not one of show, rotate.`);
    return exits.ok;
  },
};
