import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readlinkSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { marked } from '../../bridge/agents/procfs.ts';
import { Ground, Page, size, stateOf, workspaceId } from './parts.ts';

const fdsOf = (pid: number | 'self'): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return []; // the descriptor of the listing
    }
  });
/** Number and target of each descriptor of a child. */
const listFds = "ls -l /proc/self/fd > fds; awk '/->/ {print $9, $11}' fds";

describe('terminals', () => {
  const ground = new Ground();
  beforeAll(async () => void (await ground.start()));
  afterEach(() => ground.terminals.closeAll());
  afterAll(() => ground.end());
  const markers = (): string[] => [...ground.processes.keys()];

  /** Types a command and returns what it printed. */
  let told = 0;
  const ask = async (page: Page, command: string): Promise<string> => {
    told += 1;
    const mark = `mark-${told}-`;
    page.type(`${command}; printf '%s%s\\n' '${mark}' end\r`);
    await page.until(() => page.text().includes(`${mark}end`));
    const text = page.text();
    const until = text.indexOf(`${mark}end`);
    // Behind the echo of the command itself.
    return text.slice(text.lastIndexOf("' end", until) + 5, until).trim();
  };

  it('runs the operator’s shell in the folder, with its own environment and nothing that looks secret (P-01)', async () => {
    await ground.end();
    process.env['NOT_LISTED'] = 'x';
    await ground.start({
      env: {
        ...{ PATH: process.env['PATH'], HOME: '/root', SHELL: '/bin/bash', LC_ALL: 'C.UTF-8', EDITOR: 'vim' },
        ...{
          OPENAI_API_KEY: 'sk-not-to-be-seen',
          NVM_AUTH_TOKEN: 'nor-this',
          PRIVATE: 'unlisted',
          COUNTERSIGN_RUN: 'no',
        },
      },
    });
    mkdirSync(join(ground.directory, 'sub'));
    const { page } = await ground.page('sub');
    expect(await ask(page, 'pwd')).toBe(join(ground.directory, 'sub'));
    const env = await ask(page, 'env | cut -d= -f1 | sort | tr "\\n" " "');
    expect(env).toContain('COLORTERM ');
    expect(env).toContain('EDITOR ');
    expect(env).not.toMatch(/KEY|TOKEN|PRIVATE|NOT_LISTED|COUNTERSIGN_RUN|NODE/);
    expect(await ask(page, 'echo $TERM:$HOME:$PWD; tty; stty size')).toMatch(
      new RegExp(`^xterm-256color:/root:${ground.directory}/sub\\s+/dev/pts/\\d+\\s+24 80$`),
    );
  });

  it('gives a child the descriptors 0 to 2 and no others (T70)', async () => {
    const { page } = await ground.page();
    // The fourth is the listing itself.
    expect(await ask(page, listFds)).toMatch(
      /^0 \/dev\/pts\/\d+\s+1 \/\S+\/fds\s+2 \/dev\/pts\/\d+\s+3 \/proc\/\d+\/fd$/,
    );
  });

  it('never holds the master of a pseudo-terminal in the bridge (T71)', async () => {
    const { page } = await ground.page();
    expect(fdsOf('self').filter((target) => target.includes('ptmx'))).toEqual([]);
    const [marker = ''] = markers();
    const host = ground.processes.get(marker)?.pid ?? 0;
    expect(fdsOf(host).filter((target) => target.includes('ptmx'))).toHaveLength(1);
    // What the bridge starts meanwhile can reach no terminal.
    const child = execFileSync('/bin/sh', ['-c', listFds], { encoding: 'utf8', cwd: ground.directory });
    expect(child).toMatch(/^0 \S+\s+1 \S+\/fds\s+2 \S+\s+3 \/proc\/\d+\/fd\s*$/);
    expect(child).not.toMatch(/pts|ptmx/);
    expect(await ask(page, 'echo alive')).toBe('alive');
  });

  it('begins in the very directory that was asked for, or not at all', async () => {
    mkdirSync(join(ground.directory, 'here'));
    mkdirSync(join(ground.directory, 'there'));
    symlinkSync('/etc', join(ground.directory, 'link'));
    writeFileSync(join(ground.directory, 'file'), '');
    const open = (cwd: string): Promise<unknown> => ground.terminals.open({ workspaceId, cwd, size });
    await expect(open('link')).rejects.toMatchObject({ code: 'symlink_refused' });
    await expect(open('../outside')).rejects.toMatchObject({ code: 'invalid_path' });
    await expect(open('missing')).rejects.toMatchObject({ code: 'not_found' });
    await expect(open('file')).rejects.toMatchObject({ code: 'not_a_directory' });
    const swapped = ground.room({
      root: () => ({
        directory: (path) => {
          const found = ground.root.directory(path);
          renameSync(join(ground.directory, 'here'), join(ground.directory, 'gone'));
          renameSync(join(ground.directory, 'there'), join(ground.directory, 'here'));
          return found;
        },
      }),
    });
    await expect(swapped.open({ workspaceId, cwd: 'here', size })).rejects.toMatchObject({ code: 'workspace_changed' });
    expect(ground.processes.size).toBe(0);
    expect(ground.terminals.list().filter(({ cwd }) => cwd === 'here')).toEqual([]);
  });

  it('opens as many as allowed, and no more while they run', async () => {
    const all = await Promise.all(Array.from({ length: limits.terminals }, () => ground.open()));
    await expect(ground.open()).rejects.toMatchObject({ code: 'terminal_limit' });
    await ground.terminals.close(all[0] ?? '');
    await ground.open();
    expect(ground.terminals.list().filter(({ ended }) => ended === null)).toHaveLength(limits.terminals);
  });

  it('says that it is absent where no shell is found, and opens nothing', async () => {
    // /bin/bash and /bin/sh exist here, so the host is what fails.
    const broken = ground.room({ nodePath: '/nonexistent/node' });
    await expect(broken.open({ workspaceId, size })).rejects.toMatchObject({ code: 'unsupported_capability' });
    expect(ground.terminals.absent).toBe(null);
    expect(ground.processes.size).toBe(0);
  });

  it('ends everything under the shell before it says so, what hides in sessions of its own as well (T78)', async () => {
    const { terminalId, page } = await ground.page();
    await ask(
      page,
      "trap '' HUP TERM; setsid sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 & (trap '' HUP; sleep 1000) & true",
    );
    const [marker = ''] = markers();
    const under = marked(marker);
    expect(under.length).toBeGreaterThanOrEqual(4);
    await ground.terminals.close(terminalId);
    expect(marked(marker)).toEqual([]);
    expect(ground.processes.size).toBe(0);
    expect(ground.terminals.list().find((info) => info.terminalId === terminalId)?.ended).toMatchObject({
      by: 'operator',
    });
    // Ended ones leave the list when they are closed again.
    await ground.terminals.close(terminalId);
    await expect(ground.terminals.close(terminalId)).rejects.toMatchObject({ code: 'terminal_gone' });
    expect(ground.terminals.list().some((info) => info.terminalId === terminalId)).toBe(false);
  });

  it('ends what was still being opened as well', async () => {
    const opening = ground.open();
    await ground.terminals.closeAll(workspaceId);
    const terminalId = await opening;
    expect(ground.terminals.list().find((info) => info.terminalId === terminalId)?.ended).toMatchObject({
      by: 'operator',
    });
    expect(ground.processes.size).toBe(0);
  });

  it('lets the shell write its history before it goes', async () => {
    await ground.end();
    await ground.start();
    const { terminalId, page } = await ground.page();
    await ask(page, 'echo remembered');
    await ground.terminals.close(terminalId);
    const { page: next } = await ground.page();
    expect(await ask(next, 'grep -c "^echo remembered" ~/.bash_history')).toMatch(/(?:^|\n)1$/);
  });

  it('tells how the shell ended, and leaves nothing behind it', async () => {
    const { terminalId, page } = await ground.page();
    const [marker = ''] = markers();
    page.type('setsid sleep 1000 & kill -KILL $$\r');
    await page.until(() => page.closed !== null);
    expect(page.frames.at(-1)).toEqual({ type: 'ended', code: null, signal: 'SIGKILL' });
    expect(page.closed).toBe('gone');
    expect(marked(marker)).toEqual([]);
    expect(ground.terminals.list().at(-1)).toMatchObject({
      terminalId,
      ended: { by: 'itself', code: null, signal: 'SIGKILL' },
    });
    expect(
      await ground.terminals.attach(terminalId, size, {
        frame: () => undefined,
        bytes: () => undefined,
        close: () => undefined,
      }),
    ).toBe(null);
  });

  it('ends alone when its host falls, with everything under it', async () => {
    const [one, two] = [await ground.page(), await ground.page()];
    await ask(one.page, 'setsid sleep 1000 & true');
    const [marker = ''] = markers();
    process.kill(ground.processes.get(marker)?.pid ?? 0, 'SIGKILL');
    await one.page.until(() => one.page.closed !== null);
    expect(one.page.frames.at(-1)).toEqual({ type: 'ended', code: null, signal: null });
    expect(marked(marker)).toEqual([]);
    expect(await ask(two.page, 'echo still')).toBe('still');
  });

  it('leaves no process and no descriptor behind 50 openings (T79)', { timeout: 180_000 }, async () => {
    const before = fdsOf('self').length;
    const used: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const all = await Promise.all(Array.from({ length: 5 }, () => ground.open()));
      used.push(...markers());
      await Promise.all(all.map((terminalId) => ground.terminals.close(terminalId)));
    }
    expect(used).toHaveLength(50);
    expect(used.flatMap((marker) => marked(marker))).toEqual([]);
    expect(ground.processes.size).toBe(0);
    expect(fdsOf('self').length).toBeLessThanOrEqual(before);
    expect(ground.terminals.list().length).toBeLessThanOrEqual(limits.terminalsListed);
  });

  it('says after a restart what ended with the bridge before it', async () => {
    const { terminalId, page } = await ground.page();
    ground.terminals.rename(terminalId, 'server');
    await ask(page, 'true');
    const next = ground.room({ now: () => 42 });
    expect(next.list().find((info) => info.terminalId === terminalId)?.ended).toEqual({
      ...{ at: 42, code: null, signal: null, by: 'bridge' },
    });
    await ground.terminals.closeAll();
    expect(
      ground
        .room()
        .list()
        .find((info) => info.terminalId === terminalId)?.ended,
    ).toMatchObject({ by: 'bridge' });
  });

  it('keeps the name the operator gave above the one a program sets, and makes both inert', async () => {
    const { terminalId, page } = await ground.page();
    page.type("printf '\\033]0;evil\\xe2\\x80\\xaetitle\\tx%0300d\\007' 1\r");
    await page.until(() => page.frames.some(({ type }) => type === 'title'));
    const info = (): string => ground.terminals.list().find((each) => each.terminalId === terminalId)?.title ?? '';
    expect(info()).toMatch(/^evil titlex0+ …$/);
    expect(info().length).toBeLessThanOrEqual(limits.terminalTitleUnits);
    expect(ground.terminals.rename(terminalId, 'mine').title).toBe('mine');
    page.type("printf '\\033]0;other\\007'\r");
    await sleep(limits.terminalTitleMs * 3);
    expect(info()).toBe('mine');
    expect(() => ground.terminals.rename('nothing', 'x')).toThrow('does not exist any more');
  });
});

describe('pages of a terminal', () => {
  const ground = new Ground();
  beforeAll(async () => void (await ground.start()));
  afterAll(() => ground.end());
  let terminalId: string;
  let page: Page;
  beforeEach(async () => void ({ terminalId, page } = await ground.page()));
  afterEach(() => ground.terminals.closeAll());
  const another = (at = size): Promise<Page> => new Page(at).attach(ground.terminals, terminalId, at);

  it('draw the same, whenever they came (case 59)', async () => {
    page.type('printf \'%065535d😀\\n\' 0; for i in $(seq 3000); do echo "café — 🎉 完了 $i"; done\r');
    const late: Page[] = [];
    for (let round = 0; round < 6; round += 1) {
      late.push(await another());
      await sleep(40);
    }
    await page.until(() => page.text().includes('完了 3000'));
    for (const one of [page, ...late]) await one.still();
    for (const one of late) expect(stateOf(one.core)).toEqual(stateOf(page.core));
    expect(page.text()).not.toContain('\ufffd');
  });

  it('agree on one owner of the size, which passes on', async () => {
    const second = await another({ columns: 120, rows: 40 });
    await second.until(() => second.frames.length > 0);
    expect(page.frames[0]).toMatchObject({ type: 'replay', owner: true, size });
    expect(second.frames[0]).toMatchObject({ type: 'replay', owner: false, size });
    second.attachment?.resize({ columns: 20, rows: 10 });
    page.attachment?.resize({ columns: 90, rows: 30 });
    await second.until(() => second.frames.some(({ type }) => type === 'size'));
    expect(second.frames.at(-1)).toEqual({ type: 'size', size: { columns: 90, rows: 30 }, owner: false });
    second.attachment?.own();
    await page.until(() => page.frames.filter(({ type }) => type === 'size').length === 2);
    expect(page.frames.at(-1)).toEqual({ type: 'size', size: { columns: 20, rows: 10 }, owner: false });
    second.type('stty size\r');
    await second.until(() => second.text().includes('10 20'));
    second.attachment?.detach();
    await page.until(() => page.frames.at(-1)?.type === 'size');
    page.type('stty size\r');
    await page.until(() => page.text().includes('30 90'));
    expect(ground.terminals.list().find((info) => info.ended === null)?.size).toEqual({ columns: 90, rows: 30 });
  });

  it('make the program wait for their owner, and cut off one that falls behind', async () => {
    const second = await another();
    second.isAcking = false;
    page.isAcking = false;
    page.type('head -c 12000000 /dev/zero | tr "\\0" "x"; echo all-of-it\r');
    await page.until(() => page.bytes > limits.terminalWindowBytes);
    await page.still();
    // A window, and what was on its way when it was full.
    expect(page.bytes).toBeLessThan(limits.terminalWindowBytes * 3);
    page.isAcking = true;
    page.attachment?.ack(page.bytes);
    await second.until(() => second.closed !== null);
    expect(second.closed).toBe('slow');
    expect(second.bytes).toBeLessThan(limits.tailBytes * 1.5);
    await page.until(() => page.text().includes('\nall-of-it'));
    expect(page.bytes).toBeGreaterThan(12_000_000);
  });

  it('need not be there: the program goes on, and its screen is kept', async () => {
    page.type('sleep 0.3; seq 200000; echo all-of-it\r');
    page.attachment?.detach();
    const late = await another();
    late.attachment?.detach();
    for (let tries = 0; ; tries += 1) {
      const next = await another();
      await next.until(() => next.frames.length > 0);
      await next.still();
      next.attachment?.detach();
      if (next.text().includes('\nall-of-it')) {
        expect(next.text()).toContain('\n200000\nall-of-it');
        break;
      }
    }
  });

  it('never answer what a replay draws, and answer what is asked live (T73)', async () => {
    page.type("printf '\\033[c\\033[6n'; cat -v\r");
    await page.until(() => page.answers !== '');
    expect(page.answers).toMatch(/^\x1b\[\?1;2c\x1b\[\d+;\d+R$/);
    const late = await another();
    await late.until(() => late.frames.length > 0);
    await late.still();
    expect(late.answers).toBe('');
  });

  it.runIf(existsSync('/usr/bin/vim'))('show vim as it is after a reload, a resize, and again', async () => {
    writeFileSync(join(ground.directory, 'text'), Array.from({ length: 200 }, (_, at) => `line ${at} 完`).join('\n'));
    page.core.onData((answer) => page.type(answer));
    page.type('vim -u NONE -N --cmd "set ruler nomore" text\r');
    await page.until(() => page.text().includes('line 5'));
    page.type('50Gzt');
    await page.until(() => page.text().includes('line 60'));
    await page.still();
    const late = await another();
    await late.until(() => late.frames.length > 0);
    await late.still();
    expect(stateOf(late.core)).toEqual(stateOf(page.core));
    expect(late.core.buffer.active.type).toBe('alternate');
    page.attachment?.detach();
    late.core.resize(100, 40);
    late.attachment?.resize({ columns: 100, rows: 40 });
    late.attachment?.own();
    late.type('\x0c');
    await late.until(() => late.text().includes('line 80'));
    late.type('ihello\x1b');
    await late.until(() => late.text().includes('helloline 49'));
    await late.still();
    const third = await another({ columns: 100, rows: 40 });
    await third.until(() => third.frames.length > 0);
    await third.still();
    expect(stateOf(third.core)).toEqual(stateOf(late.core));
    late.type(':q!\r');
    await late.until(() => late.core.buffer.active.type === 'normal');
    await late.still();
    // Nothing came that was not typed: the prompt is bare.
    expect(late.text()).toMatch(/[$#]$/);
  });

  it.runIf(existsSync('/usr/bin/htop'))('show htop as it is after a reload and a resize', async () => {
    page.core.onData((answer) => page.type(answer));
    page.type('htop -d 100\r');
    await page.until(() => page.text().includes('F10'));
    await page.still();
    const late = await another();
    await late.until(() => late.text().includes('F10'));
    await late.still();
    expect(stateOf(late.core)).toEqual(stateOf(page.core));
    page.attachment?.resize({ columns: 120, rows: 30 });
    page.core.resize(120, 30);
    await late.until(
      () => late.core.cols === 120 && /F10/.test(late.core.buffer.active.getLine(29)?.translateToString(true) ?? ''),
    );
    page.type('q');
    await page.until(() => page.core.buffer.active.type === 'normal');
    await page.still();
    expect(page.text()).toMatch(/[$#]$/);
  });
});
