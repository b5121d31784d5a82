/** `bridge open`, `status`, `stop`, `sessions`, `revoke`: the running bridge, over its private socket. */
import { stateDirectories } from '../ledger/paths.ts';
import { exits, read, usage, type Verb } from './args.ts';
import { connectControl } from './control.ts';
import { print, printJson, table, when } from './output.ts';
import type { Client } from '#protocol/client.ts';

const withBridge = async (state: string | undefined, work: (client: Client) => Promise<void>): Promise<number> => {
  const control = await connectControl(stateDirectories(state));
  try {
    await work(control.client);
    return exits.ok;
  } finally {
    control.close();
  }
};

export const open: Verb = {
  name: 'open',
  about: 'Print a new launch URL',
  help: `bridge open [--state DIR] [--json]

Prints a new launch URL of the running bridge: it works once, for one minute.

Example: bridge open`,
  async run(args) {
    const { values } = read(args, {});
    return withBridge(values.state, async (client) => {
      const answer = await client.call('bridge.launch', {});
      if (values.json === true) printJson(answer);
      else print(answer.launchUrl);
    });
  },
};

export const status: Verb = {
  name: 'status',
  about: 'Say what the running bridge is doing',
  help: `bridge status [--state DIR] [--json]

Example: bridge status --json`,
  async run(args) {
    const { values } = read(args, {});
    return withBridge(values.state, async (client) => {
      const info = await client.call('bridge.info', {});
      const approvals = await client.call('approval.list', { state: 'pending' });
      if (values.json === true) return printJson({ ...info, pendingApprovals: approvals.approvals.length });
      table([
        ['running on', info.origin],
        ['since', when(info.startedAt)],
        ['version', info.version],
        ['state', info.stateDirectory],
        ['agents', `${info.agentProcesses} of ${info.agentProcessLimit} processes`],
        ['contained by', `${info.containment}: ${info.containmentWhy}`],
        ['waiting', `${approvals.approvals.length} approvals`],
        ...(info.readOnly ? [['storage', 'READ-ONLY: free disk space, then restart']] : []),
      ]);
    });
  },
};

export const stop: Verb = {
  name: 'stop',
  about: 'Stop the running bridge in order',
  help: `bridge stop [--state DIR]

Running turns are recorded as interrupted, agents are ended, nothing is lost.

Example: bridge stop`,
  async run(args) {
    const { values } = read(args, {});
    return withBridge(values.state, async (client) => {
      await client.call('bridge.stop', {});
      if (values.json === true) printJson({ stopped: true });
      else print('Stopping.');
    });
  },
};

export const sessions: Verb = {
  name: 'sessions',
  about: 'List the signed-in browsers',
  help: `bridge sessions [--state DIR] [--json]

Example: bridge sessions`,
  async run(args) {
    const { values } = read(args, {});
    return withBridge(values.state, async (client) => {
      const answer = await client.call('bridge.sessions', {});
      if (values.json === true) return printJson(answer);
      if (answer.sessions.length === 0) return print('Nobody is signed in. Run "bridge open".');
      table([
        ['session', 'browser', 'last seen', 'expires'],
        ...answer.sessions.map((each) => [each.sessionId, each.client, when(each.seenAt), when(each.expiresAt)]),
      ]);
    });
  },
};

export const revoke: Verb = {
  name: 'revoke',
  about: 'Sign a browser out, or all of them',
  help: `bridge revoke (SESSION | --all) [--state DIR] [--json]

Example: bridge revoke --all`,
  async run(args) {
    const { values, positionals } = read(args, { all: { type: 'boolean' } });
    const [sessionId] = positionals;
    if ((sessionId === undefined) === (values.all !== true)) throw usage('Name one session, or --all.');
    return withBridge(values.state, async (client) => {
      const answer = await client.change('bridge.revoke', { sessionId: sessionId ?? null });
      if (values.json === true) printJson(answer);
      else print(`${answer.revoked} signed out.`);
    });
  },
};
