/** `bridge receipts`: list them, show one, export one. Reads the database; exporting has the log signed as it is now. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromBase64 } from '#protocol/receipts.ts';
import { receiptForm, type ReceiptForm, type Signing } from '../approvals/export.ts';
import { readReceiptKey } from '../approvals/keys.ts';
import { receiptSummary } from '../approvals/views.ts';
import type { ReceiptRow } from '../ledger/contract.ts';
import { openLedgerReadOnly } from '../ledger/ledger.ts';
import { stateDirectories } from '../ledger/paths.ts';
import { CliError, exits, read, usage, type Verb } from './args.ts';
import { inert, print, printJson, table, when } from './output.ts';
import { connected } from './run.ts';

const help = `bridge receipts [list] [--json]
bridge receipts show ID_OR_NUMBER [--json]
bridge receipts export ID_OR_NUMBER [--format envelope|bundle|tlog-proof] [--out FILE]

show    what a receipt says, as it was signed
export  one receipt to standard output or a new file: the DSSE envelope, a Sigstore bundle, or a C2SP tlog-proof.
        "bridge conversations receipts" writes all of a conversation, with keys, actions and the signed log.

Works without a running bridge. docs/RECEIPTS.md says how to check them without this program.

Example: bridge receipts export 17 --format bundle --out 17.sigstore.json`;

type Stored = ReturnType<typeof openLedgerReadOnly>;
const forms: readonly ReceiptForm[] = ['envelope', 'bundle', 'tlog-proof'];

/**
 * The key, and the log signed over all receipts so far: by the running bridge, else by its parts in this process.
 * @throws CliError where there is no key, or a change of keys is under way
 */
export const signedNow = async (state: string | undefined): Promise<Signing> => {
  const control = await connected(state);
  try {
    const { size, root, checkpoint } = await control.client.call('log.checkpoint', {});
    const key = readReceiptKey(join(stateDirectories(state).private, 'keys'));
    if (key === null) throw new CliError('This state has no receipt key.');
    return { key, checkpoint: { size, root: fromBase64(root) ?? new Uint8Array(), note: checkpoint } };
  } finally {
    await control.end();
  }
};

const rowOf = (ledger: Stored, name: string | undefined): ReceiptRow => {
  if (name === undefined) throw usage('Name a receipt by its number or id; "bridge receipts" lists them.');
  const row = /^\d{1,15}$/.test(name)
    ? ledger.read.receipts({ beforeSeq: Number(name) + 1, limit: 1 }).find(({ seq }) => seq === Number(name))
    : ledger.read.receipt(name);
  if (row === undefined || row === null) throw new CliError('This receipt does not exist.');
  return row;
};

const list = (ledger: Stored, json: boolean): void => {
  const rows = [...ledger.read.allReceipts()];
  if (json) return printJson({ receipts: rows.map(receiptSummary) });
  if (rows.length === 0) return print('There are no receipts yet.');
  table(rows.map(({ seq, at, kind, sentence }) => [String(seq), when(at), kind, inert(sentence)]));
};

const show = (row: ReceiptRow, json: boolean): void => {
  const statement = JSON.parse(Buffer.from(row.payload).toString('utf8')) as unknown;
  if (json) return printJson({ ...receiptSummary(row), keyId: row.keyId, statement });
  print(
    `Receipt ${row.seq}  ${row.receiptId}\n${when(row.at)}  ${inert(row.sentence)}\nsigned by ${inert(row.keyId)}\n`,
  );
  print(inert(JSON.stringify(statement, null, 2)));
  print(`\nTo check it elsewhere: bridge receipts export ${row.seq} --format bundle --out ${row.seq}.sigstore.json`);
};

const formOf = (format: string | undefined): ReceiptForm => {
  const form = forms.find((each) => each === (format ?? 'envelope'));
  if (form === undefined) throw usage('--format takes envelope, bundle or tlog-proof.');
  return form;
};

const save = (text: string, out: string | undefined): void => {
  if (out === undefined) return void process.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
  if (existsSync(out)) throw new CliError(`${out} exists already.`);
  writeFileSync(out, text, { flag: 'wx', mode: 0o600 });
};

export const receipts: Verb = {
  name: 'receipts',
  about: 'List signed receipts, show or export one',
  help,
  async run(args) {
    const { values, positionals } = read(args, { format: { type: 'string' }, out: { type: 'string' } });
    const [what = 'list', name] = positionals;
    const directory = stateDirectories(values.state).private;
    if (!existsSync(join(directory, 'ledger.db')))
      throw new CliError('There is nothing here yet: no bridge has run on this state.');
    const form = formOf(values.format);
    const ledger = openLedgerReadOnly(directory);
    try {
      const json = values.json === true;
      if (what === 'list') list(ledger, json);
      else if (what === 'show') show(rowOf(ledger, name), json);
      else if (what === 'export') {
        const row = rowOf(ledger, name);
        save(receiptForm(ledger.read, row, form, await signedNow(values.state)), values.out);
      } else throw usage(`"${what}" is not one of list, show, export.`);
      return exits.ok;
    } finally {
      await ledger.close();
    }
  },
};
