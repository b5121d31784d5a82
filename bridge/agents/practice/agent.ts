/**
 * The practice agent: a real ACP program over stdin and stdout, started like any other (G-12). Scripted, no account, no
 * network, no effect of its own: it reads, writes and runs only through the client. Runs as a process of its own;
 * nothing of the bridge is imported, so that it can be no more than an agent.
 * Environment: PRACTICE_STATE, a directory for its session notes; COUNTERSIGN_PRACTICE_PACE, 0 to speak at once.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import {
  agent,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type AgentContext,
  type ContentBlock,
} from '@agentclientprotocol/sdk';
import { readNotes, withTurn, writeNotes, type Notes } from './notes.ts';
import { answer, commands } from './script.ts';
import { Voice } from './voice.ts';

const state = process.env['PRACTICE_STATE'];
if (state === undefined || state === '') {
  process.stderr.write(
    'The practice agent is started by Countersign: PRACTICE_STATE must name a directory for its notes.\n',
  );
  process.exit(2);
}
mkdirSync(state, { recursive: true, mode: 0o700 });
const pace = Number(process.env['COUNTERSIGN_PRACTICE_PACE'] ?? '1');

interface OpenSession {
  notes: Notes;
  turn: AbortController | null;
}
const sessions = new Map<string, OpenSession>();

const promptText = (prompt: readonly ContentBlock[]): string =>
  prompt
    .map((block) => (block.type === 'text' ? block.text : ''))
    .join('\n')
    .trim();

const sayCommands = (client: AgentContext, sessionId: string): Promise<void> =>
  client.notify('session/update', {
    sessionId,
    update: {
      sessionUpdate: 'available_commands_update',
      availableCommands: commands.map((command) => ({ ...command })),
    },
  });

const takeUp = async (sessionId: string): Promise<OpenSession> => {
  const notes = await readNotes(state, sessionId);
  if (notes === null) throw RequestError.resourceNotFound(sessionId);
  const session = { notes, turn: null };
  sessions.set(sessionId, session);
  return session;
};

const replay = async (client: AgentContext, { notes }: OpenSession): Promise<void> => {
  const { sessionId } = notes;
  for (const { prompt, said } of notes.turns) {
    await client.notify('session/update', {
      sessionId,
      update: { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: prompt } },
    });
    await client.notify('session/update', {
      sessionId,
      update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: said } },
    });
  }
};

const takeTurn = async (
  client: AgentContext,
  session: OpenSession,
  prompt: string,
): Promise<'end_turn' | 'cancelled'> => {
  const { sessionId, cwd, turns } = session.notes;
  const controller = new AbortController();
  session.turn = controller;
  const before = session.notes;
  const keep = (said: string): Promise<void> => {
    session.notes = withTurn(before, { prompt, said });
    return writeNotes(state, session.notes);
  };
  const voice = new Voice({
    client,
    sessionId,
    turn: `turn-${turns.length + 1}`,
    cwd,
    signal: controller.signal,
    pace: Number.isFinite(pace) ? pace : 1,
  });
  try {
    await keep(''); // a turn that is killed was still asked
    if (turns.length === 0)
      await client.notify('session/update', {
        sessionId,
        update: { sessionUpdate: 'session_info_update', title: prompt.replace(/\s+/g, ' ').slice(0, 60) },
      });
    await answer(
      voice,
      prompt,
      turns.map((turn) => turn.prompt),
    );
    return 'end_turn';
  } catch (error) {
    if (controller.signal.aborted) return 'cancelled';
    throw error;
  } finally {
    session.turn = null;
    await keep(voice.said);
  }
};

const connection = agent({ name: 'practice' })
  .onRequest('initialize', () => ({
    protocolVersion: PROTOCOL_VERSION,
    agentInfo: { name: 'practice', title: 'Practice agent', version: '1.0.0' },
    agentCapabilities: {
      loadSession: true,
      sessionCapabilities: { resume: {} },
      promptCapabilities: { image: false, audio: false, embeddedContext: false },
    },
    authMethods: [],
  }))
  .onRequest('session/new', async ({ params, client }) => {
    const sessionId = `practice-${randomUUID()}`;
    const notes = { sessionId, cwd: params.cwd, turns: [] };
    await writeNotes(state, notes);
    sessions.set(sessionId, { notes, turn: null });
    setImmediate(() => void sayCommands(client, sessionId).catch(() => undefined)); // the client must know the id first
    return { sessionId };
  })
  .onRequest('session/load', async ({ params, client }) => {
    await replay(client, await takeUp(params.sessionId));
    await sayCommands(client, params.sessionId);
    return {};
  })
  .onRequest('session/resume', async ({ params, client }) => {
    await takeUp(params.sessionId);
    await sayCommands(client, params.sessionId);
    return {};
  })
  .onRequest('session/prompt', async ({ params, client }) => {
    const session = sessions.get(params.sessionId);
    if (session === undefined) throw RequestError.resourceNotFound(params.sessionId);
    if (session.turn !== null) throw RequestError.invalidRequest(undefined, 'a turn is running');
    return { stopReason: await takeTurn(client, session, promptText(params.prompt)) };
  })
  .onNotification('session/cancel', ({ params }) => sessions.get(params.sessionId)?.turn?.abort())
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

// The client has gone: nobody is left to act for.
void connection.closed.then(() => process.exit(0));
