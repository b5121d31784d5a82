/** `bridge conversations`: list, show, export, receipts. Reads the database directly, with or without a running bridge. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exportReceipts } from '../approvals/export.ts';
import { opensslCommand } from '../approvals/reader.ts';
import { renderConversation } from '../conversations/export.ts';
import { readHeader } from '../conversations/header.ts';
import { summarise } from '../conversations/summary.ts';
import type { ConversationRow } from '../ledger/contract.ts';
import { openLedgerReadOnly } from '../ledger/ledger.ts';
import { stateDirectories } from '../ledger/paths.ts';
import { CliError, exits, read, usage, type Verb } from './args.ts';
import { inert, print, printJson, table, when } from './output.ts';
import { signedNow } from './receipts.ts';

const help = `bridge conversations [list] [--json]
bridge conversations show ID
bridge conversations export ID --format json|md|html
bridge conversations receipts ID --out FOLDER

Works without a running bridge. An export goes to standard output. Receipts become files that openssl, Sigstore's
verifiers and ssh-keygen can check (docs/RECEIPTS.md); their log is signed for it.

Example: bridge conversations receipts 0197… --out ./receipts`;

type Stored = ReturnType<typeof openLedgerReadOnly>;

const rowOf = (ledger: Stored, id: string | undefined): ConversationRow => {
  if (id === undefined) throw usage('Name a conversation by its id; "bridge conversations" lists them.');
  const row = ledger.read.conversation(id);
  if (row === null) throw new CliError('This conversation does not exist, or was deleted.');
  return row;
};

const summaryOf = (ledger: Stored, row: ConversationRow) =>
  summarise(row, readHeader(row.header), {
    state: 'idle',
    live: false,
    pendingApprovals: ledger.read.pendingApprovals(row.conversationId),
    problem: null,
  });

const list = (ledger: Stored, json: boolean): void => {
  const rows = ledger.read.conversations({ limit: Number.MAX_SAFE_INTEGER });
  if (json) return printJson({ conversations: rows.map((row) => summaryOf(ledger, row)) });
  if (rows.length === 0) return print('There are no conversations yet.');
  table(rows.map((row) => [row.conversationId, when(row.updatedAt), row.agentTitle, inert(row.title)]));
};

const write = async (ledger: Stored, row: ConversationRow, format: string | undefined): Promise<void> => {
  if (format !== 'json' && format !== 'md' && format !== 'html') throw usage('--format takes json, md or html.');
  for await (const piece of renderConversation(ledger, summaryOf(ledger, row), format)) {
    await new Promise<void>((resolve, reject) =>
      process.stdout.write(piece, (error) => (error ? reject(error) : resolve())),
    );
  }
};

const receipts = async (
  ledger: Stored,
  row: ConversationRow,
  state: string | undefined,
  out: string | undefined,
  json: boolean,
): Promise<void> => {
  if (out === undefined) throw usage('--out names the folder to write.');
  const written = exportReceipts(ledger.read, row.conversationId, out, await signedNow(state));
  if (json) printJson({ folder: out, receipts: written.length });
  else print(`${written.length} receipts written to ${out}. Check one with:\n  ${opensslCommand('N')}`);
};

export const conversations: Verb = {
  name: 'conversations',
  about: 'List, show and export conversations and their receipts',
  help,
  async run(args) {
    const { values, positionals } = read(args, { format: { type: 'string' }, out: { type: 'string' } });
    const directories = stateDirectories(values.state);
    if (!existsSync(join(directories.private, 'ledger.db')))
      throw new CliError('There is nothing here yet: no bridge has run on this state.');
    const [what = 'list', id] = positionals;
    const ledger = openLedgerReadOnly(directories.private);
    try {
      const json = values.json === true;
      if (what === 'list') list(ledger, json);
      else if (what === 'show') await write(ledger, rowOf(ledger, id), json ? 'json' : 'md');
      else if (what === 'export') await write(ledger, rowOf(ledger, id), values.format);
      else if (what === 'receipts') await receipts(ledger, rowOf(ledger, id), values.state, values.out, json);
      else throw usage(`"${what}" is not one of list, show, export, receipts.`);
      return exits.ok;
    } finally {
      await ledger.close();
    }
  },
};
