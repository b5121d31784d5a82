/**
 * The process between the bridge and an agent where bubblewrap is not usable: `node supervisor.ts <argv of the agent>`.
 * Descriptor 3 is the lifetime pipe. Its end, also by SIGKILL of the bridge, kills the agent's whole tree; the word
 * `term` on it asks the agent's group to end. Nothing else is read from it, and the agent does not inherit it.
 * Started by process.ts alone, in a session of its own, with the marker in its environment.
 */
import { spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { closeInherited } from './descriptors.ts';
import { markerName } from './procfs.ts';
import { killTree, signal } from './tree.ts';

const [command, ...args] = process.argv.slice(2);
const marker = process.env[markerName];
if (command === undefined || marker === undefined) process.exit(2);

closeInherited([3]);
// A TERM for the group or a closing terminal must not take the one who cleans up.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => undefined);

// The agent's own group, so that `term` reaches it and not us.
const agent = spawn(command, args, { stdio: ['inherit', 'inherit', 'inherit'], detached: true });

let ending = false;
/** Kills what is left, then leaves as the agent left: with its code, or by its signal. */
const end = async (code: number, by: NodeJS.Signals | null): Promise<void> => {
  if (ending) return;
  ending = true;
  await killTree({ marker, group: agent.pid });
  if (by !== null && by !== 'SIGKILL') process.removeAllListeners(by);
  if (by !== null) signal(process.pid, by);
  process.exit(code);
};

agent.on('error', (error) => {
  process.stderr.write(`could not start: ${error.message}\n`);
  void end(127, null);
});
agent.on('exit', (code, by) => void end(code ?? 1, by));

const lifetime = new Socket({ fd: 3, readable: true, writable: false });
lifetime.on('data', () => agent.pid !== undefined && signal(-agent.pid, 'SIGTERM'));
lifetime.on('error', () => undefined); // a broken pipe is an ended one: 'close' follows
lifetime.on('close', () => void end(1, 'SIGKILL'));
