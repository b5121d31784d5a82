/**
 * The agent of the bench: a real ACP program that says when it did what. A prompt is JSON: `{"stream": N, "everyMs": M}`
 * says `c1~ c2~ …`, `{"ask": N}` asks for N permissions, one after another. The times (wall clock, ms with fractions) are
 * written to BENCH_LOG when the turn ends. Started by the bridge under measurement.
 */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { agent, ndJsonStream, PROTOCOL_VERSION, type AgentContext } from '@agentclientprotocol/sdk';
import { wallMs } from './clock.ts';

interface Task {
  readonly stream?: number;
  readonly everyMs?: number;
  /** Numbers go on from here, so that words of an earlier turn are not taken for these. */
  readonly from?: number;
  readonly ask?: number;
}

const log = process.env['BENCH_LOG'];

const stream = async (
  client: AgentContext,
  sessionId: string,
  count: number,
  everyMs: number,
  from: number,
): Promise<number[]> => {
  const times: number[] = [];
  const began = performance.now();
  for (let number = 1; number <= count; number += 1) {
    const due = began + number * everyMs - performance.now();
    if (due > 0) await sleep(due);
    times.push(wallMs());
    const content = { type: 'text', text: `c${from + number}~ ` } as const;
    await client.notify('session/update', { sessionId, update: { sessionUpdate: 'agent_message_chunk', content } });
  }
  return times;
};

const ask = async (client: AgentContext, sessionId: string, count: number): Promise<number[]> => {
  const times: number[] = [];
  for (let number = 1; number <= count; number += 1) {
    await client.request('session/request_permission', {
      sessionId,
      toolCall: {
        toolCallId: `call-${randomUUID()}`,
        title: `Run step ${number}`,
        kind: 'execute',
        rawInput: { command: `npm run step-${number}` },
      },
      options: [
        { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
        { optionId: 'no', name: 'Reject', kind: 'reject_once' },
      ],
    });
    times.push(wallMs());
  }
  return times;
};

const connection = agent({ name: 'bench' })
  .onRequest('initialize', () => ({
    protocolVersion: PROTOCOL_VERSION,
    agentInfo: { name: 'bench', title: 'Bench agent', version: '1.0.0' },
    agentCapabilities: { loadSession: false },
    authMethods: [],
  }))
  .onRequest('session/new', () => ({ sessionId: randomUUID() }))
  .onRequest('session/prompt', async ({ params, client }) => {
    const text = params.prompt.map((part) => (part.type === 'text' ? part.text : '')).join('');
    const task = JSON.parse(text) as Task;
    const times =
      task.stream === undefined
        ? await ask(client, params.sessionId, task.ask ?? 0)
        : await stream(client, params.sessionId, task.stream, task.everyMs ?? 20, task.from ?? 0);
    if (log !== undefined) writeFileSync(log, JSON.stringify(times));
    return { stopReason: 'end_turn' };
  })
  .onNotification('session/cancel', () => undefined)
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>));

void connection.closed.then(() => process.exit(0));
