/** `bridge approvals`: what waits, and deciding it from a terminal (L-35: a tty, or --yes which the receipt then names). */
import { stateDirectories } from '../ledger/paths.ts';
import type { ApprovalView } from '#protocol/methods/approval.ts';
import { CliError, exits, read, usage, type Verb } from './args.ts';
import { connectControl } from './control.ts';
import { bold, dim, inert, print, printJson } from './output.ts';

const help = `bridge approvals [list] [--json]
bridge approvals allow ID [--digest SHA256] [--note TEXT] [--yes]
bridge approvals deny ID [--note TEXT] [--yes]

Without a terminal, deciding needs --yes; the receipt says that it was used.

Example: bridge approvals allow 0197… --note "fine, but run the tests"`;

/** The card, for a terminal: what the bridge established first, the agent's words last and labelled. */
export const printCard = (
  approval: Pick<
    ApprovalView,
    'approvalId' | 'facts' | 'words' | 'digest' | 'agentTitle' | 'workspacePath' | 'enforcement'
  >,
): void => {
  const { facts, words } = approval;
  print(`${bold(inert(facts.headline))}  ${dim(approval.approvalId)}`);
  print(`  ${inert(approval.agentTitle)} (${approval.enforcement}) in ${inert(approval.workspacePath)}`);
  if (facts.argv !== undefined) print(`  runs: ${facts.argv.map((each) => JSON.stringify(inert(each))).join(' ')}`);
  if (facts.commandText !== undefined) print(`  runs: ${inert(facts.commandText)}`);
  if (facts.cwd !== undefined) print(`  in:   ${inert(facts.cwd)}`);
  for (const { path, place } of facts.paths) print(`  path: ${inert(path)} (${place})`);
  for (const diff of facts.diffs) {
    print(
      `  change to ${inert(diff.path)} (+${diff.added} -${diff.removed}), ${diff.source === 'bridge' ? 'read by the bridge' : 'as the agent says'}:`,
    );
    if (diff.oldText !== null)
      for (const line of diff.oldText.split('\n').slice(0, 200)) print(dim(`    - ${inert(line)}`));
    for (const line of diff.newText.split('\n').slice(0, 200)) print(`    + ${inert(line)}`);
  }
  for (const risk of facts.risks) print(`  ! ${inert(risk.sentence)}`);
  if (facts.uninspectable) print('  ! What this would do cannot be inspected.');
  if (words.title !== undefined) print(dim(`  agent says: ${inert(words.title)}`));
  print(dim(`  digest ${approval.digest}`));
};

export const approvals: Verb = {
  name: 'approvals',
  about: 'List what waits; allow or deny it',
  help,
  async run(args) {
    const { values, positionals } = read(args, {
      note: { type: 'string' },
      digest: { type: 'string' },
      yes: { type: 'boolean' },
    });
    const [what = 'list', id] = positionals;
    const control = await connectControl(stateDirectories(values.state));
    try {
      const { client } = control;
      if (what === 'list') {
        const answer = await client.call('approval.list', { state: 'pending' });
        if (values.json === true) printJson(answer);
        else if (answer.approvals.length === 0) print('Nothing waits for you.');
        else answer.approvals.forEach(printCard);
        return exits.ok;
      }
      if (what !== 'allow' && what !== 'deny') throw usage(`"${what}" is not one of list, allow, deny.`);
      if (id === undefined) throw usage('Name the approval; "bridge approvals" lists them.');
      const approval = await client.call('approval.get', { approvalId: id });
      if (values.digest !== undefined && values.digest !== approval.digest)
        throw new CliError('The action is not the one of that digest.');
      const option = approval.options.find((each) => each.meaning === what);
      if (option === undefined) throw new CliError(`The agent offered no way to ${what} this.`);
      const answer = await client.change('approval.decide', {
        approvalId: id,
        digest: approval.digest,
        optionId: option.id,
        value: what,
        ...(values.note === undefined ? {} : { note: values.note }),
        ...(values.yes === true ? { yes: true } : {}),
      });
      if (values.json === true) printJson(answer);
      else print(`${what === 'allow' ? 'Allowed' : 'Denied'}; receipt ${answer.receiptSeq}.`);
      return exits.ok;
    } finally {
      control.close();
    }
  },
};
