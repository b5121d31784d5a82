/** The shape of one row of the method table. */
import type { ErrorCode } from '../errors.ts';
import type { z } from '../schema.ts';

export interface Method {
  readonly params: z.core.$ZodType;
  readonly result: z.core.$ZodType;
  /** A client uses only what `connection.initialize` granted. */
  readonly capability: string;
  /** Needs an operation key, is recorded in `operations`, may be asked again by the same key. */
  readonly mutates: boolean;
  /** Codes beside those any method may answer with (`commonErrors`). */
  readonly errors: readonly ErrorCode[];
}

/** Any method may answer with these. */
export const commonErrors = [
  'bad_request',
  'not_initialized',
  'unsupported_capability',
  'rate_limited',
  'frame_too_large',
  'unauthorized',
  'forbidden',
  'cancelled',
  'internal_error',
  'read_only',
  'invalid_key',
  'idempotency_conflict',
  'uncertain',
] as const satisfies readonly ErrorCode[];
