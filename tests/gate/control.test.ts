import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { methodNames, methods } from '#protocol/methods.ts';
import { startGate } from '../../bridge/gate/gate.ts';
import { examinePeer } from '../../bridge/gate/peer.ts';
import { Ground, initializeParams, openControl, type Client, type Frame } from './parts.ts';

let ground: Ground;
beforeEach(async () => {
  ground = await new Ground().prepare();
});
afterEach(() => ground.end());

const initialize = async (client: Client, peer: { pid: number } | null, holds: boolean): Promise<Frame> => {
  const { nonce } = await client.hello();
  const file = join(ground.directory, 'peers', nonce);
  const held = holds ? openSync(file, 'wx', 0o600) : null;
  const answer = await client.call(
    'connection.initialize',
    initializeParams(peer === null ? {} : { peer, client: { kind: 'cli', version: 'test', instanceId: randomUUID() } }),
  );
  if (held !== null) closeSync(held);
  expect(existsSync(file)).toBe(false);
  return answer;
};

describe('L-35 who is at the control socket', () => {
  test('only its owner may connect', async () => {
    await ground.start();
    expect(statSync(join(ground.directory, 'control.sock')).mode & 0o777).toBe(0o600);
    expect(statSync(join(ground.directory, 'peers')).mode & 0o777).toBe(0o700);
  });

  test('a process that holds the nonce file is an operator', async () => {
    await ground.start();
    const { client } = await openControl(ground);
    const answer = await initialize(client, { pid: process.pid }, true);
    expect(answer.result?.['granted']).toContain('bridge.operate');
    await client.call('conversation.list');
    expect(ground.calls[0]?.actor).toMatchObject({ kind: 'cli', pid: process.pid, operator: true });
  });

  test.each([
    ['no pid', null, false],
    ['a pid without the file', { pid: process.pid }, false],
    ['the pid of another process', { pid: process.ppid }, true],
    ['a pid that does not exist', { pid: 4_194_304 }, true],
  ])('%s only reads', async (_name, peer, holds) => {
    await ground.start();
    const { client } = await openControl(ground);
    const answer = await initialize(client, peer, holds);
    expect(answer.result?.['granted']).not.toContain('bridge.operate');
    expect(await client.call('conversation.list')).toMatchObject({ kind: 'result' });
    expect(ground.calls[0]?.actor).toMatchObject({ operator: false, pid: null });
    for (const method of methodNames
      .filter((name) => methods[name].mutates || methods[name].capability === 'bridge.operate')
      .slice(0, 5)) {
      ground.calls.length = 0;
      const refused = await client.call(method, {}, methods[method].mutates ? randomUUID() : undefined);
      expect(['forbidden', 'bad_request']).toContain(refused.error?.code);
      expect(ground.calls).toEqual([]);
    }
    expect(await client.call('bridge.launch')).toMatchObject({ error: { code: 'forbidden' } });
    expect(await client.call('bridge.stop')).toMatchObject({ error: { code: 'forbidden' } });
    expect(
      await client.call('conversation.archive', { conversationId: 'c1', archived: true }, randomUUID()),
    ).toMatchObject({ error: { code: 'forbidden' } });
  });

  test('a peer inside an agent is refused everything', async () => {
    await ground.start();
    ground.inside.add(process.pid);
    const { client } = await openControl(ground);
    expect(await initialize(client, { pid: process.pid }, true)).toMatchObject({ error: { code: 'forbidden' } });
    await client.close();
    expect(ground.gate.attachments).toBe(0);
    expect(ground.lines).toContainEqual(expect.objectContaining({ event: 'refused', reason: 'inside_agent' }));
  });

  test('a link to a file somebody holds proves nothing', async () => {
    await ground.start();
    const deps = { peersDirectory: join(ground.directory, 'peers'), insideAgent: () => false };
    const target = join(ground.directory, 'target');
    const held = openSync(target, 'w');
    const { symlinkSync } = await import('node:fs');
    symlinkSync(target, join(deps.peersDirectory, 'nonce'));
    expect(examinePeer(process.pid, 'nonce', deps)).toMatchObject({ isOperator: false, pid: null });
    closeSync(held);
  });

  test('a terminal at standard input is seen, anything else is not', async () => {
    await ground.start();
    const deps = { peersDirectory: join(ground.directory, 'peers'), insideAgent: () => false };
    const hold =
      'require("fs").openSync(process.argv[1], "wx"); console.log("held"); setInterval(() => undefined, 1000);';
    const plain = spawn(process.execPath, ['-e', hold, join(deps.peersDirectory, 'a')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
    const command = ['exec', process.execPath, '-e', hold, join(deps.peersDirectory, 'b')]
      .map((part, index) => (index === 0 ? part : quote(part)))
      .join(' ');
    const pidFile = join(ground.directory, 'pid');
    const tty = spawn('script', ['-qec', `echo $$ > ${pidFile}; ${command}`, '/dev/null'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    ground.onEnd(() => (plain.kill('SIGKILL'), tty.kill('SIGKILL')));
    await Promise.all(
      [plain, tty].map(
        (child) =>
          new Promise<void>((resolve) =>
            child.stdout.on('data', (data: Buffer) => (String(data).includes('held') ? resolve() : undefined)),
          ),
      ),
    );
    expect(examinePeer(plain.pid ?? 0, 'a', deps)).toMatchObject({ isOperator: true, hasTty: false });
    const inner = Number(readFileSync(pidFile, 'utf8'));
    expect(examinePeer(inner, 'b', deps)).toMatchObject({ isOperator: true, hasTty: true });
    process.kill(inner, 'SIGKILL');
  });
});

describe('NDJSON', () => {
  test('a line in many pieces, and many lines in one, are each one frame', async () => {
    await ground.start();
    const { client, socket } = await openControl(ground);
    await initialize(client, { pid: process.pid }, true);
    const line = `${JSON.stringify({ kind: 'request', id: 70, method: 'connection.ping', params: {} })}\n`;
    for (const part of line) socket.write(part);
    expect(await client.answer(70)).toMatchObject({ kind: 'result' });
    socket.write(`${line.replace('70', '71')}\n${line.replace('70', '72')}`);
    expect(await client.answer(72)).toMatchObject({ kind: 'result' });
    expect(await client.answer(71)).toMatchObject({ kind: 'result' });
  });

  test('a line without an end, or not UTF-8, ends that connection alone', async () => {
    await ground.start();
    const other = await openControl(ground);
    const endless = await openControl(ground);
    endless.socket.write('x'.repeat(limits.frameBytes + 2));
    await endless.client.close();
    const garbled = await openControl(ground);
    garbled.socket.write(Buffer.from([0x7b, 0xff, 0x7d, 0x0a]));
    await garbled.client.close();
    expect(await other.client.call('connection.ping')).toMatchObject({ kind: 'result' });
  });

  test('a socket left by a dead bridge is replaced, anything else there is an error', async () => {
    await ground.start();
    await ground.gate.close();
    const path = join(ground.directory, 'control.sock');
    expect(existsSync(path)).toBe(false);
    const left = spawn(process.execPath, [
      '-e',
      'require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))',
      path,
    ]);
    await new Promise((resolve) => left.once('exit', resolve));
    expect(existsSync(path)).toBe(true);
    await ground.start();
    await openControl(ground);
    await ground.gate.close();
    writeFileSync(path, 'mine');
    await expect(startGate(ground.deps())).rejects.toThrow('in the way');
    expect(readFileSync(path, 'utf8')).toBe('mine');
  });

  test('silent connections yield to new ones', async () => {
    await ground.start();
    const silent = await Promise.all(Array.from({ length: limits.attachments }, () => openControl(ground)));
    await Promise.all(silent.map(({ client }) => client.hello()));
    const { client } = await openControl(ground);
    expect((await initialize(client, { pid: process.pid }, true)).kind).toBe('result');
    expect(silent.some((one) => one.client.closed !== null)).toBe(true);
    await expect(
      new Promise((resolve, reject) =>
        connect(join(ground.directory, 'control.sock')).once('connect', resolve).once('error', reject),
      ),
    ).resolves.toBeUndefined();
  });
});
