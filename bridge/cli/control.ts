/**
 * The CLI's end of the private socket: the same protocol client as the app, over NDJSON. It proves which process it is
 * by holding a file named by the bridge's nonce open (L-35); a terminal or an explicit --yes is what deciding needs.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { closeSync, constants, openSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createClient, type Client, type ConnectionState } from '#protocol/client.ts';
import type { Channel, Platform } from '#protocol/platform.ts';
import { limits } from '#protocol/limits.ts';
import type { Directories } from '../ledger/paths.ts';
import { CliError, exits } from './args.ts';
import { version } from './version.ts';

const lineChannel = (path: string): Channel => {
  const socket = connect(path);
  const channel: Channel = {
    onOpen: null,
    onMessage: null,
    onClose: null,
    send: (text) => void socket.write(`${text}\n`),
    close: () => void socket.destroy(),
  };
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('connect', () => channel.onOpen?.());
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > limits.frameBytes) return void socket.destroy();
    for (const line of lines) channel.onMessage?.(line);
  });
  socket.on('error', () => undefined); // `close` follows and is what counts
  socket.on('close', () => channel.onClose?.(1000, 'closed'));
  return channel;
};

/** What the protocol client needs of Node, whatever the transport. */
export const nodePlatform = (connectChannel: () => Channel, peer?: Platform['peer']): Platform => ({
  now: () => Date.now(),
  random: (bytes) => new Uint8Array(randomBytes(bytes)),
  timer: (ms, fn) => {
    const timer = setTimeout(fn, ms);
    return { cancel: () => clearTimeout(timer) };
  },
  utf8: (text) => new TextEncoder().encode(text),
  sha256: async (bytes) => new Uint8Array(createHash('sha256').update(bytes).digest()),
  sign: () => null,
  connect: connectChannel,
  ...(peer === undefined ? {} : { peer }),
});

export interface Control {
  readonly client: Client;
  close(): void;
}

interface PeerFile {
  readonly path: string;
  readonly fd: number;
}

const holdPeerFile = (directories: Directories, held: PeerFile[]): NonNullable<Platform['peer']> => {
  return async (nonce) => {
    const path = join(directories.peers, nonce);
    held.push({
      path,
      fd: openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW, 0o600),
    });
    return { pid: process.pid };
  };
};

/** Resolves when the client may be used; rejects with the state it came to rest in. */
export const whenLive = (client: Client): Promise<void> =>
  new Promise((resolve, reject) => {
    const settled = (state: ConnectionState): boolean => {
      if (state === 'live') resolve();
      else if (state === 'offline' || state === 'signed_out' || state === 'incompatible') reject(new Error(state));
      else return false;
      return true;
    };
    const stop = client.on({
      status: ({ state }) => {
        if (settled(state)) stop();
      },
    });
    client.start();
  });

/** A live connection, or a CliError with exit code 3 that says what to do. */
export const connectControl = async (directories: Directories): Promise<Control> => {
  const held: PeerFile[] = [];
  const platform = nodePlatform(() => lineChannel(directories.controlSocket), holdPeerFile(directories, held));
  const client = createClient(platform, { kind: 'cli', version, instanceId: randomUUID() });
  const close = (): void => {
    client.close();
    for (const { path, fd } of held) {
      closeSync(fd);
      rmSync(path, { force: true }); // the bridge removes it too, once it has looked
    }
  };
  try {
    await whenLive(client);
  } catch (cause) {
    close();
    const incompatible = cause instanceof Error && cause.message === 'incompatible';
    const sentence = incompatible
      ? 'The running bridge is of another version. Stop it and start this one.'
      : 'No bridge is running on this state. Start one with "bridge start".';
    throw new CliError(sentence, exits.unreachable, { cause });
  }
  return { client, close };
};
