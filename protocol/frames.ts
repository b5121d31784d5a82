/**
 * The frames of both transports (D-10 to D-12): WebSocket text frames for the app, NDJSON lines on the private
 * socket for the CLI. The same schemas at both ends; everything received is parsed here before anything else.
 */
import { anyEvent } from './events.ts';
import { count, list, name, text, time, uuid, z } from './schema.ts';

export const hello = z.strictObject({ kind: z.literal('hello'), wire: count, bootId: uuid, nonce: text(64) });
export const request = z.strictObject({
  kind: z.literal('request'),
  /** Chosen by the client, unique among its open requests. */
  id: count,
  method: name(64),
  params: z.record(z.string(), z.unknown()),
  /** UUID of the operation; only for methods that change something, and then always (D-30). */
  key: z.optional(uuid),
});
export const result = z.strictObject({
  kind: z.literal('result'),
  id: count,
  method: name(64),
  result: z.record(z.string(), z.unknown()),
});
export const failure = z.strictObject({
  kind: z.literal('error'),
  /** −1 when no request can be named. */
  id: z.int(),
  method: z.optional(name(64)),
  error: z.strictObject({
    code: name(64),
    message: text(2000),
    retryable: z.boolean(),
    details: z.optional(z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))),
  }),
});

/**
 * A streaming message as it stands: `text` is everything since the segment's start. Sent on subscribe and resync.
 */
export const draft = z.strictObject({
  messageId: name(128),
  turnId: z.optional(uuid),
  role: z.enum(['agent', 'thought']),
  part: count,
  text: z.string(),
});
export type Draft = z.infer<typeof draft>;

export const activityFrame = z.discriminatedUnion('type', [
  /** Append `text` at `offset` (UTF-16 units) of the message's part; an event covering it supersedes it. */
  z.strictObject({
    type: z.literal('text'),
    messageId: name(128),
    role: z.enum(['agent', 'thought']),
    part: count,
    offset: count,
    text: z.string(),
  }),
  /** Progress of something without a row yet: starting the agent, waiting for it, stopping. */
  z.strictObject({
    type: z.literal('status'),
    state: z.enum(['idle', 'starting', 'opening_session', 'resuming', 'working', 'quiet', 'stopping']),
    since: time,
    detail: z.optional(text(500)),
  }),
  /** Output of a running agent terminal, so that a long command is seen to run. */
  z.strictObject({
    type: z.literal('terminal'),
    terminalId: name(128),
    toolCallId: z.optional(name(128)),
    offset: count,
    text: z.string(),
  }),
]);
export type ActivityFrame = z.infer<typeof activityFrame>;

/** `sub` is the conversation id: an attachment subscribes once to a conversation, so one encoding serves all. */
export const delivery = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('event'), sub: name(64), seq: count, event: anyEvent }),
  z.strictObject({
    kind: z.literal('activity'),
    sub: name(64),
    turnId: z.optional(uuid),
    n: count,
    frame: activityFrame,
  }),
  z.strictObject({
    kind: z.literal('presence'),
    attachments: list(
      z.strictObject({
        attachmentId: uuid,
        client: name(32),
        connectedAt: time,
        seenAt: time,
        subscribed: list(name(64), 64),
      }),
      64,
    ),
  }),
  /** A list changed; carries no data: clients coalesce and list again. */
  z.strictObject({
    kind: z.literal('invalidate'),
    topic: z.enum([
      'conversations',
      'approvals',
      'workspaces',
      'agents',
      'rules',
      'sessions',
      'receipts',
      'trust',
      'terminals',
      /** Only to an attachment that watches some. */
      'files',
    ]),
    generation: count,
  }),
]);
export type Delivery = z.infer<typeof delivery>;
export type Hello = z.infer<typeof hello>;
export type Request = z.infer<typeof request>;
export type Result = z.infer<typeof result>;
export type Failure = z.infer<typeof failure>;

/** Everything the bridge sends. */
export const fromBridge = z.union([hello, result, failure, delivery]);

/** What the page key signs to open a socket (D-10). The Unix socket sends no proof. */
export const socketProofText = (part: { origin: string; path: string; bootId: string; nonce: string }): string =>
  `countersign/socket/v1\n${part.origin}\n${part.path}\n${part.bootId}\n${part.nonce}`;

/** A place in a conversation's log. `lineage` is made with the state and renewed by a restore (D-45). */
export const cursor = z.strictObject({ lineage: name(64), conversationId: name(64), seq: count });
export type Cursor = z.infer<typeof cursor>;
