/**
 * terminal.*: the operator's own terminals (P-01 to P-03). What is typed and shown goes over a socket of its own,
 * `<base>/terminal/<terminalId>`, see docs/PROTOCOL.md.
 */
import { limits } from '../limits.ts';
import { count, list, name, text, time, uuid, z } from '../schema.ts';
import type { Method } from './method.ts';
import { pathErrors } from './workspace.ts';

const columns = z.int().check(z.minimum(limits.terminalColumnsMin), z.maximum(limits.terminalColumns));
const rows = z.int().check(z.minimum(1), z.maximum(limits.terminalRows));
export const terminalSize = z.strictObject({ columns, rows });
export type TerminalSize = z.infer<typeof terminalSize>;

export const terminalInfo = z.strictObject({
  terminalId: uuid,
  workspaceId: uuid,
  /** The folder it began in, relative to the workspace. */
  cwd: text(limits.pathBytes),
  /** The program: the operator's shell. */
  program: text(limits.nameBytes),
  /** What the operator called it, else what the program set, inert and cut; else empty. */
  title: text(limits.terminalTitleUnits),
  size: terminalSize,
  startedAt: time,
  /** Null while it runs. `bridge`: the bridge ended, and the shell with it. */
  ended: z.nullable(
    z.strictObject({
      at: time,
      code: z.nullable(z.int()),
      signal: z.nullable(text(32)),
      by: z.enum(['itself', 'operator', 'bridge']),
    }),
  ),
});
export type TerminalInfo = z.infer<typeof terminalInfo>;

/** JSON text frames of a terminal's socket. Everything else on it is bytes: output, and keys. */
export const terminalClientFrame = z.discriminatedUnion('type', [
  /** First of all, and once: the ticket for this socket's path, and the size the page has. */
  z.strictObject({ type: z.literal('attach'), ticket: text(128), size: terminalSize }),
  /** From the one that owns the size. */
  z.strictObject({ type: z.literal('resize'), size: terminalSize }),
  /** Takes the size over; the others letterbox. */
  z.strictObject({ type: z.literal('own') }),
  /** Bytes of output that were drawn, in all since the replay. At least every `terminalAckBytes`. */
  z.strictObject({ type: z.literal('ack'), bytes: count }),
]);
export type TerminalClientFrame = z.infer<typeof terminalClientFrame>;
export const terminalServerFrame = z.discriminatedUnion('type', [
  /** The next binary frame is the whole screen with its scrollback; output follows it from byte 0 on. */
  z.strictObject({ type: z.literal('replay'), size: terminalSize, owner: z.boolean(), bytes: count }),
  z.strictObject({ type: z.literal('size'), size: terminalSize, owner: z.boolean() }),
  z.strictObject({ type: z.literal('title'), title: text(limits.terminalTitleUnits) }),
  z.strictObject({ type: z.literal('ended'), code: z.nullable(z.int()), signal: z.nullable(text(32)) }),
]);
export type TerminalServerFrame = z.infer<typeof terminalServerFrame>;

export const terminalMethods = {
  'terminal.close': {
    params: z.strictObject({ terminalId: uuid }),
    result: z.strictObject({}),
    capability: 'terminal',
    mutates: true,
    errors: ['terminal_gone'],
  },
  'terminal.list': {
    params: z.strictObject({}),
    result: z.strictObject({
      terminals: list(terminalInfo, limits.terminalsListed),
      /** Why there are none here, in plain words; null where there can be. */
      absent: z.nullable(text(500)),
    }),
    capability: 'terminal',
    mutates: false,
    errors: [],
  },
  'terminal.open': {
    params: z.strictObject({ workspaceId: uuid, cwd: z.optional(text(limits.pathBytes)), size: terminalSize }),
    result: terminalInfo,
    capability: 'terminal',
    mutates: true,
    errors: [...pathErrors, 'not_a_directory', 'terminal_limit'],
  },
  'terminal.rename': {
    params: z.strictObject({ terminalId: uuid, title: name(limits.terminalTitleUnits) }),
    result: terminalInfo,
    capability: 'terminal',
    mutates: true,
    errors: ['terminal_gone'],
  },
} as const satisfies Record<string, Method>;
