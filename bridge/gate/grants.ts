/**
 * What an actor may call (D-13, L-35), by the method table alone: permission is data on the method. Whatever a client
 * claims about itself changes nothing here. Called by `attachment.ts`.
 */
import type { Actor } from '#protocol/actor.ts';
import type { ErrorCode } from '#protocol/errors.ts';
import { methodNames, methods, type MethodName } from '#protocol/methods.ts';
import { commonErrors } from '#protocol/methods/method.ts';

const operate = 'bridge.operate';
const everyCapability: readonly string[] = [...new Set(methodNames.map((name) => methods[name].capability))].sort();

/** What this actor may call at all. An unproven control peer only reads. */
export const mayCall = (actor: Actor, name: MethodName): boolean => {
  const { capability, mutates } = methods[name];
  if (actor.kind === 'browser') return capability !== operate;
  return actor.kind === 'local' || actor.operator || (!mutates && capability !== operate);
};
/** Capabilities this actor has at least one method of, sorted. */
export const grantedTo = (actor: Actor): string[] =>
  everyCapability.filter((capability) =>
    methodNames.some((name) => methods[name].capability === capability && mayCall(actor, name)),
  );

/** Whether `method` may answer with `code`; anything else is internal. */
export const isAllowedCode = (method: MethodName | undefined, code: ErrorCode): boolean =>
  (commonErrors as readonly ErrorCode[]).includes(code) ||
  (method !== undefined && (methods[method].errors as readonly ErrorCode[]).includes(code));
