/**
 * Fills a state directory with a conversation of any length, through the ledger itself, as fast as it can be durable:
 * many events share a commit. No bridge may be running on that state. The text is made from a seed, so that every run
 * measures the same bytes. `node tests/bench/seed.ts STATE WORKSPACE MESSAGES [BYTES]` does it by hand.
 */
import { mkdirSync, realpathSync, statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { randomBytes, randomUUID } from 'node:crypto';
import type { EventDraft } from '#protocol/events.ts';
import { uuidv7 } from '#protocol/ids.ts';
import { newHeader } from '../../bridge/conversations/header.ts';
import type { Ledger } from '../../bridge/ledger/contract.ts';
import { openLedger } from '../../bridge/ledger/ledger.ts';
import { acquireLock } from '../../bridge/ledger/lock.ts';
import { stateDirectories } from '../../bridge/ledger/paths.ts';

export interface Seeding {
  /** Message events, of the operator and of the agent together; tool calls, turns and plans come on top. */
  readonly messages: number;
  /** About this much stored text in all; about 600 bytes a message unless given. Below the cap of a transcript. */
  readonly bytes?: number;
  readonly title?: string;
  /** The practice agent unless given. */
  readonly agent?: { readonly agentId: string; readonly title: string };
}
export interface Seeded {
  readonly conversationId: string;
  readonly workspaceId: string;
  readonly title: string;
  readonly events: number;
  readonly bytes: number;
  /** Words that stand in the first message only, and in the last line of the last one only. */
  readonly firstWords: string;
  readonly lastWords: string;
}

/** Events of one commit. */
const batch = 500;
const perTurn = 3;
/** A tool's output stays inline up to here. */
const maxOutput = 60_000;

const vocabulary =
  'the parser reads a date from each line and keeps its zone while tests compare both sides of the change before anything is written to disk again'.split(
    ' ',
  );

/** xorshift32: the same words in every run. */
const numbers = (seed: number): ((below: number) => number) => {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
};

const sentence = (next: (below: number) => number): string =>
  `${Array.from({ length: 8 + next(14) }, () => vocabulary[next(vocabulary.length)] ?? '').join(' ')}.`;

const paragraphs = (next: (below: number) => number, bytes: number): string => {
  const parts: string[] = [];
  let length = 0;
  while (length < bytes) {
    const part = block(next, parts.length);
    parts.push(part);
    length += part.length + 2;
  }
  return parts.join('\n\n');
};

/** What agents write: prose, now and then a list, a table of facts or code. */
const block = (next: (below: number) => number, index: number): string => {
  const kind = index === 0 ? 0 : next(8);
  if (kind === 1)
    return Array.from({ length: 4 }, () => `- **${vocabulary[next(20)] ?? ''}** ${sentence(next)}`).join('\n');
  if (kind === 2) {
    const lines = Array.from(
      { length: 6 },
      (_, line) => `  const value${line} = parse(input[${next(90)}], '${vocabulary[next(20)] ?? ''}');`,
    );
    return `\`\`\`ts\nexport const read = (input: string[]) => {\n${lines.join('\n')}\n};\n\`\`\``;
  }
  if (kind === 3) return `See \`src/${vocabulary[next(20)] ?? ''}.ts\`: ${sentence(next)}`;
  return [sentence(next), sentence(next)].join(' ');
};

const output = (next: (below: number) => number, bytes: number): string => {
  const lines: string[] = [];
  for (let length = 0, line = 1; length < bytes; line += 1) {
    const text = `ok ${line} - ${sentence(next)}`;
    lines.push(text);
    length += text.length + 1;
  }
  return lines.join('\n').slice(0, bytes);
};

interface Turn {
  readonly number: number;
  readonly messages: number;
  readonly bytes: number;
  readonly asked: string;
  readonly ending: string;
}

/** One turn: a question, an answer, a tool call with its output, an answer. */
const turnEvents = (turn: Turn, next: (below: number) => number): EventDraft[] => {
  const turnId = randomUUID();
  const messageId = randomUUID();
  const toolCallId = `call-${turn.number}`;
  const outputBytes = Math.min(maxOutput, Math.floor(turn.bytes / 2));
  const answerBytes = Math.max(120, Math.floor((turn.bytes - outputBytes - 300) / (perTurn - 1)));
  const path = `/home/user/src/${vocabulary[next(20)] ?? ''}.ts`;
  const events: EventDraft[] = [
    { type: 'turn.started', turnId, data: { messageId, by: 'operator' } },
    { type: 'message', turnId, data: { messageId, role: 'user', text: `${turn.asked} ${sentence(next)}` } },
  ];
  if (turn.messages > 2) {
    events.push({
      type: 'message',
      turnId,
      data: { messageId: randomUUID(), role: 'agent', text: paragraphs(next, answerBytes) },
    });
  }
  events.push(
    {
      type: 'tool.called',
      turnId,
      data: {
        toolCallId,
        title: `Run tests in ${path}`,
        kind: 'execute',
        status: 'in_progress',
        locations: [{ path }],
        rawInput: JSON.stringify({ command: 'npm test', path }),
      },
    },
    {
      type: 'tool.updated',
      turnId,
      data: { toolCallId, status: 'completed', content: [{ type: 'text', text: output(next, outputBytes) }] },
    },
  );
  if (turn.messages > 1) {
    const text = `${paragraphs(next, answerBytes)}\n\n${turn.ending}`;
    events.push({ type: 'message', turnId, data: { messageId: randomUUID(), role: 'agent', text } });
  }
  events.push({
    type: 'turn.ended',
    turnId,
    data: { stopReason: 'end_turn', durationMs: 1000 + next(9000), changedPaths: [] },
  });
  return events;
};

const put = async (
  ledger: Ledger,
  conversation: { workspaceId: string; workspacePath: string },
  seeding: Seeding,
): Promise<Seeded> => {
  const { messages, agent = { agentId: 'practice', title: 'Practice agent' } } = seeding;
  const next = numbers(0x5eed + messages);
  const conversationId = uuidv7(Date.now(), randomBytes);
  const title = seeding.title ?? `${messages} messages`;
  const turns = Math.max(1, Math.ceil(messages / perTurn));
  const bytes = Math.floor((seeding.bytes ?? messages * 600) / turns);
  const firstWords = `first of ${messages}`;
  const lastWords = `last of ${messages}`;
  const row = { conversationId, ...conversation, title, agentId: agent.agentId, agentTitle: agent.title };
  const header = JSON.stringify(newHeader({ acceptUnrestricted: true, titled: true, modeId: null }));
  await ledger.commit((tx) => {
    tx.putConversation({
      ...row,
      createdAt: Date.now(),
      archived: false,
      sessionId: null,
      lastStop: 'end_turn',
      header,
    });
    const { workspaceId, workspacePath, agentId, agentTitle } = row;
    tx.append(conversationId, {
      type: 'conversation.created',
      data: { workspaceId, workspacePath, agentId, agentTitle, title },
    });
  });
  let waiting: EventDraft[] = [];
  const flush = async (): Promise<void> => {
    const events = waiting;
    waiting = [];
    await ledger.commit((tx) => {
      for (const event of events) {
        if (tx.append(conversationId, event) === null) throw new Error('the transcript is full: seed fewer bytes');
      }
    });
  };
  for (let number = 0; number < turns; number += 1) {
    const asked = number === 0 ? `${firstWords}:` : `Question ${number}:`;
    const ending = number === turns - 1 ? lastWords : `That was turn ${number}.`;
    const left = messages - number * perTurn;
    waiting.push(...turnEvents({ number, messages: Math.min(perTurn, left), bytes, asked, ending }, next));
    if (waiting.length >= batch) await flush();
  }
  await flush();
  const stored = ledger.read.conversation(conversationId);
  if (stored === null) throw new Error('the seeded conversation cannot be read');
  return {
    conversationId,
    workspaceId: row.workspaceId,
    title,
    events: stored.lastSeq,
    bytes: stored.bytes,
    firstWords,
    lastWords,
  };
};

/** Seeds one conversation after another into a state, all in one workspace; the last is the newest in the list. */
export const seed = async (state: string, workspace: string, seedings: readonly Seeding[]): Promise<Seeded[]> => {
  mkdirSync(workspace, { recursive: true });
  const directories = stateDirectories(state);
  const lock = acquireLock(directories.stateLock, { pid: process.pid, what: 'seed' });
  if (!lock.held) throw new Error(`${state} is in use; stop its bridge first`);
  const ledger = openLedger({ directory: directories.private, blobs: directories.blobs });
  try {
    const path = realpathSync(workspace);
    const { dev, ino } = statSync(path, { bigint: true });
    const workspaceId =
      ledger.read.workspaces().find((row) => row.path === path)?.workspaceId ?? uuidv7(Date.now(), randomBytes);
    await ledger.commit((tx) => {
      tx.putWorkspace({
        workspaceId,
        path,
        dev: String(dev),
        ino: String(ino),
        practice: false,
        openedAt: Date.now(),
        forgotten: false,
      });
    });
    const seeded: Seeded[] = [];
    for (const seeding of seedings) seeded.push(await put(ledger, { workspaceId, workspacePath: path }, seeding));
    return seeded;
  } finally {
    await ledger.close();
    lock.release();
  }
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [state, workspace, messages, bytes] = process.argv.slice(2);
  if (state === undefined || workspace === undefined || messages === undefined)
    throw new Error('usage: seed.ts STATE WORKSPACE MESSAGES [BYTES]');
  const seeding = { messages: Number(messages), ...(bytes === undefined ? {} : { bytes: Number(bytes) }) };
  for (const seeded of await seed(state, workspace, [seeding])) process.stdout.write(`${JSON.stringify(seeded)}\n`);
}
