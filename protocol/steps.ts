/**
 * Code that hashes and verifies, written once for platforms that answer at once (Node) and for those that answer with
 * a promise (WebCrypto). A generator asks with `yield* settled(answer)`; the caller runs it `inSync` or `inTurn`.
 */
export type Steps<T> = Generator<unknown, T, unknown>;

/** The answer of a platform, waited for only where it is a promise. */
export const settled = function* <T>(answer: T | Promise<T>): Steps<T> {
  return answer instanceof Promise ? ((yield answer) as T) : answer;
};

/** Runs to the end without a promise. @throws TypeError on a platform that answers with promises */
export const inSync = <T>(steps: Steps<T>): T => {
  const step = steps.next();
  if (step.done !== true) throw new TypeError('this platform only answers asynchronously');
  return step.value;
};

/** The same on any platform. */
export const inTurn = async <T>(steps: Steps<T>): Promise<T> => {
  let step = steps.next();
  while (step.done !== true) step = steps.next(await step.value);
  return step.value;
};
