/** `bridge agents`: what is installed, what is missing; add and remove custom ones. */
import { stateDirectories } from '../ledger/paths.ts';
import type { AgentSummary } from '#protocol/methods/conversation.ts';
import { exits, read, usage, type Verb } from './args.ts';
import { connectControl } from './control.ts';
import { inert, print, printJson, table } from './output.ts';
import { compose } from './parts.ts';

const help = `bridge agents [list] [--json]
bridge agents probe ID
bridge agents add TITLE -- COMMAND [ARG…]
bridge agents remove ID

Adding and removing need a running bridge; any program that speaks ACP can be added.

Example: bridge agents add "My agent" -- /usr/local/bin/my-agent --acp`;

const show = (agents: readonly AgentSummary[], json: boolean): void => {
  if (json) return printJson({ agents });
  table(
    agents.map((each) => [
      each.agentId,
      each.state,
      each.version ?? '-',
      each.enforcement,
      inert(
        each.problem === null
          ? (each.executable ?? '')
          : `${each.problem}${each.mendCommand === null ? '' : ` Run: ${each.mendCommand}`}`,
      ),
    ]),
  );
};

/** With a bridge, its own view; without, a look at this machine. */
const listed = async (state: string | undefined): Promise<readonly AgentSummary[]> => {
  const directories = stateDirectories(state);
  const control = await connectControl(directories).catch(() => null);
  if (control !== null) {
    try {
      const { agents: known } = await control.client.call('agent.list', {});
      return await Promise.all(known.map((each) => control.client.call('agent.probe', { agentId: each.agentId })));
    } finally {
      control.close();
    }
  }
  const parts = await compose({ directories, purpose: 'look' });
  try {
    return await Promise.all(parts.agents.list().map((each) => parts.agents.probe(each.agentId)));
  } finally {
    await parts.close();
  }
};

export const agents: Verb = {
  name: 'agents',
  about: 'List, probe, add and remove agents',
  help,
  async run(args) {
    const cut = args.indexOf('--');
    const command = cut === -1 ? [] : args.slice(cut + 1);
    const { values, positionals } = read(cut === -1 ? args : args.slice(0, cut), {
      env: { type: 'string', multiple: true },
    });
    const [what = 'list', subject] = positionals;
    const json = values.json === true;
    if (what === 'list') {
      show(await listed(values.state), json);
      return exits.ok;
    }
    if (subject === undefined) throw usage(`"bridge agents ${what}" needs a name.`);
    const control = await connectControl(stateDirectories(values.state));
    try {
      if (what === 'probe') show([await control.client.call('agent.probe', { agentId: subject })], json);
      else if (what === 'remove') {
        await control.client.change('agent.remove', { agentId: subject });
        if (!json) print('Removed.');
      } else if (what === 'add') {
        const [program, ...rest] = command;
        if (program === undefined) throw usage('Put the command after "--".');
        const env = (values.env ?? []).map((pair) => {
          const at = pair.indexOf('=');
          if (at < 1) throw usage('--env takes NAME=VALUE.');
          return { name: pair.slice(0, at), value: pair.slice(at + 1) };
        });
        show([await control.client.change('agent.add', { title: subject, command: program, args: rest, env })], json);
      } else throw usage(`"${what}" is not one of list, probe, add, remove.`);
      return exits.ok;
    } finally {
      control.close();
    }
  },
};
