/** Errors as words (U-52). What is not a refusal means that the answer never came. */
import { errors, isErrorCode, Refusal } from '#protocol/errors.ts';
import { text } from '#lib/text/en.ts';
import type { Failure, Outcome } from './contract.ts';

export const failureOf = (error: unknown): Failure => {
  if (error instanceof Refusal) return { code: error.code, message: error.message };
  return { code: 'offline', message: text.connection.failure };
};

export const refused = (code: Failure['code']): { readonly ok: false; readonly failure: Failure } => ({
  ok: false,
  failure: { code, message: code !== 'offline' && isErrorCode(code) ? errors[code][0] : text.connection.failure },
});

export const done = <T>(value: T): Outcome<T> => ({ ok: true, value });
