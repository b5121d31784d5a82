/** `bridge start`: compose the rooms, listen on loopback, print the launch URL, stop in order. */
import { stateDirectories, type Directories } from '../ledger/paths.ts';
import { exits, read, usage, type Verb } from './args.ts';
import { print, printJson, warn } from './output.ts';
import { closePorch, loadRooms, openEarly, type Early } from './early.ts';
import { comeToRest } from './rest.ts';

const help = `bridge start [--port N] [--state DIR] [--workspace DIR] [--practice] [--json]

Starts the bridge on 127.0.0.1 and prints a launch URL that works once, for a minute.
  --port N        7433 unless another was used before; 0 takes a free one
  --workspace D   the folder to open; the current one otherwise
  --practice      open the practice workspace instead

Example: bridge start --workspace ~/code/parser`;

const portOf = (text: string | undefined): number | null => {
  if (text === undefined) return null;
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw usage('--port takes a number from 0 to 65535.');
  return port;
};

/** Resolves on the first of: a signal, or `stop` asked over the control socket. */
const untilStopped = (asked: Promise<void>): Promise<string> =>
  new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve(signal));
    void asked.then(() => resolve('stop'));
  });

/** On a terminal, any key but Ctrl-C makes a new launch URL. */
const onKeys = async (make: () => void): Promise<() => void> => {
  const { stdin } = process;
  if (stdin.isTTY !== true) return () => undefined;
  const { emitKeypressEvents } = await import('node:readline');
  emitKeypressEvents(stdin);
  stdin.setRawMode(true);
  const pressed = (_: string, key: { ctrl?: boolean; name?: string }): void => {
    if (key.ctrl === true && key.name === 'c') process.kill(process.pid, 'SIGINT');
    else make();
  };
  stdin.on('keypress', pressed);
  return () => {
    stdin.off('keypress', pressed);
    stdin.setRawMode(false);
    stdin.pause();
  };
};

const composed = async (directories: Directories, early: Early) => {
  try {
    const { compose, openGate } = await loadRooms(early.porch);
    return { openGate, parts: await compose({ directories, purpose: 'start', early }) };
  } catch (error) {
    await closePorch(early.porch); // or its listener would keep the process
    throw error;
  }
};

export const start: Verb = {
  name: 'start',
  about: 'Start the bridge and print a launch URL',
  help,
  async run(args) {
    const { values } = read(args, {
      port: { type: 'string' },
      workspace: { type: 'string' },
      practice: { type: 'boolean' },
    });
    const port = portOf(values.port);
    const directories = stateDirectories(values.state);
    const early = openEarly(directories, port);
    const { parts, openGate } = await composed(directories, early);
    // Heard from here on: whoever reads the first line may stop us at once, and in order.
    const stopped = untilStopped(parts.stopAsked);
    if (parts.noticed !== null) warn(parts.noticed);
    try {
      const gate = await openGate(parts, early);
      try {
        await parts
          .openLaunchWorkspace(
            values.practice === true
              ? { practice: true }
              : { path: values.workspace ?? process.env['INIT_CWD'] ?? process.cwd() },
          )
          .catch((error: unknown) => {
            if (values.workspace !== undefined) throw error;
            warn(`This folder was not opened: ${error instanceof Error ? error.message : String(error)}`);
          });
        const announce = (): void => {
          const { url } = gate.launchUrl();
          print(`\nOpen this link to sign in (works once, for one minute):\n\n${url}\n`);
        };
        if (values.json === true) {
          printJson({ event: 'ready', origin: gate.origin, launchUrl: gate.launchUrl().url, pid: process.pid });
        } else {
          print(`Countersign is running on ${gate.origin}`);
          announce();
          print(
            process.stdin.isTTY === true
              ? 'Press any key for a new link, Ctrl-C to stop.'
              : 'Run "bridge open" for a new link, "bridge stop" to stop.',
          );
        }
        const { listener } = await early.porch;
        comeToRest(() => listener.connections.size === 0);
        const quiet = values.json === true ? () => undefined : await onKeys(announce);
        const why = await stopped;
        quiet();
        if (values.json !== true) print(`Stopping (${why}) …`);
      } finally {
        await gate.close();
      }
    } finally {
      await closePorch(early.porch);
      await parts.close();
    }
    return exits.ok;
  },
};
