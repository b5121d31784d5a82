/** How the gate reaches the rooms: two functions handed to it by main, nothing else. */
import type { Actor } from '#protocol/actor.ts';
import type { MethodName } from '#protocol/methods.ts';
import type { Sink } from '../ledger/contract.ts';

export interface Call {
  readonly method: MethodName;
  /** Parsed by the method's schema. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Present exactly for methods that mutate. */
  readonly key: string | undefined;
  readonly actor: Actor;
  readonly sink: Sink;
  /** Aborts on connection.cancelRequest and when the attachment ends. Mutations ignore it. */
  readonly signal: AbortSignal;
}
/** Resolves with the method's answer, rejects with a Refusal (anything else is answered internal_error). */
export type Dispatch = (call: Call) => Promise<Record<string, unknown>>;
