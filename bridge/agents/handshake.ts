/**
 * From a fresh connection to an open session: initialize, sign-in, then resume, load or new, in that order (G-30).
 * Failures are refusals that name the reason and the command that mends it (G-05).
 * Used by running.ts, which owns the process and turns its end into a refusal of whatever is awaited here.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { z } from '#protocol/schema.ts';
import type { CatalogueEntry } from './catalogue.ts';
import { PROTOCOL_VERSION, RequestError, type Connection } from './connection.ts';
import type { AgentHost } from './contract.ts';
import { declared, type Declared } from './options.ts';
import { oneLine } from './ring.ts';

const nullable = <T extends z.core.$ZodType>(schema: T) => z.optional(z.nullable(schema));
const presence = nullable(z.unknown());
const initialized = z.looseObject({
  protocolVersion: z.unknown(),
  agentInfo: nullable(
    z.looseObject({ name: nullable(z.string()), title: nullable(z.string()), version: nullable(z.string()) }),
  ),
  agentCapabilities: nullable(
    z.looseObject({
      loadSession: nullable(z.boolean()),
      promptCapabilities: nullable(
        z.looseObject({ image: nullable(z.boolean()), embeddedContext: nullable(z.boolean()) }),
      ),
      sessionCapabilities: nullable(z.looseObject({ resume: presence, close: presence })),
    }),
  ),
  authMethods: nullable(z.array(z.unknown())),
});

export interface Capabilities {
  readonly name: string;
  readonly version: string;
  readonly load: boolean;
  readonly resume: boolean;
  readonly images: boolean;
  readonly embeddedContext: boolean;
  readonly authMethods: readonly string[];
}

export interface Opened {
  readonly sessionId: string;
  readonly how: 'new' | 'resume' | 'load';
  readonly contextLost: string | null;
  readonly declared: Declared;
}

/** -32000 is ACP's; Gemini passes the HTTP status on. */
const isAuthRequired = (error: unknown): boolean =>
  error instanceof RequestError && (error.code === -32000 || error.code === 401);

/** JSON-RPC's own words say little; agents that answer -32603 have theirs in `data.details`. */
const saidBy = ({ message, data }: RequestError): string => {
  const details = typeof data === 'object' && data !== null && 'details' in data ? data.details : data;
  return typeof details === 'string' && details !== '' ? `${message}: ${details}` : message;
};

/** The refusal for an error the agent answered with, or whatever else happened, while `what` was awaited. */
export const refusalOf = (error: unknown, entry: CatalogueEntry, what: string): Refusal => {
  if (error instanceof Refusal) return error;
  if (isAuthRequired(error)) {
    const said = oneLine((error as RequestError).message);
    return new Refusal('agent_auth_required', {
      message: `${entry.title} is not signed in: it answered “${said}” while ${what} was awaited.`,
      details: { mend: 'Sign in in a terminal, then try again.', mendCommand: entry.signIn },
      cause: error,
    });
  }
  const said = error instanceof RequestError ? `“${oneLine(saidBy(error))}” (${error.code})` : 'something unexpected';
  return new Refusal('agent_start_failed', {
    message: `${entry.title} answered ${said} while ${what} was awaited.`,
    cause: error,
  });
};

/** @throws Refusal agent_start_failed, agent_auth_required, agent_protocol_error */
export const initialize = async (
  connection: Connection,
  entry: CatalogueEntry,
  bridgeVersion: string,
): Promise<Capabilities> => {
  const request = {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: entry.served, writeTextFile: entry.served }, terminal: entry.served },
    clientInfo: { name: 'countersign', title: 'Countersign', version: bridgeVersion },
  };
  let answer: unknown;
  try {
    answer = await connection.request('initialize', request, {
      timeoutMs: limits.initializeMs,
      what: 'its first answer',
    });
  } catch (error) {
    throw refusalOf(error, entry, 'its first answer');
  }
  const parsed = z.safeParse(initialized, answer);
  if (!parsed.success)
    throw new Refusal('agent_protocol_error', {
      message: `${entry.title} answered initialize with something that is not ACP.`,
    });
  const { protocolVersion, agentInfo, agentCapabilities, authMethods } = parsed.data;
  if (protocolVersion !== PROTOCOL_VERSION) {
    const version = typeof protocolVersion === 'number' ? String(protocolVersion) : 'something else';
    throw new Refusal('agent_protocol_error', {
      message: `${entry.title} speaks version ${version} of ACP; this bridge speaks ${PROTOCOL_VERSION}.`,
    });
  }
  const prompts = agentCapabilities?.promptCapabilities;
  return {
    name: oneLine(agentInfo?.title ?? agentInfo?.name ?? entry.title, 200),
    version: oneLine(agentInfo?.version ?? 'unknown', 100),
    load: agentCapabilities?.loadSession === true,
    resume:
      agentCapabilities?.sessionCapabilities?.resume !== undefined &&
      agentCapabilities.sessionCapabilities.resume !== null,
    images: prompts?.image === true,
    embeddedContext: prompts?.embeddedContext === true,
    authMethods: (authMethods ?? []).flatMap((method) =>
      typeof method === 'object' && method !== null && 'id' in method && typeof method.id === 'string'
        ? [method.id]
        : [],
    ),
  };
};

export interface OpenRequest {
  readonly connection: Connection;
  readonly entry: CatalogueEntry;
  readonly capabilities: Capabilities;
  readonly cwd: string;
  readonly sessionId: string | null;
  /** Whether this variable is set for the agent. */
  readonly hasEnv: (name: string) => boolean;
  /** While true, replayed messages are not news. */
  readonly replaying: (on: boolean) => void;
  /** Resolves when nothing replayed has come for a while: Gemini answers first and replays afterwards. */
  readonly replayed: () => Promise<void>;
  readonly progress: AgentHost['progress'];
}

const signIn = async ({ connection, entry, capabilities, hasEnv }: OpenRequest): Promise<boolean> => {
  const way = entry.authenticate;
  if (way === null || !way.whenEnv.some(hasEnv) || !capabilities.authMethods.includes(way.methodId)) return false;
  await connection.request(
    'authenticate',
    { methodId: way.methodId },
    { timeoutMs: limits.sessionNewMs, what: 'its sign-in' },
  );
  return true;
};

/** Runs `work`; where it is refused for want of a sign-in and a key is there, signs in and runs it again, once. */
const signedIn = async <T>(request: OpenRequest, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (!isAuthRequired(error) || request.entry.authenticate?.first === true || !(await signIn(request))) throw error;
    return await work();
  }
};

const newSession = async (request: OpenRequest, contextLost: string | null): Promise<Opened> => {
  const { connection, entry, cwd, progress } = request;
  progress('opening_session', `Waiting for ${entry.title} to open a session.`);
  const params = { cwd, mcpServers: [], ...(entry.sessionMeta === null ? {} : { _meta: entry.sessionMeta }) };
  const answer = await signedIn(request, () =>
    connection.request('session/new', params, { timeoutMs: limits.sessionNewMs, what: 'a new session' }),
  );
  const sessionId = typeof answer === 'object' && answer !== null && 'sessionId' in answer ? answer.sessionId : null;
  if (typeof sessionId !== 'string' || sessionId === '')
    throw new Refusal('agent_protocol_error', { message: `${entry.title} opened a session without naming it.` });
  return { sessionId, how: 'new', contextLost, declared: declared(answer) };
};

/** Takes a former session up by one way. Null with the reason where the agent says no. */
const takeUp = async (
  request: OpenRequest,
  sessionId: string,
  how: 'resume' | 'load',
): Promise<Opened | { readonly reason: string }> => {
  const { connection, entry, cwd, progress, replaying } = request;
  progress('resuming', `Waiting for ${entry.title} to take the conversation up again.`);
  const params = {
    sessionId,
    cwd,
    mcpServers: [],
    ...(entry.sessionMeta === null ? {} : { _meta: entry.sessionMeta }),
  };
  replaying(how === 'load');
  try {
    const answer = await signedIn(request, () =>
      connection.request(`session/${how}`, params, { timeoutMs: limits.sessionNewMs, what: 'the former session' }),
    );
    if (how === 'load') await request.replayed();
    return { sessionId, how, contextLost: null, declared: declared(answer) };
  } catch (error) {
    if (!(error instanceof RequestError) || isAuthRequired(error)) throw error;
    return { reason: oneLine(saidBy(error)) };
  } finally {
    replaying(false);
  }
};

/** @throws Refusal agent_start_failed, agent_auth_required, agent_protocol_error, agent_gone */
export const openSession = async (request: OpenRequest): Promise<Opened> => {
  const { entry, capabilities, sessionId } = request;
  try {
    if (entry.authenticate?.first === true) await signIn(request);
    if (sessionId === null) return await newSession(request, null);
    const ways = (['resume', 'load'] as const).filter((way) => capabilities[way]);
    let reason = `${entry.title} cannot take conversations up again.`;
    for (const way of ways) {
      const taken = await takeUp(request, sessionId, way);
      if (!('reason' in taken)) return taken;
      reason = `${entry.title} could not take its former session up: “${taken.reason}”.`;
    }
    return await newSession(request, reason);
  } catch (error) {
    throw refusalOf(error, entry, 'a session');
  }
};
