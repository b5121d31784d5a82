import { randomBytes } from 'node:crypto';
import { createServer, type AddressInfo } from 'node:net';
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Bridge, bridge, isAlive, temporary } from './process.ts';
import { Stage } from './stage.ts';

const started = (args: readonly string[]) => bridge(['start', '--port', '0', '--json', ...args]);

describe('two bridges', () => {
  const stage = new Stage();
  const other = temporary('other');
  beforeAll(async () => void (await stage.start()));
  afterAll(async () => {
    await stage.end();
    other.remove();
  });

  it('on one state: the second is refused in a sentence that names the first, which goes on (T87)', async () => {
    const second = await started(['--state', stage.bridge.state, '--practice']);
    expect(second.code).toBe(1);
    expect(second.stdout).toBe('');
    expect(second.stderr.trim().split('\n')).toHaveLength(1);
    expect(second.stderr).toContain(`pid ${stage.bridge.ready.pid}`);
    expect((await (await stage.bridge.client()).call('bridge.info', {})).stateDirectory).toBe(stage.bridge.state);
  });

  it('on one state by another name of it are still two on one state (T87)', async () => {
    const link = join(other.path, 'link');
    mkdirSync(join(other.path, 'parent'));
    symlinkSync(stage.directory, join(other.path, 'parent', 'alias'));
    const second = await started(['--state', join(other.path, 'parent', 'alias', 'state'), '--practice']);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`pid ${stage.bridge.ready.pid}`);
    symlinkSync(stage.bridge.state, link);
    const linked = await started(['--state', link, '--practice']);
    expect(linked.code).toBe(1);
    expect(linked.stderr).toMatch(/must be a directory/);
  });

  it('on one workspace: the second is told who holds it (W-02)', async () => {
    const state = join(other.path, 'state');
    const second = await started(['--state', state, '--workspace', stage.workspace]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(String(stage.bridge.ready.pid));

    const practising = await new Bridge(state).start();
    try {
      const client = await practising.client();
      const { pid } = stage.bridge.ready;
      await expect(client.change('workspace.open', { path: stage.workspace })).rejects.toMatchObject({
        code: 'workspace_leased',
        message: expect.stringContaining(String(pid)) as string,
      });
      const alias = join(other.path, 'alias-of-workspace');
      symlinkSync(stage.workspace, alias);
      await expect(client.change('workspace.open', { path: alias })).rejects.toMatchObject({
        code: 'workspace_leased',
      });

      await stage.bridge.kill();
      expect(isAlive(pid)).toBe(false);
      const opened = await client.change('workspace.open', { path: stage.workspace });
      expect(opened).toMatchObject({ path: stage.workspace });
    } finally {
      await practising.stop();
      await stage.bridge.start();
    }
  });
});

describe('start refuses', () => {
  const state = temporary('start');
  afterAll(() => state.remove());

  it('a port that is taken, says by whom, and takes no other (T02)', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const ran = await bridge([
        'start',
        '--port',
        String(port),
        '--state',
        join(state.path, 's'),
        '--practice',
        '--json',
      ]);
      expect(ran.code).toBe(1);
      expect(ran.stdout).toBe('');
      expect(ran.stderr.trim().split('\n')).toHaveLength(1);
      expect(ran.stderr).toContain(`Port ${port} on 127.0.0.1 is held by`);
      expect(ran.stderr).toContain(`(pid ${process.pid})`);
    } finally {
      server.close();
    }
  });

  it('a state that others may use, and a foreign or damaged database, each in one sentence, leaving it as it was (T85)', async () => {
    const open = join(state.path, 'open');
    mkdirSync(open, { mode: 0o755 });
    chmodSync(open, 0o755);
    const shared = await started(['--state', open]);
    expect(shared.code).toBe(1);
    expect(shared.stderr).toContain(`chmod 700 '${open}'`);

    const foreign = join(state.path, 'foreign');
    mkdirSync(join(foreign, 'private'), { recursive: true, mode: 0o700 });
    const file = join(foreign, 'private', 'ledger.db');
    const bytes = randomBytes(8192);
    writeFileSync(file, bytes);
    const damaged = await started(['--state', foreign, '--practice']);
    expect(damaged.code).toBe(1);
    expect(damaged.stderr.trim().split('\n')).toHaveLength(1);
    expect(readFileSync(file).equals(bytes)).toBe(true);
    rmSync(foreign, { recursive: true });
  });
});

describe('the log (L-15, T92)', () => {
  const secrets = new Map<string, string>();
  /** A word that stands nowhere else. */
  const canary = (name: string): string => {
    const made = secrets.get(name) ?? `canary${randomBytes(12).toString('hex')}`;
    secrets.set(name, made);
    return made;
  };

  it.each([
    ['held by bubblewrap', 'bubblewrap'],
    ['best effort', 'best_effort'],
  ] as const)('has none of forty planted secrets in it, %s', async (_name, holding) => {
    const environment = {
      [`SECRET_${canary('variable name')}`]: canary('variable'),
      ANTHROPIC_API_KEY: canary('api key'),
    };
    const stage = new Stage(environment, holding);
    try {
      const client = await stage.start();
      writeFileSync(join(stage.workspace, 'notes.txt'), canary('file text'));
      writeFileSync(join(stage.workspace, '.env'), `TOKEN=${canary('secret file')}`);
      writeFileSync(join(stage.workspace, `${canary('file name')}.txt`), 'x');
      const { workspaceId } = stage;
      const { origin, launchUrl } = stage.bridge.ready;

      const agentId = await stage.scripted({}, [{ name: 'GIVEN', value: canary('agent variable') }]);
      const talk = await stage.talk(agentId);
      const { turnId } = await talk.send(
        [
          `${canary('prompt')} [[say ${canary('answer')}]][[think ${canary('thought')}]][[stderr ${canary('stderr')}]]`,
          `[[tool t1 ${canary('tool title')}]][[fail t1]][[raw ${canary('garbage')}]]`,
          `[[raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{{session}}","update":{"sessionUpdate":"${canary('unknown update')}"}}}]]`,
          `[[call x/${canary('method')} {"a":"${canary('call parameter')}"}]]`,
          `[[fs-read ${canary('read path')}]][[malformed]][[edit ${canary('edit path')} ${canary('edit text')}]]`,
        ].join(''),
      );
      const [asked] = await talk.asked();
      if (asked === undefined) throw new Error('unreachable');
      await talk.decide(asked, 'deny', { note: canary('note') });
      await talk.ended(turnId);
      await talk.until('the turn of the note', () => talk.all('turn.ended').length === 2);
      const failed = await talk.turn(`[[error -32603 ${canary('agent error')}]]`);
      expect(failed.data.stopReason).toBe('failed');
      await talk.turn(`[[say bye]][[stderr ${canary('last words')}]][[exit 3]]`);

      const silent = await stage.talk(
        await stage.scripted({ initializeError: { code: -32603, message: canary('start error') } }),
      );
      await silent.turn(canary('prompt of a failed start'));
      const gone = await stage.talk(await stage.scripted({ protocolVersion: canary('version') }));
      await gone.turn('hello');

      const { conversationId } = talk;
      await client.change('conversation.rename', { conversationId, title: canary('title') });
      await client.change('view.set', { conversationId, state: JSON.stringify({ draft: canary('draft') }) });
      await client.call('conversation.search', { query: canary('query') });
      await client.call('files.read', { workspaceId, path: 'notes.txt' });
      await client.change('files.reveal', { workspaceId, path: '.env' });
      await client.call('files.search', { workspaceId, query: canary('file query') });
      const quietly = (work: Promise<unknown>): Promise<unknown> => work.catch(() => undefined);
      await quietly(client.call('files.read', { workspaceId, path: canary('missing path') }));
      await quietly(client.call('files.read', { workspaceId, path: `../${canary('outside path')}` }));
      await quietly(client.change('workspace.open', { path: `/${canary('workspace path')}` }));
      await quietly(client.change('workspace.create', { parent: `/${canary('parent')}`, name: canary('folder') }));
      await quietly(
        client.change('agent.add', {
          title: canary('agent title'),
          command: canary('command'),
          args: [canary('argument')],
          env: [],
        }),
      );
      await quietly(client.call('conversation.get', { conversationId: canary('conversation id') }));
      await quietly(client.change('bridge.revoke', { sessionId: canary('session') }));

      const token = new URL(launchUrl).hash.slice('#launch='.length);
      const ask = (path: string, init: RequestInit = {}) => quietly(fetch(`${origin}${path}`, init));
      await ask('/launch', {
        method: 'POST',
        headers: { Origin: origin, 'Content-Type': 'application/json' },
        body: JSON.stringify({ token: canary('token'), publicKey: canary('key') }),
      });
      await ask(`/b/${canary('segment').slice(0, 22)}/session`, { headers: { Cookie: `cs=${canary('cookie')}` } });
      await ask(`/${canary('route')}?${canary('query string')}`);
      await ask('/', { method: 'POST', headers: { Origin: `http://${canary('origin')}` }, body: canary('body') });
      await ask('/up', { headers: { 'User-Agent': canary('user agent'), Referer: `http://${canary('referrer')}/` } });

      await stage.bridge.stop();
      const planted = [...secrets, ['launch token', token] as const];
      expect(planted.length).toBeGreaterThanOrEqual(40);
      expect(stage.bridge.log.split('\n').length).toBeGreaterThan(20);
      const found = planted.filter(([, secret]) => stage.bridge.log.includes(secret.slice(0, 22)));
      expect(found.map(([name]) => name)).toEqual([]);
    } finally {
      await stage.end();
    }
  });
});
