import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stateDirectories } from '../../bridge/ledger/paths.ts';
import type { Plan, Report } from './attacker.ts';
import { isAlive, main } from './process.ts';
import { Stage, type Asked, type Talk } from './stage.ts';

const program = fileURLToPath(new URL('attacker.ts', import.meta.url));
const ways = [
  ['held by bubblewrap', 'bubblewrap', () => new Stage()],
  ['best effort', 'best_effort', () => new Stage({}, 'best_effort')],
] as const;

describe.each(ways)('an agent that turns on the bridge (T25, L-34), %s', (_name, containment, make) => {
  const stage = make();
  let report: Report;
  let pending: { talk: Talk; asked: Asked };
  let secrets: Record<string, string>;

  /** A signed-in browser, whose cookie and base path must stay its own. */
  const signIn = async (): Promise<Record<string, string>> => {
    const { origin, launchUrl } = stage.bridge.ready;
    const token = new URL(launchUrl).hash.slice('#launch='.length);
    const publicKey = generateKeyPairSync('ed25519')
      .publicKey.export({ format: 'der', type: 'spki' })
      .toString('base64url');
    const answer = await fetch(`${origin}/launch`, {
      method: 'POST',
      headers: { Origin: origin, 'Content-Type': 'application/json' },
      body: JSON.stringify({ token, publicKey }),
    });
    expect(answer.status).toBe(200);
    const { base } = (await answer.json()) as { base: string };
    const cookie = answer.headers.getSetCookie()[0]?.split(';')[0]?.slice('cs='.length) ?? '';
    expect(cookie.length).toBeGreaterThan(40);
    const unused = await (await stage.bridge.client()).call('bridge.launch', {});
    return {
      token,
      cookie,
      segment: base.split('/')[2] ?? '',
      unused: new URL(unused.launchUrl).hash.slice('#launch='.length),
    };
  };

  beforeAll(async () => {
    await stage.start();
    secrets = await signIn();
    const agentId = await stage.scripted();
    const talk = await stage.talk(agentId);
    await talk.send('[[permission victim]]');
    const [asked] = await talk.asked();
    if (asked === undefined) throw new Error('unreachable');
    pending = { talk, asked };

    const attack = await stage.talk(agentId);
    const plan: Plan = {
      directories: stateDirectories(stage.bridge.state),
      origin: stage.bridge.ready.origin,
      pid: stage.bridge.ready.pid,
      main,
      approval: { approvalId: asked.data.approvalId, digest: asked.data.digest },
      report: join(stage.workspace, 'report.json'),
      guesses: 2000,
    };
    const file = join(stage.workspace, 'plan.json');
    writeFileSync(file, JSON.stringify(plan));
    const { turnId } = await attack.send(`[[shell ${process.execPath} ${program} ${file}]]`);
    const [shell] = await attack.asked();
    if (shell === undefined) throw new Error('unreachable');
    await attack.decide(shell, 'allow');
    await attack.ended(turnId);
    expect((await attack.summary()).containment).toBe(containment);
    const output = attack
      .all('tool.updated')
      .map(({ data }) => JSON.stringify(data))
      .join('\n');
    report = JSON.parse(readFileSync(plan.report, 'utf8') || output) as Report;
  });
  afterAll(() => stage.end());

  it('reads nothing of the private and runtime directories where it is contained', () => {
    if (containment === 'bubblewrap') expect(report.files).toEqual([]);
    else expect(report.files.length).toBeGreaterThan(0); // said aloud: the chip, each receipt and THREATS name it not contained
  });

  it('the control socket is out of reach, or answers forbidden to the marker (L-35)', () => {
    if (containment === 'bubblewrap') {
      expect(report.socket).toBe('ENOENT');
      expect(Object.keys(report.control)).toEqual(['connect']);
      return;
    }
    expect(report.socket).toBe('connected');
    // The client of the command line is honest about its pid, and is let do nothing at all.
    expect(Object.keys(report.control)).toEqual(['connect']);
    expect(report.claims.honest).toContain('"code":"forbidden"');
    for (const [claim, heard] of Object.entries(report.claims)) {
      expect(heard, claim).toContain('"code":"forbidden"');
      expect(heard, claim).not.toMatch(/"kind":"result","id":[23]\b/);
      expect(heard, claim).not.toContain('launch=');
    }
  });

  it('the command line decides, opens, revokes and stops nothing from inside', async () => {
    for (const [verb, ran] of Object.entries(report.cli)) {
      expect(ran.code, `${verb}: ${ran.stdout}${ran.stderr}`).not.toBe(0);
      expect(ran.stdout).toBe('');
    }
    expect(isAlive(stage.bridge.ready.pid)).toBe(true);
    const { approvalId } = pending.asked.data;
    expect((await pending.talk.client.call('approval.get', { approvalId })).status).toEqual({ state: 'pending' });
    expect((await pending.talk.client.call('bridge.sessions', {})).sessions).toHaveLength(1);
  });

  it('HTTP gives it /up and the shell, 2,000 guesses of the base path and 40 of a launch token nothing', () => {
    const { 'GET /up': up, ...rest } = report.http;
    expect(up).toBe(204);
    for (const [what, status] of Object.entries(rest)) expect(status, what).toBeGreaterThanOrEqual(400);
    expect(report.statuses).toHaveLength(2040);
    expect([...new Set(report.statuses)].filter((status) => status < 400)).toEqual([]);
  });

  it('finds no token, cookie or segment in what it hears, its environment, arguments and files', () => {
    for (const [name, secret] of Object.entries(secrets)) {
      expect(secret.length, name).toBeGreaterThan(20);
      expect(report.heard.includes(secret), `${name} over HTTP`).toBe(false);
      expect(report.processes.includes(secret), `${name} in a process`).toBe(false);
      expect(JSON.stringify(report.cli).includes(secret), `${name} from the CLI`).toBe(false);
    }
    expect(report.processes).not.toContain('PRIVATE KEY');
  });

  it('holds descriptors 0 to 2 alone, and they are pipes (T70)', () => {
    const [held] = Object.values(report.descriptors);
    const numbers = held?.map((each) => Number(each.split(' ')[0])).sort((a, b) => a - b) ?? [];
    expect(numbers.slice(0, 3)).toEqual([0, 1, 2]);
    // Beyond these a Node program opens its own: event queue, wake-ups. Nothing of them has a place outside it.
    const foreign = held?.filter((each) => !/^\d+ (?:pipe:|socket:|anon_inode:|\/dev\/null|\/proc\/)/.test(each));
    expect(foreign).toEqual([]);
  });
});
