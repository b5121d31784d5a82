/** Rows 10 and 11: from the agent's write to the words on the page, in one tab and in four, slow and fast. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from '@playwright/test';
import type { Bridge } from '../bridge/process.ts';
import { openCold, paintedAt } from './browser.ts';
import { chunkTimes, delays, watchChunks } from './chunks.ts';
import { serveStream } from './floors.ts';
import { launchAt, root, type Ground } from './ground.ts';
import { atMost, figure, quantile, type Row } from './measure.ts';
import { seed } from './seed.ts';

const composer = { selector: 'textarea:not([disabled])' } as const;

export interface AgentGround {
  readonly bridge: Bridge;
  readonly agentId: string;
  readonly workspaceId: string;
  /** A conversation of 2,000 messages with the agent of the bench. */
  readonly longId: string;
  /** What the agent wrote down at the end of its last turn. */
  times(): Promise<number[]>;
  create(): Promise<string>;
  prompt(conversationId: string, task: object): Promise<void>;
}

/** A bridge with the agent of the bench set up, stopped once to be seeded with a conversation of that agent. */
export const agentGround = async (ground: Ground, name: string): Promise<AgentGround> => {
  const log = join(ground.path(`${name}-log`), 'times.json');
  const { bridge } = await ground.bridge(name);
  const added = await (
    await bridge.client()
  ).change('agent.add', {
    title: 'Bench agent',
    command: process.execPath,
    args: [join(root, 'tests', 'bench', 'agent.ts')],
    env: [{ name: 'BENCH_LOG', value: log }],
  });
  const { agentId } = added;
  await bridge.stop();
  const [long] = await seed(bridge.state, ground.path(`${name}-work`), [
    { messages: 2000, agent: { agentId, title: 'Bench agent' } },
  ]);
  if (long === undefined) throw new Error('nothing was seeded');
  await bridge.start();
  const client = await bridge.client();
  return {
    bridge,
    agentId,
    workspaceId: long.workspaceId,
    longId: long.conversationId,
    create: async () =>
      (await client.change('conversation.create', { workspaceId: long.workspaceId, agentId, acceptUnrestricted: true }))
        .conversationId,
    prompt: async (conversationId, task) => {
      rmSync(log, { force: true });
      await client.change('conversation.send', {
        conversationId,
        delivery: 'prompt',
        content: [{ type: 'text', text: JSON.stringify(task) }],
      });
    },
    times: async () => {
      for (let tries = 0; tries < 1200; tries += 1) {
        if (existsSync(log)) return JSON.parse(readFileSync(log, 'utf8')) as number[];
        await sleep(50);
      }
      throw new Error('the agent did not end its turn');
    },
  };
};

interface Delays {
  readonly dom: readonly number[];
  readonly painted: readonly number[];
}
const p50p95 = (one: readonly number[]): string =>
  `${quantile(one, 0.5).toFixed(1)} / ${quantile(one, 0.95).toFixed(1)}`;

/** Streams once into the given pages and gathers what all of them saw. */
const streamInto = async (
  pages: readonly Page[],
  count: number,
  from: number,
  run: () => Promise<readonly number[]>,
): Promise<Delays> => {
  for (const page of pages) await watchChunks(page, from);
  const sent = await run();
  const dom: number[] = [];
  const painted: number[] = [];
  for (const page of pages) {
    const times = await chunkTimes(page, count);
    dom.push(...delays(sent, times.dom));
    painted.push(...delays(sent, times.painted));
  }
  return { dom, painted };
};

interface Scene {
  readonly count: number;
  readonly everyMs: number;
  readonly tabs: number;
  readonly runs: number;
}

const floorOf = async (ground: Ground, scene: Scene): Promise<Delays[]> => {
  const browser = await ground.browser();
  const bare = await serveStream();
  const measured: Delays[] = [];
  try {
    for (let run = 0; run < scene.runs; run += 1) {
      const first = await openCold(browser, bare.origin, { selector: '[data-row]' });
      const pages = [first.page];
      while (pages.length < scene.tabs) {
        const page = await first.context.newPage();
        await page.goto(bare.origin);
        pages.push(page);
      }
      await first.page.waitForTimeout(300);
      measured.push(await streamInto(pages, scene.count, 0, () => bare.stream(scene.count, scene.everyMs)));
      await first.context.close();
    }
  } finally {
    bare.close();
  }
  return measured;
};

const oursOf = async (ground: Ground, agent: AgentGround, scene: Scene, conversationId?: string): Promise<Delays[]> => {
  const browser = await ground.browser();
  const measured: Delays[] = [];
  for (let run = 0; run < scene.runs; run += 1) {
    const id = conversationId ?? (await agent.create());
    const first = await openCold(browser, await launchAt(agent.bridge, `/c/${id}`), composer);
    const pages = [first.page];
    while (pages.length < scene.tabs) {
      const page = await first.context.newPage();
      await page.goto(`${agent.bridge.ready.origin}/c/${id}`, { waitUntil: 'commit' });
      await paintedAt(page);
      pages.push(page);
    }
    // The agent starts with its first turn; that is not what is measured here.
    if (run === 0 || conversationId === undefined) {
      await agent.prompt(id, { stream: 1, everyMs: 1 });
      await agent.times();
    }
    await first.page.waitForTimeout(1500);
    measured.push(
      await streamInto(pages, scene.count, (run + 1) * 10_000, async () => {
        await agent.prompt(id, { stream: scene.count, everyMs: scene.everyMs, from: (run + 1) * 10_000 });
        return agent.times();
      }),
    );
    await first.context.close();
    if (conversationId === undefined)
      await (await agent.bridge.client()).change('conversation.close', { conversationId: id });
  }
  return measured;
};

/** Two rows of one scene: in the document, and on the screen. `most` are the spec's p50 and p95. */
const judge = (
  row: string,
  what: string,
  floors: readonly Delays[],
  ours: readonly Delays[],
  part: number,
  most: number,
): Row[] => {
  const of = (all: readonly Delays[], kind: keyof Delays) => figure(all.map((one) => quantile(one[kind], part)));
  const name = row === '10' ? 'stream' : 'tabs';
  const all = (kind: keyof Delays): string =>
    `p50/p95 ${p50p95(ours.flatMap((one) => one[kind]))}, floor ${p50p95(floors.flatMap((one) => one[kind]))}`;
  return [
    atMost(
      {
        row,
        name,
        what: `${what} p${part * 100} → in the page`,
        unit: 'ms',
        floor: of(floors, 'dom'),
        ours: of(ours, 'dom'),
        note: all('dom'),
      },
      most,
    ),
    {
      row,
      name,
      what: `${what} p${part * 100} → frame painted`,
      unit: 'ms',
      floor: of(floors, 'painted'),
      ours: of(ours, 'painted'),
      target: '≤ 1.3× floor',
      pass: of(ours, 'painted').value <= 1.3 * of(floors, 'painted').value,
      note: all('painted'),
    },
  ];
};

export const streamRows = async (ground: Ground): Promise<Row[]> => {
  const agent = await agentGround(ground, 'stream');
  const scene = { count: 100, everyMs: 20, tabs: 1, runs: 5 };
  const floors = await floorOf(ground, scene);
  const ours = await oursOf(ground, agent, scene);
  const long = await oursOf(ground, agent, scene, agent.longId);
  return [
    ...judge('10', 'chunk at 50/s', floors, ours, 0.5, 6),
    ...judge('10', 'chunk at 50/s', floors, ours, 0.95, 20),
    ...judge('10', 'the same in 2,000 messages', floors, long, 0.95, 20),
  ];
};

export const tabsRows = async (ground: Ground): Promise<Row[]> => {
  const agent = await agentGround(ground, 'tabs');
  const four = { count: 100, everyMs: 20, tabs: 4, runs: 5 };
  const fast = { count: 1000, everyMs: 2, tabs: 1, runs: 5 };
  return [
    // A tenth of OpenCode's 82–114 ms, an eighth of its 229.
    ...judge('11', 'chunk at 50/s, 4 tabs', await floorOf(ground, four), await oursOf(ground, agent, four), 0.5, 10),
    ...judge('11', 'chunk at 500/s', await floorOf(ground, fast), await oursOf(ground, agent, fast), 0.95, 27),
  ];
};
