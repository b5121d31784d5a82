import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TerminalInfo } from '#protocol/methods/terminal.ts';
import { startTimeOf } from '../../bridge/agents/procfs.ts';
import { Bridge, temporary } from '../bridge/process.ts';
import { until } from '../bridge/stage.ts';
import { App, type Socket } from './bridge.ts';
import { size } from './parts.ts';

/** The number a shell printed behind `word`, as a process that can be looked for later. */
const processOf = (text: string, word: string): { pid: number; startTime: string | null } => {
  const pid = Number(new RegExp(`${word}=(\\d+)`).exec(text)?.[1]);
  return { pid, startTime: startTimeOf(pid) };
};
/** A zombie that nobody took note of yet is dead. */
const isAlive = ({ pid, startTime }: { pid: number; startTime: string | null }): boolean =>
  startTime !== null && startTimeOf(pid) === startTime && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));

describe('terminals of a whole bridge', () => {
  const state = temporary('terminals');
  const bridge = new Bridge(state.path);
  let app: App;
  let workspaceId: string;
  beforeAll(async () => {
    await bridge.start();
    app = await App.open(bridge);
    const { workspaces } = (await app.call('workspace.list')) as { workspaces: { workspaceId: string }[] };
    workspaceId = workspaces[0]?.workspaceId ?? '';
  });
  afterAll(async () => {
    app.end();
    await bridge.stop();
    state.remove();
  });

  const list = async (): Promise<TerminalInfo[]> => (await app.call('terminal.list'))['terminals'] as TerminalInfo[];
  const open = async (): Promise<{ terminalId: string; page: Socket }> => {
    const { terminalId } = (await app.change('terminal.open', { workspaceId, size })) as { terminalId: string };
    return { terminalId, page: await app.socket(terminalId, size) };
  };
  /** A child that would outlive its shell if it could. */
  const child = async (page: Socket): Promise<ReturnType<typeof processOf>> => {
    page.type(`setsid sh -c 'trap "" HUP TERM; echo child=$$; exec sleep 1000' &\r`);
    await page.until(/child=\d+\r/);
    return processOf(page.text, 'child');
  };

  it('run behind the app’s socket, while the bridge holds no pseudo-terminal (T71)', async () => {
    const { page } = await open();
    page.type('echo $((6 * 7))-is-it\r');
    await page.until(/42-is-it/);
    expect(page.frames[0]).toEqual({ type: 'replay', size, owner: true, bytes: expect.any(Number) as number });
    const targets = readdirSync(`/proc/${bridge.ready.pid}/fd`).flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/${bridge.ready.pid}/fd/${fd}`)];
      } catch {
        return []; // closed meanwhile
      }
    });
    expect(targets.length).toBeGreaterThan(3);
    expect(targets.filter((target) => /ptmx|\/pts\//.test(target))).toEqual([]);
  });

  it('are beyond the reach of the control socket, whoever speaks on it (T75)', async () => {
    const control = await bridge.client();
    const [known] = await list();
    const terminalId = known?.terminalId ?? '';
    for (const asked of [
      () => control.call('terminal.list', {}),
      () => control.change('terminal.open', { workspaceId, size }),
      () => control.change('terminal.close', { terminalId }),
      () => control.change('terminal.rename', { terminalId, title: 'x' }),
      () => control.call('ticket.create', { path: `terminal/${terminalId}` }),
    ])
      await expect(asked()).rejects.toMatchObject({ code: 'forbidden' });
    expect((await list()).map((info) => info.title)).not.toContain('x');
  });

  it('refuse what does not exist, and a folder that is none of the workspace', async () => {
    await expect(app.change('terminal.close', { terminalId: randomUUID() })).rejects.toThrow('terminal_gone');
    await expect(app.change('terminal.open', { workspaceId, size, cwd: '../..' })).rejects.toThrow('invalid_path');
    const page = await app.socket(randomUUID(), size);
    expect(await page.ended).toBe(1000);
  });

  it('end with their workspace, with everything under them', async () => {
    const { terminalId, page } = await open();
    const under = await child(page);
    expect(isAlive(under)).toBe(true);
    await app.change('workspace.close', { workspaceId, force: true });
    expect(await page.ended).toBe(1000);
    expect(page.frames.at(-1)?.type).toBe('ended');
    expect(isAlive(under)).toBe(false);
    expect((await list()).find((info) => info.terminalId === terminalId)?.ended?.by).toBe('operator');
    expect((await list()).filter(({ ended }) => ended === null)).toEqual([]);
  });

  it('end with a killed bridge; the next one says so (T76)', async () => {
    const { terminalId, page } = await open();
    const under = await child(page);
    await bridge.kill();
    await page.ended;
    await until('the host to end what ran under it', () => !isAlive(under));
    await bridge.start();
    app = await App.open(bridge);
    expect((await list()).find((info) => info.terminalId === terminalId)?.ended).toMatchObject({
      by: 'bridge',
      code: null,
    });
    const gone = await app.socket(terminalId, size);
    expect(await gone.ended).toBe(1000);
  });

  it('are swept by the next bridge where their hosts were killed as well (T77)', async () => {
    const { page } = await open();
    const under = await child(page);
    page.type('echo host=$PPID;\r');
    await page.until(/host=\d+/);
    process.kill(processOf(page.text, 'host').pid, 'SIGSTOP'); // it cannot clean up
    await bridge.kill();
    process.kill(processOf(page.text, 'host').pid, 'SIGKILL');
    expect(isAlive(under)).toBe(true);
    await bridge.start();
    expect(isAlive(under)).toBe(false);
    app = await App.open(bridge);
  });

  it('end with an orderly stop, before the bridge does', async () => {
    const { terminalId, page } = await open();
    const under = await child(page);
    await bridge.stop();
    expect(await page.ended).toBe(1001);
    expect(isAlive(under)).toBe(false);
    await bridge.start();
    app = await App.open(bridge);
    expect((await list()).find((info) => info.terminalId === terminalId)?.ended?.by).toBe('bridge');
  });
});
