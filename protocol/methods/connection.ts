/** connection.*, bridge.*, ticket.*, view.*: the session itself. */
import { limits } from '../limits.ts';
import { base64url, count, list, name, text, time, uuid, z } from '../schema.ts';
import type { Method } from './method.ts';

const empty = z.strictObject({});

export const sessionSummary = z.strictObject({
  sessionId: uuid,
  /** Browser name and platform as the page told it, cut; shown as inert text. */
  client: text(200),
  createdAt: time,
  seenAt: time,
  expiresAt: time,
  current: z.boolean(),
});
export type SessionSummary = z.infer<typeof sessionSummary>;

export const connectionMethods = {
  'bridge.info': {
    params: empty,
    result: z.strictObject({
      version: text(64),
      bootId: uuid,
      startedAt: time,
      origin: text(200),
      stateDirectory: text(limits.pathBytes),
      node: text(32),
      sqlite: text(32),
      containment: z.enum(['bubblewrap', 'best_effort']),
      containmentWhy: text(500),
      publicKeyPem: text(500),
      keyId: text(100),
      readOnly: z.boolean(),
      agentProcesses: count,
      agentProcessLimit: count,
      practiceWorkspace: text(limits.pathBytes),
    }),
    capability: 'bridge.read',
    mutates: false,
    errors: [],
  },
  /** A new launch URL; only for an operator on the private socket. */
  'bridge.launch': {
    params: empty,
    result: z.strictObject({ launchUrl: text(400), expiresAt: time }),
    capability: 'bridge.operate',
    mutates: false,
    errors: [],
  },
  /** Ends this session and expires its cookie; the page deletes its key. */
  'bridge.logout': { params: empty, result: empty, capability: 'bridge.session', mutates: true, errors: [] },
  'bridge.revoke': {
    /** One session, or all of them. */
    params: z.strictObject({ sessionId: z.nullable(uuid) }),
    result: z.strictObject({ revoked: count }),
    capability: 'bridge.session',
    mutates: true,
    errors: [],
  },
  'bridge.sessions': {
    params: empty,
    result: z.strictObject({ sessions: list(sessionSummary, limits.sessions) }),
    capability: 'bridge.session',
    mutates: false,
    errors: [],
  },
  /** Orderly stop; only for an operator on the private socket. */
  'bridge.stop': { params: empty, result: empty, capability: 'bridge.operate', mutates: false, errors: [] },
  /** Everything up to `seq` was seen; also releases the live tail after a subscribe. */
  'connection.ack': {
    params: z.strictObject({ sub: name(64), seq: count }),
    result: empty,
    capability: 'connection',
    mutates: false,
    errors: ['unknown_subscription'],
  },
  'connection.cancelRequest': {
    params: z.strictObject({ id: count }),
    result: empty,
    capability: 'connection',
    mutates: false,
    errors: [],
  },
  'connection.initialize': {
    params: z.strictObject({
      wire: count,
      client: z.strictObject({ kind: z.enum(['app', 'cli']), version: text(64), instanceId: uuid }),
      capabilities: list(text(64), 64),
      /** base64url Ed25519 signature over `socketProofText`; absent on the private socket. */
      proof: z.optional(base64url(128)),
      /** Private socket only: the process that holds `<runtime>/peers/<nonce>` open, so that the bridge can look at its ancestry. */
      peer: z.optional(z.strictObject({ pid: count })),
    }),
    result: z.strictObject({
      attachmentId: uuid,
      bridgeId: text(64),
      lineage: text(64),
      granted: list(text(64), 64),
      limits: z.record(z.string(), z.number()),
      heartbeatMs: count,
      presenceTimeoutMs: count,
      now: time,
    }),
    capability: 'connection',
    mutates: false,
    errors: ['unsupported_version'],
  },
  'connection.ping': {
    params: empty,
    result: z.strictObject({ now: time }),
    capability: 'connection',
    mutates: false,
    errors: [],
  },
  /** One use, 10 s, for one path under base: blobs and terminal sockets carry it as `X-Ticket`. */
  'ticket.create': {
    // Room for a blob's query: a file name of 255 bytes, percent-encoded.
    params: z.strictObject({ path: text(1000) }),
    result: z.strictObject({ ticket: text(64), expiresAt: time }),
    capability: 'blobs',
    mutates: false,
    errors: [],
  },
  /** Dock state of a conversation, kept on the bridge so that another device goes on there. Opaque JSON text. */
  'view.get': {
    params: z.strictObject({ conversationId: name(64) }),
    result: z.strictObject({ state: z.nullable(text(16_000)) }),
    capability: 'view',
    mutates: false,
    errors: [],
  },
  'view.set': {
    params: z.strictObject({ conversationId: name(64), state: text(16_000) }),
    result: empty,
    capability: 'view',
    mutates: true,
    errors: [],
  },
} as const satisfies Record<string, Method>;
